"""Compare systems on the same rows: folds, significance tests, effect sizes (SC-MAKS 4.7 to 4.9).

Rows are dealt to five folds under each of three seeds; a group stays in one fold, and labels are
shared out evenly. Over the folds go the paired t-test and Wilcoxon's signed-rank test, as in the
paper, and the t-test with the variance of Nadeau and Bengio (2003): folds of several seeds share
rows, so the plain test calls too much significant. The permutation test exchanges the answers of
both systems group by group, for any figure. McNemar's test is one of right and wrong rows and
stands beside accuracy alone: exact below 25 rows on which the two differ, and where rows come in
groups in the form of Obuchowski (1998). Effect sizes: Cohen's d_z and the matched-pairs
rank-biserial correlation over folds, and beside accuracy Cohen's h of the shares of right rows and
Cohen's g of McNemar's table. The difference has a bootstrap interval over groups. Holm's method
adjusts each test over the comparisons of one call. What is not defined has a reason in place of a
figure.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.evaluation.metrics import build_measures
from core.evaluation.outcomes import Outcomes
from core.learning.metrics import (
    DRAWS_PER_BATCH,
    FOLD_COUNT,
    MIN_GROUPS,
    BoolArray,
    FloatArray,
    IndexArray,
    Measure,
    MetricEstimate,
    bootstrap_measures,
    iter_grouped_folds,
    number_names,
)

FOLD_SEEDS = (0, 1, 2)
TEST_TO_TRAIN = 1 / (FOLD_COUNT - 1)  # rows of a fold to the other rows (Nadeau and Bengio)
EXACT_BELOW = 25  # rows that differ
PERMUTATIONS = 1_999  # of more groups than have fewer
ROUNDING_DIGITS = 12  # to which folds are told apart
SAME_EVERYWHERE = "no fold differs"
CONSTANT = "the same difference in every fold"
SAME_ROWS_RIGHT = "both are right on the same rows"
CONSTANT_GROUPS = "the same difference in every group"
RIGHT_ROWS_ONLY = "of right and wrong rows: see accuracy"
NO_FIGURE = "the rows do not give the figure"
TOO_FEW_GROUPS = f"too few groups: takes {MIN_GROUPS}"
TOO_FEW_FOLDS = f"too few folds: takes {FOLD_COUNT} groups and rows of each label"


@dataclass(frozen=True)
class PairedStatistic:
    """A test's statistic with its two-sided p, or an effect size, which has no p.

    Where it is not defined `value` is None and `why` says why.
    """

    value: float | None
    p: float | None = None
    p_holm: float | None = None
    why: str = ""


@dataclass(frozen=True)
class SystemComparison:
    """One system against another on the same rows, by one figure.

    `scores` are both systems' means and standard deviations (n - 1) over `folds`, the folds in
    which both have the figure; `difference` is None if the rows do not give it.
    """

    system: str
    other: str
    figure: str
    rows: int
    groups: int
    folds: int
    scores: tuple[tuple[float, float], ...]
    difference: MetricEstimate | None
    statistics: dict[str, PairedStatistic]

    @property
    def winner(self) -> str:
        """The system that is ahead by more than chance; empty if none is."""
        if self.difference is None or self.difference.low <= 0 <= self.difference.high:
            return ""
        return self.system if self.difference.low > 0 else self.other


def deal_repeated_folds(wrong: BoolArray, groups: Sequence[str]) -> FloatArray:
    """Return (folds, n) weights, 1 for a fold's rows; no fold if groups or rows are too few."""
    rarest = min(Counter(wrong.tolist()).values(), default=0)
    if min(len(set(groups)), rarest) < FOLD_COUNT:
        return np.zeros((0, len(wrong)))
    tested = [rows for seed in FOLD_SEEDS for _, rows in iter_grouped_folds(wrong, groups, seed)]
    return np.array([np.isin(np.arange(len(wrong)), rows) for rows in tested], np.float64)


