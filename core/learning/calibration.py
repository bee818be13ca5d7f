"""Fits what a head's log odds are worth: the kind of curve is chosen by log loss on unseen cases.

Where there is a calibration split, the curve is fitted to it. Before, it is fitted to what heads
say of training cases that they have not seen; the encoder has seen those, so that they look surer
than new ones will: such a curve may cool the probabilities but never sharpen them.

`fit_stack` makes one probability of several scores of a case, by logistic weights that never turn a
score round. Scores are cross-fitted, so the stack learns how much each is worth on cases not seen
(Wolpert 1992; Breiman 1996 for weights that are not negative). With one score this is Platt's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.learning.metrics import Flags, Numbers, Places, fold_numbers, grouped_folds, log_loss
from core.verdict.head import Calibrator, CalibratorKind, sigmoid

# Of the rarer label; isotonic regression has as many free numbers as it finds steps.
FEWEST: dict[CalibratorKind, int] = {"none": 0, "temperature": 10, "platt": 20, "isotonic": 150}
WORTH = 1e-4  # nats by which another curve must be better than a simpler one
LEAST_SLOPE, MOST_SLOPE = 0.05, 20.0  # a slope of 0 would call everything hallucinated


@dataclass(frozen=True)
class Fitted:
    """A curve, and the log loss of every kind that was tried, out of fold."""

    calibrator: Calibrator
    log_loss: dict[str, float]
    n: int

    def card(self, *, is_cross_fitted: bool) -> dict[str, Any]:
        """What the version's card says of it."""
        return {
            "kind": self.calibrator.kind,
            "n": self.n,
            "cross_fitted": is_cross_fitted,
            "log_loss": self.log_loss,
        }


def calibrated(
    log_odds: Numbers, truth: Flags, groups: Sequence[str], *, may_sharpen: bool
) -> Fitted:
    """The curve with the least log loss, cross-validated by case; a simpler one where none wins."""
    rarer = int(min(truth.sum(), (~truth).sum()))
    kinds: list[CalibratorKind] = [kind for kind, fewest in FEWEST.items() if rarer >= fewest]
    folds = fold_numbers(groups)
    losses = {kind: _out_of_fold(kind, log_odds, truth, folds, may_sharpen) for kind in kinds}
    best: CalibratorKind = "none"
    for kind in kinds:
        if losses[kind] < losses[best] - WORTH:
            best = kind
    told: dict[str, float] = {
        kind: round(loss, 4) for kind, loss in losses.items() if np.isfinite(loss)
    }
    return Fitted(_fitted(best, log_odds, truth, may_sharpen), told, len(truth))


def _out_of_fold(
    kind: CalibratorKind, log_odds: Numbers, truth: Flags, folds: Places, may_sharpen: bool
) -> float:
    p = np.zeros(len(truth))
    for fold in set(folds.tolist()):
        inside = folds == fold
        rest = truth[~inside]
        if kind != "none" and (rest.all() or not rest.any()):
            return float("inf")
        curve = _fitted(kind, log_odds[~inside], rest, may_sharpen)
        p[inside] = curve.probability(log_odds[inside])
    return log_loss(truth, p) if len(truth) else float("inf")


def _fitted(kind: CalibratorKind, log_odds: Numbers, truth: Flags, may_sharpen: bool) -> Calibrator:
    if kind == "none":
        return Calibrator()
    if kind == "isotonic":
        return _isotonic(log_odds, truth)
    from scipy.optimize import minimize

    signs = np.where(truth, 1.0, -1.0)
    is_moved = kind == "platt"

    def loss(shape: Numbers) -> float:
        shift = shape[1] if is_moved else 0.0
        return float(np.logaddexp(0.0, -signs * (shape[0] * log_odds + shift)).mean())

    bounds = [(LEAST_SLOPE, MOST_SLOPE if may_sharpen else 1.0)] + [(-20.0, 20.0)] * is_moved
    found = minimize(loss, np.array([1.0, 0.0][: 1 + is_moved]), bounds=bounds, method="L-BFGS-B").x
    if is_moved:
        return Calibrator("platt", (float(found[0]),), (float(found[1]),))
    return Calibrator("temperature", (float(found[0]),))


def _isotonic(log_odds: Numbers, truth: Flags) -> Calibrator:
    """A rising curve; shares are kept from 0 and 1 by what a row more would change."""
    from sklearn.isotonic import IsotonicRegression

    least = 1.0 / (len(truth) + 2)
    model = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(log_odds, truth)
    knots, places = np.unique(model.X_thresholds_, return_index=True)
    shares = model.y_thresholds_[places]
    return Calibrator("isotonic", knots=tuple(map(float, knots)), shares=tuple(map(float, shares)))


# (cases to fit on, cases to score) -> scores of the latter.
Scorer = Callable[[Places, Places], Numbers]


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
