"""How like a word's spelling, or a number's value, is to what the evidence has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from core.builtin.span_evidence import Grounds, Numbers
from core.builtin.span_words import Word


def likeness_columns(words: Sequence[Word], held: Grounds) -> dict[str, Numbers]:
    """Nearest spelling, common beginning, shared parts of words, nearest number."""
    theirs = sorted({word.folded for word in held.words if not word.is_number})
    asked = sorted({word.folded for word in held.question if not word.is_number})
    spelt = [word.folded for word in words if not word.is_number and not word.is_unspaced]
    nearest, asked_nearest = _nearest(spelt, theirs), _nearest(spelt, asked)
    begun = _begun(spelt, theirs)
    threes = {gram for form in theirs for gram in _grams(form, 3)}
    fours = {gram for form in theirs for gram in _grams(form, 4)}
    in_evidence = np.array([float(word.term in held.counts) for word in words])
    in_question = np.array([float(word.term in held.question_terms) for word in words])
    of_word = [nearest.get(word.folded, 0.0) for word in words]
    asked_of_word = [asked_nearest.get(word.folded, 0.0) for word in words]
    return {
        "likeness": np.maximum(in_evidence, of_word),
        "question_likeness": np.maximum(in_question, asked_of_word),
        "begins_alike": np.maximum(in_evidence, [begun.get(word.folded, 0.0) for word in words]),
        "threes": np.array([_share(word.folded, 3, threes) for word in words]),
        "fours": np.array([_share(word.folded, 4, fours) for word in words]),
        "off_by": np.array(_off_by(words, held)),
        "digits": np.array([float(len(w.term)) if w.is_number else 0.0 for w in words]),
    }


def _nearest(forms: Sequence[str], others: Sequence[str]) -> dict[str, float]:
    """Each form's greatest likeness in [0, 1] (1 - edit distance / longer length) to any other."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    different = list(dict.fromkeys(forms))
    if not different or not others:
        return {}
    found = cdist(
        different, others, scorer=Levenshtein.normalized_similarity, dtype=np.float32, workers=1
    ).max(axis=1)
    return dict(zip(different, found.tolist(), strict=True))


def _begun(forms: Iterable[str], others: Iterable[str]) -> dict[str, float]:
    """The share of each form that is the beginning of some other."""
    beginnings = {other[:k] for other in others for k in range(1, len(other) + 1)}
    found: dict[str, float] = {}
    for form in forms:
        length = len(form)
        while length and form[:length] not in beginnings:
            length -= 1
        found[form] = length / max(1, len(form))
    return found


def _grams(form: str, n: int) -> set[str]:
    edged = f"^{form}$"
    return {edged[i : i + n] for i in range(max(1, len(edged) - n + 1))}


def _share(form: str, n: int, known: set[str]) -> float:
    grams = _grams(form, n)
    return len(grams & known) / len(grams)


def _off_by(words: Sequence[Word], held: Grounds) -> list[float]:
    """How far a number is from the nearest one, relative to the greater; 2 without any, 0 others.

    Digits of any script have been made plain before (`number_term`).
    """
    values = np.array([v for v in (_value(word) for word in held.words) if v is not None])
    found = []
    for word in words:
        value = _value(word)
        if not word.is_number:
            found.append(0.0)
        elif value is None or not len(values):
            found.append(2.0)
        else:
            greater = np.maximum(np.maximum(abs(value), np.abs(values)), 1e-9)
            found.append(float((np.abs(values - value) / greater).min()))
    return found


def _value(word: Word) -> float | None:
    if not word.is_number:
        return None
    try:
        return float(word.term)
    except ValueError:
        return None
