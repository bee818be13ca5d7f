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
from core.tools.values.dates import DateValue, find_dates
from core.tools.values.han_numbers import value_of
from core.tools.values.quantities import find_quantities

LONGEST = 300
FIRST_YEAR = 1583  # before it, which calendar is meant is open
UNITS: dict[str, TimeUnit] = {
    "day": "day", "week": "week", "month": "month", "year": "year",
    "天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month",
    "年": "year",
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
BORN_BEFORE = re.compile(r"(?:\bborn(?:\s+(?:on|in))?|生于|出生于|诞生于)\s*$", re.IGNORECASE)
BORN_BEHIND = re.compile(r"\s*(?:出生|诞生)(?!于)")
# Another's age, or one that is not meant.
OF_ANOTHER = re.compile(
    r"['’]s\b|\b(?:his|her|their|its|not|never|before)\b|的(?!时候|年龄)|[不没]", re.IGNORECASE
)
# Whether both ends count is open, but for this wording, whose shared answers count one.
SETTLED = re.compile(r"从\s*到\s*共有多少天")
MOST_STEPS = 3
STEP = re.compile(
    r"(?P<figure>\d{1,6}|[a-z]+(?:[- ][a-z]+)?)\s+(?P<english>day|week|month|year)s?\b"
    r"|(?P<number>\d{1,6}|[一二三四五六七八九十百千两零〇]{1,9})\s*" + HAN_UNIT,
    re.IGNORECASE,
)
AFTER = re.compile(r"\b(?:after|later|from|following|past)\b|后", re.IGNORECASE)
BEFORE = re.compile(r"\b(?:before|earlier|prior|preceding|ago)\b|前", re.IGNORECASE)
INCLUSIVE = re.compile(
    r"\binclusive(?:ly)?\b"
    r"|\bboth (?:end )?(?:days|dates|ends)(?: are)? (?:included|counted)\b"
    r"|\b(?:including|counting) (?:both|the (?:start|first))[a-z ]*|\bthrough\b"
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
SIGNS_OF_HAN = re.compile("[\u4e00-\u9fff]")


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
    said_in = _tongue(response, tongue)
    if HOW_OLD.search(rest) and BORN.search(rest):
        is_all = len(find_dates(question, tongue)) == len(dates)
        return _age(question, dates, response, said_in) if is_all else None
    for way in (_difference, _step):
        found = way(rest, known, response, said_in)
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
    if found.year < FIRST_YEAR:
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


def _age(
    question: str, dates: Sequence[DateValue], response: str, language: str
) -> DateFinding | None:
    """Full years from the one birth that is told of to the other date."""
    births = [
        found
        for found in dates
        if BORN_BEFORE.search(question[: found.start]) or BORN_BEHIND.match(question, found.end)
    ]
    others = [_full(found) for found in dates if found not in births]
    if len(births) != 1 or len(others) != 1 or len(BORN.findall(question)) != 1:
        return None
    born, day = _full(births[0]), others[0]
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
    return UNITS[(match["english"] or match["han"] or match["short"]).lower()]


def _count_of(step: re.Match[str]) -> int | None:
    if step["number"]:
        return int(value_of(step["number"]) if not step["number"].isdigit() else step["number"])
    words = step["figure"].lower()
    if words.split()[-1] in ("a", "an"):
        return 1
    values = find_quantities(f"{words} times", "en")
    return int(values[0].low) if values and values[0].low.is_integer() else None
