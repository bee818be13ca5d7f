"""How well a classifier does on held-out verdicts, beside the trivial answer and chance.

From which confidence on a project's verdicts may stand by themselves (selective answers).
Thresholds of a fixed row are tested from the strictest on: that the share of wrong verdicts at or
above it is the wanted one or more. Those that are refused hold together with 90 % certainty
(Learn then Test: Angelopoulos and others 2022, with MAPIE's exact binomial p-values). The
answered verdicts must be such as will come; where people were asked about the unsure ones first,
they hold more errors than others at the same confidence, and the limit is rather too strict than
too lax.
"""

from __future__ import annotations

import itertools
import logging
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ReviewError
from core.learning.track_record import Record, Share, counted, share_of
from core.records import Label, Project
from core.review.selective_prediction import (
    ASSURANCE,
    KIND,
    Limit,
    Policy,
    body_of,
    policy_of,
    reorder,
    require_rate,
)
from core.store import Store
from core.store.answered import Answered
from core.store.versions import NONE, Choice, Learned

LOGGER = logging.getLogger(__name__)
# Fixed, not chosen from the answers: a threshold that was looked for would promise too much.
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
ENOUGH_AT_RANDOM = 100  # from here on the others are not needed
RATES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
MOST_POINTS = 200


@dataclass(frozen=True)
class Point:
    """Where verdicts of at least that confidence are answered: the share of all, and the errors."""

    threshold: float
    answered: float
    wrong: Share


def fewest_for(wanted: float) -> int:
    """How many answered verdicts it takes to promise anything, if not one of them is wrong."""
    return math.ceil(math.log(1.0 - ASSURANCE) / math.log(1.0 - wanted))


def evidence(verdicts: Sequence[Answered]) -> tuple[Sequence[Answered], bool]:
    """(those to fit a limit on, whether these are only the ones drawn at random)."""
    drawn = [one for one in verdicts if one.is_random]
    return (drawn, True) if len(drawn) >= ENOUGH_AT_RANDOM else (verdicts, False)


def limit_of(verdicts: Sequence[Answered], wanted: float) -> Limit:
    """The lowest threshold that holds the wanted error rate, for verdicts of one kind.

    Raises:
        InputError: the rate is none that can be held.
    """
    require_rate(wanted)
    taken, is_random = evidence(verdicts)
    version, roster = verdicts[0].version, verdicts[0].roster
    counts = [(t, _errors(taken, t)) for t in reversed(THRESHOLDS)]
    # How many there are says nothing of how many are wrong, so the row may begin where it can pass.
    tested = [(t, wrong) for t, wrong in counts if wrong.n >= fewest_for(wanted)]
    passed = _passed([wrong for _, wrong in tested], wanted)
    if not passed:
        return Limit(version, roster, None, len(taken), 0, 0, is_random)
    threshold, wrong = tested[passed - 1]
    return Limit(version, roster, threshold, len(taken), wrong.n, wrong.right, is_random)


def _errors(verdicts: Sequence[Answered], threshold: float) -> Share:
    """How many verdicts of at least that confidence are wrong, of how many."""
    right = share_of(one for one in verdicts if one.confidence >= threshold)
    return Share(right.n - right.right, right.n)


def _passed(tested: Sequence[Share], wanted: float) -> int:
    """How many thresholds hold, from the strictest on.

    Not by MAPIE's `BinaryClassificationController`: it would take the order from the answers.
    """
    if not tested:
        return 0
    import numpy as np
    from mapie.risk_control.fwer_control import control_fwer
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    shares = np.array([wrong.value for wrong in tested])
    sizes = np.array([wrong.n for wrong in tested])
    p_values = compute_hoeffding_bentkus_p_value(shares, sizes, wanted, binary=True)[:, 0]
    return len(control_fwer(p_values, 1.0 - ASSURANCE, "fixed_sequence"))


