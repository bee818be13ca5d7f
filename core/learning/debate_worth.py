"""Whether debate is worth it: its gain over one agent alone, its cost, its information, the theory.

Information (ColMAD 2.1, 2.3, A.3): messages lower a judge's least risk exactly where
I(label; messages | answers) > 0. Theory, all log-likelihood ratios in nats (ColMAD 2.2, 2.3, A):
without a debate a judge has L0 ~ N(±d²/2, d²), and each message moves the sum by at most a budget.
How far additional agents help that make the same errors: CEDA A.1. Intervals are 95 % of a
bootstrap over cases.
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
# From the first answer, given before anyone was heard, to the final verdict.
STEPS = ("opener", "openings", "closings", "judge", "verdict")
PARTS = ("debaters", "judge", "others")
COIN = 0.5
LEAST_RISK = 1e-6
DRAWS = 500
LEAD_DRAWS = 2000
FEWEST = 20  # cases below which nothing is said about an agent or a majority
MOST_AGENTS = 8
MOST_SUBSETS = 80
NEAR = 1e-6  # correlations this near to 0 or 1 count as such: the beta would overflow


def newest_of(rows: Sequence[ReasoningRow]) -> list[ReasoningRow]:
    """Return the newest run of each case; `rows` come newest first."""
    return list({row.decision.group: row for row in reversed(rows)}.values())


@dataclass(frozen=True)
class Information:
    """What debates add over `n` cases of a `protocol` (all if empty).

    Logistic models fitted without the case's fold give how often the likelier label is wrong:
    `base` from the debaters' first stances (equation 1), `full` from first and last ones (equation
    3). `gain` is the fall in that risk, `bits` in log loss (base 2; a lower bound of I). `always`
    is the risk of always saying the more frequent label. In `moved` of the cases a stance changed.
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
    """Return the information of all runs, then of each protocol if several have enough."""
    debated = [row for row in rows if len(row.heard.opening) > 1]
    protocols = sorted({row.heard.protocol for row in debated})
    parts = [(name, [r for r in debated if r.heard.protocol == name]) for name in protocols]
    measures = (_measure_information(*part) for part in parts)
    by_protocol = [measure for measure in measures if measure is not None]
    overall = _measure_information(ALL, debated)
    return [] if overall is None else [overall, *(by_protocol if len(by_protocol) > 1 else [])]


def _measure_information(protocol: str, rows: Sequence[ReasoningRow]) -> Information | None:
    newest = newest_of(rows)
    wrong = np.array([row.is_wrong for row in newest], dtype=bool)
    rarer_count = min(int(wrong.sum()), int((~wrong).sum()))
    if len(newest) < FEWEST_DEBATED or rarer_count < max(FOLDS, FEWEST_PER_LABEL):
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
    means = {
        "base": mean_of(risks[0]),
        "full": mean_of(risks[1]),
        "gain": mean_of(risks[0] - risks[1]),
        "bits": mean_of(losses[0] - losses[1]),
    }
    moved = int((stances[:, :BASE] != stances[:, BASE:]).any(axis=1).sum())
    figures = bootstrap(means, np.arange(len(newest)), SEED)
    always = float(min(wrong.mean(), 1.0 - wrong.mean()))
    return Information(protocol, len(newest), moved, **figures, always=always)


def stances_of(heard: Heard) -> tuple[float, float, float, float]:
    """Return first, then last stances: the opener's, the others' mean; 1 hallucinated, -1 not."""
    last = {agent: said for agent, said in heard.last.items() if agent.part == DEBATER}
    closing = {agent: last.get(agent, said) for agent, said in heard.opening.items()}
    opener = heard.opener

    def opener_and_others(said: Mapping[SpeakingAgent, float]) -> tuple[float, float]:
        signed = {agent: 2.0 * (value - UNCLEAR) for agent, value in said.items()}
        others = [value for agent, value in signed.items() if agent != opener]
        return signed[opener] if opener else 0.0, float(np.mean(others)) if others else 0.0

    return *opener_and_others(heard.opening), *opener_and_others(closing)


@dataclass(frozen=True)
class WorthStep:
    """How often a step was right, and the verdict's lead in the `paired` cases that have both."""

    step: str
    accuracy: Posterior
    unclear: int
    lead: float | None
    low: float | None
    high: float | None
    paired: int


@dataclass(frozen=True)
class Cost:
    """Mean use per run of the calls of one part; `dollars` is None if a price is unknown."""

    part: str
    calls: float
    tokens: float
    dollars: float | None


@dataclass(frozen=True)
class Worth:
    """The steps and costs of debates, and mean seconds: of a run, and to its first turn's end."""

    steps: tuple[WorthStep, ...]
    costs: tuple[Cost, ...]
    runs: int
    seconds: float
    opening_seconds: float
    always: float


