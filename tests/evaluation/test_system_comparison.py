"""Paired comparisons: equal to references of our own, symmetric, the same for rows in any order."""

from __future__ import annotations

import itertools
import math
import random
import statistics as reference
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.evaluation.dataset_files import GoldRow
from core.evaluation.metrics import build_measures, estimate_design_effect
from core.evaluation.outcomes import Outcomes, Prediction
from core.evaluation.system_comparison import (
    CONSTANT,
    CONSTANT_GROUPS,
    RIGHT_ROWS_ONLY,
    SAME_EVERYWHERE,
    SAME_ROWS_RIGHT,
    TOO_FEW_FOLDS,
    TOO_FEW_GROUPS,
    PairedStatistic,
    adjust_by_holm,
    compare_by_permutation,
    compare_fold_scores,
    compare_right_rows,
    compare_systems,
    deal_repeated_folds,
    list_comparison_cells,
)
from core.schema.records import Label

SCORES = st.lists(
    st.tuples(*[st.integers(0, 1000).map(lambda n: n / 1000)] * 2), min_size=3, max_size=9
)
RIGHTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80)
LABELS = st.sampled_from(["supported", "hallucinated", "unclear"])
ROWS = st.lists(
    st.tuples(st.sampled_from(["supported", "hallucinated"]), st.integers(0, 12), LABELS, LABELS),
    min_size=2,
    max_size=60,
)


def p_of_t(value: float, freedom: int) -> float:
    """The two-sided p of Student's t by the incomplete beta function."""
    x = freedom / (freedom + value**2)
    return float(mpmath.betainc(freedom / 2, 0.5, 0, x, regularized=True))


def ranks_of(sizes: Sequence[float]) -> list[float]:
    """Mean ranks from 1."""
    return [
        sum(other < own for other in sizes) + (sum(other == own for other in sizes) + 1) / 2
        for own in sizes
    ]


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_the_t_tests_and_d_z_are_those_of_their_formulas(scores: list[tuple[float, float]]) -> None:
    one, other = np.array(scores).T
    change = [round(a - b, 12) for a, b in scores]
    found, n = compare_fold_scores(one, other), len(change)
    assume(len(set(change)) > 1)
    mean, deviation = reference.mean(change), reference.stdev(change)
    plain = mean / (deviation / math.sqrt(n))
    corrected = mean / (deviation * math.sqrt(1 / n + 1 / 4))
    assert found["t"].value == pytest.approx(plain, abs=1e-7)
    assert found["t"].p == pytest.approx(p_of_t(plain, n - 1), abs=1e-7)
    assert found["corrected t"].value == pytest.approx(corrected, abs=1e-7)
    assert found["corrected t"].p == pytest.approx(p_of_t(corrected, n - 1), abs=1e-7)
    assert found["d_z"].value == pytest.approx(mean / deviation, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_wilcoxon_and_rank_biserial_are_those_of_all_signs(
    scores: list[tuple[float, float]],
) -> None:
    one, other = np.array(scores).T
    change = [d for a, b in scores if (d := round(a - b, 12))]
    assume(change)
    found, ranks = compare_fold_scores(one, other), ranks_of([abs(d) for d in change])
    up = sum(rank for rank, d in zip(ranks, change, strict=True) if d > 0)
    down = sum(ranks) - up
    assert found["Wilcoxon"].value == min(up, down)
    assert found["rank-biserial"].value == pytest.approx((up - down) / sum(ranks))
    sums = [
        sum(itertools.compress(ranks, signs))
        for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    p = 2 * sum(total <= min(up, down) for total in sums) / len(sums)
    assert found["Wilcoxon"].p == pytest.approx(min(1.0, p))


@settings(max_examples=100, deadline=None)
@given(RIGHTS)
def test_mcnemar_g_and_h_are_those_of_their_formulas(pairs: list[tuple[bool, bool]]) -> None:
    one, other = np.array(pairs).T
    found = compare_right_rows(one, other, np.arange(len(one)))
    gained, lost = pairs.count((True, False)), pairs.count((False, True))
    differ = gained + lost
    shares = [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]
    h = 2 * math.asin(math.sqrt(shares[0])) - 2 * math.asin(math.sqrt(shares[1]))
    assert found["h"].value == pytest.approx(h)
    if not differ:
        assert found["McNemar"] == found["g"] == PairedStatistic(None, why=SAME_ROWS_RIGHT)
        return
    tail = sum(math.comb(differ, k) for k in range(min(gained, lost) + 1)) / 2**differ
    p = min(1.0, 2 * tail)
    if differ >= 25:
        p = math.erfc(math.sqrt((abs(gained - lost) - 1) ** 2 / differ / 2))
    assert found["McNemar"].p == pytest.approx(p)
    assert found["g"].value == pytest.approx(max(gained, lost) / differ - 0.5) or gained < lost


def test_mcnemar_is_exact_below_25_rows_that_differ() -> None:
    for differ in (24, 25):
        one = np.array([True] * (differ - 4) + [False] * 4 + [True] * 10)
        other = np.array([False] * (differ - 4) + [True] * 4 + [True] * 10)
        exact = 2 * sum(math.comb(differ, k) for k in range(5)) / 2**differ
        found = compare_right_rows(one, other, np.arange(len(one)))["McNemar"].p
        assert (found == pytest.approx(exact)) is (differ < 25)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 8)), min_size=8))
