"""What the corrections are worth: labels that look wrong, and what more cases would add.

Both go by a quick stand-in for the classifier, logistic regression over frozen embeddings and the
judge's p: it is fitted hundreds of times where SetFit takes a minute. Vectors are kept in the home
by the text's digest; texts are embedded one by one, for int8 activations are scaled by batch.
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
    MIDDLE,
    Flags,
    Numbers,
    auroc,
    grouped_folds,
    numbered,
    on_one_core,
    resampled,
)
from core.learning.training_set import LABELS, Taught, TrainingRow
from core.llm.encoder import Embedder, Matrix
from core.runtime.errors import NotEnoughLabels
from core.schema.records import Label
from core.verdict.classifier import logit_of

MOST_KEPT = 20_000  # texts, some 30 MB
STRENGTH = 1.0  # of what is fitted against the wish for small weights (scikit-learn's C)
FEWEST_CASES = 15  # of each label: below it a head knows too little to doubt a person
MOST_DOUBTED = 4_000  # the newest rows; embedding them takes a minute the first time
MOST_SHOWN = 100
LABEL_FOLDS = 5
FEWEST_TO_DRAW = 8
MOST_ROWS = 1_500  # the newest, of the learning curve
SIZES = 6
DRAWS = 5
FOLDS = 4
RESAMPLES = 200
REFITS = 100  # of the line, to see how far its gain can be trusted
SEED = 7
FEWEST_SIZES = 4
EXPONENTS = np.linspace(0.2, 2.0, 19)
WIDEST = 0.15  # of the last point's interval: beyond it the slope is chance
HARDLY = 0.005  # of balanced accuracy: less is no gain that anybody would see
Told = Callable[[int, int], object]
Names = npt.NDArray[np.str_]


def vectors_of(
    texts: Sequence[str], encoder: Embedder, home: Path, told: Told = lambda _done, _all: None
) -> Matrix:
    """(n, width) float32, of unit length; `told` hears how many new texts are done."""
    path = kept_at(home, encoder)
    known = _read(path, encoder.width)
    names = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    new = {name: text for name, text in zip(names, texts, strict=True) if name not in known}
    try:
        for done, (name, text) in enumerate(new.items()):
            told(done, len(new))
            known[name] = encoder.encode([text])[0]
    finally:
        if new:
            _write(path, known, wanted=set(names))
    none = np.zeros((0, encoder.width), dtype=np.float32)
    return np.stack([known[name] for name in names]) if names else none


def kept_at(home: Path, encoder: Embedder) -> Path:
    """The file of one encoder's vectors; another encoder has another."""
    name = hashlib.sha256(encoder.id.encode()).hexdigest()[:16]
    return home / "cache" / f"vectors-{name}.safetensors"


