"""Figures over labelled cases, their bootstrap intervals, and folds of cases that belong together.

Positive is hallucinated. Measures take weights, (draws, n): how often each case counts. All of one
call are drawn alike, so that the interval of a difference is paired.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from core.learning.options import Options
from core.learning.training_set import TrainingRow, TrainingSet, digest_of, training_set
from core.runtime.errors import InputError
from core.schema.records import Label
from core.store import Store
from core.verdict.classifier import Classifier, load_classifier

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Rows = TypeVar("Rows", bound="DataclassInstance")
Name = TypeVar("Name", str, tuple[str, str])
Measure = Callable[[Numbers], Numbers]  # (draws, n) weights of cases to (draws,)
HALLUCINATED, SUPPORTED = 1.0, 0.0
UNCLEAR = 0.5  # of an agent that would not decide
FOLDS = 5
BINS = 10
RESAMPLES = 1000
BANDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
AT_ONCE = 50  # draws
SEED = 7
MIDDLE = (0.025, 0.975)
SUREST = 1e-6  # a p of 0 or 1 that was wrong would cost without end
DIGITS = 4


def subset(record: Rows, which: Places | Flags, *names: str) -> Rows:
    """The dataclass with these rows of the named fields only, in this order."""
    places = np.arange(len(getattr(record, names[0])))[which]
    whole = {name: getattr(record, name) for name in names}
    return replace(record, **{
        name: rows[places] if isinstance(rows, np.ndarray) else tuple(rows[p] for p in places)
        for name, rows in whole.items()
    })  # fmt: skip


class Figure(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def body(self) -> list[float]:
        """The rounded figures as a list, as they are kept."""
        return [round(own, DIGITS) for own in self]

    def rounded(self) -> dict[str, float]:
        """The rounded figures by name, as they are kept."""
        return dict(zip(self._fields, self.body, strict=True))


def bootstrap(
    measures: Mapping[Name, Measure], groups: Places, seed: int, resamples: int = RESAMPLES
) -> dict[Name, Figure]:
    """Each measure with its interval (draws that are NaN left out); `groups` are from 0."""
    whole = np.ones((1, len(groups)))
    drawn: dict[Name, list[Numbers]] = {name: [] for name in measures}
    for weights in resampled(groups, seed, resamples):
        for name, measure in measures.items():
            drawn[name].append(measure(weights))
    return {
        name: interval(float(measure(whole)[0]), np.concatenate(drawn[name]))
        for name, measure in measures.items()
    }


def resampled(groups: Places, seed: int, resamples: int = RESAMPLES) -> Iterator[Numbers]:
    """Weights, some draws at a time: each group counts as often as it was drawn."""
    count = int(groups.max()) + 1
    random = np.random.default_rng(seed)
    for start in range(0, resamples, AT_ONCE):
        size = min(AT_ONCE, resamples - start)
        yield random.multinomial(count, np.full(count, 1 / count), size)[:, groups].astype(float)


def interval(value: float, drawn: Numbers) -> Figure:
    """The value with the middle 95 % of what was drawn; with itself where nothing is known."""
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, MIDDLE).tolist() if len(known) else (value, value)
    return Figure(value, low, high)


def mean_of(values: Numbers | Flags, inside: Flags | None = None) -> Measure:
    """The mean of (n,) values, of those inside where that is given; NaN of none."""
    counted = np.ones(len(values), dtype=bool) if inside is None else inside

    def measure(weights: Numbers) -> Numbers:
        taken = weights * counted
        total = taken.sum(axis=1)
        return np.where(total > 0, taken @ values / np.maximum(total, 1e-9), np.nan)

    return measure


def balanced(truth: Flags, values: Numbers | Flags) -> Measure:
    """The mean over both labels of the mean of (n,) values: of being right, balanced accuracy."""
    up, down = mean_of(values, truth), mean_of(values, ~truth)
    return lambda weights: (up(weights) + down(weights)) / 2


def ranking(truth: Flags, p: Numbers) -> Measure:
    """AUROC: how often a hallucinated case has the higher p than a supported one; ties half."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) != 0])
    sides = np.stack([truth[order], ~truth[order]]).astype(np.float64)

    def measure(weights: Numbers) -> Numbers:
        high, low = (np.add.reduceat(weights[:, order] * s, starts, axis=1) for s in sides)
        below = np.cumsum(low, axis=1) - low / 2
        total = high.sum(axis=1) * low.sum(axis=1)
        return np.where(total > 0, (high * below).sum(axis=1) / np.maximum(total, 1e-9), np.nan)

    return measure


