"""The learning curve rises where there is something to learn, and says so only when it knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.errors import NotEnoughLabels
from core.learning.heads import Numbers, Truth
from core.learning.learning_curve import Curve, Point, advice, at_size, curve_of, learning_curve
from core.learning.weights import grouped_folds
from tests.fakes import FakeEmbedder
from tests.learning.test_label_errors import material

POINTS = (Point(8, 0.6, 0.5, 0.7, 0.6), Point(90, 0.8, 0.76, 0.84, 0.9))
RISING = Curve(POINTS, 120, (0.95, 0.9, 0.4), 0.032, 0.02, 0.04)


def drawn(many: int, apart: float) -> tuple[Numbers, Truth]:
    """Points in 24 dimensions whose two labels lie that far apart in one of them."""
    random = np.random.default_rng(1)
    truth = random.random(many) < 0.5
    inputs = random.normal(size=(many, 24))
    inputs[:, 0] += np.where(truth, apart, -apart)
    return inputs, truth


def test_the_curve_rises_towards_what_can_be_learned() -> None:
    inputs, truth = drawn(160, 1.2)
    curve = curve_of(inputs, truth, [str(n) for n in range(160)])
    assert [point.cases for point in curve.points] == sorted({p.cases for p in curve.points})
    assert curve.points[-1].balanced > curve.points[0].balanced + 0.05
    assert all(p.balanced_low <= p.balanced <= p.balanced_high for p in curve.points)
    assert curve.law is not None
    assert curve.gain == pytest.approx(at_size(curve.law, 320) - at_size(curve.law, 160))
    assert curve == curve_of(inputs, truth, [str(n) for n in range(160)])


def test_where_nothing_can_be_learned_it_stays_at_a_coins() -> None:
    inputs, truth = drawn(160, 0.0)
    last = curve_of(inputs, truth, [str(n) for n in range(160)]).points[-1]
    assert last.balanced_low <= 0.5 <= last.balanced_high


def test_rows_of_one_case_never_lie_on_both_sides() -> None:
    _, truth = drawn(90, 1.0)
    groups = [str(n // 3) for n in range(90)]
    for known, asked in grouped_folds(truth, groups, 3, 4):
        assert not {groups[n] for n in known} & {groups[n] for n in asked}


def test_too_few_cases_are_refused_in_words(home: Path) -> None:
    with pytest.raises(NotEnoughLabels, match="Too few to say"):
        learning_curve([one.row for one in material(20)], FakeEmbedder(), home)


def test_what_would_help_is_one_plain_sentence() -> None:
    assert advice({"supported": 12}, None) == (
        "12 more supported cases are needed before training can start."
    )
    assert advice({"supported": 1}, None).startswith("1 more supported case is needed")
    assert advice({}, RISING) == (
        "Twice as many cases would add about 3.2 points of balanced accuracy (2.0 to 4.0)."
    )
    assert "hardly add anything" in advice({}, replace(RISING, gain=0.001))
    wide = replace(POINTS[1], balanced_low=0.6)
    assert "between 0.60 and 0.84" in advice({}, replace(RISING, points=(POINTS[0], wide)))
    assert advice({}, replace(RISING, gain=None)).startswith("Too few cases to say")
