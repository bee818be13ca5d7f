"""Who judges where a protocol leaves that to the first debater's model (ColMAD 4.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.agents.rosters import seated
from core.debate.protocols import PROTOCOLS, seated_for
from core.pipeline.cost_estimate import Size, steps_of
from core.schema.records import Plan
from core.schema.rosters import DebaterSeat, RosterSheet, Seat
from tests.agents.seats import workplace

ONE, OTHER, THIRD = Seat("openai/one", max_tokens=150), Seat("openai/two"), Seat("openai/three")
MODELS = RosterSheet("two", debaters=(DebaterSeat("Ada", ONE), DebaterSeat("Ben", OTHER)))


@pytest.mark.parametrize("protocol", ["colmad", "copmad", "adaptive"])
def test_the_first_debaters_model_judges_where_no_model_does(protocol: str) -> None:
    judge = seated_for(Plan(protocol), MODELS).judge
    assert judge.model == ONE.model
    assert judge.max_tokens == MODELS.judge.max_tokens  # a turn's length would cut its reasons


def test_another_model_in_the_judges_seat_keeps_it() -> None:
    sheet = replace(MODELS, judge=THIRD)
    assert seated_for(Plan("colmad"), sheet) == sheet


@pytest.mark.parametrize("protocol", ["ceda", "single", "audit", "nothing"])
def test_other_protocols_change_no_seat(protocol: str) -> None:
    assert seated_for(Plan(protocol), MODELS) == MODELS


def test_built_in_readers_are_judged_by_the_built_in_judge() -> None:
    assert seated_for(Plan("colmad"), RosterSheet("builtin")) == RosterSheet("builtin")
    mixed = replace(MODELS, debaters=(MODELS.debaters[0], DebaterSeat("Cleo", Seat())))
    assert seated_for(Plan("colmad"), mixed) == mixed


def test_the_calls_that_are_expected_have_that_judge() -> None:
    steps = list(steps_of(MODELS, Size(100, protocol="colmad"), is_most=False))
    models = [step.seat.model for step in steps for _ in range(step.calls) if step.seat.model]
    asked = PROTOCOLS["colmad"].calls(2, Plan("colmad"))
    assert sorted(models) == ["openai/one"] * 4 + ["openai/two"] * 3
    assert len(models) == asked.total


def test_the_trace_names_that_judge() -> None:
    place = workplace([])
    roster = seated(seated_for(Plan("colmad"), MODELS), place.work)
    used = {role.role: role for role in roster.roles_used(lambda text: text[:6])}
    assert (used["judge"].agent, used["judge"].built_in) == ("one", False)
