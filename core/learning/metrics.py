"""Figures over labelled cases, their bootstrap intervals, and folds of related cases.

Positive is hallucinated. A `Measure` takes weights (draws, n), which say how often each case counts
in each draw. All measures of one call share their draws, so the interval of a difference is paired.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from core.learning.options import TrainingOptions
from core.learning.training_set import (
    TrainingRow,
    TrainingSet,
    compute_rows_digest,
    load_training_set,
)
from core.runtime.errors import InputError
from core.schema.records import Label
from core.store import Store
from core.verdict.classifier import Classifier, combine_labels, load_classifier

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
RowsRecord = TypeVar("RowsRecord", bound="DataclassInstance")
MeasureName = TypeVar("MeasureName", str, tuple[str, str])
Measure = Callable[[FloatArray], FloatArray]  # (draws, n) weights of cases to (draws,) values
HALLUCINATED_VALUE, SUPPORTED_VALUE = 1.0, 0.0
UNCLEAR_VALUE = 0.5  # an agent that did not decide
FOLD_COUNT = 5
ECE_BINS = 10
BOOTSTRAP_RESAMPLES = 1000
MIN_GROUPS = 5  # for an interval; fewer, resampled, say nothing of others
CONFIDENCE_BAND_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DRAWS_PER_BATCH = 50  # draws
METRICS_SEED = 7
INTERVAL_QUANTILES = (0.025, 0.975)
LOSS_EPSILON = 1e-6  # a wrong p of 0 or 1 would have an infinite loss
FIGURE_DIGITS = 4
MAX_CLAIM_CHARS = 300
DECIDING_METRIC = "balanced_accuracy"  # or accuracy, if only one label is held out
CARD_PACKAGES = (
    "setfit", "sentence-transformers", "transformers", "torch", "scikit-learn", "onnx",
    "onnxruntime", "numpy",
)  # fmt: skip
CARD_LIMITS = (
    "It reads the judge's text and probability, not the sources: where the judge saw nothing, it "
    "cannot know.",
    "Figures are those of cases that people chose to correct here; elsewhere it may do otherwise.",
    "MiniLM's vocabulary is English: of verdict texts in other scripts it sees little.",
)
CROSS_FITTED_LIMIT = (
    "There were too few cases for a calibration split: probabilities were calibrated on training "
    "cases, each by a head that had not seen it, over an encoder that had. They were only "
    "allowed to become less sure."
)


def select_rows(record: RowsRecord, which: IndexArray | BoolArray, *names: str) -> RowsRecord:
    """Return the dataclass with only these rows of the named fields, in this order."""
    places = np.arange(len(getattr(record, names[0])))[which]
    selected: dict[str, Any] = {}
    for name in names:
        rows = getattr(record, name)
        is_array = isinstance(rows, np.ndarray)
        selected[name] = rows[places] if is_array else tuple(rows[place] for place in places)
    return replace(record, **selected)


class MetricEstimate(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def body(self) -> list[float]:
        """The rounded figures as a list, as they are stored."""
        return [round(number, FIGURE_DIGITS) for number in self]

    def rounded(self) -> dict[str, float]:
        """Return the rounded figures by name, as they are stored."""
        return dict(zip(self._fields, self.body, strict=True))


def bootstrap_measures(
    measures: Mapping[MeasureName, Measure],
    groups: IndexArray,
    seed: int,
    resamples: int = BOOTSTRAP_RESAMPLES,
    times: IndexArray | None = None,
) -> dict[MeasureName, MetricEstimate]:
    """Return each measure with its 95 % interval, NaN draws left out; `groups` count from 0.

    `times` says how many groups like each there are: one if it is None.
    """
    whole = (np.ones(len(groups)) if times is None else times[groups].astype(float))[None]
    drawn: dict[MeasureName, list[FloatArray]] = {name: [] for name in measures}
    for weights in iter_resamples(groups, seed, resamples, times):
        for name, measure in measures.items():
            drawn[name].append(measure(weights))
    return {
        name: estimate_interval(float(measure(whole)[0]), np.concatenate(drawn[name]))
        for name, measure in measures.items()
    }


def iter_resamples(
    groups: IndexArray,
    seed: int,
    resamples: int = BOOTSTRAP_RESAMPLES,
    times: IndexArray | None = None,
) -> Iterator[FloatArray]:
    """Yield weights (draws, n), some draws at a time: a group counts as often as it was drawn."""
    times = np.ones(int(groups.max()) + 1, dtype=np.int64) if times is None else times
    count, random = times.sum(), np.random.default_rng(seed)
    for start in range(0, resamples, DRAWS_PER_BATCH):
        size = min(DRAWS_PER_BATCH, resamples - start)
        yield random.multinomial(count, times / count, size)[:, groups].astype(float)


def estimate_interval(value: float, drawn: FloatArray) -> MetricEstimate:
    """Return the value with the middle 95 % of the draws, or with itself if none is known."""
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, INTERVAL_QUANTILES).tolist() if len(known) else (value, value)
    return MetricEstimate(value, low, high)


def divide_safely(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return part by whole; NaN where the whole is 0."""
    is_empty = whole == 0
    return np.where(is_empty, np.nan, part / np.where(is_empty, 1.0, whole))


