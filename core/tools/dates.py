"""Dates in a text, a finder for each kind of them.

Month and weekday names are CLDR's (Babel), words for eras and decades those of our lists. Persian
and Hijri dates become days of our calendar (convertdate).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from core.documents.segmentation import FUNCTION_WORDS
from core.tools.date_values import DateKind, DateValue, Era
from core.tools.numbers import value_of
from core.tools.quantities import PLURALS
from core.tools.vocabulary import (
    BLANK,
    NEVER,
    OTHER_SCRIPTS,
    WORD,
    DateBound,
    DateWords,
    PatternTable,
    currency_words,
    date_words,
    either,
    flags,
    lower,
    plain,
    skip_blank,
    skip_blank_back,
    unit_at,
)

WRITTEN = PatternTable("dates")
Place = tuple[int, int]
LONGEST_TEXT = 20_000
FIRST, LAST = 1000, 2100
PIVOT = 40  # two-digit years up to 40 are of this century
CAPITAL, SMALL = frozenset(["en", "de"]), frozenset(["fr", "es", "it", "pt", "ca"])


def find_dates(text: str, language: str = "en") -> list[DateValue]:
    """The dates of a text in order, none overlapping; `language` is a BCP 47 tag."""
    return list(_found_in(text[:LONGEST_TEXT], language))


@lru_cache(maxsize=4_096)
def _found_in(text: str, language: str) -> tuple[DateValue, ...]:
    words, even = date_words(language), plain(text)
    low = lower(even)
    taken: set[int] = set()
    chosen: list[DateValue] = []
    for found in (found for finder in FINDERS for found in finder(even, low, words)):
        if taken.isdisjoint(places := range(found.start, found.end)):
            taken.update(places)
            chosen.append(found)
    joined: list[DateValue] = []
    for one in sorted(chosen, key=lambda found: found.start):
        merged = _joined(low, joined[-1], one, words) if joined else None
        joined[-1:] = [merged] if merged else [*joined[-1:], one]
    return tuple(
        replace(one, text=text[one.start : one.end], bound=_bound(low, one, words))
        for one in joined
    )  # fmt: skip


def find_weekdays(text: str, language: str = "en") -> list[DateValue]:
    """Every weekday that is named, however it is written, without the dates beside them."""
    even = plain(text[:LONGEST_TEXT])
    found = _all_weekdays(even, lower(even), date_words(language))
    return [replace(one, text=text[one.start : one.end]) for one in found]


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(2024, month)[1]


def _numeric(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Yield dates in digits: 2019-03-12, 12.03.2019, 12/03/2019, 03/2019."""
    for match in WRITTEN.year_first.finditer(low):
        year, month, day = (int(match[name]) for name in ("year", "month", "day"))
        if _is_day(month, day):
            yield DateValue(*match.span(), year=year, month=month, day=day)
    for match in WRITTEN.year_last.finditer(low):
        one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
        is_dotted = match["sep"].startswith(".")
        if year < 100:
            if match["sep"] == "-" or (is_dotted and not words.is_day_first):
                continue
            year += 2000 if year <= PIVOT else 1900
        day, month = (one, other) if is_dotted or words.is_day_first else (other, one)
        ambiguous = not is_dotted and one != other and _is_day(one, other) and _is_day(other, one)
        if not _is_day(month, day) and not is_dotted:
            day, month = month, day
        if _is_day(month, day):
            place = match.span()
            yield DateValue(*place, year=year, month=month, day=day, ambiguous=ambiguous)
    for match in WRITTEN.month_year.finditer(low):
        year, month = int(match["year"]), int(match["month"])
        yield DateValue(*match.span(), year=year, month=month, kind="month")


