"""Answers questions about the calendar that state all they need, and checks the answer given.

A question is taken only where nothing is left over once its dates and the words of such questions
are taken away: "how many rainy days between …" asks for more than a calendar knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from core.builtin.values.dates import DateValue, find_dates
from core.builtin.values.han_numbers import value_of
from core.builtin.values.quantities import find_quantities
from core.tools.calendar import TimeUnit, age_on, between, moved, weekday_name

LONGEST = 300
UNITS: dict[str, TimeUnit] = {
    "day": "day", "week": "week", "month": "month", "year": "year",
    "天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month",
    "年": "year",
}  # fmt: skip
SECONDS: dict[TimeUnit, float] = {
    "day": 86_400.0, "week": 604_800.0, "month": 2_629_800.0, "year": 31_557_600.0
}  # fmt: skip
HAN_UNIT = r"(?:个?(?P<han>星期|礼拜|月)|(?P<short>天|日|周|年))"
HOW_LONG = re.compile(
    r"(?:how many|number of|how long in)\s+(?P<english>day|week|month|year)s?\b"
    rf"|(?:多少|几)\s*{HAN_UNIT}(?![几月])",
    re.IGNORECASE,
)
WHICH_WEEKDAY = re.compile(
    r"\b(?:what|which) (?:day of the week|weekday)\b|(?:星期|周|礼拜)几", re.IGNORECASE
)
WHICH_DATE = re.compile(
    r"\b(?:what|which) (?:is the |was the |will be the |calendar )?(?:date|day)\b"
    r"|几月几[日号]|哪一?[天日]|什么日期|几号|日期是(?:什么|多少)",
    re.IGNORECASE,
)
HOW_OLD = re.compile(r"\bhow old\b|多大|多少岁|几岁|年龄", re.IGNORECASE)
BORN = re.compile(r"\bborn\b|出生|生于|诞生", re.IGNORECASE)
STEP = re.compile(
    r"(?P<figure>\d{1,6}|[a-z]+(?:[- ][a-z]+)?)\s+(?P<english>day|week|month|year)s?\b"
    r"|(?P<number>\d{1,6}|[一二三四五六七八九十百千两零〇]{1,9})\s*" + HAN_UNIT,
    re.IGNORECASE,
)
AFTER = re.compile(r"\b(?:after|later|from|following|past)\b|后", re.IGNORECASE)
BEFORE = re.compile(r"\b(?:before|earlier|prior|preceding|ago)\b|前", re.IGNORECASE)
INCLUSIVE = re.compile(
    r"\binclusive(?:ly)?\b|\b(?:including|counting) (?:both|the (?:start|first))[a-z ]*|\bthrough\b"
    r"|[包含]{1,2}(?:首尾|头尾|两端|起止)|(?:首尾|头尾|两端)(?:都|均)?(?:算|计|包含|包括)(?:入|在内)?",
    re.IGNORECASE,
)
FILLER = re.compile(
    r"\b(?:how|many|number|of|are|there|is|was|were|will|be|it|on|in|at|the|between|from|to|until"
    r"|till|up|and|did|do|does|have|has|passed|pass|elapsed|elapse|total|altogether|please|exactly"
    r"|what|which|date|day|days|fall|falls|fell|calculate|compute|find|tell|me|lie|a|an|that|week"
    r"|for|difference|counted|if|you|count)\b"
    r"|[从自由到至和与跟及之间共一总有相隔差距离间请问计算是经过了的这那中在当期起开始呢吗日两者为止]"
    r"|[\W_]",
    re.IGNORECASE,
)
NUMBER_OF_UNIT = re.compile(r"month|year|月|年", re.IGNORECASE)
SIGNS_OF_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True)
class DateFinding:
    """The calendar's answer beside the one given, `[start, end)` in the response."""

    holds: bool
    worked_out: str
    given: str
    start: int
    end: int


@dataclass(frozen=True)
class _Given:
    """One answer that a response may be giving: what it says and where."""

    value: float | date | int
    is_right: bool
    start: int
    end: int


def check_dates(question: str, response: str, language: str = "en") -> DateFinding | None:
    """The response against the calendar; None where the question is not only about it."""
    if len(question) > LONGEST:
        return None
    tongue = _tongue(question, language)
    # Others stay among the words: "前10" is no year here, and a vague date is one word too many.
    dates = [found for found in find_dates(question, tongue) if _full(found)]
    known = [day for day in map(_full, dates) if day is not None]
    if not 1 <= len(known) <= 2:
        return None
    rest = _without(question, [(d.start, d.end) for d in dates])
    for way in (_age, _difference, _step):
        found = way(rest, known, response, _tongue(response, tongue))
        if found is not None:
            return found
    return None


def _tongue(text: str, language: str) -> str:
    if SIGNS_OF_HAN.search(text):
        return "ja" if language == "ja" else "zh"
    return "en" if language in ("und", "zh") else language


