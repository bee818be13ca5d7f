"""What the corrections are worth: labels that look wrong, and what more cases would add.

Both use a quick stand-in for the classifier, logistic regression over frozen embeddings and the
judge's p, because it is fitted hundreds of times and SetFit takes a minute. Vectors are cached in
the home by the text's digest; texts are embedded one by one, as int8 activations are scaled by
batch.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.learning.metrics import (
    INTERVAL_QUANTILES,
    BoolArray,
    FloatArray,
    compute_auroc,
    iter_grouped_folds,
    iter_resamples,
    limit_to_one_thread,
    number_names,
)
from core.learning.training_set import TRAINED_LABELS, AttributedRow, TrainingRow
from core.llm.encoder import Embedder, Matrix
from core.runtime.errors import NotEnoughLabels
from core.schema.records import Label
from core.verdict.classifier import compute_logit

MAX_CACHED_TEXTS = 20_000  # texts, some 30 MB
QUICK_HEAD_C = 1.0  # scikit-learn's C, the inverse of the penalty on large weights
MIN_CASES_PER_LABEL = 15  # of each label, below which a head knows too little to doubt a person
MAX_CHECKED_ROWS = 4_000  # the newest rows; embedding them takes a minute the first time
MAX_SHOWN_ISSUES = 100
LABEL_FOLDS = 5
MIN_DRAWN_CASES = 8
MAX_CURVE_ROWS = 1_500  # the newest, of the learning curve
CURVE_SIZE_COUNT = 6
DRAWS_PER_SIZE = 5
CURVE_FOLDS = 4
CURVE_RESAMPLES = 200
LAW_REFITS = 100  # of the law, for the interval of its gain
QUALITY_SEED = 7
MIN_LAW_SIZES = 4
LAW_EXPONENTS = np.linspace(0.2, 2.0, 19)
MAX_INTERVAL_WIDTH = 0.15  # width of the last point's interval beyond which the slope is chance
MIN_NOTICEABLE_GAIN = 0.005  # gain in balanced accuracy below which nobody would notice
EmbeddingProgress = Callable[[int, int], object]
NameArray = npt.NDArray[np.str_]


def load_vectors(
    texts: Sequence[str],
    encoder: Embedder,
    home: Path,
    told: EmbeddingProgress = lambda _done, _all: None,
) -> Matrix:
    """Return (n, width) float32 unit vectors; `told` is called with (new texts done, all)."""
    path = get_vector_cache_path(home, encoder)
    cached = _read_vectors(path, encoder.width)
    names = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    new = {name: text for name, text in zip(names, texts, strict=True) if name not in cached}
    try:
        for done, (name, text) in enumerate(new.items()):
            told(done, len(new))
            cached[name] = encoder.encode([text])[0]
    finally:
        if new:
            _write_vectors(path, cached, wanted=set(names))
    no_vectors = np.zeros((0, encoder.width), dtype=np.float32)
    return np.stack([cached[name] for name in names]) if names else no_vectors


def get_vector_cache_path(home: Path, encoder: Embedder) -> Path:
    """Return the cache file of one encoder's vectors."""
    name = hashlib.sha256(encoder.id.encode()).hexdigest()[:16]
    return home / "cache" / f"vectors-{name}.safetensors"


