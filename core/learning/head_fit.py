"""Fits the logistic head to verdict texts; here rows become the numbers that a head reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.learning.calibration import FOLDS, Fitted, calibrated, fold_of
from core.learning.metrics import Flags, Numbers
from core.learning.options import Options
from core.learning.training_set import Lesson, Row
from core.llm.encoder import Embedder, Matrix
from core.verdict.head import Head, logit_of

FEWEST_ON_SPLIT = 10  # rows of each label; with fewer a calibration split says too little
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Numbered:
    """Rows as a head reads them, with what is right: (n, width), the judge's p, truth, case."""

    texts: tuple[str, ...]
    vectors: Matrix
    judged: tuple[float | None, ...]
    truth: Flags
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.truth)

    def at(self, places: Places) -> Numbered:
        """Only the rows at these places."""
        return Numbered(
            tuple(self.texts[place] for place in places),
            self.vectors[places],
            tuple(self.judged[place] for place in places),
            self.truth[places],
            tuple(self.groups[place] for place in places),
        )

    def with_others(self, other: Numbered) -> Numbered:
        """These rows and the others after them."""
        return Numbered(
            self.texts + other.texts,
            np.concatenate([self.vectors, other.vectors]),
            self.judged + other.judged,
            np.concatenate([self.truth, other.truth]),
            self.groups + other.groups,
        )


def numbered(rows: Sequence[Lesson], encoder: Embedder) -> Numbered:
    """What a head reads of each row: its text's embedding, made alone, and the judge's p."""
    vectors = [encoder.encode([row.text]) for row in rows]
    return Numbered(
        tuple(row.text for row in rows),
        np.concatenate(vectors) if vectors else np.zeros((0, encoder.width), np.float32),
        tuple(row.p for row in rows),
        np.array([row.label == "hallucinated" for row in rows], dtype=bool),
        tuple(row.group for row in rows),
    )


def lesson_of(row: Row) -> Lesson:
    """What is learned from a corrected run."""
    return Lesson(row.text, row.label, row.p, row.group)


def fit_head(rows: Sequence[Lesson], encoder: Embedder, options: Options) -> Head:
    """A head over the rows, not calibrated."""
    return fitted_head(numbered(rows, encoder), options)


def fitted_head(data: Numbered, options: Options) -> Head:
    """Logistic regression over the judge's p and the text's embedding.

    A row with a p is also shown without it: a language model as judge gives none, and its texts
    must be understood too.
    """
    from sklearn.linear_model import LogisticRegression

    with_p = [place for place, p in enumerate(data.judged) if p is not None]
    places = [*range(len(data)), *with_p]
    own = [logit_of(p) for p in data.judged] + [0.0] * len(with_p)
    fitted = LogisticRegression(
        C=options.regularisation, class_weight="balanced", max_iter=1000, random_state=options.seed
    ).fit(np.column_stack([data.vectors[places], own]), data.truth[places])
    *weights, judge_weight = (float(w) for w in fitted.coef_[0])
    return Head(tuple(weights), float(fitted.intercept_[0]), judge_weight)


def has_enough(split: Numbered) -> bool:
    """True where a calibration split says enough of what it has not taught."""
    return bool(min(split.truth.sum(), (~split.truth).sum()) >= FEWEST_ON_SPLIT)


def fit_calibration(
    head: Head, corrections: Numbered, seeds: Numbered, split: Numbered, options: Options
) -> tuple[Fitted, bool]:
    """The head's calibration, and whether it was cross-fitted on the training cases.

    It is fitted to the calibration split as soon as that has FEWEST_ON_SPLIT rows of each label. A
    head with words was weighed on the same split, so its log odds are worth less than they seem
    there: they may be cooled but never sharpened.
    """
    if has_enough(split):
        told = head.log_odds(split.vectors, split.judged, split.texts)
        may_sharpen = head.words is None
        return calibrated(told, split.truth, split.groups, may_sharpen=may_sharpen), False
    told, known = _cross_fitted(corrections, seeds, options)
    rows = corrections.at(np.flatnonzero(known))
    return calibrated(told[known], rows.truth, rows.groups, may_sharpen=False), True


def _cross_fitted(
    corrections: Numbered, seeds: Numbered, options: Options
) -> tuple[Numbers, Flags]:
    """Log odds of each correction by a head that has not seen its case; for which there is one."""
    folds = np.array([fold_of(group) for group in corrections.groups], dtype=np.int64)
    told, known = np.zeros(len(corrections)), np.zeros(len(corrections), dtype=bool)
    for fold in range(FOLDS):
        inside, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        others = corrections.at(rest).with_others(seeds)
        if not len(inside) or others.truth.all() or not others.truth.any():
            continue
        head = fitted_head(others, options)
        told[inside] = head.log_odds(corrections.vectors[inside], corrections.at(inside).judged)
        known[inside] = True
    return told, known