def _named(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Dates with a month's name: 12 March 2019, March 12, le 3 mai, 3. Mai 1999, in March."""
    last = 0
    for token in WORD.finditer(low) if (words.stems or words.months.values) else ():
        start, word = token.start(), token.group()
        stems = (m for s, m in words.stems if word.startswith(s) and len(word) - len(s) <= 6)
        declined = next(stems, None)
        named = (token.end(), (declined, True)) if declined else words.months.at(low, start)
        if start >= last and named:
            found = _month_date(text, low, words, start, named[0], *named[1])
            if found:
                yield found
                last = found.end


def _month_date(
    text: str, low: str, words: DateWords, start: int, end: int, month: int, is_full: bool
) -> DateValue | None:
    """The date around a month's name; None where the word is no month: a march, it may."""
    language = words.language
    is_basque = language == "eu"
    is_english = language == "en" or (language in OTHER_SCRIPTS and low[start].isascii())
    after = None if is_basque else WRITTEN.year_after.match(low, end)
    year, stop = (int(after["year"]), after.end()) if after else (None, end)
    before = _day_before(low, start, words)
    if is_english and not text[start].isupper() and not (before and after):
        return None
    if before and _is_day(month, before[2]):
        return _days((before[0], stop), year, month, before[1] or before[2], before[2])
    led = WRITTEN.year_before.search(low, max(0, start - 10), start) if is_basque else None
    opened, led_year = (led.start(), int(led["year"])) if led else (start, None)
    behind = WRITTEN.day_after.match(low, end) if is_english or is_basque else None
    if behind and _is_day(month, int(behind["day"])):
        day, last = int(behind["day"]), int(behind["last"] or behind["day"])
        stated = int(behind["year"]) if behind["year"] else led_year
        return _days((opened, behind.end()), stated, month, day, last)
    if after and (is_full or after.group()[0] == "." or language in CAPITAL):
        return DateValue(start, stop, year=year, month=month, kind="month")
    if led or (is_full and _stands_alone(text, low, (start, end), words)):
        return DateValue(opened, end, year=led_year, month=month, kind="month")
    return None


def _days(place: Place, year: int | None, month: int, day: int, last: int) -> DateValue:
    found = DateValue(*place, year=year, month=month, day=day)
    if day >= last or not _is_day(month, last):
        return found
    return replace(found, end_year=year, end_month=month, end_day=last, kind="range")


def _day_before(low: str, start: int, words: DateWords) -> tuple[int, int | None, int] | None:
    """Where a day before the month begins, the first day of a range or None, and the day."""
    if match := WRITTEN.day_before.search(low, max(0, start - 24), start):
        first, day = int(match["first"] or 0), int(match["day"])
        is_alone = first >= day > 0
        return match.start("day") if is_alone else match.start(), first or None, day
    spoken = WRITTEN.word_day_before.search(low, max(0, start - 30), start)
    day = words.ordinals.get(tuple(spoken["words"].split("-")), 0) if spoken else 0
    return (spoken.start(), None, day) if spoken and day else None


def _stands_alone(text: str, low: str, place: Place, words: DateWords) -> bool:
    """Return True where a month's full name alone is the month, and no other word."""
    (start, end), own, language = place, words.values.own, words.language
    if own.get("months_alone"):
        return True
    opens = text[:start].rstrip(" \"'“«(")[-1:] in ("", *".!?:;•*—")
    if language in CAPITAL and (not text[start].isupper() or low[end : end + 1] in tuple("'-_")):
        return False
    if language in SMALL and text[start].isupper() and not opens:
        return False
    if low[start:end] not in own.get("shy_months", ()) and language not in SMALL:
        return True
    led = flags(own.get("month_leads", ())).before(low, skip_blank_back(low, start))
    return bool(led) and not (opens and low[skip_blank(low, end) :][:1].isalpha())


def _stretches(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    for match in words.centuries.finditer(low):
        yield from _century(*match.span(), _ordinal(match[match.lastindex or 0]), low, words)
    for match in WRITTEN.word_century.finditer(low) if words.language == "en" else ():
        number = words.ordinals.get(tuple(match[1].split("-")), 0)
        yield from _century(*match.span(), number, low, words)
    for match in words.decades.finditer(low):
        yield from _decade(match, low, words)
    for match in WRITTEN.quarter.finditer(low):
        named = "first second third fourth".split()
        number, year = int(match["q"] or named.index(match["word"]) + 1), int(match["year"])
        whole = DateValue(*match.span(), year=year, month=3 * number - 2, kind="quarter")
        yield replace(whole, end_year=year, end_month=3 * number)


def _decade(match: re.Match[str], low: str, words: DateWords) -> Iterator[DateValue]:
    written = match[match.lastindex or 0]
    year = int(written)
    if len(written) < 3:
        led = re.search(r"(?:the|early|mid|late)[ -]'?$", low[: match.start()])
        if words.language == "en" and not led and not match.group().startswith("'"):
            return  # an age, a temperature
        year += 1900 if year >= 20 else 2000
    is_century = year % 100 == 0 and words.language in ("en", "sv", "fi", "da", "tr", "ru")
    last, kind = (year + 99, "century") if is_century else (year + 9, "decade")
    if FIRST <= year <= LAST:
        yield DateValue(*match.span(), year=year, end_year=last, kind=kind)  # type: ignore[arg-type]


def _century(start: int, end: int, number: int, low: str, words: DateWords) -> Iterator[DateValue]:
    """The n-th century, 100n - 99 to 100n; before our era the years run down."""
    if not 1 <= number <= 21:
        return
    years, is_led = (100 * number - 99, 100 * number), words.values.own.get("bce_first")
    bce = words.bce.search(low[:start]) if is_led else words.bce.match(low, end)
    if bce is None:
        yield DateValue(start, end, year=years[0], end_year=years[1], kind="century")
    else:
        place = (bce.start(), end) if is_led else (start, bce.end())
        yield DateValue(*place, year=years[1], end_year=years[0], era="bce", kind="century")


def _ordinal(written: str) -> int:
    roman = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    if written[0] not in roman:
        return int(value_of(written))
    values = [roman[char] for char in written]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def _era_years(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    for match in words.eras.finditer(low):
        name = next(n for n, value in match.groupdict().items() if value and not n.endswith("_to"))
        era: Era = "bce" if name.startswith("bce") else "ce"
        year, last = (int(re.sub(r"\D", "", match[n] or "0")) for n in (name, f"{name}_to"))
        if last and (year < last) == (era == "ce"):
            yield DateValue(*match.span(), year=year, end_year=last, era=era, kind="range")
        elif year and not last:
            yield DateValue(*match.span(), year=year, era=era, kind="year")


def _weekdays(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Full names of weekdays, where written as their language writes them."""
    for found in _all_weekdays(text, low, words):
        if text[found.start].isupper() or words.language not in CAPITAL:
            yield found


def _all_weekdays(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    for pattern, order in HAN_WEEKDAYS:
        for match in pattern.finditer(text):
            weekday = order.index(match["day"].replace("天", "日"))
            yield DateValue(*match.span(), weekday=weekday, kind="weekday")
    for token in WORD.finditer(low):
        if named := words.weekdays.at(low, token.start()):
            yield DateValue(token.start(), named[0], weekday=named[1], kind="weekday")


def _other_calendars(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Solar Hijri dates in Persian, Hijri dates in Arabic, Buddhist years in Thai."""
    own = words.values.own
    for key, name in (("solar_months", "persian"), ("hijri_months", "islamic")):
        months = [plain(month) for month in own.get(key, ())]
        day_month = rf"(?<!\d)(?P<day>\d{{1,2}}) (?P<m>{'|'.join(months)})"
        pattern = rf"{day_month}[ ،]{{1,2}}(?P<y>1[2-4]\d\d)(?!\w)(?: هـ?)?"
        for match in re.finditer(pattern, low) if months else ():
            days = int(match["y"]), months.index(match["m"]) + 1, int(match["day"])
            yield DateValue(*match.span(), "", *_converted(name, *days))
    for match in WRITTEN.buddhist.finditer(low) if words.language == "th" else ():
        yield DateValue(*match.span(), year=int(match["y"]) - 543, kind="year")
    years = re.compile(r"(?<!\w)سال (?P<y>1[2-4]\d\d)(?!\d| (?:میلادی|قمری))")
    for match in years.finditer(low) if "solar_months" in own else ():
        year = int(match["y"]) + 621
        yield DateValue(*match.span("y"), year=year, end_year=year + 1, kind="range")


@lru_cache(maxsize=4_096)
def _converted(name: str, year: int, month: int, day: int) -> tuple[int, int, int]:
    from convertdate import islamic, persian

    convert = persian.to_gregorian if name == "persian" else islamic.to_gregorian
    found = convert(year, month, min(day, 29 if month > 11 else 30))
    return int(found[0]), int(found[1]), int(found[2])


OPENS = "([{“\"'—–-/,;:。，、；：（「《"
CLOSES = ")]},.;:!?”\"'—–-/|،؛।。，、；：）」》"
PLURAL_ENDINGS = {
    "en": r"s$", "fr": r"[sx]$", "es": r"s$", "pt": r"s$", "ca": r"s$", "it": r"[ie]$",
    "nl": r"(?:en|s)$", "sv": r"(?:or|ar|er)$", "da": r"er$",
}  # fmt: skip
MODERN = range(1900, 2036)


def _bare_years(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Four figures that read like a year: in 2019, (1998), 1914-1918, the 2016 elections."""
    accepted = 0
    for match in WRITTEN.four.finditer(low):
        start, year = match.start(), int(match["year"])
        last = _range_end(low, match.end(), year, words) if start >= accepted else None
        stop = last[0] if last else match.end()
        if start >= accepted and _is_year(text, low, (start, stop), year, bool(last), words):
            accepted = stop
            kind: DateKind = "range" if last else "year"
            yield DateValue(start, stop, year=year, end_year=last and last[1], kind=kind)


def _range_end(low: str, end: int, year: int, words: DateWords) -> tuple[int, int] | None:
    """Where a range of years ends and with which year, if the text goes on like one."""
    match = _range_pattern(words.to).match(low, end)
    if match is None:
        return None
    last, is_short = int(match["last"]), len(match["last"]) == 2
    last += year - year % 100 if is_short else 0
    is_tight = match["dash"] and " " not in match["dash"]
    leads = either(words.values.own.get("between", ("between",)))
    if match["and"] and not re.search(rf"(?:{leads}) (?:the years? |los años )?$", low[: end - 4]):
        return None
    return (match.end(), last) if year < last <= LAST and (is_tight or not is_short) else None


@lru_cache(maxsize=64)
def _range_pattern(to: str) -> re.Pattern[str]:
    to = rf" (?:{to}) (?:the year |l'an |jahr |año |anno )?|" if to else ""
    return re.compile(
        rf"(?:(?P<dash>{BLANK}?[-–—~～/至到]{BLANK}?)|{to}"
        r"(?P<and> (?:and|und|et|y|e|en|och|i|и|a|ja|و|e il|y el) ))"
        r"(?P<last>1\d{3}|20\d\d|2100|\d\d)(?![\d:]|[.,]\d|[ \u00a0]?%)"
    )


def _is_year(
    text: str, low: str, place: Place, year: int, is_range: bool, words: DateWords
) -> bool:
    """Return True where figures are a year, by what stands before and after them."""
    (start, end), language = place, words.language
    if words.years_after.at(low, skip_blank(low, end)):
        return True
    if low[end : end + 1].isalpha() or low[end : end + 1] in ("'", "_"):
        rest = next((low[end + len(s) :] for s in words.suffixes if low.startswith(s, end)), "x")
        is_possessive = language == "en" and re.match(r"'s?(?![^\W\d_])", low[end:])
        return not rest[:1].isalpha() or bool(is_possessive)
    if _is_measured(text, low, place, words) or WRITTEN.no_year.search(low[:start]):
        return False
    before, counts = skip_blank_back(low, start), _counts(text, low, end, words)
    is_modern = year in MODERN and year % 100 > 0
    if words.years.before(low, before):
        return not counts or is_range or (is_modern and low[before - 3 : before] != " of")
    opened = text[:start].rstrip()[-1:] in ("", *OPENS)
    closed = low[end : end + 1] in ("", *CLOSES) or low[end : end + 5] in (" and ", " or ")
    is_led = language == "en" and is_modern and WRITTEN.determined.search(low[:start])
    is_known = closed or language in PLURAL_ENDINGS or language == "de"
    is_likely = is_known and year >= 1500 and (year % 100 > 0 or closed)
    return bool((opened and closed) or is_led or (not counts and (is_range or is_likely)))


def _counts(text: str, low: str, end: int, words: DateWords) -> bool:
    """Return True where a counted noun follows: a plural, in German a capital."""
    plural = PLURAL_ENDINGS.get(words.language, NEVER.pattern)
    for match in re.finditer(rf"{BLANK}([^\W\d_]+)", low[end : end + 40]):
        word, is_capital = match[1], text[end + match.start(1)].isupper()
        if words.language == "de":
            return match.start() == 0 and is_capital
        if word in FUNCTION_WORDS or is_capital or (match.start() and words.language != "en"):
            return False
        if word in PLURALS or (len(word) > 3 and re.search(plural, word)):
            return not word.endswith("ss")
    return False


def _is_measured(text: str, low: str, place: Place, words: DateWords) -> bool:
    values, before, gap = words.values, skip_blank_back(low, place[0]), skip_blank(low, place[1])
    bound = values.bounds_before.before(low, before)
    dated = (f"date_{b}" for b in ("about", "before", "after", "since", "until"))
    if bound and bound[1] != "about" and low[bound[0] : before] not in values.listed(*dated):
        return True
    money = currency_words(words.language)
    return bool(
        values.scales.at(low, gap) or values.percent.at(low, gap)
        or unit_at(text, low, place[1], words.language) or money[1].at(low, gap)
        or (money[0].before(low, before) and not text[before - 1].islower())
    )  # fmt: skip


ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}
BEFORE_OURS = frozenset(["公元前", "西元前", "紀元前", "기원전"])
HAN_SMALL = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
HAN_WEEKDAYS = (
    (re.compile(r"(?:星期|礼拜|禮拜|周|週)(?P<day>[一二三四五六日天])"), "一二三四五六日"),
    (re.compile(r"(?P<day>[月火水木金土日])曜日?"), "月火水木金土日"),
    (re.compile(r"(?P<day>[월화수목금토일])요일"), "월화수목금토일"),
)


def _asian(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Dates with East Asian signs: 2019年3月12日, 令和元年, 5월 3일, 20世纪80年代."""
    if text.isascii():
        return
    for match in WRITTEN.han_decade.finditer(text):
        year = int(value_of(match["decade"]))
        if match["century"]:
            year += 100 * (int(value_of(match["century"])) - 1)
        year += 0 if year > 99 else 1900 if year > 10 else 2000
        yield DateValue(*match.span(), year=year, end_year=year + 9, kind="decade")
    for match in WRITTEN.han_range.finditer(text):
        year, last, era = int(match["year"]), int(match["last"]), _era(match["led"])
        if (year < last) == (era == "ce"):
            yield DateValue(*match.span(), year=year, end_year=last, kind="range", era=era)
    yield from filter(
        None, (_asian_whole(match, text) for match in WRITTEN.han_whole.finditer(text))
    )
    for match in WRITTEN.han_month.finditer(text):
        month, day = int(value_of(match["month"])), int(value_of(match["day"] or ""))
        if _is_day(month, day or 1):
            kind: DateKind = "day" if day else "month"
            yield DateValue(*match.span(), month=month, day=day or None, kind=kind)


def _era(led: str | None) -> Era:
    return "bce" if led in BEFORE_OURS else "ce"


def _asian_whole(match: re.Match[str], text: str) -> DateValue | None:
    """A year with its month and day, unless it is a number of years."""
    led, written = match["led"], match["year"]
    year = 1 if written == "元" else int(value_of(written))
    month, day = (int(value_of(match[name] or "")) or None for name in ("month", "day"))
    if month is not None and not _is_day(month, day or 1):
        return None
    is_plain = len(written) == 4 and FIRST <= year <= LAST
    is_led = re.search(r"(?:^|[于於在自从從至到，。、（(；：「《 约約])$", text[: match.start()])
    is_short = (month is not None and 1 < len(written) < 4) or (len(written) == 3 and is_led)
    if led in ERAS:
        year += ERAS[led]
    elif written == "元" or not (led or is_plain or is_short):
        return None
    if not led and len(written) <= 2:
        year += 1900 if year > PIVOT else 2000
    kind: DateKind = "day" if day else "month" if month else "year"
    return DateValue(
        *match.span(), year=year, month=month, day=day, era=_era(led), kind=kind
    )  # fmt: skip


Finder = Callable[[str, str, DateWords], Iterator[DateValue]]
# The surer finders first: where two overlap the earlier one's find stands.
FINDERS: tuple[Finder, ...] = (
    _asian, _numeric, _named, _other_calendars, _stretches, _era_years, _bare_years, _weekdays
)  # fmt: skip


DASH = re.compile(rf"{BLANK}?[-–—~～〜至到]{BLANK}?")


def _joined(low: str, one: DateValue, other: DateValue, words: DateWords) -> DateValue | None:
    """A weekday joined to the date it names, and January-March 2019 as a range."""
    gap = low[one.end : other.start]
    if WRITTEN.weekday_gap.fullmatch(gap):
        if one.kind == "weekday" and other.day is not None:
            return replace(other, start=one.start, weekday=one.weekday)
        if other.kind == "weekday" and one.day is not None and one.weekday is None:
            return replace(one, end=other.end, weekday=other.weekday)
    is_to = DASH.fullmatch(gap) or re.fullmatch(words.to or NEVER.pattern, gap.strip())
    kinds: set[DateKind] = {one.kind, other.kind}
    if not is_to or not kinds <= {"day", "month"} or one.year is not None:
        return None
    if (one.month or 99, one.day or 0) >= (other.month or 0, other.day or 32):
        return None
    return replace(
        other, start=one.start, month=one.month, day=one.day, end_year=other.year,
        end_month=other.month, end_day=other.day, kind="range",
    )  # fmt: skip


def _bound(low: str, found: DateValue, words: DateWords) -> DateBound:
    """The bound that the words beside the date set.

    A range says itself where it starts and ends: "from 1990 to 1995" is exact.
    """
    article = WRITTEN.article.search(low, max(0, found.start - 12), found.start)
    said: DateBound | None = None
    for place in (found.start, article.start()) if article else (found.start,):
        led = words.before.before(low, len(low[:place].rstrip(" \u00a0")))
        if said is None and led and not _is_of_event(low, led[0], found):
            said = led[1]
    if said is None:
        behind = words.after.at(low, found.end) or words.after.at(low, skip_blank(low, found.end))
        said = behind[1] if behind else None
    if said:
        return "exact" if found.kind == "range" and said in ("since", "until") else said
    dash = DASH.match(low, found.end)
    return "since" if dash and found.is_point and words.open_end.at(low, dash.end()) else "exact"


def _is_of_event(low: str, start: int, found: DateValue) -> bool:
    """Return True where the words bound an event: "after the 1979 revolution"."""
    led = low[start : found.start].split()
    if found.kind in ("decade", "century"):
        return led[:1] == ["about"]
    return led[-1:] == ["the"] and found.kind == "year"
