"""What a debate adds, and a majority's error against the number of agents."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.agent_answers import DecidedRun, load_decided_runs
from core.learning.debate_worth import (
    compute_collaborative_risk,
    compute_competitive_risk,
    compute_hoeffding_bound,
    compute_majority_error,
    compute_risk,
    compute_separation,
    count_effective_agents,
    infer_evidence,
    measure_agents,
    measure_information,
)
from core.schema.records import Stance
from core.store import open_store
from tests.learning.recorded_runs import Told, tell
from tests.learning.test_consensus import SIDES, told

shares = st.floats(0.0, 1.0)


@given(st.integers(1, 9), st.floats(0.05, 0.95))
def test_independent_agents_err_as_all_outcomes_counted_one_by_one(n: int, accuracy: float) -> None:
    lost = 0.0
    for outcome in product((0, 1), repeat=n):
        wrong = sum(outcome)
        chance = (1 - accuracy) ** wrong * accuracy ** (n - wrong)
        lost += chance * (1.0 if 2 * wrong > n else 0.5 if 2 * wrong == n else 0.0)
    assert compute_majority_error(n, accuracy, 0.0) == pytest.approx(lost, abs=1e-9)


@given(st.integers(1, 30), st.floats(0.5, 1.0), shares)
def test_agents_better_than_a_coin_do_no_worse_together_and_agents_alike_no_better(
    n: int, accuracy: float, correlation: float
) -> None:
    together = compute_majority_error(n, accuracy, correlation)
    assert together <= 1.0 - accuracy + 1e-7
    assert compute_majority_error(n, accuracy, 1.0) == pytest.approx(1.0 - accuracy)
    assert compute_majority_error(n, accuracy, 0.0) <= together + 1e-7


@given(st.integers(1, 40), st.floats(0.5, 1.0))
def test_hoeffding_bounds_independent_agents(n: int, accuracy: float) -> None:
    assert (
        compute_majority_error(n, accuracy, 0.0) <= compute_hoeffding_bound(n, accuracy, 0.0) + 1e-9
    )


def test_an_effective_number_of_agents() -> None:
    assert count_effective_agents(5, 0.0) == 5
    assert count_effective_agents(5, 1.0) == 1
    assert count_effective_agents(3, 0.5) == pytest.approx(1.5)
    assert compute_hoeffding_bound(5, 0.4, 0.0) == 1.0


def rows_in(home: Path, runs: Sequence[Told]) -> list[DecidedRun]:
    with open_store(home) as store:
        tell(store, runs)
        return load_decided_runs(store, store.projects.all()[0].id, {})


def test_too_little_is_measured_as_nothing(home: Path) -> None:
    assert measure_agents(rows_in(home, told(10))) is None
    assert measure_information(rows_in(home, debates(10, 0.9))) == []


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
    found = measure_agents(rows_in(home, runs))
    assert found is not None
    assert found.n == 60
    assert found.correlation.value == pytest.approx(1.0)
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high
    assert abs(found.accuracy.value - 0.8) < 3 * math.sqrt(0.16 / 60)
    assert [k for k, _, _ in found.curve] == [1, 2]
    assert found.curve[0][1] == pytest.approx(found.curve[1][1])
    assert found.always == pytest.approx(0.5)


risks = st.floats(0.001, 0.499)
budgets = st.floats(0.0, 20.0)


def debates(count: int, later: float) -> list[Told]:
    """First turns are right on six of ten cases, both last turns on a share `later` of them."""
    chance = random.Random(9)
    found = []
    for number in range(count):
        is_wrong = number % 2 == 0

        def says(share: float, is_wrong: bool = is_wrong) -> Stance:
            return SIDES[is_wrong == (chance.random() < share)]

        first = (("Ada", says(0.6)), ("Ben", says(0.6)))
        last = (("Ada", says(later)), ("Ben", says(later)))
        found.append(Told((*first, *last), "unclear", SIDES[is_wrong], claim=f"Claim {number}."))
    return found


def test_a_debate_that_finds_the_truth_adds_information(home: Path) -> None:
    (found,) = measure_information(rows_in(home, debates(120, 0.9)))
    assert found.n == 120
    assert found.gain.low > 0
    assert found.bits.low > 0
    assert found.full.value == pytest.approx(found.base.value - found.gain.value)
    assert found.always == pytest.approx(0.5)
    assert 0 < found.moved <= 120


def test_a_debate_that_ends_anyhow_adds_none(home: Path) -> None:
    (found,) = measure_information(rows_in(home, debates(120, 0.5)))
    assert found.bits.low <= 0


@given(risks, budgets, st.floats(0.0, 1.0))
def test_competing_is_never_better_than_no_debate_and_collaborating_never_worse(
    risk: float, budget: float, weaker: float
) -> None:
    d = compute_separation(risk)
    assert compute_risk(d) == pytest.approx(risk, abs=1e-9)
    assert compute_competitive_risk(d, budget, weaker) >= risk - 1e-9
    assert compute_collaborative_risk(d, budget) <= risk + 1e-9
    assert compute_competitive_risk(d, budget, 1.0) == pytest.approx(risk, abs=1e-9)


@given(st.floats(0.01, 0.49), st.floats(0.1, 5.0))
def test_evidence_is_read_back_from_the_risks_that_it_leads_to(risk: float, budget: float) -> None:
    after = compute_collaborative_risk(compute_separation(risk), budget)
    if after > 1e-5:
        assert infer_evidence(risk, after) == pytest.approx(budget, rel=1e-4)
    assert infer_evidence(after, risk) == 0.0
