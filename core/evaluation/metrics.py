"""The figures of an evaluation, each under its plain name, ready to be resampled.

Positive = hallucinated. A row's label counts as follows:

- gold `supported` or `hallucinated`: the same label is right; the other and `unclear` are wrong.
- gold `unclear` (neutral, not enough evidence): the set is then read as supported against not
  supported. `hallucinated` and `unclear` are right, `supported` is wrong. `accuracy3` stands
  beside: the exact label, of three.
- a row that broke off or was refused (cause `failed` or `refused: …`) got no answer: it is kept as
  `unclear`, and is right nowhere, on an open gold neither. It counts as not answered.

An `unclear` that is wrong was not recalled for its class and was called neither class: accuracy,
balanced accuracy, precision, recall, F1, F2, F1 of supported and MCC are those of scikit-learn
over the labels as words, with `unclear` as a third word (tests/evaluation/test_metrics.py). For
AUROC and Brier it keeps the p that the engine had before it abstained, one half where it had none.
ECE leaves it out, so `coverage`, the share that was answered, stands beside it.

Two readings of one set of probabilities stand side by side. Forced: every row that has evidence
counts as hallucinated from p of one half on, whatever was left `unclear` (`forced_*`); a row
without any p is right nowhere. Selective: of the rows that were answered, how many are right
(`selective_accuracy` beside `coverage`), and `aurc`, the mean risk over all coverages when the
surest rows are answered first.

ECE has ten bins of equal width over p_hallucinated in [0, 1] and compares, weighted by rows, the
mean p of a bin with the share of its rows that are positive. It is never below the ECE over
confidence and accuracy, whose bins are these joined in pairs.

`iou` (both empty: 1) and `correlation` (Spearman over characters; where either side is constant: 1
if both are, else 0) are means over the languages' means, as Mu-SHROOM's scorer has it. They ask for
the wrong words whatever the verdict; `iou_shown` is that of the marks a person is shown, which
follow the verdict. `char_f1` pools all characters. A figure that a set cannot show (no spans, one
label only) is left out. What agents said on the way is counted in `engine_runs.py`.

Intervals are the bootstrap's of `core/learning/metrics.py`, over groups of related rows. How well
marked words agree with people's is scored over characters as SemEval-2025 task 3 (Mu-SHROOM) does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.evaluation.engine_runs import agent_rows, openings
from core.evaluation.files import GoldRow, GoldSpan
from core.evaluation.outcomes import PRIOR, Outcomes, Prediction
from core.learning.metrics import (
    BINS,
    RESAMPLES,
    Flags,
    Measure,
    Numbers,
    Places,
    bootstrap,
    ece_by_chance,
    mean_of,
    ranking,
)

Figure = dict[str, float]  # value, low, high
SPAN_DIGITS = 8  # to which the official scorer rounds before it calls a text's shares constant


@dataclass(frozen=True)
class SpanScores:
    """Scores of n rows; NaN (no characters) for rows whose words nobody marked.

    `iou_shown` is that of the marks that a person is shown. `characters` is (n, 3): how many are
    marked by both, by us, by people. `correlation` is None where the set gives no shares.
    """

    iou: Numbers
    iou_shown: Numbers
    correlation: Numbers | None
    characters: Numbers


def span_scores(found: Outcomes) -> SpanScores | None:
    """The scores of every row; None for a set that marks no words."""
    has_words = np.array([row.spans is not None for row in found.rows], dtype=bool)
    if not has_words.any():
        return None
    pairs = list(zip(found.rows, found.said, strict=True))
    counts = np.array([_characters(row, s.spans) for row, s in pairs], dtype=np.float64)
    shown = np.array([_characters(row, s.shown) for row, s in pairs], dtype=np.float64)
    iou, iou_shown = (np.where(has_words, _iou(one), np.nan) for one in (counts, shown))
    if not any(row.soft for row in found.rows):
        return SpanScores(iou, iou_shown, None, counts)
    alike = np.array([_correlation(row, s) for row, s in pairs], dtype=np.float64)
    return SpanScores(iou, iou_shown, np.where(has_words, alike, np.nan), counts)


def _iou(counts: Numbers) -> Numbers:
    """(n,) intersection over union; 1 where nothing is marked on either side."""
    both, marked, gold = counts.T
    return np.asarray(np.where(marked + gold == 0, 1.0, both / np.maximum(marked + gold - both, 1)))


def _characters(row: GoldRow, spans: Sequence[GoldSpan]) -> tuple[int, int, int]:
    if row.spans is None:
        return 0, 0, 0
    length = len(row.response)
    gold, marked = _marked(row.spans, length), _marked(spans, length)
    return int((gold & marked).sum()), int(marked.sum()), int(gold.sum())


def _correlation(row: GoldRow, said: Prediction) -> float:
    """Spearman's rho over the characters; constant sides count as the official scorer has it."""
    length = len(row.response)
    gold, ours = _shares(row.soft, length), _shares(said.soft, length)
    sides = [len(np.unique(np.round(side, SPAN_DIGITS))) for side in (gold, ours)]
    if 1 in sides:
        return float(sides[0] == sides[1])
    from scipy.stats import spearmanr

    return float(spearmanr(gold, ours).statistic)


