"""Several agents' word as one probability: all alike, by their record, or by a learned stack.

Every weighting comes to the same form, so that it can be kept as plain numbers and shown: what an
agent said adds its log-odds, by kind of case, to an intercept. Source: SC-MAKS 3.5, whose weights
`w_i(Q; θ)` a policy learns; here they are fitted to people's answers by maximum likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from core.learning.metrics import (
    HALLUCINATED,
    SUPPORTED,
    UNCLEAR,
    Figure,
    Flags,
    Measure,
    Numbers,
    Places,
    balanced,
    bootstrap,
    calibration_error,
    ece_by_chance,
    folds,
    log_losses,
    mean_of,
    numbered,
    on_one_core,
    ranking,
    subset,
)
from core.runtime.errors import ConfigError, InputError
from core.verdict.classifier import sigmoid
from core.verdict.consensus_weights import converted

Weighting = Literal["uniform", "history", "stack"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)  # the simplest first
SCHEMA = 1
STATES = 4  # said hallucinated, supported, unclear, nothing
SHRINK = 20.0  # a kind's own cases weigh as much as this many of the agent's overall rates
SMOOTHING = 1.0  # pseudo-counts for each thing that an agent may say
BY_KIND = 0.5  # columns by kind are smaller, so that the penalty holds them back more
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # C: inverse strength of the penalty
PLATT_STRENGTH = 10.0
INNER_SEED = 97
DRAWS = 500
MAJORITY, SINGLE, ALWAYS = "majority", "single", "always"
PROBABLE = (*WEIGHTINGS, ALWAYS)  # those that give a probability


@dataclass(frozen=True)
class Votes:
    """n cases with what each agent said of them and what is right.

    `said` is (n, agents): 1 hallucinated, 0 supported, one half unclear, a probability of being
    hallucinated in between, NaN where the agent said nothing. `kinds` and `groups` are n names:
    cases of one group never lie in two folds. `labels` is (n,), 1 hallucinated and 0 supported;
    what people left unclear has no place here. `features` is (n, d), NaN where not known, and
    `names` are its columns.
    """

    agents: tuple[str, ...]
    said: Numbers
    kinds: tuple[str, ...]
    groups: tuple[str, ...]
    labels: Numbers
    features: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.labels)
        if not self.names:
            object.__setattr__(self, "features", np.zeros((n, 0)))
        shapes = (self.said.shape, len(self.kinds), len(self.groups), self.features.shape)
        wanted = ((n, len(self.agents)), n, n, (n, len(self.names)))
        if shapes != wanted:
            raise InputError(
                f"Expected {n} cases by {len(self.agents)} agents and {len(self.names)} features, "
                f"found {shapes}; give every case its row."
            )
        told = self.said[~np.isnan(self.said)]
        if told.size and not (told.min() >= 0.0 and told.max() <= 1.0):
            raise InputError("Expected what agents said as numbers from 0 to 1, found others.")
        if not np.isin(self.labels, (SUPPORTED, HALLUCINATED)).all():
            raise InputError("Expected labels 0 (supported) or 1 (hallucinated), found others.")

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, which: Places | Flags) -> Votes:
        """The same of these cases only, in this order."""
        return subset(self, which, "said", "kinds", "groups", "labels", "features")


@dataclass(frozen=True)
class Weights:
    """A fitted weighting in plain numbers: log-odds of being hallucinated.

    `table` is (kinds + 1, agents, 4): what it adds that the agent said hallucinated, supported,
    unclear, nothing; its last kind serves kinds that were not seen. `offsets` (kinds + 1) are added
    too. Where `is_mean`, the agents' sum is divided by how many spoke. `coefficients` belong to the
    features, taken as (value - centre) / scale, 0 where not known.
    """

    weighting: Weighting
    agents: tuple[str, ...]
    kinds: tuple[str, ...]
    intercept: float
    offsets: tuple[float, ...]
    table: tuple[tuple[tuple[float, ...], ...], ...]
    is_mean: bool = False
    names: tuple[str, ...] = ()
    centres: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    coefficients: tuple[float, ...] = ()
    schema: int = SCHEMA

    def p(self, said: Numbers, kinds: Sequence[str], features: Numbers | None = None) -> Numbers:
        """(n,) strictly inside 0 and 1, of `said` (n, agents) and `features` (n, names) or None."""
        logit = self.intercept + self.parts(said, kinds).sum(axis=1)
        logit = logit + np.array(self.offsets)[self._kind_places(kinds)]
        if features is not None and self.names:
            given = (features - np.array(self.centres)) / np.array(self.scales)
            logit = logit + np.nan_to_num(given, nan=0.0) @ np.array(self.coefficients)
        return sigmoid(logit)

    def parts(self, said: Numbers, kinds: Sequence[str]) -> Numbers:
        """(n, agents) what each agent's word adds in log-odds."""
        table = np.array(self.table)[self._kind_places(kinds)]  # (n, agents, 4)
        added: Numbers = (table * states_of(said)).sum(axis=2)
        if self.is_mean:
            added = added / np.maximum(1, (~np.isnan(said)).sum(axis=1, keepdims=True))
        return added

    def _kind_places(self, kinds: Sequence[str]) -> Places:
        place = {kind: number for number, kind in enumerate(self.kinds)}
        return np.array([place.get(kind, len(self.kinds)) for kind in kinds], dtype=np.int64)


