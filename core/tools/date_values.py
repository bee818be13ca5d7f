"""Dates as intervals of days with a bound, and whether two of them agree."""

from __future__ import annotations

import calendar
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Literal

from core.tools.quantities import Agreement
from core.tools.vocabulary import DateBound

DateKind = Literal["day", "month", "year", "decade", "century", "quarter", "range", "weekday"]
Era = Literal["ce", "bce"]
MONTH_DAYS, YEAR_DAYS = 31, 12 * 31  # days in a calendar of equal months
ABOUT_DAYS, ABOUT_YEARS, ABOUT_SHARE, REFERENCE_YEAR = 3, 2, 0.02, 2025


@dataclass(frozen=True)
class DateValue:
    """A date or a period at `[start, end)`; unstated parts are None.

    Offsets are code points of the text. Years count upwards from 1 in both eras. A period (decade,
    century, quarter, range) has `end_*`. `ambiguous` marks "03/04/2019", whose day and month may be
    swapped.
    """

    start: int
    end: int
    text: str = ""
    year: int | None = None
    month: int | None = None
    day: int | None = None
    end_year: int | None = None
    end_month: int | None = None
    end_day: int | None = None
    weekday: int | None = None
    era: Era = "ce"
    bound: DateBound = "exact"
    kind: DateKind = "day"
    ambiguous: bool = False

    @property
    def is_point(self) -> bool:
        """True for a day, month or year, False for a period."""
        return self.kind in ("day", "month", "year", "weekday")

    @property
    def interval(self) -> tuple[date, date] | None:
        """The first and last possible day; None without a year, if BC, or if ambiguous."""
        years = (self.year or 0, self.end_year or self.year or 0)
        if self.era == "bce" or self.ambiguous or not 0 < years[0] <= years[1] <= 9999:
            return None
        months = (self.month or 1, self.end_month or self.month or 12)
        last_day = self.end_day if self.end_month else self.day
        last_day = last_day or calendar.monthrange(years[1], months[1])[1]
        try:
            return date(years[0], months[0], self.day or 1), date(years[1], months[1], last_day)
        except ValueError:
            return None


def compare_dates(one: DateValue, other: DateValue) -> Agreement:
    """Return whether two dates can both be true of the same event; symmetric.

    Dates with a year become spans of days: a less precise date agrees with all it contains. Without
    a year only the parts that both state are compared. A date whose day and month may be swapped
    agrees if either reading does.
    """
    parts = [field.name for field in fields(one) if field.name not in ("start", "end", "text")]
    if all(getattr(one, name) == getattr(other, name) for name in parts):
        return "same"
    results = {_compare_parts(a, b) for a in _list_readings(one) for b in _list_readings(other)}
    order: tuple[Agreement, ...] = ("same", "different", "incomparable")
    return next(match for match in order if match in results)


def _list_readings(value: DateValue) -> Iterator[DateValue]:
    """Yield the date, and its other reading if it is ambiguous."""
    yield value
    if value.ambiguous:
        yield replace(value, month=value.day, day=value.month)


def _compare_parts(one: DateValue, other: DateValue) -> Agreement:
    """Compare the parts that both state: a single different part decides."""
    agree: list[bool] = []
    with_year = one.year is not None and other.year is not None
    if with_year or (one.month is not None and other.month is not None):
        agree.append(_spans_agree(one, other, with_year))
    if one.weekday is not None and other.weekday is not None:
        agree.append(one.weekday == other.weekday)
    return ("same" if all(agree) else "different") if agree else "incomparable"


def _spans_agree(one: DateValue, other: DateValue, with_year: bool) -> bool:
    first, second = _to_day_span(one, with_year), _to_day_span(other, with_year)
    if first == second and one.bound == other.bound:
        return True
    # Since 2015 and since 2012 differ, although both last until today.
    if one.bound != other.bound or one.bound not in ("exact", "since"):
        ends = _allowed_span(first, one, with_year), _allowed_span(second, other, with_year)
        return min(ends[0][1], ends[1][1]) >= max(ends[0][0], ends[1][0])
    shared = min(first[1], second[1]) - max(first[0], second[0])
    shorter = min(first[1] - first[0], second[1] - second[0])
    if one.kind == other.kind == "range":
        return shared == shorter and first[0] != second[0] and first[1] != second[1]
    return shared == shorter or (not (one.is_point or other.is_point) and shared >= shorter / 2)


def _to_day_span(value: DateValue, with_year: bool) -> tuple[float, float]:
    """Return the first and last possible day, in a calendar of equal months."""
    year = (value.year or 0) if with_year else 0
    last_year = value.end_year if with_year and value.end_year is not None else year
    sign = -1 if value.era == "bce" else 1
    last_day = value.end_day if value.end_month else value.day
    start = sign * year * YEAR_DAYS + ((value.month or 1) - 1) * MONTH_DAYS + (value.day or 1) - 1
    end = sign * last_year * YEAR_DAYS + ((value.end_month or value.month or 12) - 1) * MONTH_DAYS
    end += (last_day or MONTH_DAYS) - 1
    return float(min(start, end)), float(max(start, end))


def _allowed_span(
    span: tuple[float, float], value: DateValue, with_year: bool
) -> tuple[float, float]:
    """Return the span that the bound allows; "around 3000 BC" allows more than "around 1990"."""
    low, high = span
    about: float = ABOUT_DAYS if value.day else MONTH_DAYS
    if with_year and not value.month and value.year is not None:
        age = REFERENCE_YEAR - (-value.year if value.era == "bce" else value.year)
        about = YEAR_DAYS * max(ABOUT_YEARS, round(ABOUT_SHARE * abs(age)))
    reaches: dict[DateBound, tuple[float, float]] = {
        "before": (-math.inf, low - 1),
        "after": (high + 1, math.inf),
        "since": (low, math.inf),
        "until": (-math.inf, high),
        "about": (low - about, high + about),
    }
    return reaches.get(value.bound, span)