def f_score(truth: Flags, said: Flags, beta: float = 1.0) -> Measure:
    """F with recall `beta` (squared) times as weighty as precision; 0 where nothing is found."""
    table = np.stack([truth & said, truth, said], axis=1).astype(np.float64)

    def measure(weights: Numbers) -> Numbers:
        both, gold, told = (weights @ table).T
        return np.asarray((1.0 + beta) * both / np.maximum(beta * gold + told, 1e-9))

    return measure


def calibration_error(truth: Flags | Numbers, p: Numbers) -> Measure:
    """ECE: mean p against the share of positives in ten bins of equal width over p."""
    gaps = _in_bins(p) * (p - truth)[:, None]
    return lambda weights: np.asarray(np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1))


def _in_bins(p: Numbers) -> Numbers:
    places = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    return np.asarray(places[:, None] == np.arange(BINS), np.float64)


def ece_by_chance(p: Numbers, seed: int, draws: int = RESAMPLES) -> Figure:
    """The ECE that a perfectly calibrated model with these p would show: mean, middle 95 %."""
    random, inside, errors = np.random.default_rng(seed), _in_bins(p), []
    for start in range(0, draws, AT_ONCE):
        positive = random.random((min(AT_ONCE, draws - start), len(p))) < p
        errors.append(np.abs((p - positive) @ inside).sum(axis=1) / len(p))
    drawn = np.concatenate(errors)
    return interval(float(drawn.mean()), drawn)


def log_losses(truth: Flags, p: Numbers) -> Numbers:
    """(n,) surprise at what was true, in nats."""
    bounded = np.clip(p, SUREST, 1.0 - SUREST)
    return np.asarray(-np.log(np.where(truth, bounded, 1.0 - bounded)))


def log_loss(truth: Flags, p: Numbers) -> float:
    """Mean surprise at what was true, in nats."""
    return float(log_losses(truth, p).mean())


def auroc(truth: Flags, p: Numbers) -> float | None:
    """`ranking` over all cases; None for one label only."""
    return _known(ranking(truth, p), len(p)) if len(p) else None


def balanced_accuracy(truth: Flags, said: Flags) -> float | None:
    """The mean share of each label that was recognised; None where one is missing."""
    return _known(balanced(truth, said == truth), len(truth))


def ece(truth: Flags, p: Numbers) -> float:
    """`calibration_error` over all cases."""
    return float(calibration_error(truth, p)(np.ones((1, len(p))))[0])


def _known(measure: Measure, n: int) -> float | None:
    value = float(measure(np.ones((1, n)))[0])
    return None if np.isnan(value) else value


def scores(labels: Sequence[Label], probabilities: Sequence[float]) -> dict[str, Any]:
    """Counts and rates of p_hallucinated at one half, and by chance; None where undefined."""
    truth, p = _truth(labels), np.asarray(probabilities, np.float64)
    said, n = p >= 0.5, len(p)
    tp, fn = int((truth & said).sum()), int((truth & ~said).sum())
    fp, tn = int((~truth & said).sum()), int((~truth & ~said).sum())
    null = ece_by_chance(p, SEED).rounded() if n else None
    return {
        "n": n,
        "true_hallucinated": tp,
        "missed_hallucinated": fn,
        "false_alarms": fp,
        "true_supported": tn,
        "accuracy": (tp + tn) / n if n else None,
        "balanced_accuracy": balanced_accuracy(truth, said),
        "f1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None,
        "auroc": auroc(truth, p),
        "brier": float(((p - truth) ** 2).mean()) if n else None,
        "log_loss": log_loss(truth, p) if n else None,
        "ece": ece(truth, p) if n else None,
        "ece_null": null and {"mean": null["value"], "low": null["low"], "high": null["high"]},
        "always_hallucinated": (tp + fn) / n if n else None,
    }


def _truth(labels: Sequence[Label]) -> Flags:
    return np.array([label == "hallucinated" for label in labels], dtype=bool)


def difference(
    labels: Sequence[Label], groups: Sequence[str], before: Sequence[float], after: Sequence[float]
) -> dict[str, float] | None:
    """Balanced accuracy after less before, with its interval, rounded; None of one label."""
    truth = _truth(labels)
    old, new = np.asarray(before) >= 0.5, np.asarray(after) >= 0.5
    if truth.all() or not truth.any():
        return None
    gain = (new == truth).astype(np.float64) - (old == truth)
    places = numbered(groups, is_sorted=False)
    return bootstrap({"": balanced(truth, gain)}, places, SEED)[""].rounded()


