"""Combines what several agents said into one probability, by one of three weightings.

All alike, by each agent's record, or by a learned stack. Every weighting has the same form, so that
it can be stored as plain numbers and shown: what an agent said adds its log odds, by kind of case,
to an intercept. Source: SC-MAKS 3.5, whose weights `w_i(Q; θ)` a policy learns; here they are
fitted to people's answers by maximum likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from core.learning.metrics import (
    HALLUCINATED_VALUE,
    SUPPORTED_VALUE,
    UNCLEAR_VALUE,
    BoolArray,
    FloatArray,
    IndexArray,
    Measure,
    MetricEstimate,
    bootstrap_measures,
    compute_log_losses,
    deal_folds,
    estimate_chance_ece,
    limit_to_one_thread,
    make_auroc,
    make_balanced_mean,
    make_ece,
    make_mean,
    number_names,
    select_rows,
)
from core.runtime.errors import ConfigError, InputError
from core.verdict.classifier import sigmoid
from core.verdict.consensus_weights import convert_plain, scale_features

Weighting = Literal["uniform", "history", "stack"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)  # simplest first
CONSENSUS_SCHEMA = 1
ANSWER_STATES = 4  # said hallucinated, supported, unclear, nothing
SHRINKAGE_CASES = 20.0  # the agent's overall rates count as this many cases of a kind
SMOOTHING_COUNT = 1.0  # pseudo-count of each answer an agent may give
KIND_COLUMN_SCALE = 0.5  # scale of the columns by kind, so that the penalty shrinks them more
REGULARISATION_GRID = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # C: inverse strength of the penalty
PLATT_REGULARISATION = 10.0
INNER_FOLD_SEED = 97
CONSENSUS_BOOTSTRAP_DRAWS = 500
MAJORITY_SYSTEM, SINGLE_SYSTEM, CONSTANT_BASELINE = "majority", "single", "always"
PROBABILITY_SYSTEMS = (*WEIGHTINGS, CONSTANT_BASELINE)  # those that give a probability


@dataclass(frozen=True)
class VoteMatrix:
    """n cases with what each agent said of them and what is right.

    `said` is (n, agents): 1 hallucinated, 0 supported, one half unclear, a probability of being
    hallucinated in between, NaN if the agent said nothing. `kinds` and `groups` are n names; cases
    of one group never lie in two folds. `labels` is (n,), 1 hallucinated and 0 supported; cases
    that people left unclear are not included. `features` is (n, d), NaN where not known, and
    `names` are its columns.
    """

    agents: tuple[str, ...]
    said: FloatArray
    kinds: tuple[str, ...]
    groups: tuple[str, ...]
    labels: FloatArray
    features: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.labels)
        if not self.names:
            object.__setattr__(self, "features", np.zeros((n, 0)))
        shapes = (self.said.shape, len(self.kinds), len(self.groups), self.features.shape)
        expected = ((n, len(self.agents)), n, n, (n, len(self.names)))
        if shapes != expected:
            raise InputError(
                f"Expected {n} cases by {len(self.agents)} agents and {len(self.names)} features, "
                f"found {shapes}; give every case its row."
            )
        stated = self.said[~np.isnan(self.said)]
        if stated.size and not (stated.min() >= 0.0 and stated.max() <= 1.0):
            raise InputError("Expected what agents said as numbers from 0 to 1, found others.")
        if not np.isin(self.labels, (SUPPORTED_VALUE, HALLUCINATED_VALUE)).all():
            raise InputError("Expected labels 0 (supported) or 1 (hallucinated), found others.")

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, which: IndexArray | BoolArray) -> VoteMatrix:
        """Return only these cases, in this order."""
        return select_rows(self, which, "said", "kinds", "groups", "labels", "features")


@dataclass(frozen=True)
class ConsensusWeights:
    """A fitted weighting in plain numbers: log odds of being hallucinated.

    `table` is (kinds + 1, agents, 4): what is added if the agent said hallucinated, supported,
    unclear or nothing; its last kind serves kinds that were not seen. `offsets` (kinds + 1) are
    added as well. If `is_mean`, the agents' sum is divided by how many spoke. `coefficients` belong
    to the features, taken as (value - centre) / scale, 0 where not known.
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
    schema: int = CONSENSUS_SCHEMA

    def p(
        self, said: FloatArray, kinds: Sequence[str], features: FloatArray | None = None
    ) -> FloatArray:
        """Return (n,) p inside (0, 1); `said` (n, agents), `features` (n, names) or None."""
        logit = self.intercept + self.parts(said, kinds).sum(axis=1)
        logit = logit + np.array(self.offsets)[self._kind_indices(kinds)]
        if features is not None and self.names:
            level = scale_features(features, np.array(self.centres), np.array(self.scales))
            logit = logit + level @ np.array(self.coefficients)
        return sigmoid(logit)

    def parts(self, said: FloatArray, kinds: Sequence[str]) -> FloatArray:
        """Return (n, agents) what each agent's answer adds, in log odds."""
        table = np.array(self.table)[self._kind_indices(kinds)]  # (n, agents, 4)
        added: FloatArray = (table * encode_answer_states(said)).sum(axis=2)
        if self.is_mean:
            added = added / np.maximum(1, (~np.isnan(said)).sum(axis=1, keepdims=True))
        return added

    def _kind_indices(self, kinds: Sequence[str]) -> IndexArray:
        place = {kind: number for number, kind in enumerate(self.kinds)}
        return np.array([place.get(kind, len(self.kinds)) for kind in kinds], dtype=np.int64)