def compare_fold_scores(one: FloatArray, other: FloatArray) -> dict[str, PairedStatistic]:
    """Return the tests and effect sizes of two systems' scores in the same folds."""
    from scipy.stats import rankdata, t, ttest_rel, wilcoxon

    change = np.round(one - other, ROUNDING_DIGITS)
    moved, n = change[change != 0], len(change)
    unranked = PairedStatistic(None, why=SAME_EVERYWHERE if n else TOO_FEW_FOLDS)
    found = dict.fromkeys(("t", "corrected t", "Wilcoxon", "d_z", "rank-biserial"), unranked)
    if len(moved):
        test, ranks = wilcoxon(moved), rankdata(np.abs(moved))
        found["Wilcoxon"] = PairedStatistic(float(test.statistic), float(test.pvalue))
        balance = float((ranks * np.sign(moved)).sum() / ranks.sum())
        found["rank-biserial"] = PairedStatistic(balance)
        constant = PairedStatistic(None, why=CONSTANT if n > 1 else TOO_FEW_FOLDS)
        found |= dict.fromkeys(("t", "corrected t", "d_z"), constant)
    if n > 1 and np.ptp(change) > 2 * 10.0**-ROUNDING_DIGITS:
        plain = float(ttest_rel(one, other).statistic)
        for name, ratio in (("t", 0.0), ("corrected t", TEST_TO_TRAIN)):
            value = plain / float(np.sqrt(1 + n * ratio))
            found[name] = PairedStatistic(value, float(2 * t.sf(abs(value), n - 1)))
        found["d_z"] = PairedStatistic(float(change.mean() / change.std(ddof=1)))
    return found


def compare_right_rows(
    one: BoolArray, other: BoolArray, groups: IndexArray
) -> dict[str, PairedStatistic]:
    """Return McNemar's test and Cohen's g and h of which rows two systems have right."""
    from statsmodels.stats.proportion import proportion_effectsize  # type: ignore[import-untyped]

    gained, lost = int((one & ~other).sum()), int((~one & other).sum())
    h = PairedStatistic(float(proportion_effectsize(one.mean(), other.mean())))
    if not gained + lost:
        same = PairedStatistic(None, why=SAME_ROWS_RIGHT)
        return {"McNemar": same, "h": h, "g": same}
    return {
        "McNemar": _run_mcnemar(one, other, groups),
        "h": h,
        "g": PairedStatistic(gained / (gained + lost) - 0.5),
    }


