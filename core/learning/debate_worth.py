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

from core.learning.agent_answers import (
    CLASSIFIER,
    DEBATER,
    JUDGE,
    READER,
    AgentAnswers,
    DecidedRun,
    SpeakingAgent,
)
from core.learning.head_fit import fit_stack
from core.learning.metrics import (
    FOLD_COUNT,
    UNCLEAR_VALUE,
    BoolArray,
    FloatArray,
    Measure,
    MetricEstimate,
    bootstrap_measures,
    iter_grouped_folds,
    make_mean,
    number_names,
)
from core.learning.track_record import MIN_CASES, WilsonShare

DEBATE_WORTH_SEED = 11
MIN_DEBATED_PER_LABEL = 10
FIRST_STANCE_COLUMNS = 2  # columns of the first stances
ALL_PROTOCOLS = ""
NANO_PER_DOLLAR = 1e9
# From the first answer, given before anyone was heard, to the final verdict.
WORTH_STEPS = ("opener", "openings", "closings", "judge", "verdict")
COST_PARTS = ("debaters", "judge", "others")
COIN_RISK = 0.5
MIN_RISK = 1e-6
WORTH_BOOTSTRAP_DRAWS = 500
LEAD_BOOTSTRAP_DRAWS = 2000
MAX_MEASURED_AGENTS = 8
MAX_AGENT_SUBSETS = 80
CORRELATION_TOLERANCE = (
    1e-6  # correlations this near to 0 or 1 count as such: the beta would overflow
)


def select_newest_runs(rows: Sequence[DecidedRun]) -> list[DecidedRun]:
    """Return the newest run of each case; `rows` come newest first."""
    return list({row.decision.group: row for row in reversed(rows)}.values())


@dataclass(frozen=True)
class DebateInformation:
    """What debates add over `n` cases of a `protocol` (all if empty).

    Logistic models fitted without the case's fold give how often the likelier label is wrong:
    `base` from the debaters' first stances (equation 1), `full` from first and last ones (equation
    3). `gain` is the fall in that risk, `bits` in log loss (base 2; a lower bound of I). `always`
    is the risk of always saying the more frequent label. In `moved` of the cases a stance changed.
    """

    protocol: str
    n: int
    moved: int
    base: MetricEstimate
    full: MetricEstimate
    gain: MetricEstimate
    bits: MetricEstimate
    always: float


def measure_information(rows: Sequence[DecidedRun]) -> list[DebateInformation]:
    """Return the information of all runs, then of each protocol if several have enough."""
    debated = [row for row in rows if len(row.heard.opening) > 1]
    protocols = sorted({row.heard.protocol for row in debated})
    parts = [(name, [r for r in debated if r.heard.protocol == name]) for name in protocols]
    measures = (_measure_information(*part) for part in parts)
    by_protocol = [measure for measure in measures if measure is not None]
    overall = _measure_information(ALL_PROTOCOLS, debated)
    return [] if overall is None else [overall, *(by_protocol if len(by_protocol) > 1 else [])]


def _measure_information(protocol: str, rows: Sequence[DecidedRun]) -> DebateInformation | None:
    newest = select_newest_runs(rows)
    wrong = np.array([row.is_wrong for row in newest], dtype=bool)
    rarer_count = min(int(wrong.sum()), int((~wrong).sum()))
    if len(newest) < MIN_CASES or rarer_count < max(FOLD_COUNT, MIN_DEBATED_PER_LABEL):
        return None
    stances = np.array([encode_stances(row.heard) for row in newest])
    groups = number_names([row.decision.group for row in newest])
    risks, losses = [], []
    for columns in (stances[:, :FIRST_STANCE_COLUMNS], stances):
        p = np.empty(len(wrong))
        for fit, test in iter_grouped_folds(wrong, groups, DEBATE_WORTH_SEED):
            p[test] = fit_stack(columns[fit], wrong[fit]).p(columns[test])
        risks.append(((p >= UNCLEAR_VALUE) != wrong).astype(np.float64))
        losses.append(-np.log2(np.where(wrong, p, 1.0 - p)))
    means = {
        "base": make_mean(risks[0]),
        "full": make_mean(risks[1]),
        "gain": make_mean(risks[0] - risks[1]),
        "bits": make_mean(losses[0] - losses[1]),
    }
    moved = int(
        (stances[:, :FIRST_STANCE_COLUMNS] != stances[:, FIRST_STANCE_COLUMNS:]).any(axis=1).sum()
    )
    figures = bootstrap_measures(means, np.arange(len(newest)), DEBATE_WORTH_SEED)
    always = float(min(wrong.mean(), 1.0 - wrong.mean()))
    return DebateInformation(protocol, len(newest), moved, **figures, always=always)