def make_mean(values: FloatArray | BoolArray, inside: BoolArray | None = None) -> Measure:
    """Return the measure that is the mean of (n,) values over those `inside`; NaN if none is."""
    is_counted = np.ones(len(values), dtype=bool) if inside is None else inside

    def measure(weights: FloatArray) -> FloatArray:
        used = weights * is_counted
        return divide_safely(used @ values, used.sum(axis=1))

    return measure


def make_balanced_mean(truth: BoolArray, values: FloatArray | BoolArray) -> Measure:
    """Return the mean over both labels of the mean of values; of rights, balanced accuracy."""
    positive, negative = make_mean(values, truth), make_mean(values, ~truth)
    return lambda weights: (positive(weights) + negative(weights)) / 2


def make_auroc(truth: BoolArray, p: FloatArray) -> Measure:
    """Return AUROC: how often a hallucinated case has the higher p; ties count half."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) != 0])
    sides = np.stack([truth[order], ~truth[order]]).astype(np.float64)

    def measure(weights: FloatArray) -> FloatArray:
        high, low = (np.add.reduceat(weights[:, order] * s, starts, axis=1) for s in sides)
        below = np.cumsum(low, axis=1) - low / 2
        return divide_safely((high * below).sum(axis=1), high.sum(axis=1) * low.sum(axis=1))

    return measure


def make_aurc(wrong: BoolArray, confidence: FloatArray) -> Measure:
    """Return AURC: the mean error rate over all coverages, the surest cases answered first.

    It is the mean over all orders of cases of equal confidence. Weights are whole numbers.
    """
    order = np.argsort(-confidence, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(confidence[order]) != 0])
    sides = np.stack([np.ones(len(order)), wrong[order]])

    def measure(weights: FloatArray) -> FloatArray:
        size, errors = (np.add.reduceat(weights[:, order] * s, starts, axis=1) for s in sides)
        end, rate = np.cumsum(size, axis=1), np.nan_to_num(divide_safely(errors, size))
        start, errors_before = end - size, np.cumsum(errors, axis=1) - errors
        harmonic = np.r_[0.0, np.cumsum(1 / np.arange(1, end.max() + 1))]
        # The sum over the places k of a tie of (errors_before + rate * k) / (start + k).
        spread = harmonic[end.astype(np.int64)] - harmonic[start.astype(np.int64)]
        area = rate * size + (errors_before - rate * start) * spread
        return divide_safely(area.sum(axis=1), size.sum(axis=1))

    return measure


def make_f_score(truth: BoolArray, said: BoolArray, beta: float = 1.0) -> Measure:
    """Return F with recall `beta` (squared) times as weighty as precision; 0 of nothing found."""
    table = np.stack([truth & said, truth, said], axis=1).astype(np.float64)

    def measure(weights: FloatArray) -> FloatArray:
        hits, positives, predicted = (weights @ table).T
        return np.asarray((1.0 + beta) * hits / np.maximum(beta * positives + predicted, 1e-9))

    return measure


def make_ece(
    truth: BoolArray | FloatArray, p: FloatArray, inside: BoolArray | None = None
) -> Measure:
    """Return ECE over those `inside`: mean p against the share of positives, ten equal bins."""
    is_counted = np.ones(len(p)) if inside is None else inside.astype(np.float64)
    gaps = _assign_bins(p) * ((p - truth) * is_counted)[:, None]

    def measure(weights: FloatArray) -> FloatArray:
        return divide_safely(np.abs(weights @ gaps).sum(axis=1), weights @ is_counted)

    return measure


def _assign_bins(p: FloatArray) -> FloatArray:
    places = np.minimum((p * ECE_BINS).astype(np.int64), ECE_BINS - 1)
    return np.asarray(places[:, None] == np.arange(ECE_BINS), np.float64)


def estimate_chance_ece(
    p: FloatArray, seed: int, draws: int = BOOTSTRAP_RESAMPLES
) -> MetricEstimate:
    """Return the ECE that perfectly calibrated p like these would show: mean and middle 95 %."""
    random, inside, errors = np.random.default_rng(seed), _assign_bins(p), []
    for start in range(0, draws, DRAWS_PER_BATCH):
        positive = random.random((min(DRAWS_PER_BATCH, draws - start), len(p))) < p
        errors.append(np.abs((p - positive) @ inside).sum(axis=1) / len(p))
    drawn = np.concatenate(errors)
    return estimate_interval(float(drawn.mean()), drawn)


def compute_log_losses(truth: BoolArray, p: FloatArray) -> FloatArray:
    """Return (n,) the negative log of the probability of the right label, in nats."""
    bounded = np.clip(p, LOSS_EPSILON, 1.0 - LOSS_EPSILON)
    return np.asarray(-np.log(np.where(truth, bounded, 1.0 - bounded)))


def compute_log_loss(truth: BoolArray, p: FloatArray) -> float:
    """Return the mean of `compute_log_losses`, in nats."""
    return float(compute_log_losses(truth, p).mean())


def compute_auroc(truth: BoolArray, p: FloatArray) -> float | None:
    """Return AUROC over all cases, or None if there is only one label."""
    return _value_or_none(make_auroc(truth, p), len(p)) if len(p) else None


def compute_balanced_accuracy(truth: BoolArray, said: BoolArray) -> float | None:
    """Return the mean recall of both labels, or None if one is missing."""
    return _value_or_none(make_balanced_mean(truth, said == truth), len(truth))


def compute_ece(truth: BoolArray, p: FloatArray) -> float:
    """Return the expected calibration error over all cases."""
    return float(make_ece(truth, p)(np.ones((1, len(p))))[0])


def _value_or_none(measure: Measure, n: int) -> float | None:
    value = float(measure(np.ones((1, n)))[0])
    return None if np.isnan(value) else value


def compute_classifier_figures(
    labels: Sequence[Label], probabilities: Sequence[float]
) -> dict[str, Any]:
    """Return counts and rates of p_hallucinated at one half and by chance, None if undefined."""
    truth, p = _truth_from(labels), np.asarray(probabilities, np.float64)
    predicted, n = p >= 0.5, len(p)
    tp, fn = int((truth & predicted).sum()), int((truth & ~predicted).sum())
    fp, tn = int((~truth & predicted).sum()), int((~truth & ~predicted).sum())
    chance = estimate_chance_ece(p, METRICS_SEED).rounded() if n else None
    ece_null = chance and {"mean": chance["value"], "low": chance["low"], "high": chance["high"]}
    return {
        "n": n,
        "true_hallucinated": tp,
        "missed_hallucinated": fn,
        "false_alarms": fp,
        "true_supported": tn,
        "accuracy": (tp + tn) / n if n else None,
        "balanced_accuracy": compute_balanced_accuracy(truth, predicted),
        "f1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None,
        "auroc": compute_auroc(truth, p),
        "brier": float(((p - truth) ** 2).mean()) if n else None,
        "log_loss": compute_log_loss(truth, p) if n else None,
        "ece": compute_ece(truth, p) if n else None,
        "ece_null": ece_null,
        "always_hallucinated": (tp + fn) / n if n else None,
    }


def _truth_from(labels: Sequence[Label]) -> BoolArray:
    return np.array([label == "hallucinated" for label in labels], dtype=bool)


def compare_balanced_accuracy(
    labels: Sequence[Label], groups: Sequence[str], before: Sequence[float], after: Sequence[float]
) -> dict[str, float] | None:
    """Return the gain in balanced accuracy with its interval, rounded; None for one label."""
    truth = _truth_from(labels)
    old, new = np.asarray(before) >= 0.5, np.asarray(after) >= 0.5
    if truth.all() or not truth.any():
        return None
    gain = (new == truth).astype(np.float64) - (old == truth)
    places = number_names(groups, is_sorted=False)
    return bootstrap_measures({"": make_balanced_mean(truth, gain)}, places, METRICS_SEED)[
        ""
    ].rounded()


def compute_reliability(
    labels: Sequence[Label], probabilities: Sequence[float]
) -> list[dict[str, float]]:
    """Return `compute_confidence_bands` of labels and p_hallucinated."""
    return compute_confidence_bands(
        _truth_from(labels), np.asarray(probabilities, np.float64), CONFIDENCE_BAND_EDGES
    )


def compute_confidence_bands(
    truth: BoolArray, p: FloatArray, edges: Sequence[float]
) -> list[dict[str, float]]:
    """Return how often verdicts of each confidence band were right: low, high, n, right."""
    right, confidence = (p >= 0.5) == truth, np.maximum(p, 1 - p)
    bands: list[dict[str, float]] = []
    for low, high in itertools.pairwise(edges):
        inside = (confidence >= low) & (
            (confidence < high) | (high == edges[-1]) & (confidence == high)
        )
        n, right_count = int(inside.sum()), int(right[inside].sum())
        bands.append({"low": low, "high": high, "n": n, "right": right_count})
    return bands


def number_names(names: Sequence[str], *, is_sorted: bool = True) -> IndexArray:
    """Return (n,) each name as a number from 0, in alphabetical order or order of appearance."""
    different = sorted(set(names)) if is_sorted else dict.fromkeys(names)
    place = {name: number for number, name in enumerate(different)}
    return np.array([place[name] for name in names], dtype=np.int64)


def get_folds(groups: Sequence[str]) -> IndexArray:
    """Return (n,) the fold of each row, by the digest of its group."""
    digests = (hashlib.sha256(group.encode("utf-8", "surrogatepass")).digest() for group in groups)
    folds = [int.from_bytes(digest[:4], "big") % FOLD_COUNT for digest in digests]
    return np.array(folds, dtype=np.int64)


def deal_folds(groups: Sequence[str], labels: FloatArray, seed: int) -> IndexArray:
    """Return (n,) the fold of each case: whole groups, labels spread evenly, the same for a seed.

    Raises InputError: there are fewer groups than folds.
    """
    group_of = number_names(groups)
    group_count = int(group_of.max()) + 1 if len(group_of) else 0
    if group_count < FOLD_COUNT:
        raise InputError(f"Expected at least {FOLD_COUNT} groups of cases, found {group_count}.")
    sizes = np.bincount(group_of, minlength=group_count)
    wrong_shares = np.bincount(group_of, weights=labels, minlength=group_count) / sizes
    tie_breakers = np.random.default_rng(seed).random(group_count)
    order = np.lexsort((tie_breakers, -sizes, -(wrong_shares >= 0.5).astype(np.int64)))
    fold_of_group = np.empty(group_count, dtype=np.int64)
    fold_of_group[order] = np.arange(group_count) % FOLD_COUNT
    return np.asarray(fold_of_group[group_of])


def iter_grouped_folds(
    is_wrong: BoolArray, groups: IndexArray | Sequence[str], seed: int, count: int = FOLD_COUNT
) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield (fit, test) rows; groups lie on one side, labels are shared out evenly."""
    from sklearn.model_selection import StratifiedGroupKFold

    splitter = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    yield from splitter.split(np.zeros(len(is_wrong)), is_wrong, groups)


