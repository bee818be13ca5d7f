"""The reader: does the evidence support a claim, contradict it, or not decide it?

What a reader is, whichever model reads: the one that ships, and those that people bring, are run by
`onnx_reader`. Pairs are read one by one: int8 activations are scaled over all that is read
together, so in company a pair would be read otherwise than alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from core.concurrency import Stop

PAIRS_KEPT = 8192
MOST_WORKERS = 4
Pair = tuple[str, str]
"""Evidence and claim."""


@dataclass(frozen=True)
class WordDoubt:
    """How likely a piece of the claim is wrong: `[start, end)` in the claim, code points."""

    start: int
    end: int
    p: float


@dataclass(frozen=True)
class PairReading:
    """What one pair was read as; the three sum to 1."""

    supported: float
    contradicted: float
    neutral: float
    words: tuple[WordDoubt, ...] = ()
    """One for each token of the claim; none from a reader that does not judge words."""


class Reader(Protocol):
    """Anything that reads a claim against evidence."""

    @property
    def id(self) -> str:
        """Changes whenever the same pair could be read otherwise."""
        ...

    def read(self, pairs: Sequence[Pair], stop: Stop | None = None) -> list[PairReading]:
        """A reading of each (evidence, claim), in order, whatever the other pairs are."""
        ...

    @property
    def marks_words(self) -> bool:
        """True of a reader that was made to mark words and nothing else."""
        ...

    def knows(self, text: str) -> bool:
        """False where too many of the text's tokens are unknown for a reading to mean anything."""
        ...


class PairwiseReader:
    """Reads pairs one by one on a few threads and keeps what it has read.

    Subclasses read one pair; sessions of onnxruntime may be shared between threads.
    """

    id: str
    marks_words = False

    def __init__(self) -> None:
        self._workers = min(MOST_WORKERS, os.cpu_count() or 1)
        self._kept = lru_cache(PAIRS_KEPT)(self.read_one)  # all agents ask for the same pairs

    def read_one(self, pair: Pair) -> PairReading:
        """The reading of one pair."""
        raise TypeError("a reader must read pairs")

    def knows(self, text: str) -> bool:
        """False where too many of the text's tokens are unknown for a reading to mean anything."""
        raise TypeError("a reader must say what it knows")

    def read(self, pairs: Sequence[Pair], stop: Stop | None = None) -> list[PairReading]:
        """A reading of each (evidence, claim), in order."""
        halt = stop or Stop()

        def reading(pair: Pair) -> PairReading:
            halt.check()
            return self._kept(pair)

        distinct = list(dict.fromkeys(pairs))
        if len(distinct) < 2 or self._workers < 2:
            found = [reading(pair) for pair in distinct]
        else:
            with ThreadPoolExecutor(min(self._workers, len(distinct))) as pool:
                found = list(pool.map(reading, distinct))
        known = dict(zip(distinct, found, strict=True))
        return [known[pair] for pair in pairs]
