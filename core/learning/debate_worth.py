"""Whether debate is worth it: what it adds to one agent alone, its cost, its information, theory.

Information (ColMAD 2.1, 2.3, A.3): messages lower a judge's least risk exactly where
I(label; messages | answers) > 0. Theory, all log-likelihood ratios in nats (ColMAD 2.2, 2.3, A):
without a debate a judge has L0 ~ N(±d²/2, d²), and each message moves the sum by a budget at most.
How far more agents help that err together: CEDA A.1. Intervals are 95 % of a bootstrap over cases.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from core.learning.head_fit import fit_stack
from core.learning.metrics import (
    FOLDS,
    UNCLEAR,
    Figure,
    Flags,
    Measure,
    Numbers,
    bootstrap,
    grouped_folds,
    mean_of,
    numbered,
)
from core.learning.reasoning import (
    CLASSIFIER,
    DEBATER,
    JUDGE,
    READER,
    Heard,
    ReasoningRow,
    SpeakingAgent,
)
from core.learning.reliability import Posterior, posterior

SEED = 11
FEWEST_DEBATED = 30  # cases
FEWEST_PER_LABEL = 10
BASE = 2  # columns of the first stances
ALL = ""
NANO = 1e9
# from what is said before anybody was heard to what counts in the end
STEPS = ("opener", "openings", "closings", "judge", "verdict")
PARTS = ("debaters", "judge", "others")
COIN = 0.5
LEAST_RISK = 1e-6
DRAWS = 500
LEAD_DRAWS = 2000
FEWEST = 20  # cases below which nothing is said of a majority, of all agents or of one
MOST_AGENTS = 8
MOST_SUBSETS = 80
NEAR = 1e-6  # correlations so near to 0 or 1 are that: the beta's parameters would overflow


def newest_of(rows: Sequence[ReasoningRow]) -> list[ReasoningRow]:
    """The newest run of each case; `rows` come newest first."""
    return list({row.decision.group: row for row in reversed(rows)}.values())


@dataclass(frozen=True)
class Information:
    """Over `n` cases of a protocol (all where it is empty); `moved` of them saw a stance change.

    By logistic models fitted without the case's fold, `base` from the debaters' first stances
    (equation 1), `full` from first and last ones (equation 3): how often the likelier label is
    wrong. `gain` is the fall in that risk, `bits` in log loss (base 2; a lower bound of I).
    `always` is the risk of the more frequent label said always.
    """

    protocol: str
    n: int
    moved: int
    base: Figure
    full: Figure
    gain: Figure
    bits: Figure
    always: float


def information(rows: Sequence[ReasoningRow]) -> list[Information]:
    """Over all runs, then of each protocol if two or more have enough; the newest of a case."""
    debated = [row for row in rows if len(row.heard.opening) > 1]
    protocols = sorted({row.heard.protocol for row in debated})
    parts = [(name, [r for r in debated if r.heard.protocol == name]) for name in protocols]
    own = [found for found in (_information(*part) for part in parts) if found is not None]
    whole = _information(ALL, debated)
    return [] if whole is None else [whole, *(own if len(own) > 1 else [])]


def _information(protocol: str, rows: Sequence[ReasoningRow]) -> Information | None:
    newest = newest_of(rows)
    wrong = np.array([row.is_wrong for row in newest], dtype=bool)
    labels = min(int(wrong.sum()), int((~wrong).sum()))
    if len(newest) < FEWEST_DEBATED or labels < max(FOLDS, FEWEST_PER_LABEL):
        return None
    stances = np.array([stances_of(row.heard) for row in newest])
    groups = numbered([row.decision.group for row in newest])
    risks, losses = [], []
    for columns in (stances[:, :BASE], stances):
        p = np.empty(len(wrong))
        for fit, test in grouped_folds(wrong, groups, SEED):
            p[test] = fit_stack(columns[fit], wrong[fit]).p(columns[test])
        risks.append(((p >= UNCLEAR) != wrong).astype(np.float64))
        losses.append(-np.log2(np.where(wrong, p, 1.0 - p)))
    named = {
        "base": mean_of(risks[0]),
        "full": mean_of(risks[1]),
        "gain": mean_of(risks[0] - risks[1]),
        "bits": mean_of(losses[0] - losses[1]),
    }
    moved = int((stances[:, :BASE] != stances[:, BASE:]).any(axis=1).sum())
    found = bootstrap(named, np.arange(len(newest)), SEED)
    always = float(min(wrong.mean(), 1.0 - wrong.mean()))
    return Information(protocol, len(newest), moved, **found, always=always)


def stances_of(heard: Heard) -> tuple[float, float, float, float]:
    """First stances of opener and others (mean), then last; 1 is hallucinated, -1 not."""
    last = {agent: said for agent, said in heard.last.items() if agent.part == DEBATER}
    ended = {agent: last.get(agent, said) for agent, said in heard.opening.items()}
    own = heard.opener

    def pair(said: Mapping[SpeakingAgent, float]) -> tuple[float, float]:
        signed = {agent: 2.0 * (value - UNCLEAR) for agent, value in said.items()}
        others = [value for agent, value in signed.items() if agent != own]
        return signed[own] if own else 0.0, float(np.mean(others)) if others else 0.0

    return *pair(heard.opening), *pair(ended)


@dataclass(frozen=True)
class WorthStep:
    """How often a step was right, and the verdict's lead over the `paired` cases of both."""

    step: str
    accuracy: Posterior
    unclear: int
    lead: float | None
    low: float | None
    high: float | None
    paired: int


