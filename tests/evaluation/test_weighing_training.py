"""The judge's weights: learned from sets that permit it, each alike, by the worst statement."""

from __future__ import annotations

import random

import pytest

from core.builtin.weighing import Weights, probability
from core.errors import InputError
from core.evaluation.datasets import rule_of
from core.evaluation.metrics import calibration_error
from core.evaluation.weighing_fit import fit
from core.evaluation.weighing_rows import FeatureRow
from core.evaluation.weighing_training import (
    NEVER,
    SOURCES,
    figures,
    p_of,
)
from core.records import Label


def told(uncarried: float, missing: float = 0.0) -> dict[str, float]:
    return {"uncarried": uncarried, "missing_values": missing, "muted": 0.0}


def rows(name: str, count: int, seed: int = 1) -> list[FeatureRow]:
    """The less is carried, the likelier it is wrong."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        gap = chance.random()
        is_wrong = chance.random() < probability(10.0 * (gap - 0.5))
        label: Label = "hallucinated" if is_wrong else "supported"
        made.append(FeatureRow(name, str(number), str(number), label, (told(gap),)))
    return made


def test_no_set_is_learned_from_that_only_measures_or_forbids_it() -> None:
    for source in SOURCES:
        assert source.name not in NEVER
        assert rule_of(source.name, source.task).permits in ("yes", "not stated"), source.title


def test_what_is_learned_is_calibrated_on_rows_it_has_not_seen() -> None:
    model = fit({"a": rows("a", 800)}, ("uncarried",), "supported", invert=True)
    assert model.weights["uncarried"] > 1.0
    fresh = rows("b", 2000, seed=2)
    found = figures(fresh, Weights({"wrong": model}, {}))
    assert found["balanced_accuracy"] > 0.75
    assert found["ece"] < 0.05


def test_a_large_set_does_not_outvote_a_small_one() -> None:
    """The large one says that missing values mean little, the small one that they decide."""
    chance = random.Random(3)

    def made(count: int, decides: bool) -> list[FeatureRow]:
        found = []
        for number in range(count):
            missing = float(chance.random() < 0.5)
            is_wrong = bool(missing) if decides else chance.random() < 0.5
            label: Label = "hallucinated" if is_wrong else "supported"
            row = (told(0.5, missing),)
            found.append(FeatureRow("x", str(number), str(number), label, row))
        return found

    model = fit(
        {"large": made(4000, False), "small": made(100, True)},
        ("missing_values",), "supported", invert=True, limits={},
    )  # fmt: skip
    alone = fit(
        {"large": made(4000, False)}, ("missing_values",), "supported", invert=True, limits={}
    )
    assert model.weights["missing_values"] > 0.8 > alone.weights.get("missing_values", 0.0)


def test_one_wrong_statement_makes_a_response_wrong_less_readily_than_alone() -> None:
    model = fit({"a": rows("a", 400)}, ("uncarried",), "supported", invert=True)
    weights = Weights({"wrong": model}, {})

    def row(*gaps: float) -> FeatureRow:
        return FeatureRow("a", "1", "1", "supported", tuple(told(gap) for gap in gaps))

    assert p_of(row(0.1, 0.9, 0.2), weights) > 0.5 > p_of(row(0.1, 0.2), weights)
    assert p_of(row(0.1, 0.9), weights) < p_of(row(0.9), weights)


def test_rows_of_one_kind_teach_nothing() -> None:
    alike = [row for row in rows("a", 50) if row.label == "supported"]
    with pytest.raises(InputError, match="rows of both kinds"):
        fit({"a": alike}, ("uncarried",), "supported", invert=True)


def test_the_calibration_error_is_the_textbooks() -> None:
    import numpy as np

    truth = np.asarray([True, True, False, False])
    # confidences 0.95 (right), 0.85 (right), 0.75 (wrong), 0.85 (right)
    p = np.asarray([0.95, 0.85, 0.75, 0.15])
    assert calibration_error(p, truth) == pytest.approx((0.05 + 2 * 0.15 + 0.75) / 4)
