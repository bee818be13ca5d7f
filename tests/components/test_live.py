"""What is said of a run under way."""

from __future__ import annotations

import time

import pytest

from components.run.run_view import (
    STAGE_WORDS,
    count_worked_seconds,
    current_stage,
    find_open_turns,
    render_call,
)
from components.run.transcript import OpenTurn
from core.llm.call import Call, CallUnderWay, ModelRequest
from core.schema.events import (
    ConsensusReached,
    Event,
    LabelPredicted,
    ProblemMet,
    ProgressMade,
    RunResumed,
    RunStarted,
    RunStopped,
    Stage,
    StatementFound,
    TurnStarted,
)
from core.schema.records import Plan, Statement, Verdict
from core.schema.rosters import AgentConfig
from core.schema.run_state import fold_events
from tests.fakes import make_case

pytestmark = pytest.mark.timing

BEGUN = RunStarted(1.0, make_case("a"), Plan(), ())


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        (BEGUN, "reading"),
        (StatementFound(2.0, Statement(0, 0, 1, "a", "a")), "searching"),
        (ConsensusReached(2.0, "supported", 4), "judging"),
        (LabelPredicted(2.0, Verdict("supported", 0.1, 0.9, "")), "marking"),
    ],
)
def test_the_stage_is_the_one_that_the_run_is_in(event: Event, stage: Stage) -> None:
    assert current_stage(fold_events([BEGUN, event]), None) == (STAGE_WORDS[stage], None)


def test_passing_news_counts_until_the_next_event() -> None:
    news = ProgressMade(3.0, "reading", "a.pdf: page 3 of 4", 3, 4)
    assert current_stage(fold_events([BEGUN]), news) == ("a.pdf: page 3 of 4", 0.75)
    found = StatementFound(4.0, Statement(0, 0, 1, "a", "a"))
    assert current_stage(fold_events([BEGUN, found]), news) == (STAGE_WORDS["searching"], None)


def test_pauses_are_no_work_and_waiting_again_has_no_beginning() -> None:
    stopped: list[Event] = [BEGUN, RunStopped(11.0, "Mira")]
    assert count_worked_seconds(fold_events([]), 1.0, 4.0, waiting=True) == 3.0
    assert count_worked_seconds(fold_events([BEGUN]), 1.0, 4.0, waiting=False) == 3.0
    assert count_worked_seconds(fold_events(stopped), 1.0, 911.0, waiting=True) is None
    assert count_worked_seconds(fold_events(stopped), 1.0, 911.0, waiting=False) is None
    resumed = fold_events([*stopped, RunResumed(911.0, "Mira")])
    assert count_worked_seconds(resumed, 1.0, 915.0, waiting=False) == 14.0


def test_nobody_speaks_in_a_lost_turn_or_in_one_that_begins_anew() -> None:
    first = TurnStarted(2.0, "Ada", "x", 1, 1)
    lost = ProblemMet(3.0, "debating", "Ada's turn 1 is lost.", reply="Hm.")
    second = TurnStarted(4.0, "Ben", "x", 2, 1)
    assert find_open_turns([BEGUN, first], None) == {1: OpenTurn(first, "")}
    assert find_open_turns([BEGUN, first, lost, second], None) == {2: OpenTurn(second, "")}
    assert find_open_turns([BEGUN, first, RunStopped(5.0), RunResumed(6.0)], None) == {}


def test_a_lost_turn_of_several_takes_no_words_of_the_others() -> None:
    ada, ben = (TurnStarted(2.0, name, "x", n, 1) for n, name in ((1, "Ada"), (2, "Ben")))
    begun: list[Event] = [ada, ben]
    lost = ProblemMet(3.0, "debating", "Ada's turn 1 is lost.", reply="Hm.", turn=1)
    assert find_open_turns([BEGUN, *begun], None) == {1: OpenTurn(ada, ""), 2: OpenTurn(ben, "")}
    assert find_open_turns([BEGUN, *begun, lost], None) == {2: OpenTurn(ben, "")}


def under_way(role: str, *pieces: str, slot: str = "slot") -> CallUnderWay:
    seat = AgentConfig("local/tiny", max_tokens=800)
    return CallUnderWay(
        ModelRequest(role, slot, Call(seat, ())), 1_913, time.monotonic() - 14, list(pieces)
    )


def test_who_is_at_work_is_said_from_the_prompt_to_the_last_word() -> None:
    waiting = render_call(under_way("context writer"))
    assert "Context writer (tiny) has about 1,900 tokens to read before it writes · 14 s" in waiting
    judging = render_call(under_way("judge", "It says ", "<b>412 m</b>."))
    assert "Judge (tiny) is writing: about " in judging
    assert " tokens so far" in judging
    assert "It says &lt;b&gt;412 m&lt;/b&gt;.</div>" in judging, "prose is shown as it comes"
    again = render_call(under_way("segmenter", "{", slot="segment again"))
    words = "is writing again, as its reply could not be used: about 1 token so far"
    assert f"Segmenter (tiny) {words}" in again


@pytest.mark.parametrize(
    ("role", "said"),
    [("context writer", '{"facts": [{"claim": "It is tall.'), ("tool picker", '```json\n{"thought'),
     ("debater Ada", "DENY, WRONG. It is tall.")],
)  # fmt: skip
def test_json_is_nothing_to_read_and_a_turn_shows_its_own_words(role: str, said: str) -> None:
    shown = render_call(under_way(role, said))
    assert "is writing: about" in shown
    assert "tall" not in shown
    assert "thought" not in shown