def parse_consensus_weights(plain: Any) -> ConsensusWeights:
    """Return the weights stored as plain values. Raises ConfigError: they do not fit."""
    weights = convert_plain(plain, ConsensusWeights, "weights of agents")
    shape = (len(weights.kinds) + 1, len(weights.agents), ANSWER_STATES)
    of_features = (weights.names, weights.centres, weights.scales, weights.coefficients)
    sizes = {len(values) for values in of_features}
    table = np.array(weights.table, dtype=np.float64) if weights.agents else np.zeros(shape)
    is_whole = weights.schema == CONSENSUS_SCHEMA and table.shape == shape and len(sizes) == 1
    if not is_whole or len(weights.offsets) != shape[0]:
        raise ConfigError(
            f"Expected weights of agents of schema {CONSENSUS_SCHEMA}, found others; learn them "
            f"anew."
        )
    return weights


def encode_answer_states(said: FloatArray) -> FloatArray:
    """Return (n, agents, 4): how far each agent said hallucinated, supported, unclear, nothing."""
    silent, unclear = np.isnan(said), said == UNCLEAR_VALUE
    decided = ~silent & ~unclear
    states = (np.where(decided, said, 0.0), np.where(decided, 1.0 - said, 0.0), unclear, silent)
    return np.stack(states, axis=2).astype(np.float64)


def iter_fold_flags(groups: Sequence[str], labels: FloatArray, seed: int) -> Iterator[BoolArray]:
    """Yield each fold as (n,) flags. Raises InputError: there are fewer groups than folds."""
    fold = deal_folds(groups, labels, seed)
    return (fold == number for number in np.unique(fold))


def cross_fit_weighting(votes: VoteMatrix, weighting: Weighting, seed: int) -> FloatArray:
    """Return (n,) each case's probability by weights that were fitted without its fold."""
    p = np.empty(len(votes))
    for held in iter_fold_flags(votes.groups, votes.labels, seed):
        part = votes.rows(held)
        p[held] = fit_weighting(votes.rows(~held), weighting).p(
            part.said, part.kinds, part.features
        )
    return p


def fit_weighting(votes: VoteMatrix, weighting: Weighting) -> ConsensusWeights:
    """Fit weights to all these cases, deterministically. Raises InputError: only one label."""
    if len(np.unique(votes.labels)) < 2:
        raise InputError("Expected cases of both labels to learn weights from, found one label.")
    fitters = {"uniform": _fit_uniform, "history": _fit_history, "stack": _fit_stack}
    with limit_to_one_thread():
        return fitters[weighting](votes)


