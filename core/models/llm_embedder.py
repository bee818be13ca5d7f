"""CEDA's agent A on a provider's embedding model: vectors of whole texts, fetched in batches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.concurrency import Stop
from core.errors import ModelError
from core.models.encoder import Matrix
from core.models.keys import Keys
from core.models.llm import Embedded, LiteLlm
from core.seats import Seat

TEXTS_PER_CALL = 96  # the least that a provider takes at once
LONGEST_TEXT = 6000  # characters: below every provider's limit in any script


class Embeds(Protocol):
    """Anything that embeds for money: `LiteLlm`, or a desk that keeps the ledger around it."""

    def embed(self, seat: Seat, texts: Sequence[str], stop: Stop) -> Embedded:
        """A vector for each text, in order."""
        ...


class LlmEmbedder:
    """A `Embedder` on the seat's model; safe to use from several threads.

    Vectors of tokens cannot be had from a provider: the built-in agents keep their own encoder.
    """

    def __init__(self, seat: Seat, keys: Keys, embeds: Embeds | None = None) -> None:
        self._seat = seat
        self._embeds = embeds or LiteLlm(keys)
        self._width = 0
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """The model and its address: another server's model of that name may be another."""
        return f"{self._seat.model}@{self._seat.api_base}"

    @property
    def width(self) -> int:
        """Length of a vector; asked for with one tiny call when none was seen yet.

        Raises:
            ReviewError: that call failed.
        """
        if not self._width:
            self._fetched(["width"], Stop())
        return self._width

    def encode(self, texts: Sequence[str], stop: Stop | None = None) -> Matrix:
        """(n, width) float32, rows of unit length; order as given, zero for a blank text.

        What is longer than any provider takes is embedded by its beginning.

        Raises:
            ReviewError: a call failed.
            Stopped: `stop` was set.
        """
        stop = stop or Stop()
        spoken = [number for number, text in enumerate(texts) if text.strip()]
        parts: list[Matrix] = []
        for begin in range(0, len(spoken), TEXTS_PER_CALL):
            batch = spoken[begin : begin + TEXTS_PER_CALL]
            parts.append(self._fetched([texts[i][:LONGEST_TEXT] for i in batch], stop))
        out = np.zeros((len(texts), self.width), dtype=np.float32)
        if parts:
            out[spoken] = np.concatenate(parts)
        return out

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(n,) False: a provider's model has no vocabulary of one language."""
        return np.zeros(len(texts), dtype=np.bool_)

    def _fetched(self, texts: list[str], stop: Stop) -> Matrix:
        """One call's vectors at unit length, of the width that all others had."""
        rows = np.asarray(self._embeds.embed(self._seat, texts, stop).vectors, dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        with self._lock:
            self._width = self._width or rows.shape[1]
        if rows.shape[1] != self._width or not np.isfinite(lengths).all() or not lengths.all():
            raise ModelError(
                f"Expected vectors of {self._width} finite numbers from {self._seat.model}, found "
                f"{rows.shape[1]} numbers, or some that are none. Is it an embedding model?"
            )
        return np.asarray(rows / lengths, dtype=np.float32)
