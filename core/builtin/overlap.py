"""How much of a claim the evidence carries, softly: by words, and by words close in context.

A word is carried when a passage has it, or has one that the encoder puts close; names and values
must stand there as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.builtin.alignment import Alignment, is_vital
from core.builtin.assess import lay_beside
from core.builtin.claims import Claim, parts_of
from core.builtin.reading import Reading, Unit
from core.builtin.speech import quote_of
from core.categories import Category
from core.models.encoder import Embedder, TokenVectors
from core.records import Passage, Point, Stance

CLOSE_FROM = 0.45
NAME_CLOSE_FROM = 0.6
FAR_BELOW = 0.3
CARRIED_FROM = 0.75
TOPIC_FROM = 0.5
SIMILAR_FROM = 0.35
RELATED_FROM = 0.3


@dataclass(frozen=True)
class Overlap:
    """How much of a claim the passages carry, softly.

    `missing` are units that no passage on the topic carries; `recanted` those of them that only
    another clause carries, seen when the other debater contested them. `apart` are names and values
    that stand in another passage than the rest. `adds_up` is True when the other debater has shown
    that the statement is a sum of what stands there.
    """

    claim: Claim
    passage: Passage | None
    carried: float
    similarity: float | None
    missing: tuple[Unit, ...]
    recanted: tuple[Unit, ...] = ()
    apart: tuple[Unit, ...] = ()
    adds_up: bool = False


def measure(claim: Claim, passages: Sequence[Passage], encoder: Embedder) -> Overlap:
    """Clause by clause the best passage's soft coverage, and the units that nothing carries."""
    lookup = _SoftLookup(claim, encoder)
    parts = [_measure_part(claim, part, passages, lookup) for part in parts_of(claim)]
    weights = [sum(unit.weight for unit in part.reading.units) for part in parts]
    total = sum(weights)
    carried = sum(w * part.carried for w, part in zip(weights, parts, strict=True))
    best = max(parts, key=lambda part: part.carried, default=None)
    similarity = max((p.similarity for p in passages if p.similarity is not None), default=None)
    missing = dict.fromkeys(unit for part in parts for unit in part.missing)
    return Overlap(
        claim,
        best.passage if best else None,
        round(carried / total, 4) if total else 0.0,
        similarity,
        tuple(u for u in missing if claim.place(u.start, u.end)),
        apart=tuple(unit for part in parts for unit in part.apart),
    )


@dataclass(frozen=True)
class _PartOverlap:
    """One clause: the passage that carries most of it, and what nothing on the topic carries."""

    reading: Reading
    passage: Passage | None
    carried: float
    missing: tuple[Unit, ...]
    apart: tuple[Unit, ...] = ()


class _SoftLookup:
    """How closely a passage expresses a word it does not hold; token vectors are made once."""

    def __init__(self, claim: Claim, encoder: Embedder) -> None:
        self._claim = claim
        self._encoder = encoder
        self._ours: TokenVectors | None = None
        self._theirs: dict[str, TokenVectors] = {}

    def closeness(
        self, alignment: Alignment, open_units: set[int], passage: Passage
    ) -> dict[int, float]:
        """Index of each open word to its greatest cosine; 0 for names, values and muted texts."""
        units = alignment.claim.units
        close = dict.fromkeys(open_units, 0.0)
        words = [i for i in open_units if units[i].kind == "word"]
        if not words or not alignment.coverage:
            return close
        if self._ours is None:
            self._ours = self._encoder.tokens(self._claim.text)
        theirs = self._theirs.get(passage.id)
        if theirs is None:
            theirs = self._theirs[passage.id] = self._encoder.tokens(passage.text)
        ours = self._ours
        if ours.muted or theirs.muted or not theirs.offsets:
            return close
        cosines = ours.vectors @ theirs.vectors.T
        for i in words:
            unit = units[i]
            rows = [k for k, (a, b) in enumerate(ours.offsets) if unit.start < b and a < unit.end]
            if rows:
                close[i] = float(np.max(cosines[rows]))
        return close


