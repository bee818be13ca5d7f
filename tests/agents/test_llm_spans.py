"""Wrong words by a language model: placed where they stand, voted on one by one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.agents.llm_panel import LlmSpanAdjudicator, LlmSpanExtractor, match_category
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError
from core.schema.records import Category, Judgement, Span, Turn
from core.schema.roles import SpanRuling
from core.schema.rosters import AgentConfig
from tests.agents.seats import FENCE, SEAT, Workplace, judge_view, workplace
from tests.fakes import make_case, make_passage, make_view

RESPONSE = "🌉 The bridge opened in 1926 and was built in 1926 by Otto Falk."
REPORT = make_passage("The bridge was opened in 1931.", number=1, source="report.pdf")
VIEW = judge_view(make_view(make_case(RESPONSE, question="When?"), [REPORT]))
WRONG = Judgement("judge", "hallucinated", "The year is another one.")


def mark(quote: str, **changes: object) -> dict[str, object]:
    made: dict[str, object] = {
        "reason": "The report says 1931.",
        "quote": quote,
        "category": "number_or_date",
        "instead": "1931",
        "p": 0.9,
    }
    return made | changes


def marks(*found: dict[str, object]) -> str:
    return json.dumps({"spans": list(found)})


def proposed(*replies: str) -> tuple[tuple[Span, ...], Workplace]:
    place = workplace(replies)
    spans = LlmSpanExtractor(SEAT, place.work).propose(VIEW, WRONG, StopSignal())
    place.model.finished()
    for span in spans:
        assert RESPONSE[span.start : span.end] == span.text
    return spans, place


def quotable(place: Workplace) -> object:
    schema = place.desk.asked[0].call.schema
    assert schema is not None
    return schema["$defs"]["_ExtractedSpan"]["properties"]["quote"].get("enum")


def test_the_grammar_of_an_own_server_admits_only_words_of_the_response() -> None:
    _, place = proposed(marks(mark("1926")))
    choices = quotable(place)
    assert isinstance(choices, tuple)
    assert {"1926", "Otto Falk", "built in 1926 by Otto Falk", RESPONSE} <= {*choices}
    assert all(choice in RESPONSE for choice in choices)


@pytest.mark.parametrize(
    ("seat", "response"),
    [(replace(SEAT, api_base=""), RESPONSE), (SEAT, " ".join(f"word{n}" for n in range(300)))],
    ids=["of a cloud model", "of a long response"],
)
def test_the_quote_is_free(seat: AgentConfig, response: str) -> None:
    place = workplace([marks(mark(response[:9]))])
    view = judge_view(make_view(make_case(response), [REPORT]))
    LlmSpanExtractor(seat, place.work).propose(view, WRONG, StopSignal())
    assert quotable(place) is None


def test_words_are_marked_where_they_stand() -> None:
    spans, place = proposed(
        marks(mark("Otto Falk", category="wrong_entity", instead=""), mark("1926"))
    )
    start = RESPONSE.index("1926")
    assert [(s.start, s.text, s.category, s.instead) for s in spans] == [
        (start, "1926", "number_or_date", "1931"),
        (RESPONSE.index("Otto"), "Otto Falk", "wrong_entity", ""),
    ]
    assert {s.source for s in spans} == {"tiny-talker"}
    assert (place.desk.asked[0].role, place.desk.asked[0].slot) == ("span extractor", "spans")
    assert "The year is another one." in place.prompt
    assert f"⟦response {FENCE.token}⟧\n{RESPONSE}\n" in place.prompt


def test_the_extractor_reads_what_the_judge_wrote_not_what_the_classifier_reads() -> None:
    place = workplace([marks(mark("1926"))])
    told = replace(WRONG, text="Verdict: INCORRECT.", prose="The report has 1931.")
    LlmSpanExtractor(SEAT, place.work).propose(VIEW, told, StopSignal())
    assert "⟧\nThe report has 1931.\n⟦" in place.prompt
    assert "INCORRECT" not in place.prompt


def test_the_same_words_twice_are_marked_at_both_places() -> None:
    spans, _ = proposed(marks(mark("1926"), mark("1926", p=0.8)))
    assert [(s.text, s.p) for s in spans] == [("1926", 0.9), ("1926", 0.8)]
    assert spans[0].start < spans[1].start


def test_slips_of_typing_are_found_and_inventions_dropped_aloud() -> None:
    spans, place = proposed(
        marks(mark("opened  IN 1926"), mark("by Oto Falk."), mark("five towers"))
    )
    assert [s.text for s in spans] == ["opened in 1926", "by Otto Falk."]
    assert place.work.notes.drain() == (
        "1 of 3 places that tiny-talker marked stand nowhere in the text under review: left out.",
    )
    assert place.work.notes.drain() == ()


def test_of_overlapping_places_the_surest_stays() -> None:
    spans, place = proposed(marks(mark("opened in 1926", p=0.4), mark("in 1926", p=0.7)))
    assert [(s.text, s.p) for s in spans] == [("in 1926", 0.7)]
    assert place.work.notes.drain() == ()


def test_nothing_that_can_be_placed_is_asked_for_again_and_then_useless() -> None:
    nowhere = marks(mark("five towers"))
    assert [s.text for s in proposed(nowhere, marks(mark("1926")))[0]] == ["1926"]
    with pytest.raises(ReplyError, match="stands in the response") as caught:
        proposed(nowhere, nowhere)
    assert caught.value.reply == nowhere


@pytest.mark.parametrize(
    "wrong",
    [mark("1926", p=1.4), mark("1926", category=7), mark("1926", p=None), {"quote": "1926"}],
)
def test_a_mark_of_another_form_is_not_guessed_at(wrong: dict[str, object]) -> None:
    with pytest.raises(ReplyError):
        proposed(marks(wrong), marks(wrong))


def test_an_empty_list_is_an_answer() -> None:
    assert proposed(marks())[0] == ()


def test_what_is_not_hallucinated_has_no_wrong_words() -> None:
    place = workplace([])
    for label in ("supported", "unclear"):
        judged = replace(WRONG, label=label)
        assert LlmSpanExtractor(SEAT, place.work).propose(VIEW, judged, StopSignal()) == ()
    assert place.model.calls == []


SPAN = Span(24, 28, "1926", 0.9, "number_or_date", "tiny-talker", "1931")


def ruled(reply: str) -> tuple[SpanRuling, Workplace]:
    place = workplace([reply])
    ruling = LlmSpanAdjudicator(SEAT, place.work).adjudicate(
        VIEW, SPAN, "hallucinated", StopSignal()
    )
    return ruling, place


def test_a_vote_keeps_or_drops() -> None:
    kept, place = ruled('{"reason": "It says 1931.", "hallucinated": true, "p": 0.83}')
    assert kept == SpanRuling(replace(SPAN, p=0.83), True, "It says 1931.")
    (asked,) = place.desk.asked
    assert (asked.role, asked.slot) == ("span adjudicator", "span 24 to 28")
    assert "number or date; the evidence says: 1931" in place.prompt
    dropped, _ = ruled('{"reason": "", "hallucinated": false, "p": 0.2}')
    assert dropped == SpanRuling(replace(SPAN, p=0.2), False, "It gave no reason.")


def test_a_vote_is_told_how_the_debate_ended() -> None:
    place = workplace(['{"reason": "", "hallucinated": true, "p": 0.8}'])
    view = judge_view(
        VIEW.case_view,
        *(Turn("Ada", "m", n, 1, "deny", "hallucinated", f"Word {n}.") for n in (1, 2, 3)),
    )
    LlmSpanAdjudicator(SEAT, place.work).adjudicate(view, SPAN, "hallucinated", StopSignal())
    heading = f"The last words of the debate:\n⟦last turns {FENCE.token}⟧\n"
    assert f"{heading}Ada: Word 2.\nAda: Word 3.\n⟦" in place.prompt


def test_under_another_verdict_nobody_is_asked() -> None:
    place = workplace([])
    ruling = LlmSpanAdjudicator(SEAT, place.work).adjudicate(VIEW, SPAN, "supported", StopSignal())
    assert ruling == SpanRuling(SPAN, False, "The verdict is supported.")
    assert place.model.calls == []


@pytest.mark.parametrize(
    ("words", "category"),
    [
        ("number_or_date", "number_or_date"),
        ("Number or date", "number_or_date"),
        ("contradiction", "contradicted"),
        ("not in sources", "not_in_source"),
        ("a lie", "contradicted"),
        ("", "contradicted"),
    ],
)
def test_a_category_in_other_words_costs_no_mark(words: str, category: Category) -> None:
    assert match_category(words) == category
