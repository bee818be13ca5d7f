"""Cuts a text into the words that the span reader scores, in any script.

Where words are not parted by blanks (Chinese, Thai, …) every character counts as a word. Offsets
are half-open and count code points of the text as it was given, also in texts that run from right
to left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import regex

from core.evidence.terms import IS_UNSPACED, WORD, fold, number_term, stem

FOLDER = Path(__file__).parent / "span_weights"
TERMS = "common_terms.json"
SENTENCE_END = regex.compile(r"[.!?。！？।؟\n]+(?=\s|$|[^\d])")
# A word as common as one in 400 weighs half of one that is hardly ever met.
COMMON = 400.0
SEEN_OFTEN = 3


@dataclass(frozen=True, slots=True)
class Word:
    """`[start, end)` in its text; `term` is what is compared, `sentence` counts from 0."""

    start: int
    end: int
    text: str
    folded: str
    term: str
    is_number: bool
    is_unspaced: bool
    sentence: int

    @property
    def is_capitalised(self) -> bool:
        """True for a word that begins with a capital letter."""
        return self.text[:1].isupper()


def words_of(text: str, language: str, sentence: int = 0) -> tuple[Word, ...]:
    """The words in order; sentences are counted from `sentence` on."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    words: list[Word] = []
    passed = 0
    for start, end, is_unspaced in _places(text):
        while passed < len(ends) and ends[passed] <= start:
            passed += 1
        words.append(_word(text[start:end], start, language, is_unspaced, sentence + passed))
    return tuple(words)


def _places(text: str) -> list[tuple[int, int, bool]]:
    places: list[tuple[int, int, bool]] = []
    for match in WORD.finditer(text):
        start, end = match.span()
        if IS_UNSPACED.search(match.group()):
            places += [(i, i + 1, True) for i in range(start, end) if not text[i].isspace()]
        else:
            places.append((start, end, False))
    return places


def _word(raw: str, start: int, language: str, is_unspaced: bool, sentence: int) -> Word:
    folded = fold(raw)
    is_number = raw[0].isnumeric() and not is_unspaced
    spelt = folded if is_unspaced else stem(folded, language)
    term = number_term(raw) if is_number else spelt
    return Word(start, start + len(raw), raw, folded, term, is_number, is_unspaced, sentence)


@dataclass(frozen=True)
class Commonness:
    """How often each term is met in a language: a share of all its words."""

    shares: Mapping[str, float]

    def share(self, term: str) -> float:
        """0 for a term that is not among the common ones."""
        return self.shares.get(term, 0.0)

    def weight(self, term: str) -> float:
        """Near 1 for rare terms, near 0 for the commonest function words."""
        return 1.0 / (1.0 + COMMON * self.share(term))


def commonness(language: str, evidence: Mapping[str, int]) -> Commonness:
    """The list of that language; without one, what the evidence itself repeats is common."""
    known = _lists().get(language)
    return Commonness(known) if known else repeated(evidence)


def repeated(evidence: Mapping[str, int]) -> Commonness:
    """Terms that the evidence has three times or more, with their shares of it."""
    total = max(1, sum(evidence.values()))
    return Commonness({t: n / total for t, n in evidence.items() if n >= SEEN_OFTEN})


@lru_cache(maxsize=1)
def _lists() -> Mapping[str, Mapping[str, float]]:
    path = FOLDER / TERMS
    lists: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return lists
