"""The evidence model: plain arrays, one calibrated probability, labels by its limits."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.evidence import StatementReading
from core.baseline.evidence_model import (
    FEATURES,
    FOLDER,
    LEAST,
    MATERIALS,
    MOST,
    EvidenceModel,
    StatementFeatures,
    Trees,
    as_rows,
    load_evidence_model,
    load_trees,
    material_of,
    trees_of,
)
from core.runtime.errors import ConfigError
from core.schema.records import Statement
from tests.readers import small_model

ROWS = st.lists(st.floats(-50, 50, width=32), min_size=len(FEATURES), max_size=len(FEATURES))


def features_of(row: list[float]) -> StatementFeatures:
    statement = Statement(0, 0, 1, "x", "x")
    numbers = dict(zip(FEATURES, row, strict=True))
    numbers |= {name: abs(numbers[name]) for name in ("evidence_size", "table_share", "is_answer")}
    return StatementFeatures(statement, (), StatementReading("x", 0, ()), (), numbers)


def walked(trees: Trees, row: np.ndarray[Any, Any]) -> float:
    """One row down every tree, node by node."""
    total = trees.base
    for root in trees.root:
        node = int(root)
        while trees.left[node] != node:
            is_left = row[trees.feature[node]] <= trees.threshold[node]
            node = int(trees.left[node] if is_left else trees.right[node])
        total += float(trees.value[node])
    return total


@given(ROWS)
def test_the_shipped_trees_say_what_a_walk_down_each_of_them_does(row: list[float]) -> None:
    trees, given_row = load_evidence_model().trees, as_rows([row])
    assert trees.predict(given_row)[0] == pytest.approx(walked(trees, given_row[0]), abs=1e-9)


def test_arrays_taken_from_a_fitted_model_predict_as_it_does(tmp_path: Path) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason="training's packages are not here")
    random = np.random.default_rng(1)
    rows = random.standard_normal((300, 4)).astype(np.float32)
    marks = rows[:, 0] * rows[:, 1] > 0.1
    fitted = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=1).fit(rows, marks)
    trees = trees_of(fitted)
    digest = trees.save(tmp_path / "trees.npz")
    again = load_trees(tmp_path / "trees.npz", digest)
    assert again.predict(rows) == pytest.approx(fitted.decision_function(rows), abs=1e-6)
    with pytest.raises(ConfigError, match="sha256"):
        load_trees(tmp_path / "trees.npz", "0" * 64)


@given(ROWS)
def test_every_row_has_a_probability_inside_the_bounds_and_the_label_that_follows(
    row: list[float],
) -> None:
    model, statement = load_evidence_model(), features_of(row)
    p = model.probability(statement)
    assert LEAST <= p <= MOST
    assert model.label(p) == (
        "hallucinated" if p >= model.hallucinated_from
        else "supported" if p < model.supported_below
        else "unclear"
    )  # fmt: skip
    assert all(LEAST <= model.part(name, statement) <= MOST for name in model.parts)


@given(ROWS, st.floats(0, 20))
def test_what_the_card_calls_rising_and_falling_is(row: list[float], more: float) -> None:
    """More contradiction never makes a statement likelier to be right, more support never wrong."""
    model = load_evidence_model()
    row = row[: len(model.features)]
    before = float(model.scores(as_rows([row]))[0])
    for kind, sign in (("rising", 1), ("falling", -1)):
        for name in model.card["parameters"][kind]:
            moved = list(row)
            moved[model.features.index(name)] += more
            after = float(model.scores(as_rows([moved]))[0])
            assert sign * (after - before) >= -1e-9, name


@given(st.lists(st.floats(LEAST, MOST), min_size=1, max_size=12))
def test_a_response_is_as_likely_wrong_as_its_worst_statement(ps: list[float]) -> None:
    assert small_model().response(ps) == max(ps)


@pytest.mark.parametrize(
    ("numbers", "material"),
    [
        ({"table_share": 0.5, "is_answer": 1.0}, "table"),
        ({"is_answer": 1.0, "evidence_size": 20.0}, "answer"),
        ({"evidence_size": 20.0}, "document"),
        ({}, "claim"),
    ],
)
def test_calibration_goes_by_the_material(numbers: dict[str, float], material: str) -> None:
    none = {"table_share": 0.0, "is_answer": 0.0, "evidence_size": 5.0}
    assert material_of(none | numbers) == material


def test_the_card_tells_how_it_was_made_and_how_well_it_does() -> None:
    model = load_evidence_model()
    limits = model.card["limits"]
    assert 0 < model.supported_below <= model.hallucinated_from < 1
    assert 0 < limits["hallucinated_error"] <= limits["supported_error"] < 0.5
    assert set(model.calibration) == set(MATERIALS)
    assert set(model.parts) == {"reading", "values", "coverage"}
    assert model.card["reader"]
    assert model.card["measured"]
    assert set(model.features) <= set(FEATURES)


def test_another_limit_is_another_model() -> None:
    model: EvidenceModel = small_model()
    assert replace(model, hallucinated_from=0.8).id != model.id == small_model().id


@pytest.mark.parametrize("harm", ["no card", "no trees", "other trees", "no limits", "no JSON"])
def test_a_model_that_is_not_as_it_was_written_is_refused_in_one_sentence(
    harm: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "evidence")
    card, trees = folder / "card.json", folder / "trees.npz"
    if harm == "no card":
        card.unlink()
    elif harm == "no trees":
        trees.unlink()
    elif harm == "other trees":
        trees.write_bytes(trees.read_bytes() + b" ")
    elif harm == "no limits":
        body = json.loads(card.read_text(encoding="utf-8"))
        card.write_text(json.dumps({k: v for k, v in body.items() if k != "limits"}))
    else:
        card.write_text("{")
    with pytest.raises(ConfigError, match="Restore the file") as raised:
        load_evidence_model(folder)
    assert "\n" not in str(raised.value)
