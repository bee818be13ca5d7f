"""Readers without weights, and a small evidence model: findings that a test can foresee.

`word_assessor()` stands in for the shipped assessor wherever a test is not about the weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from core.baseline.assessment import Assessor
from core.baseline.entailment import (
    EntailmentReader,
    EntailmentReading,
    EvidenceClaimPair,
    TokenDoubt,
)
from core.baseline.evidence_model import (
    FEATURES,
    MATERIALS,
    BoostedTrees,
    EvidenceModel,
    LogisticModel,
)
from core.documents.segmentation import WORD_TOKEN, extract_query_terms, extract_terms
from core.runtime.concurrency import StopSignal

Odds = tuple[float, float, float]
"""Supported, contradicted, neutral."""
SUPPORTS: Odds = (0.94, 0.03, 0.03)
CONTRADICTS: Odds = (0.03, 0.94, 0.03)
NEUTRAL: Odds = (0.03, 0.03, 0.94)
DOUBTED, TRUSTED = 0.9, 0.05
UNKNOWN_SCRIPT = "ᚠᚢᚦᚬᚱᚴ"
"""Runes, which these readers do not know."""


class WordReader:
    """Goes by words alone: supported where the evidence has all of them, contradicted where most.

    Words that the evidence lacks are doubted. Words in `wrong` count as lacking everywhere.
    """

    id = "words-1"
    marks_words = True
    wrong: frozenset[str] = frozenset()

    def read(
        self, pairs: Sequence[EvidenceClaimPair], stop: StopSignal | None = None
    ) -> list[EntailmentReading]:
        (stop or StopSignal()).check()
        return [self._reading(evidence, claim) for evidence, claim in pairs]

    def knows(self, text: str) -> bool:
        return not set(UNKNOWN_SCRIPT) & set(text)

    def _reading(self, evidence: str, claim: str) -> EntailmentReading:
        held, wanted = set(extract_terms(evidence)) - self.wrong, extract_query_terms(claim)
        share = sum(term in held for term in wanted) / max(1, len(wanted))
        odds = NEUTRAL if share < 0.5 else CONTRADICTS if share < 1.0 else SUPPORTS
        missing = set(wanted) - held
        doubts = (
            TokenDoubt(
                *m.span(), TRUSTED if missing.isdisjoint(extract_terms(m.group())) else DOUBTED
            )
            for m in WORD_TOKEN.finditer(claim)
        )
        return EntailmentReading(*odds, words=tuple(doubts))


class PawReader(WordReader):
    """A word reader to whom nothing is left pawed: what the tests' cats are falsely said to be."""

    id = "paws-1"
    wrong = frozenset({"left"})


class ScriptedReader(WordReader):
    """Says what the test wrote of evidence that holds given words; of all other it is neutral.

    Doubts only the words in `doubted`.
    """

    id = "scripted-1"

    def __init__(self, said: Mapping[str, Odds] | None = None, doubted: Iterable[str] = ()) -> None:
        self._said = dict(said or {})
        self._doubted = frozenset(doubted)
        self.pairs: list[EvidenceClaimPair] = []

    def read(
        self, pairs: Sequence[EvidenceClaimPair], stop: StopSignal | None = None
    ) -> list[EntailmentReading]:
        self.pairs += pairs
        return super().read(pairs, stop)

    def _reading(self, evidence: str, claim: str) -> EntailmentReading:
        odds = next((odds for words, odds in self._said.items() if words in evidence), NEUTRAL)
        doubts = (
            TokenDoubt(*match.span(), DOUBTED if match.group() in self._doubted else TRUSTED)
            for match in WORD_TOKEN.finditer(claim)
        )
        return EntailmentReading(*odds, words=tuple(doubts))


def small_model() -> EvidenceModel:
    """Support makes a statement right, contradiction without it wrong, none of them neither.

    Below 0.3 a statement is supported, from 0.7 on it is hallucinated. Evidence with less than a
    quarter of a statement's words does not address it.
    """
    best = [FEATURES.index(name) for name in ("support_best", "contradiction_best")]
    is_root = np.array([1, 0, 0, 1, 0, 0], bool)
    trees = BoostedTrees(
        feature=np.array([best[0], 0, 0, best[1], 0, 0], np.int32),
        threshold=np.where(is_root, 0.0, np.inf),
        left=np.array([1, 1, 2, 4, 4, 5], np.int32),
        right=np.array([2, 1, 2, 5, 4, 5], np.int32),
        value=np.array([0.0, 0.0, -8.0, 0.0, 0.0, 4.0]),
        root=np.array([0, 3], np.int32),
        depth=1,
        base=0.0,
    )
    return EvidenceModel(
        trees=trees,
        linear=LogisticModel({}, 0.0),
        features=FEATURES,
        calibration={material: LogisticModel({"score": 2.0}, 0.0) for material in MATERIALS},
        parts={
            "reading": LogisticModel({"support_best": -0.5, "contradiction_best": 0.5}, 0.0),
            "values": LogisticModel({"values_different": 5.0, "values_same": -3.0}, 0.0),
            "coverage": LogisticModel({"terms_found": -20.0}, 18.0),
        },
        addressed=LogisticModel({"terms_found": 8.0}, -2.0),
        addressed_from=0.5,
        supported_below=0.3,
        hallucinated_from=0.7,
        card={"limits": {"supported_error": 0.1, "hallucinated_error": 0.1}},
    )


def assessor_with(reader: EntailmentReader) -> Assessor:
    """An assessor with that reader and the small model."""
    return Assessor(reader, small_model())


@lru_cache(maxsize=1)
def word_assessor() -> Assessor:
    """The assessor with the reader that goes by words."""
    return assessor_with(WordReader())


@lru_cache(maxsize=1)
def paw_assessor() -> Assessor:
    """The assessor with the reader to whom nothing is left pawed."""
    return assessor_with(PawReader())
