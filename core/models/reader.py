"""The entailment reader: does the evidence carry a statement, contradict it, or not decide it?

MiniLM as a cross-encoder, run by onnxruntime: no torch at check time. Its folder holds
`reader.onnx` (inputs input_ids, attention_mask, token_type_ids; output logits, columns supported,
contradicted, not enough), `tokenizer.json` and `card.json`. Pairs are read one by one: int8
activations are scaled over a whole batch, so in company a pair would be read otherwise than alone.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.concurrency import Stop
from core.config import READER_DIR
from core.errors import ConfigError
from core.models.encoder import MUTED_ABOVE, UNKNOWN, Matrix
from core.models.export import sha256_of

WEIGHTS = "reader.onnx"
TOKENIZER = "tokenizer.json"
CARD = "card.json"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
CLASSES = 3
MAX_TOKENS = 256
LONGEST = 512  # what MiniLM has places for
MARKS = 3  # [CLS] evidence [SEP] statement [SEP]
LEAST_EVIDENCE = 64
PAIRS_KEPT = 8192
MOST_WORKERS = 4

Pair = tuple[str, str]
Odds = tuple[float, float, float]


class EntailmentReader(Protocol):
    """Anything that reads a statement against evidence."""

    @property
    def id(self) -> str:
        """Changes whenever the same pair could be read otherwise."""
        ...

    def read(self, pairs: Sequence[Pair], stop: Stop | None = None) -> Matrix:
        """(n, 3) float32 probabilities: supported, contradicted, not enough; rows sum to 1.

        A pair is (evidence, statement). What it gets does not depend on the other pairs.
        """
        ...

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(n,) True where too many tokens are unknown for the reading to mean anything."""
        ...


class OnnxReader:
    """An exported reader; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises:
            ConfigError: the folder is missing, incomplete, or not what its card says.
        """
        card = _checked_card(folder)
        self._session, self._tokenizer = _loaded_parts(folder)
        self._first, self._between = (self._tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]"))
        self._unknown: int | None = self._tokenizer.token_to_id(UNKNOWN)
        self._temperature: float = card["temperature"]
        self.id: str = card["id"]
        self._workers = min(MOST_WORKERS, os.cpu_count() or 1)
        # debaters, judge and span reader ask for the same pairs
        self._odds = lru_cache(PAIRS_KEPT)(self._read_one)

    def read(self, pairs: Sequence[Pair], stop: Stop | None = None) -> Matrix:
        """(n, 3) float32 probabilities: supported, contradicted, not enough; rows sum to 1."""
        halt = stop or Stop()

        def odds_of(pair: Pair) -> Odds:
            halt.check()
            return self._odds(pair)

        distinct = list(dict.fromkeys(pairs))
        if len(distinct) < 2 or self._workers < 2:
            found = [odds_of(pair) for pair in distinct]
        else:
            with ThreadPoolExecutor(min(self._workers, len(distinct))) as pool:
                found = list(pool.map(odds_of, distinct))
        known = dict(zip(distinct, found, strict=True))
        rows = [known[pair] for pair in pairs]
        return np.array(rows, dtype=np.float32).reshape(len(rows), CLASSES)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """(n,) True where more than a fifth of the tokens are unknown."""
        found = [self._ids(text) for text in texts]
        unknown = [sum(token == self._unknown for token in ids) for ids in found]
        return np.array(
            [u > MUTED_ABOVE * max(1, len(ids)) for u, ids in zip(unknown, found, strict=True)],
            dtype=bool,
        )

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _read_one(self, pair: Pair) -> Odds:
        evidence, statement = cut_to_fit(*(self._ids(text) for text in pair))
        first = [self._first, *evidence, self._between]
        second = [*statement, self._between]
        tokens = np.array([first + second], dtype=np.int64)
        types = np.array([[0] * len(first) + [1] * len(second)], dtype=np.int64)
        given = dict(zip(INPUTS, (tokens, np.ones_like(tokens), types), strict=True))
        (logits,) = self._session.run(None, given)
        scaled = logits[0].astype(np.float64) / self._temperature
        odds = np.exp(scaled - scaled.max())
        supported, contradicted, not_enough = (odds / odds.sum()).tolist()
        return supported, contradicted, not_enough


def cut_to_fit(evidence: list[int], statement: list[int]) -> tuple[list[int], list[int]]:
    """The tokens of a pair as they are read: the evidence is cut, so that the statement is whole.

    A statement is cut only where the model would have no places left for some evidence.
    """
    statement = statement[: LONGEST - MARKS - LEAST_EVIDENCE]
    room = max(LEAST_EVIDENCE, MAX_TOKENS - MARKS - len(statement))
    return evidence[:room], statement


def _checked_card(folder: Path) -> dict[str, Any]:
    """The card of a folder whose weights are those that it names."""
    card = _card_in(folder)
    for name, key in ((WEIGHTS, "sha256"), (TOKENIZER, "tokenizer_sha256")):
        expected = card.get(key)
        found = sha256_of(folder / name) if (folder / name).is_file() else "no file"
        if found != expected and (expected is not None or name == WEIGHTS or found == "no file"):
            raise ConfigError(
                f"Expected the entailment reader's {name} in {folder} with sha256 {expected}, "
                f"found {found}; restore the folder from the repository."
            )
    return card


def _card_in(folder: Path) -> dict[str, Any]:
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        temperature = float(card["temperature"])
        if not (math.isfinite(temperature) and temperature > 0 and isinstance(card["id"], str)):
            raise ValueError("its temperature or id is none")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the entailment reader's {CARD} with id, sha256 and temperature in {folder}, "
            f"found: {_first_line(error)}; restore the folder from the repository."
        ) from error
    return {**card, "temperature": temperature}


def _loaded_parts(folder: Path) -> tuple[Any, Any]:
    """Session and tokenizer; the session computes in the calling thread alone."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    try:
        tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
        session: Any = onnxruntime.InferenceSession(
            str(folder / WEIGHTS), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the two loaders raise their own, undocumented kinds
        raise ConfigError(
            f"Expected the entailment reader in {folder}, found: {_first_line(error)}; "
            "restore the folder from the repository."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return session, tokenizer


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


_LOADING = threading.Lock()


@lru_cache(maxsize=4)
def _loaded(folder: Path) -> OnnxReader:
    return OnnxReader(folder)


def load_reader(folder: Path = READER_DIR) -> OnnxReader:
    """The reader in that folder, loaded once per process.

    Raises:
        ConfigError: it is missing, incomplete, or not what its card says.
    """
    with _LOADING:
        return _loaded(folder)
