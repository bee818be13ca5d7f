"""Whether debate is worth it: one agent alone against what comes after, its cost, its information.

ColMAD 2.1 has a judge decide by the log-likelihood ratio of what it sees: of the first answers
alone (equation 1), or with what the debate adds (equation 3). Messages lower the least risk exactly
where I(label; messages | answers) > 0 (2.3, A.3). Both are estimated from runs over decided cases:

- base: log-odds from the debaters' first stances
- full: log-odds from their first and last stances
- risk: how often the likelier label is wrong, 1 - E max(P, 1 - P) in the paper
- bits: log loss of base less that of full, base 2; in the limit a lower bound of I

P is a logistic model fitted without the case's fold and without equal cases. Intervals are 95 % of
a bootstrap over cases, both sides drawn alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.learning.majority import Interval
from core.learning.reasoning import CLASSIFIER, DEBATER, JUDGE, Agent, Heard, Row
from core.learning.weights import (
    FOLDS,
    UNCLEAR,
    Numbers,
    Share,
    fit_stack,
    grouped_folds,
    numbered,
    posterior,
)

Flags = npt.NDArray[np.bool_]
INFORMATION_DRAWS = 1000
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
    return random.multinomial(n, np.full(n, 1.0 / n), size=INFORMATION_DRAWS).astype(np.float64)


def _interval(values: Numbers, drawn: Numbers) -> Interval:
    low, high = np.quantile(drawn @ values / len(values), [0.025, 0.975]).tolist()
    return Interval(float(values.mean()), low, high)


DRAWS = 2000
NANO = 1e9
# From what is said before anybody was heard to what counts in the end.
STEPS = ("opener", "openings", "closings", "judge", "verdict")
PARTS = ("debaters", "judge", "others")


@dataclass(frozen=True)
class Step:
    """How often that step was right (unclear is not), and the verdict's lead over it.

    The lead is over the `paired` cases on which both spoke, with its interval; None without any.
    """

    step: str
    accuracy: Share
    unclear: int
    lead: float | None
    low: float | None
    high: float | None
    paired: int


@dataclass(frozen=True)
class Cost:
    """Means over `runs`: what calls to language models came to in each part of a run.

    `dollars` is None where a price is not known.
    """

    part: str
    calls: float
    tokens: float
    dollars: float | None


@dataclass(frozen=True)
class Worth:
    """The steps, and the cost and seconds of a run: whole, and to the end of the first turn."""

    steps: tuple[Step, ...]
    costs: tuple[Cost, ...]
    runs: int
    seconds: float
    opening_seconds: float
    always: float


def worth(rows: Sequence[Row]) -> Worth | None:
    """Over the newest run of each case; `rows` come newest first. None without any."""
    newest = list({row.decision.group: row for row in reversed(rows)}.values())
    newest = [row for row in newest if row.heard.opener is not None]
    if not newest:
        return None
    wrong = np.array([row.is_wrong for row in newest])
    said = {
        step: np.array([_said(row.heard)[step] for row in newest], dtype=np.float64)
        for step in STEPS
    }
    return Worth(
        steps=tuple(_step(step, said[step], said["verdict"], wrong) for step in STEPS),
        costs=tuple(_cost(part, newest) for part in PARTS),
        runs=len(newest),
        seconds=float(np.mean([row.heard.seconds for row in newest])),
        opening_seconds=float(np.mean([row.heard.opening_seconds for row in newest])),
        always=float(wrong.mean()),
    )


def _said(heard: Heard) -> dict[str, float]:
    """As in `Votes.said`, by step."""
    own = {agent.part: told for agent, told in heard.last.items()}
    debaters = [told for agent, told in heard.last.items() if agent.part == DEBATER]
    return {
        "opener": heard.opening[heard.opener] if heard.opener else np.nan,
        "openings": _most(heard.opening.values()),
        "closings": _most(debaters),
        "judge": own.get(JUDGE, np.nan),
        "verdict": own.get(CLASSIFIER, np.nan),
    }


def _most(said: Iterable[float]) -> float:
    """The side that more of them take; unclear where neither."""
    sides = [np.sign(told - UNCLEAR) for told in said]
    return float(UNCLEAR + np.sign(sum(sides)) / 2.0) if sides else np.nan


def _step(step: str, said: Numbers, verdict: Numbers, wrong: Flags) -> Step:
    spoke = ~np.isnan(said)
    right = spoke & (said != UNCLEAR) & ((said > UNCLEAR) == wrong)
    final = (verdict != UNCLEAR) & ((verdict > UNCLEAR) == wrong)
    both = spoke & ~np.isnan(verdict)
    unclear = int((said == UNCLEAR).sum())
    accuracy = posterior(int(right.sum()), int(spoke.sum()))
    n = int(both.sum())
    if not n:
        return Step(step, accuracy, unclear, None, None, None, 0)
    better, worse = int((final & ~right & both).sum()), int((right & ~final & both).sum())
    shares = np.array([better, worse, n - better - worse]) / n
    drawn = np.random.default_rng(SEED).multinomial(n, shares, size=DRAWS)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / n, [0.025, 0.975]).tolist()
    return Step(step, accuracy, unclear, (better - worse) / n, low, high, n)


def _cost(part: str, rows: Sequence[Row]) -> Cost:
    used = [own for row in rows for role, own in row.heard.used.items() if part == _part_of(role)]
    n = len(rows)
    nano = [own.nano for own in used]
    known = [own for own in nano if own is not None]
    return Cost(
        part,
        sum(own.calls for own in used) / n,
        sum(own.tokens for own in used) / n,
        None if len(known) < len(nano) else sum(known) / NANO / n,
    )


def _part_of(role: str) -> str:
    """Of the ledger's roles, which of `PARTS` it belongs to."""
    if role.startswith("debater "):
        return "debaters"
    return role if role == "judge" else "others"
