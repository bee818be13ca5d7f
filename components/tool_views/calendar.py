"""Dates as a person would look them up: each in its month, the days between, what was said."""

from __future__ import annotations

from calendar import Calendar
from datetime import date

import msgspec

from components.html import Html, element, joined
from components.tool_views.plain import pairs_table
from components.tool_views.view import View
from components.wording import clipped

MONTHS = (
    "January February March April May June July August September October November December".split()
)
WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
MOST_MONTHS = 2


class Day(msgspec.Struct):
    """A date as 2014-02-06."""

    date: date
    weekday: str = ""


class Dates(msgspec.Struct):
    """What the calendar tool gives; `holds` is null where the text says nothing of it."""

    dates: list[Day]
    worked_out: str = ""
    said: str = ""
    days_between: int | None = None
    holds: bool | None = None


def _draw(given: Dates) -> Html:
    between = [_between(given)] if given.days_between is not None and len(given.dates) > 1 else []
    days = [day.date for day in given.dates]
    months = list(dict.fromkeys((day.year, day.month) for day in days))[:MOST_MONTHS]
    pictures = [_month(year, month, days) for year, month in months]
    return joined(
        [
            *between,
            pairs_table(_compared(given)),
            element("div", *pictures, class_="cp-months"),
        ]
    )


def _between(given: Dates) -> Html:
    first, second = given.dates[:2]
    return element(
        "div",
        f"{_told(first)} → {_told(second)}: ",
        element("strong", f"{given.days_between:,} days"),
    )


def _told(day: Day) -> str:
    weekday = f", {clipped(day.weekday, 20)}" if day.weekday else ""
    return f"{day.date.day} {MONTHS[day.date.month - 1]} {day.date.year}{weekday}"


def _compared(given: Dates) -> dict[str, str]:
    sign = {True: " ✓", False: " ✗", None: ""}[given.holds]
    rows = {
        "The answer says": given.said + sign if given.said else "",
        "Worked out": given.worked_out,
    }
    return {name: words for name, words in rows.items() if words}


def _month(year: int, month: int, days: list[date]) -> Html:
    """A month by weeks from Monday, with the days in question marked."""
    head = element("tr", *(element("th", name, scope="col") for name in WEEKDAYS))
    weeks = [
        element("tr", *(_cell(year, month, number, days) for number in week))
        for week in Calendar().monthdayscalendar(year, month)
    ]
    return element(
        "table",
        element(
            "thead", element("tr", element("th", f"{MONTHS[month - 1]} {year}", colspan="7")), head
        ),
        element("tbody", *weeks),
        class_="cp-month",
    )


def _cell(year: int, month: int, number: int, days: list[date]) -> Html:
    """A day of the week; 0 stands for one of another month."""
    if number and date(year, month, number) in days:
        return element("td", element("strong", str(number)), class_="cp-month-day")
    return element("td", str(number) if number else "")


CALENDAR = View(Dates, _draw)
