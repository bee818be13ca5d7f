"""The reader that ships: an English one, and one that reads all other languages.

The English reader (MiniLM as a cross-encoder) has seen more pairs, and reads twice as fast.
"""

from __future__ import annotations

from pathlib import Path

from core.baseline.entailment import (
    OnnxReader,
    Pair,
    PairReading,
    PairwiseReader,
    load_multilingual_reader,
)
from core.documents.segmentation import UNKNOWN, language_of
from core.runtime.concurrency import loaded_once

ENGLISH_DIR = Path(__file__).parent / "weights" / "english"


class ReaderByLanguage(PairwiseReader):
    """Hands each pair to the reader of its language; safe to use from several threads."""

    def __init__(self, english: PairwiseReader, multilingual: PairwiseReader) -> None:
        super().__init__()
        self._english, self._multilingual = english, multilingual
        self.id = f"{english.id}-{multilingual.id}"

    def knows(self, text: str) -> bool:
        """False where too many of the text's tokens are unknown, or its language is."""
        return self._multilingual.knows(text)

    def read_one(self, pair: Pair) -> PairReading:
        """The reading of one pair."""
        is_english = all(language_of(text) in {"en", UNKNOWN} for text in pair)
        return (self._english if is_english else self._multilingual).read_one(pair)


@loaded_once
def load_reader() -> ReaderByLanguage:
    """The readers that ship, loaded once per process.

    Raises ConfigError if one is missing, incomplete, or not what its card says.
    """
    return ReaderByLanguage(OnnxReader(ENGLISH_DIR), load_multilingual_reader())
