"""An entailment reader that says what a test told it, by words that the evidence holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from core.concurrency import Stop
from core.models.encoder import Matrix

Odds = tuple[float, float, float]
CARRIES: Odds = (0.94, 0.03, 0.03)
CONTRADICTS: Odds = (0.03, 0.94, 0.03)
OPEN: Odds = (0.03, 0.03, 0.94)
MUTED_WORD = "ไทย"


class ToldReader:
    """Supported, contradicted, not enough for evidence with given words; else not enough."""

    id = "told"

    def __init__(self, said: Mapping[str, Odds] | None = None) -> None:
        self._said = dict(said or {})

    def read(self, pairs: Sequence[tuple[str, str]], stop: Stop | None = None) -> Matrix:
        if stop is not None:
            stop.check()
        return np.array([self._of(evidence) for evidence, _ in pairs], dtype=np.float32)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.array([MUTED_WORD in text for text in texts], dtype=bool)

    def _of(self, evidence: str) -> Odds:
        return next((odds for words, odds in self._said.items() if words in evidence), OPEN)
