"""What agents say for machines is drawn in plain words; what is stored stays as it was said."""

from __future__ import annotations

import pytest

from components.run.verdict import verdict_html
from components.widgets.html import rationale_lines, rationale_words, spoken
from core.schema.progress import Progress
from core.schema.records import Reply, Turn, Verdict
from tests.components.speaking import debate_html, under_way


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
def test_the_reply_is_taken_off_the_text(said: str, reply: Reply | None, words: str) -> None:
    assert spoken(said) == (reply, words)


@pytest.mark.parametrize("said", ["D", "DE", "AGREE", "AGR", "DENY.", " DENY. "])
def test_while_the_reply_is_being_said_nothing_of_it_is_drawn(said: str) -> None:
    assert spoken(said, under_way=True)[1] == ""


def test_other_beginnings_are_drawn_at_once() -> None:
    assert spoken("De", under_way=True) == (None, "De")
    assert spoken("A cat", under_way=True) == (None, "A cat")


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
    assert rationale_words(text) == words


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
    made = verdict_html(Progress(verdict=Verdict("hallucinated", 0.9, 0.9, text)), None)
    assert "INCORRECT" not in made
    assert "A clear contradiction." in made


def test_each_wrong_statement_of_an_audit_stands_on_its_own_line() -> None:
    text = (
        "2 of 9 statements are wrong. “It opened on a “Sunday”.”: The calendar gives “Monday”. "
        "“全桥长512米。”: The evidence says “412米”. "
        "1 statement says nothing that could be checked."
    )
    lines = rationale_lines(text)
    assert " ".join(lines) == text
    assert lines[0].startswith("2 of 9")
    assert lines[-2] == "“全桥长512米。”: The evidence says “412米”."
    assert lines[-1].startswith("1 statement says nothing")
    assert rationale_lines("The evidence says “412 m”. It is wrong.") == [
        "The evidence says “412 m”. It is wrong."
    ]