def _marked(spans: Sequence[GoldSpan], length: int) -> Flags:
    """(length,) True where any span lies over a character."""
    return _shares([GoldSpan(span.start, span.end) for span in spans], length) > 0


def _shares(spans: Sequence[GoldSpan], length: int) -> Numbers:
    """(length,) the highest p of any span over a character, 0 where there is none."""
    shares = np.zeros(length)
    for span in spans:
        np.maximum(inside := shares[span.start : span.end], span.p, out=inside)
    return shares


def measures(found: Outcomes) -> dict[str, Measure]:
    """Each figure as a function of row weights (b, n) that gives (b,); NaN where undefined."""
    wrong, answered, p = found.wrong, found.answered, found.p
    named = _label_measures(found) | {
        "brier": mean_of((p - wrong) ** 2),
        "ece": _calibration_error(p, wrong, answered),
        "coverage": mean_of(answered),
        "selective_accuracy": mean_of(found.right, answered),
    }
    if found.forced.any():
        named |= _forced_measures(found)
    if found.has_both:
        named["auroc"] = ranking(wrong, p)
    if found.has_open_golds:
        named["accuracy3"] = mean_of(found.exact)
    agents = agent_rows(found)
    for name, values in agents.items():
        named[name] = mean_of(np.nan_to_num(values), ~np.isnan(values))
    if "caar" in agents:
        named["caar_chance"] = _alike_by_chance(openings(found))
    return named | _span_measures(found)


def _label_measures(found: Outcomes) -> dict[str, Measure]:
    told, wrong = np.array(found.told), found.wrong
    said_wrong, said_right = told == "hallucinated", told == "supported"
    columns = (wrong & said_wrong, ~wrong & said_right, wrong, ~wrong, said_wrong, said_right)
    table = np.stack(columns, axis=1).astype(np.float64)

    def rates(weights: Numbers) -> dict[str, Numbers]:
        tp, tn, w, r, sw, sr = (weights @ table).T
        return {
            "accuracy": _share(tp + tn, w + r),
            "recall": _share(tp, w),
            "balanced_accuracy": (_share(tp, w) + _share(tn, r)) / 2,
            "precision": np.nan_to_num(_share(tp, sw)),
            "f1": _share(2 * tp, w + sw),
            "f2": _share(5 * tp, 4 * w + sw),
            "f1_supported": _share(2 * tn, r + sr),
            "mcc": _matthews(tp, tn, w, r, sw, sr),
        }

    names = ["accuracy", *(["recall"] if wrong.any() else [])]
    if found.has_both:
        names += ["balanced_accuracy", "precision", "f1", "f2", "f1_supported", "mcc"]

    def rate(name: str) -> Measure:
        return lambda weights: rates(weights)[name]

    return {name: rate(name) for name in names}


def _forced_measures(found: Outcomes) -> dict[str, Measure]:
    """A label for every row that has evidence, by its probability alone."""
    wrong, held = found.wrong, found.forced
    has_p = np.array([said.p is not None for said in found.said], dtype=bool)
    right = ((found.p >= PRIOR) == wrong) & has_p
    named = {
        "forced_accuracy": mean_of(right, held),
        "forced_ece": _calibration_error(found.p, wrong, held & has_p),
        "aurc": _risk_over_coverage(found.p, right, held),
    }
    if (wrong & held).any() and (~wrong & held).any():
        up, down = mean_of(right, held & wrong), mean_of(right, held & ~wrong)
        named["forced_balanced_accuracy"] = lambda weights: (up(weights) + down(weights)) / 2
    return named


