"""Several scores of one case made one probability: a logistic stack that never turns a score round.

Scores are cross-fitted: no score was fitted on the case that it is of, so the stack learns how much
each is worth on cases not seen, and its probability means something there (Wolpert 1992; Breiman
1996 for weights that are not negative). With one score this is Platt's calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.verdict.head import sigmoid

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
# (cases to fit on, cases to score) -> scores of the latter.
Scorer = Callable[[Places, Places], Numbers]
FOLDS = 5
SHRINKAGE = 1.0  # on squared weights of scores of unit spread
SUREST = 0.995  # nothing that some hundred cases taught is surer


@dataclass(frozen=True)
class Stack:
    """p = sigmoid(intercept + Σ weight · (score - centre) / spread), weights at least 0."""

    centres: Numbers
    spreads: Numbers
    weights: Numbers
    intercept: float

    def p(self, scores: Numbers) -> Numbers:
        """(n,) p_hallucinated of (n, k) scores."""
        leaning = ((scores - self.centres) / self.spreads) @ self.weights + self.intercept
        found: Numbers = np.clip(sigmoid(leaning), 1.0 - SUREST, SUREST)
        return found


def grouped_folds(
    is_wrong: Flags, groups: Places | Sequence[str], seed: int, folds: int = FOLDS
) -> Iterator[tuple[Places, Places]]:
    """(fit, test) places; cases of one group lie on one side, labels are shared out evenly."""
    from sklearn.model_selection import StratifiedGroupKFold

    parted = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    yield from parted.split(np.zeros(len(is_wrong)), is_wrong, groups)


def cross_fitted(
    scorers: Sequence[Scorer], cases: Places, is_wrong: Flags, groups: Places, seed: int
) -> Numbers:
    """(cases, scorers): each case's scores by models that saw nothing of its group.

    `is_wrong` and `groups` are those of `cases`, in the same order.
    """
    scores = np.zeros((len(cases), len(scorers)))
    for fit, test in grouped_folds(is_wrong, groups, seed):
        for place, scorer in enumerate(scorers):
            scores[test, place] = scorer(cases[fit], cases[test])
    return scores


def fit_stack(scores: Numbers, is_wrong: Flags) -> Stack:
    """The most likely weights, drawn a little towards nothing; `scores` are (n, k)."""
    from scipy.optimize import minimize

    centres, spreads = scores.mean(axis=0), scores.std(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    level = (scores - centres) / spreads
    sign = np.where(is_wrong, 1.0, -1.0)

    def loss(values: Numbers) -> tuple[float, Numbers]:
        margin = sign * (level @ values[1:] + values[0])
        pull = -sign / (1.0 + np.exp(margin))
        gradient = np.r_[pull.sum(), level.T @ pull + SHRINKAGE * values[1:]]
        total = np.logaddexp(0.0, -margin).sum() + SHRINKAGE * (values[1:] ** 2).sum() / 2
        return float(total), gradient

    many = level.shape[1]
    base = float(np.log((is_wrong.sum() + 0.5) / ((~is_wrong).sum() + 0.5)))
    found = minimize(
        loss,
        np.r_[base, np.full(many, 1.0 / many)],
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None), *[(0.0, None)] * many],
    )
    return Stack(centres, spreads, found.x[1:], float(found.x[0]))
