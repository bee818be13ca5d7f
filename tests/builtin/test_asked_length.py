"""Which length a question asks of its answer."""

from __future__ import annotations

import pytest

from core.builtin.asked_length import asked_lengths
from core.tools.conditions import Length


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Describe the harbour in 100 words.", Length("word", 100, 100)),
        ("In exactly fifty words, explain tides.", Length("word", 50, 50)),
        ("Explain tides in at least three sentences.", Length("sentence", 3, None)),
        ("Summarise the plan in no more than 1,200 characters", Length("character", None, 1200)),
        ("Write a 200-word review of the museum.", Length("word", 200, 200)),
        ("Write a review of about 80 words.", Length("word", 80, 80, "about")),
        ("Answer in 40 words or less.", Length("word", None, 40)),
        ("Write between 50 and 70 words on bees.", Length("word", 50, 70)),
        ("Give 50-70 words on bees.", Length("word", 50, 70)),
        ("Your answer must be under 30 words.", Length("word", None, 29)),
        ("Summarise it in a single sentence.", Length("sentence", 1, 1)),
        ("Describe the harbour in one sentence.", Length("sentence", 1, 1)),
        ("In twelve words: what is rust?", Length("word", 12, 12)),
        ("What is rust? In 12 words.", Length("word", 12, 12)),
        ("Write me 100 words on tea", Length("word", 100, 100)),
        ("Summarise in two sentences: he told it in 30 words.", Length("sentence", 2, 2)),
        ("限50字，介绍上海", Length("character", 50, 50)),
        ("What is rust? Max 20 words.", Length("word", None, 20)),
        ("请用200字描述一家书店。", Length("character", 200, 200)),
        ("请写一篇不少于一百字的短文。", Length("character", 100, None)),
        ("用50个字介绍杭州", Length("character", 50, 50)),
        ("写一段500字左右的介绍", Length("character", 500, 500, "about")),
        ("请在30字以内概括主旨。", Length("character", None, 30)),
        ("用三句话说明原因。", Length("sentence", 3, 3)),
        ("请写100到150字的感想。", Length("character", 100, 150)),
        ("字数控制在80字以内", Length("character", None, 80)),
    ],
)
def test_lengths_are_read(question: str, expected: Length) -> None:
    assert asked_lengths(question) == (expected,)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Who wrote the 500-word article?",
        "How many words are in a 10-page essay of at least 200 words?",
        "The motto has at least five words and was carved in 1820.",
        "Which town of the U.K. with only one word in its name is the oldest?",
        "Which bird sings in two notes?",
        "In other words, why is the sky blue?",
        "Explain in your own words.",
        "这篇500字的文章讲了什么？",
        "一共有多少个字？请写出。",
        "写出一个四字成语",
        "他在2008年写了三本书。",
    ],
)
def test_what_is_no_request_is_none(question: str) -> None:
    assert asked_lengths(question) == ()


def test_two_conditions_are_both_read() -> None:
    found = asked_lengths("Write two sentences, using at most 25 words.")
    assert Length("word", None, 25) in found


def test_a_long_text_in_the_question_sets_no_length() -> None:
    told = "He was told to write in 90 words. " * 3
    filler = "The river rose and fell with the rain of that year. " * 12
    question = f"Summarise this in 20 words.\n{filler}{told}{filler}"
    assert asked_lengths(question) == (Length("word", 20, 20),)
