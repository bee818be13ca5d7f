"""Measures how far people agree, with each other and with the machine.

Every figure has a percentile bootstrap interval over items and says if there are too few.
Sources: Cohen 1960; Fleiss 1971; Krippendorff 2011 (nominal, any number of people, missing
answers). The tests compare with NLTK and scikit-learn on published examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CountArray = npt.NDArray[np.float64]
# The one rule of all pages: of fewer cases only the count is shown and no point is drawn, because
# the 95% interval of their share may be wider than a third of the scale.
MIN_CASES = 30
BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 11
MAX_DRAWN_CELLS = 1_000_000  # drawn at once
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


def measure_raw_agreement(counts: CountArray) -> float | None:
    """Return the share of pairs of answers that are the same, averaged over items."""
    if not len(counts):
        return None
    people = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1) / (people * (people - 1))
    return float(same.mean())


def fleiss_kappa(counts: CountArray) -> float | None:
    """Return Fleiss' kappa; None if numbers of answers per item differ or all answers are one."""
    if not len(counts) or len(set(counts.sum(axis=1).tolist())) > 1:
        return None
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    same = measure_raw_agreement(counts)
    return None if same is None or chance >= 1.0 else (same - chance) / (1.0 - chance)


def krippendorff_alpha(counts: CountArray) -> float | None:
    """Return Krippendorff's alpha for nominal answers; None if all answers are one."""
    return _alpha(*_count_differing(counts)) if len(counts) else None


def _count_differing(counts: CountArray) -> tuple[float, CountArray]:
    """Return the parts of alpha: differing pairs weighted by people, and answers by label."""
    people = counts.sum(axis=1)
    differ = (people**2 - (counts**2).sum(axis=1)) / (people - 1)
    by_label: CountArray = counts.sum(axis=0)
    return float(differ.sum()), by_label


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


def pair_labels(answers: ItemAnswers, one: str, other: str) -> tuple[list[str], list[str]]:
    """Return the two people's labels of the items that both answered."""
    both = [answer for answer in answers.values() if one in answer and other in answer]
    return [answer[one] for answer in both], [answer[other] for answer in both]


def measure_cohen_kappa(answers: ItemAnswers, one: str, other: str) -> AgreementFigure:
    """Return Cohen's kappa of two people, or of one and the machine, with its interval."""
    first, second = pair_labels(answers, one, other)
    labels, n = sorted({*first, *second}), len(first)
    if not n:
        return AgreementFigure(None, None, None, 0)
    table = np.zeros((len(labels), len(labels)))
    for a, b in zip(first, second, strict=True):
        table[labels.index(a), labels.index(b)] += 1
    # Equal to drawing items, and fast enough for each pair of dozens of people.
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = rng.multinomial(n, table.ravel() / n, BOOTSTRAP_SAMPLES)
    kappas = _compute_kappas(drawn.reshape(-1, *table.shape).astype(np.float64))
    return _make_figure(cohen_kappa(table), kappas[~np.isnan(kappas)], n)


def measure_counts(
    counts: CountArray, measure: Callable[[CountArray], float | None]
) -> AgreementFigure:
    """Return a measure over all items, with its interval."""
    return _bootstrap(len(counts), lambda rows: measure(counts[rows]))


def count_marked_characters(marks: ItemMarks, lengths: Mapping[str, int]) -> list[CountArray]:
    """Return (characters, 2) counts per item that two or more marked: how many left, marked each.

    `marks` maps items to people to `[start, end)` spans; a person who marked nothing has [].
    """
    counts: list[CountArray] = []
    for item, by_person in marks.items():
        if len(by_person) > 1 and lengths[item]:
            marked = np.sum(
                [_mark_characters(spans, lengths[item]) for spans in by_person.values()],
                axis=0,
            )
            counts.append(np.stack([len(by_person) - marked, marked], axis=1).astype(np.float64))
    return counts


def _mark_characters(spans: Sequence[tuple[int, int]], length: int) -> npt.NDArray[np.bool_]:
    inside = np.zeros(length, dtype=bool)
    for start, end in spans:
        inside[start:end] = True
    return inside


def measure_span_alpha(items: Sequence[CountArray]) -> AgreementFigure:
    """Return Krippendorff's alpha over characters, resampled by item."""
    parts = [_count_differing(item) for item in items]
    differ = np.array([part for part, _ in parts])
    by_label = np.array([part for _, part in parts]).reshape(len(items), 2)
    return _bootstrap(
        len(items), lambda rows: _alpha(float(differ[rows].sum()), by_label[rows].sum(axis=0))
    )


def character_f1(
    one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]], length: int
) -> float:
    """Return the F1 of the characters that two people marked; 1 if neither marked any."""
    first, second = _mark_characters(one, length), _mark_characters(other, length)
    total = int(first.sum() + second.sum())
    return 2 * int((first & second).sum()) / total if total else 1.0


def measure_marking_f1(
    marks: ItemMarks, lengths: Mapping[str, int], one: str, other: str
) -> AgreementFigure:
    """Return the mean character F1 of two people over items that both answered and one marked.

    If neither marked a word they agree that there is none; the label says so already.
    """
    both = [(i, marked) for i, marked in marks.items() if one in marked and other in marked]
    scores = np.array(
        [
            character_f1(marked[one], marked[other], lengths[item])
            for item, marked in both
            if marked[one] or marked[other]
        ]
    )
    if not len(scores):
        return AgreementFigure(None, None, None, 0)
    rng, n = np.random.default_rng(BOOTSTRAP_SEED), len(scores)
    batch = max(1, MAX_DRAWN_CELLS // n)
    drawn = [
        scores[rng.integers(0, n, (min(batch, BOOTSTRAP_SAMPLES - start), n))].mean(axis=1)
        for start in range(0, BOOTSTRAP_SAMPLES, batch)
    ]
    return _make_figure(float(scores.mean()), np.concatenate(drawn), n)


def _bootstrap(n: int, measure: Callable[[npt.NDArray[np.int64]], float | None]) -> AgreementFigure:
    """Return the measure over all n items and its 95% interval over resamples."""
    if not n:
        return AgreementFigure(None, None, None, 0)
    value = measure(np.arange(n))
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    resampled = (measure(rng.integers(0, n, n)) for _ in range(BOOTSTRAP_SAMPLES))
    return _make_figure(value, np.array([v for v in resampled if v is not None]), n)


def _make_figure(value: float | None, drawn: CountArray, n: int) -> AgreementFigure:
    """Return the figure with the middle 95% of the draws in which it is defined."""
    if value is None or not len(drawn):
        return AgreementFigure(value, None, None, n)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return AgreementFigure(value, low, high, n)
