"""The sentence encoder of the keyless engine: multilingual-e5-small, int8, some 100 languages.

Set-up makes it from the packed weights (`export`). A text's vector is the mean of its tokens'
vectors. The model was trained with prefixes; "query: " on both sides is its authors' advice where
texts are alike in kind, as a statement and a sentence of a source are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.baseline.export import ENCODER, open_session, read_card
from core.baseline.tokens import BEGIN, END, MAX_TOKENS, load_vocabulary
from core.runtime.concurrency import Stop, loaded_once
from core.runtime.config import E5_DIR

PREFIX = "query: "
MOST_WORKERS = 4
Matrix = npt.NDArray[np.float32]


class MultilingualEncoder:
    """An exported encoder; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model. Raises ConfigError if the folder is missing or incomplete."""
        card = read_card(folder, ENCODER)
        self.id: str = card["id"]
        self.width: int = card["width"]
        self._vocabulary = load_vocabulary(folder)
        self._session = open_session(folder / ENCODER)
        self._workers = min(MOST_WORKERS, os.cpu_count() or 1)

    def encode(self, texts: Sequence[str], stop: Stop | None = None) -> Matrix:
        """(n, width) float32, rows of unit length; order as given."""
        halt = stop or Stop()

        def vector(text: str) -> Matrix:
            halt.check()
            return self._encode_one(text)

        if len(texts) < 2 or self._workers < 2:
            rows = [vector(text) for text in texts]
        else:
            with ThreadPoolExecutor(self._workers) as pool:
                rows = list(pool.map(vector, texts))
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(n,) True where more than a fifth of the tokens are unknown."""
        return np.array([self._vocabulary.is_unknown(text) for text in texts], dtype=bool)

    def _encode_one(self, text: str) -> Matrix:
        """One text by itself: int8 activations are scaled over all that is read together."""
        tokens = self._vocabulary.tokenizer.encode(PREFIX + text, add_special_tokens=False).ids
        ids = [BEGIN, *tokens[: MAX_TOKENS - 2], END]
        (hidden,) = self._session.run(None, {"vectors": self._vocabulary.vectors_of(ids)})
        mean = hidden[0].mean(axis=0)
        return np.asarray(mean / max(1e-12, float(np.linalg.norm(mean))), dtype=np.float32)


@loaded_once
def load_multilingual_encoder(folder: Path = E5_DIR) -> MultilingualEncoder:
    """The encoder in that folder, loaded once per process.

    Raises ConfigError if it is missing or incomplete.
    """
    return MultilingualEncoder(folder)
