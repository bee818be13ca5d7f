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

How weightings of agents do beside a majority, the best single agent and no agent at all. Each
weighting's probabilities are cross-fitted on the same folds of whole groups; so is the choice of
the best single agent. Intervals are 95 % of a bootstrap over groups. A majority and a single
agent give no probability of their own: they have no log loss and no calibration error. Beside a
calibration error stands what perfectly calibrated p would show by chance: resamples of one always
lie above it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import InputError
from core.learning.heads import on_one_core
from core.learning.weights import (
    UNCLEAR,
    WEIGHTINGS,
    Numbers,
    Places,
    Votes,
    Weighting,
    Weights,
    folds,
    numbered,
    states_of,
)
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