def _fit_uniform(votes: VoteMatrix) -> ConsensusWeights:
    """Return the mean of all votes as a probability by two numbers (Platt 1999)."""
    states = encode_answer_states(votes.said)
    spoke = np.maximum(1, (~np.isnan(votes.said)).sum(axis=1))
    score = (states[:, :, 0] - states[:, :, 1]).sum(axis=1) / spoke
    (slope,), intercept = _fit_logistic(score[:, None], votes.labels, PLATT_REGULARISATION)
    if slope < 0.0:  # never invert agents that are mostly wrong
        (slope,), intercept = _fit_logistic(
            np.zeros((len(votes), 1)), votes.labels, PLATT_REGULARISATION
        )
    entry = (slope, -slope, 0.0, 0.0)
    table = (tuple(entry for _ in votes.agents),)
    return ConsensusWeights("uniform", votes.agents, (), intercept, (0.0,), table, is_mean=True)


def _fit_history(votes: VoteMatrix) -> ConsensusWeights:
    """Fit each agent's log P(said | hallucinated) / P(said | supported), scaled: some err alike."""
    kinds = tuple(sorted(set(votes.kinds)))
    scores = np.empty((len(votes), 2))
    for held in iter_fold_flags(votes.groups, votes.labels, INNER_FOLD_SEED):
        table, priors = _record_log_odds(votes.rows(~held), kinds)
        part = votes.rows(held)
        places = [kinds.index(kind) for kind in part.kinds]
        scores[held, 0] = (table[places] * encode_answer_states(part.said)).sum(axis=(1, 2))
        scores[held, 1] = priors[places]
    (slope, prior), intercept = _fit_logistic(scores, votes.labels, PLATT_REGULARISATION)
    table, priors = _record_log_odds(votes, kinds)
    offsets = _to_floats(priors * prior)
    return ConsensusWeights(
        "history", votes.agents, kinds, intercept, offsets, _to_nested(table * slope)
    )