@dataclass(frozen=True)
class Cost:
    """Means over runs of calls in a part of them; `dollars` is None where a price is not known."""

    part: str
    calls: float
    tokens: float
    dollars: float | None


@dataclass(frozen=True)
class Worth:
    """The steps, and the cost and seconds of a run: whole, and to the end of the first turn."""

    steps: tuple[WorthStep, ...]
    costs: tuple[Cost, ...]
    runs: int
    seconds: float
    opening_seconds: float
    always: float


def worth(rows: Sequence[ReasoningRow]) -> Worth | None:
    """Over the newest run of each case; `rows` come newest first. None without any."""
    newest = [row for row in newest_of(rows) if row.heard.opener is not None]
    if not newest:
        return None
    wrong = np.array([row.is_wrong for row in newest])
    told = np.array([_said(row.heard) for row in newest], dtype=np.float64)
    return Worth(
        steps=_steps(dict(zip(STEPS, told.T, strict=True)), wrong),
        costs=tuple(_cost(part, newest) for part in PARTS),
        runs=len(newest),
        seconds=float(np.mean([row.heard.seconds for row in newest])),
        opening_seconds=float(np.mean([row.heard.opening_seconds for row in newest])),
        always=float(wrong.mean()),
    )


def _said(heard: Heard) -> tuple[float, ...]:
    """What each of `STEPS` says of one debate, as `Votes.said` has it."""
    own = {agent.part: told for agent, told in heard.last.items()}
    debaters = [told for agent, told in heard.last.items() if agent.part == DEBATER]
    opener = heard.opening[heard.opener] if heard.opener else np.nan
    most = (_most(heard.opening.values()), _most(debaters))
    return opener, *most, own.get(JUDGE, np.nan), own.get(CLASSIFIER, np.nan)


def _most(said: Iterable[float]) -> float:
    """The side that more of them take; unclear where neither."""
    sides = [np.sign(told - UNCLEAR) for told in said]
    return float(UNCLEAR + np.sign(sum(sides)) / 2.0) if sides else np.nan


