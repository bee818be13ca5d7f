"""Pairs that the entailment reader is trained on: labelled rows, and what is made from them.

Each pair says which of the three classes it may be: a set whose negatives are only “not
supported” allows both others. Sets whose licence forbids commercial use are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.builtin.statement_text import statement_text
from core.evaluation.datasets import load
from core.evaluation.gold import GoldRow
from core.evaluation.splits import part_of

SUPPORTED, CONTRADICTED, NOT_ENOUGH = (1, 0, 0), (0, 1, 0), (0, 0, 1)
NOT_SUPPORTED = (0, 1, 1)
Allowed = tuple[int, int, int]


@dataclass(frozen=True)
class Source:
    """How a set takes part: which task, how often each row is seen, what its negatives are."""

    name: str
    times: float
    task: str | None = None
    hallucinated: Allowed = CONTRADICTED
    unclear: Allowed = NOT_ENOUGH


# Evidence-and-claim sets are seen more often than sentence pairs, but not much: at five times and
# more their rows were learned by heart (loss .36 in training and 1.10 beside it on fm2). Left out:
# sets whose licence forbids commercial use (anli, averitec, ocnli, scifact_rte, sick), and those
# whose label shows in the claim alone (breaking_nli, conjnli, help, begin; see `claim_only`).
SOURCES = (
    Source("entailment_lingnli", 1.0),
    Source("entailment_sanli", 1.0),
    Source("entailment_cad_nli", 1.0),
    Source("entailment_med", 0.5, unclear=NOT_SUPPORTED),
    Source("entailment_rte", 1.0, unclear=NOT_SUPPORTED),
    Source("entailment_control", 1.0),
    Source("entailment_q2", 1.0, hallucinated=NOT_SUPPORTED),
    Source("entailment_climate_fever", 0.7, task="pairs"),
    Source("entailment_covidfact", 1.0, hallucinated=NOT_SUPPORTED),
    Source("entailment_dialfact", 2.0),
    Source("entailment_fm2", 2.0),
    Source("entailment_fm2", 0.5, task="retrieved"),
    Source("entailment_healthver", 1.5),
    Source("entailment_wice", 1.5, hallucinated=NOT_SUPPORTED),
    Source("fever_symmetric", 2.0),
    Source("factcheck_gpt", 1.0, task="subtask3"),
)


@dataclass(frozen=True)
class Pair:
    """Evidence and statement with the classes (supported, contradicted, not enough) it may be."""

    evidence: str
    statement: str
    allowed: Allowed
    times: float
    name: str
    group: str
    task: str = ""  # "" is the set's first


def labelled_pairs(folder: Path, parts: Iterable[str]) -> Iterator[Pair]:
    """Every labelled row of the training sets whose group lies in one of these parts."""
    wanted = frozenset(parts)
    for source in SOURCES:
        for row in load(source.name, folder, task=source.task):
            if part_of(row.group) in wanted and row.documents and row.label is not None:
                yield pair_of(row, source)


def pair_of(row: GoldRow, source: Source) -> Pair:
    """A row as the reader sees it."""
    allowed = {
        "supported": SUPPORTED,
        "hallucinated": source.hallucinated,
        "unclear": source.unclear,
    }[row.label or "unclear"]
    statement = statement_text(row.question, row.response) if row.question else row.response
    evidence = " ".join(" ".join(row.documents).split())
    return Pair(
        evidence,
        " ".join(statement.split()),
        allowed,
        source.times,
        source.name,
        row.group,
        source.task or "",
    )


def joined(one: Allowed, other: Allowed) -> Allowed:
    """What a conjunction may be: the worse of its halves, both wrongs where that is open."""
    both = {one, other}
    if both == {SUPPORTED}:
        return SUPPORTED
    if CONTRADICTED in both:
        return CONTRADICTED
    if NOT_SUPPORTED in both:
        return NOT_SUPPORTED
    return NOT_ENOUGH
