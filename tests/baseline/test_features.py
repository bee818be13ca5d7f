"""What is measured of a statement, and the model that makes one probability of it."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.evidence_model import (
    EVIDENCE_MODEL_DIR,
    FEATURES,
    MATERIALS,
    MAX_LOG_ODDS,
    MAX_PROBABILITY,
    MIN_PROBABILITY,
    BoostedTrees,
    EvidenceModel,
    StatementFeatures,
    bounded_log_odds,
    classify_material,
    extract_trees,
    load_evidence_model,
    load_trees,
    measure_statement,
    to_feature_rows,
)
from core.baseline.evidence_windows import StatementReading, read_statement
from core.baseline.value_comparison import compare_values, is_table_row
from core.runtime.errors import ConfigError
from core.schema.records import Statement
from tests.fakes import make_case, make_passage
from tests.readers import (
    CONTRADICTS,
    NEUTRAL,
    SUPPORTS,
    UNKNOWN_SCRIPT,
    Odds,
    ScriptedReader,
    WordReader,
    small_model,
)
from tests.tools.corpus import table


def measured(
    claim: str, *texts: str, language: str = "en", question: str = "", odds: Odds | None = None
) -> StatementFeatures:
    case = make_case(claim, language=language, question=question)
    own = Statement(0, 0, len(claim), claim, claim)
    items = [make_passage(text, number=n, source=f"{n}.txt") for n, text in enumerate(texts)]
    reader = WordReader() if odds is None else ScriptedReader({"": odds})
    return measure_statement(case, own, items, read_statement(case, own, items, {}, reader))


@pytest.mark.parametrize(*table("features: how each value stands to the evidence"))
def test_each_value_is_the_same_derived_different_or_without_a_match(
    language: str, claim: str, text: str, status: str
) -> None:
    found = measured(claim, text, language=language)
    assert status in [value.status for value in found.values], found.values
    assert found.numbers[f"values_{status}"] > 0
    assert all(claim[value.start : value.end] == value.text for value in found.values)


def test_a_value_that_differs_tells_the_sources_own() -> None:
    (value,) = measured(
        "The tower is 512 m tall.", "Trees grow.", "The tower is 412 m tall."
    ).values
    assert (value.text, value.instead, value.is_date) == ("512 m", "412 m", False)


def test_the_figures_of_a_question_are_none_of_the_answers() -> None:
    found = measured("412 m", "The tower is 412 m tall.", question="Is it 512 m or less?")
    assert [value.text for value in found.values] == ["412 m"]
    assert found.numbers["is_answer"] == 1.0


@pytest.mark.parametrize(*table("features: names that no source has are counted"))
def test_names_that_no_source_has_are_counted(claim: str, missing: float) -> None:
    numbers = measured(claim, "Lena Moor built the tower.").numbers
    assert numbers["names_missing"] == missing
    assert numbers["names"] > 0


@pytest.mark.parametrize(*table("features: a denial that one side lacks is seen"))
def test_a_denial_that_one_side_lacks_is_seen(language: str, claim: str, text: str) -> None:
    assert measured(claim, text, language=language).numbers["denials_differ"] == 1.0
    assert measured(text, text, language=language).numbers["denials_differ"] == 0.0
    assert measured(claim, claim, language=language).numbers["denials_differ"] == 0.0


def test_readings_are_best_second_and_joined() -> None:
    for odds, best in ((SUPPORTS, "support_best"), (CONTRADICTS, "contradiction_best")):
        numbers = measured("The tower is tall.", "The tower is very tall.", odds=odds).numbers
        assert numbers[best] == pytest.approx(bounded_log_odds(0.94))
        assert numbers["neutral_least"] == pytest.approx(bounded_log_odds(0.03))
    neutral = measured("The tower is tall.", "The tower is very tall.", odds=NEUTRAL).numbers
    assert neutral["contradiction_share"] == pytest.approx(0.5)


def test_how_much_of_the_words_the_evidence_has() -> None:
    whole = measured("The old tower is tall.", "The old tower is tall.").numbers
    assert (whole["terms_found"], whole["rare_terms_missing"], whole["longest_run"]) == (1, 0, 1)
    none = measured("Swans nest there.", "The old tower is tall.").numbers
    assert (none["terms_found"], none["longest_run"]) == (0, 0)


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["", "…", UNKNOWN_SCRIPT, "412 m 412 km 4/5/1911", "塔高412米", "٤١٢", "½ ² 𝟘"]
    ),
)


@given(TEXTS, st.lists(TEXTS, max_size=3), st.sampled_from(["en", "zh", "ar", "und", "xx"]), TEXTS)
def test_every_feature_is_a_finite_number_whatever_is_said(
    claim: str, texts: list[str], language: str, question: str
) -> None:
    found = measured(claim, *texts, language=language, question=question)
    assert set(found.numbers) == set(FEATURES)
    assert all(math.isfinite(number) for number in found.row())


@given(st.floats(0, 1), st.floats(0, 1))
def test_log_odds_are_bounded_and_keep_the_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert -MAX_LOG_ODDS <= bounded_log_odds(low) <= bounded_log_odds(high) <= MAX_LOG_ODDS


TABLE = "\n".join(
    f"{name} (thousands), Visitors: {count}" for name, count in (("North", 412), ("South", 318),
                                                               ("West", 200))
)  # fmt: skip


@pytest.mark.parametrize(*table("values: a figure that ends its cell makes a table row"))
def test_a_figure_that_ends_its_cell_makes_a_table_row(text: str, is_table: bool) -> None:
    assert is_table_row(text) is is_table


def test_the_total_of_a_column_counts_each_cell_once_in_the_unit_of_its_header() -> None:
    (right,) = compare_values("There were 930,000 visitors in all.", 0, [TABLE], "en")
    assert right.status == "derived"
    (wrong,) = compare_values("There were 950,000 visitors in all.", 0, [TABLE], "en")
    assert (wrong.status, wrong.instead) == ("different", "412 + 318 + 200 = 930,000")


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        *((unit, "22.4 million US dollars") for unit in (
            "thousands of US$", "thousand US$", "US$ thousands", "US$'000", "$000s", "in USD k",
            "Tausend US$", "tsd. USD", "miles de US$",
        )),
        *((unit, "22.4 million euros") for unit in (
            "TEUR", "T€", "k€", "en milliers d’euros", "Tausend Euro", "EUR thousand",
        )),
        *((unit, "22.4 billion euros") for unit in (
            "EUR million", "€m", "EUR m", "m€", "Mio. EUR", "millions of euros", "millones de EUR",
        )),
        *((unit, "22.4 million tonnes") for unit in ("thousand tonnes", "1000 t", "kt")),
        ("thousands", "22,402,000"),
        ("thousand people", "22.4 million"),
        ("单位：万元", "2.2402亿元"),
        ("m", "22.4 km"),
    ],
)  # fmt: skip
def test_a_scale_in_a_header_counts_for_its_values(unit: str, value: str) -> None:
    language = "zh" if "万" in unit else "en"
    row = f"Item Cash ({unit}), 31 Mar: 22402; 30 Jun: 23075"
    (right,) = compare_values(f"Cash came to {value}.", 0, [row], language)
    assert right.status == "same"
    (wrong,) = compare_values(f"Cash came to {value.replace('2', '3', 1)}.", 0, [row], language)
    assert wrong.status == "different"


def test_a_value_without_the_scale_of_its_header_is_another_value() -> None:
    row = "Cash (thousands of US$), 31 Mar: 22402; 30 Jun: 23075"
    (found,) = compare_values("Cash was $22,402.", 0, [row], "en")
    assert (found.status, found.instead) == ("different", "22402 thousands of US$")


ROWS = st.lists(st.floats(-50, 50, width=32), min_size=len(FEATURES), max_size=len(FEATURES))


def features_of(row: list[float]) -> StatementFeatures:
    statement = Statement(0, 0, 1, "x", "x")
    numbers = dict(zip(FEATURES, row, strict=True))
    numbers |= {name: abs(numbers[name]) for name in ("evidence_size", "table_share", "is_answer")}
    return StatementFeatures(statement, (), StatementReading("x", 0, ()), (), numbers)


def walked(trees: BoostedTrees, row: np.ndarray[Any, Any]) -> float:
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
    trees, given_row = load_evidence_model().trees, to_feature_rows([row])
    assert trees.predict(given_row)[0] == pytest.approx(walked(trees, given_row[0]), abs=1e-9)


def test_arrays_taken_from_a_fitted_model_predict_as_it_does(tmp_path: Path) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason="training's packages are not here")
    random = np.random.default_rng(1)
    rows = random.standard_normal((300, 4)).astype(np.float32)
    marks = rows[:, 0] * rows[:, 1] > 0.1
    fitted = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=1).fit(rows, marks)
    trees = extract_trees(fitted)
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
    assert MIN_PROBABILITY <= p <= MAX_PROBABILITY
    assert model.label(p) == (
        "hallucinated" if p >= model.hallucinated_from
        else "supported" if p < model.supported_below
        else "unclear"
    )  # fmt: skip
    assert all(
        MIN_PROBABILITY <= model.part(name, statement) <= MAX_PROBABILITY for name in model.parts
    )


@given(ROWS, st.floats(0, 20))
def test_what_the_card_calls_rising_and_falling_is(row: list[float], more: float) -> None:
    """More contradiction never makes a statement likelier to be right, more support never wrong."""
    model = load_evidence_model()
    row = row[: len(model.features)]
    before = float(model.scores(to_feature_rows([row]))[0])
    for kind, sign in (("rising", 1), ("falling", -1)):
        for name in model.card["parameters"][kind]:
            moved = list(row)
            moved[model.features.index(name)] += more
            after = float(model.scores(to_feature_rows([moved]))[0])
            assert sign * (after - before) >= -1e-9, name


@given(st.lists(st.floats(MIN_PROBABILITY, MAX_PROBABILITY), min_size=1, max_size=12))
def test_a_response_is_as_likely_wrong_as_its_worst_statement(ps: list[float]) -> None:
    assert small_model().response(ps) == max(ps)


@pytest.mark.parametrize(*table("evidence_model: calibration goes by the material"))
def test_calibration_goes_by_the_material(numbers: dict[str, float], material: str) -> None:
    none = {"table_share": 0.0, "is_answer": 0.0, "evidence_size": 5.0}
    assert classify_material(none | numbers) == material


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
    folder = shutil.copytree(EVIDENCE_MODEL_DIR, tmp_path / "evidence")
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
