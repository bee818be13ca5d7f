"""People's reasons beside those of runs that came to the same verdict on the same case.

ColMAD's figure 5b has a language model say how well explanations agree with people's. That is
`core/evaluation/alignment.py`. What needs no model is measured here: of the words that people
marked in the sources, how many a run quotes where it argues for its verdict. Beside it stands how
many lie in any passage that the run found, which is the most that it could have quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.learning.heard import Row
from core.progress import Progress, folded
from core.records import Label, Quote
from core.reviews import EvidenceMark
from core.store import Store
from core.store.verdicts import events_of

KINDS = ("run_started", "statement_found", "passages_found", "turn_finished",
         "judgement_reached", "label_predicted", "run_finished")  # fmt: skip
COVERED_FROM = 0.5  # of a mark's characters


@dataclass(frozen=True)
class Reasons:
    """A person's reason and a run's on one case, with the label that both came to.

    `marks` are the words of sources that the person marked, `quoted` and `found` how many of them
    the run's argument quotes, and its passages contain. `group` is that of equal cases.
    """

    run_id: str
    protocol: str
    group: str
    language: str
    claim: str
    label: Label
    reason: str
    rationale: str
    marks: int
    quoted: int
    found: int


def reasons_of(store: Store, rows: Sequence[Row]) -> list[Reasons]:
    """Of the newest run of each case by each protocol, where its verdict is the person's.

    `rows` come newest first, as `rows_of` gives them; those without a reason and without marks
    have nothing to compare.
    """
    newest: dict[tuple[str, str], Row] = {}
    for row in rows:
        newest.setdefault((row.decision.group, row.heard.protocol), row)
    found = (_reasons(store, row) for row in newest.values())
    return [own for own in found if own is not None]


def _reasons(store: Store, row: Row) -> Reasons | None:
    said = _said(store, row)
    if said is None or not (said[0].strip() or said[1]):
        return None
    progress = folded(events_of(store, row.heard.run.id, KINDS))
    if progress.verdict is None or progress.verdict.label != row.decision.label:
        return None
    case = progress.case or store.cases.get(row.heard.run.case_id)
    reason, marks = said
    quotes = arguing_for(progress)
    return Reasons(
        row.heard.run.id,
        row.heard.protocol,
        row.decision.group,
        row.heard.language,
        case.response if case else "",
        progress.verdict.label,
        reason.strip(),
        rationale_of(progress),
        len(marks),
        sum(is_covered(mark, _places(quotes)) for mark in marks),
        sum(is_covered(mark, _passages(progress)) for mark in marks),
    )


def _said(store: Store, row: Row) -> tuple[str, tuple[EvidenceMark, ...]] | None:
    """(reason, marked evidence) of what counts for the case."""
    decision = row.decision
    if decision.is_settled:
        gold = next((g for g in store.golds.of_case(decision.case_id) if g.id == decision.id), None)
        return (gold.reason, ()) if gold else None
    correction = store.corrections.get(decision.id)
    return (correction.reason, correction.evidence) if correction else None


def rationale_of(progress: Progress) -> str:
    """What a run tells people of why: the judge's words for them, else the verdict's."""
    judgement, verdict = progress.judgement, progress.verdict
    prose = judgement.prose if judgement else ""
    return (prose or (verdict.rationale if verdict else "")).strip()


def arguing_for(progress: Progress) -> list[Quote]:
    """The quotes that argue for the verdict: the judge's, and last turns' of those who share it."""
    if progress.verdict is None:
        return []
    label = progress.verdict.label
    last = {turn.debater: turn for turn in progress.turns}
    judged = progress.judgement.points if progress.judgement else ()
    points = [*judged, *(p for t in last.values() if t.stance == label for p in t.points)]
    quotes = [quote for t in last.values() if t.stance == label for quote in t.quotes]
    return [*quotes, *(point.quote for point in points if point.quote is not None)]


Place = tuple[str, int, int]  # source, [start, end) in its text


def _places(quotes: Iterable[Quote]) -> list[Place]:
    return [
        (quote.source_id, quote.start, quote.end)
        for quote in quotes
        if quote.status != "not_found" and quote.start is not None and quote.end is not None
    ]


def _passages(progress: Progress) -> list[Place]:
    return [(p.source_id, p.start, p.end) for p in progress.evidence.values()]


def is_covered(mark: EvidenceMark, places: Sequence[Place]) -> bool:
    """At least half of the mark's characters lie in these places of its source."""
    inside: set[int] = set()
    for source, start, end in places:
        if source == mark.source_id:
            inside.update(range(max(start, mark.start), min(end, mark.end)))
    length = mark.end - mark.start
    return length > 0 and len(inside) >= COVERED_FROM * length


def note_name(project_id: str) -> str:
    """Under which note a project's newest ratings are kept."""
    return f"alignment.{project_id}"
