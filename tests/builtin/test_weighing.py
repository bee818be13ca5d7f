"""Weights as plain numbers: what they add up to, and that nobody changed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.builtin.weighing import (
    WEIGHTS,
    Logistic,
    Weights,
    any_of,
    load_weights,
    probability,
    save_weights,
    shifted,
)
from core.errors import ConfigError
from core.models.reader import load_reader

MODELS = {
    "wrong": Logistic({"read_against": 1.0}, -0.5),
    "wrong, muted": Logistic({"uncarried": 2.0}, 0.0),
    "open": Logistic({"unlike": 4.0}, -2.0),
    "open, muted": Logistic({}, -3.0),
}


def test_the_log_odds_are_a_weighted_sum() -> None:
    weights = Weights(MODELS, {})
    told = {"read_against": 2.0, "uncarried": 0.25, "unlike": 0.5, "muted": 0.0}
    assert weights.wrong(told) == pytest.approx(1.5)
    assert weights.left_open(told) == pytest.approx(0.5)


def test_where_the_reader_is_muted_others_weights_count() -> None:
    told = {"read_against": 0.0, "uncarried": 0.25, "unlike": 0.5, "muted": 1.0}
    assert Weights(MODELS, {}).wrong(told) == pytest.approx(0.5)
    assert Weights(MODELS, {}).left_open(told) == pytest.approx(probability(-3.0))


@pytest.mark.parametrize(("log_odds", "p"), [(0.0, 0.5), (1e9, 1.0), (-1e9, 0.0)])
def test_any_log_odds_make_a_probability(log_odds: float, p: float) -> None:
    assert probability(log_odds) == pytest.approx(p)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_of_a_response_of_any_length_one_in_two_is_wrong_before_anything_is_read(
    count: int,
) -> None:
    each = probability(shifted(0.0, count))
    assert any_of([each] * count) == pytest.approx(0.5)


def test_one_surely_wrong_statement_makes_the_response_wrong() -> None:
    assert any_of([0.02, 0.97, 0.01]) > 0.97
    assert any_of([0.02, 0.01]) < 0.03


def test_weights_survive_saving(tmp_path: Path) -> None:
    save_weights(tmp_path / "w.json", MODELS, {"rows": 3})
    assert load_weights(tmp_path / "w.json") == Weights(MODELS, {"rows": 3})


@pytest.mark.parametrize("place", ["models", "card", "schema"])
def test_changed_weights_are_refused(tmp_path: Path, place: str) -> None:
    path = tmp_path / f"{place}.json"
    save_weights(path, MODELS, {"rows": 3})
    body = json.loads(path.read_text())
    if place == "models":
        body["models"]["wrong"]["intercept"] = 9.0
    else:
        body[place] = {"rows": 4} if place == "card" else 2
    path.write_text(json.dumps(body))
    with pytest.raises(ConfigError, match="not as they were written"):
        load_weights(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"models": {"wrong": 3}}'])
def test_broken_weights_are_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="Expected the built-in judge's weights in") as raised:
        load_weights(path)
    assert "\n" not in str(raised.value)


def test_the_shipped_weights_were_learned_with_the_shipped_reader() -> None:
    """A reader trained anew says other things: the weights must be learned again."""
    weights = load_weights(WEIGHTS)
    assert weights.card["reader"] == load_reader().id
    assert set(weights.models) == set(MODELS)
    assert all(entry["licence"] for entry in weights.card["trained_on"].values())