def _run_mcnemar(one: BoolArray, other: BoolArray, groups: IndexArray) -> PairedStatistic:
    """Return McNemar's test; of rows in groups Obuchowski's, a mean with a clustered error."""
    from statsmodels.regression.linear_model import OLS  # type: ignore[import-untyped]
    from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]

    change, sizes = one.astype(np.float64) - other, np.bincount(groups)
    if sizes.max() == 1:
        gained, lost = int((change > 0).sum()), int((change < 0).sum())
        test = mcnemar([[0, gained], [lost, 0]], exact=gained + lost < EXACT_BELOW)
        return PairedStatistic(float(test.statistic), float(test.pvalue))
    if len(sizes) < MIN_GROUPS:
        return PairedStatistic(None, why=TOO_FEW_GROUPS)
    if not np.bincount(groups, change - change.mean()).round(ROUNDING_DIGITS).any():
        return PairedStatistic(None, why=CONSTANT_GROUPS)
    fitted = OLS(change, np.ones(len(change))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    return PairedStatistic(float(fitted.tvalues[0] ** 2), float(fitted.pvalues[0]))


def compare_by_permutation(
    one: Outcomes, other: Outcomes, figure: str, seed: int
) -> PairedStatistic:
    """Return a figure's difference with its p, exchanging both systems' answers group by group.

    It is exact where groups are few, and holds for any figure that both have.
    """
    from scipy.stats import permutation_test

    groups = number_names(one.group_keys)
    if (count := int(groups.max()) + 1) < MIN_GROUPS:
        return PairedStatistic(None, why=TOO_FEW_GROUPS)
    measure = build_measures(Outcomes([*one.rows, *other.rows], [*one.said, *other.said]))[figure]

    def compute_difference(own: FloatArray, _: FloatArray, axis: int) -> FloatArray:
        """`own` (draws, groups) is 1 where the first system's answers are its own."""
        weights = np.atleast_2d(own)[:, groups]
        sides = np.hstack([weights, 1 - weights]), np.hstack([1 - weights, weights])
        change = measure(sides[0]) - measure(sides[1])
        return np.nan_to_num(change).round(ROUNDING_DIGITS).reshape(own.shape[:-1])

    found = permutation_test(
        (np.ones(count), np.zeros(count)),
        compute_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=DRAWS_PER_BATCH,
        axis=-1,
        rng=seed,
    )
    return PairedStatistic(float(found.statistic), float(found.pvalue))


def adjust_by_holm(family: Sequence[PairedStatistic]) -> list[PairedStatistic]:
    """Return the tests with `p_holm`; those that are not defined stay outside the family."""
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    known = [test.p for test in family if test.p is not None]
    adjusted = iter(multipletests(known, method="holm")[1].tolist() if known else ())
    return [test if test.p is None else replace(test, p_holm=next(adjusted)) for test in family]


def compare_systems(
    systems: Mapping[str, Outcomes], figure: str, *, baseline: str | None = None, seed: int = 0
) -> list[SystemComparison]:
    """Return the comparison of each system with the baseline, or of all pairs without one.

    The same rows in another order give the same comparisons. Raises ValueError if the systems do
    not hold the same rows in the same order.
    """
    rows = next(iter(systems.values())).rows
    ids, groups = [row.id for row in rows], next(iter(systems.values())).group_keys
    if any([row.id for row in one.rows] != ids for one in systems.values()):
        raise ValueError("paired comparisons need the same rows")
    folds = deal_repeated_folds(next(iter(systems.values())).wrong, groups)
    pairs = list(itertools.combinations(systems, 2))
    if baseline is not None:
        pairs = [(name, baseline) for name in systems if name != baseline]
    measures = {name: build_measures(outcomes).get(figure) for name, outcomes in systems.items()}
    compared = []
    for pair in pairs:
        one, other = (measures[name] for name in pair)
        scores, difference = np.zeros((2, 0)), None
        permuted = PairedStatistic(None, why=NO_FIGURE)
        if one is not None and other is not None:
            difference = bootstrap_difference(one, other, groups, seed)
            permuted = compare_by_permutation(systems[pair[0]], systems[pair[1]], figure, seed)
            if len(folds):
                scores = np.stack([one(folds), other(folds)])
                scores = scores[:, ~np.isnan(scores).any(axis=0)]
        spread = tuple((float(s.mean()), float(s.std(ddof=1))) for s in scores if len(s) > 1)
        found = {"permutation": permuted} | compare_fold_scores(*scores)
        if figure == "accuracy":
            right, right_other = (systems[name].right for name in pair)
            found |= compare_right_rows(right, right_other, number_names(groups))
        else:
            found |= dict.fromkeys(
                ("McNemar", "h", "g"), PairedStatistic(None, why=RIGHT_ROWS_ONLY)
            )
        sizes = len(ids), len(set(groups)), scores.shape[1]
        compared.append(SystemComparison(*pair, figure, *sizes, spread, difference, found))
    return _adjust_families(compared)


def bootstrap_difference(
    one: Measure, other: Measure, groups: Sequence[str], seed: int
) -> MetricEstimate | None:
    """Return a figure's difference with its paired interval; None if undefined or few groups."""
    measures: dict[str, Measure] = {"": lambda weights: one(weights) - other(weights)}
    difference = bootstrap_measures(measures, number_names(groups), seed)[""]
    return None if np.isnan(difference.value) or len(set(groups)) < MIN_GROUPS else difference


def _adjust_families(compared: Sequence[SystemComparison]) -> list[SystemComparison]:
    names = compared[0].statistics if compared else ()
    families = {name: adjust_by_holm([one.statistics[name] for one in compared]) for name in names}
    return [
        replace(one, statistics={name: family[place] for name, family in families.items()})
        for place, one in enumerate(compared)
    ]


def list_comparison_cells(compared: SystemComparison) -> dict[str, str]:
    """Return the comparison as the cells of a table by title; p stands as “p (p by Holm)”."""
    spread = [f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in compared.scores]
    shown = "none" if compared.groups >= MIN_GROUPS else f"no interval: {compared.groups} groups"
    if compared.difference is not None:
        shown = "{:+.3f} ({:+.3f} to {:+.3f})".format(*compared.difference)
    return {
        "way": compared.system,
        "against": compared.other,
        "figure": compared.figure,
        "difference (95 %)": shown,
        "both over folds (mean ± sd)": f"{compared.folds}: {', '.join(spread)}",
        **{name: _format_statistic(one) for name, one in compared.statistics.items()},
    }


def _format_statistic(one: PairedStatistic) -> str:
    if one.value is None:
        return f"none: {one.why}"
    return f"{one.value:+.2f}" if one.p is None else f"p {one.p:.2g} ({one.p_holm:.2g})"