def _record_log_odds(votes: VoteMatrix, kinds: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Return smoothed log odds: (kinds + 1, agents, 4) of answers, (kinds + 1,) of labels."""
    states = encode_answer_states(votes.said)[:, :, :3]
    sides = np.stack([votes.labels == 1.0, votes.labels == 0.0]).astype(np.float64)
    counts = np.einsum("yn,nas->yas", sides, states)  # (2, agents, 3) by what is right
    rates = (counts + SMOOTHING_COUNT) / (counts.sum(axis=2, keepdims=True) + 3 * SMOOTHING_COUNT)
    tables, priors = [], []
    for kind in kinds:
        inside = np.array([case_kind == kind for case_kind in votes.kinds], dtype=np.float64)
        counts = np.einsum("yn,nas->yas", sides * inside, states)
        shrunk = (counts + SHRINKAGE_CASES * rates) / (
            counts.sum(axis=2, keepdims=True) + SHRINKAGE_CASES
        )
        tables.append(np.log(shrunk[0] / shrunk[1]))
        share = sides.sum(axis=1) / len(votes)
        priors.append(_smoothed_log_odds((sides * inside).sum(axis=1), SHRINKAGE_CASES * share))
    priors.append(_smoothed_log_odds(sides.sum(axis=1), np.full(2, 1.0)))
    table = np.stack([*tables, np.log(rates[0] / rates[1])])
    silent = np.zeros((*table.shape[:2], 1))
    return np.concatenate([table, silent], axis=2), np.array(priors)


def _smoothed_log_odds(sides: FloatArray, extra: FloatArray) -> float:
    wrong, right = sides + np.maximum(extra, 1e-3)
    return float(np.log(wrong / right))


def _fit_stack(votes: VoteMatrix) -> ConsensusWeights:
    """Fit logistic regression (L2) over votes, votes by kind, kinds and features of the debate."""
    kinds = tuple(sorted(set(votes.kinds)))
    centre, scale = compute_scale(votes.features)
    columns = _build_columns(votes, kinds, centre, scale)
    coefficients, intercept = _fit_logistic(columns, votes.labels, _choose_strength(columns, votes))
    agents, kind_count = len(votes.agents), len(kinds)
    cuts = np.cumsum([agents, agents, agents, kind_count * agents, kind_count])
    signed, unclear, missing, by_kind, offsets, of_features = np.split(np.array(coefficients), cuts)
    sides = np.concatenate(
        [signed + by_kind.reshape(kind_count, agents) * KIND_COLUMN_SCALE, signed[None]]
    )
    rest = np.broadcast_to(np.stack([unclear, missing], axis=1), (kind_count + 1, agents, 2))
    table = _to_nested(np.concatenate([np.stack([sides, -sides], axis=2), rest], axis=2))
    return ConsensusWeights(
        "stack",
        votes.agents,
        kinds,
        intercept,
        offsets=(*_to_floats(offsets), 0.0),
        table=table,
        names=votes.names,
        centres=_to_floats(centre),
        scales=_to_floats(scale),
        coefficients=_to_floats(of_features),
    )


def compute_scale(read: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (centres, scales) of (m, d) known features; 0 and 1 where nothing differs."""
    known = ~np.isnan(read)
    counts = np.maximum(1, known.sum(axis=0))
    centres = np.where(known, read, 0.0).sum(axis=0) / counts
    spread = np.sqrt((np.where(known, read - centres, 0.0) ** 2).sum(axis=0) / counts)
    return centres, np.where(spread > 1e-9, spread, 1.0)


def _build_columns(
    votes: VoteMatrix, kinds: Sequence[str], centre: FloatArray, scale: FloatArray
) -> FloatArray:
    """Return (n, columns): votes signed, unclear, missing; signed by kind; kinds; features."""
    states = encode_answer_states(votes.said)
    signed = states[:, :, 0] - states[:, :, 1]
    inside = np.array([[own == kind for kind in kinds] for own in votes.kinds], dtype=np.float64)
    by_kind = (inside[:, :, None] * signed[:, None, :]).reshape(len(votes), -1) * KIND_COLUMN_SCALE
    features = scale_features(votes.features, centre, scale)
    parts = (signed, states[:, :, 2], states[:, :, 3], by_kind, inside, features)
    return np.concatenate(parts, axis=1)


def _choose_strength(columns: FloatArray, votes: VoteMatrix) -> float:
    """Return the penalty with the least log loss on inner folds; the stronger one on a tie."""
    losses = np.zeros(len(REGULARISATION_GRID))
    for held in iter_fold_flags(votes.groups, votes.labels, INNER_FOLD_SEED):
        if len(np.unique(votes.labels[~held])) < 2:
            continue
        model = _make_regression(REGULARISATION_GRID[0])
        for place, strength in enumerate(
            REGULARISATION_GRID
        ):  # each fit starts from the one before
            model.set_params(C=strength).fit(columns[~held], votes.labels[~held])
            p = sigmoid(columns[held] @ model.coef_[0] + model.intercept_[0])
            losses[place] += compute_log_losses(votes.labels[held] == 1.0, p).sum()
    return REGULARISATION_GRID[int(losses.argmin())]


def _fit_logistic(
    columns: FloatArray, labels: FloatArray, strength: float
) -> tuple[tuple[float, ...], float]:
    model = _make_regression(strength).fit(columns, labels)
    return _to_floats(model.coef_[0]), float(model.intercept_[0])


def _make_regression(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=500, tol=1e-5, warm_start=True)


def _to_floats(numbers: FloatArray) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)


def _to_nested(table: FloatArray) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(tuple(_to_floats(row) for row in kind) for kind in table)


@dataclass(frozen=True)
class WeightingComparison:
    """Figures by system and name, the proposal, and `single`, the agent that was mostly best."""

    figures: dict[str, dict[str, MetricEstimate]]
    n: int
    groups: int
    hallucinated: int
    proposed: Weighting
    is_tie: bool
    single: str