def curve(verdicts: Sequence[Answered]) -> list[Point]:
    """For each confidence that occurs, the strictest first, what answering from there on gives.

    Of very many confidences some are left out, never the last one.
    """
    ordered = sorted(verdicts, key=lambda one: -one.confidence)
    points: list[Point] = []
    wrong = 0
    for place, one in enumerate(ordered, start=1):
        wrong += not one.is_right
        if place == len(ordered) or ordered[place].confidence < one.confidence:
            points.append(Point(one.confidence, place / len(ordered), Share(wrong, place)))
    step = -(-len(points) // MOST_POINTS) or 1
    return points[::-1][::step][::-1]


def area(verdicts: Sequence[Answered]) -> float:
    """The mean error rate over all shares of verdicts answered, the surest first (AURC).

    Verdicts of one confidence count as answered in any order. In a random order of all it would be
    the error rate of all.
    """
    total, before, wrong = 0.0, 0, 0.0
    groups: dict[float, list[Answered]] = {}
    for one in verdicts:
        groups.setdefault(one.confidence, []).append(one)
    for confidence in sorted(groups, reverse=True):
        own = groups[confidence]
        rate = 1.0 - share_of(own).value
        total += sum((wrong + rate * k) / (before + k) for k in range(1, len(own) + 1))
        before, wrong = before + len(own), wrong + rate * len(own)
    return total / before if before else 0.0


def fit(
    store: Store, project: Project, by: str, now: float, known: Record | None = None
) -> Policy | None:
    """Fit the project's limits anew and take them into use; None where it wants no rate.

    Call it outside of a transaction: counting takes seconds where very much was said. `known` is
    the project's record, if it is at hand.
    """
    if project.error_rate is None:
        with store.writing():
            # not `in_use`: one that was tampered with cannot be read, and must go as well
            choices = store.learned.choices(KIND, project.id)
            if choices and choices[0].number != NONE:
                store.learned.use(Choice(KIND, project.id, NONE, now, by, "no rate is wanted"))
            reorder(store, project)
        return None
    found = known or counted(store, project.id)
    limits = [limit_of(verdicts, project.error_rate) for verdicts in found.groups.values()]
    body = body_of(project.error_rate, limits)
    with store.writing():
        number = store.learned.add(Learned(KIND, project.id, now, by, body))
        store.learned.use(Choice(KIND, project.id, number, now, by, ""))
        reorder(store, project)
    return policy_of(store, project)


def fit_all(store: Store, by: str, now: float) -> None:
    """Fit the limits of every project that wants a rate: for when another version is active.

    Its own held-out verdicts tell what it is worth, once it is the active one. What goes before is
    done already: a project whose limits cannot be fitted keeps none for the version, so that its
    verdicts are for people, and is fitted again on Confidence.
    """
    for project in store.projects.all():
        if project.error_rate is not None:
            try:
                fit(store, project, by, now)
            except (ReviewError, sqlite3.Error) as error:
                LOGGER.warning("no limits were fitted for project %s: %r", project.id, error)


Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
BINS = 10
DRAWS = 1000
SEED = 7
MIDDLE = (2.5, 97.5)  # percentiles: 95 %
SUREST = 1e-6  # a p of 0 or 1 that was wrong would cost without end
DIGITS = 4


def scores(labels: Sequence[Label], probabilities: Sequence[float]) -> dict[str, Any]:
    """Counts and rates of p_hallucinated at one half; rates are None where undefined.

    Positive is hallucinated. `always_hallucinated` is the accuracy of saying so every time. `ece`
    has ten bins of equal width over p; `ece_null` is what a perfectly calibrated classifier with
    these p would show by chance alone: mean, and the middle 95 %.
    """
    truth, p = _truth(labels), np.asarray(probabilities, np.float64)
    said = p >= 0.5
    tp, fn = int((truth & said).sum()), int((truth & ~said).sum())
    fp, tn = int((~truth & said).sum()), int((~truth & ~said).sum())
    n = len(p)
    return {
        "n": n,
        "true_hallucinated": tp,
        "missed_hallucinated": fn,
        "false_alarms": fp,
        "true_supported": tn,
        "accuracy": _share(tp + tn, n),
        "balanced_accuracy": balanced_accuracy(truth, said),
        "f1": _share(2 * tp, 2 * tp + fp + fn),
        "auroc": auroc(truth, p),
        "brier": float(((p - truth) ** 2).mean()) if n else None,
        "log_loss": log_loss(truth, p) if n else None,
        "ece": ece(truth, p) if n else None,
        "ece_null": _null(p) if n else None,
        "always_hallucinated": _share(tp + fn, n),
    }


def _truth(labels: Sequence[Label]) -> Flags:
    return np.array([label == "hallucinated" for label in labels], dtype=bool)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def balanced_accuracy(truth: Flags, said: Flags) -> float | None:
    """The mean share of each label that was recognised; None where one is missing."""
    if truth.all() or not truth.any():
        return None
    return float((said[truth].mean() + (~said[~truth]).mean()) / 2)


def auroc(truth: Flags, p: Numbers) -> float | None:
    """How often a hallucinated one has the higher p; ties count half. None for one label only."""
    up, down = p[truth], np.sort(p[~truth])
    if not len(up) or not len(down):
        return None
    below = np.searchsorted(down, up, "left") + np.searchsorted(down, up, "right")
    return float(below.sum() / (2 * len(up) * len(down)))


def log_loss(truth: Flags, p: Numbers) -> float:
    """Mean surprise at what was true, in nats."""
    bounded = np.clip(p, SUREST, 1.0 - SUREST)
    return float(-np.log(np.where(truth, bounded, 1.0 - bounded)).mean())


def ece(truth: Flags, p: Numbers) -> float:
    """Expected calibration error: mean p against share of positives, bin by bin."""
    return float(_gaps(p, (p - truth)[None])[0])


def _gaps(p: Numbers, differences: Numbers) -> Numbers:
    """ECE of each row of `differences`, (draws, n), which are p less what was true."""
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    inside = (bins[:, None] == np.arange(BINS)).astype(np.float64)
    return np.asarray(np.abs(differences @ inside).sum(axis=1) / len(p))


def _null(p: Numbers) -> dict[str, float]:
    random = np.random.default_rng(SEED)
    at_once = max(1, 2_000_000 // len(p))
    drawn = [
        _gaps(p, p - (random.random((min(at_once, DRAWS - start), len(p))) < p))
        for start in range(0, DRAWS, at_once)
    ]
    errors = np.concatenate(drawn)
    low, high = np.percentile(errors, MIDDLE)
    return {
        "mean": round(float(errors.mean()), DIGITS),
        "low": round(float(low), DIGITS),
        "high": round(float(high), DIGITS),
    }


def difference(
    labels: Sequence[Label],
    groups: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
) -> dict[str, float] | None:
    """Balanced accuracy after less that before, with a paired 95 % bootstrap interval over cases.

    None where a label is missing. `value` is rounded alike, so that equal stays equal.
    """
    truth = _truth(labels)
    old, new = np.asarray(before) >= 0.5, np.asarray(after) >= 0.5
    one, other = balanced_accuracy(truth, old), balanced_accuracy(truth, new)
    if one is None or other is None:
        return None
    numbers = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    places = np.array([numbers[group] for group in groups])
    random = np.random.default_rng(SEED)
    count = len(numbers)
    times = random.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    gain = (new == truth).astype(np.float64) - (old == truth)
    up = _summed(places, truth.astype(np.float64), count)
    down = _summed(places, (~truth).astype(np.float64), count)
    won_up, won_down = _summed(places, gain * truth, count), _summed(places, gain * ~truth, count)
    ups, downs = times @ up, times @ down
    has_both = (ups > 0) & (downs > 0)
    drawn = ((times @ won_up)[has_both] / ups[has_both]) / 2
    drawn = drawn + ((times @ won_down)[has_both] / downs[has_both]) / 2
    low, high = np.percentile(drawn, MIDDLE) if len(drawn) else (other - one, other - one)
    return {
        "value": round(other - one, DIGITS),
        "low": round(float(low), DIGITS),
        "high": round(float(high), DIGITS),
    }


def _summed(places: npt.NDArray[np.int64], values: Numbers, count: int) -> Numbers:
    return np.asarray(np.bincount(places, weights=values, minlength=count), np.float64)


def reliability(
    labels: Sequence[Label],
    probabilities: Sequence[float],
    edges: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
) -> list[dict[str, float]]:
    """How often verdicts of each confidence band were right: low, high, n, right."""
    bands = []
    for low, high in itertools.pairwise(edges):
        inside = [
            (label == "hallucinated") == (p >= 0.5)
            for label, p in zip(labels, probabilities, strict=True)
            if low <= max(p, 1 - p) < high or (high == edges[-1] and max(p, 1 - p) == high)
        ]
        bands.append({"low": low, "high": high, "n": len(inside), "right": sum(inside)})
    return bands