def _steps(said: Mapping[str, Numbers], wrong: Flags) -> tuple[WorthStep, ...]:
    right = {name: (own != UNCLEAR) & ((own > UNCLEAR) == wrong) for name, own in said.items()}
    spoke = {name: ~np.isnan(own) for name, own in said.items()}
    both = {name: spoke[name] & spoke["verdict"] for name in said}
    leads = bootstrap(
        {n: mean_of(right["verdict"].astype(float) - right[n], both[n]) for n in said},
        np.arange(len(wrong)),
        SEED,
        LEAD_DRAWS,
    )
    found = []
    for name, own in said.items():
        accuracy = posterior(int((right[name] & spoke[name]).sum()), int(spoke[name].sum()))
        unclear, paired = int((own == UNCLEAR).sum()), int(both[name].sum())
        lead, low, high = leads[name] if paired else (None, None, None)
        found.append(WorthStep(name, accuracy, unclear, lead, low, high, paired))
    return tuple(found)


def _cost(part: str, rows: Sequence[ReasoningRow]) -> Cost:
    used = []
    for role, own in (item for row in rows for item in row.heard.used.items()):
        whose = "debaters" if role.startswith("debater ") else role
        if part == (whose if whose in PARTS else "others"):
            used.append(own)
    n, known = len(rows), [own.nano for own in used if own.nano is not None]
    dollars = None if len(known) < len(used) else sum(known) / NANO / n
    return Cost(part, sum(own.calls for own in used) / n, sum(o.tokens for o in used) / n, dollars)


def separation(risk: float) -> float:
    """D of a judge whose risk without a debate is that; 0 at a coin's or above."""
    if risk >= COIN:
        return 0.0
    return -2.0 * NormalDist().inv_cdf(max(risk, LEAST_RISK))


def risk_of(d: float) -> float:
    """The risk R0 of a judge whose separation is `d`."""
    return NormalDist().cdf(-d / 2.0)


def collaborative(d: float, budget: float) -> float:
    """R = Phi(-sqrt(d² + 2m) / 2) <= R0 of true evidence of mean LLR m (Proposition 2.3)."""
    return risk_of(math.sqrt(d * d + 2.0 * budget))


def competitive(d: float, budget: float, weaker: float = 0.0) -> float:
    """The risk of a judge who takes pushes for evidence; the other side pushes `weaker` as far.

    The sum moves by s = (1 - w)·m under both labels (Proposition 2.2):
    R = (Phi((s - d²/2) / d) + Phi((-s - d²/2) / d)) / 2 >= R0.
    """
    if d == 0.0:
        return COIN
    push, half = (1.0 - weaker) * budget, d * d / 2.0
    normal = NormalDist()
    return (normal.cdf((push - half) / d) + normal.cdf((-push - half) / d)) / 2.0


def evidence_in(base: float, full: float) -> float:
    """The mean LLR of true evidence that takes a base risk to the full one; 0 where it does not."""
    return max(0.0, (separation(full) ** 2 - separation(base) ** 2) / 2.0)


@dataclass(frozen=True)
class MeasuredAgents:
    """Agents over `n` decided cases; `curve` is (k, error of majorities of k, mean cases)."""

    agents: tuple[SpeakingAgent, ...]
    n: int
    accuracy: Figure
    correlation: Figure
    curve: tuple[tuple[int, float, float], ...]
    always: float


def majority_error(n: int, accuracy: float, correlation: float) -> float:
    """P(a majority of `n` >= 1 is wrong), a tie decided by a coin; `correlation` is in [0, 1].

    With e the error and r the correlation, K wrong ~ BetaBinomial(n, e (1 - r) / r,
    (1 - e) (1 - r) / r), Binomial at r = 0: our choice, the simplest of agents alike.
    """
    from scipy.stats import betabinom, binom

    error = 1.0 - accuracy
    if correlation >= 1.0 - NEAR or error in (0.0, 1.0):
        return error
    wrong = np.arange(n + 1)
    if correlation <= NEAR:
        chances = binom.pmf(wrong, n, error)
    else:
        firm = (1.0 - correlation) / correlation
        chances = betabinom.pmf(wrong, n, error * firm, accuracy * firm)
    lost = chances[2 * wrong > n].sum() + chances[2 * wrong == n].sum() / 2
    return float(min(1.0, max(0.0, lost)))


def effective_agents(n: int, correlation: float) -> float:
    """How many independent agents are worth n that err together."""
    return n / (1.0 + (n - 1) * correlation)