@contextlib.contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """Limit numerics to one thread; sums this small run up to 20 times slower on busy cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield


def compare_versions(store: Store, home: Path, one: str, other: str) -> dict[str, Any]:
    """Return any two versions side by side on today's hold-out; 10 ms a row."""
    before, after = load_classifier(home, one), load_classifier(home, other)
    return {"versions": [one, other]} | compare_classifiers(
        load_training_set(store).held, before, after
    )


def compare_classifiers(
    held: Sequence[TrainingRow], before: Classifier, after: Classifier
) -> dict[str, Any]:
    """Return the figures of both, their difference with its interval, and every row.

    A row has both probabilities and both verdicts, which are unclear if the judge disagrees.
    """
    old, new = ([c.probability(row.text, row.p) for row in held] for c in (before, after))
    labels, groups = [row.label for row in held], [row.group for row in held]
    return {
        "before": compute_classifier_figures(labels, old),
        "after": compute_classifier_figures(labels, new),
        "difference": compare_balanced_accuracy(labels, groups, old, new),
        "reliability": {
            "before": compute_reliability(labels, old),
            "after": compute_reliability(labels, new),
        },
        "rows": [
            {
                "run_id": row.run_id,
                "case_id": row.case_id,
                "claim": row.claim[:MAX_CLAIM_CHARS],
                "label": row.label,
                "before": p,
                "after": q,
                "verdicts": [_get_verdict_label(row, each) for each in (p, q)],
            }
            for row, p, q in zip(held, old, new, strict=True)
        ],
    }


