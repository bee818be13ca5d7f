"""A contrast: words of a claim against the evidence's own value, and how much it takes to count.

A contrast counts only if enough of the rest of the claim is carried: its frame. Offsets are in the
claim's text as read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from core.builtin.alignment import Alignment
from core.builtin.reading import Reading, Unit
from core.categories import Category
from core.tools.values.dates import describe_date, find_dates
from core.tools.values.quantities import describe, find_quantities

Kind = Literal[
    "quantity",
    "date",
    "name",
    "opposite",
    "family",
    "negation",
    "quantifier",
    "rank",
    "only",
    "roles",
    "sum",
    "place",
    "hedge",
    "condition",
    "kind",
]

LONGEST_BOUND = 4
FRAME: dict[Kind, float] = {
    "quantity": 0.5,
    "date": 0.5,
    "name": 0.6,
    "opposite": 0.5,
    "family": 0.6,
    "negation": 0.7,
    "quantifier": 0.65,
    "rank": 0.6,
    "only": 0.6,
    "roles": 0.75,
    "place": 0.75,
    "hedge": 0.8,
    "condition": 0.75,
    "kind": 0.3,
}
WEIGHT: dict[Kind, float] = {
    "quantity": 0.9,
    "date": 0.9,
    "name": 0.75,
    "opposite": 0.85,
    "family": 0.7,
    "negation": 0.85,
    "quantifier": 0.75,
    "rank": 0.85,
    "only": 0.6,
    "roles": 0.7,
    "sum": 0.9,
    "place": 0.75,
    "hedge": 0.55,
    "condition": 0.55,
    "kind": 0.85,
}
CATEGORY: dict[Kind, Category] = {
    "quantity": "number_or_date",
    "date": "number_or_date",
    "name": "wrong_entity",
    "opposite": "contradicted",
    "family": "wrong_entity",
    "negation": "contradicted",
    "quantifier": "contradicted",
    "rank": "contradicted",
    "only": "contradicted",
    "roles": "wrong_entity",
    "sum": "reasoning",
    "place": "contradicted",
    "hedge": "contradicted",
    "condition": "contradicted",
    "kind": "instruction_not_followed",
}


@dataclass(frozen=True)
class Contrast:
    """These words of the claim against the evidence's own value."""

    kind: Kind
    start: int
    end: int
    claim: str
    evidence: str
    explanation: str
    weight: float

    @property
    def category(self) -> Category:
        """What kind of hallucination it is."""
        return CATEGORY[self.kind]


@dataclass(frozen=True)
class Pair:
    """A claim beside a whole passage and beside the passage's closest clause."""

    whole: Alignment
    clause: Alignment
    own_start: int = 0

    @property
    def claim(self) -> Reading:
        """The claim as read."""
        return self.whole.claim


def contrast(
    kind: Kind, pair: Pair, start: int, end: int, evidence: str, but: str, left_out: Sequence[Unit]
) -> Iterator[Contrast]:
    """The contrast if its frame is wide enough; its weight grows with the frame."""
    frame = max(pair.clause.frame(left_out), pair.whole.frame(left_out))
    if frame >= FRAME[kind]:
        weight = WEIGHT[kind] * (0.6 + 0.4 * min(1.0, frame))
        words = pair.claim.text[start:end]
        yield Contrast(kind, start, end, words, evidence, but, round(weight, 3))


def says(evidence: str, claim: str) -> str:
    """The contrast in words."""
    return f"the evidence says “{evidence}”, not “{claim}”"


def value_words(reading: Reading, unit: Unit) -> str:
    """A unit in the text's own words, with what bounds it: "fewer than 60", "14 May 1932".

    Where the bound's words are not found before it, or the unit comes from a heading, it is put in
    words of our own.
    """
    if unit.unscaled is not None and unit.quantity:
        return describe(unit.quantity)
    value = unit.quantity or unit.date
    if value is None or value.bound == "exact":
        return reading.text[unit.start : unit.end]
    before = [token.start for token in reading.tokens if token.end <= unit.start]
    for start in before[: -LONGEST_BOUND - 1 : -1]:
        words = reading.text[start : unit.end]
        found = find_quantities if unit.quantity else find_dates
        if any(other.bound == value.bound for other in found(words, reading.language)):
            return words
    if unit.quantity:
        return describe(unit.quantity)
    return describe_date(unit.date) if unit.date else unit.text
