"""A run as one object: what it cost is what was paid, never a guess."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.pipeline.streaming_input import outcome
from core.schema.events import (
    ConsensusWeighed,
    DebateDecided,
    Event,
    ModelCalled,
    RunFailed,
    RunStarted,
    TurnFinished,
)
from core.schema.progress import folded
from core.schema.records import ModelCall, Plan, Run, RunStatus, Turn
from core.schema.rosters import DebateOptions
from tests.fakes import make_case

CASE = make_case("The tower is 512 m tall.")
CALL = ModelCall("1", "judge", "verdict", "openai/x", "judge", "abc", 100, 20, 0.1, 1.0)


def made(*events: Event, status: RunStatus = "finished") -> dict[str, object]:
    run = Run("r", CASE.id, CASE.project_id, Plan(), status, 100.0)
    return outcome(run, folded([RunStarted(100.0, CASE, Plan(), ()), *events]))


@pytest.mark.parametrize(
    ("turn", "judge", "cost"),
    [(0.0, 0.0, 0.0), (0.1, 0.2, 0.3), (1e-7, 0.0, 1e-7), (0.1, None, None), (None, 0.2, None)],
)
def test_cost_is_the_sum_of_what_was_paid(
    turn: float | None, judge: float | None, cost: float | None
) -> None:
    found = made(
        ModelCalled(101.0, replace(CALL, id="1", cost=turn)),
        ModelCalled(102.0, replace(CALL, id="2", cost=judge)),
        ModelCalled(103.0, replace(CALL, id="2", cost=judge)),  # told again after a Resume
    )
    assert found["cost"] == cost


def test_a_failed_run_has_no_label_and_says_why() -> None:
    found = made(RunFailed(103.0, "judging", "The judge is away."), status="failed")
    assert (found["label"], found["cause_words"], found["seconds"]) == (
        None,
        "The judge is away.",
        3.0,
    )


def test_an_adaptive_check_says_whether_it_held_a_debate() -> None:
    assert made()["debate"] is None
    found = made(DebateDecided(101.0, False, "The judge was sure.", "ceda"))
    assert found["debate"] == {"is_held": False, "then": "ceda", "why": "The judge was sure."}


def test_whose_answer_counted_how_much_is_told_with_what_was_chosen() -> None:
    assert (made()["consensus"], made()["options"]) == (None, {})
    told = ConsensusWeighed(101.0, "record, weights 3", (("Ada", 0.75), ("Ben", 0.25)), 0.3)
    assert made(told)["consensus"] == {
        "method": "record, weights 3",
        "weights": {"Ada": 0.75, "Ben": 0.25},
        "p": 0.3,
    }
    plan = Plan("sc_maks", options=DebateOptions(rounds=1, without="adversary"))
    run = Run("r", CASE.id, CASE.project_id, plan, "finished", 100.0)
    found = outcome(run, folded([RunStarted(100.0, CASE, plan, ())]))
    assert found["options"] == {"rounds": 1, "without": "adversary"}


def test_turns_come_in_their_order_with_what_was_asked_and_stated() -> None:
    """Whoever speaks at the same time as others may be done before them."""
    one = Turn("Ada", "m", 1, 0, "agree", "supported", "CORRECT.", manner="answer", doubt="A digit")
    side = Turn(
        "Ben", "m", 2, 1, "deny", "hallucinated", "WRONG.", manner="compete",
        assigned="hallucinated",
    )  # fmt: skip
    found = made(TurnFinished(102.0, side, 1.0), TurnFinished(103.0, one, 2.0))
    turns = found["turns"]
    assert isinstance(turns, list)
    told = [(t["number"], t["manner"], t["assigned"], t["doubt"]) for t in turns]
    assert told == [(1, "answer", None, "A digit"), (2, "compete", "hallucinated", "")]