def _read_vectors(path: Path, width: int) -> dict[str, Matrix]:
    """Return the cached vectors by digest; none if the file is missing or damaged."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
        digests, vectors = arrays["digests"], arrays["vectors"]
        is_whole = digests.shape == (len(vectors), 32) and vectors.shape == (len(digests), width)
    except (OSError, KeyError, ValueError, SafetensorError):  # the vectors are computed again
        return {}
    if not is_whole or digests.dtype != np.uint8 or vectors.dtype != np.float32:
        return {}
    return {bytes(d).hex(): v for d, v in zip(digests, vectors, strict=True)}


def _write_vectors(path: Path, known: dict[str, Matrix], wanted: set[str]) -> None:
    """Cache the vectors, those of the present texts first; a full disk only costs time."""
    from safetensors.numpy import save_file

    names = sorted(known, key=lambda name: name not in wanted)[:MAX_CACHED_TEXTS]
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "digests": np.array([list(bytes.fromhex(name)) for name in names], dtype=np.uint8),
        "vectors": np.stack([known[name] for name in names]).astype(np.float32),
    }
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(arrays, part)
        part.replace(path)


def build_head_inputs(rows: Sequence[TrainingRow], vectors: Matrix) -> FloatArray:
    """Return (n, width + 1): each text's vector and the judge's log odds (0 if it gave no p)."""
    return np.column_stack([vectors.astype(np.float64), [compute_logit(row.p) for row in rows]])


def flag_hallucinated(rows: Sequence[TrainingRow]) -> BoolArray:
    """Return (n,) True where people say hallucinated."""
    return np.array([row.label == "hallucinated" for row in rows], dtype=bool)


def count_cases_by_label(rows: Sequence[TrainingRow]) -> dict[str, int]:
    """Return how many different cases each label has."""
    return {
        label: len({row.group for row in rows if row.label == label}) for label in TRAINED_LABELS
    }


def predict_with_quick_head(inputs: FloatArray, truth: BoolArray, asked: FloatArray) -> FloatArray:
    """Return p_hallucinated of the `asked` rows, learned from `inputs`, which hold both labels."""
    from sklearn.linear_model import LogisticRegression

    head = LogisticRegression(C=QUICK_HEAD_C, class_weight="balanced", max_iter=500)
    fitted = head.fit(inputs, truth)
    return np.asarray(fitted.predict_proba(asked)[:, 1], dtype=np.float64)


def predict_out_of_fold(inputs: FloatArray, truth: BoolArray, groups: Sequence[str]) -> FloatArray:
    """Return (n,) p_hallucinated of each row by a head that did not see its case."""
    p = np.full(len(truth), 0.5)
    with limit_to_one_thread():
        for known, tested in iter_grouped_folds(truth, groups, QUALITY_SEED, LABEL_FOLDS):
            if truth[known].any() and not truth[known].all():
                p[tested] = predict_with_quick_head(inputs[known], truth[known], inputs[tested])
    return p


@dataclass(frozen=True)
class LabelIssue:
    """A label that looks wrong; `p_label` is the probability the other cases give it, in [0, 1]."""

    taught: AttributedRow
    thinks: Label
    p_label: float


@dataclass(frozen=True)
class LabelIssues:
    """The labels that look wrong, most doubtful first, of the `looked_at` newest of `all` rows."""

    found: tuple[LabelIssue, ...]
    looked_at: int
    all: int


def find_doubtful_labels(
    taught: Sequence[AttributedRow],
    encoder: Embedder,
    home: Path,
    told: EmbeddingProgress = lambda _done, _all: None,
) -> LabelIssues:
    """Find labels that look wrong by confident learning (Northcutt et al. 2021), also held out."""
    looked_at = taught[-MAX_CHECKED_ROWS:]
    rows = [one.row for one in looked_at]
    require_cases_per_label(count_cases_by_label(rows), MIN_CASES_PER_LABEL)
    truth = flag_hallucinated(rows)
    inputs = build_head_inputs(rows, load_vectors([row.text for row in rows], encoder, home, told))
    p = predict_out_of_fold(inputs, truth, [row.group for row in rows])
    by_case: dict[str, LabelIssue] = {}
    for place in _find_label_issues(truth, p):
        one = looked_at[place]
        p_label = p[place] if truth[place] else 1.0 - p[place]
        thinks: Label = "supported" if truth[place] else "hallucinated"
        by_case.setdefault(one.case_id, LabelIssue(one, thinks, round(float(p_label), 4)))
    return LabelIssues(tuple(by_case.values())[:MAX_SHOWN_ISSUES], len(looked_at), len(taught))


def _find_label_issues(truth: BoolArray, p: FloatArray) -> list[int]:
    """Return the places of rows whose label looks wrong, the most doubtful first."""
    from cleanlab.filter import find_label_issues  # type: ignore[import-untyped]

    both = np.column_stack([1.0 - p, p])
    # Confident learning finds fewer than the default, and more of them are wrong. One job, because
    # a server with threads must not fork.
    options = {"filter_by": "confident_learning", "return_indices_ranked_by": "self_confidence"}
    return list(map(int, find_label_issues(truth.astype(int), both, n_jobs=1, **options)))


def require_cases_per_label(counts: dict[str, int], fewest: int) -> None:
    """Raise NotEnoughLabels if a label has fewer cases than that."""
    if min(counts.values()) < fewest:
        words = " and ".join(f"{count} {label}" for label, count in counts.items())
        raise NotEnoughLabels(
            f"Too few to say: expected at least {fewest} cases of each label, found {words}.",
            counts=counts,
        )


@dataclass(frozen=True)
class LearningCurvePoint:
    """Quality after learning from `cases`: mean, and the middle 95 % of resamples of the cases."""

    cases: int
    balanced: float
    balanced_low: float
    balanced_high: float
    auroc: float


@dataclass(frozen=True)
class LearningCurve:
    """The points, and what twice as many cases would add; `law` is (a, b, c) of a - b·n^-c."""

    points: tuple[LearningCurvePoint, ...]
    cases: int
    law: tuple[float, float, float] | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None

    def expected(self, cases: int) -> float | None:
        """Return the balanced accuracy to expect after that many cases, in [0, 1]."""
        return None if self.law is None else evaluate_law(self.law, cases)


def evaluate_law(law: tuple[float, float, float], cases: float) -> float:
    """Return the law's value at a number of cases, at most 1."""
    a, b, c = law
    return min(1.0, float(a - b * cases**-c))


