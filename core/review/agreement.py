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
import numpy.typing as npt

from core.store.ground_truth import merge_ranges

CountArray = npt.NDArray[np.float64]
# The one rule of all pages: of fewer cases only the count is shown and no point is drawn, because
# the 95% interval of their share may be wider than a third of the scale.
MIN_CASES = 30
BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 11
Times = npt.NDArray[np.int64]  # how often each item counts
WeightedMeasure = Callable[[CountArray, Times], float | None]
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


def count_answers(answers: ItemAnswers) -> CountArray:
    """Return (items, labels) counts of people per label, for items with two or more answers.

    `answers` maps items to people to labels.
    """
    labels = sorted({label for answer in answers.values() for label in answer.values()})
    counts = np.zeros((len(answers), max(1, len(labels))))
    for row, answer in enumerate(answers.values()):
        for label in answer.values():
            counts[row, labels.index(label)] += 1
    answered_twice: CountArray = counts[counts.sum(axis=1) >= 2]
    return answered_twice


def measure_raw_agreement(counts: CountArray, times: Times | None = None) -> float | None:
    """Return the share of pairs of answers that are the same, averaged over items.

    Here and below `times` (items,) says how often each item counts: once if it is None.
    """
    if not len(counts):
        return None
    people = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1) / (people * (people - 1))
    return float(np.average(same, weights=times))


def fleiss_kappa(counts: CountArray, times: Times | None = None) -> float | None:
    """Return Fleiss' kappa; None if numbers of answers per item differ or all answers are one."""
    if not len(counts) or len(set(counts.sum(axis=1).tolist())) > 1:
        return None
    by_label = np.average(counts, axis=0, weights=times)
    chance = float(((by_label / by_label.sum()) ** 2).sum())
    same = measure_raw_agreement(counts, times)
    return None if same is None or chance >= 1.0 else (same - chance) / (1.0 - chance)


def krippendorff_alpha(counts: CountArray, times: Times | None = None) -> float | None:
    """Return Krippendorff's alpha for nominal answers; None if all answers are one."""
    if not len(counts):
        return None
    weights = np.ones(len(counts)) if times is None else times
    return _alpha(float(weights @ _count_differing(counts)), weights @ counts)


def _count_differing(counts: CountArray) -> CountArray:
    """Return each item's differing pairs weighted by people."""
    people = counts.sum(axis=1)
    differ: CountArray = (people**2 - (counts**2).sum(axis=1)) / (people - 1)
    return differ


def _alpha(differ: float, by_label: CountArray) -> float | None:
    total = by_label.sum()
    expected = (total**2 - (by_label**2).sum()) / (total * (total - 1))
    return None if expected == 0 else float(1.0 - differ / total / expected)


def cohen_kappa(table: CountArray) -> float | None:
    """Return Cohen's kappa of a (labels, labels) table of pairs; None if chance is certain."""
    value = float(_compute_kappas(table[None])[0])
    return None if np.isnan(value) else value


def _compute_kappas(tables: CountArray) -> CountArray:
    """Return (draws,) Cohen's kappa of (draws, labels, labels) tables; NaN if undefined."""
    totals = np.maximum(tables.sum(axis=(1, 2)), 1.0)
    same = np.trace(tables, axis1=1, axis2=2) / totals
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / totals**2
    is_defined = (chance < 1.0) & (tables.sum(axis=(1, 2)) > 0)
    return np.where(is_defined, (same - chance) / np.where(is_defined, 1.0 - chance, 1.0), np.nan)


def pair_labels(answers: ItemAnswers, one: str, other: str) -> list[tuple[str, str]]:
    """Return the two people's labels of the items that both answered."""
    both = (answer for answer in answers.values() if one in answer and other in answer)
    return [(answer[one], answer[other]) for answer in both]


def measure_cohen_kappa(pairs: Iterable[tuple[str, str]]) -> AgreementFigure:
    """Return Cohen's kappa of two people's labels of the same items, or of counts of such pairs."""
    counts = Counter(pairs)
    labels, n = sorted({label for pair in counts for label in pair}), counts.total()
    if not n:
        return AgreementFigure(None, None, None, 0)
    table = np.array([[float(counts[a, b]) for b in labels] for a in labels])
    # Equal to drawing items, and fast enough for each pair of dozens of people.
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = rng.multinomial(n, table.ravel() / n, BOOTSTRAP_SAMPLES)
    kappas = _compute_kappas(drawn.reshape(-1, *table.shape).astype(np.float64))
    return _make_figure(cohen_kappa(table), kappas[~np.isnan(kappas)], n)


def measure_counts(counts: CountArray, measure: WeightedMeasure) -> AgreementFigure:
    """Return a measure over all items (items, columns), with its interval."""
    n = len(counts)
    if not n:
        return AgreementFigure(None, None, None, 0)
    rows, times = np.unique(counts, axis=0, return_counts=True)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    # Equal to drawing items, and faster as many of them are alike.
    drawn = (measure(rows, rng.multinomial(n, times / n)) for _ in range(BOOTSTRAP_SAMPLES))
    return _make_figure(measure(rows, times), np.array([v for v in drawn if v is not None]), n)


def count_marked_characters(marks: ItemMarks, lengths: Mapping[str, int]) -> list[CountArray]:
    """Return, per item that two or more judged, how many characters 0, 1, … of them marked.

    `marks` maps items to people to `[start, end)` spans; a person who marked nothing has [].
    """
    counts: list[CountArray] = []
    for item, by_person in marks.items():
        if len(by_person) > 1 and lengths[item]:
            marked = np.zeros(lengths[item], dtype=np.int64)
            for spans in by_person.values():
                for start, end in merge_ranges(spans):
                    marked[start:end] += 1
            counts.append(np.bincount(marked, minlength=len(by_person) + 1).astype(np.float64))
    return counts


@cache
def _rate_marks(people: int) -> CountArray:
    """Return, for a character that 0, 1, … of so many marked: differing pairs, left, marked."""
    marked = np.arange(people + 1.0)
    counts = np.stack([people - marked, marked], axis=1)
    return np.column_stack([_count_differing(counts), counts])


def measure_span_alpha(items: Sequence[CountArray]) -> AgreementFigure:
    """Return Krippendorff's alpha over characters, resampled by item."""
    parts = np.array([item @ _rate_marks(len(item) - 1) for item in items])
    return measure_counts(
        parts, lambda rows, times: _alpha(float(times @ rows[:, 0]), times @ rows[:, 1:])
    )


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
    return measure_counts(
        np.array(scores)[:, None],
        lambda rows, times: float(times @ rows[:, 0] / times.sum()),
    )


def _make_figure(value: float | None, drawn: CountArray, n: int) -> AgreementFigure:
    """Return the figure with the middle 95% of the draws in which it is defined."""
    if value is None or not len(drawn):
        return AgreementFigure(value, None, None, n)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return AgreementFigure(value, low, high, n)
