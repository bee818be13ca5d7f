"""Fits the probability from which on words are marked to what people marked, by language.

It takes the threshold with the greatest smoothed mean IoU over cases (MSA 3.3). Few cases say
little: it is shrunk towards the shipped one, and a language's own towards that of all, as if
`PRIOR_CASES` more cases had that one; of 0, 20, 50 and 100 this number did best on simulated
corrections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from core.learning.metrics import (
    FOLD_COUNT,
    FloatArray,
    MetricEstimate,
    bootstrap_measures,
    get_folds,
    make_mean,
    number_names,
)
from core.schema.records import MarkingLevels

ScoreKind = Literal["reader", "votes", "panel", "weighted"]
THRESHOLD_GRID: FloatArray = np.round(np.arange(0.05, 0.951, 0.01), 2)
SMOOTHED_THRESHOLDS = 9  # neighbouring thresholds that are averaged: 0.04 to either side
PRIOR_CASES = 50
MIN_SCORED_CASES = 10  # for any proposal, and of a language for a threshold of its own
VOTE_THRESHOLD = 0.5  # share of votes that marks words without a learned threshold


@dataclass(frozen=True)
class ScoredCase:
    """A case in pieces of (p, characters, of these marked by people).

    `gold` counts all characters that people marked, `length` those of the response.
    """

    id: str
    group: str
    language: str
    pieces: tuple[tuple[float, int, int], ...]
    gold: int
    length: int


@dataclass(frozen=True)
class ThresholdFit:
    """How a threshold does in one language ("" for all), on cases it was not fitted to.

    `own` is the best for its cases alone; `tau` is what is proposed, which is `shipped` if it did
    no better. `after` is measured in five folds, each with a threshold fitted to the other four; so
    is `gain`, which is against the shipped one. `curve` is the mean IoU at each of
    `THRESHOLD_GRID`.
    """

    language: str
    n: int
    shipped: float
    own: float
    tau: float
    before: MetricEstimate
    after: MetricEstimate
    gain: MetricEstimate
    mark_all: float
    mark_nothing: float
    curve: tuple[float, ...]

    @property
    def is_better(self) -> bool:
        """True if another threshold is proposed."""
        return self.tau != self.shipped

    @property
    def body(self) -> dict[str, Any]:
        """The figures of this fit as plain values, as they are stored."""
        facts = {name: getattr(self, name) for name in ("language", "n", "own", "tau")}
        means = {"iou_mark_all": self.mark_all, "iou_mark_nothing": self.mark_nothing}
        figures = {"iou_before": self.before, "iou_after": self.after, "gain": self.gain}
        facts |= {name: figure.body for name, figure in figures.items()}
        return facts | {name: round(mean, 4) for name, mean in means.items()}


@dataclass(frozen=True)
class ThresholdProposal:
    """Thresholds for one kind of scores, and the ids of the cases they were fitted to."""

    kind: ScoreKind
    shipped: float
    n: int
    levels: MarkingLevels
    whole: ThresholdFit
    languages: tuple[ThresholdFit, ...]
    cases: tuple[str, ...]

    @property
    def is_better(self) -> bool:
        """True if it changes anything; then it did better on the folds."""
        taus = {tau for _, tau in self.levels.by_language} | {self.levels.otherwise}
        return taus != {self.shipped}

    @property
    def body(self) -> dict[str, Any]:
        """The levels and figures as plain values, as they are stored."""
        return {
            "by_language": dict(self.levels.by_language),
            "otherwise": self.levels.otherwise,
            "shipped": self.shipped,
            "n": self.n,
            "prior_cases": PRIOR_CASES,
            "figures": [fit.body for fit in (self.whole, *self.languages)],
            "cases": list(self.cases),
        }


def compute_iou_curve(case: ScoredCase) -> FloatArray:
    """Return the case's IoU at each `THRESHOLD_GRID` point; 1 if neither side marks anything."""
    p, sizes, marked_by_people = np.array(case.pieces, dtype=np.float64).reshape(-1, 3).T
    is_marked = p[None, :] >= THRESHOLD_GRID[:, None]
    marked, shared = is_marked @ sizes, is_marked @ marked_by_people
    union = marked + case.gold - shared
    return np.asarray(np.where(union == 0, 1.0, shared / np.where(union == 0, 1.0, union)))


