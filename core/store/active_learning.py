"""Which cases teach most when people answer them: unsure, disagreed on, unlike what is known.

Uncertainty is the margin of p (Lewis and Gale 1994), disagreement the vote entropy of a committee
(Dagan and Engelson 1995), both known when a run ends. Unlikeness to all that was answered, and to
what is asked before (greedy k-center; Sener and Savarese 2018), keeps near copies apart. How the
three are mixed was measured: docs/learning.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.floating[Any]]

FIRST = 2.0  # from here on a rule puts an item before all others; it is added to what it teaches
DISTINCT = 0.4  # so unlike is worth saying
COPY = 0.95  # cosine of verdict texts from which on they ask nearly the same
UNJUDGED = 0.25  # how unsure a case counts that the machine could not judge
KINDS = 3  # labels that an agent can choose from


@dataclass(frozen=True)
class Shares:
    """How much each of the three counts; together 1, so that a worth lies in [0, 1]."""

    unsure: float
    apart: float
    unlike: float


# The most wrong verdicts found among the mixes that teach as fast as asking at random.
SHARES = Shares(0.45, 0.45, 0.1)


def unsureness(p: float | None) -> float:
    """1 where p is one half, 0 where it is sure."""
    return UNJUDGED if p is None else 1.0 - abs(2.0 * p - 1.0)


def vote_entropy(votes: Sequence[str]) -> float:
    """0 where all say the same, 1 where they are as far apart as so many voters can be."""
    if len(votes) < 2:
        return 0.0
    shares = [count / len(votes) for count in Counter(votes).values()]
    entropy = -sum(share * math.log(share) for share in shares)
    return max(0.0, entropy / math.log(min(KINDS, len(votes))))


def worth(unsure: float, apart: float, shares: Shares = SHARES) -> float:
    """What an answer teaches as far as its run tells; what is unlike comes on top."""
    return shares.unsure * unsure + shares.apart * apart


def unlikeness(teaches: float, told: float, shares: Shares = SHARES) -> float:
    """How unlike an item was found, from what it teaches and its `worth` (`told`).

    Below nought where it waits because it is nearly a copy.
    """
    above = teaches - (FIRST if teaches >= FIRST else 0.0) - told
    return above / (shares.unlike or 1.0)


def spread(
    worths: Numbers,
    vectors: Numbers,
    known: Numbers,
    share: float,
    *,
    most: int | None = None,
    copies_wait: bool = True,
) -> tuple[list[int], list[float]]:
    """The order in which to ask, best first, and what each then teaches.

    `vectors` (n, width) are of unit length, `known` (m, width) those of what was answered. The best
    is taken, then the best of the others given the first, and so on: `share` times its unlikeness
    to all before it is added to a worth, and of near copies (cosine above `COPY`) the worth itself
    shrinks. So what an item teaches never rises along the order. A vector of zeros is like nothing
    and unlike nothing.
    """
    import numpy as np

    silent = ~vectors.any(axis=1)
    near = np.clip(vectors @ known.T, 0.0, 1.0).max(axis=1, initial=0.0)
    order: list[int] = []
    teaches: list[float] = []
    waiting = np.ones(len(worths), dtype=bool)
    for _ in range(len(worths) if most is None else min(most, len(worths))):
        shrunk = np.minimum(1.0, (1.0 - near) / (1.0 - COPY)) if copies_wait else 1.0
        found = np.where(silent, worths, worths * shrunk + share * (1.0 - near))
        best = int(np.where(waiting, found, -np.inf).argmax())
        order.append(best)
        teaches.append(float(found[best]))
        waiting[best] = False
        near = np.maximum(near, np.clip(vectors @ vectors[best], 0.0, 1.0))
    return order, teaches
