"""Coordinate groups: the parts of a sentence that "and", commas and relative pronouns set apart.

"The train leaves at 10:15 and arrives at 12:40" has two; a value of the one says nothing about the
other's. Groups need no grammar: what is shared and what is a group's own is decided where two
groups are compared (mixed.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

from core.builtin.reading import Reading, Token, Unit

MARKS = regex.compile(r"[,;:，；、،؛()\[\]–—]")
OPENS_RANGE, CLOSES_RANGE = "from", "to"
VALUES = ("quantity", "date")


@dataclass(frozen=True)
class Group:
    """`[start, end)` of the text read, the group's units by index, and the token that opens it."""

    start: int
    end: int
    units: tuple[int, ...]
    opener: Token | None

    def holds(self, place: int) -> bool:
        """True when the offset lies in the group."""
        return self.start <= place < self.end


@lru_cache(maxsize=20_000)
def groups(reading: Reading) -> tuple[Group, ...]:
    """The sentence's groups in order; one of its own where nothing divides it."""
    starts: list[tuple[int, Token | None]] = [(0, None)]
    for before, token in zip((None, *reading.tokens), reading.tokens, strict=False):
        opens = token.norm in reading.words.coordinators or _closes_range(reading, token)
        marked = before is not None and MARKS.search(reading.text, before.end, token.start)
        inside = any(u.start < token.start < u.end for u in reading.units)
        if before is not None and (opens or marked) and not inside:
            starts.append((token.start, token if opens else None))
    ends = [start for start, _ in starts[1:]] + [len(reading.text)]
    return tuple(
        Group(
            start,
            end,
            tuple(i for i, u in enumerate(reading.units) if start <= u.start < end),
            opener,
        )
        for (start, opener), end in zip(starts, ends, strict=True)
        if start < end
    )


def preposition(reading: Reading, unit: Unit) -> str:
    """The preposition right before a unit, past articles: "to", "in"; empty if there is none."""
    before = [token for token in reading.tokens if token.end <= unit.start]
    while before and before[-1].norm in reading.words.articles:
        before.pop()
    if not before or not reading.words.is_preposition(before[-1].norm):
        return ""
    between = reading.text[before[-1].end : unit.start]
    return "" if MARKS.search(between) else before[-1].norm


def opens_with_predicate(reading: Reading, group: Group) -> bool:
    """True when a group begins with a word of its own that something follows.

    "arrives at 12:40" and "sold 30 cars" do; "sunny Rome" and "fresh eggs" are parts of a list.
    """
    if not group.units:
        return False
    units = [reading.units[i] for i in group.units]
    first = units[0]
    if first.kind != "word" or first.text[:1].isupper() or len(units) < 2:
        return False
    return leads_to(reading, first, units[1])


def leads_to(reading: Reading, first: Unit, unit: Unit) -> bool:
    """True when a word and a later unit of its group are not simply joined as "sunny Rome" is."""
    taken = {u.start for u in reading.units}
    between = [t for t in reading.tokens if first.end <= t.start < unit.start]
    return unit.kind in VALUES or any(t.start not in taken and t.function for t in between)


def _closes_range(reading: Reading, token: Token) -> bool:
    """The "to" of "from 2,000 in 1950 to 5,000 in 2000"."""
    if token.norm != CLOSES_RANGE:
        return False
    before = [t for t in reading.tokens if t.end <= token.start]
    opened = next((t for t in reversed(before) if t.norm == OPENS_RANGE), None)
    following = next((u for u in reading.units if u.start >= token.end), None)
    if opened is None or following is None:
        return False
    between = [u for u in reading.units if opened.end <= u.start < token.start]
    return bool(between) and between[0].kind == following.kind
