"""Dates of the Solar Hijri calendar in Persian texts, as dates of our calendar.

A year alone overlaps two of ours and becomes their range: ۱۳۵۰ is 1971-1972.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from core.tools.values.kinds import DateValue

MONTHS = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند".split()
FIRST, LAST = 1200, 1450
YEARS_APART = 621
# The names are words as well ("mehr" is love), and no date without a year: it must stand there.
DATE = re.compile(
    r"(?<!\d)(?:(?P<day>\d{1,2})[ \u00a0])?"
    rf"(?P<month>{'|'.join(MONTHS)})(?: ماه)?[ \u00a0،]{{1,2}}(?:سال )?(?P<year>1[2-4]\d\d)(?!\w)"
)
YEAR = re.compile(
    r"(?<!\w)(?:سال|سال\u200cهای) (?P<year>1[2-4]\d\d)"
    r"(?!\d|[ \u00a0](?:میلادی|قمری|ق(?!\w)|م(?!\w)))"
)
LEAPS = (1, 5, 9, 13, 17, 22, 26, 30)


def solar_dates(low: str) -> Iterator[DateValue]:
    """All Solar Hijri dates of a plain text."""
    for match in DATE.finditer(low):
        year, month = int(match["year"]), MONTHS.index(match["month"]) + 1
        first = _ours(year, month, int(match["day"] or 1))
        last = first if match["day"] else first + timedelta(days=29)
        yield DateValue(
            *match.span(), "", year=first.year, month=first.month, day=first.day,
            end_year=None if match["day"] else last.year,
            end_month=None if match["day"] else last.month,
            end_day=None if match["day"] else last.day,
            kind="point" if match["day"] else "range",
        )  # fmt: skip
    for match in YEAR.finditer(low):
        year = int(match["year"])
        if FIRST <= year <= LAST:
            start = year + YEARS_APART
            yield DateValue(*match.span("year"), "", year=start, end_year=start + 1, kind="range")


def _ours(year: int, month: int, day: int) -> date:
    """The day of our calendar, by the 33-year cycle of leap years (exact from 1178 to 1633)."""
    cycles, rest = divmod(year - 1, 33)
    leaps = 8 * cycles + sum(leap <= rest for leap in LEAPS)
    before = (month - 1) * 31 - max(0, month - 7)
    days = 365 * (year - 1) + leaps + before + day - 1
    return date(622, 3, 21) + timedelta(days=days)
