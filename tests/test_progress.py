"""A run's events, folded: the stage it is in, the time it took, what replaces what."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from core.schema import events as happened
from core.schema.records import (
    EvidenceContext,
    Judgement,
    ModelCall,
    Plan,
    Span,
    Statement,
    Turn,
    Verdict,
    WordScore,
)
from core.schema.run_state import fold_events
from tests.fakes import make_case, make_passage

pytestmark = pytest.mark.timing

CLAIM = "The tower is 512 m tall."
CASE = make_case(CLAIM)
VERDICT = Verdict("hallucinated", 0.9, 0.9, "It is wrong.", classifier="seed")
SPAN = Span(13, 18, "512 m", 0.9, "number_or_date", "Ada", "412 m")
TURN = Turn("Ada", "One", 1, 1, "deny", "hallucinated", "DENY.")
JUDGEMENT = Judgement("Judge", "hallucinated", "It is wrong.")
CALL = ModelCall("1", "judge", "verdict", "openai/x", "judge", "abc", 100, 20, 0.75, 1.0)
PASSAGE = make_passage("The tower is 412 m tall.")
SCORED = happened.WordsScored(
    110.5, "Extractor", (WordScore(0, 3, 0.1), WordScore(13, 18, 0.9)), 0.4
)
VOTED = happened.SpanVoted(111.2, "one", "other", SPAN, 0.8, "It says 412.")
SOFT = happened.SoftLabelled(111.4, (happened.SoftLabel(13, 18, 0.8, 0.8),), 0.7, ("one", "other"))
USE = happened.ToolUse(
    "calculator", 0, '{"text": "512 m"}', "{}", "found", "hallucinated", "Wrong.", 0.1
)
MEMORY = happened.MemoryEntry(0, "hallucinated", 0.9, "Wrong.", ("calculator",))
CHANGE = happened.LabelRevision(0, "local", "supported", "hallucinated", "The sum is wrong.")
WHOLE: list[tuple[happened.Event, happened.Stage]] = [
    (happened.RunStarted(100.0, CASE, Plan(), (), "code"), "reading"),
    (happened.ProgressMade(100.5, "searching", "Indexing facts.txt"), "searching"),
    (happened.ProgressMade(100.6, "reading", "Reading chart.png"), "reading"),
    (happened.DocumentRead(101.0, "d", "facts.txt", (), 24, 0.5, False), "reading"),
    (happened.ImageDescribed(102.0, "i", "chart.png", "OCR", False, "", 0.5), "reading"),
    (happened.StatementFound(103.0, Statement(0, 0, len(CLAIM), CLAIM, CLAIM)), "searching"),
    (happened.PassagesFound(104.0, 0, (PASSAGE,)), "searching"),
    (happened.ModelCalled(104.5, CALL), "searching"),
    (happened.ToolCalled(104.6, USE), "auditing"),
    (happened.MemoryUpdated(104.7, MEMORY), "auditing"),
    (happened.ReflectionChanged(104.8, CHANGE), "auditing"),
    (
        happened.ContextBuilt(105.0, "Writer", EvidenceContext((), (PASSAGE.id,), "1 passage.")),
        "debating",
    ),
    (happened.TurnStarted(106.0, "Ada", "One", 1, 1), "debating"),
    (happened.TurnFinished(107.0, TURN, 1.0, 0.25), "debating"),
    (happened.ConsensusReached(108.0, "hallucinated", 1), "judging"),
    (happened.ProgressMade(108.5, "judging", "Weighing the debate"), "judging"),
    (happened.JudgementReached(109.0, JUDGEMENT, 1.0, 0.5), "judging"),
    (happened.StepsReused(109.5, "before", "judgement"), "judging"),
    (happened.LabelPredicted(110.0, VERDICT), "marking"),
    (SCORED, "marking"),
    (happened.SpanProposed(111.0, SPAN), "marking"),
    (VOTED, "marking"),
    (SOFT, "marking"),
    (happened.SpanAdjudicated(112.0, SPAN, True, "Both agree."), "marking"),
    (happened.RunFinished(113.0, VERDICT, 13.0), "marking"),
]


@pytest.mark.parametrize("count", range(len(WHOLE)))
def test_the_stage_is_what_is_being_done_now(count: int) -> None:
    assert fold_events(event for event, _ in WHOLE[: count + 1]).stage == WHOLE[count][1]


def test_every_stage_is_come_to() -> None:
    assert {stage for _, stage in WHOLE} == set(get_args(happened.Stage))


def test_nothing_that_happened_is_missed() -> None:
    state = fold_events(event for event, _ in WHOLE)
    assert (state.case, state.plan, state.code) == (CASE, Plan(), "code")
    assert state.source_names == {"d": "facts.txt", "i": "chart.png"}
    assert state.sources_read == {"d", "i"}
    assert state.unreadable_images == ("chart.png",)
    assert state.evidence == {PASSAGE.id: PASSAGE}
    assert state.tool_uses == [USE]
    assert state.memory == {0: MEMORY}
    assert state.reconsidered == [CHANGE]
    assert state.turns == [TURN]
    assert state.reached_consensus
    assert state.judgement == JUDGEMENT
    assert state.verdict == VERDICT
    assert state.words == SCORED
    assert (state.votes, state.soft) == ([VOTED], SOFT)
    assert state.spans == (SPAN,)
    assert state.cost == 0.75
    assert state.reused
    assert state.ending
    assert state.seconds() == 13.0


def test_a_pause_before_resuming_is_not_worked_time() -> None:
    events: list[happened.Event] = [
        happened.RunStarted(100.0, CASE, Plan(), ()),
        happened.RunStopped(110.0, "Mira"),
        happened.RunResumed(1000.0, "Mira"),
    ]
    assert fold_events(events[:2]).ending == events[1]
    state = fold_events(events)
    assert state.ending is None
    assert state.seconds() == 10.0
    assert state.seconds(1005.0) == 15.0


def test_a_wait_before_it_began_is_no_pause() -> None:
    """Resumed, or stopped and resumed, while it waited for its turn."""
    started = happened.RunStarted(1000.0, CASE, Plan(), ())
    resumed = happened.RunResumed(900.0, "Mira")
    for before in ([resumed], [happened.RunStopped(100.0, "Mira"), resumed]):
        state = fold_events([*before, started, happened.RunStopped(1010.0, "Mira")])
        assert (state.paused, state.seconds()) == (0.0, 10.0)


def test_before_it_began_it_took_no_time() -> None:
    assert fold_events([]).seconds(1000.0) == 0.0


def test_what_is_said_of_a_source_last_counts() -> None:
    """A file was away, and came back before the run was resumed; another went."""
    read = happened.DocumentRead(103.0, "d", "facts.txt", (), 24, 0.5, False)
    gone = happened.ProblemMet(101.0, "reading", "facts.txt is away.", "facts.txt", None, "d")
    other = happened.ProblemMet(102.0, "debating", "Ada could not speak.", "Ada")
    assert fold_events([gone, other, read]).problems == [other]
    state = fold_events([read, other, gone])
    assert (state.documents, state.problems) == ({}, [other, gone])


def test_a_dropped_span_is_not_marked_and_the_others_stand_in_order() -> None:
    first = Span(0, 3, "The", 0.6, "contradicted", "Ben")
    events: list[happened.Event] = [
        happened.SpanAdjudicated(1.0, SPAN, True, "Both agree."),
        happened.SpanAdjudicated(
            2.0, Span(4, 9, "tower", 0.2, "contradicted", "Ben"), False, "One only."
        ),
        happened.SpanAdjudicated(3.0, first, True, "Both agree."),
    ]
    assert fold_events(events).spans == (first, SPAN)


def test_a_problem_that_is_met_again_after_a_resume_is_said_once() -> None:
    met = happened.ProblemMet(104.6, "searching", "facts.txt speaks to the models that check.")
    other = happened.ProblemMet(104.7, "debating", "Ada's turn 1 is lost.")
    events = [event for event, _ in WHOLE[:8]]
    again = replace(met, at=121.0)
    state = fold_events([*events, met, other, happened.RunResumed(120.0, "Mira"), again])
    assert state.problems == [other, again]
