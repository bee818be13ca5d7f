"""Curves and stacks make probabilities that mean something on cases not seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.head_fit import (
    FEWEST,
    FEWEST_ON_SPLIT,
    Numbered,
    calibrated,
    cross_fitted,
    fit_calibration,
    fit_stack,
    fitted_head,
)
from core.learning.metrics import Flags, grouped_folds
from core.learning.options import Options
from core.verdict.classifier import Calibrator, Numbers, sigmoid


def drawn(count: int, slope: float, shift: float, seed: int = 1) -> tuple[Numbers, Flags]:
    """Log odds, and what is true when they must be taken times slope plus shift."""
    random = np.random.default_rng(seed)
    told = random.normal(0, 2, count)
    return told, random.random(count) < sigmoid(slope * told + shift)


def groups(count: int) -> list[str]:
    return [f"c{n}" for n in range(count)]


def test_what_needs_no_calibration_gets_none() -> None:
    told, truth = drawn(400, 1.0, 0.0, seed=2)
    found = calibrated(told, truth, groups(400), may_sharpen=True)
    assert found.calibrator == Calibrator()
    assert found.n == 400


@pytest.mark.parametrize(
    ("slope", "shift", "kind"), [(0.3, 0.0, "temperature"), (1.0, -2.0, "platt")]
)
def test_the_simplest_curve_that_helps_is_chosen(slope: float, shift: float, kind: str) -> None:
    told, truth = drawn(500, slope, shift)
    found = calibrated(told, truth, groups(500), may_sharpen=True)
    assert found.calibrator.kind == kind
    assert found.calibrator.slope[0] == pytest.approx(slope, abs=0.15)
    assert found.calibrator.shift[0] == pytest.approx(shift, abs=0.4)
    assert found.log_loss[kind] < found.log_loss["none"]


def test_a_step_that_no_line_follows_takes_isotonic_regression_and_stays_inside() -> None:
    random = np.random.default_rng(2)
    told = random.uniform(-3, 3, 1200)
    truth = random.random(1200) < np.where(np.abs(told) < 2, 0.5, np.where(told > 0, 1.0, 0.0))
    found = calibrated(told, truth, groups(1200), may_sharpen=True)
    assert found.calibrator.kind == "isotonic"
    p = found.calibrator.probability(np.array([-1e9, -2.5, 0.0, 2.5, 1e9]))
    assert (np.diff(p) >= 0).all()
    assert 0.0 < p[0] < 0.02 < p[2] < 0.98 < p[4] < 1.0


@pytest.mark.parametrize(
    ("each", "kinds"),
    [
        (0, {"none"}),
        (9, {"none"}),
        (10, {"none", "temperature"}),
        (20, {"none", "temperature", "platt"}),
        (150, set(FEWEST)),
    ],
)
def test_a_curve_is_tried_only_where_there_are_enough_rows(each: int, kinds: set[str]) -> None:
    told = np.linspace(-2, 2, 2 * each + 5)
    truth = np.arange(len(told)) >= each + 5
    found = calibrated(told, truth, groups(len(told)), may_sharpen=True)
    assert set(found.log_loss) == kinds


def test_nothing_at_all_calibrates_nothing() -> None:
    none = np.zeros(0)
    found = calibrated(none, none.astype(bool), [], may_sharpen=False)
    assert (found.calibrator.kind, found.n, found.log_loss) == ("none", 0, {})


def test_all_of_one_label_calibrate_nothing() -> None:
    told, _ = drawn(60, 1.0, 0.0)
    found = calibrated(told, np.ones(60, dtype=bool), groups(60), may_sharpen=True)
    assert found.calibrator.kind == "none"


def test_leaking_predictions_may_cool_but_never_sharpen() -> None:
    told, truth = drawn(500, 5.0, 0.0)
    free = calibrated(told, truth, groups(500), may_sharpen=True).calibrator
    bound = calibrated(told, truth, groups(500), may_sharpen=False).calibrator
    assert free.slope[0] > 2
    assert bound.slope[0] <= 1.0


def numbers(count: int, seed: int, name: str) -> Numbered:
    random = np.random.default_rng(seed)
    truth = np.arange(count) % 2 == 0
    vectors = (random.normal(0, 1.0, (count, 4)) + truth[:, None]).astype(np.float32)
    names = tuple(f"{name}{n}" for n in range(count))
    return Numbered(names, vectors, (None,) * count, truth, names)


@pytest.mark.parametrize(
    ("split", "is_cross_fitted", "n"),
    [(2 * FEWEST_ON_SPLIT, False, 2 * FEWEST_ON_SPLIT), (2 * FEWEST_ON_SPLIT - 1, True, 60)],
)
def test_a_split_that_is_large_enough_calibrates_else_training_cases_do(
    split: int, is_cross_fitted: bool, n: int
) -> None:
    cases, seeds = numbers(60, 1, "c"), numbers(20, 2, "s")
    head = fitted_head(cases.with_others(seeds), Options())
    found, told = fit_calibration(head, cases, seeds, numbers(split, 3, "k"), Options())
    assert (told, found.n) == (is_cross_fitted, n)
    assert found.card(is_cross_fitted=told)["cross_fitted"] is is_cross_fitted


def drawn_scores(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """(scores of two informed and one idle scorer, labels that follow the first two)."""
    chance = np.random.default_rng(seed)
    scores = chance.normal(size=(n, 3))
    p = 1 / (1 + np.exp(-(1.5 * scores[:, 0] + 0.7 * scores[:, 1] - 0.4)))
    return scores * [1.0, 20.0, 3.0], chance.random(n) < p


def test_probabilities_come_true_and_an_idle_score_counts_for_little() -> None:
    scores, is_wrong = drawn_scores(1)
    stack = fit_stack(scores, is_wrong)
    fresh, came_true = drawn_scores(2)
    p = stack.p(fresh)
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        assert p[inside].mean() == pytest.approx(came_true[inside].mean(), abs=0.08)
    first, second, idle = stack.weights
    assert first > second > 4 * idle


def test_a_score_is_never_turned_round() -> None:
    scores, is_wrong = drawn_scores(3)
    stack = fit_stack(np.column_stack([scores[:, 0], -scores[:, 0]]), is_wrong)
    assert (stack.weights >= 0).all()
    assert stack.weights[1] == pytest.approx(0.0, abs=1e-6)


def test_a_score_that_never_changes_leaves_the_share() -> None:
    is_wrong = np.array([True] * 3 + [False] * 7)
    p = fit_stack(np.ones((10, 1)), is_wrong).p(np.ones((2, 1)))
    assert p == pytest.approx([0.3, 0.3], abs=0.03)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(12, 40))
def test_no_case_is_scored_by_what_saw_its_group(seed: int, groups: int) -> None:
    chance = np.random.default_rng(seed)
    own = np.repeat(np.arange(groups), 2)
    is_wrong = np.arange(len(own)) % 2 == 0
    cases = chance.permutation(len(own) * 2)[: len(own)]
    seen: list[tuple[set[int], set[int]]] = []

    def scorer(fit: np.ndarray, test: np.ndarray) -> np.ndarray:
        seen.append((set(fit.tolist()), set(test.tolist())))
        return np.zeros(len(test))

    scores = cross_fitted([scorer], cases, is_wrong, own, seed)
    assert scores.shape == (len(cases), 1)
    group_of = dict(zip(cases.tolist(), own.tolist(), strict=True))
    assert sorted(case for _, test in seen for case in test) == sorted(cases.tolist())
    for fit, test in seen:
        assert not {group_of[c] for c in fit} & {group_of[c] for c in test}


def test_folds_are_the_same_for_the_same_seed() -> None:
    is_wrong, groups = np.arange(40) % 2 == 0, np.arange(40) // 2
    first = [test.tolist() for _, test in grouped_folds(is_wrong, groups, 5)]
    again = [test.tolist() for _, test in grouped_folds(is_wrong, groups, 5)]
    assert first == again