def measure_learning_curve(
    rows: Sequence[TrainingRow],
    encoder: Embedder,
    home: Path,
    told: EmbeddingProgress = lambda _done, _all: None,
) -> LearningCurve:
    """Return the curve over the newest rows. Raises NotEnoughLabels: a label has too few cases."""
    used = list(rows[-MAX_CURVE_ROWS:])
    require_cases_per_label(count_cases_by_label(used), MIN_CASES_PER_LABEL)
    vectors = load_vectors([row.text for row in used], encoder, home, told)
    return fit_learning_curve(
        build_head_inputs(used, vectors), flag_hallucinated(used), [row.group for row in used]
    )


def fit_learning_curve(
    inputs: FloatArray, truth: BoolArray, groups: Sequence[str]
) -> LearningCurve:
    """Return the curve over a head's inputs (n, d) and labels; equal inputs give equal curves."""
    names = np.array(groups)
    cases = len(set(groups))
    largest = int(cases * (CURVE_FOLDS - 1) / CURVE_FOLDS)  # as many as a fold leaves to learn from
    spaced = np.geomspace(min(MIN_DRAWN_CASES, largest), largest, CURVE_SIZE_COUNT)
    sizes = sorted({round(float(size)) for size in spaced})
    with limit_to_one_thread():
        p = _learn_at_sizes(inputs, truth, names, sizes)
    return _fit_curve(sizes, p, truth, names, cases)


def _learn_at_sizes(
    inputs: FloatArray, truth: BoolArray, names: NameArray, sizes: Sequence[int]
) -> FloatArray:
    """Return (sizes, draws, n): p of each row by a head that learned from that many other cases."""
    p = np.full((len(sizes), DRAWS_PER_SIZE, len(truth)), 0.5)
    for draw in range(DRAWS_PER_SIZE):
        random = np.random.default_rng([QUALITY_SEED, draw])
        for known, tested in iter_grouped_folds(
            truth, list(names), QUALITY_SEED + draw, CURVE_FOLDS
        ):
            # An order in which both labels come as evenly as their shares allow.
            parts = []
            for label in (True, False):
                own_names = random.permutation(np.unique(names[known][truth[known] == label]))
                parts += [((n + 0.5) / len(own_names), str(own)) for n, own in enumerate(own_names)]
            order = list(dict.fromkeys(name for _, name in sorted(parts)))
            for place, size in enumerate(sizes):
                used = known[np.isin(names[known], order[:size])]
                own = truth[used]
                if own.any() and not own.all():
                    p[place, draw, tested] = predict_with_quick_head(
                        inputs[used], own, inputs[tested]
                    )
    return p


