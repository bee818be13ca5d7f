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
label only) is left out. What agents said on the way is counted in
`engine_runs.py`.

Intervals of figures: 95 % percentile bootstrap over groups of related rows, seeded. Rows of one
group (one question, one article) are drawn together: drawn one by one they would make a set look
larger than it is.

How well marked words agree with those that people marked, row by row, over characters. Source:
the scorer of SemEval-2025 task 3 (Mu-SHROOM).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.evaluation.engine_runs import agent_rows, openings
from core.evaluation.files import GoldRow, GoldSpan
from core.evaluation.outcomes import PRIOR, Flags, Numbers, Outcomes, Places, Prediction

# To which the official scorer rounds before it calls a text's shares constant.
SPAN_DIGITS = 8


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
    if all(row.spans is None for row in found.rows):
        return None
    pairs = list(zip(found.rows, found.said, strict=True))
    counts = np.array([_characters(row, said.spans) for row, said in pairs], dtype=np.float64)
    marks_words = np.array([row.spans is not None for row in found.rows], dtype=bool)
    correlation = None
    if any(row.soft for row in found.rows):
        correlation = np.array([_correlation(row, said) for row, said in pairs], dtype=np.float64)
        correlation[~marks_words] = np.nan
    shown = np.array([_characters(row, s.shown) for row, s in pairs], dtype=np.float64)
    iou, iou_shown = (np.where(marks_words, _iou(c), np.nan) for c in (counts, shown))
    return SpanScores(iou, iou_shown, correlation, counts)


def _iou(counts: Numbers) -> Numbers:
    both, marked, gold = counts.T
    either = marked + gold - both
    return np.asarray(np.where(either == 0, 1.0, both / np.where(either == 0, 1.0, either)))


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
    marked = np.zeros(length, dtype=bool)
    for span in spans:
        marked[span.start : span.end] = True
    return marked


def _shares(spans: Sequence[GoldSpan], length: int) -> Numbers:
    shares = np.zeros(length)
    for span in spans:
        inside = slice(span.start, span.end)
        shares[inside] = np.maximum(shares[inside], span.p)
    return shares


Measure = Callable[[Numbers], Numbers]
BINS = 10


def measures(found: Outcomes) -> dict[str, Measure]:
    """Each figure as a function of row weights (b, n) that gives (b,); NaN where undefined."""
    wrong, answered, p = found.wrong, found.answered, found.p
    named = _label_measures(found) | {
        "brier": _mean((p - wrong) ** 2),
        "ece": _calibration_error(p, wrong, answered),
        "coverage": _mean(answered),
        "selective_accuracy": _mean_of(found.right, answered),
    }
    if found.forced.any():
        named |= _forced_measures(found)
    if found.has_both:
        named["auroc"] = _ranking(p, wrong)
    if found.has_open_golds:
        named["accuracy3"] = _mean(found.exact)
    agents = {name: _mean_known(values) for name, values in agent_rows(found).items()}
    if "caar" in agents:
        agents["caar_chance"] = _alike_by_chance(openings(found))
    return named | agents | _span_measures(found)


def _label_measures(found: Outcomes) -> dict[str, Measure]:
    told = found.told
    said_wrong = np.array([label == "hallucinated" for label in told], dtype=bool)
    said_right = np.array([label == "supported" for label in told], dtype=bool)
    wrong, right = found.wrong, ~found.wrong
    table = np.stack(
        [wrong & said_wrong, right & said_right, wrong, right, said_wrong, said_right], axis=1
    ).astype(np.float64)

    def over(rate: Callable[..., Numbers]) -> Measure:
        return lambda weights: rate(*(weights @ table).T)

    named = {"accuracy": over(lambda tp, tn, w, r, sw, sr: _share(tp + tn, w + r))}
    if bool(wrong.any()):
        named["recall"] = over(lambda tp, tn, w, r, sw, sr: _share(tp, w))
    if found.has_both:
        named |= {
            "balanced_accuracy": over(
                lambda tp, tn, w, r, sw, sr: (_share(tp, w) + _share(tn, r)) / 2
            ),
            "precision": over(lambda tp, tn, w, r, sw, sr: _or_zero(_share(tp, sw))),
            "f1": over(lambda tp, tn, w, r, sw, sr: _share(2 * tp, w + sw)),
            "f2": over(lambda tp, tn, w, r, sw, sr: _share(5 * tp, 4 * w + sw)),
            "f1_supported": over(lambda tp, tn, w, r, sw, sr: _share(2 * tn, r + sr)),
            "mcc": over(_matthews),
        }
    return named


def _forced_measures(found: Outcomes) -> dict[str, Measure]:
    wrong, held = found.wrong, found.forced
    has_p = np.array([said.p is not None for said in found.said], dtype=bool)
    right = ((found.p >= PRIOR) == wrong) & has_p
    named = {
        "forced_accuracy": _mean_of(right, held),
        "forced_ece": _calibration_error(found.p, wrong, held & has_p),
        "aurc": _risk_over_coverage(found.p, right, held),
    }
    if (wrong & held).any() and (~wrong & held).any():
        recalls = (_mean_of(right, held & wrong), _mean_of(right, held & ~wrong))
        named["forced_balanced_accuracy"] = lambda weights: (
            (recalls[0](weights) + recalls[1](weights)) / 2
        )
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