def worth(rows: Sequence[ReasoningRow]) -> Worth | None:
    """Return the worth of debates over each case's newest run, or None; `rows` are newest first."""
    newest = [row for row in newest_of(rows) if row.heard.opener is not None]
    if not newest:
        return None
    wrong = np.array([row.is_wrong for row in newest])
    answers = np.array([_answers_by_step(row.heard) for row in newest], dtype=np.float64)
    return Worth(
        steps=_measure_steps(dict(zip(STEPS, answers.T, strict=True)), wrong),
        costs=tuple(_mean_cost(part, newest) for part in PARTS),
        runs=len(newest),
        seconds=float(np.mean([row.heard.seconds for row in newest])),
        opening_seconds=float(np.mean([row.heard.opening_seconds for row in newest])),
        always=float(wrong.mean()),
    )


def _answers_by_step(heard: Heard) -> tuple[float, ...]:
    """Return the answer of each of `STEPS` in one debate, as in `Votes.said`."""
    by_part = {agent.part: answer for agent, answer in heard.last.items()}
    debaters = [answer for agent, answer in heard.last.items() if agent.part == DEBATER]
    opener = heard.opening[heard.opener] if heard.opener else np.nan
    majorities = (_majority(heard.opening.values()), _majority(debaters))
    return opener, *majorities, by_part.get(JUDGE, np.nan), by_part.get(CLASSIFIER, np.nan)


def _majority(said: Iterable[float]) -> float:
    """Return the side that most of them take; unclear on a tie."""
    sides = [np.sign(answer - UNCLEAR) for answer in said]
    return float(UNCLEAR + np.sign(sum(sides)) / 2.0) if sides else np.nan


def _measure_steps(said: Mapping[str, Numbers], wrong: Flags) -> tuple[WorthStep, ...]:
    right = {name: (own != UNCLEAR) & ((own > UNCLEAR) == wrong) for name, own in said.items()}
    spoke = {name: ~np.isnan(own) for name, own in said.items()}
    both = {name: spoke[name] & spoke["verdict"] for name in said}
    leads = bootstrap(
        {n: mean_of(right["verdict"].astype(float) - right[n], both[n]) for n in said},
        np.arange(len(wrong)),
        SEED,
        LEAD_DRAWS,
    )
    steps = []
    for name, own in said.items():
        accuracy = posterior(int((right[name] & spoke[name]).sum()), int(spoke[name].sum()))
        unclear, paired = int((own == UNCLEAR).sum()), int(both[name].sum())
        lead, low, high = leads[name] if paired else (None, None, None)
        steps.append(WorthStep(name, accuracy, unclear, lead, low, high, paired))
    return tuple(steps)


def _mean_cost(part: str, rows: Sequence[ReasoningRow]) -> Cost:
    used = []
    for role, use in (item for row in rows for item in row.heard.used.items()):
        owner = "debaters" if role.startswith("debater ") else role
        if part == (owner if owner in PARTS else "others"):
            used.append(use)
    n, known = len(rows), [use.nano for use in used if use.nano is not None]
    dollars = None if len(known) < len(used) else sum(known) / NANO / n
    calls, tokens = sum(use.calls for use in used), sum(use.tokens for use in used)
    return Cost(part, calls / n, tokens / n, dollars)


def separation(risk: float) -> float:
    """Return d of a judge with that risk without a debate; 0 for a coin's or a higher risk."""
    if risk >= COIN:
        return 0.0
    return -2.0 * NormalDist().inv_cdf(max(risk, LEAST_RISK))


def risk_of(d: float) -> float:
    """Return the risk R0 of a judge whose separation is `d`."""
    return NormalDist().cdf(-d / 2.0)


def collaborative(d: float, budget: float) -> float:
    """Return R = Phi(-sqrt(d² + 2m) / 2) <= R0 for true evidence of mean LLR m (Prop. 2.3)."""
    return risk_of(math.sqrt(d * d + 2.0 * budget))


def competitive(d: float, budget: float, weaker: float = 0.0) -> float:
    """Return the risk of a judge who takes pushes for evidence.

    The other side pushes `weaker` as far. The sum moves by s = (1 - w)·m under both labels
    (Proposition 2.2): R = (Phi((s - d²/2) / d) + Phi((-s - d²/2) / d)) / 2 >= R0.
    """
    if d == 0.0:
        return COIN
    push, half = (1.0 - weaker) * budget, d * d / 2.0
    normal = NormalDist()
    return (normal.cdf((push - half) / d) + normal.cdf((-push - half) / d)) / 2.0


def evidence_in(base: float, full: float) -> float:
    """Return the mean LLR of true evidence that lowers the base risk to the full one, or 0."""
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
    """Return P(a majority of `n` >= 1 is wrong); a coin decides ties, `correlation` is in [0, 1].

    With e the error and r the correlation, K wrong ~ BetaBinomial(n, e (1 - r) / r,
    (1 - e) (1 - r) / r), Binomial at r = 0. That is our choice, the simplest for equal agents.
    """
    from scipy.stats import betabinom, binom

    error = 1.0 - accuracy
    if correlation >= 1.0 - NEAR or error in (0.0, 1.0):
        return error
    wrong = np.arange(n + 1)
    if correlation <= NEAR:
        chances = binom.pmf(wrong, n, error)
    else:
        concentration = (1.0 - correlation) / correlation
        chances = betabinom.pmf(wrong, n, error * concentration, accuracy * concentration)
    lost = chances[2 * wrong > n].sum() + chances[2 * wrong == n].sum() / 2
    return float(min(1.0, max(0.0, lost)))


