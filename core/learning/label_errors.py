"""Labels that look wrong: where people said one thing and all other cases speak for the other.

Confident learning (Northcutt et al. 2021) by cleanlab, over out-of-fold probabilities of the quick
head. The hold-out is looked at too: its labels can be wrong like any other, and nothing is learned
from them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.errors import NotEnoughLabels
from core.learning.heads import (
    Numbers,
    Told,
    Truth,
    cases_by_label,
    inputs_of,
    out_of_fold,
    truth_of,
    vectors_of,
)
from core.learning.overview import Taught
from core.llm.encoder import Embedder
from core.records import Label

FEWEST_CASES = 15  # of each label: below it a head knows too little to doubt a person
MOST_ROWS = 4_000  # the newest; embedding them takes a minute the first time
MOST_SHOWN = 100
FOLDS = 5
SEED = 7


@dataclass(frozen=True)
class Doubt:
    """A label that looks wrong; `p_label` is what the other cases give it, in [0, 1]."""

    taught: Taught
    thinks: Label
    p_label: float


@dataclass(frozen=True)
class Doubts:
    """Labels that look wrong, the most doubtful first, of `looked_at` of `all` usable rows."""

    found: tuple[Doubt, ...]
    looked_at: int
    all: int


def doubts(
    taught: Sequence[Taught], encoder: Embedder, home: Path, told: Told = lambda _done, _all: None
) -> Doubts:
    """What looks wrong; of a case that was checked several times the most doubtful label.

    Raises:
        NotEnoughLabels: a label has too few cases to say anything.
    """
    looked_at = taught[-MOST_ROWS:]
    rows = [one.row for one in looked_at]
    require_cases(cases_by_label(rows), FEWEST_CASES)
    truth = truth_of(rows)
    inputs = inputs_of(rows, vectors_of([row.text for row in rows], encoder, home, told))
    p = out_of_fold(inputs, truth, [row.group for row in rows], FOLDS, SEED)
    found: dict[str, Doubt] = {}
    for place in _issues(truth, p):
        one = looked_at[place]
        own = p[place] if truth[place] else 1.0 - p[place]
        thinks: Label = "supported" if truth[place] else "hallucinated"
        found.setdefault(one.case_id, Doubt(one, thinks, round(float(own), 4)))
    return Doubts(tuple(found.values())[:MOST_SHOWN], len(looked_at), len(taught))


def _issues(truth: Truth, p: Numbers) -> list[int]:
    """Places that confident learning holds to be wrong, the least likely label first."""
    from cleanlab.filter import find_label_issues  # type: ignore[import-untyped]

    both = np.column_stack([1.0 - p, p])
    places = find_label_issues(
        truth.astype(int),
        both,
        filter_by="confident_learning",  # finds fewer than the default, and more of them are wrong
        return_indices_ranked_by="self_confidence",
        n_jobs=1,  # no processes of its own beside a server's threads
    )
    return [int(place) for place in places]


def require_cases(counts: dict[str, int], fewest: int) -> None:
    """Refuse labels with too few cases.

    Raises:
        NotEnoughLabels: one has fewer.
    """
    if min(counts.values()) < fewest:
        words = " and ".join(f"{count} {label}" for label, count in counts.items())
        raise NotEnoughLabels(
            f"Too few to say: expected at least {fewest} cases of each label, found {words}.",
            counts=counts,
        )
