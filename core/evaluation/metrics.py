"""Compute the figures of an evaluation as functions of row weights, ready for the bootstrap.

Positive = hallucinated. A row's label counts as follows:

- gold `supported` or `hallucinated`: the same label is right; the other and `unclear` are wrong.
- gold `unclear` (neutral, not enough evidence): the set is then read as supported against not
  supported. `hallucinated` and `unclear` are right, `supported` is wrong. In addition, `accuracy3`
  compares the exact labels, of three.
- a row that failed or was refused (cause `failed` or `refused: …`) has no answer: it is kept as
  `unclear` and is never right, not even if the gold is `unclear`. It counts as not answered.

A wrong `unclear` is a miss for its class and a prediction of neither class: accuracy, balanced
accuracy, precision, recall, F1, F2, F1 of supported and MCC are those of scikit-learn over the
labels as words, with `unclear` as a third word (tests/evaluation/test_metrics.py). For AUROC and
Brier it keeps the p that the engine had before it abstained, one half if it had none. ECE leaves it
out and is therefore reported with `coverage`, the share of answered rows.

The same probabilities are read in two ways. Forced: every row that has evidence counts as
hallucinated if p is at least one half, even if it was left `unclear` (`forced_*`); a row without p
is never right. Selective: the share of answered rows that are right (`selective_accuracy`, reported
with `coverage`), and `aurc`, the mean risk over all coverages when the surest rows are answered
first.

ECE has ten bins of equal width over p_hallucinated in [0, 1] and compares, weighted by rows, the
mean p of a bin with the share of its rows that are positive. It is never below the ECE over
confidence and accuracy, whose bins are pairs of these.

`iou` (1 if both are empty) and `correlation` (Spearman over characters; if either side is constant,
1 if both are, else 0) are means over the languages' means, as in Mu-SHROOM's scorer. They use the
wrong words whatever the verdict; `iou_shown` uses the marks that a person sees, which depend on the
verdict. `char_f1` pools all characters. Figures that a set cannot give (no spans, one label only)
are left out.

Figures of SC-MAKS 4.7:

- CAAR, the cross-agent agreement rate: how often agents reach the same stance independently. An
  answer is independent if its debater had seen no other (manners `answer` and `detect`). `caar` is
  the share of pairs of such answers of a row with the same stance, averaged over rows with two or
  more; `caar_all` is the share of rows in which all agree; `caar_chance` is the expected `caar` if
  the same answers were assigned to debaters and rows at random.
- FCR, the factual consistency ratio (`fcr`): the share of rows of which the judgement found all
  statements supported. HR, the hallucination rate (`hr`): the share with a hallucinated statement.
  If a judgement labels no statements, its own label is used; `unclear` counts in neither.

They describe how the engine reads a set; people's labels are in `golds`. Rows that failed or were
refused have no figure.

Intervals come from the bootstrap of `core/learning/metrics.py`, over groups of related rows; fewer
than five groups give none, and a share of 0 or 1 has Wilson's. Marked words are
compared with people's over characters, as in SemEval-2025 task 3 (Mu-SHROOM).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.outcomes import PRIOR_P, Outcomes, Prediction
from core.learning.metrics import (
    BOOTSTRAP_RESAMPLES,
    FIGURE_DIGITS,
    MIN_GROUPS,
    BoolArray,
    FloatArray,
    IndexArray,
    Measure,
    MetricEstimate,
    bootstrap_measures,
    divide_safely,
    estimate_chance_ece,
    make_auroc,
    make_ece,
    make_mean,
)
from core.learning.track_record import WilsonShare
from core.schema.records import Stance

Figure = dict[str, float]  # value, and low and high where there is an interval
COUNTED_STANCES: tuple[Stance, ...] = ("supported", "hallucinated", "unclear")
ROUNDING_DIGITS = 8  # to which the official scorer rounds before it tests shares for being constant


@dataclass(frozen=True)
class SpanScores:
    """Scores of n rows; NaN (no characters) for rows whose words nobody marked.

    `iou_shown` is the IoU of the marks that a person sees. `characters` is (n, 3): the numbers of
    characters marked by both, by us, by people. `correlation` is None if the set gives no shares.
    """

    iou: FloatArray
    iou_shown: FloatArray
    correlation: FloatArray | None
    characters: FloatArray


def score_spans(found: Outcomes) -> SpanScores | None:
    """Return the scores of every row, or None for a set that marks no words."""
    has_words = np.array([row.spans is not None for row in found.rows], dtype=bool)
    if not has_words.any():
        return None
    pairs = list(zip(found.rows, found.said, strict=True))
    counts = np.array([_count_characters(row, p.spans) for row, p in pairs], dtype=np.float64)
    shown = np.array([_count_characters(row, p.shown) for row, p in pairs], dtype=np.float64)
    iou, iou_shown = (np.where(has_words, _compute_iou(one), np.nan) for one in (counts, shown))
    if not any(row.soft for row in found.rows):
        return SpanScores(iou, iou_shown, None, counts)
    correlations = np.array([_correlate_row(row, p) for row, p in pairs], dtype=np.float64)
    return SpanScores(iou, iou_shown, np.where(has_words, correlations, np.nan), counts)


def _compute_iou(counts: FloatArray) -> FloatArray:
    """Return (n,) intersections over unions; 1 where neither side marks anything."""
    both, marked, gold = counts.T
    return np.asarray(np.where(marked + gold == 0, 1.0, both / np.maximum(marked + gold - both, 1)))


def _count_characters(row: GoldRow, spans: Sequence[GoldSpan]) -> tuple[int, int, int]:
    if row.spans is None:
        return 0, 0, 0
    length = len(row.response)
    gold, marked = _mark_characters(row.spans, length), _mark_characters(spans, length)
    return int((gold & marked).sum()), int(marked.sum()), int(gold.sum())


def _correlate_row(row: GoldRow, prediction: Prediction) -> float:
    """Return Spearman's rho over characters; constant sides count as in the official scorer."""
    length = len(row.response)
    gold, ours = _spread_shares(row.soft, length), _spread_shares(prediction.soft, length)
    distinct_counts = [len(np.unique(np.round(side, ROUNDING_DIGITS))) for side in (gold, ours)]
    if 1 in distinct_counts:
        return float(distinct_counts[0] == distinct_counts[1])
    from scipy.stats import spearmanr

    return float(spearmanr(gold, ours).statistic)


