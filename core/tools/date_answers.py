"""Finds in a response the figure, weekday or date that it gives, and holds it to the right one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from core.tools.calendar import Stretch, TimeUnit, weekday_name
from core.tools.values.dates import find_dates, find_weekdays
from core.tools.values.quantities import find_quantities

SECONDS: dict[TimeUnit, float] = {
    "day": 86_400.0, "week": 604_800.0, "month": 2_629_800.0, "year": 31_557_600.0
}  # fmt: skip
DAYS: dict[TimeUnit, int] = {"day": 1, "week": 7}
NUMBER_OF_UNIT = re.compile(r"month|year|月|年", re.IGNORECASE)
# Beside a figure, these leave open whether it is the one given: "not 60 days", "60 or 61".
OPEN = re.compile(
    r"\b(?:not|never|no|nor|neither|or|either|cannot|wrong|false|incorrect|rather than|instead of"
    r"|business|working|work)\b|n['’]t\b|不|并非|没有|非|错|或|还是|工作",
    re.IGNORECASE,
)
BESIDE = 40  # characters


@dataclass(frozen=True)
class DateFinding:
    """The calendar's answer beside the one given, `[start, end)` in the response.

    `dates` are those that it was worked out from or came to, in the order in which they are told.
    """

    holds: bool
    worked_out: str
    given: str
    start: int
    end: int
    dates: tuple[date, ...] = ()


@dataclass(frozen=True)
class Given:
    """One answer that a response may be giving: what it says and where."""

    value: float
    is_right: bool
    start: int
    end: int


def figure_said(
    response: str,
    language: str,
    unit: TimeUnit,
    right: str,
    is_right: Callable[[float], bool],
    *,
    days: int = 0,
) -> DateFinding | None:
    """The response's own figure; durations count before bare numbers.

    `days` are those worked out where an end may count or not: one beside them is left open.
    """
    dates = [(d.start, d.end) for d in find_dates(response, language)]
    free = [
        q
        for q in find_quantities(response, language)
        if not q.ordinal and not any(q.start < end and start < q.end for start, end in dates)
    ]
    lasting = [q for q in free if q.unit == "second"]
    if unit in ("day", "week") and any(NUMBER_OF_UNIT.search(q.text) for q in lasting):
        return None  # months have no fixed number of days
    given = [
        Given(figure, is_right(figure), q.start, q.end)
        for q in lasting or [q for q in free if not q.unit and not q.noun]
        for figure in (round(q.low / SECONDS[unit], 6) if q.unit else q.low,)
    ]
    if days and any(
        not item.is_right and abs(item.value * DAYS[unit] - days) < 1.01 for item in given
    ):
        return None
    return _chosen(response, given, right)


def weekday_said(response: str, language: str, target: date) -> DateFinding | None:
    """The response's weekday beside that of the target."""
    given = [
        Given(d.weekday, d.weekday == target.weekday(), d.start, d.end)
        for d in find_dates(response, language)
        if d.weekday is not None
    ]
    if not given:  # a weekday alone is written small at times: "friday"
        given = [
            Given(d.weekday, d.weekday == target.weekday(), d.start, d.end)
            for d in find_weekdays(response, language)
            if d.weekday is not None
        ]
    return _chosen(response, given, weekday_name(target))


def date_said(response: str, language: str, target: date) -> DateFinding | None:
    """The response's date beside the target; a year that it leaves out is taken for right."""
    given = []
    for found in find_dates(response, language):
        if found.month is None or found.day is None or found.ambiguous or found.kind != "point":
            continue
        is_right = (found.year or target.year, found.month, found.day) == (
            target.year,
            target.month,
            target.day,
        )
        given.append(Given(found.month * 100 + found.day, is_right, found.start, found.end))
    return _chosen(response, given, target.isoformat())


def _chosen(response: str, given: Sequence[Given], right: str) -> DateFinding | None:
    """The answer among what the response says: its first or its last figure.

    A right figure in the middle of others may be a step of the working: that decides nothing.
    """
    if not given:
        return None
    beside = response[max(0, given[0].start - BESIDE) : given[-1].end + BESIDE]
    if OPEN.search(beside):
        return None
    holds = given[0].is_right or given[-1].is_right
    if not holds and any(item.is_right for item in given):
        return None
    item = given[0] if given[0].is_right else given[-1]
    return DateFinding(holds, right, response[item.start : item.end], item.start, item.end)


def stretch_words(stretch: Stretch) -> str:
    """A time between two dates in words: "2 weeks and 3 days"."""
    over = f" and {counted(stretch.days_over, 'day')}" if stretch.days_over else ""
    return f"{counted(stretch.whole, stretch.unit)}{over}"


def counted(count: int, unit: str) -> str:
    """A count with its unit: "1 day", "1,200 weeks"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"
