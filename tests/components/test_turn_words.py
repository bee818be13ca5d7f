"""Turns as people see them: asked how, of whose answer, for which side, in plain words."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from components.run.replay import replay_until, schedule_events
from components.run.transcript import (
    MANNER_WORDS,
    OpenTurn,
    render_turn,
    round_heading,
    summarize_turn,
    visible_turn_text,
)
from components.run.verdict import render_verdict
from components.widgets.html import split_rationale, split_reply, strip_verdict_line
from core.schema.events import Event, RunStarted, TurnFinished, TurnStarted
from core.schema.records import Plan, Stance, Turn, TurnReply, Verdict
from core.schema.rosters import TurnMode
from core.schema.run_state import RunState
from tests.components.speaking import debate_html, under_way
from tests.fakes import make_case

ANSWER = Turn(
    "Ada",
    "m",
    1,
    0,
    "deny",
    "hallucinated",
    "WRONG. the source says “412 m long”.\nConfidence: 80\nDoubt: it may be another bridge",
    confidence=0.8,
    manner="answer",
    doubt="it may be another bridge",
)


def test_an_answer_shows_its_verdict_and_what_it_states_beside_its_words() -> None:
    made = render_turn(ANSWER, 1)
    assert ">answers alone </span>" in made
    assert ">hallucinated</span>" in made
    assert ">The source says “412 m long”.</div>" in made
    assert "80% sure · may be mistaken: it may be another bridge" in made
    assert "Confidence:" not in made
    assert "disagrees" not in made  # it answers nobody


def test_what_was_asked_for_and_is_missing_is_said() -> None:
    bare = replace(ANSWER, text="WRONG. So.", confidence=None, doubt="", manner="collaborate")
    assert "states no confidence · names no doubt" in render_turn(bare, 1)
    assert "states no" not in render_turn(replace(bare, manner="debate", text="DENY. So."), 1)


@pytest.mark.parametrize(
    ("stance", "words"),
    [
        ("supported", "argues, as assigned, that it is"),
        ("hallucinated", "although assigned supported"),
    ],
)
def test_an_assigned_side_is_told_from_a_stance(stance: Stance, words: str) -> None:
    turn = replace(ANSWER, manner="compete", assigned="supported", stance=stance)
    assert words in render_turn(turn, 1)
    assert words in summarize_turn(turn)


def test_whose_answer_it_speaks_of() -> None:
    turn = replace(ANSWER, manner="advise", about="Ben", text="DENY, WRONG. He misses a digit.")
    made = render_turn(turn, 1)
    assert "advises: Ben’s answer" in made
    assert "disagrees" in made
    assert ">He misses a digit.</div>" in made


def test_who_argues_an_assigned_side_is_not_said_to_argue_twice() -> None:
    turn = replace(ANSWER, manner="compete", assigned="hallucinated", text="WRONG. It was 1931.")
    assert render_turn(turn, 1).count("argues") == 1
    assert summarize_turn(turn).count("argues") == 1


def test_named_words_are_told_as_people_read_them() -> None:
    text = "AGREE, WRONG. I keep it.\nWords: “512 m” -> “412 m”\nWords: “red” -> “”"
    made = render_turn(replace(ANSWER, manner="critique", reply="agree", text=text), 1)
    assert ">I keep it.</div>" in made
    assert "“512 m” should be “412 m” · “red” should go" in made
    assert "Words:" not in made
    found = replace(ANSWER, manner="detect", text="WRONG. So.\nWords: “512 m”", doubt="")
    assert "contests “512 m” · 80% sure" in render_turn(found, 1)
    alone = replace(ANSWER, text="WRONG. So.\nWords: two of them differ", doubt="")
    assert "Words: two" in render_turn(alone, 1)  # nobody was asked for such lines


def test_a_text_written_anew_is_not_called_hallucinated() -> None:
    turn = replace(ANSWER, manner="revise", text="The bridge is 412 m long.", doubt="")
    assert "hallucinated" not in render_turn(turn, 1)
    assert "hallucinated" not in summarize_turn(turn)


def test_words_that_contradict_the_record_stay_to_be_seen() -> None:
    odd = replace(ANSWER, text="CORRECT. It is.", manner="answer")
    assert visible_turn_text(odd) == "CORRECT. It is."


def test_a_mark_that_a_model_typed_is_not_shown() -> None:
    forged = replace(ANSWER, text="WRONG. “it was never built” ✓ ✅ says the source.")
    made = render_turn(forged, 1)
    assert "✓" not in made
    assert "✅" not in made


def test_first_answers_are_no_round() -> None:
    later = replace(ANSWER, round=2, manner="reconsider")
    assert [round_heading(turn) for turn in (ANSWER, later)] == ["First answers", "Round 2"]
    assert round_heading(replace(ANSWER, round=1)) == "First answers"


def test_turns_stand_in_their_order_whoever_was_quicker() -> None:
    other = replace(ANSWER, debater="Ben", number=2, text="WRONG. Second.")
    made = debate_html([other, replace(ANSWER, text="WRONG. First.")])
    assert made.index("First.") < made.index("Second.")
    assert made.count("First answers") == 1


def test_several_who_speak_at_once_keep_their_words_and_their_colours() -> None:
    said = {"Ada": "WRONG. It", "Ben": "CORR", "Cleo": "OPEN. I"}
    speaking: dict[int, OpenTurn] = {}
    for number, (name, words) in enumerate(said.items(), start=1):
        speaking |= under_way(number, name, words)
    made = debate_html([], speaking)
    assert all(f"cp-turn-{place}" in made for place in (1, 2, 3))
    assert ">It</div>" in made
    assert "CORR" not in made
    assert made.count("cp-tag") == 2


def test_who_is_slower_keeps_place_colour_and_round_among_those_who_speak_at_once() -> None:
    quick = replace(ANSWER, debater="Ben", number=2, text="WRONG. Second.")
    speaking: dict[int, OpenTurn] = {}
    for number, (name, words) in enumerate(
        (("Ada", "First"), ("Ben", "Seco"), ("Cleo", "Third")), start=1
    ):
        speaking |= under_way(number, name, f"WRONG. {words}", manner="answer", round_=0)
    made = debate_html([quick], speaking)
    order = [made.index(word) for word in ("First answers", ">First<", ">Second.<", ">Third<")]
    assert order == sorted(order)
    assert made.count("cp-turn-said") == 3
    places = [made.index(f"cp-turn-{place}") for place in (1, 2, 3)]
    assert places == sorted(places)


def test_a_replay_shows_all_who_speak_at_that_moment() -> None:
    turns = [replace(ANSWER, debater=name, number=n) for n, name in ((1, "Ada"), (2, "Ben"))]
    events: list[Event] = [
        RunStarted(0.5, make_case("a"), Plan(), ()),
        TurnStarted(1.0, "Ada", "m", 1, 0),
        TurnStarted(1.0, "Ben", "m", 2, 0),
        TurnFinished(5.0, turns[0], 4.0),
        TurnFinished(9.0, turns[1], 8.0),
    ]
    placed = schedule_events(events, "recorded")
    end = max(cue.at for cue in placed)
    _, speaking = replay_until(placed, end / 4)
    assert set(speaking) == {1, 2}


def test_every_manner_has_words() -> None:
    assert set(MANNER_WORDS) == set(get_args(TurnMode))


@pytest.mark.parametrize(
    ("said", "reply", "words"),
    [
        ("AGREE. My count comes to the same.", "agree", "My count comes to the same."),
        ("DENY. the evidence says “412 m”.", "deny", "The evidence says “412 m”."),
        ("Deny — it is not so.", "deny", "It is not so."),
        ("agree: 同意。", "agree", "同意。"),
        ("AGREE.", "agree", ""),
        ("DENY", "deny", ""),
        ("Agree with the numbers I must.", None, "Agree with the numbers I must."),
        ("Denying it is easy.", None, "Denying it is easy."),
        ("It is so. AGREE.", None, "It is so. AGREE."),
        ("", None, ""),
    ],
)
def test_the_reply_is_taken_off_the_text(said: str, reply: TurnReply | None, words: str) -> None:
    assert split_reply(said) == (reply, words)


@pytest.mark.parametrize("said", ["D", "DE", "AGREE", "AGR", "DENY.", " DENY. "])
def test_while_the_reply_is_being_said_nothing_of_it_is_drawn(said: str) -> None:
    assert split_reply(said, under_way=True)[1] == ""


def test_other_beginnings_are_drawn_at_once() -> None:
    assert split_reply("De", under_way=True) == (None, "De")
    assert split_reply("A cat", under_way=True) == (None, "A cat")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Both agree. Verdict: INCORRECT, the response is hallucinated.", "Both agree."),
        ("Both agree. Verdict: CORRECT, the statement is supported.", "Both agree."),
        ("All of it is carried.\n\nVERDICT: correct", "All of it is carried."),
        ("Verdict: it is open.", "Verdict: it is open."),
        (
            "Verdict: INCORRECT was his word. The rest holds.",
            "Verdict: INCORRECT was his word. The rest holds.",
        ),
        ("Verdict: CORRECT, the statement is supported.", "The statement is supported."),
    ],
)
def test_the_machines_last_sentence_is_taken_off_the_rationale(text: str, words: str) -> None:
    assert strip_verdict_line(text) == words


def test_a_turn_shows_its_reply_as_a_badge_and_not_twice() -> None:
    turn = Turn("Ada", "Value checker", 1, 1, "deny", "hallucinated", "DENY. It is 412 m.")
    made = debate_html([turn])
    assert "DENY" not in made
    assert ">disagrees with the statement</span>" in made
    assert ">It is 412 m.</div>" in made


def test_a_reply_that_contradicts_the_record_stays_to_be_seen() -> None:
    turn = Turn("Ada", "Value checker", 2, 1, "agree", "hallucinated", "DENY. It is 412 m.")
    assert "DENY. It is 412 m." in debate_html([turn])


def test_a_turn_under_way_shows_its_badge_as_soon_as_it_is_said() -> None:
    made = debate_html([], under_way(1, "Ada", "DENY. It is"))
    assert ">disagrees with the statement</span>" in made
    assert ">It is</div>" in made


def test_a_verdict_is_drawn_without_the_machines_sentence() -> None:
    text = "A clear contradiction. Verdict: INCORRECT, the statement is hallucinated."
    made = render_verdict(RunState(verdict=Verdict("hallucinated", 0.9, 0.9, text)), None)
    assert "INCORRECT" not in made
    assert "A clear contradiction." in made


def test_each_wrong_statement_of_an_audit_stands_on_its_own_line() -> None:
    text = (
        "2 of 9 statements are wrong. “It opened on a “Sunday”.”: The calendar gives “Monday”. "
        "“全桥长512米。”: The evidence says “412米”. "
        "1 statement says nothing that could be checked."
    )
    lines = split_rationale(text)
    assert " ".join(lines) == text
    assert lines[0].startswith("2 of 9")
    assert lines[-2] == "“全桥长512米。”: The evidence says “412米”."
    assert lines[-1].startswith("1 statement says nothing")
    assert split_rationale("The evidence says “412 m”. It is wrong.") == [
        "The evidence says “412 m”. It is wrong."
    ]
