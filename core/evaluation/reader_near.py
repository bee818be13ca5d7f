"""Evidence that is on a statement's topic and still does not speak about it, as retrieval finds it.

A reader that only ever saw evidence chosen for its statement takes whatever shares its topic for a
denial; most of what a search brings is such. Sets of one subject (COVID, the climate) or of small
changes to few sentences are left out: there evidence of another row often does speak about it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from core.evaluation.reader_pairs import Pair
from core.models.encoder import PassageEmbedder

MUCH_ALIKE = (
    "entailment_climate_fever",
    "entailment_healthver",
    "entailment_covidfact",
    "entailment_cad_nli",
    "entailment_med",
)
NEAREST = 12  # of which one is drawn
SAME_FROM = 0.85  # similarity from which it may well say the very same
LEAST = 0.25  # similarity below which it is on another topic
LONGEST = 700  # characters


class Near:
    """Finds, for a statement, evidence of other groups that is most like it."""

    def __init__(self, pairs: Sequence[Pair], encoder: PassageEmbedder, seed: int) -> None:
        self._random = random.Random(seed)
        self._encoder = encoder
        own = {p.evidence: p.group for p in pairs if self.serves(p) and len(p.evidence) <= LONGEST}
        self._evidence, self._groups = list(own), list(own.values())
        self._vectors = encoder.encode(self._evidence)

    @staticmethod
    def serves(pair: Pair) -> bool:
        """Whether other rows' evidence is beside the point of this one."""
        return pair.name not in MUCH_ALIKE

    def evidence(self, pair: Pair) -> str | None:
        """One or two stretches of others' evidence near the statement; None where none is near."""
        if not self.serves(pair) or not self._evidence:
            return None
        likeness = self._vectors @ self._encoder.encode([pair.statement])[0]
        order = np.argsort(-likeness)[: 4 * NEAREST].tolist()
        found = [
            self._evidence[i]
            for i in order
            if LEAST <= likeness[i] < SAME_FROM and self._is_other(i, pair)
        ][:NEAREST]
        if not found:
            return None
        count = min(len(found), self._random.choice((1, 1, 2)))
        text = " ".join(self._random.sample(found, count))
        return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0]

    def _is_other(self, place: int, pair: Pair) -> bool:
        """Another row's, and neither part of this one's evidence nor around it."""
        text = self._evidence[place]
        if self._groups[place] == pair.group:
            return False
        return text not in pair.evidence and pair.evidence not in text
