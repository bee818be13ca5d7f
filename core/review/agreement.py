"""How far people agree, with each other and with the machine, and how sure that figure is.

Every figure is counted over resampled items too (percentile bootstrap), and says when there are
too few to say. Sources: Cohen 1960; Fleiss 1971; Krippendorff 2011 (nominal, any number of people,
missing answers); the tests compare with NLTK's and scikit-learn's on published examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]
FEWEST = 30  # items below which a figure says little
SAMPLES = 1000
SEED = 11
Answers = Mapping[str, Mapping[str, str]]
Marks = Mapping[str, Mapping[str, Sequence[tuple[int, int]]]]


@dataclass(frozen=True)
class AgreementFigure:
    """A figure with its 95% interval over `n` items; None where it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def is_thin(self) -> bool:
        """True where there are too few items to say anything."""
        return self.n < FEWEST


def counted(answers: Answers) -> Counts:
    """(items, labels) how many people gave each label, of items that two or more answered.

    `answers` are labels by item and person.
    """
    labels = sorted({label for own in answers.values() for label in own.values()})
    found = np.zeros((len(answers), max(1, len(labels))))
    for row, own in enumerate(answers.values()):
        for label in own.values():
            found[row, labels.index(label)] += 1
    kept: Counts = found[found.sum(axis=1) >= 2]
    return kept


def raw_agreement(counts: Counts) -> float | None:
    """The share of pairs of answers that are the same, the mean over items."""
    if not len(counts):
        return None
    people = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1) / (people * (people - 1))
    return float(same.mean())


def fleiss_kappa(counts: Counts) -> float | None:
    """Fleiss' kappa; None where items have unlike numbers of answers or all answers are one."""
    if not len(counts) or len(set(counts.sum(axis=1).tolist())) > 1:
        return None
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    same = raw_agreement(counts)
    return None if same is None or chance >= 1.0 else (same - chance) / (1.0 - chance)


def krippendorff_alpha(counts: Counts) -> float | None:
    """Krippendorff's alpha for nominal answers; None where all answers are one."""
    return _alpha(*_differing(counts)) if len(counts) else None


def _differing(counts: Counts) -> tuple[float, Counts]:
    """What units come to in alpha: pairs that differ, each by its people, and answers by label."""
    people = counts.sum(axis=1)
    differ = (people**2 - (counts**2).sum(axis=1)) / (people - 1)
    by_label: Counts = counts.sum(axis=0)
    return float(differ.sum()), by_label


def _alpha(differ: float, by_label: Counts) -> float | None:
    total = by_label.sum()
    expected = (total**2 - (by_label**2).sum()) / (total * (total - 1))
    return None if expected == 0 else float(1.0 - differ / total / expected)


def cohen_kappa(table: Counts) -> float | None:
    """Cohen's kappa of a table (labels, labels) of pairs; None without room for chance."""
    total = float(table.sum())
    if not total:
        return None
    same = float(np.trace(table)) / total
    chance = float(table.sum(axis=1) @ table.sum(axis=0)) / total**2
    return None if chance >= 1.0 else (same - chance) / (1.0 - chance)


def pair_of(answers: Answers, one: str, other: str) -> tuple[list[str], list[str]]:
    """The two people's labels of the items that both answered."""
    both = [own for own in answers.values() if one in own and other in own]
    return [own[one] for own in both], [own[other] for own in both]


def cohen_of(answers: Answers, one: str, other: str) -> AgreementFigure:
    """Cohen's kappa of two people, or of one and the machine, with its interval."""
    first, second = pair_of(answers, one, other)
    labels = sorted({*first, *second})
    many = len(labels)
    pairs = np.array(
        [labels.index(a) * many + labels.index(b) for a, b in zip(first, second, strict=True)],
        dtype=np.int64,
    )

    def figure(drawn: npt.NDArray[np.int64]) -> float | None:
        # A thousand draws over every item: `np.add.at` took four times as long as the whole page.
        counts = np.bincount(pairs[drawn], minlength=many * many)
        return cohen_kappa(counts.reshape(many, many).astype(np.float64))

    return _resampled(len(pairs), figure)


def of_counts(counts: Counts, measure: Callable[[Counts], float | None]) -> AgreementFigure:
    """A measure over all items, with its interval."""
    return _resampled(len(counts), lambda rows: measure(counts[rows]))


def characters(marks: Marks, lengths: Mapping[str, int]) -> list[Counts]:
    """For each item that two or more marked, (characters, 2): how many left it and marked it.

    `marks` are `[start, end)` by item and person; somebody who marked nothing has an empty list.
    """
    found: list[Counts] = []
    for item, own in marks.items():
        if len(own) > 1 and lengths[item]:
            marked = np.sum([_marked(spans, lengths[item]) for spans in own.values()], axis=0)
            found.append(np.stack([len(own) - marked, marked], axis=1).astype(np.float64))
    return found


def _marked(spans: Sequence[tuple[int, int]], length: int) -> npt.NDArray[np.bool_]:
    inside = np.zeros(length, dtype=bool)
    for start, end in spans:
        inside[start:end] = True
    return inside


def span_alpha(items: Sequence[Counts]) -> AgreementFigure:
    """Krippendorff's alpha over characters, resampled by item."""
    parts = [_differing(item) for item in items]
    differ = np.array([own for own, _ in parts])
    by_label = np.array([own for _, own in parts]).reshape(len(items), 2)
    return _resampled(
        len(items), lambda rows: _alpha(float(differ[rows].sum()), by_label[rows].sum(axis=0))
    )


def character_f1(
    one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]], length: int
) -> float:
    """F1 of the characters that two people marked; 1 where neither marked any."""
    first, second = _marked(one, length), _marked(other, length)
    total = int(first.sum() + second.sum())
    return 2 * int((first & second).sum()) / total if total else 1.0


def f1_of(marks: Marks, lengths: Mapping[str, int], one: str, other: str) -> AgreementFigure:
    """The mean character F1 of two people over the items that both answered and one marked.

    Where neither marked a word they agree on that there is none; the label tells it.
    """
    both = [(i, own) for i, own in marks.items() if one in own and other in own]
    scores = np.array(
        [
            character_f1(own[one], own[other], lengths[item])
            for item, own in both
            if own[one] or own[other]
        ]
    )
    return _resampled(len(scores), lambda rows: float(scores[rows].mean()))


def _resampled(n: int, measure: Callable[[npt.NDArray[np.int64]], float | None]) -> AgreementFigure:
    """The measure over all of n items, and between which it lies in 95 of 100 resamples."""
    if not n:
        return AgreementFigure(None, None, None, 0)
    value = measure(np.arange(n))
    chance = np.random.default_rng(SEED)
    drawn = (measure(chance.integers(0, n, n)) for _ in range(SAMPLES))
    known = np.array([v for v in drawn if v is not None])
    if value is None or not len(known):
        return AgreementFigure(value, None, None, n)
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    return AgreementFigure(value, low, high, n)
