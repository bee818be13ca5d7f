"""Rows whose words people marked, as the span reader learns from them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.baseline.entailment import load_multilingual_reader
from core.baseline.span_features import (
    CITATION,
    Commonness,
    grounds,
    repeated,
    word_features,
    words_of,
)
from core.baseline.span_reader import read_sentences
from core.evaluation.gold import GoldRow, normalised

Numbers = npt.NDArray[np.float64]
Features = npt.NDArray[np.float32]
Lists = Mapping[str, Mapping[str, float]]
FOLDS = 5
LEAST_ROWS = 6  # in which a term must stand to count as common in its language
LEAST_SHARE = 0.0004
LONGEST_TERM = 20
MOST_WORDS = 70  # of one response; a sample stands for a longer one


@dataclass(frozen=True)
class MarkedRow:
    """A row's words as `[start, end)`, their features (n, f) and the share of people who marked.

    `unlisted` are the features in a language without a list of common terms; `is_chosen_on` is True
    for rows that features and threshold are chosen and reported on.
    """

    row: GoldRow
    places: tuple[tuple[int, int], ...]
    features: Features
    unlisted: Features
    shares: Numbers
    names: tuple[str, ...]
    is_chosen_on: bool = True

    @property
    def fold(self) -> int:
        """Related rows lie in one fold."""
        digest = hashlib.sha256(normalised(self.row.group).encode("utf-8", "surrogatepass"))
        return int.from_bytes(digest.digest(), "big") // 100 % FOLDS


def common_terms(rows: Sequence[GoldRow]) -> dict[str, dict[str, float]]:
    """Each language's common terms with their shares of all words, from the evidence alone."""
    lists: dict[str, dict[str, float]] = {}
    for language in sorted({row.language for row in rows}):
        counts: Counter[str] = Counter()
        in_rows: Counter[str] = Counter()
        for row in rows:
            if row.language == language:
                terms = _terms(row)
                counts.update(terms)
                in_rows.update(set(terms))
        total = max(1, sum(counts.values()))
        lists[language] = {
            term: float(f"{count / total:.3g}")
            for term, count in counts.most_common()
            if in_rows[term] >= LEAST_ROWS
            and count / total >= LEAST_SHARE
            and len(term) <= LONGEST_TERM
        }
    return lists


def write_common_terms(lists: Lists, path: Path) -> str:
    """Write the lists; the file's sha256."""
    text = json.dumps(lists, ensure_ascii=False, indent=0, sort_keys=False)
    path.write_text(text + "\n", encoding="utf-8")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def marked_rows(
    rows: Iterable[GoldRow], lists: Lists, progress: Callable[[int], None]
) -> list[MarkedRow]:
    """Every row with words and evidence, seen with the lists given and without any."""
    found = []
    for number, row in enumerate(rows):
        if row.documents and row.spans is not None and words_of(row.response, row.language):
            found.append(_marked(row, lists))
        progress(number)
    return found


def _marked(row: GoldRow, lists: Lists) -> MarkedRow:
    words = words_of(row.response, row.language)
    listed = Commonness(lists[row.language])
    unlisted = repeated(Counter(_terms(row)))
    reader = load_multilingual_reader()
    read = read_sentences(row.response, row.question, row.documents, row.language, reader)
    seen = []
    for common in (listed, unlisted):
        held = grounds(row.question, row.documents, row.language, common)
        names, columns = word_features(row.response, words, held, read)
        seen.append(columns)
    shares = _shares(row)
    return MarkedRow(
        row,
        tuple((word.start, word.end) for word in words),
        seen[0],
        seen[1],
        np.array([shares[word.start : word.end].mean() for word in words]),
        tuple(names),
    )


def _shares(row: GoldRow) -> Numbers:
    """(characters,) the share of people who marked each; where no shares are told, the marks."""
    shares = np.zeros(len(row.response))
    for span in row.soft or row.spans or ():
        inside = slice(span.start, span.end)
        shares[inside] = np.maximum(shares[inside], span.p)
    return shares


def _terms(row: GoldRow) -> list[str]:
    return [
        word.term
        for text in row.documents
        for word in words_of(CITATION.sub("", text), row.language)
    ]


def sampled(rows: Sequence[MarkedRow], seed: int) -> tuple[Features, Numbers, Numbers]:
    """Features, shares and weights of at most `MOST_WORDS` words of each row.

    Every language weighs the same, within it every row, within that every character; English counts
    the rows of both sets.
    """
    rng = np.random.default_rng(seed)
    sizes = Counter(row.row.language for row in rows)
    features, shares, weights = [], [], []
    for row in rows:
        n = len(row.places)
        chosen = np.sort(rng.permutation(n)[:MOST_WORDS])
        lengths = np.array([end - start for start, end in row.places], dtype=np.float64)[chosen]
        features.append(row.features[chosen])
        shares.append(row.shares[chosen])
        weights.append(lengths / lengths.sum() / sizes[row.row.language])
    return np.concatenate(features), np.concatenate(shares), np.concatenate(weights)
