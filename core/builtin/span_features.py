"""What can be seen of each word of a response beside the evidence, as numbers, in any language.

`word_features` gives one row a word; the names of the columns are `FEATURES`, in their order. They
hold no word and no language, so that what was learnt in one language serves in another.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from core.builtin.span_context import response_columns, surrounding_columns
from core.builtin.span_evidence import Grounds, Numbers
from core.builtin.span_likeness import likeness_columns
from core.builtin.span_places import place_columns
from core.builtin.span_words import Word

Columns = Mapping[str, Numbers]
SHIFTS = (-3, -2, -1, 1, 2, 3)
HALF_WIDTHS = (2, 5, 10, 25)
SEEN_AROUND = ("held", "in_evidence", "in_question", "likeness", "lacking", "weight", "near",
               "in_run", "is_number", "is_capitalised")  # fmt: skip


def word_features(
    text: str, words: Sequence[Word], held: Grounds
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Names of the columns and (n, columns); `words` are those of the response `text`."""
    columns: dict[str, Numbers] = {}
    columns |= presence_columns(words, held)
    columns |= likeness_columns(words, held)
    columns |= place_columns(text, words, held)
    columns |= response_columns(words, held, columns)
    columns |= surrounding_columns(words, held, columns)
    columns |= _around(columns)
    names = list(columns)
    return names, np.stack([columns[name] for name in names], axis=1).astype(np.float32)


def presence_columns(words: Sequence[Word], held: Grounds) -> dict[str, Numbers]:
    """Does the word stand in the evidence or the question, in what order, and how common is it?"""
    terms = [word.term for word in words]
    in_evidence = _flags(term in held.counts for term in terms)
    in_question = _flags(term in held.question_terms for term in terms)
    forms = {word.folded for word in held.words}
    weight = np.array([held.common.weight(term) for term in terms])
    present = np.maximum(in_evidence, in_question)
    runs = held.sequence.runs(terms)
    pairs = list(itertools.pairwise(terms))
    follows = _flags(pair in held.pairs for pair in pairs)
    counts = np.array([float(held.counts.get(term, 0)) for term in terms])
    return {
        "in_evidence": in_evidence,
        "in_question": in_question,
        "held": present,
        "same_form": _flags(word.folded in forms for word in words),
        "count": np.log1p(counts),
        "share": counts / max(1, len(held.words)) * 100,
        "run": runs,
        "in_run": (runs >= 3).astype(float),
        "question_run": held.question_sequence.runs(terms),
        "after_left": np.concatenate([[0.0], follows])[: len(terms)],
        "before_right": np.concatenate([follows, [0.0]])[: len(terms)],
        "weight": weight,
        "commonness": np.log(np.array([held.common.share(term) for term in terms]) + 1e-6),
        "lacking": (1 - present) * weight,
    }


def _flags(values: Iterable[bool]) -> Numbers:
    return np.array([float(value) for value in values], dtype=np.float64)


def _around(columns: Columns) -> dict[str, Numbers]:
    """The neighbours' values, and means over the words around."""
    seen: dict[str, Numbers] = {}
    for name in SEEN_AROUND:
        values = columns[name]
        for shift in SHIFTS:
            seen[f"{name}{shift:+d}"] = shifted(values, shift)
        for half in HALF_WIDTHS:
            seen[f"{name}~{half}"] = mean_around(values, half)
    return seen


def shifted(values: Numbers, by: int) -> Numbers:
    """The value `by` words further on, -1 where there is no word."""
    out = np.full(len(values), -1.0)
    if abs(by) >= len(values):
        return out
    if by < 0:
        out[-by:] = values[:by]
    else:
        out[:-by] = values[by:]
    return out


def mean_around(values: Numbers, half: int) -> Numbers:
    """The mean over the word and `half` words on either side, fewer at the ends."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(n) - half, 0)
    last = np.minimum(np.arange(n) + half + 1, n)
    means: Numbers = (sums[last] - sums[first]) / (last - first)
    return means
