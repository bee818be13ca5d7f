"""Lays a claim beside a passage: what is the same, what stands in the same slot, what is absent.

Two units are the same when their stems are, when one name is part of the other, or when they are
spelt almost alike. Order is kept by the longest common subsequence (rapidfuzz), so that what lies
between the same neighbours on both sides is a slot: the claim's words there against the passage's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from core.builtin.reading import Reading, Unit, clauses
from core.tools.values.dates import compare_dates
from core.tools.values.quantities import Quantity, compare

ALIKE_FROM = 88.0
SHORTEST_ALIKE = 6
NEIGHBOUR_SHARE = 0.8
BEARING_SHARE = 0.3
LONGEST_OPENING = 4
STAND_INS = frozenset("it its he his him she her they their them there this these".split())
OPENING_UNITS = 2
AGREE = ("equal", "compatible")


@dataclass(frozen=True)
class Slot:
    """Units of the claim and of the evidence between the same neighbours."""

    claim: tuple[Unit, ...]
    evidence: tuple[Unit, ...]
    anchored: bool


@dataclass(frozen=True)
class Alignment:
    """A claim against one stretch of evidence.

    `matched` maps the index of a claim unit to the index of the evidence unit that carries it,
    whatever their order. `coverage` in [0, 1] is the carried share by weight; words found only
    in the neighbouring sentence count for less.
    """

    claim: Reading
    evidence: Reading
    matched: dict[int, int]
    nearby: frozenset[int]
    slots: tuple[Slot, ...]
    coverage: float

    @cached_property
    def twins(self) -> tuple[tuple[int, ...], ...]:
        """For each claim unit the indexes of all evidence units that say the same."""
        return tuple(
            tuple(j for j, other in enumerate(self.evidence.units) if same(unit, other))
            for unit in self.claim.units
        )

    def unmatched(self) -> list[int]:
        """Indexes of claim units that neither the passage nor its neighbour carries."""
        return [
            i
            for i in range(len(self.claim.units))
            if i not in self.matched and i not in self.nearby
        ]

    def frame(self, leaving_out: Sequence[Unit]) -> float:
        """The carried share of the claim when the given units are not counted."""
        left = [i for i, unit in enumerate(self.claim.units) if unit not in leaving_out]
        return _share(self.claim.units, left, self.matched, self.nearby)


def same(one: Unit, other: Unit) -> bool:
    """True when two units say the same thing."""
    if one.quantity and other.quantity:
        return _same_quantity(one.quantity, other)
    if one.date and other.date:
        return compare_dates(one.date, other.date) in AGREE
    if not one.words or not other.words:
        return False
    if "name" in (one.kind, other.kind):
        return _same_name(one, other)
    return one.words == other.words or _alike(one.words[0], other.words[0])


def may_be_name(unit: Unit) -> bool:
    """True for names, and for capitalised words that open a sentence, which may be any word."""
    return unit.kind == "name" or (unit.kind == "word" and unit.text[:1].isupper())


def is_vital(unit: Unit) -> bool:
    """True for what must stand in the evidence itself: values, names, a capital that may be one."""
    return unit.kind in ("quantity", "date") or may_be_name(unit)


def _same_quantity(claim: Quantity, other: Unit) -> bool:
    """True when the values agree; an uncounted number also as it stands under "(thousands)"."""
    if other.quantity and compare(claim, other.quantity) in AGREE:
        return True
    unscaled = other.unscaled
    return bool(unscaled and not claim.noun and compare(claim, unscaled) in AGREE)


def _same_name(one: Unit, other: Unit) -> bool:
    """Part of the other, spelt alike, or the same last name with first names that may agree."""
    mine, theirs = set(one.words), set(other.words)
    if mine <= theirs or theirs <= mine or _alike(one.text, other.text):
        return True
    if min(len(one.words), len(other.words)) < 2 and not (mine & theirs):
        return len(one.words) + len(other.words) > 2 and _alike(one.words[-1], other.words[-1])
    first, second = one.words[0], other.words[0]
    shortened = first.startswith(second[:3]) or second.startswith(first[:3])
    return _alike_last(one.words[-1], other.words[-1]) and (shortened or _alike(first, second))


def _alike_last(one: str, other: str) -> bool:
    return one == other or _alike(one, other)


def _alike(one: str, other: str) -> bool:
    if min(len(one), len(other)) < SHORTEST_ALIKE:
        return False
    return fuzz.ratio(one.casefold(), other.casefold()) >= ALIKE_FROM


def align(
    claim: Reading,
    evidence: Reading,
    beside: Sequence[Unit] = (),
    heading: Sequence[Unit] = (),
) -> Alignment:
    """The claim beside the evidence.

    `beside` are units of its neighbours, which only stand in for what a pronoun leaves out: names,
    and what the claim opens with; what is said of it must stand in the evidence itself, and a
    name must where the evidence names another and has no pronoun. `heading`
    are units that a table's row or a chart's bar is read with, and count for everything.
    """
    matched: dict[int, int] = {}
    free = list(range(len(evidence.units)))
    for i, unit in enumerate(claim.units):
        twin = next((j for j in free if same(unit, evidence.units[j])), None)
        if twin is not None:
            matched[i] = twin
            free.remove(twin)
    taken = set(matched.values())
    has_rival = not (STAND_INS & evidence.norms()) and any(
        unit.kind == "name" and j not in taken for j, unit in enumerate(evidence.units)
    )
    nearby = frozenset(
        i
        for i, unit in enumerate(claim.units)
        if i not in matched
        and (
            any(same(unit, other) for other in heading)
            or (
                _may_be_left_out(claim.units, i)
                and not (i == 0 and _opens_with_another(evidence, matched))
                and not (i > 0 and has_rival)
                and any(same(unit, other) for other in beside)
            )
        )
    )
    if not any(unit.kind == "name" for unit in (*beside, *heading)):
        nearby |= _open_subject(claim, evidence, matched)
    if not _bears(claim.units, matched, nearby):
        nearby = frozenset()
    everything = range(len(claim.units))
    return Alignment(
        claim,
        evidence,
        matched,
        nearby,
        _slots(claim.units, evidence.units, matched),
        _share(claim.units, list(everything), matched, nearby),
    )


def _may_be_left_out(units: Sequence[Unit], place: int) -> bool:
    """Names, and what the claim opens with (of an unspaced script, its first characters)."""
    if place == 0 or units[place].kind == "name":
        return True
    opening = units[: place + 1]
    run = all(u.kind == "char" for u in opening) and place < LONGEST_OPENING
    return run and all(a.end == b.start for a, b in itertools.pairwise(opening))


def _bears(units: Sequence[Unit], matched: dict[int, int], nearby: frozenset[int]) -> bool:
    """True when the evidence itself carries half of what its neighbours do not stand in for."""
    rest = [i for i in range(len(units)) if i not in nearby]
    own = sum(units[i].weight for i in rest if i in matched)
    return own > 0 and own >= BEARING_SHARE * sum(units[i].weight for i in rest)


def _opens_with_another(evidence: Reading, matched: dict[int, int]) -> bool:
    """True for evidence with a subject of its own, which the sentence before does not lend one."""
    if not evidence.tokens or not evidence.units or 0 in matched.values():
        return False
    opening = evidence.tokens[0]
    return not opening.function and evidence.units[0].start == opening.start


def _open_subject(claim: Reading, evidence: Reading, matched: dict[int, int]) -> frozenset[int]:
    """The claim's subject, where the evidence opens with a pronoun or article in its stead.

    Not where the evidence goes on to name somebody else (“The keeper Olga Strand …”), nor where
    the sentence before names whom the pronoun means: then it matches by itself or not at all.
    """
    first = next((i for i, u in enumerate(claim.units[:2]) if may_be_name(u)), None)
    if first is None or first in matched or not evidence.tokens:
        return frozenset()
    stands_in = evidence.tokens[0].function or STAND_INS & evidence.norms()
    named = any(unit.kind == "name" for unit in evidence.units[:OPENING_UNITS])
    return frozenset([first]) if stands_in and not named else frozenset()


def best_clause(alignment: Alignment) -> Alignment:
    """The claim beside the one clause of the evidence that it shares most with."""
    parts = clauses(alignment.evidence)
    if len(parts) == 1:
        return alignment
    aligned = [align(alignment.claim, part) for part in parts]
    # of equals the one that holds what the claim ends with: what is said, rather than of whom
    return max(aligned, key=lambda item: (item.coverage, max(item.matched, default=-1)))


def _share(
    units: Sequence[Unit],
    counted: Sequence[int],
    matched: dict[int, int],
    nearby: frozenset[int],
) -> float:
    total = sum(units[i].weight for i in counted)
    if not total:
        return 0.0
    carried = sum(units[i].weight for i in counted if i in matched)
    carried += NEIGHBOUR_SHARE * sum(units[i].weight for i in counted if i in nearby)
    return carried / total


def _slots(
    claim: Sequence[Unit], evidence: Sequence[Unit], matched: dict[int, int]
) -> tuple[Slot, ...]:
    """Stretches between common neighbours where the two differ."""
    left = [f"={i}" if i in matched else f"c{i}" for i in range(len(claim))]
    twins = {j: i for i, j in matched.items()}
    right = [f"={twins[j]}" if j in twins else f"e{j}" for j in range(len(evidence))]
    slots: list[Slot] = []
    claim_from = evidence_from = 0
    blocks = [
        (op.src_start, op.src_end, op.dest_start, op.dest_end)
        for op in LCSseq.opcodes(left, right)
        if op.tag == "equal"
    ]
    for a, b, c, d in [*blocks, (len(claim), len(claim), len(evidence), len(evidence))]:
        here = tuple(claim[i] for i in range(claim_from, a) if i not in matched)
        there = tuple(evidence[j] for j in range(evidence_from, c) if j not in twins)
        if here and there:
            inner = claim_from > 0 and a < len(claim)
            slots.append(Slot(here, there, anchored=inner or len(blocks) > 0))
        claim_from, evidence_from = b, d
    return tuple(slots)
