"""From which probability words should be marked? Fitted to what people marked, by language.

The threshold with the greatest smoothed mean IoU over cases (MSA 3.3). Few cases say little: it is
drawn towards the one that ships, and a language's own towards that of all, as if `PRIOR_CASES` more
had spoken for it; of 0, 20, 50 and 100 that number did best on simulated corrections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from core.learning.metrics import FOLDS, Figure, Numbers, bootstrap, fold_numbers, mean_of, numbered
from core.schema.records import Levels

Kind = Literal["reader", "votes", "panel", "weighted"]
GRID: Numbers = np.round(np.arange(0.05, 0.951, 0.01), 2)
SMOOTH = 9  # thresholds that are averaged: 0.04 to either side
PRIOR_CASES = 50
FEWEST_CASES = 10  # in all, before anything is proposed; and of a language, before it has its own
VOTE = 0.5  # a vote of yes, where no threshold was learned


@dataclass(frozen=True)
class ScoredCase:
    """A case in pieces of (p, characters, those people marked); `gold` are all they marked."""

    id: str
    group: str
    language: str
    pieces: tuple[tuple[float, int, int], ...]
    gold: int
    length: int


@dataclass(frozen=True)
class Fit:
    """How a threshold would do in one language (“” for all), on cases it was not fitted to.

    `own` is what its cases alone would say; `tau` what is proposed, which is `shipped` where it did
    no better. `after` is measured in five folds, each with a threshold fitted to the other four;
    so is `gain`, which is against the one that ships. `curve` is the mean IoU at each of `GRID`.
    """

    language: str
    n: int
    shipped: float
    own: float
    tau: float
    before: Figure
    after: Figure
    gain: Figure
    mark_all: float
    mark_nothing: float
    curve: tuple[float, ...]

    @property
    def is_better(self) -> bool:
        """True where another threshold is proposed."""
        return self.tau != self.shipped

    @property
    def body(self) -> dict[str, Any]:
        """The figures of this fit as plain values, as they are stored."""
        own = {name: getattr(self, name) for name in ("language", "n", "own", "tau")}
        means = {"iou_mark_all": self.mark_all, "iou_mark_nothing": self.mark_nothing}
        figures = {"iou_before": self.before, "iou_after": self.after, "gain": self.gain}
        own |= {name: figure.body for name, figure in figures.items()}
        return own | {name: round(mean, 4) for name, mean in means.items()}


@dataclass(frozen=True)
class Proposal:
    """Thresholds for one kind of scores, and the ids of the cases that they were fitted to."""

    kind: Kind
    shipped: float
    n: int
    levels: Levels
    whole: Fit
    languages: tuple[Fit, ...]
    cases: tuple[str, ...]

    @property
    def is_better(self) -> bool:
        """True where it changes anything; it then did better on the folds."""
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


def iou_at(case: ScoredCase) -> Numbers:
    """The case's IoU at each threshold of `GRID`; 1 where nothing is marked on either side."""
    p, sizes, both = np.array(case.pieces, dtype=np.float64).reshape(-1, 3).T
    is_marked = p[None, :] >= GRID[:, None]
    marked, shared = is_marked @ sizes, is_marked @ both
    either = marked + case.gold - shared
    return np.asarray(np.where(either == 0, 1.0, shared / np.where(either == 0, 1.0, either)))


