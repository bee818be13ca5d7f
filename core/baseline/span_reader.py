"""The span reader: for every word of a response, how likely is it that people would mark it wrong?

Boosted trees over `span_features`, the multilingual reader's doubts among them, trained on words
that annotators marked in fourteen languages (`training.train_span_reader`).
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

from core.baseline.audit_agents import places
from core.baseline.entailment import Reader, WordDoubt, load_multilingual_reader
from core.baseline.evidence import nearest_texts
from core.baseline.evidence_model import Trees, load_trees
from core.baseline.span_features import (
    FOLDER,
    TERMS,
    SentenceReading,
    grounds,
    word_features,
    words_of,
)
from core.runtime.errors import ConfigError
from core.schema.records import WordScore

LEAST, MOST = 0.005, 0.995
RESPONSES_KEPT = 64
# Longer responses are read part by part: time grows with the words, not with their square.
WORDS_AT_ONCE = 1200


@dataclass(frozen=True)
class ScoredStretch:
    """Words in a row of at least the threshold: `[start, end)` in the response, and their mean."""

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
        """A score for each word of the response, in order; none where there is no evidence."""
        ...


class SpanReader:
    """Deterministic; safe to use from several threads."""

    def __init__(self, trees: Trees, card: Mapping[str, Any]) -> None:
        self._trees = trees
        self._reader: Reader = load_multilingual_reader()
        self.card = card
        self.id: str = card["id"]
        self.threshold: float = card["threshold"]
        self._columns: tuple[str, ...] = tuple(card["features"])
        self._kept = lru_cache(RESPONSES_KEPT)(self._read)

    def read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        """A score for each word of the response, in order; none where there is no evidence."""
        return self._kept(response, question, texts, language)

    def _read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        held = grounds(question, texts, language)
        if not held.words:
            return ()
        scores: list[WordScore] = []
        read = read_sentences(response, question, texts, language, self._reader)
        words = words_of(response, language)
        for first in range(0, len(words), WORDS_AT_ONCE):
            part = words[first : first + WORDS_AT_ONCE]
            names, columns = word_features(response, part, held, read)
            places = {name: i for i, name in enumerate(names)}
            rows = columns[:, [places[name] for name in self._columns]]
            p = np.clip(self._trees.predict(rows), LEAST, MOST)
            scores += [
                WordScore(word.start, word.end, round(float(share), 3))
                for word, share in zip(part, p, strict=True)
            ]
        return tuple(scores)


class DoubtScorer:
    """Scores words by the doubts of an imported reader that was made to mark words."""

    threshold = 0.5

    def __init__(self, reader: Reader) -> None:
        self.id = reader.id
        self._reader = reader

    def read(
        self, response: str, question: str, texts: tuple[str, ...], language: str
    ) -> tuple[WordScore, ...]:
        """The greatest doubt of each word's pieces; none where there is no evidence."""
        if not any(text.strip() for text in texts):
            return ()
        read = read_sentences(response, question, texts, language, self._reader)
        doubts = [doubt for sentence in read for doubt in sentence.doubts]
        scores = []
        for word in words_of(response, language):
            met = [d.p for d in doubts if d.start < word.end and word.start < d.end]
            scores.append(WordScore(word.start, word.end, round(max(met, default=LEAST), 3)))
        return tuple(scores)


def word_scorer(reader: Reader) -> ReaderWordScorer:
    """What scores words beside that reader: the span reader that ships, unless it marks itself."""
    return DoubtScorer(reader) if reader.marks_words else load_span_reader()


def read_sentences(
    response: str, question: str, texts: Sequence[str], language: str, reader: Reader
) -> tuple[SentenceReading, ...]:
    """The reader's view of each sentence of a response, behind the question."""
    opening = f"{' '.join(question.split())} " if question.strip() else ""
    found = []
    for start, end in places(response, language):
        claim = opening + response[start:end]
        windows = nearest_texts(claim, texts, language)
        readings = reader.read([(window, claim) for window in windows])
        rows = [reading.words for reading in readings if reading.words]
        doubts = []
        for column in zip(*rows, strict=False):
            least = min(column, key=lambda doubt: doubt.p)
            low, high = least.start - len(opening), least.end - len(opening)
            if high > 0:
                doubts.append(WordDoubt(start + max(0, low), start + high, least.p))
        supported = max((r.supported for r in readings), default=0.0)
        contradicted = max((r.contradicted for r in readings), default=0.0)
        found.append(SentenceReading(start, end, supported, contradicted, tuple(doubts)))
    return tuple(found)


def stretches(
    scores: Sequence[WordScore], response: str, threshold: float
) -> tuple[ScoredStretch, ...]:
    """Neighbouring words from the threshold on as one, unless a line ends between them."""
    found: list[list[WordScore]] = []
    last_end = -1
    for score in scores:
        if score.p < threshold:
            last_end = -1
        elif last_end >= 0 and "\n" not in response[last_end : score.start]:
            found[-1].append(score)
            last_end = score.end
        else:
            found.append([score])
            last_end = score.end
    return tuple(
        ScoredStretch(run[0].start, run[-1].end, round(math.fsum(s.p for s in run) / len(run), 3))
        for run in found
    )


def between(scores: Sequence[WordScore]) -> tuple[WordScore, ...]:
    """The scores, and for what stands between two words the lower of theirs.

    This is how characters are scored: a blank is as wrong as the less wrong of its neighbours.
    """
    whole: list[WordScore] = []
    for score in scores:
        if whole and whole[-1].end < score.start:
            last = whole[-1]
            whole.append(WordScore(last.end, score.start, min(last.p, score.p)))
        whole.append(score)
    return tuple(whole)


@lru_cache(maxsize=2)
def load_span_reader(folder: Path = FOLDER) -> SpanReader:
    """The reader of that folder, once per process.

    Raises ConfigError if card or weights are missing, or do not belong together.
    """
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        trees, terms = str(card["sha256"]), str(card["common_terms_sha256"])
        found = hashlib.sha256((folder / TERMS).read_bytes()).hexdigest()
        if found != terms:
            raise ValueError(f"{TERMS} with sha256 {found[:12]}… instead of {terms[:12]}…")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the span reader's card and word lists in {folder.name}, found: {error!r}. "
            "Restore the files, or train again: python -m training.train_span_reader."
        ) from error
    return SpanReader(load_trees(folder / "trees.npz", trees), card)
