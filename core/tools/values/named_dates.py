"""Dates with a month's name: 12 March 2019, March 12, 2019, le 3 mai, 3. Mai 1999, in March.

A month's name that is also an ordinary word ("may", "march", fr. "mars") needs a day, a year or a
preposition, and the capital or small letter that its language writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.tools.values.date_words import OTHER_SCRIPTS, DateWords, MonthName
from core.tools.values.kinds import DateValue
from core.tools.values.numeric_dates import is_day
from core.tools.values.plain import skip_blank
from core.tools.values.word_tokens import Word

ENDING = r"(?:st|nd|rd|th|er|ère|ste|:e|[ºª°.])?"
JOIN = (
    r"(?:[ \u00a0]?[-–—/][ \u00a0]?|"
    r" (?:to|and|or|bis|und|à|au|et|al?|y|e|i|tot|en|till|och|до|и|по|až|ja) )"
)
DAY_BEFORE = re.compile(
    rf"(?<![\d.,/])(?:(?P<first>\d{{1,2}}){ENDING}{JOIN})?(?P<day>\d{{1,2}}){ENDING}"
    r"(?:(?:[ \u00a0]?(?:of |of the |de |d'|del |di |da |van |каждого )?)|[-.])$"
)
WORD_BEFORE = re.compile(r"(?P<word>[a-z]+(?:-[a-z]+)?)(?: day)? of $")
YEAR_AFTER = re.compile(
    r"\.?(?:,?[ \u00a0]| (?:de|del|of|de l'any|of the year|в|v roce|roku|år|året|г\.|rok) |[-/])"
    r"(?P<year>[12]\d{3})(?![\d]|[.,]\d{3})"
)
DAY_AFTER = re.compile(
    rf"\.?[ \u00a0-](?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th|an|a|ean|\.)?(?!\d|[.,:]\d|%)"
    rf"(?:{JOIN}(?P<last>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|[:%]))?"
    r"(?:(?:,| of|,? in)?[ \u00a0](?P<year>[12]\d{3})(?!\d|[.,]\d{3}))?"
)
EU_DAY_AFTER = re.compile(
    r"[ \u00a0](?P<day>\d{1,2})(?:an|a|ean|eko|ko|ra|tik)?(?!\d|[.,:]\d)(?P<last>)(?P<year>)"
)
WORD_AFTER = re.compile(r" (?:the )?(?P<word>[a-z]+(?:-[a-z]+)?)(?:,? (?P<year>[12]\d{3})(?!\d))?")
YEAR_BEFORE = re.compile(r"(?<!\d)(?P<year>[12]\d{3})(?:ko|eko|\.)?,?[ \u00a0]$")
MONTH_FIRST = frozenset(["en", "eu"])
CAPITAL = frozenset(["en", "de"])
SMALL = frozenset(["fr", "es", "it", "pt", "ca"])


def named_dates(low: str, tokens: Sequence[Word], words: DateWords) -> Iterator[DateValue]:
    """All dates with a month's name in plain lower-case text."""
    end = 0
    for token in tokens:
        if token.start < end or not token.is_word:
            continue
        found = _month_at(low, token, words)
        if found is None:
            continue
        month_end, month = found
        date = _dated(low, token, month_end, month, words)
        if date:
            yield date
            end = date.end


def _month_at(low: str, token: Word, words: DateWords) -> tuple[int, MonthName] | None:
    if words.month_stems:
        for stem, month in words.month_stems:
            if token.low.startswith(stem) and len(token.low) - len(stem) <= 6:
                return token.end, MonthName(month, full=True)
        return None
    return words.months.at(low, token.start) if token.low in words.month_starts else None


def _dated(low: str, token: Word, end: int, month: MonthName, words: DateWords) -> DateValue | None:
    """The date around a month's name at `[token.start, end)`."""
    english = words.language == "en" or (words.language in OTHER_SCRIPTS and token.low.isascii())
    if english and not token.capital and not _is_whole(low, token.start, end):
        return None
    found = (
        _day_before(low, token.start, end, month.month, words)
        or _day_after(low, token.start, end, month.month, words)
        or _month_and_year(low, token.start, end, month, words)
    )
    if found:
        return found
    if month.full and _stands_alone(low, token, words):
        return DateValue(token.start, end, "", month=month.month)
    return None


