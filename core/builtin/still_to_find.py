"""What of a statement is to be looked for in the sources once tools have worked out the rest.

Of a right sum that is its result, of what the calendar bears out nothing.
Source: HaluAgent 2.3 (a tool by the type of a sentence); that one sentence may hold both what is
worked out and what is told is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from core.audited import ToolUse
from core.builtin.reading import read
from core.records import Statement

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SCALES = re.compile(r"[*×xX·/÷%^]|\b(?:of|times|by|per)\b|[乘除的]", re.IGNORECASE)
SAYS_FROM = 1.0  # one word, or two Chinese characters
BY_VALUE = frozenset({"number_or_date", "reasoning"})
Place = tuple[int, int]


class _Equation(msgspec.Struct, frozen=True):
    formula: str
    stated: str
    start: int
    end: int
    result: Place
    holds: bool | None = None


class _Point(msgspec.Struct, frozen=True):
    finding: str
    start: int
    end: int
    category: str = ""
    evidence: str = ""


class _Told(msgspec.Struct, frozen=True):
    """What of a tool's work is asked for here; all else in it is left aside."""

    text: str = ""
    equations: tuple[_Equation, ...] = ()
    follows: tuple[Place, ...] = ()
    points: tuple[_Point, ...] = ()
    readers: tuple[object, ...] = ()
    finding: str = ""


DECODER = msgspec.json.Decoder(_Told)


@dataclass(frozen=True)
class Sum:
    """A right sum: the numbers it is made of and those of its result, as they are written.

    Where it `is_scaled` it multiplies or divides: what comes of it is nothing of the kind of its
    parts, which therefore cannot stand in its place.
    """

    numbers: frozenset[str]
    value: frozenset[str]
    is_scaled: bool

    @property
    def telling(self) -> frozenset[str]:
        """Its numbers of more than one digit: “2” stands somewhere in most texts."""
        return frozenset(number for number in self.numbers if len(number) > 1)


@dataclass(frozen=True)
class Rest:
    """The statement's `text` with blanks for what is not to be looked for, and its right sums."""

    text: str
    sums: tuple[Sum, ...] = ()

    def says_something(self, language: str) -> bool:
        """True where it has words beside its numbers and dates: pure arithmetic has none."""
        units = read(self.text, language).units
        words = (unit for unit in units if unit.kind in ("word", "char", "name"))
        return sum(u.weight for u in words if not u.text[0].isnumeric()) >= SAYS_FROM


def rest_of(statement: Statement, used: Sequence[ToolUse]) -> Rest:
    """What is left of the statement after the tools that were used for it."""
    text, sums = statement.text, []
    for use in used:
        if use.outcome != "found" or _decoded(use.given).text != statement.text:
            continue
        told = _decoded(use.gave)
        for place in told.follows:
            text = _blanked(text, place)
        for one in told.equations:
            stated = _place_of_result(one, statement.text) if one.holds else None
            if stated is not None:
                text = _blanked(_blanked(text, (one.start, stated[0])), (stated[1], one.end))
                sums.append(_sum_of(one))
    return Rest(text, tuple(sums))


def denies_no_value(use: ToolUse, rest: Rest, statement: Statement, sources: Sequence[str]) -> bool:
    """True where the comparison found no other value in the sources in place of the statement's.

    A part of the sum itself is no other value. Who compares without naming words, as a language
    model does, is taken at its word.
    """
    told = _decoded(use.gave)
    if not told.readers:
        return told.finding != "contradicted"
    against = [p for p in told.points if p.finding == "contradicted" and p.category in BY_VALUE]
    return all(_is_part(point, rest, statement, sources) for point in against)


def denies_only_parts(
    use: ToolUse, rest: Rest, statement: Statement, sources: Sequence[str]
) -> bool:
    """True where nothing is held against the statement but results whose parts the sources have."""
    against = [point for point in _decoded(use.gave).points if point.finding != "carried"]
    return bool(against) and all(_is_part(p, rest, statement, sources) for p in against)


def _is_part(point: _Point, rest: Rest, statement: Statement, sources: Sequence[str]) -> bool:
    """True for a result that the sources have in parts, and nothing but parts in its place.

    What a product is made of is told in the sources or not; beside it they may tell other prices.
    """
    start, end = point.start - statement.start, point.end - statement.start
    said = frozenset(NUMBER.findall(statement.text[max(0, start) : end]))
    given = {number for text in sources for number in NUMBER.findall(text)}
    instead = set(NUMBER.findall(point.evidence)) if point.finding == "contradicted" else set()
    own = [one for one in rest.sums if said <= one.value]
    is_told = any(one.is_scaled and one.telling and one.telling <= given for one in own)
    return is_told or any(
        instead <= one.numbers and (one.numbers <= given or one.is_scaled) for one in own
    )


def _sum_of(one: _Equation) -> Sum:
    numbers, value = (frozenset(NUMBER.findall(side)) for side in (one.formula, one.stated))
    return Sum(numbers, value, SCALES.search(one.formula) is not None)


def _place_of_result(one: _Equation, text: str) -> Place | None:
    """Where the result stands with its unit; None for a sum that is told in other words."""
    first, last = one.result
    start = text.find(one.stated, max(one.start, last - len(one.stated)), one.end)
    is_written = one.formula in text[one.start : one.end]
    if not one.stated or not is_written or not 0 <= start <= first:
        return None
    return start, start + len(one.stated)


def _blanked(text: str, place: Place) -> str:
    start, end = max(0, place[0]), min(place[1], len(text))
    return f"{text[:start]}{' ' * (end - start)}{text[end:]}" if start < end else text


def _decoded(told: str) -> _Told:
    """Nothing where it is of another shape: a model may have called the tool in its own way."""
    try:
        return DECODER.decode(told.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Told()
