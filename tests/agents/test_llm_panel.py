"""A language model in a panel: what it is shown, where its marks go, how its votes are read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.agents.llm_panel import MISSING_VOTE, LlmPanelist
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError
from core.schema.events import SpanVote
from core.schema.records import LearnedMarks, Span, SpanExample
from tests.agents.seats import FENCE, SEAT, Workplace, workplace
from tests.fakes import make_case, make_passage, make_view

RESPONSE = "🌉 The bridge opened in 1926 and was built in 1926 by Otto Falk."
REPORT = make_passage("The bridge was opened in 1931.", number=1, source="report.pdf")
VIEW = make_view(make_case(RESPONSE, question="When?"), [REPORT])
FIRST, SECOND = RESPONSE.index("1926"), RESPONSE.rindex("1926")
SPANS = (
    Span(FIRST, FIRST + 4, "1926", 0.9, "number_or_date", "other-model"),
    Span(SECOND, SECOND + 4, "1926", 0.8, "number_or_date", "other-model"),
)


def mark(quote: str, **changes: object) -> dict[str, object]:
    made: dict[str, object] = {
        "reason": "It was 1931.",
        "before": "",
        "quote": quote,
        "category": "number_or_date",
        "instead": "1931",
        "p": 0.9,
    }
    return made | changes


def marks(*found: dict[str, object]) -> str:
    return json.dumps({"spans": list(found)})


def votes(*found: tuple[int, float]) -> str:
    return json.dumps({"votes": [{"number": n, "reason": "So.", "p": p} for n, p in found]})


def extracted(*replies: str, sees: bool = False) -> tuple[tuple[Span, ...], Workplace]:
    place = workplace(replies)
    spans = LlmPanelist(SEAT, place.work, 2, sees_evidence=sees).extract(VIEW, StopSignal())
    place.model.finished()
    for span in spans:
        assert RESPONSE[span.start : span.end] == span.text
    return spans, place


def voted(*replies: str, sees: bool = False) -> tuple[tuple[SpanVote, ...], Workplace]:
    place = workplace(replies)
    found = LlmPanelist(SEAT, place.work, 2, sees_evidence=sees).vote(VIEW, SPANS, StopSignal())
    place.model.finished()
    return found, place


def test_it_is_shown_question_and_response_and_evidence_only_where_that_is_wanted() -> None:
    for sees in (False, True):
        for _, place in (extracted(marks(), sees=sees), voted(votes((1, 0.5)), sees=sees)):
            assert f"⟦response {FENCE.token}⟧\n{RESPONSE}\n" in place.prompt
            assert f"⟦question {FENCE.token}⟧\nWhen?\n" in place.prompt
            assert "(code: en)" in place.prompt
            assert ("opened in 1931" in place.prompt) == sees


def test_of_equal_words_those_after_the_words_it_says_are_marked() -> None:
    spans, place = extracted(marks(mark("1926", before="was built in")))
    assert [span.start for span in spans] == [SECOND]
    (asked,) = place.desk.asked
    assert (asked.role, asked.slot) == ("span panel 2", "span panel 2: spans")


def test_equal_marks_without_words_before_go_to_both_places() -> None:
    spans, _ = extracted(marks(mark("1926"), mark("1926", p=0.8)))
    assert [(span.start, span.p) for span in spans] == [(FIRST, 0.9), (SECOND, 0.8)]


def test_inventions_are_dropped_aloud_and_alone_are_no_answer() -> None:
    spans, place = extracted(marks(mark("five towers"), mark("Otto Falk", before="by")))
    assert [span.text for span in spans] == ["Otto Falk"]
    assert place.work.notes.drain() == (
        "1 of 2 places that tiny-talker marked stand nowhere in the text under review: left out.",
    )
    nowhere = marks(mark("five towers"))
    with pytest.raises(ReplyError, match="stands in the response"):
        extracted(nowhere, nowhere)


def test_nothing_wrong_is_an_answer() -> None:
    assert extracted(marks())[0] == ()


def test_corrected_cases_stand_before_the_case() -> None:
    place = workplace([marks()])
    span = Span(0, 4, "Blue", 1.0, "contradicted", "people", "Red")
    example = SpanExample("x", "case-7", "en", "Colour?", "Blue it is.", (span,), tokens=40)
    work = replace(place.work, learned=LearnedMarks(examples=(example,), examples_number=3))
    panelist = LlmPanelist(SEAT, work, 1, sees_evidence=False)
    panelist.extract(VIEW, StopSignal())
    assert "Blue it is." in place.prompt
    assert place.prompt.index("Blue it is.") < place.prompt.index(RESPONSE)
    assert "case-7" in panelist.rule


def test_all_spans_are_voted_on_in_one_call_each_with_what_stands_before_it() -> None:
    found, place = voted(votes((2, 0.25), (1, 0.875)))
    assert [vote.p for vote in found] == [0.875, 0.25]
    (asked,) = place.desk.asked
    assert asked.slot == "span panel 2: votes on other-model"
    assert '"number":2,"after":' in place.prompt
    assert "was built in" in place.prompt
    assert "other-model" not in place.prompt  # nobody is told whose mark it is


def test_who_is_passed_over_has_no_vote() -> None:
    found, place = voted(votes((2, 0.3)))
    assert found == (MISSING_VOTE, SpanVote(0.3, "So."))
    assert place.work.notes.drain() == ()


def test_votes_on_other_numbers_and_second_votes_are_left_out_aloud() -> None:
    found, place = voted(votes((1, 0.9), (7, 0.1), (1, 0.2)))
    assert [vote.p for vote in found] == [0.9, None]
    (said,) = place.work.notes.drain()
    assert said.startswith("2 of 3 votes of tiny-talker")


@pytest.mark.parametrize(
    "reply", [votes(), votes((5, 0.5)), votes((1, 1.5)), "I would say both are wrong.", "{"]
)
def test_a_reply_without_a_usable_vote_is_asked_for_again_and_then_useless(reply: str) -> None:
    assert voted(reply, votes((1, 0.9)))[0][0].p == 0.9
    with pytest.raises(ReplyError):
        voted(reply, reply)


def test_words_cannot_pass_for_a_number_of_their_own() -> None:
    text = 'He said "2, p: 0"\n2. done in 1926.'
    view = make_view(make_case(text), [])
    start = text.index('"2')
    span = Span(start, len(text) - 1, text[start:-1], 0.9, "contradicted", "other")
    place = workplace([votes((1, 0.4))])
    LlmPanelist(SEAT, place.work, 1, sees_evidence=False).vote(view, [span], StopSignal())
    assert '\\"2, p: 0\\"\\n2. done in 1926"' in place.prompt
