"""Finds dates in a text, with one finder for each kind.

Month and weekday names come from CLDR (Babel), words for eras and decades from our lists. Persian
and Hijri dates are converted to the Gregorian calendar (convertdate).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from core.documents.segmentation import FUNCTION_WORDS
from core.tools.date_values import DateKind, DateValue, Era
from core.tools.numbers import parse_numeral
from core.tools.quantities import PLURAL_NOUNS
from core.tools.vocabulary import (
    BLANK_PATTERN,
    NEVER_PATTERN,
    OTHER_SCRIPTS,
    WORD_PATTERN,
    DateBound,
    DateWords,
    PatternTable,
    find_unit,
    load_currency_words,
    load_date_words,
    lower_text,
    make_phrase_set,
    match_any,
    normalize_chars,
    skip_blank,
    skip_blank_back,
)

PATTERNS = PatternTable("dates")
TextPlace = tuple[int, int]
MAX_TEXT_CHARS = 20_000
FIRST_YEAR, LAST_YEAR = 1000, 2100
PIVOT_YEAR = 40  # two-digit years up to 40 belong to this century
CAPITAL_MONTHS, SMALL_MONTHS = frozenset(["en", "de"]), frozenset(["fr", "es", "it", "pt", "ca"])
OPENING_MARKS = "([{“\"'—–-/,;:。，、；：（「《"
CLOSING_MARKS = ")]},.;:!?”\"'—–-/|،؛।。，、；：）」》"
PLURAL_ENDINGS = {
    "en": r"s$", "fr": r"[sx]$", "es": r"s$", "pt": r"s$", "ca": r"s$", "it": r"[ie]$",
    "nl": r"(?:en|s)$", "sv": r"(?:or|ar|er)$", "da": r"er$",
}  # fmt: skip
MODERN_YEARS = range(1900, 2036)
JAPANESE_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}
BCE_WORDS = frozenset(["公元前", "西元前", "紀元前", "기원전"])
HAN_WEEKDAYS = (
    (re.compile(r"(?:星期|礼拜|禮拜|周|週)(?P<day>[一二三四五六日天])"), "一二三四五六日"),
    (re.compile(r"(?P<day>[月火水木金土日])曜日?"), "月火水木金土日"),
    (re.compile(r"(?P<day>[월화수목금토일])요일"), "월화수목금토일"),
)
DateFinder = Callable[[str, str, DateWords], Iterator[DateValue]]
DASH_PATTERN = re.compile(rf"{BLANK_PATTERN}?[-–—~～〜至到]{BLANK_PATTERN}?")


def find_dates(text: str, language: str = "en") -> list[DateValue]:
    """Return the dates of a text in order, none overlapping; `language` is a BCP 47 tag."""
    return list(_find_all(text[:MAX_TEXT_CHARS], language))


@lru_cache(maxsize=4_096)
def _find_all(text: str, language: str) -> tuple[DateValue, ...]:
    words, normalized = load_date_words(language), normalize_chars(text)
    low = lower_text(normalized)
    covered: set[int] = set()
    chosen: list[DateValue] = []
    for value in (value for finder in DATE_FINDERS for value in finder(normalized, low, words)):
        places = range(value.start, value.end)
        if covered.isdisjoint(places):
            covered.update(places)
            chosen.append(value)
    joined: list[DateValue] = []
    for one in sorted(chosen, key=lambda value: value.start):
        merged = _join_dates(low, joined[-1], one, words) if joined else None
        joined[-1:] = [merged] if merged else [*joined[-1:], one]
    return tuple(
        replace(one, text=text[one.start : one.end], bound=_read_bound(low, one, words))
        for one in joined
    )


def find_weekdays(text: str, language: str = "en") -> list[DateValue]:
    """Return every weekday named in the text, in any case, without the dates beside them."""
    normalized = normalize_chars(text[:MAX_TEXT_CHARS])
    weekdays = _find_all_weekdays(normalized, lower_text(normalized), load_date_words(language))
    return [replace(one, text=text[one.start : one.end]) for one in weekdays]


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(2024, month)[1]


def _find_numeric(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield dates in digits: 2019-03-12, 12.03.2019, 12/03/2019, 03/2019."""
    for match in PATTERNS.year_first.finditer(low):
        year, month, day = (int(match[name]) for name in ("year", "month", "day"))
        if _is_day(month, day):
            yield DateValue(*match.span(), year=year, month=month, day=day)
    for match in PATTERNS.year_last.finditer(low):
        one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
        is_dotted = match["sep"].startswith(".")
        if year < 100:
            if match["sep"] == "-" or (is_dotted and not words.is_day_first):
                continue
            year += 2000 if year <= PIVOT_YEAR else 1900
        day, month = (one, other) if is_dotted or words.is_day_first else (other, one)
        ambiguous = not is_dotted and one != other and _is_day(one, other) and _is_day(other, one)
        if not _is_day(month, day) and not is_dotted:
            day, month = month, day
        if _is_day(month, day):
            place = match.span()
            yield DateValue(*place, year=year, month=month, day=day, ambiguous=ambiguous)
    for match in PATTERNS.month_year.finditer(low):
        year, month = int(match["year"]), int(match["month"])
        yield DateValue(*match.span(), year=year, month=month, kind="month")