def _read(path: Path, width: int) -> dict[str, Matrix]:
    """What is kept, by digest; nothing where the file is missing or cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
        digests, vectors = arrays["digests"], arrays["vectors"]
        is_whole = digests.shape == (len(vectors), 32) and vectors.shape == (len(digests), width)
    except (OSError, KeyError, ValueError, SafetensorError):  # it is only made again
        return {}
    if not is_whole or digests.dtype != np.uint8 or vectors.dtype != np.float32:
        return {}
    return {bytes(d).hex(): v for d, v in zip(digests, vectors, strict=True)}


def _write(path: Path, known: dict[str, Matrix], wanted: set[str]) -> None:
    """Keep the vectors, those of the present texts first; a full disk costs only time."""
    from safetensors.numpy import save_file

    names = sorted(known, key=lambda name: name not in wanted)[:MOST_KEPT]
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "digests": np.array([list(bytes.fromhex(name)) for name in names], dtype=np.uint8),
        "vectors": np.stack([known[name] for name in names]).astype(np.float32),
    }
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(arrays, part)
        part.replace(path)


def inputs_of(rows: Sequence[TrainingRow], vectors: Matrix) -> Numbers:
    """(n, width + 1): each text's vector, and the judge's log-odds (0 where it gave no p)."""
    return np.column_stack([vectors.astype(np.float64), [logit_of(row.p) for row in rows]])


def truth_of(rows: Sequence[TrainingRow]) -> Flags:
    """(n,) True where people say hallucinated."""
    return np.array([row.label == "hallucinated" for row in rows], dtype=bool)


def cases_by_label(rows: Sequence[TrainingRow]) -> dict[str, int]:
    """How many different cases each label has."""
    return {label: len({row.group for row in rows if row.label == label}) for label in LABELS}


def probabilities(inputs: Numbers, truth: Flags, asked: Numbers) -> Numbers:
    """p_hallucinated of the rows asked about, learned from the others, which hold both labels."""
    from sklearn.linear_model import LogisticRegression

    head = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=500)
    fitted = head.fit(inputs, truth)
    return np.asarray(fitted.predict_proba(asked)[:, 1], dtype=np.float64)


def out_of_fold(inputs: Numbers, truth: Flags, groups: Sequence[str]) -> Numbers:
    """(n,) p_hallucinated of each row by a head that saw none of its case."""
    found = np.full(len(truth), 0.5)
    with on_one_core():
        for known, asked in grouped_folds(truth, groups, SEED, LABEL_FOLDS):
            if truth[known].any() and not truth[known].all():
                found[asked] = probabilities(inputs[known], truth[known], inputs[asked])
    return found


@dataclass(frozen=True)
class Doubt:
    """A label that looks wrong; `p_label` is what the other cases give it, in [0, 1]."""

    taught: Taught
    thinks: Label
    p_label: float


@dataclass(frozen=True)
class Doubts:
    """Labels that look wrong, the most doubtful first, of `looked_at` of `all` usable rows."""

    found: tuple[Doubt, ...]
    looked_at: int
    all: int


def doubts(
    taught: Sequence[Taught], encoder: Embedder, home: Path, told: Told = lambda _done, _all: None
) -> Doubts:
    """Labels that look wrong by confident learning (Northcutt et al. 2021), held-out ones too."""
    looked_at = taught[-MOST_DOUBTED:]
    rows = [one.row for one in looked_at]
    require_cases(cases_by_label(rows), FEWEST_CASES)
    truth = truth_of(rows)
    inputs = inputs_of(rows, vectors_of([row.text for row in rows], encoder, home, told))
    p = out_of_fold(inputs, truth, [row.group for row in rows])
    found: dict[str, Doubt] = {}
    for place in _issues(truth, p):
        one = looked_at[place]
        own = p[place] if truth[place] else 1.0 - p[place]
        thinks: Label = "supported" if truth[place] else "hallucinated"
        found.setdefault(one.case_id, Doubt(one, thinks, round(float(own), 4)))
    return Doubts(tuple(found.values())[:MOST_SHOWN], len(looked_at), len(taught))


def _issues(truth: Flags, p: Numbers) -> list[int]:
    from cleanlab.filter import find_label_issues  # type: ignore[import-untyped]

    both = np.column_stack([1.0 - p, p])
    # confident learning finds fewer than the default, and more of them are wrong; no processes of
    # its own beside a server's threads
    how = {"filter_by": "confident_learning", "return_indices_ranked_by": "self_confidence"}
    return list(map(int, find_label_issues(truth.astype(int), both, n_jobs=1, **how)))


def require_cases(counts: dict[str, int], fewest: int) -> None:
    """Refuse labels with too few cases."""
    if min(counts.values()) < fewest:
        words = " and ".join(f"{count} {label}" for label, count in counts.items())
        raise NotEnoughLabels(
            f"Too few to say: expected at least {fewest} cases of each label, found {words}.",
            counts=counts,
        )


@dataclass(frozen=True)
class CurvePoint:
    """Quality after learning from `cases`: mean and the middle 95 of 100 resamples of the cases."""

    cases: int
    balanced: float
    balanced_low: float
    balanced_high: float
    auroc: float


@dataclass(frozen=True)
class Curve:
    """The points, and what twice as many cases would add; `law` is (a, b, c) of a - b·n^-c."""

    points: tuple[CurvePoint, ...]
    cases: int
    law: tuple[float, float, float] | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None

    def expected(self, cases: int) -> float | None:
        """Balanced accuracy to expect after that many cases, in [0, 1]."""
        return None if self.law is None else at_size(self.law, cases)


def at_size(law: tuple[float, float, float], cases: float) -> float:
    """The law's value at a number of cases, at most 1."""
    a, b, c = law
    return min(1.0, float(a - b * cases**-c))


def learning_curve(
    rows: Sequence[TrainingRow],
    encoder: Embedder,
    home: Path,
    told: Told = lambda _done, _all: None,
) -> Curve:
    """The curve over the newest rows. Raises NotEnoughLabels: a label has too few cases."""
    used = list(rows[-MOST_ROWS:])
    require_cases(cases_by_label(used), FEWEST_CASES)
    vectors = vectors_of([row.text for row in used], encoder, home, told)
    return curve_of(inputs_of(used, vectors), truth_of(used), [row.group for row in used])


def curve_of(inputs: Numbers, truth: Flags, groups: Sequence[str]) -> Curve:
    """The curve over what a head reads, (n, d), and what is right; equal inputs, equal curves."""
    names = np.array(groups)
    cases = len(set(groups))
    most = int(cases * (FOLDS - 1) / FOLDS)  # that a fold leaves to learn from
    spaced = np.geomspace(min(FEWEST_TO_DRAW, most), most, SIZES)
    sizes = sorted({round(float(size)) for size in spaced})
    with on_one_core():
        said = _said(inputs, truth, names, sizes)
    return _curve(sizes, said, truth, names, cases)