def test_in_groups_right_rows_are_compared_by_obuchowskis_test(
    rows: list[tuple[bool, bool, int]],
) -> None:
    one, other = (np.array([row[side] for row in rows], bool) for side in (0, 1))
    groups = np.unique([row[2] for row in rows], return_inverse=True)[1]
    count, n = len(set(groups)), len(rows)
    assume(count < n and (one != other).any())
    found = compare_right_rows(one, other, groups)["McNemar"]
    if count < 5:
        assert found == PairedStatistic(None, why=TOO_FEW_GROUPS)
        return
    mean = (sum(one) - sum(other)) / n
    spread = 0.0
    for group in range(count):
        changes = [
            int(a) - int(b) for a, b, g in zip(one, other, groups, strict=True) if g == group
        ]
        spread += (sum(changes) - len(changes) * mean) ** 2
    if spread < 1e-9:
        assert found.why == CONSTANT_GROUPS
        return
    chi_squared = mean**2 / (count / (count - 1) * spread / n**2)
    assert found.value == pytest.approx(chi_squared)
    assert found.p == pytest.approx(math.erfc(math.sqrt(chi_squared / 2)))


def test_ten_rows_of_each_text_are_not_ten_times_the_evidence() -> None:
    right = np.repeat(np.arange(20) < 13, 10)
    alone = compare_right_rows(right, ~right, np.arange(200))["McNemar"].p
    in_tens = compare_right_rows(right, ~right, np.arange(200) // 10)["McNemar"].p
    assert alone is not None
    assert in_tens is not None
    assert alone < 0.001 < 0.1 < in_tens


@settings(max_examples=40, deadline=None)
@given(ROWS, st.sampled_from(["accuracy", "balanced_accuracy", "f1", "auroc"]))
def test_the_permutation_test_is_that_of_exchanging_both_systems_answers_by_group(
    rows: list[tuple[Label, int, Label, Label]], figure: str
) -> None:
    rows = [(gold, n % 6, one, other) for n, (gold, _, one, other) in enumerate(rows)]
    assume(len(rows) >= 5 and len({gold for gold, *_ in rows}) == 2)
    systems = [outcomes(rows, side) for side in (0, 1)]
    found = compare_by_permutation(systems[0], systems[1], figure, seed=0)
    names = sorted({group for _, group, *_ in rows})
    changes = []
    for pattern in itertools.product((False, True), repeat=len(names)):
        exchanged = {name for name, one in zip(names, pattern, strict=True) if one}
        mixed = [(g, k, b, a) if k in exchanged else (g, k, a, b) for g, k, a, b in rows]
        a, b = (
            build_measures(outcomes(mixed, side))[figure](np.ones((1, len(rows))))[0]
            for side in (0, 1)
        )
        changes.append(round(a - b, 9))
    below, above = (sum(s * c >= s * changes[0] for c in changes) for s in (-1, 1))
    assert found.value == pytest.approx(changes[0])
    assert found.p == pytest.approx(min(1.0, 2 * min(below, above) / len(changes)))


def test_a_test_stands_on_the_row_of_its_own_figure() -> None:
    rows = [
        (gold, i, gold if i % 5 else "unclear", gold if i % 3 else "hallucinated")
        for i in range(30)
        for gold in ("supported", "hallucinated")
    ]
    systems = {name: outcomes(rows, i) for i, name in enumerate("ab")}  # type: ignore[arg-type]
    found = {name: compare_systems(systems, name)[0].statistics for name in ("accuracy", "f1")}
    assert found["accuracy"]["permutation"].value != found["f1"]["permutation"].value
    for name in ("McNemar", "h", "g"):
        assert found["accuracy"][name].value is not None
        assert found["f1"][name] == PairedStatistic(None, why=RIGHT_ROWS_ONLY)
    assert list(found["accuracy"]) == list(found["f1"])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=60))