def encode_stances(heard: AgentAnswers) -> tuple[float, float, float, float]:
    """Return first, then last stances: the opener's, the others' mean; 1 hallucinated, -1 not."""
    last = {agent: said for agent, said in heard.last.items() if agent.part == DEBATER}
    closing = {agent: last.get(agent, said) for agent, said in heard.opening.items()}
    opener = heard.opener

    def opener_and_others(said: Mapping[SpeakingAgent, float]) -> tuple[float, float]:
        signed = {agent: 2.0 * (value - UNCLEAR_VALUE) for agent, value in said.items()}
        others = [value for agent, value in signed.items() if agent != opener]
        return signed[opener] if opener else 0.0, float(np.mean(others)) if others else 0.0

    return *opener_and_others(heard.opening), *opener_and_others(closing)


@dataclass(frozen=True)
class WorthStep:
    """How often a step was right, and the verdict's lead in the `paired` cases that have both."""

    step: str
    accuracy: WilsonShare
    unclear: int
    lead: float | None
    low: float | None
    high: float | None
    paired: int


@dataclass(frozen=True)
class DebateCost:
    """Mean use per run of the calls of one part; `dollars` is None if a price is unknown."""

    part: str
    calls: float
    tokens: float
    dollars: float | None


@dataclass(frozen=True)
class DebateWorth:
    """The steps and costs of debates, and mean seconds: of a run, and to its first turn's end."""

    steps: tuple[WorthStep, ...]
    costs: tuple[DebateCost, ...]
    runs: int
    seconds: float
    opening_seconds: float
    always: float


def measure_debate_worth(rows: Sequence[DecidedRun]) -> DebateWorth | None:
    """Return the worth of debates over each case's newest run, or None; `rows` are newest first."""
    newest = [row for row in select_newest_runs(rows) if row.heard.opener is not None]
    if not newest:
        return None
    wrong = np.array([row.is_wrong for row in newest])
    answers = np.array([_answers_by_step(row.heard) for row in newest], dtype=np.float64)
    return DebateWorth(
        steps=_measure_steps(dict(zip(WORTH_STEPS, answers.T, strict=True)), wrong),
        costs=tuple(_mean_cost(part, newest) for part in COST_PARTS),
        runs=len(newest),
        seconds=float(np.mean([row.heard.seconds for row in newest])),
        opening_seconds=float(np.mean([row.heard.opening_seconds for row in newest])),
        always=float(wrong.mean()),
    )


def _answers_by_step(heard: AgentAnswers) -> tuple[float, ...]:
    """Return the answer of each of `WORTH_STEPS` in one debate, as in `VoteMatrix.said`."""
    by_part = {agent.part: answer for agent, answer in heard.last.items()}
    debaters = [answer for agent, answer in heard.last.items() if agent.part == DEBATER]
    opener = heard.opening[heard.opener] if heard.opener else np.nan
    majorities = (_majority(heard.opening.values()), _majority(debaters))
    return opener, *majorities, by_part.get(JUDGE, np.nan), by_part.get(CLASSIFIER, np.nan)


def _majority(said: Iterable[float]) -> float:
    """Return the side that most of them take; unclear on a tie."""
    sides = [np.sign(answer - UNCLEAR_VALUE) for answer in said]
    return float(UNCLEAR_VALUE + np.sign(sum(sides)) / 2.0) if sides else np.nan