def _said(inputs: Numbers, truth: Flags, names: Names, sizes: Sequence[int]) -> Numbers:
    """(sizes, draws, n): p of each row by a head that learned from that many other cases."""
    said = np.full((len(sizes), DRAWS, len(truth)), 0.5)
    for draw in range(DRAWS):
        random = np.random.default_rng([SEED, draw])
        for known, asked in grouped_folds(truth, list(names), SEED + draw, FOLDS):
            # an order in which both labels come as evenly as their shares allow
            parts = []
            for label in (True, False):
                own_names = random.permutation(np.unique(names[known][truth[known] == label]))
                parts += [((n + 0.5) / len(own_names), str(own)) for n, own in enumerate(own_names)]
            order = list(dict.fromkeys(name for _, name in sorted(parts)))
            for place, size in enumerate(sizes):
                taken = known[np.isin(names[known], order[:size])]
                own = truth[taken]
                if own.any() and not own.all():
                    said[place, draw, asked] = probabilities(inputs[taken], own, inputs[asked])
    return said


def _curve(sizes: list[int], said: Numbers, truth: Flags, names: Names, cases: int) -> Curve:
    balanced = _balanced(said, truth, np.ones((1, len(truth))))[0]
    drawn = resampled(numbered(names.tolist()), SEED, RESAMPLES)
    again = np.concatenate([_balanced(said, truth, weights) for weights in drawn])
    ends = np.nanquantile(again, MIDDLE, axis=0)
    aurocs = [np.mean(np.array([auroc(truth, p) for p in own], np.float64)) for own in said]
    points = tuple(
        CurvePoint(size, *(float(value) for value in values))
        for size, *values in zip(sizes, balanced, *ends, aurocs, strict=True)
    )
    law = _law(sizes, balanced)
    laws = (_law(sizes, values) for values in again[:REFITS])
    gains = [gain for own in laws if (gain := _gain(own, cases)) is not None]
    least, most = (float(q) for q in np.quantile(gains, MIDDLE)) if gains else (None, None)
    return Curve(points, cases, law, _gain(law, cases), least, most)


def _balanced(said: Numbers, truth: Flags, weights: Numbers) -> Numbers:
    """(resamples, sizes) balanced accuracy at one half, a mean over the draws of cases."""
    right = ((said >= 0.5) == truth).mean(axis=1)  # (sizes, n)
    with np.errstate(invalid="ignore"):
        recall, passed = (
            ((weights * own) @ right.T) / (weights * own).sum(axis=1, keepdims=True)
            for own in (truth, ~truth)
        )
    return np.asarray((recall + passed) / 2)


def _law(sizes: Sequence[int], values: Numbers) -> tuple[float, float, float] | None:
    """The rising y = a - b·n^-c (Figueroa et al. 2012) nearest to the values; None of too few."""
    if len(sizes) < FEWEST_SIZES or np.isnan(values).any():
        return None
    weights = np.array(sizes, dtype=np.float64)
    laws = []
    for c in EXPONENTS:
        x = weights**-c
        mean_x, mean_y = np.average(x, weights=weights), np.average(values, weights=weights)
        spread = np.average((x - mean_x) ** 2, weights=weights)
        b = max(0.0, -np.average((x - mean_x) * (values - mean_y), weights=weights) / spread)
        a = min(1.0, mean_y + b * mean_x)
        apart = float(np.average((a - b * x - values) ** 2, weights=weights))
        laws.append((apart, (float(a), float(b), float(c))))
    return min(laws, key=lambda law: law[0])[1]


def _gain(law: tuple[float, float, float] | None, cases: int) -> float | None:
    return None if law is None else at_size(law, 2 * cases) - at_size(law, cases)


def advice(missing: Mapping[str, int], curve: Curve | None) -> str:
    """What would help most, in one sentence."""
    if missing:
        words = " and ".join(f"{n} more {label}" for label, n in missing.items())
        is_one = sum(missing.values()) == 1
        return f"{words} {'case is' if is_one else 'cases are'} needed before training can start."
    if curve is None or curve.gain is None or curve.gain_low is None or curve.gain_high is None:
        return "Too few cases to say what more of them would add."
    last = curve.points[-1]
    if last.balanced_high - last.balanced_low > WIDEST:
        return (
            f"Too few cases to say what more of them would add: on {curve.cases} cases the quality "
            f"itself is only known to lie between {last.balanced_low:.2f} and "
            f"{last.balanced_high:.2f}."
        )
    if curve.gain < HARDLY:
        return "Twice as many cases of the same kind would hardly add anything."
    gain, low, high = (100 * own for own in (curve.gain, curve.gain_low, curve.gain_high))
    return (
        f"Twice as many cases would add about {gain:.1f} points of balanced accuracy "
        f"({low:.1f} to {high:.1f})."
    )
