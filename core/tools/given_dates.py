"""Holds what a text says against dates that are given outright, not read from a question."""

from __future__ import annotations

from datetime import date

from core.errors import InputError
from core.tools.calendar import TimeUnit, age_on, between, moved, weekday_name
from core.tools.date_answers import (
    DAYS,
    DateFinding,
    counted,
    date_said,
    figure_said,
    stretch_words,
    weekday_said,
)


def check_given(
    text: str,
    language: str,
    first: date,
    second: date | None,
    *,
    unit: TimeUnit = "day",
    later: int | None = None,
    is_birth: bool = False,
) -> DateFinding:
    """What the calendar gives for these dates beside what the text says.

    `given` is empty where the text says nothing of it, or says it beside a "not" or an "or".

    Raises:
        InputError: the date worked out lies outside the calendar, or before a birth.
    """
    if later is not None:
        target = moved(first, later, unit)
        if target is None:
            raise InputError("Expected a date within the years 1 to 9999, found one outside them.")
        found = date_said(text, language, target)
        return _finished(found, target.isoformat(), (first, target))
    if second is None:
        found = weekday_said(text, language, first)
        return _finished(found, weekday_name(first), (first,))
    if is_birth:
        age = age_on(first, second)
        if age is None:
            raise InputError(f"Expected a day after the birth on {first}, found {second}.")
        found = figure_said(text, language, "year", str(age), lambda said: said == age)
        return _finished(found, counted(age, "year"), (first, second))
    stretch = between(first, second, unit)
    days = abs((second - first).days) if unit in DAYS else 0
    found = figure_said(text, language, unit, stretch_words(stretch), stretch.is_said_by, days=days)
    return _finished(found, stretch_words(stretch), (first, second))


def _finished(found: DateFinding | None, worked_out: str, dates: tuple[date, ...]) -> DateFinding:
    if found is None:
        return DateFinding(False, worked_out, "", 0, 0, dates)
    return DateFinding(found.holds, worked_out, found.given, found.start, found.end, dates)