def _fit_curve(
    sizes: list[int], p: FloatArray, truth: BoolArray, names: NameArray, cases: int
) -> LearningCurve:
    balanced = _balanced_accuracies(p, truth, np.ones((1, len(truth))))[0]
    weight_batches = iter_resamples(number_names(names.tolist()), QUALITY_SEED, CURVE_RESAMPLES)
    batches = [_balanced_accuracies(p, truth, weights) for weights in weight_batches]
    resamples = np.concatenate(batches)
    ends = np.nanquantile(resamples, INTERVAL_QUANTILES, axis=0)
    aurocs = [
        np.mean(np.array([compute_auroc(truth, q) for q in draws], np.float64)) for draws in p
    ]
    points = tuple(
        LearningCurvePoint(size, *(float(value) for value in values))
        for size, *values in zip(sizes, balanced, *ends, aurocs, strict=True)
    )
    law = _fit_law(sizes, balanced)
    laws = (_fit_law(sizes, values) for values in resamples[:LAW_REFITS])
    all_gains = (_gain_of_doubling(own, cases) for own in laws)
    gains = [gain for gain in all_gains if gain is not None]
    least, most = (
        (float(q) for q in np.quantile(gains, INTERVAL_QUANTILES)) if gains else (None, None)
    )
    return LearningCurve(points, cases, law, _gain_of_doubling(law, cases), least, most)


def _balanced_accuracies(p: FloatArray, truth: BoolArray, weights: FloatArray) -> FloatArray:
    """Return (resamples, sizes) balanced accuracy at one half, averaged over draws of cases."""
    right = ((p >= 0.5) == truth).mean(axis=1)  # (sizes, n)
    with np.errstate(invalid="ignore"):
        sensitivity, specificity = (
            ((weights * of_label) @ right.T) / (weights * of_label).sum(axis=1, keepdims=True)
            for of_label in (truth, ~truth)
        )
    return np.asarray((sensitivity + specificity) / 2)


def _fit_law(sizes: Sequence[int], values: FloatArray) -> tuple[float, float, float] | None:
    """Fit the rising y = a - b·n^-c (Figueroa et al. 2012) to the values, or None if too few."""
    if len(sizes) < MIN_LAW_SIZES or np.isnan(values).any():
        return None
    weights = np.array(sizes, dtype=np.float64)
    laws = []
    for c in LAW_EXPONENTS:
        x = weights**-c
        mean_x, mean_y = np.average(x, weights=weights), np.average(values, weights=weights)
        spread = np.average((x - mean_x) ** 2, weights=weights)
        b = max(0.0, -np.average((x - mean_x) * (values - mean_y), weights=weights) / spread)
        a = min(1.0, mean_y + b * mean_x)
        squared_error = float(np.average((a - b * x - values) ** 2, weights=weights))
        laws.append((squared_error, (float(a), float(b), float(c))))
    return min(laws, key=lambda law: law[0])[1]


def _gain_of_doubling(law: tuple[float, float, float] | None, cases: int) -> float | None:
    return None if law is None else evaluate_law(law, 2 * cases) - evaluate_law(law, cases)


def advise_on_cases(missing: Mapping[str, int], curve: LearningCurve | None) -> str:
    """Return in one sentence what would help most."""
    if missing:
        words = " and ".join(f"{n} more {label}" for label, n in missing.items())
        is_one = sum(missing.values()) == 1
        return f"{words} {'case is' if is_one else 'cases are'} needed before training can start."
    if curve is None or curve.gain is None or curve.gain_low is None or curve.gain_high is None:
        return "Too few cases to say what more of them would add."
    last = curve.points[-1]
    if last.balanced_high - last.balanced_low > MAX_INTERVAL_WIDTH:
        return (
            f"Too few cases to say what more of them would add: on {curve.cases} cases the quality "
            f"itself is only known to lie between {last.balanced_low:.2f} and "
            f"{last.balanced_high:.2f}."
        )
    if curve.gain < MIN_NOTICEABLE_GAIN:
        return "Twice as many cases of the same kind would hardly add anything."
    gain, low, high = (100 * own for own in (curve.gain, curve.gain_low, curve.gain_high))
    return (
        f"Twice as many cases would add about {gain:.1f} points of balanced accuracy "
        f"({low:.1f} to {high:.1f})."
    )