def _mark_characters(spans: Sequence[GoldSpan], length: int) -> BoolArray:
    """Return (length,) True where any span covers the character."""
    return _spread_shares([GoldSpan(span.start, span.end) for span in spans], length) > 0


def _spread_shares(spans: Sequence[GoldSpan], length: int) -> FloatArray:
    """Return (length,) the highest p of the spans over each character, 0 without any."""
    shares = np.zeros(length)
    for span in spans:
        part = shares[span.start : span.end]
        np.maximum(part, span.p, out=part)
    return shares


def build_measures(found: Outcomes) -> dict[str, Measure]:
    """Return each figure as a function of row weights (b, n) to (b,); NaN where undefined."""
    wrong, answered, p = found.wrong, found.answered, found.p
    by_name = _build_label_measures(found) | {
        "brier": make_mean((p - wrong) ** 2),
        "ece": make_ece(wrong, p, answered),
        "coverage": make_mean(answered),
        "selective_accuracy": make_mean(found.right, answered),
    }
    if found.forced.any():
        by_name |= _build_forced_measures(found)
    if found.has_both:
        by_name["auroc"] = make_auroc(wrong, p)
    if found.has_open_golds:
        by_name["accuracy3"] = make_mean(found.exact)
    agents = compute_agent_figures(found)
    for name, values in agents.items():
        by_name[name] = make_mean(np.nan_to_num(values), ~np.isnan(values))
    if "caar" in agents:
        by_name["caar_chance"] = _measure_chance_agreement(count_first_answers(found))
    return by_name | _build_span_measures(found)


def _build_label_measures(outcomes: Outcomes) -> dict[str, Measure]:
    labels, wrong = np.array(outcomes.told), outcomes.wrong
    said_wrong, said_right = labels == "hallucinated", labels == "supported"
    columns = (wrong & said_wrong, ~wrong & said_right, wrong, ~wrong, said_wrong, said_right)
    table = np.stack(columns, axis=1).astype(np.float64)

    def rates(weights: FloatArray) -> dict[str, FloatArray]:
        tp, tn, w, r, sw, sr = (weights @ table).T
        return {
            "accuracy": divide_safely(tp + tn, w + r),
            "recall": divide_safely(tp, w),
            "balanced_accuracy": (divide_safely(tp, w) + divide_safely(tn, r)) / 2,
            "precision": np.nan_to_num(divide_safely(tp, sw)),
            "f1": divide_safely(2 * tp, w + sw),
            "f2": divide_safely(5 * tp, 4 * w + sw),
            "f1_supported": divide_safely(2 * tn, r + sr),
            "mcc": _compute_mcc(tp, tn, w, r, sw, sr),
        }

    names = ["accuracy", *(["recall"] if wrong.any() else [])]
    if outcomes.has_both:
        names += ["balanced_accuracy", "precision", "f1", "f2", "f1_supported", "mcc"]

    def rate(name: str) -> Measure:
        return lambda weights: rates(weights)[name]

    return {name: rate(name) for name in names}


