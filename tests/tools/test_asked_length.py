"""Which length a question asks of its answer."""

from __future__ import annotations

import pytest

from core.tools.asked_length import asked_lengths
from core.tools.lengths import Length


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
        ("Explain it in a sentence or two.", Length("sentence", 1, 2)),
        ("Answer in one word or two.", Length("word", 1, 2)),
        ("Explain it in two or three sentences.", Length("sentence", 2, 3)),
        ("Don't write more than 50 words about tea", Length("word", None, 50)),
        ("Do not write less than 50 words about tea", Length("word", 50, None)),
        ("Never use more than three sentences.", Length("sentence", None, 3)),
        ("Your answer should not use over 100 words", Length("word", None, 100)),
        ("Your answer must not exceed 100 words", Length("word", None, 100)),
        ("Do not exceed 50 words when you describe tea", Length("word", None, 50)),
        ("Explain tides without exceeding 50 words", Length("word", None, 50)),
        ("Write two hundred and fifty words on tea.", Length("word", 250, 250)),
        ("Write one hundred and twenty words on bees", Length("word", 120, 120)),
        ("Explain tides in no more than two-hundred words.", Length("word", None, 200)),
        ("Write between one hundred and one hundred fifty words", Length("word", 100, 150)),
        ("Write a 50-70 word paragraph", Length("word", 50, 70)),
        ("Write between 100 and 50 words", Length("word", 50, 100)),
        ("Explain in 100 words why people write 500 words a day", Length("word", 100, 100)),
        ("Explain why the sky is blue in 50 words.", Length("word", 50, 50)),
        ("How would you describe love in one word?", Length("word", 1, 1)),
        ("Please tell me in 50 words how bees fly", Length("word", 50, 50)),
        ("Summarise this 500-word article in two sentences.", Length("sentence", 2, 2)),
        ("Summarise the plot, no more than 80 words.", Length("word", None, 80)),
        ("Limit your answer to 30 words and tell me of tea.", Length("word", None, 30)),
        ("Explain tides and keep it under 50 words", Length("word", None, 49)),
        ("用一两句话说明原因", Length("sentence", 1, 2)),
        ("请用三四句话介绍", Length("sentence", 3, 4)),
        ("请写两三百字的感想", Length("character", 200, 300)),
        ("写五六十字的介绍", Length("character", 50, 60)),
        ("写七八百字的作文", Length("character", 700, 800)),
        ("介绍上海，不要超过50字", Length("character", None, 50)),
        ("用一百字左右解释为什么作文要写八百字", Length("character", 100, 100, "about")),
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
        "Explain why Hemingway wrote a story in six words.",
        "Tell me why titles should be under 60 characters",
        "Explain how to write a haiku in at most 17 words",
        "How do I write a novel of 500 words?",
        "Describe the story told in six words.",
        "Summarise a 500-word article.",
        "List words with at least 10 characters",
        "Create a password with at least 10 characters",
        "Give me three words that rhyme with cat",
        "Give me a list of 5 words that begin with A",
        "Write 50 words or 100 words on tea",
        "Write a 100-word essay and then a 50-word summary",
        "Write a poem of 50 words. Then write a summary of 20 words.",
        "Use at least 3 but no more than 2 sentences",
        "Do not write 50 words.",
        "解释为什么标题应少于60字",
        "写三五百字的介绍",
    ],
)
def test_what_is_no_request_is_none(question: str) -> None:
    assert asked_lengths(question) == ()


def test_two_conditions_are_both_read() -> None:
    found = asked_lengths("Write two sentences, using at most 25 words.")
    assert Length("word", None, 25) in found


@pytest.mark.parametrize(
    "question",
    [
        "Use at least 2 but no more than 3 sentences",
        "Use at least 2 sentences, and at most 3 sentences",
    ],
)
def test_two_bounds_are_both_read(question: str) -> None:
    found = asked_lengths(question)
    assert set(found) == {Length("sentence", 2, None), Length("sentence", None, 3)}


def test_a_long_text_in_the_question_sets_no_length() -> None:
    told = "He was told to write in 90 words. " * 3
    filler = "The river rose and fell with the rain of that year. " * 12
    question = f"Summarise this in 20 words.\n{filler}{told}{filler}"
    assert asked_lengths(question) == (Length("word", 20, 20),)
