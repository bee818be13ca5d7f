"""How well words scored by the span reader agree with those that people marked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.baseline.span_reader import between, stretches
from core.evaluation.gold import GoldRow, GoldSpan
from core.evaluation.metrics import span_scores
from core.evaluation.outcomes import Outcomes, Prediction, mark_all
from core.records import WordScore
from training.span_rows import MarkedRow, Numbers

THRESHOLDS = (0.3, 0.35, 0.38, 0.4, 0.42, 0.45, 0.5)
log = logging.getLogger(__name__)


def _prediction(row: MarkedRow, shares: Numbers, threshold: float) -> Prediction:
    scores = [
        WordScore(start, end, float(p)) for (start, end), p in zip(row.places, shares, strict=True)
    ]
    marked = stretches(scores, row.row.response, threshold)
    return Prediction(
        "hallucinated",
        spans=tuple(GoldSpan(s.start, s.end) for s in marked),
        soft=tuple(GoldSpan(s.start, s.end, s.p) for s in between(scores)),
    )


def figures(rows: Sequence[GoldRow], said: Sequence[Prediction]) -> dict[str, Any]:
    """Mean over languages of IoU and correlation, and each language's own."""
    found = span_scores(Outcomes(rows, said))
    if found is None:
        return {}
    languages = sorted({row.language for row in rows})
    of = {name: [i for i, row in enumerate(rows) if row.language == name] for name in languages}
    kinds = {"iou": found.iou, "correlation": found.correlation}
    report: dict[str, Any] = {}
    for kind, values in kinds.items():
        if values is not None:
            each = {name: round(float(values[of[name]].mean()), 4) for name in languages}
            report[kind] = round(float(np.mean(list(each.values()))), 4)
            report[f"{kind}_by_language"] = each
    return report


def measured(
    rows: Sequence[MarkedRow], told: Sequence[Numbers], threshold: float
) -> dict[str, Any]:
    """The figures at that threshold."""
    said = [_prediction(row, p, threshold) for row, p in zip(rows, told, strict=True)]
    return figures([row.row for row in rows], said)


def best_threshold(rows: Sequence[MarkedRow], told: Sequence[Numbers]) -> float:
    """The one whose mean IoU over languages, smoothed over its neighbours, is greatest."""
    means = [measured(rows, told, threshold)["iou"] for threshold in THRESHOLDS]
    smooth = np.convolve(means, (0.25, 0.5, 0.25), mode="valid")
    for threshold, iou in zip(THRESHOLDS, means, strict=True):
        log.info("threshold %.2f: IoU %.4f", threshold, iou)
    return THRESHOLDS[1 + int(np.argmax(smooth))]


def rule_of_thumb(row: MarkedRow) -> Numbers:
    """The simple rule to beat: a word is wrong if neither evidence nor question holds it."""
    shares: Numbers = 1.0 - row.features[:, row.names.index("held")].astype(np.float64)
    return shares


def all_marked(rows: Sequence[MarkedRow]) -> dict[str, Any]:
    """The figures of the trivial answer that marks every character."""
    gold = [row.row for row in rows]
    return figures(gold, mark_all(gold).said)
