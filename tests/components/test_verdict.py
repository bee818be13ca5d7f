"""The verdict's card: readers that disagreed, and runs that were scored again."""

from __future__ import annotations

import re

from components.run.verdict import (
    describe_readers,
    describe_rescoring,
    render_readers,
    render_verdict,
)
from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    MemoryEntry,
    MemoryUpdated,
    RunFinished,
    RunResumed,
    SpanAdjudicated,
    StatementFound,
)
from core.schema.records import Judgement, ReaderStance, Span, Stance, Statement, Verdict
from core.schema.run_state import RunState, fold_events

NAMES = ("Entailment reader", "Value checker", "Overlap reader")


def views(index: int, *stances: Stance) -> tuple[ReaderStance, ...]:
    return tuple(ReaderStance(n, index, s) for n, s in zip(NAMES, stances, strict=False))


def progress(*readers: ReaderStance) -> RunState:
    made = RunState()
    for index, text in enumerate(("The tower is <b>tall</b>.", "It is old.")):
        made.add(StatementFound(1.0, Statement(index, 0, len(text), text, text)))
    made.add(JudgementReached(2.0, Judgement("J", "supported", "x", readers=readers), 0.1))
    return made


def told(*readers: ReaderStance) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_readers(progress(*readers)))).strip()


def test_readers_that_agree_are_named_in_one_line() -> None:
    assert told(*views(0, "supported", "supported")) == (
        "Given all the evidence, the readers agree: Entailment reader: supported · "
        "Value checker: supported."
    )


def test_a_disagreement_is_plain_to_see() -> None:
    words = told(*views(0, "supported", "hallucinated", "unclear"))
    assert words.startswith("Given all the evidence, the readers disagree:")
    for part in ("✓ Entailment reader: supported", "✗ Value checker: hallucinated"):
        assert part in words


def test_of_several_statements_only_those_in_dispute_are_shown_and_escaped() -> None:
    readers = (*views(0, "supported", "hallucinated"), *views(1, "supported", "supported"))
    words = told(*readers)
    assert words.startswith("Given all the evidence, the readers disagree on 1 of 2 statements:")
    assert "The tower is &lt;b&gt;tall" in words
    assert "It is old" not in words


def test_all_views_stand_in_one_line_those_in_dispute_first() -> None:
    readers = (*views(0, "supported", "supported"), *views(1, "unclear", "hallucinated"))
    line = describe_readers(Judgement("J", "unclear", "x", readers=readers))
    assert line == (
        "2. Entailment reader: unclear · Value checker: hallucinated; "
        "1. Entailment reader: supported · Value checker: supported"
    )


def test_a_run_from_before_readers_were_kept_shows_nothing() -> None:
    assert render_readers(progress()) == ""
    assert render_readers(RunState()) == ""


def test_an_audit_says_how_many_statements_were_read_of_how_many() -> None:
    """Sums and dates are worked out and read by nobody; the table below counts them too."""

    def audited(*readers: ReaderStance) -> str:
        made = progress(*readers)
        made.add(
            MemoryUpdated(1.5, MemoryEntry(1, "supported", 0.1, "It adds up.", ("calculator",)))
        )
        return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_readers(made))).strip()

    start = "Given all the evidence, the readers"
    words = audited(*views(0, "supported", "hallucinated"))
    assert words.startswith(f"{start} disagree on the one statement that they read (2 in all):")
    assert "The tower is" in words
    words = audited(*views(0, "supported", "supported"))
    assert words == f"{start} agree on the one statement that they read (2 in all)."
    both = (*views(0, "supported", "hallucinated"), *views(1, "supported", "supported"))
    assert audited(*both).startswith(f"{start} disagree on 1 of 2 statements:")


FIRST = Verdict("hallucinated", 0.83, 0.83, "Why.", classifier="seed")
AGAIN = Verdict("supported", 0.2, 0.8, "Why.", classifier="v2")
SPAN = Span(0, 3, "The", 0.9, "other", "Reader")
RULING = SpanAdjudicated(1.5, SPAN, True, "It is wrong.")
EVENTS: list[Event] = [LabelPredicted(1.0, FIRST), RULING, RunFinished(2.0, FIRST, 1.0)]


def test_a_new_score_stands_beside_the_first_verdict() -> None:
    progress = fold_events([*EVENTS, LabelPredicted(900.0, AGAIN, "Nora")])
    words = describe_rescoring(progress)
    assert words == (
        "Scored again by classifier v2. The run had ended with hallucinated, 83% likely, by seed."
    )
    assert words in str(render_verdict(progress, None))


def test_marks_do_not_stay_where_the_new_score_says_that_nothing_is_wrong() -> None:
    assert fold_events(EVENTS).spans == (SPAN,)
    assert fold_events([*EVENTS, LabelPredicted(900.0, AGAIN)]).spans == ()
    back = [*EVENTS, LabelPredicted(900.0, AGAIN), LabelPredicted(901.0, FIRST)]
    assert fold_events(back).spans == (SPAN,)
    assert describe_rescoring(fold_events(back)) == ""


def test_a_verdict_that_was_never_scored_again_says_nothing_of_it() -> None:
    assert describe_rescoring(fold_events(EVENTS)) == ""
    assert describe_rescoring(fold_events(EVENTS[:1])) == ""
    assert describe_rescoring(fold_events([*EVENTS, RunResumed(3.0)])) == ""