def weights_from(plain: Any) -> Weights:
    """The weights that `to_plain` made."""
    found = converted(plain, Weights, "weights of agents")
    shape = (len(found.kinds) + 1, len(found.agents), STATES)
    sizes = {len(found.names), len(found.centres), len(found.scales), len(found.coefficients)}
    table = np.array(found.table, dtype=np.float64) if found.agents else np.zeros(shape)
    is_whole = found.schema == SCHEMA and table.shape == shape and len(sizes) == 1
    if not is_whole or len(found.offsets) != shape[0]:
        raise ConfigError(
            f"Expected weights of agents of schema {SCHEMA}, found others; learn them anew."
        )
    return found


def states_of(said: Numbers) -> Numbers:
    """(n, agents, 4) shares of having said hallucinated, supported, unclear, nothing."""
    silent, unclear = np.isnan(said), said == UNCLEAR
    decided = ~silent & ~unclear
    states = (np.where(decided, said, 0.0), np.where(decided, 1.0 - said, 0.0), unclear, silent)
    return np.stack(states, axis=2).astype(np.float64)


def held_out(groups: Sequence[str], labels: Numbers, seed: int) -> Iterator[Flags]:
    """Of each fold, (n,) which cases lie in it.

    Raises InputError: there are fewer groups than folds.
    """
    fold = folds(groups, labels, seed)
    return (fold == own for own in np.unique(fold))


def cross_fitted(votes: Votes, weighting: Weighting, seed: int) -> Numbers:
    """(n,) each case's probability from weights that were fitted without its fold."""
    p = np.empty(len(votes))
    for held in held_out(votes.groups, votes.labels, seed):
        part = votes.rows(held)
        p[held] = fit(votes.rows(~held), weighting).p(part.said, part.kinds, part.features)
    return p


def fit(votes: Votes, weighting: Weighting) -> Weights:
    """Weights from all these cases; always the same from the same cases."""
    if len(np.unique(votes.labels)) < 2:
        raise InputError("Expected cases of both labels to learn weights from, found one label.")
    makers = {"uniform": _uniform, "history": _history, "stack": _stack}
    with on_one_core():
        return makers[weighting](votes)


def _uniform(votes: Votes) -> Weights:
    """The mean of all votes, made a probability by two numbers (Platt 1999)."""
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
    """Each agent's log P(said | hallucinated) / P(said | supported), scaled: some err alike."""
    kinds = tuple(sorted(set(votes.kinds)))
    scores = np.empty((len(votes), 2))
    for held in held_out(votes.groups, votes.labels, INNER_SEED):
        table, priors = _record(votes.rows(~held), kinds)
        part = votes.rows(held)
        places = [kinds.index(kind) for kind in part.kinds]
        scores[held, 0] = (table[places] * states_of(part.said)).sum(axis=(1, 2))
        scores[held, 1] = priors[places]
    (slope, prior), intercept = _logistic(scores, votes.labels, PLATT_STRENGTH)
    table, priors = _record(votes, kinds)
    offsets = _told(priors * prior)
    return Weights("history", votes.agents, kinds, intercept, offsets, _nested(table * slope))


