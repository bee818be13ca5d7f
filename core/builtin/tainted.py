"""Follows numbers and names of wrong statements into the statements that use them.

Source: HaluAgent 2.3 (global reflection: a step based on a wrong result is wrong too).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from core.audited import ToolUse
from core.builtin.conclusions import concludes
from core.builtin.reading import Unit, read
from core.evidence.terms import fold
from core.records import Case, Passage, Statement

FOLLOWED = ("quantity", "date", "name")
WRITTEN = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Spoiled:
    """Why a statement cannot stand, and the wrong statements that it rests on."""

    reason: str
    because_of: tuple[int, ...]


@dataclass
class Taint:
    """What wrong statements brought in so far; statements are taken in the order of the text.

    `owners` maps a value to the wrong statement that brought it in, `meant` to the words beside it
    there: 12 apples spoil no 12 months.
    """

    case: Case
    owners: dict[str, int] = field(default_factory=dict)
    meant: dict[str, frozenset[str]] = field(default_factory=dict)
    corrected: dict[int, frozenset[str]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.known |= set(_values(read(self.case.question, self.case.language).units))

    def spoils(
        self, statement: Statement, last: Statement | None, passages: Sequence[Passage] = ()
    ) -> Spoiled | None:
        """Whether it rests on something wrong; `last` is the statement before it.

        What its passages say too, of the same things, it may have from them.
        """
        language = self.case.language
        units = read(statement.text, language).units
        values, words = _values(units), _words(units)
        follows = concludes(statement.text, language)
        for value, shown in values.items():
            owner = self.owners.get(value)
            if owner is None or self._is_corrected(owner, values):
                continue
            if self._is_given(value, words, passages):
                continue
            if follows or words & self.meant[value] or _is_sum(statement.text):
                reason = f"It uses “{shown}”, which a wrong statement brought in."
                return Spoiled(reason, (owner,))
        is_next = last is not None and last.index in self.wrong
        if follows and last is not None and is_next and not self._is_corrected(last.index, values):
            return Spoiled(
                "It concludes from the statement before it, which is wrong.", (last.index,)
            )
        return None

    def take(self, statement: Statement, is_wrong: bool, uses: Sequence[ToolUse]) -> None:
        """Go past a statement; what a wrong one brought in new is followed from here on."""
        units = read(statement.text, self.case.language).units
        values = _values(units)
        if is_wrong:
            self.wrong.add(statement.index)
            named = [use for use in uses if use.label == "hallucinated" and use.start is not None]
            new = _inside(units, statement, named) if named else values
            for value in new:
                if value not in self.known:
                    self.owners[value] = statement.index
                    self.meant[value] = _words(units)
            right = " ".join(use.instead for use in named)
            fixed = _values(read(right, self.case.language).units) if right else {}
            self.corrected[statement.index] = frozenset(fixed)
        self.known |= set(values)

    def _is_given(self, value: str, words: frozenset[str], passages: Sequence[Passage]) -> bool:
        """True where a passage holds the value beside a word of the statement."""
        read_in = [read(passage.text, self.case.language).units for passage in passages]
        return any(value in _values(units) and words & _words(units) for units in read_in)

    def _is_corrected(self, owner: int, values: Iterable[str]) -> bool:
        """True where the statement says what the wrong one should have said."""
        return not self.corrected.get(owner, frozenset()).isdisjoint(values)


def _values(units: Sequence[Unit]) -> dict[str, str]:
    """Comparable numbers, dates and names, with the words that show them."""
    followed = [unit for unit in units if unit.kind in FOLLOWED]
    return {key: unit.text for unit in followed for key in _keys(unit)}


def _keys(unit: Unit) -> tuple[str, ...]:
    """A number by its value, and as it is written: 8 days are the 8 of the next sum."""
    if unit.quantity is None:
        return (fold(unit.text),)
    written = WRITTEN.search(unit.text)
    value = f"{unit.quantity.low:g} to {unit.quantity.high:g}"
    return (value, written.group()) if written else (value,)


def _words(units: Sequence[Unit]) -> frozenset[str]:
    """What the statement speaks of, beside its numbers; a number's unit is among its words."""
    plain = {word for unit in units if unit.kind in ("word", "name", "char") for word in unit.words}
    beside = {word for unit in units if unit.quantity is not None for word in unit.words}
    return frozenset(word for word in plain | beside if not word.replace(".", "").isdigit())


def _inside(units: Sequence[Unit], statement: Statement, uses: Sequence[ToolUse]) -> dict[str, str]:
    """The values among the words that tools refuted; places of uses are in the response."""
    places = [(u.start - statement.start, u.end - statement.start) for u in uses
              if u.start is not None and u.end is not None]  # fmt: skip
    inside = [u for u in units if any(a < u.end and u.start < b for a, b in places)]
    return _values(inside)


def _is_sum(text: str) -> bool:
    """True where it calculates: there a wrong number spoils whatever it is called."""
    return any(sign in text for sign in "=≈") and any(char.isdigit() for char in text)
