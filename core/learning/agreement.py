"""Measures how far people agree, with each other and with the machine.

Every figure has a percentile bootstrap interval over items and says if there are too few.
Sources: Cohen 1960; Fleiss 1971; Krippendorff 2011 (nominal, any number of people, missing
answers). The tests compare with NLTK and scikit-learn on published examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from core.learning.metrics import (
    FloatArray,
    IndexArray,
    Measure,
    bootstrap_measures,
    divide_safely,
    make_mean,
)
from core.learning.track_record import MIN_CASES
from core.store.ground_truth import merge_ranges

BOOTSTRAP_SEED = 11
ItemAnswers = Mapping[str, Mapping[str, str]]
ItemMarks = Mapping[str, Mapping[str, Sequence[tuple[int, int]]]]


@dataclass(frozen=True)
class AgreementFigure:
    """A figure with its 95% interval over `n` items; None if it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def is_thin(self) -> bool:
        """Return True if there are too few items to say anything."""
        return self.n < MIN_CASES


NO_FIGURE = AgreementFigure(None, None, None, 0)


def count_answers(answers: ItemAnswers) -> FloatArray:
    """Return (items, labels) counts of people per label, for items with two or more answers.

    `answers` maps items to people to labels.
    """
    labels = sorted({label for answer in answers.values() for label in answer.values()})
    counts = np.zeros((len(answers), max(1, len(labels))))
    for row, answer in enumerate(answers.values()):
        for label in answer.values():
            counts[row, labels.index(label)] += 1
    answered_twice: FloatArray = counts[counts.sum(axis=1) >= 2]
    return answered_twice


def measure_raw_agreement(counts: FloatArray) -> Measure:
    """Return the share of pairs of answers that are the same, averaged over items."""
    people = counts.sum(axis=1)
    return make_mean((counts * (counts - 1)).sum(axis=1) / (people * (people - 1)))


def fleiss_kappa(counts: FloatArray) -> Measure:
    """Return Fleiss' kappa; NaN if numbers of answers per item differ or all answers are one."""
    raw, is_uniform = measure_raw_agreement(counts), np.ptp(counts.sum(axis=1)) == 0

    def measure(weights: FloatArray) -> FloatArray:
        by_label = weights @ counts
        shares = by_label / by_label.sum(axis=1, keepdims=True)
        room = is_uniform * (1.0 - (shares**2).sum(axis=1))  # for more than chance
        return divide_safely(raw(weights) - 1.0 + room, room)

    return measure


def krippendorff_alpha(counts: FloatArray) -> Measure:
    """Return Krippendorff's alpha for nominal answers; NaN if all answers are one."""
    return _make_alpha(_count_differing(counts), counts)


def _count_differing(counts: FloatArray) -> FloatArray:
    """Return each item's differing pairs weighted by people."""
    people = counts.sum(axis=1)
    return np.asarray((people**2 - (counts**2).sum(axis=1)) / (people - 1))


def _make_alpha(differing: FloatArray, counts: FloatArray) -> Measure:
    def measure(weights: FloatArray) -> FloatArray:
        by_label = weights @ counts
        total = by_label.sum(axis=1)
        expected = (total**2 - (by_label**2).sum(axis=1)) / (total * (total - 1))
        return 1.0 - divide_safely(weights @ differing / total, expected)

    return measure


def _compute_kappas(tables: FloatArray) -> FloatArray:
    """Return (draws,) Cohen's kappa of (draws, labels, labels) tables; NaN if undefined."""
    totals = tables.sum(axis=(1, 2))
    same = np.trace(tables, axis1=1, axis2=2) / totals
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / totals**2
    return divide_safely(same - chance, 1.0 - chance)


def pair_labels(answers: ItemAnswers, one: str, other: str) -> list[tuple[str, str]]:
    """Return the two people's labels of the items that both answered."""
    both = (answer for answer in answers.values() if one in answer and other in answer)
    return [(answer[one], answer[other]) for answer in both]


def measure_cohen_kappa(pairs: Iterable[tuple[str, str]]) -> AgreementFigure:
    """Return Cohen's kappa of two people's labels of the same items, or of counts of such pairs."""
    counts = Counter(pairs)
    labels = sorted({label for pair in counts for label in pair})
    times = np.array([counts[a, b] for a in labels for b in labels], dtype=np.int64)
    return _estimate(lambda w: _compute_kappas(w.reshape(-1, len(labels), len(labels))), times)


def measure_counts(
    counts: FloatArray, make_measure: Callable[[FloatArray], Measure]
) -> AgreementFigure:
    """Return a measure over all items (items, columns), with its interval."""
    rows, times = np.unique(counts, axis=0, return_counts=True)
    return _estimate(make_measure(rows), times) if len(rows) else NO_FIGURE


def _estimate(measure: Measure, times: IndexArray) -> AgreementFigure:
    """Return a measure of different items; `times` says how many there are of each.

    It is equal to drawing items, and fast enough for each pair of dozens of people.
    """
    n = int(times.sum())
    if not n:
        return NO_FIGURE
    found = bootstrap_measures({"": measure}, np.arange(len(times)), BOOTSTRAP_SEED, times=times)
    is_defined = not np.isnan(found[""].value)
    return AgreementFigure(*(found[""] if is_defined else (None, None, None)), n)


def count_marked_characters(marks: ItemMarks, lengths: Mapping[str, int]) -> list[FloatArray]:
    """Return, per item that two or more judged, how many characters 0, 1, … of them marked.

    `marks` maps items to people to `[start, end)` spans; a person who marked nothing has [].
    """
    counts: list[FloatArray] = []
    for item, by_person in marks.items():
        if len(by_person) > 1 and lengths[item]:
            marked = np.zeros(lengths[item], dtype=np.int64)
            for spans in by_person.values():
                for start, end in merge_ranges(spans):
                    marked[start:end] += 1
            counts.append(np.bincount(marked, minlength=len(by_person) + 1).astype(np.float64))
    return counts


@cache
def _rate_marks(people: int) -> FloatArray:
    """Return, for a character that 0, 1, … of so many marked: differing pairs, left, marked."""
    marked = np.arange(people + 1.0)
    counts = np.stack([people - marked, marked], axis=1)
    return np.column_stack([_count_differing(counts), counts])


def measure_span_alpha(items: Sequence[FloatArray]) -> AgreementFigure:
    """Return Krippendorff's alpha over characters, resampled by item."""
    parts = np.array([item @ _rate_marks(len(item) - 1) for item in items])
    return measure_counts(parts, lambda rows: _make_alpha(rows[:, 0], rows[:, 1:]))


def character_f1(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> float:
    """Return the F1 of the characters that two people marked; 1 if neither marked any."""
    if one == other:  # as most do
        return 1.0
    first, second = ({i for place in own for i in range(*place)} for own in (one, other))
    total = len(first) + len(second)
    return 2 * len(first & second) / total if total else 1.0


def measure_marking_f1(marks: ItemMarks, one: str, other: str) -> AgreementFigure:
    """Return the mean character F1 of two people over items that both answered and one marked.

    If neither marked a word they agree that there is none; the label says so already.
    """
    scores = [
        character_f1(marked[one], marked[other])
        for marked in marks.values()
        if marked.get(one) or marked.get(other)
        if one in marked and other in marked
    ]
    return measure_counts(np.array(scores)[:, None], lambda rows: make_mean(rows[:, 0]))
