"""The built-in corrected text: exact offsets, values that fit, nothing guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.debaters import MOST_WORDS, BuiltInContextWriter, round_summary
from core.baseline.wording import TextEdit, edits_of, edits_of_spans, fits, with_edits
from core.llm.call import in_silence
from core.runtime.concurrency import Stop
from core.schema.records import Context, Judgement, Point, Quote, Span, Turn
from core.schema.roles import DebateView, JudgeView
from tests.debates import built_in
from tests.fakes import make_case, make_passage, make_view
from tests.readers import word_assessor

QUOTE = Quote("It is 412 metres long.", "verified", source="report.pdf")


def point(response: str, words: str, evidence: str, weight: float = 0.9, **more: object) -> Point:
    start = response.index(words)
    values: dict[str, object] = {"finding": "contradicted", "category": "number_or_date"} | more
    return Point(
        statement=0,
        start=start,
        end=start + len(words),
        text=words,
        evidence=evidence,
        explanation="",
        weight=weight,
        **values,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("words", "value", "does_fit"),
    [
        ("530 metres", "412 metres", True),
        ("1926", "1931", True),
        ("more than 80", "fewer than 60", True),
        ("80", "fewer than 60", False),
        ("530", "412 metres", False),
        ("three", "4", False),
        ("12 May 1932", "14 May 1932", True),
        ("五百米", "四百米", True),
        ("1926", "", False),
        ("1926", "1931\nand so on", False),
        (
            "530 metres",
            "412 metres, as the report of that year sets out at some length, we read",
            False,
        ),
    ],
)
def test_a_value_fits_where_it_is_of_the_same_make(words: str, value: str, does_fit: bool) -> None:
    assert fits(words, value, "number_or_date") is does_fit
    assert not fits(words, value, "contradicted")


def test_values_are_put_in_at_their_offsets_and_nothing_else_changes() -> None:
    text = "🌉 The bridge is 530 m long.\n otto built it in 1926 – 1926! جسر"
    found = edits_of([point(text, "530 m", "412 m"), point(text, "1926", "1931")], text)
    assert (
        with_edits(text, found)
        == "🌉 The bridge is 412 m long.\n otto built it in 1931 – 1926! جسر"
    )


def test_a_name_at_the_beginning_keeps_its_capital() -> None:
    text = "Violins are made there."
    found = edits_of([point(text, "Violins", "cellos", category="wrong_entity")], text)
    assert with_edits(text, found) == "Cellos are made there."


def test_of_two_in_one_place_the_surer_one_counts_and_equals_are_left_alone() -> None:
    text = "It opened in 1926."
    low, high = point(text, "1926", "1930", 0.6), point(text, "1926", "1931", 0.9)
    assert with_edits(text, edits_of([low, high], text)) == "It opened in 1931."
    other = point(text, "1926", "1932", 0.9)
    assert with_edits(text, edits_of([high, other], text)) == text


def test_words_that_do_not_stand_at_their_offsets_are_left_alone() -> None:
    text = "It opened in 1926."
    moved = point("At last it opened in 1926.", "1926", "1931")
    missing = point(text, "1926", "1931", finding="missing")
    assert edits_of([moved, missing], text) == []


def test_marked_spans_say_what_should_stand_there() -> None:
    text = "It opened in 1926."
    span = Span(13, 17, "1926", 0.9, "number_or_date", "someone", instead="1931")
    assert with_edits(text, edits_of_spans([span], text)) == "It opened in 1931."


@given(
    st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=5)
)
def test_edits_with_the_same_words_changes_nothing(
    text: str, places: list[tuple[int, int]]
) -> None:
    own = [TextEdit(a, b, text[a:b], 0.5) for a, b in places if a < b <= len(text)]
    assert with_edits(text, own) == text


def test_the_built_in_writer_corrects_what_the_built_in_debaters_contest() -> None:
    text = "The Vidar bridge is 530 metres long and was opened in 1931."
    fact = make_passage("The Vidar bridge is 412 metres long and was opened in 1931.", number=1)
    view = make_view(make_case(text), [fact])
    debater = built_in().debaters["Ada"]
    seen = DebateView(view, "Ada", frozenset({fact.id}), (), 1, 1, text)
    turn = debater.argue(seen, in_silence, Stop())
    judgement = Judgement("Consensus", "hallucinated", "Wrong.")
    heard = JudgeView(view, Context((), (fact.id,), ""), (turn,), False)
    assert BuiltInContextWriter(word_assessor()).revise(heard, judgement, Stop()) == text.replace(
        "530", "412"
    )


def said(debater: str, stance: str, *quotes: Quote) -> Turn:
    return Turn(debater, debater, 1, 1, "agree", stance, "So.", quotes)  # type: ignore[arg-type]


def test_the_summary_tell_what_was_quoted_by_whom_and_for_what() -> None:
    forged = Quote("It is 530 metres long.", "not_found")
    told = round_summary(
        [said("Ada", "hallucinated", QUOTE), said("Ben", "supported", QUOTE, forged)], ""
    )
    assert told == (
        "“It is 412 metres long.” (report.pdf): quoted by Ada for “wrong”; Ben for “correct”."
    )


def test_the_summary_go_on_from_those_before_and_tell_nothing_twice() -> None:
    first = round_summary([said("Ada", "hallucinated", QUOTE)], "")
    again = round_summary([said("Ben", "hallucinated", QUOTE)], first)
    assert again == f"{first}\nNothing new was quoted from the sources."
    assert round_summary([said("Ben", "hallucinated", QUOTE)], again) == again


@given(st.lists(st.integers(0, 30), max_size=30))
def test_the_summary_keep_within_their_limit(numbers: list[int]) -> None:
    turns = [said("Ada", "supported", Quote(f"fact {n} " * 9, "verified")) for n in numbers]
    assert len(round_summary(turns, "").split()) <= MOST_WORDS