def reliability(labels: Sequence[Label], probabilities: Sequence[float]) -> list[dict[str, float]]:
    """`confidence_bands` of labels and p_hallucinated."""
    return confidence_bands(_truth(labels), np.asarray(probabilities, np.float64), BANDS)


def confidence_bands(truth: Flags, p: Numbers, edges: Sequence[float]) -> list[dict[str, float]]:
    """How often verdicts of each confidence band were right: low, high, n, right."""
    right, sure = (p >= 0.5) == truth, np.maximum(p, 1 - p)
    bands: list[dict[str, float]] = []
    for low, high in itertools.pairwise(edges):
        inside = (sure >= low) & ((sure < high) | (high == edges[-1]) & (sure == high))
        n, own = int(inside.sum()), int(right[inside].sum())
        bands.append({"low": low, "high": high, "n": n, "right": own})
    return bands


def numbered(names: Sequence[str], *, is_sorted: bool = True) -> Places:
    """(n,) the number of each name from 0, in alphabetical order or in order of appearance."""
    different = sorted(set(names)) if is_sorted else dict.fromkeys(names)
    place = {name: number for number, name in enumerate(different)}
    return np.array([place[name] for name in names], dtype=np.int64)


def fold_of(group: str, folds: int = FOLDS) -> int:
    """The fold of all rows of this case."""
    digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") % folds


def fold_numbers(groups: Sequence[str]) -> Places:
    """(n,) the fold of each row by `fold_of`."""
    return np.array([fold_of(group) for group in groups], dtype=np.int64)


def folds(groups: Sequence[str], labels: Numbers, seed: int) -> Places:
    """(n,) the fold of each case: whole groups, labels spread evenly; the same for a seed."""
    place = numbered(groups)
    many = int(place.max()) + 1 if len(place) else 0
    if many < FOLDS:
        raise InputError(f"Expected at least {FOLDS} groups of cases, found {many}.")
    size = np.bincount(place, minlength=many)
    wrong = np.bincount(place, weights=labels, minlength=many) / size
    lot = np.random.default_rng(seed).random(many)
    order = np.lexsort((lot, -size, -(wrong >= 0.5).astype(np.int64)))
    dealt = np.empty(many, dtype=np.int64)
    dealt[order] = np.arange(many) % FOLDS
    return np.asarray(dealt[place])


def grouped_folds(
    is_wrong: Flags, groups: Places | Sequence[str], seed: int, count: int = FOLDS
) -> Iterator[tuple[Places, Places]]:
    """(fit, test) places; cases of one group lie on one side, labels are shared out evenly."""
    from sklearn.model_selection import StratifiedGroupKFold

    parted = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    yield from parted.split(np.zeros(len(is_wrong)), is_wrong, groups)


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Sums this small only wait for each other on several cores: twenty times, on busy ones."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield


LONGEST_CLAIM = 300
DECIDES = "balanced_accuracy"  # or accuracy, where only one label is held out


def compare(store: Store, home: Path, one: str, other: str) -> dict[str, Any]:
    """Any two versions on today's hold-out, which neither has learned from; 10 ms a row."""
    before, after = load_classifier(home, one), load_classifier(home, other)
    return {"versions": [one, other]} | side_by_side(training_set(store).held, before, after)


def side_by_side(
    held: Sequence[TrainingRow], before: Classifier, after: Classifier
) -> dict[str, Any]:
    """Figures of both, the difference with its interval, and every row with both answers."""
    old, new = ([c.probability(row.text, row.p) for row in held] for c in (before, after))
    labels, groups = [row.label for row in held], [row.group for row in held]
    return {
        "before": scores(labels, old),
        "after": scores(labels, new),
        "difference": difference(labels, groups, old, new),
        "reliability": {"before": reliability(labels, old), "after": reliability(labels, new)},
        "rows": [
            {"run_id": row.run_id, "case_id": row.case_id, "claim": row.claim[:LONGEST_CLAIM],
             "label": row.label, "before": p, "after": q}
            for row, p, q in zip(held, old, new, strict=True)
        ],
    }  # fmt: skip


