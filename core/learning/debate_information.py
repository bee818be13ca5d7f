"""Whether debates told anything that the first stances had not: a judge's risk with and without.

ColMAD 2.1 has a judge decide by the log-likelihood ratio of what it sees: of the initial answers
alone (equation 1), or with what the debate's messages add to it (equation 3). The messages lower
the least risk exactly where I(label; messages | answers) > 0 (2.3, A.3). Both are estimated from
runs over decided cases:

    base   log-odds from the debaters' first stances
    full   log-odds from their first stances and their last ones, which is what the debate came to
    risk   how often the likelier label is wrong            1 - E max(P, 1 - P) in the paper
    bits   log loss of base - log loss of full, base 2      a lower bound of I, in the limit

P is a logistic model fitted without the case's fold (and without equal cases), so a risk is that on
cases not seen: above the least possible one. Intervals are 95 % of a bootstrap over cases, both
sides drawn alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.learning.heard import DEBATER, Agent, Heard, Row
from core.learning.majority import Interval
from core.learning.stack import FOLDS, fit_stack, grouped_folds
from core.learning.votes import UNCLEAR, Numbers, numbered

Flags = npt.NDArray[np.bool_]
DRAWS = 1000
SEED = 11
FEWEST = 30  # cases
FEWEST_PER_LABEL = 10
BASE = 2  # columns of the first stances
ALL = ""


@dataclass(frozen=True)
class Information:
    """Over `n` cases of a protocol (all where it is empty); `moved` of them saw a stance change.

    `always` is the risk of the more frequent label said always. `gain` is the fall in risk.
    """

    protocol: str
    n: int
    moved: int
    base: Interval
    full: Interval
    gain: Interval
    bits: Interval
    always: float


def information(rows: Sequence[Row]) -> list[Information]:
    """Over all runs, then of each protocol with enough cases; `rows` come newest first.

    The newest run of a case counts, by each protocol. Nothing where there are too few; protocols
    stand apart where two or more have enough.
    """
    debated = [row for row in rows if len(row.heard.opening) > 1]
    protocols = sorted({row.heard.protocol for row in debated})
    parts = [(name, [r for r in debated if r.heard.protocol == name]) for name in protocols]
    own = [found for found in (_information(*part) for part in parts) if found is not None]
    whole = _information(ALL, debated)
    return [] if whole is None else [whole, *(own if len(own) > 1 else [])]


def _information(protocol: str, rows: Sequence[Row]) -> Information | None:
    newest = list({row.decision.group: row for row in reversed(rows)}.values())
    wrong = np.array([row.is_wrong for row in newest], dtype=bool)
    labels = min(int(wrong.sum()), int((~wrong).sum()))
    if len(newest) < FEWEST or labels < max(FOLDS, FEWEST_PER_LABEL):
        return None
    stances = np.array([stances_of(row.heard) for row in newest])
    groups = numbered([row.decision.group for row in newest])
    base, full = (_cross_fitted(columns, wrong, groups) for columns in (stances[:, :BASE], stances))
    errors = [((p >= UNCLEAR) != wrong).astype(np.float64) for p in (base, full)]
    losses = [-np.log2(np.where(wrong, p, 1.0 - p)) for p in (base, full)]
    drawn = _draws(len(newest))
    return Information(
        protocol,
        len(newest),
        int((stances[:, :BASE] != stances[:, BASE:]).any(axis=1).sum()),
        _interval(errors[0], drawn),
        _interval(errors[1], drawn),
        _interval(errors[0] - errors[1], drawn),
        _interval(losses[0] - losses[1], drawn),
        float(min(wrong.mean(), 1.0 - wrong.mean())),
    )


def stances_of(heard: Heard) -> tuple[float, float, float, float]:
    """First stance of who spoke first, mean of the others' first; the same of their last ones.

    1 is hallucinated, -1 supported, 0 unclear.
    """
    last = {agent: said for agent, said in heard.last.items() if agent.part == DEBATER}
    first = {agent: _signed(said) for agent, said in heard.opening.items()}
    ended = {agent: _signed(last.get(agent, heard.opening[agent])) for agent in first}
    own = heard.opener

    def pair(said: Mapping[Agent, float]) -> tuple[float, float]:
        others = [value for agent, value in said.items() if agent != own]
        return said[own] if own else 0.0, float(np.mean(others)) if others else 0.0

    return *pair(first), *pair(ended)


def _signed(said: float) -> float:
    return 2.0 * (said - UNCLEAR)


def _cross_fitted(columns: Numbers, wrong: Flags, groups: npt.NDArray[np.int64]) -> Numbers:
    """(n,) P(hallucinated) of each case by a model that saw nothing of its group."""
    p = np.empty(len(wrong))
    for fit, test in grouped_folds(wrong, groups, SEED):
        p[test] = fit_stack(columns[fit], wrong[fit]).p(columns[test])
    return p


def _draws(n: int) -> Numbers:
    """(draws, n) how often each case counts."""
    random = np.random.default_rng(SEED)
    return random.multinomial(n, np.full(n, 1.0 / n), size=DRAWS).astype(np.float64)


def _interval(values: Numbers, drawn: Numbers) -> Interval:
    low, high = np.quantile(drawn @ values / len(values), [0.025, 0.975]).tolist()
    return Interval(float(values.mean()), low, high)