def test_the_design_effect_is_that_of_a_clustered_mean(rows: list[tuple[bool, int]]) -> None:
    right = np.array([one for one, _ in rows])
    groups = np.array([group for _, group in rows])
    names, n, p = set(groups.tolist()), len(rows), right.mean()
    found = estimate_design_effect(right, groups)
    if p in (0, 1) or len(names) == 1:
        assert found == n / len(names)
        return
    spread = sum((right[groups == name] - p).sum() ** 2 for name in names)
    variance = len(names) / (len(names) - 1) * spread / n**2
    assert found == pytest.approx(max(1.0, variance * (n - 1) / (p * (1 - p))))
    assert len(names) < n or found == pytest.approx(1.0)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.none() | st.floats(0, 1), max_size=8))
def test_holm_is_that_of_stepping_down(values: list[float | None]) -> None:
    adjusted = adjust_by_holm([PairedStatistic(p, p, why="" if p else "?") for p in values])
    known = sorted((p, place) for place, p in enumerate(values) if p is not None)
    highest, expected = 0.0, {}
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        expected[place] = highest
    for place, test in enumerate(adjusted):
        assert test.p_holm == (pytest.approx(expected[place]) if place in expected else None)


@settings(max_examples=40, deadline=None)
@given(SCORES, RIGHTS)
def test_the_other_way_round_p_stays_and_effects_change_sign(
    scores: list[tuple[float, float]], rights: list[tuple[bool, bool]]
) -> None:
    one, other = np.array(scores).T
    a, b = np.array(rights).T
    groups = np.arange(len(a)) // 2
    there = compare_fold_scores(one, other) | compare_right_rows(a, b, groups)
    back = compare_fold_scores(other, one) | compare_right_rows(b, a, groups)
    for name, found in there.items():
        assert found.p == pytest.approx(back[name].p)
        assert found.why == back[name].why
        if found.p is None and found.value is not None:
            assert found.value == pytest.approx(-(back[name].value or 0.0))


def outcomes(rows: Sequence[tuple[Label, int, Label, Label]], system: int) -> Outcomes:
    """The outcomes of one of two systems; rows are gold, group and what both said."""
    golds = [
        GoldRow(str(i), "", "", gold, f"g{group}", documents=("d",))
        for i, (gold, group, *_) in enumerate(rows)
    ]
    p = {"supported": 0.1, "hallucinated": 0.9, "unclear": 0.5}
    said = [row[2:][system] for row in rows]
    return Outcomes(golds, [Prediction(label, p[label]) for label in said])


