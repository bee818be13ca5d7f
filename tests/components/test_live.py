"""What is said of a run under way."""

from __future__ import annotations

import pytest

from components.run.run_view import STAGE_WORDS, speaking_now, stage_of, worked_seconds
from components.run.transcript import Speaking
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
from core.schema.progress import folded
from core.schema.records import Plan, Statement, Verdict
from tests.fakes import make_case

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
    assert stage_of(folded([BEGUN, event]), None) == (STAGE_WORDS[stage], None)


def test_passing_news_counts_until_the_next_event() -> None:
    news = ProgressMade(3.0, "reading", "a.pdf: page 3 of 4", 3, 4)
    assert stage_of(folded([BEGUN]), news) == ("a.pdf: page 3 of 4", 0.75)
    found = StatementFound(4.0, Statement(0, 0, 1, "a", "a"))
    assert stage_of(folded([BEGUN, found]), news) == (STAGE_WORDS["searching"], None)


def test_pauses_are_no_work_and_waiting_again_has_no_beginning() -> None:
    stopped: list[Event] = [BEGUN, RunStopped(11.0, "Mira")]
    assert worked_seconds(folded([]), 1.0, 4.0, waiting=True) == 3.0
    assert worked_seconds(folded([BEGUN]), 1.0, 4.0, waiting=False) == 3.0
    assert worked_seconds(folded(stopped), 1.0, 911.0, waiting=True) is None
    assert worked_seconds(folded(stopped), 1.0, 911.0, waiting=False) is None
    resumed = folded([*stopped, RunResumed(911.0, "Mira")])
    assert worked_seconds(resumed, 1.0, 915.0, waiting=False) == 14.0


def test_nobody_speaks_in_a_lost_turn_or_in_one_that_begins_anew() -> None:
    first = TurnStarted(2.0, "Ada", "x", 1, 1)
    lost = ProblemMet(3.0, "debating", "Ada's turn 1 is lost.", reply="Hm.")
    second = TurnStarted(4.0, "Ben", "x", 2, 1)
    assert speaking_now([BEGUN, first], None) == {1: Speaking(first, "")}
    assert speaking_now([BEGUN, first, lost, second], None) == {2: Speaking(second, "")}
    assert speaking_now([BEGUN, first, RunStopped(5.0), RunResumed(6.0)], None) == {}


def test_a_lost_turn_of_several_takes_no_words_of_the_others() -> None:
    ada, ben = (TurnStarted(2.0, name, "x", n, 1) for n, name in ((1, "Ada"), (2, "Ben")))
    begun: list[Event] = [ada, ben]
    lost = ProblemMet(3.0, "debating", "Ada's turn 1 is lost.", reply="Hm.", turn=1)
    assert speaking_now([BEGUN, *begun], None) == {1: Speaking(ada, ""), 2: Speaking(ben, "")}
    assert speaking_now([BEGUN, *begun, lost], None) == {2: Speaking(ben, "")}