def _ranking(p: Numbers, wrong: Flags) -> Measure:
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.diff(p[order], prepend=-1.0))
    positive = wrong[order]

    def measure(weights: Numbers) -> Numbers:
        ranked = weights[:, order]
        up = np.add.reduceat(ranked * positive, starts, axis=1)
        down = np.add.reduceat(ranked * ~positive, starts, axis=1)
        below = np.cumsum(down, axis=1) - down / 2
        return _share((up * below).sum(axis=1), up.sum(axis=1) * down.sum(axis=1))

    return measure


def bins_of(p: Numbers) -> Places:
    """(n,) the bin of each p: ten of equal width, 1.0 in the last."""
    return np.minimum((p * BINS).astype(np.int64), BINS - 1)


def _calibration_error(p: Numbers, wrong: Flags, answered: Flags) -> Measure:
    inside = (bins_of(p)[:, None] == np.arange(BINS)) & answered[:, None]
    gaps = inside * (p - wrong)[:, None]

    def measure(weights: Numbers) -> Numbers:
        return _share(np.abs(weights @ gaps).sum(axis=1), weights @ answered.astype(np.float64))

    return measure


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


def _mean(values: Numbers | Flags) -> Measure:
    numbers = values.astype(np.float64)
    return lambda weights: _share(weights @ numbers, weights.sum(axis=1))


def _mean_of(values: Flags, inside: Flags) -> Measure:
    numbers, counted = (values & inside).astype(np.float64), inside.astype(np.float64)
    return lambda weights: _share(weights @ numbers, weights @ counted)


def _mean_known(values: Numbers) -> Measure:
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0)
    return lambda weights: _share(weights @ sums, weights @ known.astype(np.float64))


def _alike_by_chance(counts: Numbers) -> Measure:
    """How often two answers are alike that are drawn from all, of (n, k) counts of each stance."""

    def measure(weights: Numbers) -> Numbers:
        of_each = weights @ counts
        return _share((of_each**2).sum(axis=1), of_each.sum(axis=1) ** 2)

    return measure


def _share(part: Numbers, whole: Numbers) -> Numbers:
    empty = whole == 0
    return np.where(empty, np.nan, part / np.where(empty, 1.0, whole))


def _or_zero(values: Numbers) -> Numbers:
    return np.where(np.isnan(values), 0.0, values)


DRAWS = 1000
AT_ONCE = 50
PERCENTILES = (2.5, 97.5)
DIGITS = 4
Figure = dict[str, float]


def figures(
    named: Mapping[str, Measure], groups: Places, seed: int, draws: int = DRAWS
) -> dict[str, Figure]:
    """`{"value", "low", "high"}` of each; left out where the value itself is undefined.

    All are drawn alike. Draws in which a figure is undefined (only one label) do not count for it.
    """
    whole = np.ones((1, len(groups)))
    values = {name: float(measure(whole)[0]) for name, measure in named.items()}
    defined = {name: named[name] for name, value in values.items() if not np.isnan(value)}
    drawn: dict[str, list[Numbers]] = {name: [] for name in defined}
    count = int(groups.max()) + 1
    random = np.random.default_rng(seed)
    for begin in range(0, draws, AT_ONCE):
        wanted = min(AT_ONCE, draws - begin)
        times = random.multinomial(count, np.full(count, 1 / count), size=wanted)
        weights = times.astype(np.float64)[:, groups]
        for name, measure in defined.items():
            drawn[name].append(measure(weights))
    return {name: _figure(values[name], np.concatenate(drawn[name])) for name in defined}


def _figure(value: float, drawn: Numbers) -> Figure:
    there = drawn[~np.isnan(drawn)]
    low, high = np.percentile(there, PERCENTILES) if len(there) else (value, value)
    return {name: round(float(x), DIGITS) for name, x in zip(KEYS, (value, low, high), strict=True)}


KEYS = ("value", "low", "high")


def calibrated_null(found: Outcomes, seed: int, draws: int = DRAWS) -> Figure | None:
    """The ECE that a perfectly calibrated model with these p would show, by chance alone.

    The mean over draws of labels from the p themselves, with the middle 95 %; None where nothing
    was answered. Groups play no part: a calibrated model's errors are its own.
    """
    p = found.p[found.answered]
    if not len(p):
        return None
    inside = (bins_of(p)[:, None] == np.arange(BINS)).astype(np.float64)
    random = np.random.default_rng(seed)
    errors = []
    for begin in range(0, draws, AT_ONCE):
        labels = random.random((min(AT_ONCE, draws - begin), len(p))) < p
        errors.append(np.abs((p - labels) @ inside).sum(axis=1) / len(p))
    drawn = np.concatenate(errors)
    return _figure(float(drawn.mean()), drawn)