def _full(found: DateValue) -> date | None:
    """A date of which day, month and year are sure."""
    is_point = found.kind == "point" and found.era == "ce" and not found.ambiguous
    if not is_point or found.year is None or found.month is None or found.day is None:
        return None
    try:
        return date(found.year, found.month, found.day)
    except (ValueError, OverflowError):
        return None


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(places):
        text = f"{text[:start]} {text[end:]}"
    return text


def _is_only(rest: str, *asked: re.Pattern[str]) -> bool:
    for pattern in asked:
        rest = pattern.sub(" ", rest)
    return not FILLER.sub("", rest)


def _age(rest: str, known: Sequence[date], response: str, language: str) -> DateFinding | None:
    if len(known) != 2 or not HOW_OLD.search(rest) or not BORN.search(rest):
        return None
    age = age_on(min(known), max(known))
    if age is None:
        return None
    return _figure(response, language, "year", str(age), lambda said: said == age)


def _difference(
    rest: str, known: Sequence[date], response: str, language: str
) -> DateFinding | None:
    asked = HOW_LONG.search(rest)
    if asked is None or len(known) != 2 or not _is_only(rest, INCLUSIVE, HOW_LONG):
        return None
    unit = _unit(asked)
    found = between(known[0], known[1], unit, is_inclusive=INCLUSIVE.search(rest) is not None)
    over = f" and {_counted(found.days_over, 'day')}" if found.days_over else ""
    return _figure(
        response, language, unit, f"{_counted(found.whole, unit)}{over}", found.is_said_by
    )


def _step(rest: str, known: Sequence[date], response: str, language: str) -> DateFinding | None:
    """A weekday, or the date so long before or after the one that is stated."""
    by_weekday = WHICH_WEEKDAY.search(rest) is not None
    if len(known) != 1 or not (by_weekday or WHICH_DATE.search(rest)):
        return None
    step = STEP.search(WHICH_WEEKDAY.sub(" ", rest))
    after, before = AFTER.search(rest), BEFORE.search(rest)
    if (step is None) != (after is None and before is None) or (after and before):
        return None
    if not _is_only(rest, WHICH_WEEKDAY, WHICH_DATE, STEP, AFTER, BEFORE):
        return None
    target: date | None = known[0]
    if step is not None:
        count = _count_of(step)
        if count is None:
            return None
        target = moved(known[0], -count if before else count, _unit(step))
    elif not by_weekday:
        return None
    if target is None:
        return None
    return _weekday(response, language, target) if by_weekday else _date(response, language, target)


def _unit(match: re.Match[str]) -> TimeUnit:
    return UNITS[(match["english"] or match["han"] or match["short"]).lower()]


def _count_of(step: re.Match[str]) -> int | None:
    if step["number"]:
        return int(value_of(step["number"]) if not step["number"].isdigit() else step["number"])
    words = step["figure"].lower()
    if words.split()[-1] in ("a", "an"):
        return 1
    values = find_quantities(f"{words} times", "en")
    return int(values[0].low) if values and values[0].low.is_integer() else None


def _counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def _figure(
    response: str, language: str, unit: TimeUnit, right: str, is_right: Callable[[float], bool]
) -> DateFinding | None:
    """The response's own figure; durations count before bare numbers."""
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
        _Given(figure, is_right(figure), q.start, q.end)
        for q in lasting or [q for q in free if not q.unit and not q.noun]
        for figure in (round(q.low / SECONDS[unit], 6) if q.unit else q.low,)
    ]
    return _chosen(response, given, right)


def _weekday(response: str, language: str, target: date) -> DateFinding | None:
    given = [
        _Given(d.weekday, d.weekday == target.weekday(), d.start, d.end)
        for d in find_dates(response, language)
        if d.weekday is not None
    ]
    if not given:  # a weekday alone is written small at times: "friday"
        given = [
            _Given(d.weekday, d.weekday == target.weekday(), d.start, d.end)
            for d in find_dates(response.title(), language)
            if d.weekday is not None and len(response.title()) == len(response)
        ]
    return _chosen(response, given, weekday_name(target))


def _date(response: str, language: str, target: date) -> DateFinding | None:
    given = []
    for found in find_dates(response, language):
        if found.month is None or found.day is None or found.ambiguous or found.kind != "point":
            continue
        is_right = (found.year or target.year, found.month, found.day) == (
            target.year,
            target.month,
            target.day,
        )
        given.append(_Given(found.month * 100 + found.day, is_right, found.start, found.end))
    return _chosen(response, given, target.isoformat())


def _chosen(response: str, given: Sequence[_Given], right: str) -> DateFinding | None:
    """The answer among what the response says: its first or its last figure.

    A right figure in the middle of others may be a step of the working: that decides nothing.
    """
    if not given:
        return None
    holds = given[0].is_right or given[-1].is_right
    if not holds and any(item.is_right for item in given):
        return None
    item = given[0] if given[0].is_right else given[-1]
    return DateFinding(holds, right, response[item.start : item.end], item.start, item.end)
