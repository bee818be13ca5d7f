"""Made-up debates: whose answers are right how often is known, so that what is learned is too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.learning.answers import Answers
from core.verdict.debate_features import NAMES
from core.verdict.weigher import Answerer

SHARES = (0.92, 0.7, 0.55)
SUPPORT = NAMES.index("verified")


def made(
    n: int = 200, shares: Sequence[float] = SHARES, *, tell: float = 0.0, seed: int = 3
) -> Answers:
    """N debates, two to a group; agent i is right on `shares[i]` of them, by chance.

    With `tell` above 0 the share of verified quotes is higher, by that much, where an answer is
    right: then a debate shows whom to believe in it, whatever the agents' records.
    """
    random = np.random.default_rng(seed)
    labels = (np.arange(n) // 2 % 2).astype(np.float64)
    right = random.random((n, len(shares))) < np.array(shares)
    said = np.where(right, labels[:, None], 1.0 - labels[:, None])
    features = np.zeros((*said.shape, len(NAMES)))
    features[:, :, NAMES.index("side")] = 2.0 * said - 1.0
    features[:, :, SUPPORT] = random.random(said.shape) * 0.5 + tell * right
    return Answers(
        tuple(Answerer(f"agent {share}") for share in shares),
        said,
        np.tile(np.arange(len(shares)), (n, 1)),
        features,
        labels,
        np.full(n, np.nan),
        tuple(f"group {i // 2}" for i in range(n)),
    )
