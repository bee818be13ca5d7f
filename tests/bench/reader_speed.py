"""Pairs a second that the shipped readers read, on one thread and on several.

Every round reads pairs that it has not seen: the reader keeps what it has read.
"""

from __future__ import annotations

import random
import time

from core.baseline.entailment import (
    ENGLISH_DIR,
    MAX_READER_THREADS,
    BaseReader,
    EvidenceClaimPair,
    MultilingualReader,
    OnnxReader,
)

LENGTH = 128
MARKS = 3
STATEMENT = 20
PAIRS = 64
WORDS = "the house of that town was opened by its men in may and closed again after some years"


def pairs_a_second(rounds: int) -> dict[str, list[float]]:
    """Name to pairs a second, one figure a round."""
    several = f"up to {MAX_READER_THREADS} threads"
    readers: dict[str, BaseReader] = {
        "English, one thread": OnnxReader(ENGLISH_DIR),
        f"English, {several}": OnnxReader(ENGLISH_DIR),
        "multilingual, one thread": MultilingualReader(),
        f"multilingual, {several}": MultilingualReader(),
    }
    found: dict[str, list[float]] = {name: [] for name in readers}
    chance = random.Random(0)
    for number in range(rounds + 1):
        for name, reader in readers.items():
            pairs = _pairs(chance)
            began = time.perf_counter()
            if name.endswith("one thread"):
                for pair in pairs:
                    reader.read([pair])
            else:
                reader.read(pairs)
            if number:  # the first round warms up
                found[name].append(PAIRS / (time.perf_counter() - began))
    return found


def _pairs(chance: random.Random) -> list[EvidenceClaimPair]:
    """Pairs of LENGTH tokens, marks counted; every word is one token of the reader's."""

    def text(length: int) -> str:
        return " ".join(chance.choices(WORDS.split(), k=length))

    return [(text(LENGTH - MARKS - STATEMENT), text(STATEMENT)) for _ in range(PAIRS)]