@settings(max_examples=5, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_comparisons_are_whole_and_the_same_in_any_order(
    rows: list[tuple[Label, int, Label, Label]], shuffler: random.Random
) -> None:
    places = list(range(len(rows)))
    shuffler.shuffle(places)
    systems = {name: outcomes(rows, i) for i, name in enumerate("ab")}
    shuffled = {
        name: Outcomes([one.rows[i] for i in places], [one.said[i] for i in places])
        for name, one in systems.items()
    }
    for figure in ("balanced_accuracy", "f1", "iou"):
        (found,), (again,) = (compare_systems(each, figure) for each in (systems, shuffled))
        assert list_comparison_cells(found) == list_comparison_cells(again)
        for one in found.statistics.values():
            assert (one.value is None) is bool(one.why)
            assert one.value is None or math.isfinite(one.value)
        assert "nan" not in " ".join(list_comparison_cells(found).values())
        assert found.difference is None or found.difference.low <= found.difference.high


def test_folds_hold_whole_groups_and_every_row_once_a_seed() -> None:
    groups = [f"g{i // 3}" for i in range(60)]
    wrong = np.array([i % 2 == 0 for i in range(60)])
    folds = deal_repeated_folds(wrong, groups)
    assert folds.shape == (15, 60)
    for seed in range(3):
        assert (folds[5 * seed : 5 * seed + 5].sum(axis=0) == 1).all()
    for fold in folds:
        inside = {g for g, one in zip(groups, fold, strict=True) if one}
        assert not inside & {g for g, one in zip(groups, fold, strict=True) if not one}
    assert not np.array_equal(folds[:5], folds[5:10]), "seeds deal differently"


def test_what_is_not_defined_says_why() -> None:
    same = np.array([0.5, 0.6, 0.7])
    assert compare_fold_scores(same, same)["t"].why == SAME_EVERYWHERE
    moved = compare_fold_scores(same + 0.1, same)
    assert {name: one.why for name, one in moved.items() if one.why} == dict.fromkeys(
        ("t", "corrected t", "d_z"), CONSTANT
    )
    assert moved["rank-biserial"].value == 1.0
    assert compare_fold_scores(np.zeros(0), np.zeros(0))["Wilcoxon"].why == TOO_FEW_FOLDS
    few = [("supported", 0, "supported", "unclear"), ("hallucinated", 1, "unclear", "unclear")]
    (found,) = compare_systems({n: outcomes(few, i) for i, n in enumerate("ab")}, "f1")  # type: ignore[arg-type]
    assert (found.folds, found.scores) == (0, ())
    assert found.statistics["t"].why == TOO_FEW_FOLDS


def test_each_system_is_laid_beside_the_baseline_and_holm_counts_them_all() -> None:
    rows = [
        (gold, i, gold if i % 5 else "unclear", "hallucinated")
        for i in range(40)
        for gold in ("supported", "hallucinated")
    ]
    good, bad = (outcomes(rows, i) for i in (0, 1))  # type: ignore[arg-type]
    found = compare_systems({"base": bad, "x": good, "y": good}, "accuracy", baseline="base")
    assert [(one.system, one.other) for one in found] == [("x", "base"), ("y", "base")]
    test = found[0].statistics["McNemar"]
    assert test.p is not None
    assert test.p_holm == pytest.approx(2 * test.p)
    assert found[0].difference is not None
    assert found[0].difference.value == pytest.approx(0.3)
    assert len(compare_systems({"base": bad, "x": good, "y": good}, "accuracy")) == 3


def test_systems_on_other_rows_are_not_compared() -> None:
    rows: list[tuple[Label, int, Label, Label]] = [("supported", 0, "supported", "supported")]
    with pytest.raises(ValueError, match="same rows"):
        compare_systems({"a": outcomes(rows, 0), "b": outcomes(rows * 2, 0)}, "f1")
