"""Dates and times of day in a text, with their bounds; whether two agree is `compare_dates`.

Finders for figures, names, years and East Asian dates each yield what they know; of overlapping
finds the earlier finder's stands. Then weekdays and ranges are joined and bounds are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from core.tools.values.asian_dates import asian_dates
from core.tools.values.bare_years import bare_years
from core.tools.values.compare_dates import compare_dates, describe_date
from core.tools.values.date_words import DateWords, date_words
from core.tools.values.kinds import DateBound, DateValue, Match
from core.tools.values.named_dates import named_dates
from core.tools.values.numeric_dates import clock_times, noon_times, numeric_dates
from core.tools.values.plain import lower, plain, skip_blank
from core.tools.values.solar_dates import solar_dates
from core.tools.values.word_tokens import Word, split_words
from core.tools.values.year_dates import era_years, seasons_and_quarters, stretches

__all__ = ["DateValue", "Match", "compare_dates", "describe_date", "find_dates", "find_weekdays"]

LONGEST_TEXT = 20_000
WEEKDAY_GAP = re.compile(r",?[ \u00a0]?(?:the |den |dem |der |le |el |il |o |on )?|[ \u00a0]?[（(]")
DASH = re.compile(r"[ \u00a0]?[-–—~～〜至到][ \u00a0]?")
OPEN_DASH = re.compile(r"[ \u00a0]?[-–—][ \u00a0]?")
DIGIT = re.compile("[0-9]")
SHY_WEEKDAYS = frozenset("среда среду pazar salı domingo".split())
ORIGIN = re.compile(r"\bdat(?:es|ed|e|ing)\s+$")
FILLERS = re.compile(r"(?:the|year|the year|года|años?|an)[ \u00a0]$")


def find_dates(text: str, language: str = "en") -> list[DateValue]:
    """The dates of a text in order, none overlapping; offsets are in `text`."""
    words = date_words(language)
    plain_text = plain(text[:LONGEST_TEXT])
    low = lower(plain_text)
    tokens = split_words(plain_text, low)
    chosen = _chosen(plain_text, low, tokens, words)
    joined = _joined(low, chosen, words)
    return [_finished(text, low, date, words) for date in joined]


def find_weekdays(text: str, language: str = "en") -> list[DateValue]:
    """Every weekday that is named, however it is written, without the dates beside them.

    For texts that are known to name one: some of these words mean other things elsewhere.
    """
    words = date_words(language)
    plain_text = plain(text[:LONGEST_TEXT])
    low = lower(plain_text)
    found = [date for date in asian_dates(plain_text) if date.weekday is not None]
    for token in split_words(plain_text, low):
        named = words.weekdays.at(low, token.start)
        if named:
            start, end = token.start, named[0]
            found.append(DateValue(start, end, text[start:end], weekday=named[1]))
    return found


def _chosen(text: str, low: str, tokens: Sequence[Word], words: DateWords) -> list[DateValue]:
    taken: set[int] = set()
    chosen: list[DateValue] = []
    for date in _all(text, low, tokens, words):
        places = range(date.start, date.end)
        if taken.isdisjoint(places):
            taken.update(places)
            chosen.append(date)
    return sorted(chosen, key=lambda date: date.start)


def _all(text: str, low: str, tokens: Sequence[Word], words: DateWords) -> Iterator[DateValue]:
    """Everything found, the surer finders first."""
    digits = DIGIT.search(low) is not None
    yield from asian_dates(text)
    if digits:
        yield from numeric_dates(low, words)
    yield from named_dates(low, tokens, words)
    if digits and words.language == "fa":
        yield from solar_dates(low)
    yield from stretches(low, words)
    if digits:
        yield from era_years(low, words)
        yield from seasons_and_quarters(low, words)
        yield from clock_times(low, words)
        yield from bare_years(text, low, words)
    yield from noon_times(low, words)
    yield from _weekdays(low, tokens, words)


def _weekdays(low: str, tokens: Sequence[Word], words: DateWords) -> Iterator[DateValue]:
    """Full names of weekdays, where written as their language writes them."""
    for token in tokens:
        if token.low not in words.weekday_starts or token.low in SHY_WEEKDAYS:
            continue
        found = words.weekdays.at(low, token.start)
        written = token.capital or words.language not in ("en", "de")
        if found and written:
            yield DateValue(token.start, found[0], "", weekday=found[1])


def _joined(low: str, dates: Sequence[DateValue], words: DateWords) -> list[DateValue]:
    """Weekdays joined to the date they name, and two dates of one year to a range."""
    done: list[DateValue] = []
    for date in dates:
        before = done[-1] if done else None
        joined = before and (_with_weekday(low, before, date) or _range(low, before, date, words))
        if joined:
            done[-1] = joined
        else:
            done.append(date)
    return done


def _with_weekday(low: str, one: DateValue, other: DateValue) -> DateValue | None:
    gap = low[one.end : other.start]
    if not WEEKDAY_GAP.fullmatch(gap):
        return None
    if one.weekday is not None and one.month is None and other.day is not None:
        return replace(other, start=one.start, weekday=one.weekday)
    free = one.day is not None and one.weekday is None
    if other.weekday is not None and other.month is None and free:
        return replace(one, end=other.end, weekday=other.weekday)
    return None


def _range(low: str, one: DateValue, other: DateValue, words: DateWords) -> DateValue | None:
    """January-March 2019: the first takes its year from the second."""
    gap = low[one.end : other.start]
    if not DASH.fullmatch(gap) and gap.strip() not in words.to_words:
        return None
    points = one.kind == other.kind == "point" and one.hour is None and other.hour is None
    if not points or one.month is None or one.year is not None or other.month is None:
        return None
    if (one.month, one.day or 0) >= (other.month, other.day or 32):
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


def _finished(text: str, low: str, date: DateValue, words: DateWords) -> DateValue:
    """The date with its bound and its text as given."""
    return replace(date, text=text[date.start : date.end], bound=_bound(low, date, words))


def _bound(low: str, date: DateValue, words: DateWords) -> DateBound:
    values = words.values
    start = date.start
    filler = FILLERS.search(low, max(0, start - 12), start)
    starts = [start, filler.start()] if filler else [start]
    for place in starts:
        led = values.date_bounds_before.before(low, _back(low, place))
        if led and not _is_of_event(low, led[0], date) and not _is_origin(low, led[0]):
            return _fitting(led[1], date)
    after = values.date_bounds_after.at(low, date.end) or values.date_bounds_after.at(
        low, skip_blank(low, date.end)
    )
    if after:
        return _fitting(after[1], date)
    dash = OPEN_DASH.match(low, date.end)
    if dash and date.year and date.kind == "point" and words.open_end.at(low, dash.end()):
        return "since"
    return "exact"


def _is_of_event(low: str, start: int, date: DateValue) -> bool:
    """Whether the words bound an event the date belongs to: "after the 1979 revolution".

    A film "about 19th-century" people is not about that time either.
    """
    led = low[start : date.start].split()
    if date.kind in ("decade", "century"):
        return led[:1] == ["about"]
    return led[-1:] == ["the"] and date.month is None and date.kind == "point"


def _is_origin(low: str, start: int) -> bool:
    """Whether the bound says when a thing was made: "dates from 1644" means that year."""
    return ORIGIN.search(low, max(0, start - 12), start) is not None


def _back(low: str, position: int) -> int:
    while position and low[position - 1] in " \u00a0":
        position -= 1
    return position


def _fitting(bound: DateBound, date: DateValue) -> DateBound:
    """A range says itself where it starts and ends: "from 1990 to 1995" is exact."""
    return "exact" if date.kind == "range" and bound in ("since", "until") else bound