def best(curve: Numbers, near: float) -> float:
    """The threshold with the greatest smoothed IoU; of equal ones that nearest to `near`."""
    padded = np.pad(curve, SMOOTH // 2, mode="edge")
    smooth = np.convolve(padded, np.full(SMOOTH, 1 / SMOOTH), mode="valid")
    highest = np.flatnonzero(smooth >= smooth.max() - 1e-9)
    return float(GRID[highest[np.argmin(np.abs(GRID[highest] - near))]])


def drawn_to(own: float, n: int, other: float) -> float:
    """The own threshold of n cases, drawn towards the other one; to two places."""
    return round((n * own + PRIOR_CASES * other) / (n + PRIOR_CASES), 2)


def fitted(
    curves: Numbers, languages: Sequence[str], shipped: float
) -> tuple[float, dict[str, float]]:
    """(threshold of all, each language's own) of (n, thresholds) IoU, proved or not."""
    pooled = drawn_to(best(curves.mean(axis=0), shipped), len(curves), shipped)
    names = np.array(languages)
    parts = {name: curves[names == name] for name in sorted(set(languages))}
    own = {n: drawn_to(best(c.mean(axis=0), pooled), len(c), pooled) for n, c in parts.items()}
    return pooled, own


def proposal(kind: Kind, cases: Sequence[ScoredCase], shipped: float) -> Proposal | None:
    """What people's marks speak for; None with fewer cases than say anything."""
    if len(cases) < FEWEST_CASES:
        return None
    curves = np.array([iou_at(case) for case in cases])
    languages = np.array([case.language for case in cases])
    levels, before, after = decided(curves, cases, shipped)
    fits = []
    for language in ("", *sorted(set(languages.tolist()))):
        mine = languages == language if language else np.ones(len(cases), dtype=bool)
        own = [case for case, is_mine in zip(cases, mine, strict=True) if is_mine]
        curve, tau = curves[mine].mean(axis=0), levels.at(language)
        values = {"before": before[mine], "after": after[mine], "gain": (after - before)[mine]}
        fits.append(
            Fit(
                language,
                len(own),
                shipped,
                best(curve, shipped),
                shipped if tau is None else tau,
                **mean_figures(values, [case.group for case in own]),
                mark_all=float(np.mean([case.gold / max(1, case.length) for case in own])),
                mark_nothing=float(np.mean([case.gold == 0 for case in own])),
                curve=tuple(round(float(iou), 4) for iou in curve),
            )
        )
    ids = tuple(case.id for case in cases)
    return Proposal(kind, shipped, len(cases), levels, fits[0], tuple(fits[1:]), ids)


def decided(
    curves: Numbers, cases: Sequence[ScoredCase], shipped: float
) -> tuple[Levels, Numbers, Numbers]:
    """(the levels, each case's IoU at the one that ships, and at those, fitted without its fold).

    A language with enough cases gets its own threshold where that did better in the folds than the
    one that ships, which it keeps otherwise; all others get the one of all cases, by the same rule,
    unless it did worse on the few they have. The folds that decide also measure: a little too kind.
    """
    languages = [case.language for case in cases]
    before = _at(curves, np.full(len(cases), shipped))
    pooled_after, own_after = _out_of_fold(curves, cases, shipped)
    pooled, own = fitted(curves, languages, shipped)
    otherwise = pooled if pooled_after.mean() > before.mean() else shipped
    after = pooled_after if otherwise != shipped else before
    levels: dict[str, float] = {}
    for language, n in Counter(languages).items():
        mine = np.array([name == language for name in languages])
        if language == "und":  # a check finds a language
            continue
        if n >= FEWEST_CASES and own_after[mine].mean() > before[mine].mean():
            levels[language] = own[language]
            after = np.where(mine, own_after, after)
        elif n >= FEWEST_CASES or after[mine].mean() < before[mine].mean():
            levels[language] = shipped
            after = np.where(mine, before, after)
    return Levels(tuple(sorted(levels.items())), otherwise), before, after


def _at(curves: Numbers, taus: Numbers) -> Numbers:
    places = np.clip(np.round((taus - GRID[0]) / 0.01).astype(int), 0, len(GRID) - 1)
    return np.asarray(curves[np.arange(len(curves)), places])


def _out_of_fold(
    curves: Numbers, cases: Sequence[ScoredCase], shipped: float
) -> tuple[Numbers, Numbers]:
    folds = fold_numbers([case.group for case in cases])
    languages = [case.language for case in cases]
    pooled_taus, own_taus = np.full(len(cases), shipped), np.full(len(cases), shipped)
    for fold in range(FOLDS):
        rest, here = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(rest) and len(here):
            pooled, own = fitted(curves[rest], [languages[i] for i in rest], shipped)
            pooled_taus[here] = pooled
            own_taus[here] = [own.get(languages[i], pooled) for i in here]
    return _at(curves, pooled_taus), _at(curves, own_taus)


def mean_figures(named: Mapping[str, Numbers], groups: Sequence[str]) -> dict[str, Figure]:
    """Means over cases with their intervals; groups of equal cases are drawn together."""
    measures = {name: mean_of(values) for name, values in named.items()}
    return bootstrap(measures, numbered(groups, is_sorted=False), seed=0)
