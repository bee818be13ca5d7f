"""How far more agents help when they err together: a majority's error, in theory and measured.

CEDA A.1 bounds how far the mean of n independent, unbiased agents strays (Hoeffding),
P(|mean - truth| >= eps) <= 2 exp(-2 n eps^2), and says that n becomes an effective number where
agents depend on each other. Here, with e an agent's error rate and r the correlation of two agents'
errors (agents alike, so one e and one r for all):

    n_eff = n / (1 + (n - 1) r)                  the variance of the mean is that of n_eff agents
    P(majority wrong) <= exp(-2 n_eff (1/2 - e)^2)      one-sided Hoeffding, for e < 1/2
    K wrong of n ~ BetaBinomial(n, e (1 - r) / r, (1 - e) (1 - r) / r)       Binomial at r = 0
    error = P(K > n / 2) + P(K = n / 2) / 2      a tie is decided by a coin

The beta-binomial is our choice: the simplest distribution of agents alike with that e and r.
Measured is what agents said before a debate could bring them together: debaters' first turns and
the judge's readers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.learning.reasoning import READER, Agent, Row
from core.learning.weights import UNCLEAR, Numbers

DRAWS = 500
SEED = 11
FEWEST = 20  # cases below which nothing is said, of all agents or of one
MOST_AGENTS = 8
MOST_SUBSETS = 80
ALONE, TOGETHER = 1, 2
NEAR = 1e-6  # correlations so near to 0 or 1 are that: the beta's parameters would overflow


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % bootstrap interval over cases."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """Agents over `n` decided cases; an agent that says unclear says nothing there.

    `curve` is (k, mean error of majorities of k of them, cases that these were over on average).
    `always` is the error of the better of the two words said always.
    """

    agents: tuple[Agent, ...]
    n: int
    accuracy: Interval
    correlation: Interval
    curve: tuple[tuple[int, float, float], ...]
    always: float


def majority_error(n: int, accuracy: float, correlation: float) -> float:
    """P(a majority of n is wrong), by the equations above.

    `correlation` is in [0, 1]; `n` at least 1.
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
    """The bound on a majority's error; 1, which says nothing, for agents no better than a coin."""
    lead = accuracy - 0.5
    if lead <= 0.0:
        return 1.0
    return float(np.exp(-2.0 * effective_agents(n, correlation) * lead**2))


def measured(rows: Sequence[Row]) -> Measured | None:
    """Over the newest run of each case; `rows` come newest first. None with too little."""
    newest = list({row.decision.group: row for row in reversed(rows)}.values())
    agents = _most_heard(newest)
    errors = np.array([[_error(row, agent) for agent in agents] for row in newest])
    if not len(newest) or len(agents) < TOGETHER:
        return None
    spoken = (~np.isnan(errors)).any(axis=1)
    errors, wrong = errors[spoken], np.array([row.is_wrong for row in newest])[spoken]
    if len(errors) < FEWEST or np.isnan(_correlation(errors)):
        return None
    random = np.random.default_rng(SEED)
    drawn = [errors[random.integers(len(errors), size=len(errors))] for _ in range(DRAWS)]
    return Measured(
        agents,
        len(errors),
        _interval(1.0 - float(np.nanmean(errors)), [1.0 - float(np.nanmean(d)) for d in drawn]),
        _interval(_correlation(errors), [_correlation(own) for own in drawn]),
        tuple(_curve(errors)),
        float(min(wrong.mean(), 1.0 - wrong.mean())),
    )


def _first_words(row: Row) -> dict[Agent, float]:
    """What was said before anybody could be swayed, by agent."""
    readers = {agent: said for agent, said in row.heard.last.items() if agent.part == READER}
    return {**row.heard.opening, **readers}


def _most_heard(rows: Sequence[Row]) -> tuple[Agent, ...]:
    counts: dict[Agent, int] = {}
    for row in rows:
        for agent in _first_words(row):
            counts[agent] = counts.get(agent, 0) + 1
    often = [agent for agent, count in counts.items() if count >= FEWEST]
    return tuple(sorted(often, key=lambda agent: (-counts[agent], agent))[:MOST_AGENTS])


def _error(row: Row, agent: Agent) -> float:
    """1 where the agent was wrong, 0 where right, NaN where it did not decide."""
    said = _first_words(row).get(agent, UNCLEAR)
    return np.nan if said == UNCLEAR else float((said > UNCLEAR) != row.is_wrong)


def _correlation(errors: Numbers) -> float:
    """R over all pairs of agents and the cases on which both decided; (cases, agents) of errors.

    The mean product of both agents' deviations from the common error rate, over its variance.
    """
    base = float(np.nanmean(errors))
    spread = base * (1.0 - base)
    off = errors - base
    total = there = 0.0
    for one, other in itertools.combinations(range(errors.shape[1]), 2):
        products = off[:, one] * off[:, other]
        total += float(np.nansum(products))
        there += float((~np.isnan(products)).sum())
    return total / there / spread if there and spread > 0 else float("nan")


def _curve(errors: Numbers) -> list[tuple[int, float, float]]:
    """Majorities of k agents, over the cases on which all k decided; for odd and even k."""
    found = []
    for k in range(ALONE, errors.shape[1] + 1):
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


def _interval(value: float, drawn: Sequence[float]) -> Interval:
    known = [own for own in drawn if not np.isnan(own)]
    low, high = np.quantile(known, [0.025, 0.975]).tolist() if known else (value, value)
    return Interval(value, low, high)
