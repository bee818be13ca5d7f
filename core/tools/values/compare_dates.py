"""Whether two dates can both hold of the same event.

Dates with a year become stretches of days and are compared as such: a less precise date agrees
with all it contains. Without a year, only the parts that both state are compared. A date whose
day and month may be swapped agrees if either reading does. `compare_dates` is symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace

from core.tools.values.kinds import DateBound, DateValue, Match

MONTH = 31
YEAR = 12 * MONTH
ABOUT_YEARS = 2
ABOUT_SHARE = 0.02  # "around 3000 BC" reaches further than "around 1990"
ABOUT_DAYS = 3
ABOUT_MINUTES = 15
THIS_YEAR = 2025
RANK: dict[Match, int] = {"incomparable": 0, "different": 1, "compatible": 2, "equal": 3}
PLACES = frozenset(["start", "end", "text"])
WORDS: dict[DateBound, str] = {
    "exact": "", "about": "about ", "before": "before ", "after": "after ", "since": "since ",
    "until": "until ",
}  # fmt: skip

Span = tuple[float, float]


def compare_dates(claim: DateValue, evidence: DateValue) -> Match:
    """How the claim's date stands to the evidence's; "incomparable" if they share no part."""
    if _parts(claim) == _parts(evidence):
        return "equal"
    found = [_compare(one, other) for one in _readings(claim) for other in _readings(evidence)]
    best = max(found, key=RANK.__getitem__)
    uncertain = claim.ambiguous or evidence.ambiguous
    return "compatible" if best == "equal" and uncertain and len(set(found)) > 1 else best


def describe_date(date: DateValue) -> str:
    """The date as people write it, in its own words: "before 12 March 2019"."""
    return WORDS[date.bound] + " ".join(date.text.split())


def _parts(date: DateValue) -> tuple[object, ...]:
    return tuple(getattr(date, f.name) for f in fields(date) if f.name not in PLACES)


def _readings(date: DateValue) -> Iterator[DateValue]:
    """The date, and the other way to read it where it is ambiguous."""
    yield date
    if not date.ambiguous:
        return
    if date.hour is not None:
        yield replace(date, hour=(date.hour + 12) % 24)
    else:
        yield replace(date, month=date.day, day=date.month)


def _compare(one: DateValue, other: DateValue) -> Match:
    """Each part that both state, put together: one that differs decides."""
    found: list[Match] = []
    if one.year is not None and other.year is not None:
        found.append(_compare_spans(one, other, with_year=True))
    elif one.month is not None and other.month is not None:
        found.append(_compare_spans(one, other, with_year=False))
    if one.weekday is not None and other.weekday is not None:
        found.append("equal" if one.weekday == other.weekday else "different")
    if one.hour is not None and other.hour is not None:
        found.append(_compare_clock(one, other))
    if not found:
        return "incomparable"
    if "different" in found:
        return "different"
    same_parts = _stated(one) == _stated(other)
    return "equal" if same_parts and set(found) == {"equal"} else "compatible"


def _stated(date: DateValue) -> tuple[bool, ...]:
    values = (date.year, date.month, date.weekday, date.hour)
    return tuple(value is not None for value in values)


def _compare_spans(one: DateValue, other: DateValue, *, with_year: bool) -> Match:
    first, second = _span(one, with_year), _span(other, with_year)
    if one.season and other.season and one.season != other.season and one.year == other.year:
        return "different"
    if first == second and one.bound == other.bound:
        return "equal" if one.season == other.season else "compatible"
    # What began in 2015 did not begin in 2012, though both reach to this day.
    if one.bound == other.bound and one.bound in ("exact", "since"):
        return _compare_exact(one, other, first, second)
    first, second = _bounded(first, one, with_year), _bounded(second, other, with_year)
    shared = min(first[1], second[1]) - max(first[0], second[0])
    return "compatible" if shared >= 0 else "different"


def _compare_exact(one: DateValue, other: DateValue, first: Span, second: Span) -> Match:
    """Containment agrees; of two ranges that share one end only, the other end differs."""
    contained = (first[0] >= second[0] and first[1] <= second[1]) or (
        second[0] >= first[0] and second[1] <= first[1]
    )
    if one.kind == other.kind == "range":
        shared_end = first[0] == second[0] or first[1] == second[1]
        return "compatible" if contained and not shared_end else "different"
    if contained:
        return "compatible"
    if "point" in (one.kind, other.kind):
        return "different"
    shared = min(first[1], second[1]) - max(first[0], second[0])
    shorter = min(first[1] - first[0], second[1] - second[0])
    return "compatible" if shared >= shorter / 2 else "different"


def _span(date: DateValue, with_year: bool) -> Span:
    """The first and last day a date may mean, on a calendar of equal months."""
    year = date.year if with_year and date.year is not None else 0
    last_year = date.end_year if with_year and date.end_year is not None else year
    if date.era == "bce":
        year, last_year = -year, -last_year
    month, day = date.month, date.day
    last_month = date.end_month or month
    last_day = date.end_day if date.end_month else day
    start = year * YEAR + ((month or 1) - 1) * MONTH + ((day or 1) - 1)
    end = last_year * YEAR + ((last_month or 12) - 1) * MONTH + ((last_day or MONTH) - 1)
    return float(min(start, end)), float(max(start, end))


def _bounded(span: Span, date: DateValue, with_year: bool) -> Span:
    """The stretch that the date's bound allows."""
    low, high = span
    reaches: dict[DateBound, Span] = {
        "before": (-math.inf, low - 1),
        "after": (high + 1, math.inf),
        "since": (low, math.inf),
        "until": (-math.inf, high),
    }
    if date.bound == "about":
        reach = _about(date, with_year)
        return low - reach, high + reach
    return reaches.get(date.bound, span)


def _about(date: DateValue, with_year: bool) -> float:
    """How many days "about" reaches."""
    if date.day is not None:
        return ABOUT_DAYS
    if date.month is not None or not with_year or date.year is None:
        return MONTH
    age = THIS_YEAR + date.year if date.era == "bce" else THIS_YEAR - date.year
    return YEAR * max(ABOUT_YEARS, round(ABOUT_SHARE * abs(age)))


def _compare_clock(one: DateValue, other: DateValue) -> Match:
    """Times of day; an hour without minutes agrees with all of that hour."""
    first, second = _clock_span(one), _clock_span(other)
    if first == second and one.bound == other.bound:
        return "equal"
    shared = min(first[1], second[1]) - max(first[0], second[0])
    return "compatible" if shared >= 0 else "different"


def _clock_span(date: DateValue) -> Span:
    hour = date.hour or 0
    low = 60.0 * hour + (date.minute or 0)
    high = low if date.minute is not None else low + 59
    reaches: dict[DateBound, Span] = {
        "before": (0, low - 1), "until": (0, low), "after": (low + 1, 1440), "since": (low, 1440),
        "about": (low - ABOUT_MINUTES, high + ABOUT_MINUTES),
    }  # fmt: skip
    return reaches.get(date.bound, (low, high))
