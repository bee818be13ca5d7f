"""A majority's error against the number of agents: the equations, and what is measured of runs."""

from __future__ import annotations

import math
import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.majority import effective_agents, hoeffding, majority_error, measured
from core.learning.reasoning import rows_of
from core.records import Stance
from core.store import open_store
from tests.learning.runs_told import Told, tell
from tests.learning.test_learned_consensus import SIDES, told

shares = st.floats(0.0, 1.0)


@given(st.integers(1, 9), st.floats(0.05, 0.95))
def test_independent_agents_err_as_all_outcomes_counted_one_by_one(n: int, accuracy: float) -> None:
    lost = 0.0
    for outcome in product((0, 1), repeat=n):
        wrong = sum(outcome)
        chance = (1 - accuracy) ** wrong * accuracy ** (n - wrong)
        lost += chance * (1.0 if 2 * wrong > n else 0.5 if 2 * wrong == n else 0.0)
    assert majority_error(n, accuracy, 0.0) == pytest.approx(lost, abs=1e-9)


@given(st.integers(1, 30), st.floats(0.5, 1.0), shares)
def test_agents_better_than_a_coin_do_no_worse_together_and_agents_alike_no_better(
    n: int, accuracy: float, correlation: float
) -> None:
    together = majority_error(n, accuracy, correlation)
    assert together <= 1.0 - accuracy + 1e-7
    assert majority_error(n, accuracy, 1.0) == pytest.approx(1.0 - accuracy)
    assert majority_error(n, accuracy, 0.0) <= together + 1e-7


@given(st.integers(1, 40), st.floats(0.5, 1.0))
def test_hoeffding_bounds_independent_agents(n: int, accuracy: float) -> None:
    assert majority_error(n, accuracy, 0.0) <= hoeffding(n, accuracy, 0.0) + 1e-9


def test_an_effective_number_of_agents() -> None:
    assert effective_agents(5, 0.0) == 5
    assert effective_agents(5, 1.0) == 1
    assert effective_agents(3, 0.5) == pytest.approx(1.5)
    assert hoeffding(5, 0.4, 0.0) == 1.0


def test_too_little_is_measured_as_nothing(home: Path) -> None:
    with open_store(home) as store:
        tell(store, told(10))
        assert measured(rows_of(store, store.projects.all()[0].id, {})) is None


def test_accuracy_and_correlation_of_first_turns_are_measured(home: Path) -> None:
    """Ada is right in four of five, Ben says what Ada says in every case: r is 1."""
    chance = random.Random(4)
    runs = []
    for number in range(60):
        is_wrong = number % 2 == 0
        stance: Stance = SIDES[is_wrong == (chance.random() < 0.8)]
        later: Stance = "unclear"
        turns = (("Ada", stance), ("Ben", stance), ("Ada", later))
        runs.append(Told(turns, "unclear", SIDES[is_wrong], claim=f"Claim {number}."))
    with open_store(home) as store:
        tell(store, runs)
        found = measured(rows_of(store, store.projects.all()[0].id, {}))
    assert found is not None
    assert found.n == 60
    assert found.correlation.value == pytest.approx(1.0)
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high
    assert abs(found.accuracy.value - 0.8) < 3 * math.sqrt(0.16 / 60)
    assert [k for k, _, _ in found.curve] == [1, 2]
    assert found.curve[0][1] == pytest.approx(found.curve[1][1])
    assert found.always == pytest.approx(0.5)