def _get_verdict_label(row: TrainingRow, p: float) -> Label:
    if row.judged is None:
        return "hallucinated" if p >= 0.5 else "supported"
    return row.judged if row.by_tool else combine_labels(row.judged, p)


def _deciding_figure(held: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return (name, before, after) of the figure that decides, or None without one."""
    for key in (DECIDING_METRIC, "accuracy"):
        before, after = (held.get(side, {}).get(key) for side in ("before", "after"))
        if before is not None and after is not None:
            return key, before, after
    return None


def is_figure_lower(held: Mapping[str, Any]) -> bool:
    """Return True if the figure that decides is lower after than before."""
    deciding = _deciding_figure(held)
    return deciding is not None and bool(deciding[2] < deciding[1])


def describe_difference(held: Mapping[str, Any]) -> str:
    """Return the difference between the two and how sure it is, in words."""
    deciding = _deciding_figure(held)
    if deciding is None:
        return "nothing is held out, so nothing can be compared"
    key, before, after = deciding
    words = (
        f"{key.replace('_', ' ')} {after:.3f} against {before:.3f} on "
        f"{held['after'].get('n', 'the')} held-out verdicts"
    )
    gain = held.get("difference")
    if gain is None or key != DECIDING_METRIC:
        return words
    return (
        f"{words}; difference {gain['value']:+.3f}, 95% interval {gain['low']:+.3f} to "
        f"{gain['high']:+.3f}"
    )


def describe_training_data(
    data: TrainingSet, seed_texts: int, options: TrainingOptions
) -> dict[str, Any]:
    """Return the part of a version's card about what it learned from, and with what."""
    sides = {"train": data.train, "calibration": data.calibration, "holdout": data.held}

    def count(values: Iterable[str]) -> dict[str, int]:
        return dict(Counter(values).most_common())

    return {
        "trained_on": {
            "corrections": sorted(row.correction_id for row in data.train),
            "corrections_sha256": compute_rows_digest(data.train),
            "calibration_corrections": sorted(row.correction_id for row in data.calibration),
            "labels": count(row.label for row in data.train),
            "seed_texts": seed_texts,
            "languages": count(row.language for row in data.train),
            "authors": count(person for row in data.train for person in row.people),
        },
        "splits": {name: len({row.group for row in rows}) for name, rows in sides.items()},
        "options": options.as_dict(),
        "packages": {name: importlib.metadata.version(name) for name in CARD_PACKAGES},
    }


def list_card_limits(card: Mapping[str, Any]) -> list[str]:
    """Return what the version must not be relied on for."""
    return [*CARD_LIMITS, *([CROSS_FITTED_LIMIT] if card["calibration"]["cross_fitted"] else [])]


def render_card(card: Mapping[str, Any]) -> str:
    """Return the card as a page of Markdown."""
    trained, splits, held = card["trained_on"], card["splits"], card["holdout"]
    calibration, before, after = card["calibration"], held["before"], held["after"]
    shown = {name: value for name, value in after.items() if not isinstance(value, dict)}
    figures = "\n".join(
        f"| {name.replace('_', ' ')} | {format_figure(before[name])} | {format_figure(value)} |"
        for name, value in shown.items()
    )
    limits = "\n".join(f"- {limit}" for limit in card["limits"])
    cross_fitted = " (cross-fitted)" if calibration["cross_fitted"] else ""
    return f"""\
# Counterpoint classifier {card["name"]}

Reads the judge's text of a check with the judge's probability and gives the probability \
that the claim is hallucinated: a sentence encoder, fine-tuned on pairs (SetFit), with a \
logistic head, and the text's words where they told more.

- Trained by {card["author"]}, from {len(trained["corrections"])} corrections \
({_format_pairs(trained["labels"])}) and {trained["seed_texts"]} texts of our own.
- Cases: {splits["train"]} to train, {splits["calibration"]} to calibrate, \
{splits["holdout"]} held out; no case is in two of them.
- Languages: {_format_pairs(trained["languages"])}.
- Options: {_format_pairs(card["options"])}.
- Reads: {card["reads"]["read"]}, by log loss on the calibration cases \
({_format_pairs(card["reads"]["log_loss"])}).
- Calibration: {calibration["kind"]}, chosen by log loss on {calibration["n"]} rows{cross_fitted}.
- Packages: {_format_pairs(card["packages"])}.
- It took {card["seconds"]:.0f} s ({card["cpu_seconds"]:.0f} s of processor time) and \
{card["memory_mb"]} MB of memory.

## On {after["n"]} held-out verdicts, beside {card["compared_with"]}

| figure | before | this |
|---|---|---|
{figures}

## Limits

{limits}
"""


def _format_pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "none"


def format_figure(value: float | None) -> str:
    """Format a figure with three digits, a count as it is, None as a dash."""
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
