"""A verdict that is a new score of an old run says so, and what the run had ended with."""

from __future__ import annotations

from components.run.verdict import again_words, verdict_html
from core.schema.events import Event, LabelPredicted, RunFinished, RunResumed, SpanAdjudicated
from core.schema.progress import folded
from core.schema.records import Span, Verdict

FIRST = Verdict("hallucinated", 0.83, 0.83, "Why.", classifier="seed")
AGAIN = Verdict("supported", 0.2, 0.8, "Why.", classifier="v2")
SPAN = Span(0, 3, "The", 0.9, "other", "Reader")
RULING = SpanAdjudicated(1.5, SPAN, True, "It is wrong.")
EVENTS: list[Event] = [LabelPredicted(1.0, FIRST), RULING, RunFinished(2.0, FIRST, 1.0)]


def test_a_new_score_stands_beside_the_first_verdict() -> None:
    progress = folded([*EVENTS, LabelPredicted(900.0, AGAIN, "Nora")])
    words = again_words(progress)
    assert words == (
        "Scored again by classifier v2. The run had ended with hallucinated, 83% likely, by seed."
    )
    assert words in str(verdict_html(progress, None))


def test_marks_do_not_stay_where_the_new_score_says_that_nothing_is_wrong() -> None:
    assert folded(EVENTS).spans == (SPAN,)
    assert folded([*EVENTS, LabelPredicted(900.0, AGAIN)]).spans == ()
    back = [*EVENTS, LabelPredicted(900.0, AGAIN), LabelPredicted(901.0, FIRST)]
    assert folded(back).spans == (SPAN,)
    assert again_words(folded(back)) == ""


def test_a_verdict_that_was_never_scored_again_says_nothing_of_it() -> None:
    assert again_words(folded(EVENTS)) == ""
    assert again_words(folded(EVENTS[:1])) == ""
    assert again_words(folded([*EVENTS, RunResumed(3.0)])) == ""
