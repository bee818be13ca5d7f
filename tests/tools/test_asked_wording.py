"""Words and languages that a question asks of its answer, and whether the answer keeps to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.asked_language import asked_language, check_language
from core.tools.asked_wording import asked_wordings
from core.tools.wording import Wording, check_wording


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "Write about energy and include the word 'solar' at least twice.",
            Wording("has", ("solar",), 2),
        ),
        ('Use the word "oak" exactly three times.', Wording("has", ("oak",), 3, 3)),
        ("Describe Japan. Mention Mount Fuji.", Wording("has", ("Mount Fuji",))),
        ("Your text must contain the phrase “on the shore”.", Wording("has", ("on the shore",))),
        ('Include "tide" or "wave".', Wording("has", ("tide", "wave"))),
        ("Describe the sea. Do not use the word 'blue'.", Wording("lacks", ("blue",))),
        (
            "Describe the sea without using the words “blue” and “water.”",
            Wording("lacks", ("blue", "water")),
        ),
        ("Avoid the word 'very'.", Wording("lacks", ("very",))),
        ("Tell it without using the letter 'e'.", Wording("lacks", ("e",), is_letter=True)),
        ("Start your answer with 'Once upon a time'.", Wording("starts", ("Once upon a time",))),
        ('End the story with the words "The End".', Wording("ends", ("The End",))),
        ("Explain tides and end with a question.", Wording("asks")),
        ("写一段关于春天的话，要提到“樱花”。", Wording("has", ("樱花",))),
        ("介绍大海，使用“蓝色”至少两次。", Wording("has", ("蓝色",), 2)),
        ("描写大海，不要使用“蓝色”。", Wording("lacks", ("蓝色",))),
        ("写一个故事，以“从前”开头。", Wording("starts", ("从前",))),
        ("谈谈环保，以问句结尾。", Wording("asks")),
        ("Beschreibe das Meer, ohne das Wort „blau“ zu benutzen.", Wording("lacks", ("blau",))),
        ("Schreibe über Energie. Verwende das Wort „Sonne“.", Wording("has", ("Sonne",))),
        ("Verwenden Sie das Wort „blau“ nicht.", Wording("lacks", ("blau",))),
        ("Décris la mer sans utiliser le mot « bleu ».", Wording("lacks", ("bleu",))),
        ("Parle d'énergie et utilise le mot « soleil ».", Wording("has", ("soleil",))),
        ("Describe el mar sin usar la palabra «azul».", Wording("lacks", ("azul",))),
        ("Escribe sobre energía y usa la palabra «sol».", Wording("has", ("sol",))),
    ],
)
def test_words_that_are_asked_for(question: str, expected: Wording) -> None:
    assert asked_wordings(question) == (expected,)


def test_each_of_several_words_is_asked_for() -> None:
    found = asked_wordings("Include the words 'tide', 'moon' and 'shore'.")
    assert found == tuple(Wording("has", (word,)) for word in ("tide", "moon", "shore"))


@pytest.mark.parametrize(
    "question",
    [
        "Does the text mention 'Paris'?",
        "Who used the word 'sea' first?",
        "What does the word 'tide' mean?",
        "Why do people avoid the word 'very'?",
        "How many times does it use 'oak'?",
        "Write code that contains the string 'oak'.",
        "Translate 'I do not use water' into German.",
        "Mention what you like.",
        "In the story the king starts with 'Hail'?",
        "Include the word 'oak' but do not use the word 'oak'.",
        "为什么不要说“老”？",
        "“樱花”是什么意思？",
        "Warum sagt man „Moin“?",
        "",
    ],
)
def test_words_that_are_only_told_of(question: str) -> None:
    assert asked_wordings(question) == ()


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        (Wording("has", ("solar",), 2), "Solar power. More solar.", "Solar power."),
        (Wording("has", ("solar",)), "Solarpunk is a style.", "The sun is a star."),
        (Wording("has", ("oak",), 2, 2), "Oak, oak.", "Oak, oak, oak."),
        (Wording("has", ("oak",), 0, 1), "An oak.", "An oak and an oak."),
        (Wording("has", ("a", "b")), "A tree.", "The elm."),
        (Wording("lacks", ("blue",)), "A bluebell.", "A blue bell."),
        (Wording("lacks", ("e",), is_letter=True), "A full moon.", "The moon."),
        (Wording("lacks", ("蓝色",)), "大海很深。", "大海是蓝色的。"),
        (Wording("starts", ("Once upon a time",)), "“Once upon a time, …", "Long ago."),
        (Wording("ends", ("The End",)), "They slept. **The End.**", "The end came. They slept."),
        (
            Wording(
                "asks",
            ),
            "It rises. Why is that?",
            "Why? It rises.",
        ),
        (
            Wording(
                "asks",
            ),
            "为什么呢？”",
            "因为月亮。",
        ),
    ],
)
def test_words_are_there_or_not(asked: Wording, right: str, wrong: str) -> None:
    good, bad = check_wording(right, asked), check_wording(wrong, asked)
    assert (good.holds, bad.holds) == (True, False)


def test_a_word_that_must_not_be_there_is_pointed_at() -> None:
    found = check_wording("A blue bell.", Wording("lacks", ("blue",)))
    assert (found.start, found.end) == (2, 6)
    assert found.words == "No “blue” was asked for but the answer has it."


LONG_FRENCH = "La mer monte et descend deux fois par jour parce que la lune attire l'eau."
LONG_ENGLISH = "The sea rises and falls twice a day because the moon pulls at the water."


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("What are tides? Answer in French.", "fr"),
        ("Please respond only in German.", "de"),
        ("Your answer should be written in Spanish.", "es"),
        ("Write a short poem in Italian about the sea.", "it"),
        ("In French, describe the sea.", "fr"),
        ("Describe the sea. In French.", "fr"),
        ("Translate 'the sea is deep' into Chinese.", "zh"),
        ("用英文回答：什么是潮汐？", "en"),
        ("请用法语介绍大海。", "fr"),
        ("把下面的句子翻译成德语：大海很深。", "de"),
        ("Was sind Gezeiten? Antworte auf Englisch.", "en"),
        ("Übersetze den Satz ins Französische.", "fr"),
        ("Réponds en anglais : que sont les marées ?", "en"),
        ("Responda en inglés: ¿qué son las mareas?", "en"),
    ],
)
def test_a_language_that_is_asked_for(question: str, code: str) -> None:
    assert asked_language(question) == code


@pytest.mark.parametrize(
    "question",
    [
        "What is the word for sea in French?",
        "Name two schools in English towns.",
        "Who wrote the first novel in Spanish?",
        "How do you answer in French when someone says merci?",
        "Answer in English and French.",
        "“大海”用英语怎么说？",
        "Explain how articles work in German.",
        "",
    ],
)
def test_a_language_that_is_only_told_of(question: str) -> None:
    assert asked_language(question) == ""


def test_the_language_of_the_answer_is_held_against_it() -> None:
    assert check_language(LONG_FRENCH, "fr").holds
    broken = check_language(LONG_ENGLISH, "fr")
    assert broken.holds is False
    assert broken.words == "French was asked for but the answer is in English."
    assert check_language("Oui.", "en").holds is None
    assert check_language(f"{LONG_FRENCH}\n```\nprint('the sea')\n```", "fr").holds


@given(st.text(max_size=200))
def test_any_question_and_answer_can_be_read(text: str) -> None:
    for led in (text, f"Use the word '{text}'", f"不要使用“{text}”", f"Answer in {text}"):
        for asked in asked_wordings(led):
            assert check_wording(text, asked).holds is not None
        assert len(asked_language(led)) in (0, 2)
