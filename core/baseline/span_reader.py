"""The span reader: the probability, for each word of a response, that people would mark it wrong.

It uses boosted trees over `span_features`, which include the multilingual reader's doubts, trained
on words that annotators marked in fourteen languages (`training.train_span_reader`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.baseline.entailment import EntailmentReader, TokenDoubt, load_multilingual_reader
from core.baseline.evidence_model import BoostedTrees, load_trees
from core.baseline.evidence_windows import find_nearest_windows
from core.baseline.segmenter import split_outside_code
from core.baseline.span_features import (
    COMMON_TERMS_FILE,
    SPAN_READER_DIR,
    SentenceReading,
    compute_word_features,
    index_evidence,
    split_words,
)
from core.runtime.errors import ConfigError
from core.schema.records import WordScore

MIN_SCORE, MAX_SCORE = 0.005, 0.995
RESPONSE_CACHE_SIZE = 64
# Longer responses are read in parts, so that time grows linearly with the words.
MAX_WORDS_PER_BATCH = 1200


@dataclass(frozen=True)
class ScoredRun:
    """A run of words at or above the threshold: `[start, end)` in the response, and their mean."""

    start: int
    end: int
    p: float


class ReaderWordScorer(Protocol):
    """Scores every word of a response."""

    id: str
    threshold: float
    """The score from which words are marked."""

    def read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        """Return a score for each word of the response, in order; empty without evidence."""
        ...


class SpanReader:
    """The trained span reader; deterministic and safe to use from several threads."""

    def __init__(self, trees: BoostedTrees, card: Mapping[str, Any]) -> None:
        self._trees = trees
        self._reader: EntailmentReader = load_multilingual_reader()
        self.card = card
        self.id: str = card["id"]
        self.threshold: float = card["threshold"]
        self._columns: tuple[str, ...] = tuple(card["features"])
        self._cached_read = lru_cache(RESPONSE_CACHE_SIZE)(self._read)

    def read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        """Return a score for each word of the response, in order; empty without evidence."""
        return self._cached_read(response, question, texts, language)

    def _read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        held = index_evidence(question, texts, language)
        if not held.words:
            return ()
        scores: list[WordScore] = []
        readings = read_sentences(response, question, texts, language, self._reader)
        words = split_words(response, language)
        for first in range(0, len(words), MAX_WORDS_PER_BATCH):
            part = words[first : first + MAX_WORDS_PER_BATCH]
            names, columns = compute_word_features(response, part, held, readings)
            column_of = {name: i for i, name in enumerate(names)}
            rows = columns[:, [column_of[name] for name in self._columns]]
            p = np.clip(self._trees.predict(rows), MIN_SCORE, MAX_SCORE)
            scores += [
                WordScore(word.start, word.end, round(float(share), 3))
                for word, share in zip(part, p, strict=True)
            ]
        return tuple(scores)


class DoubtScorer:
    """Scores words by the doubts of an imported reader that was trained to mark words."""

    threshold = 0.5

    def __init__(self, reader: EntailmentReader) -> None:
        self.id = reader.id
        self._reader = reader

    def read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        """Return the greatest doubt of each word's tokens; empty without evidence."""
        if not any(text.strip() for text in texts):
            return ()
        read = read_sentences(response, question, texts, language, self._reader)
        doubts = [doubt for sentence in read for doubt in sentence.doubts]
        scores = []
        for word in split_words(response, language):
            pieces = [d.p for d in doubts if d.start < word.end and word.start < d.end]
            scores.append(WordScore(word.start, word.end, round(max(pieces, default=MIN_SCORE), 3)))
        return tuple(scores)


def choose_word_scorer(reader: EntailmentReader) -> ReaderWordScorer:
    """Return the word scorer for that reader: itself if it marks words, or the shipped one."""
    return DoubtScorer(reader) if reader.marks_words else load_span_reader()


def read_sentences(
    response: str, question: str, texts: Sequence[str], language: str, reader: EntailmentReader
) -> tuple[SentenceReading, ...]:
    """Read each sentence of a response, after the question, against its nearest windows."""
    opening = f"{' '.join(question.split())} " if question.strip() else ""
    results = []
    for start, end in split_outside_code(response, language):
        claim = opening + response[start:end]
        windows = find_nearest_windows(claim, texts, language)
        readings = reader.read([(window, claim) for window in windows])
        rows = [reading.words for reading in readings if reading.words]
        doubts = []
        for column in zip(*rows, strict=False):
            least = min(column, key=lambda doubt: doubt.p)
            low, high = least.start - len(opening), least.end - len(opening)
            if high > 0:
                doubts.append(TokenDoubt(start + max(0, low), start + high, least.p))
        supported = max((r.supported for r in readings), default=0.0)
        contradicted = max((r.contradicted for r in readings), default=0.0)
        results.append(SentenceReading(start, end, supported, contradicted, tuple(doubts)))
    return tuple(results)


def merge_scored_words(
    scores: Sequence[WordScore], response: str, threshold: float
) -> tuple[ScoredRun, ...]:
    """Merge neighbouring words at or above the threshold, unless a line ends between them."""
    runs: list[list[WordScore]] = []
    last_end = -1
    for score in scores:
        if score.p < threshold:
            last_end = -1
        elif last_end >= 0 and "\n" not in response[last_end : score.start]:
            runs[-1].append(score)
            last_end = score.end
        else:
            runs.append([score])
            last_end = score.end
    return tuple(
        ScoredRun(run[0].start, run[-1].end, round(math.fsum(s.p for s in run) / len(run), 3))
        for run in runs
    )


def fill_gaps(scores: Sequence[WordScore]) -> tuple[WordScore, ...]:
    """Return the scores, and between two words the lower of theirs.

    Characters are scored this way: a blank is as wrong as the less wrong of its neighbours.
    """
    filled: list[WordScore] = []
    for score in scores:
        if filled and filled[-1].end < score.start:
            last = filled[-1]
            filled.append(WordScore(last.end, score.start, min(last.p, score.p)))
        filled.append(score)
    return tuple(filled)


@lru_cache(maxsize=2)
def load_span_reader(folder: Path = SPAN_READER_DIR) -> SpanReader:
    """Load the span reader of that folder, once per process.

    Raises ConfigError if card or weights are missing, or do not belong together.
    """
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        trees_sha256, terms_sha256 = str(card["sha256"]), str(card["common_terms_sha256"])
        digest = hashlib.sha256((folder / COMMON_TERMS_FILE).read_bytes()).hexdigest()
        if digest != terms_sha256:
            raise ValueError(
                f"{COMMON_TERMS_FILE} with sha256 {digest[:12]}… instead of {terms_sha256[:12]}…"
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the span reader's card and word lists in {folder.name}, found: {error!r}. "
            "Restore the files, or train again: python -m training.train_span_reader."
        ) from error
    return SpanReader(load_trees(folder / "trees.npz", trees_sha256), card)
