"""How weightings of agents do beside a majority, the best single agent and no agent at all.

Each weighting's probabilities are cross-fitted on the same folds of whole groups; so is the choice
of the best single agent. Intervals are 95 % of a bootstrap over groups. A majority and a single
agent give no probability of their own: they have no log loss and no calibration error. Beside a
calibration error stands what perfectly calibrated p would show by chance: resamples of one always
lie above it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.learning.consensus import cross_fitted, log_losses
from core.learning.votes import UNCLEAR, Numbers, Places, Votes, folds, numbered
from core.learning.weights import WEIGHTINGS, Weighting

Flags = npt.NDArray[np.bool_]
DRAWS = 500
AT_ONCE = 50
BINS = 10
MAJORITY, SINGLE, ALWAYS = "majority", "single", "always"
PROBABLE = (*WEIGHTINGS, ALWAYS)  # those that give a probability
Measure = Callable[[Numbers], Numbers]  # (draws, n) weights of cases to (draws,)
Figure = tuple[float, float, float]  # value, low, high


@dataclass(frozen=True)
class Compared:
    """Figures by system and name, the weighting that is proposed, and why.

    `single` names the agent that was the best one in most folds.
    """

    figures: dict[str, dict[str, Figure]]
    n: int
    groups: int
    hallucinated: int
    proposed: Weighting
    is_tie: bool
    single: str


def compare(votes: Votes, seed: int) -> Compared:
    """All weightings and baselines on the same folds.

    Raises:
        InputError: there are fewer groups than folds, or one label only.
    """
    p: dict[str, Numbers] = {w: cross_fitted(votes, w, seed) for w in WEIGHTINGS}
    p[MAJORITY] = _majority(votes)
    p[SINGLE], single = _best_single(votes, seed)
    p[ALWAYS] = _prevalence(votes, seed)
    places = numbered(votes.groups)
    many = int(places.max()) + 1
    weights = drawn_groups(places, many, seed)
    found = {
        system: {
            name: figure_of(measure, weights)
            for name, measure in measures(votes.labels, own, is_probability=system in PROBABLE)
        }
        for system, own in p.items()
    }
    # one number for all tells no case from another; those of the folds run against their labels
    found[ALWAYS]["auroc"] = (0.5, 0.5, 0.5)
    for system in PROBABLE:
        found[system]["ece"] = (found[system]["ece"][0], *_by_chance(p[system], seed))
    proposed, is_tie = _proposed(votes.labels, p, weights)
    return Compared(found, len(votes), many, int(votes.labels.sum()), proposed, is_tie, single)


def drawn_groups(places: Places, many: int, seed: int) -> Numbers:
    """(1 + draws, n) how often each case counts: once, then as its group was drawn."""
    random = np.random.default_rng(seed)
    times = random.multinomial(many, np.full(many, 1.0 / many), size=DRAWS)
    return np.concatenate([np.ones((1, len(places))), times[:, places]]).astype(np.float64)


def figure_of(measure: Measure, weights: Numbers) -> Figure:
    """The measure of the first row of weights, and the middle 95 % of those of the others."""
    parts = [measure(weights[i : i + AT_ONCE]) for i in range(0, len(weights), AT_ONCE)]
    value, *drawn = np.concatenate(parts).tolist()
    known = [own for own in drawn if not np.isnan(own)]
    low, high = np.quantile(known, [0.025, 0.975]).tolist() if known else (value, value)
    return float(value), float(low), float(high)


def _by_chance(p: Numbers, seed: int) -> tuple[float, float]:
    """Between which calibration errors 95 % of perfectly calibrated models with these p lie."""
    random = np.random.default_rng(seed)
    place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    inside = (place[:, None] == np.arange(BINS)).astype(np.float64)
    errors = [
        float(np.abs((p - (random.random(len(p)) < p)) @ inside).sum() / len(p))
        for _ in range(DRAWS)
    ]
    low, high = np.quantile(errors, [0.025, 0.975]).tolist()
    return low, high


def measures(labels: Numbers, p: Numbers, *, is_probability: bool) -> list[tuple[str, Measure]]:
    """Each figure by name; at one half exactly nothing was decided, which is right nowhere."""
    wrong = labels == 1.0
    right = np.where(p == UNCLEAR, 0.0, ((p > UNCLEAR) == wrong).astype(np.float64))
    found: list[tuple[str, Measure]] = [
        ("auroc", _ranking(p, wrong)),
        ("balanced_accuracy", lambda w: (_mean(w * wrong, right) + _mean(w * ~wrong, right)) / 2),
        ("accuracy", lambda w: _mean(w, right)),
    ]
    if is_probability:
        losses = log_losses(labels, p)
        place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
        gaps = (place[:, None] == np.arange(BINS)) * (p - labels)[:, None]
        found += [
            ("log_loss", lambda w: _mean(w, losses)),
            ("ece", lambda w: np.abs(w @ gaps).sum(axis=1) / w.sum(axis=1)),
        ]
    return found


def _mean(weights: Numbers, values: Numbers) -> Numbers:
    total = weights.sum(axis=1)
    found: Numbers = np.where(total > 0, weights @ values / np.maximum(total, 1e-9), np.nan)
    return found


def _ranking(p: Numbers, wrong: Flags) -> Measure:
    """AUROC: how often a hallucinated case has the higher p than a supported one; ties half."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.diff(p[order], prepend=-1.0))
    up, down = wrong[order].astype(np.float64), (~wrong[order]).astype(np.float64)

    def measure(weights: Numbers) -> Numbers:
        ranked = weights[:, order]
        high = np.add.reduceat(ranked * up, starts, axis=1)
        low = np.add.reduceat(ranked * down, starts, axis=1)
        below = np.cumsum(low, axis=1) - low / 2
        total = high.sum(axis=1) * low.sum(axis=1)
        part = (high * below).sum(axis=1)
        return np.where(total > 0, part / np.maximum(total, 1e-9), np.nan)

    return measure


