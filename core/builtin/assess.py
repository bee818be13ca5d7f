"""Lays a claim, clause by clause, beside its passages: what is carried, contradicted, missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.builtin.alignment import Alignment, align, best_clause
from core.builtin.arithmetic import ROW, Sum, check_sums
from core.builtin.claims import Claim, parts_of
from core.builtin.contrast import Contrast, Pair
from core.builtin.contrasts import find_contrasts
from core.builtin.reading import Reading, Unit, read, scaled
from core.records import Passage

RELEVANT_COVERAGE = 0.4
FULL_COVERAGE = 0.85
RIVAL_COVERAGE = 0.6


@dataclass(frozen=True)
class Found:
    """A contrast and the passage that shows it."""

    contrast: Contrast
    passage: Passage


@dataclass(frozen=True)
class Compared:
    """A part of the claim beside one passage."""

    passage: Passage
    pair: Pair
    contrasts: tuple[Contrast, ...]
    affirmed: bool = False

    @property
    def coverage(self) -> float:
        """Share of the part that the passage carries, 0 to 1; all where two turns make none."""
        return 1.0 if self.affirmed else self.pair.whole.coverage

    @property
    def carries_all(self) -> bool:
        """True when nearly everything is carried and nothing contested."""
        return self.coverage >= FULL_COVERAGE and not self.contrasts


@dataclass(frozen=True)
class Part:
    """One clause of the claim: the closest passage and what came of comparing it with all."""

    reading: Reading
    best: Compared | None
    contradictions: tuple[Found, ...]
    missing: tuple[Unit, ...]
    supporting: tuple[Passage, ...]
    conflict: tuple[Passage, Passage] | None

    @property
    def coverage(self) -> float:
        """The best passage's coverage; 0 without any passage."""
        return self.best.coverage if self.best else 0.0

    @property
    def weight(self) -> float:
        """How much the clause says."""
        return sum(unit.weight for unit in self.reading.units)


@dataclass(frozen=True)
class Assessment:
    """All that can be said of a claim by comparing words and values.

    `contradictions` and `missing` are those of all clauses, strongest first. `conflict` holds the
    passages of two sources of which one carries what the other contradicts.
    """

    claim: Claim
    parts: tuple[Part, ...]
    contradictions: tuple[Found, ...]
    missing: tuple[Unit, ...]
    conflict: tuple[Passage, Passage] | None
    total: Sum | None = None

    @property
    def adds_up(self) -> bool:
        """True when the claim states a sum and the evidence's own numbers give it."""
        return self.total is not None and self.total.contrast is None

    @property
    def coverage(self) -> float:
        """Carried share over all clauses, by weight."""
        total = sum(part.weight for part in self.parts)
        return sum(part.weight * part.coverage for part in self.parts) / total if total else 0.0

    @property
    def weakest(self) -> float:
        """Coverage of the clause that is carried least."""
        return min((part.coverage for part in self.parts), default=0.0)

    @property
    def closest(self) -> Passage | None:
        """The passage nearest to what decides: the contrast's, else the best clause's."""
        if self.contradictions:
            return self.contradictions[0].passage
        if self.total is not None:
            return self.total.passage
        best = max(self.parts, key=lambda part: part.coverage, default=None)
        return best.best.passage if best and best.best else None

    @property
    def supporting(self) -> tuple[Passage, ...]:
        """A passage for each clause, when every clause has one that carries it."""
        if not self.parts or not all(part.supporting for part in self.parts):
            return ()
        return tuple(dict.fromkeys(part.supporting[0] for part in self.parts))


def assess(
    claim: Claim, passages: Sequence[Passage], sources: Mapping[str, str] | None = None
) -> Assessment:
    """Compare every clause of the claim with each passage and put the results together.

    `sources` maps ids to whole texts, from which a table's rows are added up.
    """
    total = check_sums(claim.reading, passages, sources or {})
    parts = tuple(_assess_part(claim, part, passages, total) for part in parts_of(claim))
    found = [item for part in parts for item in part.contradictions]
    if total is not None and total.contrast is not None:
        found.append(Found(total.contrast, total.passage))
    found.sort(key=lambda f: (-f.contrast.weight, f.contrast.start))
    missing = tuple(dict.fromkeys(unit for part in parts for unit in part.missing))
    return Assessment(
        claim=claim,
        parts=parts,
        contradictions=tuple(found),
        missing=tuple(u for u in missing if claim.place(u.start, u.end)),
        conflict=next((part.conflict for part in parts if part.conflict), None),
        total=total,
    )


def _assess_part(
    claim: Claim, part: Reading, passages: Sequence[Passage], total: Sum | None
) -> Part:
    compared = [compare_part(claim, part, passage) for passage in passages]
    supporting = [c for c in compared if c.carries_all]
    contradictions = _contradictions(compared, supporting)
    if total is not None:  # the evidence's own numbers are summands, not rivals
        contradictions = [f for f in contradictions if f.contrast.kind != "quantity"]
    missing = _missing(compared, [f.contrast for f in contradictions])
    if total is not None:
        missing = [unit for unit in missing if unit.quantity is None]
    return Part(
        reading=part,
        best=max(compared, key=_closeness, default=None),
        contradictions=tuple(contradictions),
        missing=tuple(missing),
        supporting=tuple(c.passage for c in supporting),
        conflict=_conflict(compared, contradictions),
    )