def compare_weightings(votes: VoteMatrix, seed: int) -> WeightingComparison:
    """Compare all weightings, a majority, the best single agent and a constant on the same folds.

    A majority and a single agent give no probability, so no log loss and no calibration error. The
    interval of the calibration error is what perfectly calibrated p would show by chance, because
    resamples of one always lie above it.
    """
    p: dict[str, FloatArray] = {w: cross_fit_weighting(votes, w, seed) for w in WEIGHTINGS}
    decided = ~np.isnan(votes.said) & (votes.said != UNCLEAR_VALUE)
    n_decided = decided.sum(axis=1)
    n_wrong = (decided & (votes.said > UNCLEAR_VALUE)).sum(axis=1)
    p[MAJORITY_SYSTEM] = np.where(n_decided > 0, n_wrong / np.maximum(n_decided, 1), UNCLEAR_VALUE)
    p[SINGLE_SYSTEM], single = _best_single_agent(votes, seed)
    p[CONSTANT_BASELINE] = np.empty(len(votes))
    for held in iter_fold_flags(votes.groups, votes.labels, seed):
        p[CONSTANT_BASELINE][held] = (votes.labels[~held].sum() + 1.0) / ((~held).sum() + 2.0)
    places = number_names(votes.groups)
    all_measures = {
        (system, name): measure
        for system, system_p in p.items()
        for name, measure in build_weighting_measures(
            votes.labels, system_p, system in PROBABILITY_SYSTEMS
        ).items()
    }
    figures: dict[str, dict[str, MetricEstimate]] = {system: {} for system in p}
    for (system, name), figure in bootstrap_measures(
        all_measures, places, seed, CONSENSUS_BOOTSTRAP_DRAWS
    ).items():
        figures[system][name] = figure
    # A constant ranks no case above another; those of the folds run against their labels.
    figures[CONSTANT_BASELINE]["auroc"] = MetricEstimate(0.5, 0.5, 0.5)
    for system in PROBABILITY_SYSTEMS:
        _, low, high = estimate_chance_ece(p[system], seed, CONSENSUS_BOOTSTRAP_DRAWS)
        figures[system]["ece"] = figures[system]["ece"]._replace(low=low, high=high)
    proposed, is_tie = _choose_weighting(votes.labels, p, places, seed)
    groups, hallucinated = int(places.max()) + 1, int(votes.labels.sum())
    return WeightingComparison(figures, len(votes), groups, hallucinated, proposed, is_tie, single)


def build_weighting_measures(
    labels: FloatArray, p: FloatArray, is_probability: bool
) -> dict[str, Measure]:
    """Return each figure's measure by name; p of exactly one half is never right."""
    wrong = labels == 1.0
    right = (p != UNCLEAR_VALUE) & ((p > UNCLEAR_VALUE) == wrong)
    by_name = {
        "auroc": make_auroc(wrong, p),
        "balanced_accuracy": make_balanced_mean(wrong, right),
        "accuracy": make_mean(right),
    }
    if is_probability:
        by_name |= {"log_loss": make_mean(compute_log_losses(wrong, p)), "ece": make_ece(labels, p)}
    return by_name


def _best_single_agent(votes: VoteMatrix, seed: int) -> tuple[FloatArray, str]:
    """Return ((n,) what the agent said that is best without the fold, the agent it mostly was)."""
    p, best = np.full(len(votes), UNCLEAR_VALUE), []
    for held in iter_fold_flags(votes.groups, votes.labels, seed):
        rest = votes.rows(~held)
        weights, wrong = np.ones((1, len(rest))), rest.labels == 1.0
        decided = ~np.isnan(rest.said) & (rest.said != UNCLEAR_VALUE)
        right = decided & ((rest.said > UNCLEAR_VALUE) == wrong[:, None])
        accuracies = [make_balanced_mean(wrong, agent_right)(weights)[0] for agent_right in right.T]
        best.append(int(np.nanargmax(accuracies)))
        p[held] = np.nan_to_num(votes.said[held, best[-1]], nan=UNCLEAR_VALUE)
    return p, votes.agents[max(sorted(set(best)), key=best.count)]


def _choose_weighting(
    labels: FloatArray, p: Mapping[str, FloatArray], groups: IndexArray, seed: int
) -> tuple[Weighting, bool]:
    """Return the weighting with the least log loss, or a simpler one if the gain may be chance."""
    losses = {w: compute_log_losses(labels == 1.0, p[w]) for w in WEIGHTINGS}
    best = min(WEIGHTINGS, key=lambda w: float(losses[w].mean()))
    for simpler in WEIGHTINGS[: WEIGHTINGS.index(best)]:
        worse = make_mean(losses[simpler] - losses[best])
        if bootstrap_measures({"": worse}, groups, seed, CONSENSUS_BOOTSTRAP_DRAWS)[""].low <= 0.0:
            return simpler, True
    return best, False
