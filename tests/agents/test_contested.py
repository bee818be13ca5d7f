"""What a debater behind a model says of places: words that do not hold, and the text mended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.llm_debater import LlmDebater
from core.agents.llm_judge import format_places, parse_contested, parse_text_block
from core.llm.call import ignore_piece
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError
from core.schema.records import Case, DebatePoint, Stance, Statement, Turn
from core.schema.roles import DebateView
from core.schema.rosters import EXTRA_LINES_TOKENS, TurnMode
from tests.agents.seats import SEAT, Workplace, debate_view, workplace
from tests.fakes import Said, make_case, make_passage, make_view

RESPONSE = "The bridge opened in 1926. It is 412 m long, and 1926 cars crossed it."
CASE = make_case(RESPONSE)
STATEMENTS = (
    Statement(0, 0, 26, RESPONSE[:26], RESPONSE[:26]),
    Statement(1, 27, len(RESPONSE), RESPONSE[27:], RESPONSE[27:]),
)
VIEW = replace(
    make_view(CASE, [make_passage("The bridge was opened in 1931.", number=1)]),
    statements=STATEMENTS,
)


def points(text: str, case: Case = CASE) -> list[tuple[str, str]]:
    return [(p.text, p.evidence) for p in parse_contested(text, case, STATEMENTS, None).points]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Words: “1926” -> “1931”", [("1926", "1931")]),
        ('words: "1926" → "1931"', [("1926", "1931")]),
        ("- **Words:** 1926 => 1931", [("1926", "1931")]),
        ("Words: “412 m long”", [("412 m long", "")]),
        ("Words: “412 m long” -> “”", [("412 m long", "")]),
        ("Words: “412 m long” -> (leave out)", [("412 m long", "")]),
        ("词句：“1926” -> “1931”", [("1926", "1931")]),
        ("Words: “BRIDGE  opened”", [("bridge opened", "")]),
        ("Words: “1926” -> “1926”", []),
        ("Words: “the ferry” -> “the bridge”", []),
        ("The words: “1926” are wrong.", []),
        ("WRONG: “1926” is wrong.", []),
    ],
)
def test_places_are_lines_of_their_own(line: str, found: list[tuple[str, str]]) -> None:
    assert points(f"WRONG. It says otherwise.\n{line}\nConfidence: 80") == found


def test_equal_words_that_are_named_twice_are_two_places_in_order() -> None:
    found = parse_contested("Words: “1926”\nWords: “1926”", CASE, STATEMENTS, 0.8).points
    assert [(p.start, p.statement, p.weight) for p in found] == [(21, 0, 0.8), (49, 1, 0.8)]


def test_words_that_stand_nowhere_are_counted_not_placed() -> None:
    found = parse_contested("Words: “a ferry to Moss”", CASE, STATEMENTS, None)
    assert (found.points, found.nowhere) == ((), ("a ferry to Moss",))


ARROWS = make_case("The rule a -> b holds. He said “no -> yes”.")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Words: “a -> b” -> “a -> c”", [("a -> b", "a -> c")]),
        ("Words: “a -> b”", [("a -> b", "")]),
        ('Words: "a -> b" → "b"', [("a -> b", "b")]),
        ("Words: a => c", [("a", "c")]),
    ],
)
def test_an_arrow_within_quoted_words_parts_nothing(
    line: str, found: list[tuple[str, str]]
) -> None:
    assert points(f"WRONG. It says otherwise.\n{line}", ARROWS) == found


@pytest.mark.parametrize(
    "text",
    [
        "<<<TEXT\nOne.\nTEXT>>>\nTwo.\nTEXT>>>",
        "<<<TEXT\nOne.\n<<<TEXT\nTwo.\nTEXT>>>\nThree.\nTEXT>>>",
        "<<<TEXT\nOne TEXT>>> and two.\nTEXT>>>",
    ],
)
def test_half_of_a_text_that_holds_the_marks_itself_is_not_taken_for_the_whole(text: str) -> None:
    assert parse_text_block(text) is None


@given(st.text(max_size=60), st.text(max_size=30))
def test_every_place_reads_as_its_point_says(before: str, instead: str) -> None:
    case = make_case(f"{before} 塔高412米 🗼 {before}")
    found = parse_contested(
        f"Words: “塔高412米 🗼” -> “{instead}”\nWords: “{before}”", case, (), None
    )
    for point in found.points:
        assert case.response[point.start : point.end] == point.text
    assert found.points or found.nowhere


def test_lines_for_a_prompt_name_each_place_once() -> None:
    one = DebatePoint(0, "contradicted", 21, 25, "1926", "number_or_date", "1931", "", 0.9)
    carried = replace(one, finding="carried")
    assert format_places([one, one, replace(one, text="x", evidence=""), carried]) == (
        "“1926” -> “1931”\n“x”"
    )


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<<<TEXT\nIt opened in 1931.\nTEXT>>>", "It opened in 1931."),
        ("Here:\n<<< TEXT\na\n\nb\nTEXT >>>\nDone.", "a\n\nb"),
        ("<<<TEXT\nfirst\nTEXT>>>\n<<<TEXT\nsecond\nTEXT>>>", "second"),
        ("<<<TEXT\nIt opened", None),
        ("It opened in 1931.", None),
        ("<<<TEXT\n\nTEXT>>>", None),
    ],
)
def test_a_mended_text_stands_between_marks(reply: str, text: str | None) -> None:
    assert parse_text_block(reply) == text


def asked(manner: TurnMode, *turns: Turn) -> DebateView:
    return replace(debate_view(VIEW, turns), manner=manner)


def said(reply: str | Said, view: DebateView) -> tuple[Turn, Workplace]:
    place = workplace([reply])
    return LlmDebater(SEAT, place.work).argue(view, ignore_piece, StopSignal()), place


def test_who_detects_names_places_and_quotes_the_evidence_alone() -> None:
    reply = (
        "WRONG. The report says “was opened in 1931”.\n"
        "Words: “opened in 1926. It is”\nWords: “the old ferry quay”\nConfidence: 90"
    )
    turn, place = said(reply, asked("detect"))
    assert (turn.stance, turn.confidence) == ("hallucinated", 0.9)
    assert [p.text for p in turn.points] == ["opened in 1926. It is"]
    assert [q.text for q in turn.quotes] == ["was opened in 1931"], "its own words are no quote"
    assert place.work.notes.drain() == (
        "Ada contests “the old ferry quay”, which the response does not say.",
    )


def test_who_calls_it_correct_contests_nothing() -> None:
    turn, _ = said("CORRECT. It holds.\nWords: “1926”", asked("detect"))
    assert turn.points == ()


def test_who_criticises_is_shown_what_was_found_and_says_what_should_stand_there() -> None:
    point = DebatePoint(0, "contradicted", 21, 25, "1926", "number_or_date", "", "", 0.9)
    found = Turn("Ben", "m", 2, 1, "deny", "hallucinated", "WRONG. I doubt it.", points=(point,))
    reply = "AGREE, WRONG. It was later.\nWords: “1926” -> “1931”\nConfidence: 70"
    turn, place = said(reply, asked("critique", found))
    assert (turn.reply, turn.stance) == ("agree", "hallucinated")
    assert [(p.text, p.evidence, p.start) for p in turn.points] == [("1926", "1931", 21)]
    assert "WRONG. I doubt it." in place.prompt
    assert "\n“1926”\n" in place.prompt


def test_who_revises_gives_the_text_and_nothing_else() -> None:
    mended = RESPONSE.replace("in 1926", "in 1931")
    turn, place = said(f"Sure!\n<<<TEXT\n{mended}\nTEXT>>>", asked("revise"))
    assert (turn.text, turn.stance, turn.quotes) == (mended, "hallucinated", ())
    same, _ = said(f"<<<TEXT\n{RESPONSE}\nTEXT>>>", asked("revise"))
    assert same.stance == "unclear", "who gives a text back has not said that it is right"
    assert place.desk.asked[0].prompt == "en/revise"


@pytest.mark.parametrize("text", [RESPONSE, RESPONSE.replace("in 1926", "in 1931")])
@pytest.mark.parametrize("held", ["supported", "hallucinated", "unclear"])
def test_who_revises_keeps_the_stance_that_it_took(text: str, held: Stance) -> None:
    """All mend what most contest, also those who called it right; that changes nobody's mind."""
    view = asked("revise")
    before = Turn(view.debater, "tiny-talker", 1, 1, "agree", held, "So.")
    other = replace(before, debater="Somebody else", number=2, stance="hallucinated")
    turn, _ = said(f"<<<TEXT\n{text}\nTEXT>>>", replace(view, turns=(before, other)))
    assert (turn.text, turn.stance) == (text, held)
    assert turn.reply == ("agree" if held == "hallucinated" else "deny")


@pytest.mark.parametrize(
    "reply", ["It should say 1931.", Said("<<<TEXT\nThe bridge opened", finish="length")]
)
def test_a_revision_without_its_marks_is_a_lost_turn(reply: str | Said) -> None:
    with pytest.raises(ReplyError, match="<<<TEXT"):
        said(reply, asked("revise"))


def test_a_seats_tokens_are_enough_for_lines_of_their_own_and_for_the_whole_text() -> None:
    place = workplace(["CORRECT.", "AGREE.", "<<<TEXT\nx\nTEXT>>>"])
    short = LlmDebater(replace(SEAT, max_tokens=100), place.work)
    long = replace(VIEW, case=make_case("The bridge opened in 1926. " * 200))
    short.argue(asked("detect"), ignore_piece, StopSignal())
    short.argue(asked("debate"), ignore_piece, StopSignal())
    short.argue(replace(asked("revise"), case_view=long), ignore_piece, StopSignal())
    tokens = [call.agent.max_tokens for call in place.model.calls]
    assert tokens[:2] == [100 + EXTRA_LINES_TOKENS, 100]
    assert tokens[2] > 1000
