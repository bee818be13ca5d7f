"""Calibration: the curve that surprises least on cases that it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning.calibration import FEWEST, calibrated
from core.learning.head_fit import FEWEST_ON_SPLIT, Numbered, fit_calibration, fitted_head
from core.learning.metrics import Flags
from core.learning.options import Options
from core.verdict.head import Calibrator, Numbers, sigmoid


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
