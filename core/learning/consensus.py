"""Several agents' word as one probability: all alike, by their record, or by a learned stack.

Every weighting comes to the same form, so that it can be kept as plain numbers and shown: what an
agent said adds its log-odds, by kind of case, to an intercept. Source: SC-MAKS 3.5, whose weights
`w_i(Q; θ)` a policy learns; here they are fitted to people's answers by maximum likelihood.

- uniform: the mean of all votes, made a probability by two numbers (Platt 1999).
- history: log P(said | hallucinated) / P(said | supported) of each agent, counted with smoothing;
  a kind's own counts are drawn towards the agent's overall ones. Agents that err together would be
  counted twice, so a slope fitted on counts of other folds scales the sum.
- stack: logistic regression with an L2 penalty over votes (one-hot: hallucinated against supported,
  unclear, missing), the same by kind, kinds, and features of the debate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import InputError
from core.learning.cheap_head import on_one_core
from core.learning.votes import Numbers, Votes, folds
from core.learning.weights import Weighting, Weights, states_of
from core.verdict.head import sigmoid

SHRINK = 20.0  # a kind's own cases weigh as much as this many of the agent's overall rates
SMOOTHING = 1.0  # pseudo-counts for each thing that an agent may say
BY_KIND = 0.5  # columns by kind are smaller, so that the penalty holds them back more
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # C: inverse strength of the penalty
PLATT_STRENGTH = 10.0
INNER_SEED = 97


def cross_fitted(votes: Votes, weighting: Weighting, seed: int) -> Numbers:
    """(n,) each case's probability from weights that were fitted without its fold.

    Raises:
        InputError: there are fewer groups than folds, or one label only.
    """
    fold = folds(votes.groups, votes.labels, seed)
    p = np.empty(len(votes))
    for own in np.unique(fold):
        held = fold == own
        part = votes.rows(held)
        p[held] = fit(votes.rows(~held), weighting).p(part.said, part.kinds, part.features)
    return p


def fit(votes: Votes, weighting: Weighting) -> Weights:
    """Weights from all these cases; always the same from the same cases.

    Raises:
        InputError: there is one label only, or too few groups to choose by.
    """
    if len(np.unique(votes.labels)) < 2:
        raise InputError("Expected cases of both labels to learn weights from, found one label.")
    makers = {"uniform": _uniform, "history": _history, "stack": _stack}
    with on_one_core():
        return makers[weighting](votes)


def _uniform(votes: Votes) -> Weights:
    states = states_of(votes.said)
    spoke = np.maximum(1, (~np.isnan(votes.said)).sum(axis=1))
    score = (states[:, :, 0] - states[:, :, 1]).sum(axis=1) / spoke
    (slope,), intercept = _logistic(score[:, None], votes.labels, PLATT_STRENGTH)
    if slope < 0.0:  # agents that are mostly wrong are not believed the other way round
        (slope,), intercept = _logistic(np.zeros((len(votes), 1)), votes.labels, PLATT_STRENGTH)
    one = (slope, -slope, 0.0, 0.0)
    table = (tuple(one for _ in votes.agents),)
    return Weights("uniform", votes.agents, (), intercept, (0.0,), table, is_mean=True)


def _history(votes: Votes) -> Weights:
    kinds = tuple(sorted(set(votes.kinds)))
    inner = folds(votes.groups, votes.labels, INNER_SEED)
    scores = np.empty((len(votes), 2))
    for own in np.unique(inner):
        held = inner == own
        part = _Record.of(votes.rows(~held), kinds)
        scores[held] = part.scores(votes.rows(held))
    (slope, prior), intercept = _logistic(scores, votes.labels, PLATT_STRENGTH)
    record = _Record.of(votes, kinds)
    table = record.table * slope
    offsets = record.priors * prior
    return Weights("history", votes.agents, kinds, intercept, _told(offsets), _nested(table))


@dataclass(frozen=True)
class _Record:
    """How often agents said what where it was right and wrong, as log-odds.

    `table` (kinds + 1, agents, 4), `priors` (kinds + 1) log-odds of being hallucinated.
    """

    kinds: tuple[str, ...]
    table: Numbers
    priors: Numbers

    @classmethod
    def of(cls, votes: Votes, kinds: tuple[str, ...]) -> _Record:
        states = states_of(votes.said)[:, :, :3]
        sides = np.stack([votes.labels == 1.0, votes.labels == 0.0]).astype(np.float64)
        rates = _rates(np.einsum("yn,nas->yas", sides, states))
        tables, priors = [], []
        whole = _odds(sides.sum(axis=1), np.full(2, 1.0))
        for kind in kinds:
            inside = np.array([own == kind for own in votes.kinds], dtype=np.float64)
            counts = np.einsum("yn,nas->yas", sides * inside, states)
            tables.append(_log_ratio(_drawn_to(counts, rates)))
            share = sides.sum(axis=1) / len(votes)
            priors.append(_odds((sides * inside).sum(axis=1), SHRINK * share))
        table = np.stack([*tables, _log_ratio(rates)])
        silent = np.zeros((*table.shape[:2], 1))
        return cls(kinds, np.concatenate([table, silent], axis=2), np.array([*priors, whole]))

    def scores(self, votes: Votes) -> Numbers:
        """(n, 2) the sum of the agents' log-odds, and the kind's."""
        places = np.array([self.kinds.index(kind) for kind in votes.kinds], dtype=np.int64)
        added = (self.table[places] * states_of(votes.said)).sum(axis=(1, 2))
        return np.stack([added, self.priors[places]], axis=1)


def _rates(counts: Numbers) -> Numbers:
    """P(said | truth), (2, agents, 3), smoothed evenly."""
    total = counts.sum(axis=2, keepdims=True)
    found: Numbers = (counts + SMOOTHING) / (total + 3 * SMOOTHING)
    return found


def _drawn_to(counts: Numbers, rates: Numbers) -> Numbers:
    """Rates of a kind, drawn to the overall ones."""
    found: Numbers = (counts + SHRINK * rates) / (counts.sum(axis=2, keepdims=True) + SHRINK)
    return found


def _log_ratio(rates: Numbers) -> Numbers:
    found: Numbers = np.log(rates[0] / rates[1])
    return found


def _odds(sides: Numbers, extra: Numbers) -> float:
    wrong, right = sides + np.maximum(extra, 1e-3)
    return float(np.log(wrong / right))


def _stack(votes: Votes) -> Weights:
    kinds = tuple(sorted(set(votes.kinds)))
    with np.errstate(all="ignore"):
        known = ~np.isnan(votes.features)
        many = np.maximum(1, known.sum(axis=0))
        centre = np.where(known, votes.features, 0.0).sum(axis=0) / many
        spread = np.sqrt(np.where(known, (votes.features - centre) ** 2, 0.0).sum(axis=0) / many)
    scale = np.where(spread > 1e-9, spread, 1.0)
    columns = _columns(votes, kinds, centre, scale)
    strength = _best_strength(columns, votes)
    found, intercept = _logistic(columns, votes.labels, strength)
    numbers = np.array(found)
    a, k = len(votes.agents), len(kinds)
    signed, unclear, missing = numbers[:a], numbers[a : 2 * a], numbers[2 * a : 3 * a]
    by_kind = numbers[3 * a : 3 * a + k * a].reshape(k, a) * BY_KIND
    offsets = numbers[3 * a + k * a : 3 * a + k * a + k]
    own = np.concatenate([signed + by_kind, signed[None]])
    rest = np.broadcast_to(np.stack([unclear, missing], axis=1), (k + 1, a, 2))
    table = np.concatenate([np.stack([own, -own], axis=2), rest], axis=2)
    return Weights(
        "stack",
        votes.agents,
        kinds,
        intercept,
        (*_told(offsets), 0.0),
        _nested(table),
        names=votes.names,
        centres=_told(centre),
        scales=_told(scale),
        coefficients=_told(numbers[3 * a + k * a + k :]),
    )


def _columns(votes: Votes, kinds: Sequence[str], centre: Numbers, scale: Numbers) -> Numbers:
    """(n, columns) votes signed, unclear, missing; signed by kind; kinds; features."""
    states = states_of(votes.said)
    signed = states[:, :, 0] - states[:, :, 1]
    inside = np.array([[own == kind for kind in kinds] for own in votes.kinds], dtype=np.float64)
    by_kind = (inside[:, :, None] * signed[:, None, :]).reshape(len(votes), -1) * BY_KIND
    features = np.nan_to_num((votes.features - centre) / scale, nan=0.0)
    parts = (signed, states[:, :, 2], states[:, :, 3], by_kind, inside, features)
    return np.concatenate(parts, axis=1)


def _best_strength(columns: Numbers, votes: Votes) -> float:
    """The penalty with the least log loss on inner folds of whole groups; the stronger on a tie."""
    inner = folds(votes.groups, votes.labels, INNER_SEED)
    losses = np.zeros(len(STRENGTHS))
    for own in np.unique(inner):
        held = inner == own
        if len(np.unique(votes.labels[~held])) < 2:
            continue
        model = _regression(STRENGTHS[0])
        for place, strength in enumerate(STRENGTHS):  # each starts where the one before ended
            model.set_params(C=strength).fit(columns[~held], votes.labels[~held])
            p = sigmoid(columns[held] @ model.coef_[0] + model.intercept_[0])
            losses[place] += log_losses(votes.labels[held], p).sum()
    return STRENGTHS[int(losses.argmin())]


def log_losses(labels: Numbers, p: Numbers) -> Numbers:
    """(n,) minus the log of the probability that the right label was given, in nats."""
    found: Numbers = -np.log(np.where(labels == 1.0, p, 1.0 - p))
    return found


def _logistic(
    columns: Numbers, labels: Numbers, strength: float
) -> tuple[tuple[float, ...], float]:
    """Coefficients and intercept of a logistic regression with an L2 penalty of 1 / strength."""
    model = _regression(strength)
    model.fit(columns, labels)
    return _told(model.coef_[0]), float(model.intercept_[0])


def _regression(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=500, tol=1e-5, warm_start=True)


def _told(numbers: Numbers) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)


def _nested(table: Numbers) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(tuple(_told(own) for own in kind) for kind in table)