def _risk_over_coverage(p: Numbers, right: Flags, held: Flags) -> Measure:
    """The mean share of wrong rows over all coverages, the surest rows answered first."""
    order = np.argsort(-np.abs(p - PRIOR), kind="stable")
    order = order[held[order]]
    missed = (~right[order]).astype(np.float64)

    def measure(weights: Numbers) -> Numbers:
        own = weights[:, order]
        taken = np.cumsum(own, axis=1)
        risks = np.cumsum(own * missed, axis=1) / np.maximum(taken, 1e-9)
        return _share((risks * own).sum(axis=1), own.sum(axis=1))

    return measure


def risk_coverage(found: Outcomes) -> list[tuple[float, float]]:
    """(coverage, share of wrong rows) at tenths of the rows with evidence, the surest first."""
    held = np.flatnonzero(found.forced)
    order = held[np.argsort(-np.abs(found.p[held] - PRIOR), kind="stable")]
    missed = (found.p[order] >= PRIOR) != found.wrong[order]
    sizes = [max(1, round(len(order) * tenth / 10)) for tenth in range(1, 11)]
    return [
        (round(size / len(order), 3), round(float(missed[:size].mean()), 3))
        for size in sizes
        if len(order)
    ]


def _matthews(
    tp: Numbers, tn: Numbers, w: Numbers, r: Numbers, sw: Numbers, sr: Numbers
) -> Numbers:
    """Gorodkin's R_K, as scikit-learn has it: two golds, three answers; 0 where one is constant."""
    rows = w + r
    unclear = rows - sw - sr
    together = (tp + tn) * rows - w * sw - r * sr
    spread = (rows**2 - w**2 - r**2) * (rows**2 - sw**2 - sr**2 - unclear**2)
    # A single answer leaves rounding errors instead of nothing.
    constant = np.isclose(spread, 0.0)
    return np.where(constant, 0.0, together / np.sqrt(np.where(constant, 1.0, spread)))


def _calibration_error(p: Numbers, wrong: Flags, answered: Flags) -> Measure:
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    gaps = ((bins[:, None] == np.arange(BINS)) & answered[:, None]) * (p - wrong)[:, None]
    counted = answered.astype(np.float64)
    return lambda weights: _share(np.abs(weights @ gaps).sum(axis=1), weights @ counted)


def _span_measures(found: Outcomes) -> dict[str, Measure]:
    scores = span_scores(found)
    if scores is None:
        return {}
    named = {
        "iou": _mean_of_means(scores.iou, found.languages),
        "iou_shown": _mean_of_means(scores.iou_shown, found.languages),
    }
    if scores.correlation is not None:
        named["correlation"] = _mean_of_means(scores.correlation, found.languages)

    def pooled(weights: Numbers) -> Numbers:
        both, marked, gold = (weights @ scores.characters).T
        return _share(2 * both, marked + gold)

    return named | {"char_f1": pooled}


def _mean_of_means(values: Numbers, parts: Places) -> Measure:
    """The unweighted mean over the parts of their means; rows that are NaN take no part."""
    counted = ~np.isnan(values)
    inside = (parts[:, None] == np.arange(parts.max() + 1)) & counted[:, None]
    sums = inside * np.where(counted, values, 0.0)[:, None]

    def measure(weights: Numbers) -> Numbers:
        means = _share(weights @ sums, weights @ inside.astype(np.float64))
        there = ~np.isnan(means)
        return _share(np.where(there, means, 0.0).sum(axis=1), there.sum(axis=1).astype(np.float64))

    return measure


def _alike_by_chance(counts: Numbers) -> Measure:
    """How often two answers are alike that are drawn from all, of (n, k) counts of each stance."""

    def measure(weights: Numbers) -> Numbers:
        of_each = weights @ counts
        return _share((of_each**2).sum(axis=1), of_each.sum(axis=1) ** 2)

    return measure


def _share(part: Numbers, whole: Numbers) -> Numbers:
    empty = whole == 0
    return np.where(empty, np.nan, part / np.where(empty, 1.0, whole))


def figures(
    named: Mapping[str, Measure], groups: Places, seed: int, draws: int = RESAMPLES
) -> dict[str, Figure]:
    """`{"value", "low", "high"}` of each; left out where the value itself is undefined."""
    whole = np.ones((1, len(groups)))
    defined = {name: own for name, own in named.items() if not np.isnan(own(whole)[0])}
    return {name: one.rounded() for name, one in bootstrap(defined, groups, seed, draws).items()}


def calibrated_null(found: Outcomes, seed: int) -> Figure | None:
    """The ECE that a perfectly calibrated model with these p would show, by chance alone.

    None where nothing was answered. Groups play no part: a calibrated model's errors are its own.
    """
    p = found.p[found.answered]
    return ece_by_chance(p, seed).rounded() if len(p) else None
