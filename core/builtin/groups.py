"""Coordinate groups: the parts of a sentence that "and", commas and relative pronouns set apart.

"The train leaves at 10:15 and arrives at 12:40" has two; a value of the one says nothing about the
other's. Groups need no grammar: what is shared and what is a group's own is decided where two
groups are compared (mixed.py).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
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
    inner = _inner_tokens(reading)
    ranges = _range_ends(reading)
    starts: list[tuple[int, Token | None]] = [(0, None)]
    for before, token in itertools.pairwise(reading.tokens):
        opens = token.norm in reading.words.coordinators or token.start in ranges
        marked = MARKS.search(reading.text, before.end, token.start)
        if (opens or marked) and token.start not in inner:
            starts.append((token.start, token if opens else None))
    ends = [start for start, _ in starts[1:]] + [len(reading.text)]
    places = [unit.start for unit in reading.units]
    return tuple(
        Group(start, end, _between(places, start, end), opener)
        for (start, opener), end in zip(starts, ends, strict=True)
        if start < end
    )


def _between(places: Sequence[int], start: int, end: int) -> tuple[int, ...]:
    """Indexes of the sorted places within `[start, end)`."""
    return tuple(range(bisect_left(places, start), bisect_left(places, end)))


def _inner_tokens(reading: Reading) -> frozenset[int]:
    """Starts of the tokens inside a unit, which no group begins with: "May 14, 1932"."""
    starts = [token.start for token in reading.tokens]
    return frozenset(
        start
        for unit in reading.units
        for start in starts[bisect_right(starts, unit.start) : bisect_left(starts, unit.end)]
    )


def _range_ends(reading: Reading) -> frozenset[int]:
    """Starts of each "to" as in "from 2,000 in 1950 to 5,000 in 2000"."""
    places = [unit.start for unit in reading.units]
    found: set[int] = set()
    opened: Token | None = None
    for token in reading.tokens:
        if token.norm == OPENS_RANGE:
            opened = token
        if token.norm != CLOSES_RANGE or opened is None:
            continue
        first, following = bisect_left(places, opened.end), bisect_left(places, token.end)
        inside = first < following < len(places)
        if inside and reading.units[first].kind == reading.units[following].kind:
            found.add(token.start)
    return frozenset(found)


def preposition(reading: Reading, unit: Unit) -> str:
    """The preposition right before a unit, past articles: "to", "in"; empty if there is none."""
    return _prepositions(reading).get(unit.start, "")


@lru_cache(maxsize=20_000)
def _prepositions(reading: Reading) -> dict[int, str]:
    """Start of each unit to the preposition before it."""
    words, tokens = reading.words, reading.tokens
    ends = [token.end for token in tokens]
    found: dict[int, str] = {}
    for unit in reading.units:
        last = bisect_right(ends, unit.start) - 1
        while last >= 0 and tokens[last].norm in words.articles:
            last -= 1
        if last < 0 or MARKS.search(reading.text, tokens[last].end, unit.start):
            continue
        if words.is_preposition(tokens[last].norm):
            found[unit.start] = tokens[last].norm
    return found


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