def _record(votes: Votes, kinds: tuple[str, ...]) -> tuple[Numbers, Numbers]:
    """(kinds + 1, agents, 4) log-odds of what agents said, smoothed, and (kinds + 1) of labels."""
    states = states_of(votes.said)[:, :, :3]
    sides = np.stack([votes.labels == 1.0, votes.labels == 0.0]).astype(np.float64)
    counts = np.einsum("yn,nas->yas", sides, states)  # (2, agents, 3) by what is right
    rates = (counts + SMOOTHING) / (counts.sum(axis=2, keepdims=True) + 3 * SMOOTHING)
    tables, priors = [], []
    for kind in kinds:
        inside = np.array([own == kind for own in votes.kinds], dtype=np.float64)
        counts = np.einsum("yn,nas->yas", sides * inside, states)
        drawn = (counts + SHRINK * rates) / (counts.sum(axis=2, keepdims=True) + SHRINK)
        tables.append(np.log(drawn[0] / drawn[1]))
        share = sides.sum(axis=1) / len(votes)
        priors.append(_odds((sides * inside).sum(axis=1), SHRINK * share))
    priors.append(_odds(sides.sum(axis=1), np.full(2, 1.0)))
    table = np.stack([*tables, np.log(rates[0] / rates[1])])
    silent = np.zeros((*table.shape[:2], 1))
    return np.concatenate([table, silent], axis=2), np.array(priors)


def _odds(sides: Numbers, extra: Numbers) -> float:
    wrong, right = sides + np.maximum(extra, 1e-3)
    return float(np.log(wrong / right))


def _stack(votes: Votes) -> Weights:
    """Logistic regression (L2) over votes, votes by kind, kinds, and features of the debate."""
    kinds = tuple(sorted(set(votes.kinds)))
    with np.errstate(all="ignore"):
        known = ~np.isnan(votes.features)
        many = np.maximum(1, known.sum(axis=0))
        centre = np.where(known, votes.features, 0.0).sum(axis=0) / many
        spread = np.sqrt(np.where(known, (votes.features - centre) ** 2, 0.0).sum(axis=0) / many)
    scale = np.where(spread > 1e-9, spread, 1.0)
    columns = _columns(votes, kinds, centre, scale)
    found, intercept = _logistic(columns, votes.labels, _best_strength(columns, votes))
    a, k = len(votes.agents), len(kinds)
    cuts = np.cumsum([a, a, a, k * a, k])
    signed, unclear, missing, by_kind, offsets, own = np.split(np.array(found), cuts)
    told = np.concatenate([signed + by_kind.reshape(k, a) * BY_KIND, signed[None]])
    rest = np.broadcast_to(np.stack([unclear, missing], axis=1), (k + 1, a, 2))
    table = _nested(np.concatenate([np.stack([told, -told], axis=2), rest], axis=2))
    ends, features = (*_told(offsets), 0.0), (_told(centre), _told(scale), _told(own))
    names = votes.names
    return Weights("stack", votes.agents, kinds, intercept, ends, table, False, names, *features)


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
    losses = np.zeros(len(STRENGTHS))
    for held in held_out(votes.groups, votes.labels, INNER_SEED):
        if len(np.unique(votes.labels[~held])) < 2:
            continue
        model = _regression(STRENGTHS[0])
        for place, strength in enumerate(STRENGTHS):  # each starts where the one before ended
            model.set_params(C=strength).fit(columns[~held], votes.labels[~held])
            p = sigmoid(columns[held] @ model.coef_[0] + model.intercept_[0])
            losses[place] += log_losses(votes.labels[held] == 1.0, p).sum()
    return STRENGTHS[int(losses.argmin())]


def _logistic(
    columns: Numbers, labels: Numbers, strength: float
) -> tuple[tuple[float, ...], float]:
    model = _regression(strength).fit(columns, labels)
    return _told(model.coef_[0]), float(model.intercept_[0])


def _regression(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=500, tol=1e-5, warm_start=True)


def _told(numbers: Numbers) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)


def _nested(table: Numbers) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(tuple(_told(own) for own in kind) for kind in table)