def hoeffding(n: int, accuracy: float, correlation: float) -> float:
    """The bound exp(-2 n_eff (1/2 - e)²) on a majority's error; 1 where no better than a coin."""
    lead = max(0.0, accuracy - 0.5)
    return float(np.exp(-2.0 * effective_agents(n, correlation) * lead**2))


def measured(rows: Sequence[ReasoningRow]) -> MeasuredAgents | None:
    """Over the newest run of each case; `rows` come newest first. None with too little."""
    newest = newest_of(rows)
    counts = Counter(agent for row in newest for agent in _first_words(row))
    often = [agent for agent, count in counts.items() if count >= FEWEST]
    agents = tuple(sorted(often, key=lambda agent: (-counts[agent], agent))[:MOST_AGENTS])
    if len(agents) < 2:
        return None
    errors = np.array([[_error(row, agent) for agent in agents] for row in newest])
    spoken = (~np.isnan(errors)).any(axis=1)
    errors, wrong = errors[spoken], np.array([row.is_wrong for row in newest])[spoken]
    if len(errors) < FEWEST:
        return None
    named: dict[str, Measure] = {
        "accuracy": lambda weights: 1.0 - _error_rate(errors, weights),
        "correlation": lambda weights: _correlation(errors, weights),
    }
    found = bootstrap(named, np.arange(len(errors)), SEED, DRAWS)
    if np.isnan(found["correlation"].value):
        return None
    always = float(min(wrong.mean(), 1.0 - wrong.mean()))
    return MeasuredAgents(agents, len(errors), **found, curve=tuple(_curve(errors)), always=always)


def _first_words(row: ReasoningRow) -> dict[SpeakingAgent, float]:
    """What was said before anybody could be swayed, by agent: first turns, the judge's readers."""
    readers = {agent: said for agent, said in row.heard.last.items() if agent.part == READER}
    return {**row.heard.opening, **readers}


def _error(row: ReasoningRow, agent: SpeakingAgent) -> float:
    """1 where the agent was wrong, 0 where right, NaN where it did not decide."""
    said = _first_words(row).get(agent, UNCLEAR)
    return np.nan if said == UNCLEAR else float((said > UNCLEAR) != row.is_wrong)


def _error_rate(errors: Numbers, weights: Numbers) -> Numbers:
    """(draws,) over all that agents decided; (cases, agents) of errors."""
    decided = weights @ (~np.isnan(errors)).sum(axis=1)
    return np.asarray(weights @ np.nansum(errors, axis=1) / np.maximum(decided, 1.0))


def _correlation(errors: Numbers, weights: Numbers) -> Numbers:
    """(draws,) mean product of two agents' deviations, over the variance; NaN if undefined."""
    base = _error_rate(errors, weights)
    many, wrong = (~np.isnan(errors)).sum(axis=1), np.nansum(errors, axis=1)
    pairs = weights @ (many * (many - 1) / 2)
    # the sum over pairs of (x - base) (y - base), where x and y are 0 or 1
    products = weights @ (wrong * (wrong - 1) / 2) - base * (weights @ (wrong * (many - 1)))
    spread = base * (1.0 - base)
    is_known = (pairs > 0) & (spread > 0)
    mean = (products + base**2 * pairs) / np.where(is_known, pairs * spread, 1.0)
    return np.where(is_known, mean, np.nan)


def _curve(errors: Numbers) -> list[tuple[int, float, float]]:
    """Majorities of k agents, over the cases on which all k decided; for odd and even k."""
    found = []
    for k in range(1, errors.shape[1] + 1):
        rates, cases = [], []
        subsets = itertools.islice(itertools.combinations(range(errors.shape[1]), k), MOST_SUBSETS)
        for subset in subsets:
            own = errors[:, subset]
            share = own[~np.isnan(own).any(axis=1)].mean(axis=1)
            if len(share) >= FEWEST:
                rates.append(float(((share > 0.5) + (share == 0.5) / 2).mean()))
                cases.append(len(share))
        if rates:
            found.append((k, float(np.mean(rates)), float(np.mean(cases))))
    return found
