"""Fitted weights of agents in plain numbers: what each one's word adds to the log-odds.

What several agents said of the same cases, as numbers, and how cases are dealt into folds.

How likely an agent is to be right, given how often it was: Beta posteriors with intervals. Over
all cases the prior is Beta(1, 1). On one kind of case it is a Beta around the agent's own mean:
how firmly is estimated from how far its kinds lie apart (empirical Bayes on the beta-binomial
likelihood), so that three lucky cases do not make an expert.

Several scores of one case made one probability: a logistic stack that never turns a score round.
Scores are cross-fitted: no score was fitted on the case that it is of, so the stack learns how
much each is worth on cases not seen, and its probability means something there (Wolpert 1992;
Breiman 1996 for weights that are not negative). With one score this is Platt's calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError, InputError
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


FEWEST = 10  # cases below which a share says little
# How many cases a prior may weigh as much as; the estimate is the likeliest of these.
FIRMNESS = tuple(float(f) for f in np.geomspace(2.0, 200.0, 25))


@dataclass(frozen=True)
class Share:
    """A share with the interval that holds it with 95 %, from `right` of `n` cases."""

    mean: float
    low: float
    high: float
    right: int
    n: int

    @property
    def is_thin(self) -> bool:
        """Too few cases to say."""
        return self.n < FEWEST


def posterior(right: int, n: int, a: float = 1.0, b: float = 1.0) -> Share:
    """The share after `right` of `n`, from a Beta(a, b) prior."""
    from scipy.special import betaincinv

    a, b = a + right, b + n - right
    low, high = (float(betaincinv(a, b, q)) for q in (0.025, 0.975))
    return Share(a / (a + b), low, high, right, n)


def by_kind(counts: Mapping[str, tuple[int, int]], whole: Share) -> dict[str, Share]:
    """Each kind's share, drawn to the agent's; `counts` are (right, n) by kind."""
    firm = firmness([own for own in counts.values() if own[1]], whole.mean)
    prior = (firm * whole.mean, firm * (1.0 - whole.mean))
    return {kind: posterior(right, n, *prior) for kind, (right, n) in counts.items()}


def firmness(counts: list[tuple[int, int]], mean: float) -> float:
    """How many cases the prior around `mean` weighs as much as: the likeliest of `FIRMNESS`.

    The firmest where one kind or none has cases: nothing then tells kinds apart.
    """
    from scipy.special import betaln

    if len(counts) < 2:
        return FIRMNESS[-1]
    right, n = np.array(counts, dtype=np.float64).T
    firm = np.array(FIRMNESS)[:, None]
    a, b = firm * mean, firm * (1.0 - mean)
    likely = (betaln(a + right, b + n - right) - betaln(a, b)).sum(axis=1)
    return FIRMNESS[int(likely.argmax())]


HALLUCINATED = 1.0
SUPPORTED = 0.0
UNCLEAR = 0.5  # what `said` holds for an agent that would not decide


def _nothing() -> Numbers:
    return np.zeros((0, 0))


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
    features: Numbers = field(default_factory=_nothing)
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

    def rows(self, which: Places | npt.NDArray[np.bool_]) -> Votes:
        """The same of these cases only, in this order."""
        places = np.arange(len(self))[which]
        return replace(
            self,
            said=self.said[places],
            kinds=tuple(self.kinds[i] for i in places),
            groups=tuple(self.groups[i] for i in places),
            labels=self.labels[places],
            features=self.features[places],
        )


def numbered(names: Sequence[str]) -> Places:
    """(n,) which of the distinct names each is, from 0 in alphabetical order."""
    place = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], dtype=np.int64)


def folds(groups: Sequence[str], labels: Numbers, seed: int, count: int = FOLDS) -> Places:
    """(n,) in which of `count` folds each case lies: whole groups, labels spread evenly.

    The same for the same seed. Groups are dealt one after the other, the mostly hallucinated ones
    first and larger ones before smaller ones.

    Raises:
        InputError: there are fewer groups than folds.
    """
    place = numbered(groups)
    many = int(place.max()) + 1 if len(place) else 0
    if many < count:
        raise InputError(f"Expected at least {count} groups of cases, found {many}.")
    size = np.bincount(place, minlength=many)
    wrong = np.bincount(place, weights=labels, minlength=many) / size
    lot = np.random.default_rng(seed).random(many)
    order = np.lexsort((lot, -size, -(wrong >= 0.5).astype(np.int64)))
    dealt = np.empty(many, dtype=np.int64)
    dealt[order] = np.arange(many) % count
    found: Places = dealt[place]
    return found


Weighting = Literal["uniform", "history", "stack"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)  # the simplest first
SCHEMA = 1
STATES = 4  # said hallucinated, supported, unclear, nothing


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
        """(n,) the probability of being hallucinated, strictly inside 0 and 1.

        `said` is (n, agents) in the order of `agents`; `features` (n, names), or None if unknown.
        """
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

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def weights_from(plain: Any) -> Weights:
    """The weights that `to_plain` made.

    Raises:
        ConfigError: it is of another schema, or its numbers do not fit together.
    """
    import msgspec

    try:
        found = msgspec.convert(plain, type=Weights)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected weights of agents, found something else: {error}.") from error
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
    silent = np.isnan(said)
    unclear = said == UNCLEAR
    decided = ~silent & ~unclear
    p = np.where(decided, said, 0.0)
    return np.stack([p, np.where(decided, 1.0 - p, 0.0), unclear, silent], axis=2).astype(
        np.float64
    )
