"""How well a classifier does on held-out verdicts, beside the trivial answer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from core.records import Label


def scores(labels: Sequence[Label], probabilities: Sequence[float]) -> dict[str, Any]:
    """Counts and rates of p_hallucinated at one half; rates are None where undefined.

    Positive is hallucinated. `always_hallucinated` is the accuracy of saying so every time.
    """
    truth = [label == "hallucinated" for label in labels]
    said = [p >= 0.5 for p in probabilities]
    pairs = list(zip(truth, said, strict=True))
    tp = pairs.count((True, True))
    fn = pairs.count((True, False))
    fp = pairs.count((False, True))
    tn = pairs.count((False, False))
    recall, specificity = _share(tp, tp + fn), _share(tn, tn + fp)
    balanced = None if recall is None or specificity is None else (recall + specificity) / 2
    squares = [(p - t) ** 2 for p, t in zip(probabilities, truth, strict=True)]
    return {
        "n": len(pairs),
        "true_hallucinated": tp,
        "missed_hallucinated": fn,
        "false_alarms": fp,
        "true_supported": tn,
        "accuracy": _share(tp + tn, len(pairs)),
        "balanced_accuracy": balanced,
        "f1": _share(2 * tp, 2 * tp + fp + fn),
        "brier": sum(squares) / len(squares) if squares else None,
        "always_hallucinated": _share(tp + fn, len(pairs)),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


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
