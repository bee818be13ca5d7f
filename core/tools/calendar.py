"""Works out dates: how long between two, the date some time before or after, weekday, age.

Source: HaluAgent 2.2 (calendar tool).
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

TimeUnit = Literal["day", "week", "month", "year"]
MONTHS_A_YEAR = 12
DAYS_A_WEEK = 7
CHINESE_DAYS = {
    name: f"星期{day}" for name, day in zip(calendar.day_name, "一二三四五六日", strict=True)
}
CHINESE_UNITS = {"day": "天", "week": "周", "month": "个月", "year": "年"}
OF_UNITS = re.compile(r"([\d,]+) (day|week|month|year)s?\b")


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


def in_language(words: str, language: str) -> str:
    """A weekday or a time in English, as a text in that language would say it: 星期一, 3天.

    Chinese alone is known; anything else, a date as 2014-02-06 among them, stays as it is.
    """
    if not language.casefold().startswith("zh"):
        return words
    if words in CHINESE_DAYS:
        return CHINESE_DAYS[words]
    told = OF_UNITS.sub(lambda m: f"{m[1]}{CHINESE_UNITS[m[2]]}", words)
    return told.replace(" and ", "零").replace(" to ", "至")


def age_on(born: date, day: date) -> int | None:
    """Full years of life on a day; None before birth. Born on 29 February: a year on 1 March."""
    if day < born:
        return None
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))
