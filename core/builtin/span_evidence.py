"""The evidence and the question of one response, laid out for looking words up in them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import regex

from core.builtin.span_words import Commonness, Word, commonness, words_of

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
CITATION = regex.compile(r"\[\d{1,3}\]")
LATER_COSTS = 0.02  # of the question's weight, for each sentence further down
PLACES_KEPT = 30
LONGEST_RUN = 40  # so that a text of one word again and again takes no quadratic time


@dataclass(frozen=True)
class SequenceOfTerms:
    """Terms in their order, with the places of each."""

    terms: tuple[str, ...]
    places: Mapping[str, Places]

    def runs(self, other: Sequence[str]) -> Numbers:
        """(n,) for each term of `other` the longest run around it that also stands here."""
        longest = np.zeros(len(other))
        for i, term in enumerate(other):
            best = max((self._run(other, i, int(p)) for p in self.places.get(term, ())), default=0)
            longest[i : i + best] = np.maximum(longest[i : i + best], best)
        return longest

    def _run(self, other: Sequence[str], i: int, place: int) -> int:
        most = min(len(other) - i, len(self.terms) - place, LONGEST_RUN)
        length = 0
        while length < most and other[i + length] == self.terms[place + length]:
            length += 1
        return length


def sequence(words: Iterable[Word]) -> SequenceOfTerms:
    """The words' terms, each with its first few places."""
    terms = tuple(word.term for word in words)
    places: dict[str, list[int]] = {}
    for i, term in enumerate(terms):
        found = places.setdefault(term, [])
        if len(found) < PLACES_KEPT:
            found.append(i)
    return SequenceOfTerms(terms, {t: np.array(p, dtype=np.int64) for t, p in places.items()})


@dataclass(frozen=True)
class Grounds:
    """What a response is read against.

    `sentences` holds the terms of each sentence of the evidence, `answer` is the number of the one
    that speaks most of what the question asks, `topic` how much of the question it holds.
    """

    words: tuple[Word, ...]
    question: tuple[Word, ...]
    counts: Mapping[str, int]
    question_terms: frozenset[str]
    sequence: SequenceOfTerms
    question_sequence: SequenceOfTerms
    pairs: frozenset[tuple[str, str]]
    sentences: tuple[frozenset[str], ...]
    answer: int
    topic: float
    common: Commonness

    def weight_of(self, terms: Iterable[str]) -> float:
        """The weights of these terms together."""
        return sum(self.common.weight(term) for term in terms)


def grounds(
    question: str, texts: Sequence[str], language: str, common: Commonness | None = None
) -> Grounds:
    """The evidence texts in order, marks of citations left out, and the question.

    `common` is the language's list where another than the shipped one is to be used.
    """
    words: list[Word] = []
    for text in texts:
        after = words[-1].sentence + 1 if words else 0
        words += words_of(CITATION.sub("", text), language, after)
    counts = Counter(word.term for word in words)
    common = common or commonness(language, counts)
    asked = words_of(question, language)
    asked_terms = frozenset(word.term for word in asked)
    sentences = _by_sentence(words)
    answer, topic = _answer(sentences, asked_terms, common)
    in_order = sequence(words)
    return Grounds(
        words=tuple(words),
        question=asked,
        counts=counts,
        question_terms=asked_terms,
        sequence=in_order,
        question_sequence=sequence(asked),
        pairs=frozenset(itertools.pairwise(in_order.terms)),
        sentences=sentences,
        answer=answer,
        topic=topic,
        common=common,
    )


def _by_sentence(words: Sequence[Word]) -> tuple[frozenset[str], ...]:
    held: list[set[str]] = [set() for _ in range(words[-1].sentence + 1)] if words else []
    for word in words:
        held[word.sentence].add(word.term)
    return tuple(frozenset(terms) for terms in held)


def _answer(
    sentences: Sequence[frozenset[str]], asked: frozenset[str], common: Commonness
) -> tuple[int, float]:
    """The sentence closest to the question, an early one rather than a late one."""
    if not sentences:
        return 0, 0.0
    whole = sum(common.weight(term) for term in asked) or 1.0
    held = [sum(common.weight(term) for term in terms & asked) / whole for terms in sentences]
    scores = [share - LATER_COSTS * min(i, 20) for i, share in enumerate(held)]
    return int(np.argmax(scores)), max(held)
