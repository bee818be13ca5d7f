"""A question with its answer as one statement, as the entailment reader is given it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builtin.statement_text import statement_text


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("Is Lisbon the capital of Spain?", "No", "Lisbon is not the capital of Spain."),
        ("Is Lisbon the capital of Portugal?", "yes.", "Lisbon is the capital of Portugal."),
        ("Was the old bridge built in 1932?", "No.", "The old bridge was not built in 1932."),
        ("Did Ada Moon win the prize?", "No", "Ada Moon did not win the prize."),
        ("Does aspirin reduce fever?", "Yes", "Aspirin does reduce fever."),
        ("Are Rex and Dolly both dogs?", "no", "Rex and Dolly are not both dogs."),
        ("Is there a lighthouse on the island?", "No", "There is not a lighthouse on the island."),
        ("Can he swim?", "Yes", "He can swim."),
        (
            "Are wide planning and guided repair for head injuries really viable?",
            "Yes",
            "Wide planning and guided repair for head injuries are really viable.",
        ),
        ("Can the old press be used today?", "No", "The old press can not be used today."),
        ("Is active rest for backs effective?", "No", "Active rest for backs is not effective."),
        ("Is the sky blue?", "Yes", "The sky is blue."),
        ("Was Ada Moon a painter or a poet?", "A poet", "Ada Moon was a poet."),
    ],
)
def test_a_yes_or_a_no_is_said_in_the_question_s_words(
    question: str, answer: str, statement: str
) -> None:
    assert statement_text(question, answer) == statement


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("Who wrote The Grey Harbour?", "Ada Moon", "Ada Moon wrote The Grey Harbour."),
        ("Who was the first mayor of Elm?", "Ada Moon", "Ada Moon was the first mayor of Elm."),
        ("What is the capital of France?", "Paris.", "Paris is the capital of France."),
        ("What is Ada Moon known for?", "her novels", "Ada Moon is known for her novels."),
        ("Which film came first, Dust or Rain?", "Rain", "Rain came first."),
        ("Which film was made first Dust or Rain?", "Dust", "Dust was made first."),
        ("Which film was made first Dust or Rain?", "Rain", "Rain was made first."),
        ("When was Ada Moon born?", "1932", "Ada Moon was born in 1932."),
        ("In what year was the bridge opened?", "1932", "The bridge was opened in 1932."),
        ("What year did the war end?", "In 1945", "The war did end in 1945."),
        ("Where is the Blue Tower?", "Elm", "The Blue Tower is in Elm."),
        ("Where did Ada Moon live?", "in Elm", "Ada Moon did live in Elm."),
        ("Who did Ada Moon marry in 1950?", "Bob Sun", "Ada Moon did marry Bob Sun in 1950."),
        ("What does CP stand for in sport?", "Club", "CP does stand for Club in sport."),
        ("What film did Ada Moon direct?", "1984", "Ada Moon did direct 1984."),
        ("How many bridges did Ada Moon build?", "six", "Ada Moon did build six bridges."),
        ("How many people live in Elm?", "4,000", "4,000 people live in Elm."),
        ("Who has the most followers?", "Elm's own page", "Elm's own page has the most followers."),
        ("Who made the song?", "a band led by Ada", "A band led by Ada made the song."),
        ("How tall is the Blue Tower?", "93 m", "The Blue Tower is 93 m tall."),
        (
            "The Blue Tower was designed by which English architect?",
            "Ada Moon",
            "The Blue Tower was designed by Ada Moon.",
        ),
    ],
)
def test_a_short_answer_takes_the_place_of_what_was_asked_for(
    question: str, answer: str, statement: str
) -> None:
    assert statement_text(question, answer) == statement


@pytest.mark.parametrize(
    "answer",
    [
        "The bridge was opened by the mayor in 1932.",
        "Ada Moon wrote seven novels, and she also painted portraits of her neighbours",
        "No, the bridge is still closed.",
    ],
)
def test_a_sentence_stays_as_it_is(answer: str) -> None:
    assert statement_text("Was the bridge opened?", answer) == answer
    assert statement_text("", answer) == answer


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("Wie hoch ist der Turm?", "93 Meter", "Wie hoch ist der Turm? 93 Meter"),
        ("法国的首都是哪里？", "巴黎", "法国的首都是哪里? 巴黎"),
        ("Why did the bridge fall?", "rust", "Why did the bridge fall? rust"),
        ("Why did the bridge fall?", "It rusted away", "Why did the bridge fall? It rusted away"),
    ],
)
def test_where_no_rewriting_is_safe_question_and_answer_are_joined(
    question: str, answer: str, statement: str
) -> None:
    assert statement_text(question, answer) == statement


def test_without_an_answer_the_question_is_all_there_is() -> None:
    assert statement_text("Who?", "  ") == "Who"


ENGLISH = st.lists(
    st.sampled_from(
        "Who What Which When Where How many tall In is are was did does can Is Did Are the a of "
        "or and both Paris Rome Ada film year born built made by to in first, it there win".split()
    ),
    max_size=12,
).map(" ".join)
ANSWERS = st.one_of(
    st.text(max_size=40), st.sampled_from(["Paris", "in 1932.", "six", "U.S.", "No", "yes, he did"])
)


@given(question=st.one_of(ENGLISH, st.text(max_size=60)), answer=ANSWERS)
def test_it_is_never_empty_and_holds_the_answer_s_words(question: str, answer: str) -> None:
    statement = statement_text(question, answer)
    assert statement == statement_text(question, answer)
    assert bool(statement) == bool(question.strip().rstrip("?？ ") or answer.strip())
    if statement_text("Is it true?", answer) in ("It is true.", "It is not true."):
        return  # a bare yes or no, which may be said in the question's words alone
    assert words_of(answer) <= words_of(statement)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Was it not opened in 1932?", "No"),
        ("Does the drug not reduce fever?", "Yes"),
        ("Did Ada Moon never win the prize?", "No"),
    ],
)
def test_a_question_that_denies_stands_beside_its_answer(question: str, answer: str) -> None:
    assert statement_text(question, answer) == f"{question} {answer}"
