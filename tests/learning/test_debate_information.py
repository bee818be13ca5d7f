"""Whether debates added information: planted in runs that were told, and the judge as a model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.debate_worth import information
from core.learning.reasoning import (
    collaborative,
    competitive,
    evidence_in,
    risk_of,
    rows_of,
    separation,
)
from core.records import Stance
from core.store import open_store
from tests.learning.runs_told import Told, tell
from tests.learning.test_learned_consensus import SIDES

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
    with open_store(home) as store:
        tell(store, debates(120, 0.9))
        (found,) = information(rows_of(store, store.projects.all()[0].id, {}))
    assert found.n == 120
    assert found.gain.low > 0
    assert found.bits.low > 0
    assert found.full.value == pytest.approx(found.base.value - found.gain.value)
    assert found.always == pytest.approx(0.5)
    assert 0 < found.moved <= 120


def test_a_debate_that_ends_anyhow_adds_none(home: Path) -> None:
    with open_store(home) as store:
        tell(store, debates(120, 0.5))
        (found,) = information(rows_of(store, store.projects.all()[0].id, {}))
    assert found.bits.low <= 0


def test_too_few_cases_say_nothing(home: Path) -> None:
    with open_store(home) as store:
        tell(store, debates(20, 0.9))
        assert information(rows_of(store, store.projects.all()[0].id, {})) == []


@given(risks, budgets, st.floats(0.0, 1.0))
def test_competing_is_never_better_than_no_debate_and_collaborating_never_worse(
    risk: float, budget: float, weaker: float
) -> None:
    d = separation(risk)
    assert risk_of(d) == pytest.approx(risk, abs=1e-9)
    assert competitive(d, budget, weaker) >= risk - 1e-9
    assert collaborative(d, budget) <= risk + 1e-9
    assert competitive(d, budget, 1.0) == pytest.approx(risk, abs=1e-9)


@given(st.floats(0.01, 0.49), st.floats(0.1, 5.0))
def test_evidence_is_read_back_from_the_risks_that_it_leads_to(risk: float, budget: float) -> None:
    after = collaborative(separation(risk), budget)
    if after > 1e-5:
        assert evidence_in(risk, after) == pytest.approx(budget, rel=1e-4)
    assert evidence_in(after, risk) == 0.0
