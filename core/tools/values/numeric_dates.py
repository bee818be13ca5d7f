"""Dates written in figures: 2019-03-12, 12.03.2019, 12/03/2019, 03/2019, 5:30 pm, 17h30.

Where day and month may be the other way round ("03/04/2019") the language's order is taken and the
date marked ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.tools.values.date_words import NEVER, DateWords
from core.tools.values.kinds import DateValue

LONGEST_MONTH = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
YEAR_FIRST = re.compile(
    r"(?<![\d./-])(?P<year>[12]\d{3})(?P<sep>[-/.])(?P<month>\d{1,2})(?P=sep)(?P<day>\d{1,2})"
    r"(?![\d/-])(?:t(?P<hour>\d\d):(?P<minute>\d\d)(?::\d\d(?:\.\d+)?)?z?)?"
)
YEAR_LAST = re.compile(
    r"(?<![\d./-])(?P<one>\d{1,2})(?P<sep>[./-]|\. )(?P<other>\d{1,2})(?P=sep)"
    r"(?P<year>[12]\d{3}|\d\d)(?![\d/-]|[.,]\d)"
)
MONTH_YEAR = re.compile(r"(?<![\d./-])(?P<month>0?[1-9]|1[0-2])/(?P<year>[12]\d{3})(?![\d/-])")
CLOCK = re.compile(
    r"(?<![\d:.,/])(?P<hour>[01]?\d|2[0-4])(?:(?P<sep>[:.])(?P<minute>[0-5]\d)(?::[0-5]\d)?)?"
    r"[ \u00a0]?(?P<half>a\.m\.|p\.m\.|am|pm|a\.m|p\.m|o'clock)?(?![\w:%])(?![.,]\d)"
)
SCRIPTURE = re.compile(
    r"(?:genesis|exodus|leviticus|deuteronomy|psalms?|proverbs|isaiah|jeremiah|ezekiel|daniel|"
    r"matthew|mark|luke|john|acts|romans|corinthians|galatians|ephesians|hebrews|james|peter|"
    r"revelation|quran|surah|ratio|odds|score|aspect)(?: of)?[ \u00a0]$"
)
LOOK_BACK = 40
CENTURY_PIVOT = 40  # two-digit years up to 40 are of this century


def numeric_dates(low: str, words: DateWords) -> Iterator[DateValue]:
    """Whole dates and months in figures, in plain lower-case text."""
    for match in YEAR_FIRST.finditer(low):
        year, month, day = (int(match[name]) for name in ("year", "month", "day"))
        if is_day(month, day):
            hour = int(match["hour"]) if match["hour"] else None
            minute = int(match["minute"]) if match["minute"] else None
            yield DateValue(
                *match.span(), "", year=year, month=month, day=day, hour=hour, minute=minute
            )
    for match in YEAR_LAST.finditer(low):
        found = _year_last(match, words)
        if found:
            yield found
    for match in MONTH_YEAR.finditer(low):
        yield DateValue(*match.span(), "", year=int(match["year"]), month=int(match["month"]))


def _year_last(match: re.Match[str], words: DateWords) -> DateValue | None:
    one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
    if len(match["year"]) == 2:
        if match["sep"] == "-" or (match["sep"] == "." and not words.day_first):
            return None
        year += 2000 if year <= CENTURY_PIVOT else 1900
    dotted = match["sep"].startswith(".")
    day, month = (one, other) if dotted or words.day_first else (other, one)
    ambiguous = not dotted and one != other and is_day(one, other) and is_day(other, one)
    if not is_day(month, day):
        day, month = month, day
    if dotted and (one, other) != (day, month):
        return None
    if not is_day(month, day):
        return None
    return DateValue(*match.span(), "", year=year, month=month, day=day, ambiguous=ambiguous)


def is_day(month: int, day: int) -> bool:
    """Whether a month has such a day."""
    return 1 <= month <= 12 and 1 <= day <= LONGEST_MONTH.get(month, 31)


def clock_times(low: str, words: DateWords) -> Iterator[DateValue]:
    """Times of day; without am or pm, an hour up to twelve may be either."""
    if words.clocks is not NEVER:
        yield from _template_times(low, words)
    if ":" not in low and "m" not in low and "'clock" not in low:
        return
    for match in CLOCK.finditer(low):
        half, minute = match["half"], match["minute"]
        if half is None and (match["sep"] != ":" or _is_verse(low, match.start())):
            continue
        if (half == "o'clock" and minute) or (half is None and minute is None):
            continue
        hour = int(match["hour"])
        start, end = match.span()
        end -= len(low[start:end]) - len(low[start:end].rstrip())
        either = half in (None, "o'clock") and 1 <= hour <= 12
        if half and half[0] in "ap":
            if hour > 12:
                continue
            hour = hour % 12 + (12 if half[0] == "p" else 0)
        yield DateValue(
            start, end, "", hour=hour % 24, minute=int(minute) if minute else None, ambiguous=either
        )


def _is_verse(low: str, start: int) -> bool:
    """True after a book of scripture, or a word for ratios."""
    return SCRIPTURE.search(low, max(0, start - LOOK_BACK), start) is not None


def _template_times(low: str, words: DateWords) -> Iterator[DateValue]:
    for match in words.clocks.finditer(low):
        given = [int(group) for group in match.groups() if group is not None]
        if not given or given[0] > 24 or (len(given) > 1 and given[1] > 59):
            continue
        minute = given[1] if len(given) > 1 else None
        either = 1 <= given[0] <= 12
        yield DateValue(*match.span(), "", hour=given[0] % 24, minute=minute, ambiguous=either)


def noon_times(low: str, words: DateWords) -> Iterator[DateValue]:
    """Noon and midnight, by their words."""
    for match in words.noon_names.finditer(low):
        yield DateValue(*match.span(), "", hour=words.noon[match.group()], minute=0)