def _measure_steps(said: Mapping[str, FloatArray], wrong: BoolArray) -> tuple[WorthStep, ...]:
    right = {
        name: (own != UNCLEAR_VALUE) & ((own > UNCLEAR_VALUE) == wrong)
        for name, own in said.items()
    }
    spoke = {name: ~np.isnan(own) for name, own in said.items()}
    both = {name: spoke[name] & spoke["verdict"] for name in said}
    leads = bootstrap_measures(
        {n: make_mean(right["verdict"].astype(float) - right[n], both[n]) for n in said},
        np.arange(len(wrong)),
        DEBATE_WORTH_SEED,
        LEAD_BOOTSTRAP_DRAWS,
    )
    steps = []
    for name, own in said.items():
        accuracy = WilsonShare(int((right[name] & spoke[name]).sum()), int(spoke[name].sum()))
        unclear, paired = int((own == UNCLEAR_VALUE).sum()), int(both[name].sum())
        lead, low, high = leads[name] if paired else (None, None, None)
        steps.append(WorthStep(name, accuracy, unclear, lead, low, high, paired))
    return tuple(steps)


def _mean_cost(part: str, rows: Sequence[DecidedRun]) -> DebateCost:
    used = []
    for role, use in (item for row in rows for item in row.heard.used.items()):
        owner = "debaters" if role.startswith("debater ") else role
        if part == (owner if owner in COST_PARTS else "others"):
            used.append(use)
    n, known = len(rows), [use.nano for use in used if use.nano is not None]
    dollars = None if len(known) < len(used) else sum(known) / NANO_PER_DOLLAR / n
    calls, tokens = sum(use.calls for use in used), sum(use.tokens for use in used)
    return DebateCost(part, calls / n, tokens / n, dollars)


def compute_separation(risk: float) -> float:
    """Return d of a judge with that risk without a debate; 0 for a coin's or a higher risk."""
    if risk >= COIN_RISK:
        return 0.0
    return -2.0 * NormalDist().inv_cdf(max(risk, MIN_RISK))


def compute_risk(d: float) -> float:
    """Return the risk R0 of a judge whose separation is `d`."""
    return NormalDist().cdf(-d / 2.0)


def compute_collaborative_risk(d: float, budget: float) -> float:
    """Return R = Phi(-sqrt(d² + 2m) / 2) <= R0 for true evidence of mean LLR m (Prop. 2.3)."""
    return compute_risk(math.sqrt(d * d + 2.0 * budget))


def compute_competitive_risk(d: float, budget: float, weaker: float = 0.0) -> float:
    """Return the risk of a judge who takes pushes for evidence.

    The other side pushes `weaker` as far. The sum moves by s = (1 - w)·m under both labels
    (Proposition 2.2): R = (Phi((s - d²/2) / d) + Phi((-s - d²/2) / d)) / 2 >= R0.
    """
    if d == 0.0:
        return COIN_RISK
    push, half = (1.0 - weaker) * budget, d * d / 2.0
    normal = NormalDist()
    return (normal.cdf((push - half) / d) + normal.cdf((-push - half) / d)) / 2.0


def infer_evidence(base: float, full: float) -> float:
    """Return the mean LLR of true evidence that lowers the base risk to the full one, or 0."""
    return max(0.0, (compute_separation(full) ** 2 - compute_separation(base) ** 2) / 2.0)


@dataclass(frozen=True)
class MeasuredAgents:
    """Agents over `n` decided cases; `curve` is (k, error of majorities of k, mean cases)."""

    agents: tuple[SpeakingAgent, ...]
    n: int
    accuracy: MetricEstimate
    correlation: MetricEstimate
    curve: tuple[tuple[int, float, float], ...]
    always: float


def compute_majority_error(n: int, accuracy: float, correlation: float) -> float:
    """Return P(a majority of `n` >= 1 is wrong); a coin decides ties, `correlation` is in [0, 1].

    With e the error and r the correlation, K wrong ~ BetaBinomial(n, e (1 - r) / r,
    (1 - e) (1 - r) / r), Binomial at r = 0. That is our choice, the simplest for equal agents.
    """
    from scipy.stats import betabinom, binom

    error = 1.0 - accuracy
    if correlation >= 1.0 - CORRELATION_TOLERANCE or error in (0.0, 1.0):
        return error
    wrong = np.arange(n + 1)
    if correlation <= CORRELATION_TOLERANCE:
        chances = binom.pmf(wrong, n, error)
    else:
        concentration = (1.0 - correlation) / correlation
        chances = betabinom.pmf(wrong, n, error * concentration, accuracy * concentration)
    lost = chances[2 * wrong > n].sum() + chances[2 * wrong == n].sum() / 2
    return float(min(1.0, max(0.0, lost)))


