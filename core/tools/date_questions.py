"""Answers questions about the calendar that state all they need, and checks the answer given.

A question is taken only where nothing is left over once its dates and the words of such questions
are taken away: "how many rainy days between …" asks for more than a calendar knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from core.tools.calendar import TimeUnit, age_on, between, moved
from core.tools.date_answers import (
    DAYS,
    DateFinding,
    date_said,
    figure_said,
    stretch_words,
    weekday_said,
)
from core.tools.date_question_words import (
    AFTER,
    BEFORE,
    BORN,
    BORN_BEFORE,
    BORN_BEHIND,
    FILLER,
    HOW_LONG,
    HOW_OLD,
    INCLUSIVE,
    OF_ANOTHER,
    SETTLED,
    STEP,
    UNITS,
    WHICH_DATE,
    WHICH_WEEKDAY,
)
from core.tools.full_dates import FIRST_YEAR, full_date, tongue_of
from core.tools.values.dates import DateValue, find_dates
from core.tools.values.han_numbers import value_of
from core.tools.values.quantities import find_quantities

LONGEST = 300
MOST_STEPS = 3
ARTICLES = frozenset("a an ein eine einem einen einer un une una".split())


def check_dates(question: str, response: str, language: str = "en") -> DateFinding | None:
    """The response against the calendar; None where the question is not only about it."""
    if len(question) > LONGEST:
        return None
    tongue = tongue_of(question, language)
    # Others stay among the words: "前10" is no year here, and a vague date is one word too many.
    dates = [found for found in find_dates(question, tongue) if full_date(found)]
    known = [day for day in map(full_date, dates) if day is not None]
    if not 1 <= len(known) <= 2:
        return None
    rest = _without(question, [(d.start, d.end) for d in dates])
    said_in = tongue_of(response, tongue)
    if HOW_OLD.search(rest) and BORN.search(rest):
        is_all = len(find_dates(question, tongue)) == len(dates)
        return _age(question, dates, response, said_in) if is_all else None
    for way in (_difference, _step):
        found = way(rest, known, response, said_in)
        if found is not None:
            return found
    return None


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(places):
        text = f"{text[:start]} {text[end:]}"
    return text


def _is_only(rest: str, *asked: re.Pattern[str]) -> bool:
    for pattern in asked:
        rest = pattern.sub(" ", rest)
    return not FILLER.sub("", rest)


def _age(
    question: str, dates: Sequence[DateValue], response: str, language: str
) -> DateFinding | None:
    """Full years from the one birth that is told of to the other date."""
    births = [
        found
        for found in dates
        if BORN_BEFORE.search(question[: found.start]) or BORN_BEHIND.match(question, found.end)
    ]
    others = [full_date(found) for found in dates if found not in births]
    if len(births) != 1 or len(others) != 1 or len(BORN.findall(question)) != 1:
        return None
    born, day = full_date(births[0]), others[0]
    age = age_on(born, day) if born and day and not OF_ANOTHER.search(question) else None
    if age is None or born is None or day is None:
        return None
    said = figure_said(response, language, "year", str(age), lambda figure: figure == age)
    return said and replace(said, dates=(born, day))


def _difference(
    rest: str, known: Sequence[date], response: str, language: str
) -> DateFinding | None:
    asked = HOW_LONG.search(rest)
    if asked is None or len(known) != 2 or not _is_only(rest, INCLUSIVE, HOW_LONG):
        return None
    unit = _unit(asked)
    is_inclusive = INCLUSIVE.search(rest) is not None
    found = between(known[0], known[1], unit, is_inclusive=is_inclusive)
    is_open = unit in DAYS and not is_inclusive and not SETTLED.search(rest)
    days = abs((known[1] - known[0]).days) if is_open else 0
    said = figure_said(response, language, unit, stretch_words(found), found.is_said_by, days=days)
    return said and replace(said, dates=(known[0], known[1]))


def _step(rest: str, known: Sequence[date], response: str, language: str) -> DateFinding | None:
    """A weekday, or the date so long before or after the one that is stated."""
    by_weekday = WHICH_WEEKDAY.search(rest) is not None
    if len(known) != 1 or not (by_weekday or WHICH_DATE.search(rest)):
        return None
    steps = list(STEP.finditer(WHICH_DATE.sub(" ", WHICH_WEEKDAY.sub(" ", rest))))
    after, before = AFTER.search(rest), BEFORE.search(rest)
    if bool(steps) != bool(after or before) or (after and before):
        return None
    if not _is_only(rest, WHICH_WEEKDAY, WHICH_DATE, STEP, AFTER, BEFORE):
        return None
    if not steps and not by_weekday:
        return None
    target = _moved(known[0], steps, -1 if before else 1)
    if target is None or target.year < FIRST_YEAR:
        return None
    way = weekday_said if by_weekday else date_said
    said = way(response, language, target)
    dates = (known[0], target) if steps else (target,)
    return said and replace(said, dates=dates)


def _moved(day: date, steps: Sequence[re.Match[str]], sign: int) -> date | None:
    """The date all steps away; None where another order of them leads elsewhere."""
    read = [(_count_of(step), _unit(step)) for step in steps]
    if len(read) > MOST_STEPS or len({unit for _, unit in read}) < len(read):
        return None
    reached = set()
    for order in (read, read[::-1]):
        at: date | None = day
        for count, unit in order:
            at = moved(at, sign * count, unit) if at and count is not None else None
        reached.add(at)
    return reached.pop() if len(reached) == 1 else None


def _unit(match: re.Match[str]) -> TimeUnit:
    written = (match["spaced"] or match["han"] or match["short"]).lower()
    # Whatever ending the plural has: "days", "Jahren", "meses".
    return next(
        UNITS[written[:end]] for end in range(len(written), 0, -1) if written[:end] in UNITS
    )


def _count_of(step: re.Match[str]) -> int | None:
    if step["number"]:
        return int(value_of(step["number"]) if not step["number"].isdigit() else step["number"])
    words = step["figure"].lower()
    if words.split()[-1] in ARTICLES:
        return 1
    for language in ("en", "de", "fr", "es"):
        values = find_quantities(f"{words} x", language)
        if values and values[0].low.is_integer():
            return int(values[0].low)
    return None
