"""What more corrected cases would add: the quick head's quality against how many it learned from.

Cases are drawn at several sizes, several times, and asked about in folds that share no case. An
inverse power law (y = a - b·n^-c; Figueroa et al. 2012) through the means says what twice as many
would give. The quick head reads frozen embeddings: SetFit's level differs, its slope less so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.learning.heads import (
    Numbers,
    Places,
    Told,
    Truth,
    cases_by_label,
    inputs_of,
    on_one_core,
    probabilities,
    truth_of,
    vectors_of,
)
from core.learning.label_errors import require_cases
from core.learning.metrics import auroc
from core.learning.training_set import Row
from core.learning.weights import grouped_folds
from core.llm.encoder import Embedder

FEWEST_CASES = 15  # of each label
FEWEST_TO_DRAW = 8
MOST_ROWS = 1_500  # the newest
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

Names = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Point:
    """Quality after learning from `cases`: mean and the middle 95 of 100 resamples of the cases."""

    cases: int
    balanced: float
    balanced_low: float
    balanced_high: float
    auroc: float


@dataclass(frozen=True)
class Curve:
    """The points and what twice as many cases would add to balanced accuracy.

    `law` is (a, b, c) of a - b·n^-c, None where no such line fits.
    """

    points: tuple[Point, ...]
    cases: int
    law: tuple[float, float, float] | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None

    def expected(self, cases: int) -> float | None:
        """Balanced accuracy to expect after that many cases, in [0, 1]."""
        return None if self.law is None else min(1.0, at_size(self.law, cases))


def at_size(law: tuple[float, float, float], cases: float) -> float:
    """The law's value at a number of cases."""
    a, b, c = law
    return float(a - b * cases**-c)


def learning_curve(
    rows: Sequence[Row], encoder: Embedder, home: Path, told: Told = lambda _done, _all: None
) -> Curve:
    """The curve over the newest rows.

    Raises:
        NotEnoughLabels: a label has too few cases to say anything.
    """
    used = list(rows[-MOST_ROWS:])
    require_cases(cases_by_label(used), FEWEST_CASES)
    vectors = vectors_of([row.text for row in used], encoder, home, told)
    return curve_of(inputs_of(used, vectors), truth_of(used), [row.group for row in used])


def curve_of(inputs: Numbers, truth: Truth, groups: Sequence[str]) -> Curve:
    """The curve over what a head reads, (n, d), and what is right; equal inputs, equal curves."""
    names = np.array(groups)
    cases = len(set(groups))
    sizes = _sizes(int(cases * (FOLDS - 1) / FOLDS))
    with on_one_core():
        said = _said(inputs, truth, names, sizes)
    return _curve(sizes, said, truth, names, cases)


def _said(inputs: Numbers, truth: Truth, names: Names, sizes: Sequence[int]) -> Numbers:
    """(sizes, draws, n): p of each row by a head that learned from that many other cases."""
    said = np.full((len(sizes), DRAWS, len(truth)), 0.5)
    for draw in range(DRAWS):
        random = np.random.default_rng([SEED, draw])
        for known, asked in grouped_folds(truth, list(names), SEED + draw, FOLDS):
            order = _order(names[known], truth[known], random)
            for place, size in enumerate(sizes):
                taken = known[np.isin(names[known], order[:size])]
                if truth[taken].any() and not truth[taken].all():
                    said[place, draw, asked] = probabilities(
                        inputs[taken], truth[taken], inputs[asked]
                    )
    return said


def _sizes(most: int) -> list[int]:
    """Log-spaced numbers of cases up to the most that a fold leaves to learn from."""
    spaced = np.geomspace(min(FEWEST_TO_DRAW, most), most, SIZES)
    return sorted({round(float(size)) for size in spaced})


def _order(names: Names, truth: Truth, random: np.random.Generator) -> list[str]:
    """Cases in an order in which both labels come as evenly as their shares allow."""
    parts = []
    for label in (True, False):
        own = random.permutation(np.unique(names[truth == label]))
        parts += [((place + 0.5) / len(own), str(name)) for place, name in enumerate(own)]
    return list(dict.fromkeys(name for _, name in sorted(parts)))


def _curve(sizes: list[int], said: Numbers, truth: Truth, names: Names, cases: int) -> Curve:
    balanced = _balanced(said, truth, np.arange(len(truth)))
    random = np.random.default_rng(SEED)
    own = np.unique(names, return_inverse=True)[1]
    of_case = [np.flatnonzero(own == number) for number in range(cases)]
    drawn = []
    for _ in range(RESAMPLES):
        picked = random.integers(0, cases, cases)
        drawn.append(_balanced(said, truth, np.concatenate([of_case[i] for i in picked])))
    again = np.array(drawn)
    points = tuple(
        Point(
            size,
            float(balanced[place]),
            float(np.nanquantile(again[:, place], 0.025)),
            float(np.nanquantile(again[:, place], 0.975)),
            float(np.array([auroc(truth, p) for p in said[place]], np.float64).mean()),
        )
        for place, size in enumerate(sizes)
    )
    law = _law(sizes, balanced)
    gains = [
        gain for values in again[:REFITS] if (gain := _gain(_law(sizes, values), cases)) is not None
    ]
    low, high = (float(q) for q in np.quantile(gains, (0.025, 0.975))) if gains else (None, None)
    return Curve(points, cases, law, _gain(law, cases), low, high)


def _balanced(said: Numbers, truth: Truth, places: Places) -> Numbers:
    """(sizes,) balanced accuracy at one half over these places, a mean over the draws."""
    right = (said[:, :, places] >= 0.5) == truth[places]
    is_true = truth[places]
    with np.errstate(invalid="ignore"):
        recall = right[:, :, is_true].mean(axis=2) if is_true.any() else np.nan
        passed = right[:, :, ~is_true].mean(axis=2) if not is_true.all() else np.nan
    both: Numbers = (recall + passed) / 2 * np.ones(said.shape[:2])
    return np.asarray(both.mean(axis=1))


def _law(sizes: Sequence[int], values: Numbers) -> tuple[float, float, float] | None:
    """The rising inverse power law nearest to the values; None where they are too few for one.

    Large draws vary less and count for more. For each exponent the rest is a straight line.
    """
    if len(sizes) < FEWEST_SIZES or np.isnan(values).any():
        return None
    weights = np.array(sizes, dtype=np.float64)
    best: tuple[float, tuple[float, float, float]] | None = None
    for c in EXPONENTS:
        x = weights**-c
        mean_x, mean_y = np.average(x, weights=weights), np.average(values, weights=weights)
        spread = np.average((x - mean_x) ** 2, weights=weights)
        b = max(0.0, -np.average((x - mean_x) * (values - mean_y), weights=weights) / spread)
        a = min(1.0, mean_y + b * mean_x)
        apart = float(np.average((a - b * x - values) ** 2, weights=weights))
        if best is None or apart < best[0]:
            best = (apart, (float(a), float(b), float(c)))
    return best[1] if best else None


def _gain(law: tuple[float, float, float] | None, cases: int) -> float | None:
    if law is None:
        return None
    return min(1.0, at_size(law, 2 * cases)) - min(1.0, at_size(law, cases))


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
    return (
        f"Twice as many cases would add about {_points(curve.gain)} points of balanced accuracy "
        f"({_points(curve.gain_low)} to {_points(curve.gain_high)})."
    )


def _points(share: float) -> str:
    return f"{100 * share:.1f}"
