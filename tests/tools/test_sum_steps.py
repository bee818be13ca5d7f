"""Steps of a sum lead from what is written to what it comes to."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.formula import formula_of
from core.tools.rounding import shown
from core.tools.sum_steps import steps_of
from core.tools.working_out import value_of


@pytest.mark.parametrize(
    ("formula", "steps"),
    [
        ("3 + 0.5 + 1.5", ("3 + 0.5 = 3.5", "3.5 + 1.5 = 5")),
        ("(1 + 2) * 3 ^ 2", ("1 + 2 = 3", "3 ^ 2 = 9", "3 × 9 = 27")),
        ("25% of 80", ("25% = 0.25", "0.25 × 80 = 20")),
        ("2 - 5 + 1", ("2 − 5 = -3", "(-3) + 1 = -2")),
        ("7 * 6", ()),
        ("2.5 hours + 30 minutes + 1 hour", ()),
        ("x + 1 + 2", ()),
        ("no sum", ()),
        ("1 / 0 + 2", ()),
        ("9 ^ 9 ^ 9", ()),
        ("(" * 5000, ()),
    ],
)
def test_what_is_innermost_comes_first(formula: str, steps: tuple[str, ...]) -> None:
    assert steps_of(formula) == steps


numbers = st.integers(1, 99).map(str)
sums = st.recursive(
    numbers,
    lambda part: st.tuples(part, st.sampled_from("+-*"), part).map(
        lambda made: f"({made[0]} {made[1]} {made[2]})"
    ),
    max_leaves=8,
)


@given(sums)
def test_the_last_step_is_the_value_and_every_step_holds(formula: str) -> None:
    steps = steps_of(formula)
    if steps:
        assert steps[-1].endswith(f"= {shown(value_of(formula_of(formula)))}")
    for step in steps:
        left, _, right = step.replace("×", "*").replace("−", "-").partition(" = ")
        assert value_of(formula_of(left)) == Fraction(right)