def _build_forced_measures(outcomes: Outcomes) -> dict[str, Measure]:
    """Return the figures of labels forced by probability, for every row that has evidence."""
    wrong, has_evidence = outcomes.wrong, outcomes.forced
    has_p = np.array([prediction.p is not None for prediction in outcomes.said], dtype=bool)
    right = ((outcomes.p >= PRIOR_P) == wrong) & has_p
    by_name = {
        "forced_accuracy": make_mean(right, has_evidence),
        "forced_ece": make_ece(wrong, outcomes.p, has_evidence & has_p),
        "aurc": _measure_aurc(outcomes.p, right, has_evidence),
    }
    if (wrong & has_evidence).any() and (~wrong & has_evidence).any():
        recall = make_mean(right, has_evidence & wrong)
        specificity = make_mean(right, has_evidence & ~wrong)
        by_name["forced_balanced_accuracy"] = lambda w: (recall(w) + specificity(w)) / 2
    return by_name


def _measure_aurc(p: FloatArray, right: BoolArray, has_evidence: BoolArray) -> Measure:
    """Return the mean risk over all coverages, with the surest rows answered first."""
    order = np.argsort(-np.abs(p - PRIOR_P), kind="stable")
    order = order[has_evidence[order]]
    is_wrong = (~right[order]).astype(np.float64)

    def measure(weights: FloatArray) -> FloatArray:
        ordered = weights[:, order]
        coverage = np.cumsum(ordered, axis=1)
        risks = np.cumsum(ordered * is_wrong, axis=1) / np.maximum(coverage, 1e-9)
        return divide_safely((risks * ordered).sum(axis=1), ordered.sum(axis=1))

    return measure


def compute_agent_figures(found: Outcomes) -> dict[str, FloatArray]:
    """Return (n,) values by figure, NaN for rows without one; figures without any are left out."""
    figures = [_compute_row_figures(prediction) for prediction in found.said]
    columns = np.array(figures, dtype=np.float64).reshape(-1, 4).T
    named_columns = zip(("caar", "caar_all", "fcr", "hr"), columns, strict=True)
    return {name: values for name, values in named_columns if not np.isnan(values).all()}


def count_first_answers(found: Outcomes) -> FloatArray:
    """Return (n, 3) counts of first answers by stance; zeros for rows with fewer than two."""
    rows = [one.openings if len(one.openings) > 1 else () for one in found.said]
    counts = [[row.count(stance) for stance in COUNTED_STANCES] for row in rows]
    return np.array(counts, dtype=np.float64).reshape(-1, len(COUNTED_STANCES))


def _compute_row_figures(prediction: Prediction) -> tuple[float, float, float, float]:
    agreement = unanimity = all_supported = any_hallucinated = np.nan
    if len(prediction.openings) > 1:
        pairs = [a == b for a, b in itertools.combinations(prediction.openings, 2)]
        agreement, unanimity = sum(pairs) / len(pairs), float(all(pairs))
    if prediction.statements and not prediction.is_failure:
        all_supported = float(all(label == "supported" for label in prediction.statements))
        any_hallucinated = float("hallucinated" in prediction.statements)
    return agreement, unanimity, all_supported, any_hallucinated


def _compute_mcc(
    tp: FloatArray, tn: FloatArray, w: FloatArray, r: FloatArray, sw: FloatArray, sr: FloatArray
) -> FloatArray:
    """Return Gorodkin's R_K as in scikit-learn, for two golds and three answers; 0 if constant."""
    rows = w + r
    unclear = rows - sw - sr
    covariance = (tp + tn) * rows - w * sw - r * sr
    variance_product = (rows**2 - w**2 - r**2) * (rows**2 - sw**2 - sr**2 - unclear**2)
    # If all answers are equal, rounding errors remain instead of zero.
    constant = np.isclose(variance_product, 0.0)
    return np.where(constant, 0.0, covariance / np.sqrt(np.where(constant, 1.0, variance_product)))


