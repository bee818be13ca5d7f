"""A judge between debaters as a model to try out: what pushing and what true evidence do to it.

Of ColMAD 2.2, 2.3 and A: a judge adds up log-likelihood ratios (LLR) and takes the likelier of two
equally likely labels. Ours is the plainest such case. What it has without a debate is normal,

    L0 ~ N(+d^2 / 2, d^2) under one label, N(-d^2 / 2, d^2) under the other;   R0 = Phi(-d / 2)

and each debater's message moves the sum by at most a budget m >= 0 (in nats, the paper's bound on
the LLR).

- Collaborative: the messages bring true evidence that is independent of L0, of mean LLR m. It has
  separation sqrt(2 m), so   R_collab = Phi(-sqrt(d^2 + 2 m) / 2) <= R0,
  strictly below for m > 0, as there is I(label; messages | answers) > 0 (Proposition 2.3).
- Competitive: each pushes its own side as far as it can whatever is true, one with m, the other
  with w m, w in [0, 1]. The sum moves by s = (1 - w) m the same way under both labels, so it tells
  nothing. A judge who takes pushes for evidence errs
  R_compete = (Phi((s - d^2 / 2) / d) + Phi((-s - d^2 / 2) / d)) / 2 >= R0,
  equal where both push alike (w = 1). The best judge drops the messages and keeps R0
  (Proposition 2.2: no less than R0).
"""

from __future__ import annotations

import math
from statistics import NormalDist

COIN = 0.5
LEAST_RISK = 1e-6


def separation(risk: float) -> float:
    """D of a judge whose risk without a debate is that; 0 at a coin's or above."""
    if risk >= COIN:
        return 0.0
    return -2.0 * NormalDist().inv_cdf(max(risk, LEAST_RISK))


def risk_of(d: float) -> float:
    """R0 of a separation."""
    return NormalDist().cdf(-d / 2.0)


def collaborative(d: float, budget: float) -> float:
    """The risk when messages bring true evidence of mean LLR `budget`."""
    return risk_of(math.sqrt(d * d + 2.0 * budget))


def competitive(d: float, budget: float, weaker: float = 0.0) -> float:
    """The risk of a judge who takes pushes for evidence; the other side pushes `weaker` as far."""
    if d == 0.0:
        return COIN
    push, half = (1.0 - weaker) * budget, d * d / 2.0
    normal = NormalDist()
    return (normal.cdf((push - half) / d) + normal.cdf((-push - half) / d)) / 2.0


def evidence_in(base: float, full: float) -> float:
    """The mean LLR of true evidence that takes a base risk to the full one; 0 where it does not."""
    return max(0.0, (separation(full) ** 2 - separation(base) ** 2) / 2.0)