def _find_named(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield dates with a month's name: 12 March 2019, le 3 mai, 3. Mai 1999, in March."""
    last = 0
    for token in WORD_PATTERN.finditer(low) if (words.stems or words.months.values) else ():
        start, word = token.start(), token.group()
        stems = (m for s, m in words.stems if word.startswith(s) and len(word) - len(s) <= 6)
        declined = next(stems, None)
        month_phrase = (token.end(), (declined, True)) if declined else words.months.at(low, start)
        if start >= last and month_phrase:
            value = _read_month_date(text, low, words, start, month_phrase[0], *month_phrase[1])
            if value:
                yield value
                last = value.end


def _read_month_date(
    text: str, low: str, words: DateWords, start: int, end: int, month: int, is_full: bool
) -> DateValue | None:
    """Return the date around a month's name; None if the word is no month: a march, it may."""
    language = words.language
    is_basque = language == "eu"
    is_english = language == "en" or (language in OTHER_SCRIPTS and low[start].isascii())
    after = None if is_basque else PATTERNS.year_after.match(low, end)
    year, stop = (int(after["year"]), after.end()) if after else (None, end)
    before = _day_before(low, start, words)
    if is_english and not text[start].isupper() and not (before and after):
        return None
    if before and _is_day(month, before[2]):
        return _make_day((before[0], stop), year, month, before[1] or before[2], before[2])
    year_first = PATTERNS.year_before.search(low, max(0, start - 10), start) if is_basque else None
    date_start, led_year = (
        (year_first.start(), int(year_first["year"])) if year_first else (start, None)
    )
    day_after = PATTERNS.day_after.match(low, end) if is_english or is_basque else None
    if day_after and _is_day(month, int(day_after["day"])):
        day, last = int(day_after["day"]), int(day_after["last"] or day_after["day"])
        stated = int(day_after["year"]) if day_after["year"] else led_year
        return _make_day((date_start, day_after.end()), stated, month, day, last)
    if after and (is_full or after.group()[0] == "." or language in CAPITAL_MONTHS):
        return DateValue(start, stop, year=year, month=month, kind="month")
    if year_first or (is_full and _stands_alone(text, low, (start, end), words)):
        return DateValue(date_start, end, year=led_year, month=month, kind="month")
    return None


def _make_day(place: TextPlace, year: int | None, month: int, day: int, last: int) -> DateValue:
    value = DateValue(*place, year=year, month=month, day=day)
    if day >= last or not _is_day(month, last):
        return value
    return replace(value, end_year=year, end_month=month, end_day=last, kind="range")


def _day_before(low: str, start: int, words: DateWords) -> tuple[int, int | None, int] | None:
    """Return start of the day before the month, first day of a range or None, and the day."""
    if match := PATTERNS.day_before.search(low, max(0, start - 24), start):
        first, day = int(match["first"] or 0), int(match["day"])
        is_alone = first >= day > 0
        return match.start("day") if is_alone else match.start(), first or None, day
    spoken = PATTERNS.word_day_before.search(low, max(0, start - 30), start)
    day = words.ordinals.get(tuple(spoken["words"].split("-")), 0) if spoken else 0
    return (spoken.start(), None, day) if spoken and day else None


def _stands_alone(text: str, low: str, place: TextPlace, words: DateWords) -> bool:
    """Return True if a month's full name alone is a month here, not another word."""
    (start, end), lists, language = place, words.values.own, words.language
    if lists.get("months_alone"):
        return True
    opens = text[:start].rstrip(" \"'“«(")[-1:] in ("", *".!?:;•*—")
    if language in CAPITAL_MONTHS and (
        not text[start].isupper() or low[end : end + 1] in tuple("'-_")
    ):
        return False
    if language in SMALL_MONTHS and text[start].isupper() and not opens:
        return False
    if low[start:end] not in lists.get("shy_months", ()) and language not in SMALL_MONTHS:
        return True
    lead = make_phrase_set(lists.get("month_leads", ())).before(low, skip_blank_back(low, start))
    return bool(lead) and not (opens and low[skip_blank(low, end) :][:1].isalpha())


def _find_periods(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    for match in words.centuries.finditer(low):
        yield from _read_century(
            *match.span(), _parse_ordinal(match[match.lastindex or 0]), low, words
        )
    for match in PATTERNS.word_century.finditer(low) if words.language == "en" else ():
        number = words.ordinals.get(tuple(match[1].split("-")), 0)
        yield from _read_century(*match.span(), number, low, words)
    for match in words.decades.finditer(low):
        yield from _read_decade(match, low, words)
    for match in PATTERNS.quarter.finditer(low):
        ordinals = "first second third fourth".split()
        number, year = int(match["q"] or ordinals.index(match["word"]) + 1), int(match["year"])
        quarter = DateValue(*match.span(), year=year, month=3 * number - 2, kind="quarter")
        yield replace(quarter, end_year=year, end_month=3 * number)


def _read_decade(match: re.Match[str], low: str, words: DateWords) -> Iterator[DateValue]:
    written = match[match.lastindex or 0]
    year = int(written)
    if len(written) < 3:
        lead = re.search(r"(?:the|early|mid|late)[ -]'?$", low[: match.start()])
        if words.language == "en" and not lead and not match.group().startswith("'"):
            return  # an age, a temperature
        year += 1900 if year >= 20 else 2000
    is_century = year % 100 == 0 and words.language in ("en", "sv", "fi", "da", "tr", "ru")
    last, kind = (year + 99, "century") if is_century else (year + 9, "decade")
    if FIRST_YEAR <= year <= LAST_YEAR:
        yield DateValue(*match.span(), year=year, end_year=last, kind=kind)  # type: ignore[arg-type]


def _read_century(
    start: int, end: int, number: int, low: str, words: DateWords
) -> Iterator[DateValue]:
    """Yield the n-th century, years 100n - 99 to 100n; BC the years run down."""
    if not 1 <= number <= 21:
        return
    years, is_led = (100 * number - 99, 100 * number), words.values.own.get("bce_first")
    bce = words.bce.search(low[:start]) if is_led else words.bce.match(low, end)
    if bce is None:
        yield DateValue(start, end, year=years[0], end_year=years[1], kind="century")
    else:
        place = (bce.start(), end) if is_led else (start, bce.end())
        yield DateValue(*place, year=years[1], end_year=years[0], era="bce", kind="century")


def _parse_ordinal(written: str) -> int:
    roman = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    if written[0] not in roman:
        return int(parse_numeral(written))
    values = [roman[char] for char in written]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def _find_era_years(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    for match in words.eras.finditer(low):
        name = next(n for n, value in match.groupdict().items() if value and not n.endswith("_to"))
        era: Era = "bce" if name.startswith("bce") else "ce"
        year, last = (int(re.sub(r"\D", "", match[n] or "0")) for n in (name, f"{name}_to"))
        if last and (year < last) == (era == "ce"):
            yield DateValue(*match.span(), year=year, end_year=last, era=era, kind="range")
        elif year and not last:
            yield DateValue(*match.span(), year=year, era=era, kind="year")


def _find_written_weekdays(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield full names of weekdays, in the case that their language uses."""
    for weekday in _find_all_weekdays(text, low, words):
        if text[weekday.start].isupper() or words.language not in CAPITAL_MONTHS:
            yield weekday


def _find_all_weekdays(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    for pattern, order in HAN_WEEKDAYS:
        for match in pattern.finditer(text):
            weekday = order.index(match["day"].replace("天", "日"))
            yield DateValue(*match.span(), weekday=weekday, kind="weekday")
    for token in WORD_PATTERN.finditer(low):
        if phrase := words.weekdays.at(low, token.start()):
            yield DateValue(token.start(), phrase[0], weekday=phrase[1], kind="weekday")


def _find_other_calendars(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield solar Hijri dates in Persian, Hijri dates in Arabic, Buddhist years in Thai."""
    lists = words.values.own
    for key, name in (("solar_months", "persian"), ("hijri_months", "islamic")):
        months = [normalize_chars(month) for month in lists.get(key, ())]
        day_month = rf"(?<!\d)(?P<day>\d{{1,2}}) (?P<m>{'|'.join(months)})"
        pattern = rf"{day_month}[ ،]{{1,2}}(?P<y>1[2-4]\d\d)(?!\w)(?: هـ?)?"
        for match in re.finditer(pattern, low) if months else ():
            days = int(match["y"]), months.index(match["m"]) + 1, int(match["day"])
            yield DateValue(*match.span(), "", *_convert_date(name, *days))
    for match in PATTERNS.buddhist.finditer(low) if words.language == "th" else ():
        yield DateValue(*match.span(), year=int(match["y"]) - 543, kind="year")
    years = re.compile(r"(?<!\w)سال (?P<y>1[2-4]\d\d)(?!\d| (?:میلادی|قمری))")
    for match in years.finditer(low) if "solar_months" in lists else ():
        year = int(match["y"]) + 621
        yield DateValue(*match.span("y"), year=year, end_year=year + 1, kind="range")


@lru_cache(maxsize=4_096)
def _convert_date(name: str, year: int, month: int, day: int) -> tuple[int, int, int]:
    from convertdate import islamic, persian

    convert = persian.to_gregorian if name == "persian" else islamic.to_gregorian
    converted = convert(year, month, min(day, 29 if month > 11 else 30))
    return int(converted[0]), int(converted[1]), int(converted[2])


def _find_bare_years(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield four digits that read as a year: in 2019, (1998), 1914-1918, the 2016 elections."""
    accepted = 0
    for match in PATTERNS.four.finditer(low):
        start, year = match.start(), int(match["year"])
        last = _read_range_end(low, match.end(), year, words) if start >= accepted else None
        stop = last[0] if last else match.end()
        if start >= accepted and _is_year(text, low, (start, stop), year, bool(last), words):
            accepted = stop
            kind: DateKind = "range" if last else "year"
            yield DateValue(start, stop, year=year, end_year=last and last[1], kind=kind)


def _read_range_end(low: str, end: int, year: int, words: DateWords) -> tuple[int, int] | None:
    """Return end and last year of a range of years, if the text continues one."""
    match = _compile_range(words.to).match(low, end)
    if match is None:
        return None
    last, is_short = int(match["last"]), len(match["last"]) == 2
    last += year - year % 100 if is_short else 0
    is_tight = match["dash"] and " " not in match["dash"]
    leads = match_any(words.values.own.get("between", ("between",)))
    if match["and"] and not re.search(rf"(?:{leads}) (?:the years? |los años )?$", low[: end - 4]):
        return None
    return (match.end(), last) if year < last <= LAST_YEAR and (is_tight or not is_short) else None


@lru_cache(maxsize=64)
def _compile_range(to: str) -> re.Pattern[str]:
    to = rf" (?:{to}) (?:the year |l'an |jahr |año |anno )?|" if to else ""
    return re.compile(
        rf"(?:(?P<dash>{BLANK_PATTERN}?[-–—~～/至到]{BLANK_PATTERN}?)|{to}"
        r"(?P<and> (?:and|und|et|y|e|en|och|i|и|a|ja|و|e il|y el) ))"
        r"(?P<last>1\d{3}|20\d\d|2100|\d\d)(?![\d:]|[.,]\d|[ \u00a0]?%)"
    )


def _is_year(
    text: str, low: str, place: TextPlace, year: int, is_range: bool, words: DateWords
) -> bool:
    """Return True if the digits are a year, judging by the words before and after."""
    (start, end), language = place, words.language
    if words.years_after.at(low, skip_blank(low, end)):
        return True
    if low[end : end + 1].isalpha() or low[end : end + 1] in ("'", "_"):
        rest = next((low[end + len(s) :] for s in words.suffixes if low.startswith(s, end)), "x")
        is_possessive = language == "en" and re.match(r"'s?(?![^\W\d_])", low[end:])
        return not rest[:1].isalpha() or bool(is_possessive)
    if _is_measured(text, low, place, words) or PATTERNS.no_year.search(low[:start]):
        return False
    before, is_count = skip_blank_back(low, start), _is_count(text, low, end, words)
    is_modern = year in MODERN_YEARS and year % 100 > 0
    if words.years.before(low, before):
        return not is_count or is_range or (is_modern and low[before - 3 : before] != " of")
    is_opened = text[:start].rstrip()[-1:] in ("", *OPENING_MARKS)
    is_closed = low[end : end + 1] in ("", *CLOSING_MARKS) or low[end : end + 5] in (
        " and ",
        " or ",
    )
    is_led = language == "en" and is_modern and PATTERNS.determined.search(low[:start])
    is_known = is_closed or language in PLURAL_ENDINGS or language == "de"
    is_likely = is_known and year >= 1500 and (year % 100 > 0 or is_closed)
    return bool((is_opened and is_closed) or is_led or (not is_count and (is_range or is_likely)))


def _is_count(text: str, low: str, end: int, words: DateWords) -> bool:
    """Return True if a counted noun follows: a plural, in German a capitalized word."""
    plural = PLURAL_ENDINGS.get(words.language, NEVER_PATTERN.pattern)
    for match in re.finditer(rf"{BLANK_PATTERN}([^\W\d_]+)", low[end : end + 40]):
        word, is_capital = match[1], text[end + match.start(1)].isupper()
        if words.language == "de":
            return match.start() == 0 and is_capital
        if word in FUNCTION_WORDS or is_capital or (match.start() and words.language != "en"):
            return False
        if word in PLURAL_NOUNS or (len(word) > 3 and re.search(plural, word)):
            return not word.endswith("ss")
    return False


def _is_measured(text: str, low: str, place: TextPlace, words: DateWords) -> bool:
    values, before, gap = words.values, skip_blank_back(low, place[0]), skip_blank(low, place[1])
    bound = values.bounds_before.before(low, before)
    dated = (f"date_{b}" for b in ("about", "before", "after", "since", "until"))
    if bound and bound[1] != "about" and low[bound[0] : before] not in values.listed(*dated):
        return True
    money = load_currency_words(words.language)
    return bool(
        values.scales.at(low, gap)
        or values.percent.at(low, gap)
        or find_unit(text, low, place[1], words.language)
        or money[1].at(low, gap)
        or (money[0].before(low, before) and not text[before - 1].islower())
    )


def _find_asian(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield dates with East Asian signs: 2019年3月12日, 令和元年, 5월 3일, 20世纪80年代."""
    if text.isascii():
        return
    for match in PATTERNS.han_decade.finditer(text):
        year = int(parse_numeral(match["decade"]))
        if match["century"]:
            year += 100 * (int(parse_numeral(match["century"])) - 1)
        if year <= 99:
            year += 1900 if year > 10 else 2000
        yield DateValue(*match.span(), year=year, end_year=year + 9, kind="decade")
    for match in PATTERNS.han_range.finditer(text):
        year, last, era = int(match["year"]), int(match["last"]), _parse_era(match["led"])
        if (year < last) == (era == "ce"):
            yield DateValue(*match.span(), year=year, end_year=last, kind="range", era=era)
    whole = (_read_asian_date(match, text) for match in PATTERNS.han_whole.finditer(text))
    yield from filter(None, whole)
    for match in PATTERNS.han_month.finditer(text):
        month, day = int(parse_numeral(match["month"])), int(parse_numeral(match["day"] or ""))
        if _is_day(month, day or 1):
            kind: DateKind = "day" if day else "month"
            yield DateValue(*match.span(), month=month, day=day or None, kind=kind)


def _parse_era(era_name: str | None) -> Era:
    return "bce" if era_name in BCE_WORDS else "ce"


def _read_asian_date(match: re.Match[str], text: str) -> DateValue | None:
    """Return a year with its month and day, unless it is a number of years."""
    era, written = match["led"], match["year"]
    year = 1 if written == "元" else int(parse_numeral(written))
    month, day = (int(parse_numeral(match[name] or "")) or None for name in ("month", "day"))
    if month is not None and not _is_day(month, day or 1):
        return None
    is_plain = len(written) == 4 and FIRST_YEAR <= year <= LAST_YEAR
    is_led = re.search(r"(?:^|[于於在自从從至到，。、（(；：「《 约約])$", text[: match.start()])
    is_short = (month is not None and 1 < len(written) < 4) or (len(written) == 3 and is_led)
    if era in JAPANESE_ERAS:
        year += JAPANESE_ERAS[era]
    elif written == "元" or not (era or is_plain or is_short):
        return None
    if not era and len(written) <= 2:
        year += 1900 if year > PIVOT_YEAR else 2000
    kind: DateKind = "day" if day else "month" if month else "year"
    return DateValue(*match.span(), year=year, month=month, day=day, era=_parse_era(era), kind=kind)


# The more reliable finders first: of overlapping dates the earlier finder's is kept.
DATE_FINDERS: tuple[DateFinder, ...] = (
    _find_asian, _find_numeric, _find_named, _find_other_calendars,
    _find_periods, _find_era_years, _find_bare_years, _find_written_weekdays,
)  # fmt: skip


def _join_dates(low: str, one: DateValue, other: DateValue, words: DateWords) -> DateValue | None:
    """Join a weekday to its date, and January-March 2019 to a range."""
    gap = low[one.end : other.start]
    if PATTERNS.weekday_gap.fullmatch(gap):
        if one.kind == "weekday" and other.day is not None:
            return replace(other, start=one.start, weekday=one.weekday)
        if other.kind == "weekday" and one.day is not None and one.weekday is None:
            return replace(one, end=other.end, weekday=other.weekday)
    is_to = DASH_PATTERN.fullmatch(gap) or re.fullmatch(
        words.to or NEVER_PATTERN.pattern, gap.strip()
    )
    kinds: set[DateKind] = {one.kind, other.kind}
    if not is_to or not kinds <= {"day", "month"} or one.year is not None:
        return None
    if (one.month or 99, one.day or 0) >= (other.month or 0, other.day or 32):
        return None
    return replace(
        other,
        start=one.start,
        month=one.month,
        day=one.day,
        end_year=other.year,
        end_month=other.month,
        end_day=other.day,
        kind="range",
    )


def _read_bound(low: str, value: DateValue, words: DateWords) -> DateBound:
    """Return the bound that the words beside the date set.

    A range itself says where it starts and ends: "from 1990 to 1995" is exact.
    """
    article = PATTERNS.article.search(low, max(0, value.start - 12), value.start)
    bound: DateBound | None = None
    for place in (value.start, article.start()) if article else (value.start,):
        lead = words.before.before(low, len(low[:place].rstrip(" \u00a0")))
        if bound is None and lead and not _is_of_event(low, lead[0], value):
            bound = lead[1]
    if bound is None:
        after = words.after.at(low, value.end) or words.after.at(low, skip_blank(low, value.end))
        bound = after[1] if after else None
    if bound:
        return "exact" if value.kind == "range" and bound in ("since", "until") else bound
    dash = DASH_PATTERN.match(low, value.end)
    return "since" if dash and value.is_point and words.open_end.at(low, dash.end()) else "exact"


def _is_of_event(low: str, start: int, value: DateValue) -> bool:
    """Return True if the words bound an event instead: "after the 1979 revolution"."""
    lead = low[start : value.start].split()
    if value.kind in ("decade", "century"):
        return lead[:1] == ["about"]
    return lead[-1:] == ["the"] and value.kind == "year"