@dataclass(frozen=True)
class WeightingComparison:
    """Figures by system and name, what is proposed and why; `single` was mostly the best agent."""

    figures: dict[str, dict[str, Figure]]
    n: int
    groups: int
    hallucinated: int
    proposed: Weighting
    is_tie: bool
    single: str


def compare(votes: Votes, seed: int) -> WeightingComparison:
    """All weightings beside a majority, the best single agent and none, on the same folds.

    A majority and a single agent give no probability, so no log loss and no calibration error.
    Beside the latter stands what perfectly calibrated p would show by chance: resamples of one
    always lie above it.
    """
    p: dict[str, Numbers] = {w: cross_fitted(votes, w, seed) for w in WEIGHTINGS}
    decided = ~np.isnan(votes.said) & (votes.said != UNCLEAR)
    many, sides = decided.sum(axis=1), (decided & (votes.said > UNCLEAR)).sum(axis=1)
    p[MAJORITY] = np.where(many > 0, sides / np.maximum(many, 1), UNCLEAR)
    p[SINGLE], single = _best_single(votes, seed)
    p[ALWAYS] = np.empty(len(votes))
    for held in held_out(votes.groups, votes.labels, seed):
        p[ALWAYS][held] = (votes.labels[~held].sum() + 1.0) / ((~held).sum() + 2.0)
    places = numbered(votes.groups)
    named = {
        (system, name): measure
        for system, own in p.items()
        for name, measure in measures(votes.labels, own, system in PROBABLE).items()
    }
    found: dict[str, dict[str, Figure]] = {system: {} for system in p}
    for (system, name), figure in bootstrap(named, places, seed, DRAWS).items():
        found[system][name] = figure
    # one number for all tells no case from another; those of the folds run against their labels
    found[ALWAYS]["auroc"] = Figure(0.5, 0.5, 0.5)
    for system in PROBABLE:
        _, low, high = ece_by_chance(p[system], seed, DRAWS)
        found[system]["ece"] = found[system]["ece"]._replace(low=low, high=high)
    proposed, is_tie = _proposed(votes.labels, p, places, seed)
    groups, hallucinated = int(places.max()) + 1, int(votes.labels.sum())
    return WeightingComparison(found, len(votes), groups, hallucinated, proposed, is_tie, single)


def measures(labels: Numbers, p: Numbers, is_probability: bool) -> dict[str, Measure]:
    """Each figure by name; at one half exactly nothing was decided, which is right nowhere."""
    wrong = labels == 1.0
    right = (p != UNCLEAR) & ((p > UNCLEAR) == wrong)
    found = {
        "auroc": ranking(wrong, p),
        "balanced_accuracy": balanced(wrong, right),
        "accuracy": mean_of(right),
    }
    if is_probability:
        found |= {"log_loss": mean_of(log_losses(wrong, p)), "ece": calibration_error(labels, p)}
    return found


def _best_single(votes: Votes, seed: int) -> tuple[Numbers, str]:
    """The best agent's word without the fold (silence is undecided); who it mostly was."""
    p, chosen = np.full(len(votes), UNCLEAR), []
    for held in held_out(votes.groups, votes.labels, seed):
        rest = votes.rows(~held)
        one, wrong = np.ones((1, len(rest))), rest.labels == 1.0
        decided = ~np.isnan(rest.said) & (rest.said != UNCLEAR)
        right = decided & ((rest.said > UNCLEAR) == wrong[:, None])
        chosen.append(int(np.nanargmax([balanced(wrong, own)(one)[0] for own in right.T])))
        p[held] = np.nan_to_num(votes.said[held, chosen[-1]], nan=UNCLEAR)
    return p, votes.agents[max(sorted(set(chosen)), key=chosen.count)]


def _proposed(
    labels: Numbers, p: Mapping[str, Numbers], groups: Places, seed: int
) -> tuple[Weighting, bool]:
    """The least log loss; a simpler weighting where the difference may be chance."""
    losses = {w: log_losses(labels == 1.0, p[w]) for w in WEIGHTINGS}
    best = min(WEIGHTINGS, key=lambda w: float(losses[w].mean()))
    for simpler in WEIGHTINGS[: WEIGHTINGS.index(best)]:
        worse = mean_of(losses[simpler] - losses[best])
        if bootstrap({"": worse}, groups, seed, DRAWS)[""].low <= 0.0:
            return simpler, True
    return best, False