def effective_agents(n: int, correlation: float) -> float:
    """Return how many independent agents are worth n that make the same errors."""
    return n / (1.0 + (n - 1) * correlation)


def hoeffding(n: int, accuracy: float, correlation: float) -> float:
    """Return the bound exp(-2 n_eff (1/2 - e)²) on a majority's error; 1 if e is above 1/2."""
    lead = max(0.0, accuracy - 0.5)
    return float(np.exp(-2.0 * effective_agents(n, correlation) * lead**2))


def measured(rows: Sequence[ReasoningRow]) -> MeasuredAgents | None:
    """Return agents' accuracy and correlation over newest runs (`rows` newest first), or None."""
    newest = newest_of(rows)
    counts = Counter(agent for row in newest for agent in _first_answers(row))
    often = [agent for agent, count in counts.items() if count >= FEWEST]
    agents = tuple(sorted(often, key=lambda agent: (-counts[agent], agent))[:MOST_AGENTS])
    if len(agents) < 2:
        return None
    errors = np.array([[_error(row, agent) for agent in agents] for row in newest])
    is_answered = (~np.isnan(errors)).any(axis=1)
    errors, wrong = errors[is_answered], np.array([row.is_wrong for row in newest])[is_answered]
    if len(errors) < FEWEST:
        return None
    all_measures: dict[str, Measure] = {
        "accuracy": lambda weights: 1.0 - _error_rate(errors, weights),
        "correlation": lambda weights: _correlation(errors, weights),
    }
    figures = bootstrap(all_measures, np.arange(len(errors)), SEED, DRAWS)
    if np.isnan(figures["correlation"].value):
        return None
    always = float(min(wrong.mean(), 1.0 - wrong.mean()))
    return MeasuredAgents(
        agents, len(errors), **figures, curve=tuple(_majority_curve(errors)), always=always
    )


def _first_answers(row: ReasoningRow) -> dict[SpeakingAgent, float]:
    """Return what was said before anyone could be swayed: first turns, the judge's readers."""
    readers = {agent: said for agent, said in row.heard.last.items() if agent.part == READER}
    return {**row.heard.opening, **readers}


def _error(row: ReasoningRow, agent: SpeakingAgent) -> float:
    """Return 1 if the agent was wrong, 0 if right, NaN if it did not decide."""
    said = _first_answers(row).get(agent, UNCLEAR)
    return np.nan if said == UNCLEAR else float((said > UNCLEAR) != row.is_wrong)


def _error_rate(errors: Numbers, weights: Numbers) -> Numbers:
    """Return (draws,) error rates over all that agents decided, from (cases, agents) errors."""
    decided = weights @ (~np.isnan(errors)).sum(axis=1)
    return np.asarray(weights @ np.nansum(errors, axis=1) / np.maximum(decided, 1.0))


def _correlation(errors: Numbers, weights: Numbers) -> Numbers:
    """Return (draws,) mean product of two agents' deviations over the variance, or NaN."""
    base = _error_rate(errors, weights)
    n_decided, n_wrong = (~np.isnan(errors)).sum(axis=1), np.nansum(errors, axis=1)
    pairs = weights @ (n_decided * (n_decided - 1) / 2)
    # The sum over pairs of (x - base) (y - base), where x and y are 0 or 1.
    both_wrong = weights @ (n_wrong * (n_wrong - 1) / 2)
    products = both_wrong - base * (weights @ (n_wrong * (n_decided - 1)))
    spread = base * (1.0 - base)
    is_known = (pairs > 0) & (spread > 0)
    mean = (products + base**2 * pairs) / np.where(is_known, pairs * spread, 1.0)
    return np.where(is_known, mean, np.nan)


def _majority_curve(errors: Numbers) -> list[tuple[int, float, float]]:
    """Return errors of majorities of k agents, over the cases on which all k decided."""
    points = []
    for k in range(1, errors.shape[1] + 1):
        rates, cases = [], []
        subsets = itertools.islice(itertools.combinations(range(errors.shape[1]), k), MOST_SUBSETS)
        for subset in subsets:
            subset_errors = errors[:, subset]
            share = subset_errors[~np.isnan(subset_errors).any(axis=1)].mean(axis=1)
            if len(share) >= FEWEST:
                rates.append(float(((share > 0.5) + (share == 0.5) / 2).mean()))
                cases.append(len(share))
        if rates:
            points.append((k, float(np.mean(rates)), float(np.mean(cases))))
    return points
