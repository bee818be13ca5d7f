"""What scores are worth: probabilities by material, limits, and honest figures for both."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning.evidence_calibration import (
    HALLUCINATED_ERROR,
    SUPPORTED_ERROR,
    ScoredStatements,
    calibrated,
    calibrations,
    cross_calibrated,
    limits,
)
from core.runtime.errors import InputError
from core.schema.records import MaterialKind


def drawn(seed: int, step: float, count: int = 2000) -> ScoredStatements:
    """Claims whose log odds are twice too bold; another value adds `step` to the true ones."""
    chance = np.random.default_rng(seed)
    scores = chance.normal(0.0, 2.0, count)
    different = chance.random(count) < 0.1
    true = 0.5 * scores + step * different
    wrong = chance.random(count) < 1 / (1 + np.exp(-true))
    folds = chance.integers(0, 5, count)
    return ScoredStatements(scores, different, wrong, np.ones(count), folds, ["claim"] * count)


def test_bold_scores_are_drawn_back_and_rare_materials_go_with_all() -> None:
    told = calibrations(drawn(1, 0.0))
    assert told["claim"]["weights"]["score"] == pytest.approx(0.5, abs=0.06)
    assert told["table"] == told["claim"]


def test_another_value_counts_by_itself_where_people_bear_it_out() -> None:
    told = calibrations(drawn(2, 2.0))
    assert told["claim"]["weights"]["values_different"] == pytest.approx(2.0, abs=0.6)


def test_another_value_never_makes_a_statement_likelier() -> None:
    assert "values_different" not in calibrations(drawn(3, -2.0))["claim"]["weights"]


def test_scores_that_are_the_wrong_way_round_tell_nothing() -> None:
    rows = drawn(8, 0.0)
    turned = ScoredStatements(
        -rows.scores, rows.different, rows.wrong, rows.weights, rows.folds, rows.materials
    )
    told = calibrations(turned)
    assert told["claim"]["weights"]["score"] == 0.0
    assert np.ptp(calibrated(turned, told)) == 0.0


def test_a_row_is_never_scored_by_a_calibration_that_saw_its_fold() -> None:
    rows = drawn(4, 1.0, 400)
    turned = rows.folds == 0
    wrong = np.where(turned, rows.scores < 0, rows.wrong)
    rows = ScoredStatements(
        rows.scores, rows.different, wrong, rows.weights, rows.folds, rows.materials
    )
    seen = calibrated(rows, calibrations(rows))[turned]
    unseen = cross_calibrated(rows, rows)[turned]
    loss = [-np.log(np.where(wrong[turned], p, 1 - p)).mean() for p in (seen, unseen)]
    assert loss[1] > loss[0]


def test_a_fold_that_holds_all_rows_of_a_label_is_bad_input() -> None:
    rows = drawn(6, 0.0, 300)
    wrong = rows.folds == 0
    rows = ScoredStatements(
        rows.scores, rows.different, wrong, rows.weights, rows.folds, rows.materials
    )
    with pytest.raises(InputError, match="many different texts"):
        cross_calibrated(rows, rows)


def test_what_one_fold_lacks_the_others_have() -> None:
    rows = drawn(9, 0.0, 2000)
    materials: list[MaterialKind] = ["claim"] * 2000
    is_table = np.arange(2000) < 500
    for place in np.flatnonzero(is_table):
        materials[place] = "table"
    wrong = np.where(is_table, rows.folds == 0, rows.wrong)  # all wrong tables lie in one fold
    rows = ScoredStatements(rows.scores, rows.different, wrong, rows.weights, rows.folds, materials)
    p = cross_calibrated(rows, rows)
    own = calibrations(rows.taken(rows.folds != 1))["table"]
    inside = is_table & (rows.folds == 1)
    expected = calibrated(rows.taken(inside), {**calibrations(rows), "table": own})
    assert p[inside] == pytest.approx(expected)


def test_a_material_with_one_label_goes_with_all() -> None:
    rows = drawn(7, 0.0, 2000)
    materials: list[MaterialKind] = ["document" if not w else "claim" for w in rows.wrong]
    materials[:400] = ["claim"] * 400
    rows = ScoredStatements(
        rows.scores, rows.different, rows.wrong, rows.weights, rows.folds, materials
    )
    told = calibrations(rows)
    assert told["document"] == told["table"]
    assert np.isfinite(cross_calibrated(rows, rows)).all()


def test_a_side_without_rows_or_that_holds_no_rate_is_never_taken() -> None:
    p = np.linspace(0.3, 0.7, 200)
    assert limits(np.ones(200, dtype=bool), p)[0] == 0.0
    assert limits(np.zeros(200, dtype=bool), p)[1] == 1.0


def test_limits_hold_the_error_rate_on_either_side() -> None:
    rows = drawn(5, 0.0)
    p = calibrated(rows, calibrations(rows))
    low, high = limits(rows.wrong, p)
    assert low < 0.5 < high
    assert rows.wrong[p < low].mean() <= SUPPORTED_ERROR
    assert (~rows.wrong[p >= high]).mean() <= HALLUCINATED_ERROR