def _majority(votes: Votes) -> Numbers:
    """The mean vote of those who decided; one half where nobody did."""
    decided = ~np.isnan(votes.said) & (votes.said != UNCLEAR)
    many = decided.sum(axis=1)
    sides = (decided & (votes.said > UNCLEAR)).sum(axis=1)
    return np.where(many > 0, sides / np.maximum(many, 1), UNCLEAR)


def _best_single(votes: Votes, seed: int) -> tuple[Numbers, str]:
    """What the agent says that did best without the fold, by balanced accuracy; who it mostly was.

    One who said nothing on a case counts as undecided there.
    """
    fold = folds(votes.groups, votes.labels, seed)
    p = np.full(len(votes), UNCLEAR)
    chosen: list[int] = []
    for own in np.unique(fold):
        held = fold == own
        rest = votes.rows(~held)
        one = np.ones((1, len(rest)))
        scores = [
            float(_balanced(rest.labels, np.nan_to_num(said, nan=UNCLEAR))(one)[0])
            for said in rest.said.T
        ]
        best = int(np.nanargmax(scores))
        chosen.append(best)
        p[held] = np.nan_to_num(votes.said[held, best], nan=UNCLEAR)
    most = max(sorted(set(chosen)), key=chosen.count)
    return p, votes.agents[most]


def _balanced(labels: Numbers, p: Numbers) -> Measure:
    return dict(measures(labels, p, is_probability=False))["balanced_accuracy"]


def _prevalence(votes: Votes, seed: int) -> Numbers:
    """The same probability for every case of a fold: the share hallucinated of the others."""
    fold = folds(votes.groups, votes.labels, seed)
    p = np.empty(len(votes))
    for own in np.unique(fold):
        rest = votes.labels[fold != own]
        p[fold == own] = (rest.sum() + 1.0) / (len(rest) + 2.0)
    return p


def _proposed(
    labels: Numbers, p: Mapping[str, Numbers], weights: Numbers
) -> tuple[Weighting, bool]:
    """The least log loss; a simpler weighting where the difference may be chance."""
    losses = {w: log_losses(labels, p[w]) for w in WEIGHTINGS}
    best = min(WEIGHTINGS, key=lambda w: float(losses[w].mean()))
    for simpler in WEIGHTINGS[: WEIGHTINGS.index(best)]:
        worse = losses[simpler] - losses[best]
        _, low, _ = figure_of(lambda w, worse=worse: _mean(w, worse), weights)  # type: ignore[misc]
        if low <= 0.0:
            return simpler, True
    return best, False