def _measure_part(
    claim: Claim, part: Reading, passages: Sequence[Passage], lookup: _SoftLookup
) -> _PartOverlap:
    units = part.units
    best = _PartOverlap(part, None, 0.0, ())
    absent, best_lacking = set(range(len(units))), set(range(len(units)))
    related = False
    for passage in passages:
        alignment = lay_beside(claim, part, passage)
        close = lookup.closeness(alignment, set(alignment.unmatched()), passage)
        credit = {i: _credit(units[i], close[i]) if i in close else 1.0 for i in range(len(units))}
        credit |= {i: 0.5 for i in credit if _is_lone_char(units, credit, i)}
        carried = _share(units, credit)
        lacking = {i for i in credit if credit[i] == 0.0}
        if carried >= RELATED_FROM:
            related = True
            absent &= lacking
        if best.passage is None or carried > best.carried:
            best, best_lacking = _PartOverlap(part, passage, carried, ()), lacking
    # A short answer must stand where its question is answered, not just anywhere.
    lacking = best_lacking if claim.completes_question else absent
    missing = tuple(units[i] for i in sorted(lacking)) if related else ()
    apart = tuple(units[i] for i in sorted(best_lacking - lacking) if is_vital(units[i]))
    return replace(best, missing=missing, apart=apart)


def _is_lone_char(units: Sequence[Unit], credit: Mapping[int, float], place: int) -> bool:
    """A single character missing among carried ones is rather another spelling of the word."""
    if units[place].kind != "char" or credit[place]:
        return False
    return all(credit.get(beside, 1.0) for beside in (place - 1, place + 1))


def _credit(unit: Unit, cosine: float) -> float:
    """Carried, half carried, or not at all; a word that may be a name is carried or not."""
    if is_vital(unit):
        return float(cosine >= NAME_CLOSE_FROM)
    if cosine >= CLOSE_FROM:
        return 1.0
    return 0.5 if cosine >= FAR_BELOW else 0.0


def stance_of(item: Overlap) -> Stance:
    """The overlap reader's stance on one statement."""
    on_topic = item.carried >= TOPIC_FROM
    alien = item.similarity is not None and item.similarity < SIMILAR_FROM
    stance: Stance = "unclear"
    if item.adds_up:
        stance = "supported"
    elif item.recanted:
        stance = "hallucinated"
    elif item.carried >= CARRIED_FROM and not item.missing and not item.apart:
        stance = "supported"
    elif on_topic and not alien and item.missing:
        stance = "hallucinated"
    if item.claim.denied and stance != "unclear":
        return "hallucinated" if stance == "supported" else "supported"
    return stance


def _share(units: Sequence[Unit], credit: Mapping[int, float]) -> float:
    total = sum(unit.weight for unit in units)
    return sum(units[i].weight * part for i, part in credit.items()) / total if total else 0.0


def points_of(item: Overlap) -> list[Point]:
    """What was carried or missing, as points with places in the response."""
    stance = stance_of(item)
    statement = item.claim.statement
    quote = quote_of(item.passage) if item.passage else None
    if stance == "supported" and quote and not item.claim.denied:
        return [
            Point(
                statement.index,
                "carried",
                statement.start,
                statement.end,
                statement.text,
                "harmless_addition",
                quote.text,
                "the passages carry nearly all of its words",
                item.carried,
                quote,
            )
        ]
    if stance != "hallucinated":
        return []
    points = []
    for unit in item.missing:
        place = item.claim.place(unit.start, unit.end)
        if place:
            words = unit.text if item.claim.answer is None else item.claim.answer_words
            weight = 0.6 if is_vital(unit) else 0.5
            because = "no passage mentions it"
            points.append(
                Point(
                    statement.index,
                    "missing",
                    *place,
                    words,
                    _category(unit),
                    "",
                    because,
                    weight,
                    quote,
                )
            )
    return points


def _category(unit: Unit) -> Category:
    return "number_or_date" if unit.kind in ("quantity", "date") else "not_in_source"