def choose_threshold(curve: FloatArray, near: float) -> float:
    """Return the threshold with the greatest smoothed IoU; of equal ones the nearest to `near`."""
    padded = np.pad(curve, SMOOTHED_THRESHOLDS // 2, mode="edge")
    smooth = np.convolve(
        padded, np.full(SMOOTHED_THRESHOLDS, 1 / SMOOTHED_THRESHOLDS), mode="valid"
    )
    highest = np.flatnonzero(smooth >= smooth.max() - 1e-9)
    return float(THRESHOLD_GRID[highest[np.argmin(np.abs(THRESHOLD_GRID[highest] - near))]])


def shrink_threshold(own: float, n: int, other: float) -> float:
    """Return the own threshold of n cases, shrunk towards the other one, with two digits."""
    return round((n * own + PRIOR_CASES * other) / (n + PRIOR_CASES), 2)


def fit_thresholds(
    curves: FloatArray, languages: Sequence[str], shipped: float
) -> tuple[float, dict[str, float]]:
    """Return (threshold of all, each language's own) for (cases, thresholds) IoUs."""
    pooled = shrink_threshold(choose_threshold(curves.mean(axis=0), shipped), len(curves), shipped)
    names = np.array(languages)
    parts = {name: curves[names == name] for name in sorted(set(languages))}
    own = {
        n: shrink_threshold(choose_threshold(c.mean(axis=0), pooled), len(c), pooled)
        for n, c in parts.items()
    }
    return pooled, own


def propose_thresholds(
    kind: ScoreKind, cases: Sequence[ScoredCase], shipped: float
) -> ThresholdProposal | None:
    """Return the thresholds that people's marks support, or None if there are too few cases."""
    if len(cases) < MIN_SCORED_CASES:
        return None
    curves = np.array([compute_iou_curve(case) for case in cases])
    languages = np.array([case.language for case in cases])
    levels, before, after = decide_levels(curves, cases, shipped)
    fits = []
    for language in ("", *sorted(set(languages.tolist()))):
        in_language = languages == language if language else np.ones(len(cases), dtype=bool)
        chosen = [case for case, is_in in zip(cases, in_language, strict=True) if is_in]
        curve, tau = curves[in_language].mean(axis=0), levels.at(language)
        figures = {"before": before, "after": after, "gain": after - before}
        values = {name: ious[in_language] for name, ious in figures.items()}
        fits.append(
            ThresholdFit(
                language,
                len(chosen),
                shipped,
                choose_threshold(curve, shipped),
                shipped if tau is None else tau,
                **compute_mean_figures(values, [case.group for case in chosen]),
                mark_all=float(np.mean([case.gold / max(1, case.length) for case in chosen])),
                mark_nothing=float(np.mean([case.gold == 0 for case in chosen])),
                curve=tuple(round(float(iou), 4) for iou in curve),
            )
        )
    ids = tuple(case.id for case in cases)
    return ThresholdProposal(kind, shipped, len(cases), levels, fits[0], tuple(fits[1:]), ids)


def decide_levels(
    curves: FloatArray, cases: Sequence[ScoredCase], shipped: float
) -> tuple[MarkingLevels, FloatArray, FloatArray]:
    """Return the levels, each case's IoU at the shipped one, and at levels fitted without its fold.

    A language with enough cases gets its own threshold if that did better in the folds than the
    shipped one, and keeps the shipped one otherwise. All others get the threshold of all cases, by
    the same rule, unless it did worse on the few they have. The folds that decide also measure,
    which is a little optimistic.
    """
    languages = [case.language for case in cases]
    before = _iou_at_thresholds(curves, np.full(len(cases), shipped))
    pooled_after, own_after = _out_of_fold_ious(curves, cases, shipped)
    pooled, own = fit_thresholds(curves, languages, shipped)
    otherwise = pooled if pooled_after.mean() > before.mean() else shipped
    after = pooled_after if otherwise != shipped else before
    levels: dict[str, float] = {}
    for language, n in Counter(languages).items():
        in_language = np.array([name == language for name in languages])
        if language == "und":  # checks always find a language
            continue
        if n >= MIN_SCORED_CASES and own_after[in_language].mean() > before[in_language].mean():
            levels[language] = own[language]
            after = np.where(in_language, own_after, after)
        elif n >= MIN_SCORED_CASES or after[in_language].mean() < before[in_language].mean():
            levels[language] = shipped
            after = np.where(in_language, before, after)
    return MarkingLevels(tuple(sorted(levels.items())), otherwise), before, after


def _iou_at_thresholds(curves: FloatArray, taus: FloatArray) -> FloatArray:
    places = np.clip(
        np.round((taus - THRESHOLD_GRID[0]) / 0.01).astype(int), 0, len(THRESHOLD_GRID) - 1
    )
    return np.asarray(curves[np.arange(len(curves)), places])


def _out_of_fold_ious(
    curves: FloatArray, cases: Sequence[ScoredCase], shipped: float
) -> tuple[FloatArray, FloatArray]:
    folds = get_folds([case.group for case in cases])
    languages = [case.language for case in cases]
    pooled_taus, own_taus = np.full(len(cases), shipped), np.full(len(cases), shipped)
    for fold in range(FOLD_COUNT):
        rest, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(rest) and len(inside):
            pooled, own = fit_thresholds(curves[rest], [languages[i] for i in rest], shipped)
            pooled_taus[inside] = pooled
            own_taus[inside] = [own.get(languages[i], pooled) for i in inside]
    return _iou_at_thresholds(curves, pooled_taus), _iou_at_thresholds(curves, own_taus)


def compute_mean_figures(
    named: Mapping[str, FloatArray], groups: Sequence[str]
) -> dict[str, MetricEstimate]:
    """Return means over cases with their intervals; cases of a group are resampled together."""
    measures = {name: make_mean(values) for name, values in named.items()}
    return bootstrap_measures(measures, number_names(groups, is_sorted=False), seed=0)