def _is_whole(low: str, start: int, end: int) -> bool:
    """Day, month and year: enough for a month in small letters."""
    before = DAY_BEFORE.search(low, max(0, start - 20), start)
    return bool(before and YEAR_AFTER.match(low, end))


def _day_before(low: str, start: int, end: int, month: int, words: DateWords) -> DateValue | None:
    match = DAY_BEFORE.search(low, max(0, start - 24), start)
    day = int(match["day"]) if match else None
    first = int(match["first"]) if match and match["first"] else None
    opened = match.start() if match else start
    if match is None and words.day_words:
        match = WORD_BEFORE.search(low, max(0, start - 30), start)
        day = words.day_words.get(match["word"]) if match else None
        opened = match.start() if match else start
    if day is None or not is_day(month, day):
        return None
    year = YEAR_AFTER.match(low, end)
    if year and _is_clock(low, year.end()):
        year = None
    value = int(year["year"]) if year else None
    finish = year.end() if year else end
    if first and first < day:
        return DateValue(
            opened, finish, "", year=value, month=month, day=first, end_year=value,
            end_month=month, end_day=day, kind="range",
        )  # fmt: skip
    if first and match:
        opened = match.start("day")
    return DateValue(opened, finish, "", year=value, month=month, day=day)


def _day_after(low: str, start: int, end: int, month: int, words: DateWords) -> DateValue | None:
    if words.language not in MONTH_FIRST and not low[start:end].isascii():
        return None
    if words.language not in MONTH_FIRST | OTHER_SCRIPTS:
        return None
    led = YEAR_BEFORE.search(low, max(0, start - 10), start) if words.language == "eu" else None
    match = DAY_AFTER.match(low, end)
    if match and words.language == "eu":
        match = EU_DAY_AFTER.match(low, end)
    if match is None:
        match = WORD_AFTER.match(low, end) if words.day_words else None
        day = words.day_words.get(match["word"]) if match else None
        last = None
    else:
        day, last = int(match["day"]), match["last"]
    if match is None or day is None or not is_day(month, day):
        return None
    year = int(match["year"]) if match["year"] else int(led["year"]) if led else None
    opened, finish = led.start() if led else start, match.end()
    if last and int(last) > day and is_day(month, int(last)):
        return DateValue(
            opened, finish, "", year=year, month=month, day=day, end_year=year,
            end_month=month, end_day=int(last), kind="range",
        )  # fmt: skip
    return DateValue(opened, finish, "", year=year, month=month, day=day)


def _is_clock(low: str, position: int) -> bool:
    return low[position : position + 1] == ":"


def _month_and_year(
    low: str, start: int, end: int, name: MonthName, words: DateWords
) -> DateValue | None:
    month, full = name.month, name.full
    after = YEAR_AFTER.match(low, end) if words.language != "eu" else None
    if after and (full or after.group()[0] == "." or words.language in CAPITAL):
        return DateValue(start, after.end(), "", year=int(after["year"]), month=month)
    before = YEAR_BEFORE.search(low, max(0, start - 10), start)
    if before and words.language == "eu":
        return DateValue(before.start(), end, "", year=int(before["year"]), month=month)
    return None


def _stands_alone(low: str, token: Word, words: DateWords) -> bool:
    """Whether a month's full name alone is the month here."""
    if words.month_leads is None:
        return True
    if words.language in CAPITAL and not token.capital:
        return False
    if words.language in SMALL and token.capital and not token.opens:
        return False
    if low[token.end : token.end + 1] in ("'", "-", "_"):
        return False
    position = token.start
    while position and low[position - 1] in " \u00a0":
        position -= 1
    led = words.month_leads.before(low, position) or words.month_leads.before(low, token.start)
    if token.low not in words.shy_months and words.language not in SMALL:
        return True
    following = low[skip_blank(low, token.end) :][:1]
    return bool(led) and not (following.isalpha() and token.low in ("may", "march") and token.opens)