def count_effective_agents(n: int, correlation: float) -> float:
    """Return how many independent agents are worth n that make the same errors."""
    return n / (1.0 + (n - 1) * correlation)


def compute_hoeffding_bound(n: int, accuracy: float, correlation: float) -> float:
    """Return the bound exp(-2 n_eff (1/2 - e)²) on a majority's error; 1 if e is above 1/2."""
    lead = max(0.0, accuracy - 0.5)
    return float(np.exp(-2.0 * count_effective_agents(n, correlation) * lead**2))


def measure_agents(rows: Sequence[DecidedRun]) -> MeasuredAgents | None:
    """Return agents' accuracy and correlation over newest runs (`rows` newest first), or None."""
    newest = select_newest_runs(rows)
    counts = Counter(agent for row in newest for agent in _first_answers(row))
    often = [agent for agent, count in counts.items() if count >= MIN_CASES]
    agents = tuple(sorted(often, key=lambda agent: (-counts[agent], agent))[:MAX_MEASURED_AGENTS])
    if len(agents) < 2:
        return None
    errors = np.array([[_error(row, agent) for agent in agents] for row in newest])
    is_answered = (~np.isnan(errors)).any(axis=1)
    errors, wrong = errors[is_answered], np.array([row.is_wrong for row in newest])[is_answered]
    if len(errors) < MIN_CASES:
        return None
    all_measures: dict[str, Measure] = {
        "accuracy": lambda weights: 1.0 - _error_rate(errors, weights),
        "correlation": lambda weights: _correlation(errors, weights),
    }
    figures = bootstrap_measures(
        all_measures, np.arange(len(errors)), DEBATE_WORTH_SEED, WORTH_BOOTSTRAP_DRAWS
    )
    if np.isnan(figures["correlation"].value):
        return None
    always = float(min(wrong.mean(), 1.0 - wrong.mean()))
    return MeasuredAgents(
        agents, len(errors), **figures, curve=tuple(_majority_curve(errors)), always=always
    )


def _first_answers(row: DecidedRun) -> dict[SpeakingAgent, float]:
    """Return what was said before anyone could be swayed: first turns, the judge's readers."""
    readers = {agent: said for agent, said in row.heard.last.items() if agent.part == READER}
    return {**row.heard.opening, **readers}


def _error(row: DecidedRun, agent: SpeakingAgent) -> float:
    """Return 1 if the agent was wrong, 0 if right, NaN if it did not decide."""
    said = _first_answers(row).get(agent, UNCLEAR_VALUE)
    return np.nan if said == UNCLEAR_VALUE else float((said > UNCLEAR_VALUE) != row.is_wrong)


def _error_rate(errors: FloatArray, weights: FloatArray) -> FloatArray:
    """Return (draws,) error rates over all that agents decided, from (cases, agents) errors."""
    decided = weights @ (~np.isnan(errors)).sum(axis=1)
    return np.asarray(weights @ np.nansum(errors, axis=1) / np.maximum(decided, 1.0))


def _correlation(errors: FloatArray, weights: FloatArray) -> FloatArray:
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


def _majority_curve(errors: FloatArray) -> list[tuple[int, float, float]]:
    """Return errors of majorities of k agents, over the cases on which all k decided."""
    points = []
    for k in range(1, errors.shape[1] + 1):
        rates, cases = [], []
        subsets = itertools.islice(
            itertools.combinations(range(errors.shape[1]), k), MAX_AGENT_SUBSETS
        )
        for subset in subsets:
            subset_errors = errors[:, subset]
            share = subset_errors[~np.isnan(subset_errors).any(axis=1)].mean(axis=1)
            if len(share) >= MIN_CASES:
                rates.append(float(((share > 0.5) + (share == 0.5) / 2).mean()))
                cases.append(len(share))
        if rates:
            points.append((k, float(np.mean(rates)), float(np.mean(cases))))
    return points
