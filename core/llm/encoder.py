"""Sentence embeddings: the exported encoder (MiniLM) by onnxruntime, or a provider's model.

MiniLM knows English: where a fifth of a text's tokens are unknown its embedding is `muted`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.llm.client import Embeddings, ModelClient
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal, choose_product_precision
from core.runtime.errors import ConfigError, ModelError
from core.schema.rosters import AgentConfig

Matrix = npt.NDArray[np.float32]

MAX_TOKENS = 256
TOKENS_PER_BATCH = 2048
MUTED_ABOVE = 0.2
UNKNOWN = "[UNK]"


class Embedder(Protocol):
    """Encodes whole texts as vectors, for retrieval (CEDA's agent A) and the classifier."""

    @property
    def id(self) -> str:
        """Changes whenever the same text could get another vector."""
        ...

    @property
    def width(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
        """(n, width) float32, rows of unit length; order as given."""
        ...

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(n,) True where too many tokens are unknown for the vector to mean anything."""
        ...


class OnnxEncoder:
    """An exported encoder; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model. Raises ConfigError: the folder is missing or incomplete."""
        import onnxruntime
        from tokenizers import Tokenizer

        try:
            card = json.loads((folder / "encoder.json").read_text())
            self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            # Else its threads spin for 30 ms after every text, as the first calls go out.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            precision = choose_product_precision()
            options.add_session_config_entry("session.x64quantprecision", precision)
            self._session: Any = onnxruntime.InferenceSession(
                str(folder / "encoder.onnx"), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the three loaders raise their own, undocumented kinds
            found = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise ConfigError(
                f"Expected the exported encoder in {folder}, found: {found}. "
                "Run `make setup` to make it."
            ) from error
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._unknown: int | None = self._tokenizer.token_to_id(UNKNOWN)
        self.id: str = card["id"]
        self.width: int = card["width"]

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
        """(n, width) float32, rows of unit length; mean of the token vectors, order as given."""
        out = np.zeros((len(texts), self.width), dtype=np.float32)
        encodings = self._tokenizer.encode_batch(list(texts))
        for batch in _batches([len(item.ids) for item in encodings]):
            if stop is not None:
                stop.check()
            ids = [encodings[i].ids for i in batch]
            tokens = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
            mask = np.zeros_like(tokens)
            for number, row in enumerate(ids):
                tokens[number, : len(row)] = row
                mask[number, : len(row)] = 1
            (hidden,) = self._session.run(None, {"input_ids": tokens, "attention_mask": mask})
            out[batch] = (hidden * mask.astype(np.float32)[..., None]).sum(axis=1)
        return _unit(out)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(n,) True where more than a fifth of the tokens are unknown."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        shares = [
            item.ids.count(self._unknown) / max(1, len(item.ids))
            if self._unknown is not None
            else 0
            for item in encodings
        ]
        return np.array(shares, dtype=float) > MUTED_ABOVE


def _batches(lengths: Sequence[int]) -> Iterable[list[int]]:
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[number] > TOKENS_PER_BATCH:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _unit(rows: Matrix) -> Matrix:
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)


_LOADING = threading.Lock()


@lru_cache(maxsize=4)
def _loaded(folder: Path) -> OnnxEncoder:
    return OnnxEncoder(folder)


def load_encoder(folder: Path) -> OnnxEncoder:
    """Load the encoder in that folder, once per process.

    Raises ConfigError: it is missing or incomplete.
    """
    with _LOADING:
        return _loaded(folder)


TEXTS_PER_CALL = 96  # the least that a provider takes at once
LONGEST_TEXT = 6000  # characters: below every provider's limit in any script


class EmbeddingClient(Protocol):
    """Anything that embeds by a provider: `ModelClient`, or the metered client around it."""

    def embed(self, agent: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
        """Return a vector for each text, in order."""
        ...


class LlmEmbedder:
    """An `Embedder` on the agent's model; safe to use from several threads.

    Vectors of tokens cannot be had from a provider: the built-in agents keep their own encoder.
    """

    def __init__(
        self, agent: AgentConfig, keys: Keys, embeds: EmbeddingClient | None = None
    ) -> None:
        self._agent = agent
        self._embeds = embeds or ModelClient(keys)
        self._width = 0
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """The model and its address: another server's model of that name may be another."""
        return f"{self._agent.model}@{self._agent.api_base}"

    @property
    def width(self) -> int:
        """Length of a vector; asked for with one tiny call when none was seen yet.

        Raises ReviewError: that call failed.
        """
        if not self._width:
            self._fetched(["width"], StopSignal())
        return self._width

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
        """(n, width) float32, rows of unit length; order as given, zero for a blank text.

        What is longer than any provider takes is embedded by its beginning.

        Raises:
            ReviewError: a call failed.
            Stopped: `stop` was set.
        """
        stop = stop or StopSignal()
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

    def _fetched(self, texts: list[str], stop: StopSignal) -> Matrix:
        rows = np.asarray(self._embeds.embed(self._agent, texts, stop).vectors, dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        with self._lock:
            self._width = self._width or rows.shape[1]
        if rows.shape[1] != self._width or not np.isfinite(lengths).all() or not lengths.all():
            raise ModelError(
                f"Expected vectors of {self._width} finite numbers from {self._agent.model}, found "
                f"{rows.shape[1]} numbers, or some that are none. Is it an embedding model?"
            )
        return np.asarray(rows / lengths, dtype=np.float32)