def _build_span_measures(outcomes: Outcomes) -> dict[str, Measure]:
    scores = score_spans(outcomes)
    if scores is None:
        return {}
    by_name = {
        "iou": _measure_mean_of_means(scores.iou, outcomes.languages),
        "iou_shown": _measure_mean_of_means(scores.iou_shown, outcomes.languages),
    }
    if scores.correlation is not None:
        by_name["correlation"] = _measure_mean_of_means(scores.correlation, outcomes.languages)

    def pooled(weights: FloatArray) -> FloatArray:
        both, marked, gold = (weights @ scores.characters).T
        return divide_safely(2 * both, marked + gold)

    return by_name | {"char_f1": pooled}


def _measure_mean_of_means(values: FloatArray, parts: IndexArray) -> Measure:
    """Return the unweighted mean of the parts' means; rows that are NaN are left out."""
    is_defined = ~np.isnan(values)
    in_part = (parts[:, None] == np.arange(parts.max() + 1)) & is_defined[:, None]
    sums = in_part * np.where(is_defined, values, 0.0)[:, None]

    def measure(weights: FloatArray) -> FloatArray:
        means = divide_safely(weights @ sums, weights @ in_part.astype(np.float64))
        has_mean = ~np.isnan(means)
        total = np.where(has_mean, means, 0.0).sum(axis=1)
        return divide_safely(total, has_mean.sum(axis=1).astype(np.float64))

    return measure


def _measure_chance_agreement(counts: FloatArray) -> Measure:
    """Return how often two random answers are equal, from (n, k) counts of each stance."""

    def measure(weights: FloatArray) -> FloatArray:
        totals = weights @ counts
        return divide_safely((totals**2).sum(axis=1), totals.sum(axis=1) ** 2)

    return measure


def estimate_figures(
    named: Mapping[str, Measure],
    groups: IndexArray,
    seed: int,
    draws: int = BOOTSTRAP_RESAMPLES,
    shares: Mapping[str, BoolArray] = MappingProxyType({}),
) -> dict[str, Figure]:
    """Return `{"value", "low", "high"}` by name; undefined figures are left out.

    Without enough groups there is only the value. `shares` are the rows of which a figure is a
    share: if it is 0 or 1, resampling gives a point, and the interval is Wilson's over groups.
    """
    ones = np.ones((1, len(groups)))
    defined = {name: measure for name, measure in named.items() if not np.isnan(measure(ones)[0])}
    if len(np.unique(groups)) < MIN_GROUPS:
        return {
            name: {"value": round(float(measure(ones)[0]), FIGURE_DIGITS)}
            for name, measure in defined.items()
        }
    estimates = bootstrap_measures(defined, groups, seed, draws)
    for name, (value, low, high) in estimates.items():
        # A constant answer's balanced accuracy is 0.5 whatever the rows: that is a point indeed.
        if low == high and name in shares and round(value, ROUNDING_DIGITS) in (0.0, 1.0):
            count = len(np.unique(groups[shares[name]]))
            bounds = WilsonShare(round(value * count), count).interval
            estimates[name] = MetricEstimate(value, *bounds)
    return {name: estimate.rounded() for name, estimate in estimates.items()}


def list_share_rows(found: Outcomes) -> dict[str, BoolArray]:
    """Return the rows of which figures are shares; of two shares, the rarer ones."""
    wrong, labels = found.wrong, np.array(found.told)
    rarer = wrong if wrong.mean() < 0.5 else ~wrong
    everything = np.ones(len(wrong), dtype=bool)
    return {
        "accuracy": everything,
        "accuracy3": everything,
        "coverage": everything,
        "recall": wrong,
        "precision": labels == "hallucinated",
        "selective_accuracy": found.answered,
        "forced_accuracy": found.forced,
        "balanced_accuracy": rarer,
        "forced_balanced_accuracy": rarer & found.forced,
    }


def estimate_calibrated_ece(found: Outcomes, seed: int) -> Figure | None:
    """Return the ECE that a perfectly calibrated model with these p would have by chance alone.

    None if nothing was answered. Groups are ignored: a calibrated model's errors are independent.
    """
    p = found.p[found.answered]
    return estimate_chance_ece(p, seed).rounded() if len(p) else None
