"""Words of two groups of one sentence put together: a value of the one said of the other.

Against "The train leaves at 10:15 and arrives at 12:40" the claim "The train arrives at 10:15" has
every word right. What gives it away: the arrival's group has a time of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from core.builtin.alignment import may_be_name
from core.builtin.contrast import Contrast, Kind, Pair, contrast, says, value_words
from core.builtin.groups import groups, leads_to, preposition
from core.builtin.reading import Unit

KINDS: Mapping[str, Kind] = {"quantity": "quantity", "date": "date", "name": "name"}
ORDER = ("quantity", "date", "name")


def mixed_contrasts(pair: Pair) -> Iterator[Contrast]:
    """Values and names of one group against what their neighbour's own group has there."""
    sides = _Sides(pair)
    if len(sides.parts) > 1:
        for place, rival in sides.conflicts():
            yield from _contrast(pair, place, rival)
    for place, rival in sides.misplaced():
        yield from _contrast(pair, place, rival)


def _contrast(pair: Pair, place: int, rival: Unit) -> Iterator[Contrast]:
    unit = pair.claim.units[place]
    shown = value_words(pair.whole.evidence, rival)
    yield from contrast(
        KINDS.get(unit.kind, "name"),
        pair,
        unit.start,
        unit.end,
        shown,
        says(shown, unit.text),
        [unit],
    )


class _Sides:
    """A claim's units, and in which groups of the evidence each stands."""

    def __init__(self, pair: Pair) -> None:
        self.claim = pair.claim
        self.evidence = pair.whole.evidence
        self.parts = groups(self.evidence)
        self.twins = pair.whole.twins
        self.used = {j for twins in self.twins for j in twins}
        group = {j: n for n, part in enumerate(self.parts) for j in part.units}
        self.at = [frozenset(group[j] for j in twins) for twins in self.twins]

    def conflicts(self) -> Iterator[tuple[int, Unit]]:
        """(the claim's unit to contest, the evidence's own in its place)."""
        for part in groups(self.claim):
            for one, other in itertools.combinations(part.units, 2):
                if not self.at[one] or not self.at[other] or self.at[one] & self.at[other]:
                    continue
                found = self._between(one, other)
                if found:
                    yield found

    def _between(self, one: int, other: int) -> tuple[int, Unit] | None:
        """What to contest of two units that no group of the evidence has together."""
        found = {i: self._rival(i, j) for i, j in ((one, other), (other, one)) if self._kind(i)}
        rivals = {i: rival for i, rival in found.items() if rival is not None}
        if len(rivals) == 2:
            contested = min((other, one), key=lambda i: ORDER.index(self._kind(i)))
            return contested, rivals[contested]
        for i, rival in rivals.items():
            beside = other if i == one else one
            if not self._opens(i) and self._is_of_its_group(i, beside, rival):
                return i, rival
        return None

    def _opens(self, place: int) -> bool:
        """True for what the evidence opens with: the later groups speak of it too."""
        return bool(self.twins[place]) and min(self.twins[place]) == 0

    def _kind(self, place: int) -> str:
        """Kind of value or name; empty for words, but for a capital that opens the claim."""
        unit = self.claim.units[place]
        if may_be_name(unit):
            return "name"
        return unit.kind if unit.kind in KINDS else ""

    def _is_of_its_group(self, value: int, word: int, rival: Unit) -> bool:
        """True when the word belongs to its own group, with the rival, and is not shared."""
        if self._is_measured(value, word, rival):
            return True
        mine, its = min(self.at[value]), min(self.at[word])
        own = [j for j in self.parts[mine].units if j not in self.used]
        if its < mine:  # what the first group says is shared, unless the later has its own verb
            return not self._opens(word) and self._has_own_verb(value, mine, own)
        twin = next(j for j in self.twins[word] if j in self.parts[its].units)
        if self.evidence.units.index(rival) + 1 == twin and rival.kind == "name":
            return False  # "a South Korean singer" says what kind of singer
        leads = self.evidence.units[twin].start < rival.start
        return leads or any(self.evidence.units[j].kind == "word" for j in own)

    def _has_own_verb(self, value: int, group: int, unused: list[int]) -> bool:
        """True when the value's group begins with a word that the claim leaves out."""
        part, units = self.parts[group], self.evidence.units
        first = part.units[0]
        twin = next(j for j in self.twins[value] if j in part.units)
        is_verb = units[first].kind == "word" and not units[first].text[:1].isupper()
        return (
            first in unused
            and is_verb
            and first < twin
            and leads_to(self.evidence, units[first], units[twin])
        )

    def _is_measured(self, value: int, word: int, rival: Unit) -> bool:
        """True for "10 mg of aspirin" against "5 mg of aspirin and 10 mg of ibuprofen"."""
        side = word - value
        units = self.evidence.units
        there = [units.index(rival) + side, *(j + side for j in self.twins[value])]
        if side != 1 or not all(0 <= j < len(units) for j in there):
            return False
        return there[0] in self.twins[word] and all(
            j not in self.used and units[j].kind == self.claim.units[word].kind for j in there[1:]
        )

    def _rival(self, unit: int, beside: int) -> Unit | None:
        """What stands in the other's group where `unit` stands in its own; None if nothing does."""
        rivals = [self._rival_in(unit, number) for number in sorted(self.at[beside])]
        return rivals[0] if all(rivals) else None

    def _rival_in(self, unit: int, number: int) -> Unit | None:
        for j in self.parts[number].units:
            other = self.evidence.units[j]
            fits = j not in self.used and self._parallel(unit, j)
            if fits and _like(self.claim.units[unit], other):
                return other
        return None

    def _parallel(self, unit: int, rival: int) -> bool:
        """True when both follow the same preposition, or values of which one is left out."""
        theirs = preposition(self.evidence, self.evidence.units[rival])
        mine = {preposition(self.evidence, self.evidence.units[j]) for j in self.twins[unit]}
        mine.add(preposition(self.claim, self.claim.units[unit]))
        is_value = self.evidence.units[rival].kind != "name"
        return theirs in mine or (is_value and (not theirs or "" in mine))

    def misplaced(self) -> Iterator[tuple[int, Unit]]:
        """Values and names after the opposite preposition, where the evidence has a rival.

        "rose to 10 million" against "rose from 10 million to 13 million".
        """
        for i, unit in enumerate(self.claim.units):
            here = preposition(self.claim, unit)
            if unit.kind not in KINDS or not here or not self.twins[i]:
                continue
            there = {preposition(self.evidence, self.evidence.units[j]) for j in self.twins[i]}
            if not all(frozenset((here, word)) in self.claim.words.places for word in there):
                continue
            for j, other in enumerate(self.evidence.units):
                fits = j not in self.twins[i] and preposition(self.evidence, other) == here
                if fits and _like(unit, other) and self._is_free(j, here):
                    yield i, other
                    break

    def _is_free(self, rival: int, here: str) -> bool:
        """True when the claim does not say the rival after that preposition itself."""
        return not any(
            rival in twins and preposition(self.claim, self.claim.units[i]) == here
            for i, twins in enumerate(self.twins)
        )


def _like(one: Unit, other: Unit) -> bool:
    """Of one kind and unit, so that the one could stand for the other."""
    if one.quantity and other.quantity:
        return one.quantity.unit == other.quantity.unit
    if one.kind == "word":  # a capital that opens the claim
        return other.kind == "name"
    return one.kind == other.kind