def _deciding(held: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """(name, before, after) of the figure that decides; None where nothing can be compared."""
    for key in (DECIDES, "accuracy"):
        before, after = (held.get(side, {}).get(key) for side in ("before", "after"))
        if before is not None and after is not None:
            return key, before, after
    return None


def is_lower(held: Mapping[str, Any]) -> bool:
    """True when the figure that decides is lower after than before; equal is not lower."""
    found = _deciding(held)
    return found is not None and bool(found[2] < found[1])


def difference_words(held: Mapping[str, Any]) -> str:
    """How far apart the two are and how sure that is, in words."""
    found = _deciding(held)
    if found is None:
        return "nothing is held out, so nothing can be compared"
    key, before, after = found
    words = (
        f"{key.replace('_', ' ')} {after:.3f} against {before:.3f} on "
        f"{held['after'].get('n', 'the')} held-out verdicts"
    )
    sure = held.get("difference")
    if sure is None or key != DECIDES:
        return words
    return (
        f"{words}; difference {sure['value']:+.3f}, 95% interval {sure['low']:+.3f} to "
        f"{sure['high']:+.3f}"
    )


PACKAGES = (
    "setfit", "sentence-transformers", "transformers", "torch", "scikit-learn", "onnx",
    "onnxruntime", "numpy",
)  # fmt: skip
LIMITS = (
    "It reads the judge's text and probability, not the sources: where the judge saw nothing, it "
    "cannot know.",
    "Figures are those of cases that people chose to correct here; elsewhere it may do otherwise.",
    "MiniLM's vocabulary is English: of verdict texts in other scripts it sees little.",
)
CROSS_FITTED = (
    "There were too few cases for a calibration split: probabilities were calibrated on training "
    "cases, each by a head that had not seen it, over an encoder that had. They were only "
    "allowed to become less sure."
)


def learned_from(data: TrainingSet, seed_texts: int, options: Options) -> dict[str, Any]:
    """What a version learned from, and with what."""
    sides = {"train": data.train, "calibration": data.calibration, "holdout": data.held}

    def counted(name: str) -> dict[str, int]:
        return dict(Counter(getattr(row, name) for row in data.train).most_common())

    return {
        "trained_on": {
            "corrections": sorted(row.correction_id for row in data.train),
            "corrections_sha256": digest_of(data.train),
            "calibration_corrections": sorted(row.correction_id for row in data.calibration),
            "labels": counted("label"),
            "seed_texts": seed_texts,
            "languages": counted("language"),
            "authors": counted("author"),
        },
        "splits": {name: len({row.group for row in rows}) for name, rows in sides.items()},
        "options": options.as_dict(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def limits_of(card: Mapping[str, Any]) -> list[str]:
    """What the version must not be relied on for."""
    return [*LIMITS, *([CROSS_FITTED] if card["calibration"]["cross_fitted"] else [])]


def card_text(card: Mapping[str, Any]) -> str:
    """The card as a page of Markdown."""
    trained, splits, held = card["trained_on"], card["splits"], card["holdout"]
    curve, after = card["calibration"], held["after"]
    told = {name: value for name, value in after.items() if not isinstance(value, dict)}
    figures = "\n".join(
        f"| {name.replace('_', ' ')} | {figure_words(held['before'][name])} | {figure_words(own)} |"
        for name, own in told.items()
    )
    limits = "\n".join(f"- {words}" for words in card["limits"])
    cross = " (cross-fitted)" if curve["cross_fitted"] else ""
    return f"""\
# Counterpoint classifier {card["name"]}

Reads the judge's text of a check with the judge's probability and gives the probability \
that the claim is hallucinated: a sentence encoder, fine-tuned on pairs (SetFit), with a \
logistic head, and the text's words where they told more.

- Trained by {card["author"]}, from {len(trained["corrections"])} corrections \
({_words(trained["labels"])}) and {trained["seed_texts"]} texts of our own.
- Cases: {splits["train"]} to train, {splits["calibration"]} to calibrate, \
{splits["holdout"]} held out; no case is in two of them.
- Languages: {_words(trained["languages"])}.
- Options: {_words(card["options"])}.
- Reads: {card["reads"]["read"]}, by log loss on the calibration cases \
({_words(card["reads"]["log_loss"])}).
- Calibration: {curve["kind"]}, chosen by log loss on {curve["n"]} rows{cross}.
- Packages: {_words(card["packages"])}.
- It took {card["seconds"]:.0f} s ({card["cpu_seconds"]:.0f} s of processor time) and \
{card["memory_mb"]} MB of memory.

## On {after["n"]} held-out verdicts, beside {card["compared_with"]}

| figure | before | this |
|---|---|---|
{figures}

## Limits

{limits}
"""


def _words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "none"


def figure_words(value: float | None) -> str:
    """A figure with three digits, a count as it is, a dash for none."""
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