def _conflict(
    compared: Sequence[Compared], contradictions: Sequence[Found]
) -> tuple[Passage, Passage] | None:
    """A passage that says just the contested words, and another source's against them."""
    for found in contradictions:
        for rival in compared:
            units = rival.pair.claim.units
            contested = {
                i
                for i, unit in enumerate(units)
                if found.contrast.start < unit.end and unit.start < found.contrast.end
            }
            carries = bool(contested) and contested <= rival.pair.whole.matched.keys()
            elsewhere = rival.passage.source_id != found.passage.source_id
            if elsewhere and (
                rival.carries_all
                or (carries and rival.coverage >= RIVAL_COVERAGE and not rival.contrasts)
            ):
                return rival.passage, found.passage
    return None


def compare_part(claim: Claim, part: Reading, passage: Passage) -> Compared:
    """One clause beside one passage, with the sentence before it and the source's heading."""
    whole = lay_beside(claim, part, passage)
    pair = Pair(whole, _knowing(best_clause(whole), whole), claim.own_start)
    contrasts = find_contrasts(pair)
    placed = [
        c
        for c in contrasts.found
        if claim.place(c.start, c.end) is not None and not _names_its_row(c, passage)
    ]
    return Compared(passage, pair, tuple(placed), contrasts.affirmed)


def _names_its_row(contrast: Contrast, passage: Passage) -> bool:
    """True for the row's own name against the claim's: another row, no contradiction."""
    name = passage.text.split(": ")[0]
    return is_row(passage) and contrast.evidence.casefold() in name.casefold()


def lay_beside(claim: Claim, part: Reading, passage: Passage) -> Alignment:
    """One clause of a claim beside a passage and what the passage is read with."""
    language = claim.language
    evidence = evidence_reading(passage, language)
    heading = read(passage.heading, language).units if passage.heading else ()
    if is_row(passage):
        return align(part, evidence, (), heading)
    if claim.own_start:  # what answers a question must stand where the question's words do
        return align(part, evidence)
    before = read(passage.before, language).units if passage.before else ()
    return align(part, evidence, (*before, *heading))


def is_row(passage: Passage) -> bool:
    """True for a table's row or a chart's bar, which its heading belongs to."""
    return ROW.match(passage.text) is not None


def evidence_reading(passage: Passage, language: str) -> Reading:
    """The passage as read; bare numbers under a heading “(thousands)” are thousands."""
    return scaled(read(passage.text, language), passage.heading)


def _knowing(clause: Alignment, whole: Alignment) -> Alignment:
    """The clause with what the whole passage knows from its neighbours."""
    nearby = frozenset(i for i in whole.nearby if i not in clause.matched)
    return Alignment(
        clause.claim, clause.evidence, clause.matched, nearby, clause.slots, clause.coverage
    )


def _closeness(compared: Compared) -> tuple[float, bool, float]:
    """Coverage without what is contested, then whether the subject is there, then similarity."""
    contested = [
        unit
        for unit in compared.pair.claim.units
        if any(c.start < unit.end and unit.start < c.end for c in compared.contrasts)
    ]
    whole = compared.pair.whole
    return whole.frame(contested), 0 in whole.matched, compared.passage.similarity or 0.0


def _contradictions(compared: Sequence[Compared], supporting: Sequence[Compared]) -> list[Found]:
    """Contrasts of passages at least as close as any that carries the clause; strongest first.

    A passage of the same source that carries everything outweighs a contrast found elsewhere in
    it: documents speak of many like things. So does a closer passage for the words that it carries.
    """
    found: list[Found] = []
    settled: set[int] = set()
    for item in sorted(compared, key=_closeness, reverse=True):
        outweighed = any(other.passage.source_id == item.passage.source_id for other in supporting)
        if not outweighed:
            found += [
                Found(contrast, item.passage)
                for contrast in item.contrasts
                if not _touches(contrast, item.pair.claim, settled)
            ]
        if item.contrasts and item.coverage >= RELEVANT_COVERAGE:
            settled |= set(item.pair.whole.matched)
    found.sort(key=lambda f: (-f.contrast.weight, f.contrast.start))
    distinct: list[Found] = []
    for candidate in found:
        start, end = candidate.contrast.start, candidate.contrast.end
        if not any(start < k.contrast.end and k.contrast.start < end for k in distinct):
            distinct.append(candidate)
    return distinct


def _touches(contrast: Contrast, part: Reading, settled: set[int]) -> bool:
    return any(
        contrast.start < part.units[i].end and part.units[i].start < contrast.end for i in settled
    )


def _missing(compared: Sequence[Compared], contested: Sequence[Contrast]) -> list[Unit]:
    """Units that no relevant passage carries and that are not contested already."""
    relevant = [c for c in compared if c.coverage >= RELEVANT_COVERAGE]
    if not relevant or any(item.affirmed for item in relevant):
        return []
    units = relevant[0].pair.claim.units
    absent = set(range(len(units)))
    for item in relevant:
        absent &= set(item.pair.whole.unmatched())
    return [
        units[i]
        for i in sorted(absent)
        if not any(c.start < units[i].end and units[i].start < c.end for c in contested)
    ]
