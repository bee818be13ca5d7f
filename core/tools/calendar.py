"""Works out dates: how long between two, the date some time before or after, weekday, age.

Source: HaluAgent 2.2 (calendar tool).
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

TimeUnit = Literal["day", "week", "month", "year"]
MONTHS_A_YEAR = 12
DAYS_A_WEEK = 7


@dataclass(frozen=True)
class Stretch:
    """A time between two dates in one unit: `whole` of them, and some days more or none."""

    unit: TimeUnit
    whole: int
    days_over: int

    def is_said_by(self, figure: float) -> bool:
        """True where a figure may stand for it: the whole count, rounded up, or between the two."""
        if not self.days_over:
            return abs(figure - self.whole) < 1e-6
        return self.whole <= figure <= self.whole + 1


def between(one: date, other: date, unit: TimeUnit, *, is_inclusive: bool = False) -> Stretch:
    """The time between two dates whichever is first; `is_inclusive` counts both end days."""
    first, last = min(one, other), max(one, other)
    if is_inclusive:
        last = moved(last, 1, "day") or last
    if unit in ("day", "week"):
        days = (last - first).days
        size = DAYS_A_WEEK if unit == "week" else 1
        return Stretch(unit, days // size, days % size)
    months = MONTHS_A_YEAR * (last.year - first.year) + last.month - first.month
    size = MONTHS_A_YEAR if unit == "year" else 1
    whole = months // size
    # A month is full on the same day of a later one: 31 January to 28 February is not a month.
    if whole and _is_after(first, last, whole * size):
        whole -= 1
    reached = moved(first, whole * size, "month") or first
    return Stretch(unit, whole, max(0, (last - reached).days))


def _is_after(first: date, last: date, months: int) -> bool:
    """Whether so many months after `first`, its day of the month kept, lies behind `last`."""
    index = first.year * MONTHS_A_YEAR + first.month - 1 + months
    return (index, first.day) > (last.year * MONTHS_A_YEAR + last.month - 1, last.day)


def moved(day: date, count: int, unit: TimeUnit) -> date | None:
    """The date so many units later, earlier for a negative count; None outside the calendar.

    A month without that day gives its last: 31 January plus one month is 28 or 29 February.
    """
    try:
        if unit in ("day", "week"):
            return day + timedelta(days=count * (DAYS_A_WEEK if unit == "week" else 1))
        months = count * (MONTHS_A_YEAR if unit == "year" else 1)
        year, month = divmod(day.year * MONTHS_A_YEAR + day.month - 1 + months, MONTHS_A_YEAR)
        last = calendar.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(day.day, last))
    except (ValueError, OverflowError):
        return None


def weekday_name(day: date) -> str:
    """The weekday in English: "Friday"."""
    return calendar.day_name[day.weekday()]


def age_on(born: date, day: date) -> int | None:
    """Full years of life on a day; None before birth. Born on 29 February: a year on 1 March."""
    if day < born:
        return None
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))
