"""What scores are worth: probabilities by material, limits, and honest figures for both."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.learning.evidence_calibration import (
    MAX_HALLUCINATED_ERROR,
    MAX_SUPPORTED_ERROR,
    ScoredStatements,
    apply_calibrations,
    choose_limits,
    cross_calibrate,
    fit_calibrations,
)
from core.pipeline.review import ReviewResources
from core.pipeline.run_factory import RunAgents
from core.pipeline.temporary_home import (
    TEMPORARY_PREFIX,
    CheckMaterial,
    TemporaryHome,
    open_temporary_home,
)
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import MaterialKind, Plan
from core.schema.run_state import RunState
from core.store.versions import SEED_VERSION
from core.verdict.classifier import load_classifier
from tests.debates import built_in
from tests.fakes import FakeEmbedder


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
    told = fit_calibrations(drawn(1, 0.0))
    assert told["claim"]["weights"]["score"] == pytest.approx(0.5, abs=0.06)
    assert told["table"] == told["claim"]


def test_another_value_counts_by_itself_where_people_bear_it_out() -> None:
    told = fit_calibrations(drawn(2, 2.0))
    assert told["claim"]["weights"]["values_different"] == pytest.approx(2.0, abs=0.6)


def test_another_value_never_makes_a_statement_likelier() -> None:
    assert "values_different" not in fit_calibrations(drawn(3, -2.0))["claim"]["weights"]


def test_scores_that_are_the_wrong_way_round_tell_nothing() -> None:
    rows = drawn(8, 0.0)
    turned = replace(rows, scores=-rows.scores)
    told = fit_calibrations(turned)
    assert told["claim"]["weights"]["score"] == 0.0
    assert np.ptp(apply_calibrations(turned, told)) == 0.0


def test_a_row_is_never_scored_by_a_calibration_that_saw_its_fold() -> None:
    rows = drawn(4, 1.0, 400)
    turned = rows.folds == 0
    wrong = np.where(turned, rows.scores < 0, rows.wrong)
    rows = replace(rows, wrong=wrong)
    seen = apply_calibrations(rows, fit_calibrations(rows))[turned]
    unseen = cross_calibrate(rows, rows)[turned]
    loss = [-np.log(np.where(wrong[turned], p, 1 - p)).mean() for p in (seen, unseen)]
    assert loss[1] > loss[0]


def test_a_fold_that_holds_all_rows_of_a_label_is_bad_input() -> None:
    rows = drawn(6, 0.0, 300)
    rows = replace(rows, wrong=rows.folds == 0)
    with pytest.raises(InputError, match="many different texts"):
        cross_calibrate(rows, rows)


def test_what_one_fold_lacks_the_others_have() -> None:
    rows = drawn(9, 0.0, 2000)
    materials: list[MaterialKind] = [*["table"] * 500, *["claim"] * 1500]  # type: ignore[list-item]
    is_table = np.arange(2000) < 500
    wrong = np.where(is_table, rows.folds == 0, rows.wrong)  # all wrong tables lie in one fold
    rows = replace(rows, wrong=wrong, materials=materials)
    p = cross_calibrate(rows, rows)
    own = fit_calibrations(rows.taken(rows.folds != 1))["table"]
    inside = is_table & (rows.folds == 1)
    expected = apply_calibrations(rows.taken(inside), {**fit_calibrations(rows), "table": own})
    assert p[inside] == pytest.approx(expected)


def test_a_material_with_one_label_goes_with_all() -> None:
    rows = drawn(7, 0.0, 2000)
    materials: list[MaterialKind] = ["document" if not w else "claim" for w in rows.wrong]
    materials[:400] = ["claim"] * 400
    rows = replace(rows, materials=materials)
    told = fit_calibrations(rows)
    assert told["document"] == told["table"]
    assert np.isfinite(cross_calibrate(rows, rows)).all()


def test_a_side_without_rows_or_that_holds_no_rate_is_never_taken() -> None:
    p = np.linspace(0.3, 0.7, 200)
    assert choose_limits(np.ones(200, dtype=bool), p)[0] == 0.0
    assert choose_limits(np.zeros(200, dtype=bool), p)[1] == 1.0


def test_limits_hold_the_error_rate_on_either_side() -> None:
    rows = drawn(5, 0.0)
    p = apply_calibrations(rows, fit_calibrations(rows))
    low, high = choose_limits(rows.wrong, p)
    assert low < 0.5 < high
    assert rows.wrong[p < low].mean() <= MAX_SUPPORTED_ERROR
    assert (~rows.wrong[p >= high]).mean() <= MAX_HALLUCINATED_ERROR


CATS = "Female cats tend to be right pawed. Male cats are more often left pawed."
TOWERS = "The tower is 412 m tall. It was opened in 1932. Many cats live in the tower."


def staff_of(bench: TemporaryHome) -> RunAgents:
    classifier = load_classifier(bench.home, SEED_VERSION)
    resources = ReviewResources(bench.home, bench.settings, FakeEmbedder(), classifier, lambda: 0.0)
    return RunAgents(built_in(), resources)


def check(
    bench: TemporaryHome, *texts: str, response: str = "Female cats are left pawed."
) -> RunState:
    return bench.check(CheckMaterial(response, "", texts), staff_of(bench), Plan(), StopSignal())


def test_a_case_does_not_depend_on_those_before_it() -> None:
    with open_temporary_home(Settings()) as bench:
        first = check(bench, CATS, TOWERS)
        for number in range(3):
            check(bench, f"{TOWERS} The cats of house {number} are left pawed.", CATS)
        again = check(bench, CATS, TOWERS)
    assert first.verdict is not None
    assert first.verdict == again.verdict
    assert first.passages == again.passages


def test_only_the_sources_of_the_last_case_are_kept_and_in_the_end_none() -> None:
    with open_temporary_home(Settings()) as bench:
        home = bench.home
        check(bench, CATS)
        check(bench, CATS, TOWERS)
        kept = {path.name for path in (home / "documents").iterdir()}
        assert len(kept) == 2
        check(bench, TOWERS)
        left = {path.name for path in (home / "documents").iterdir()}
        assert len(left) == 1
        assert left < kept
        check(bench)
        assert not list((home / "documents").iterdir())
    assert not home.exists()


def test_what_a_killed_process_left_is_cleared_away() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with open_temporary_home(Settings()) as bench:
        where = bench.home.parent
        left = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}{ended.pid}-", dir=where))
        (left / "documents").mkdir()
        with open_temporary_home(Settings()) as other:
            assert other.home.parent == where
            assert not left.exists()
            assert bench.home.exists(), "its process is alive"


def test_a_document_of_nothing_is_left_out_and_the_others_are_used() -> None:
    with open_temporary_home(Settings()) as bench:
        found = check(bench, " \n", CATS)
        assert [event.characters for event in found.documents.values()] == [len(CATS)]


def test_a_response_of_nothing_and_an_image_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with open_temporary_home(Settings()) as bench:
        with pytest.raises(InputError, match="Enter a text to check"):
            check(bench, CATS, response=" ")
        material = CheckMaterial("A cat.", files=(tmp_path / "none.png",))
        with pytest.raises(InputError, match=r"none\.png"):
            bench.check(material, staff_of(bench), Plan(), StopSignal())
