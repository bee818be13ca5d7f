"""What a question asks of its answer's form, and whether the answer keeps to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.constraints import (
    FORMATS,
    Format,
    FormatName,
    Wording,
    asked_formats,
    asked_language,
    asked_wordings,
    check_format,
    check_language,
    check_length,
    check_wording,
    count,
)
from core.tools.lengths import Length, asked_lengths
from tests.tools.corpus import rows

FLOORS = {"length": 0.96, "format": 0.97, "wording": 0.97, "language": 0.95}


def asked(kind: str, question: str) -> str:
    """As the corpus writes what is asked for."""
    if kind == "length":
        return "; ".join(sorted(one.words for one in asked_lengths(question)))
    if kind == "format":
        return "; ".join(f"{one.name} {one.items or ''}".strip() for one in asked_formats(question))
    if kind == "language":
        return asked_language(question)
    return "; ".join(
        f"{one.kind} {'|'.join(one.words)} {one.least}..{one.most or ''}"
        f"{' letter' if one.is_letter else ''}"
        for one in asked_wordings(question)
    )


@pytest.mark.parametrize("kind", FLOORS)
def test_constraints_of_the_corpus(kind: str) -> None:
    corpus = [row for row in rows("constraints") if row["kind"] == kind]
    missed = [row for row in corpus if asked(kind, row["question"]) != row["asked"]]
    assert 1 - len(missed) / len(corpus) >= FLOORS[kind], missed


def test_each_of_several_words_is_asked_for() -> None:
    found = asked_wordings("Include the words 'tide', 'moon' and 'shore'.")
    assert found == tuple(Wording("has", (word,)) for word in ("tide", "moon", "shore"))


def test_a_long_text_in_the_question_sets_no_length() -> None:
    told = "He was told to write in 90 words. " * 3
    filler = "The river rose and fell with the rain of that year. " * 12
    question = f"Summarise this in 20 words.\n{filler}{told}{filler}"
    assert asked_lengths(question) == (Length("word", 20, 20),)


@given(st.text(max_size=200))
def test_any_question_can_be_read(text: str) -> None:
    for led in (text, f"Schreibe {text} Wörter", f"en 100 {text} mots", f"Escribe 5 {text}"):
        assert all(length.least or length.most for length in asked_lengths(led))


HUNDRED = Length("word", 100, 100)


def words(number: int) -> str:
    return " ".join(["oak"] * number) + "."


@pytest.mark.parametrize(
    ("number", "holds"), [(100, True), (107, True), (93, True), (108, False), (92, False)]
)
def test_a_figure_allows_seven_and_a_half_per_cent(number: int, holds: bool) -> None:
    check = check_length(words(number), HUNDRED)
    assert check.holds is holds
    assert check.found == f"{number} words"


def test_about_reaches_further_than_a_bare_figure() -> None:
    about = check_length(words(85), Length("word", 100, 100, is_about=True))
    exact = check_length(words(85), HUNDRED)
    assert (about.holds, exact.holds) == (True, False)


@pytest.mark.parametrize(("number", "holds"), [(49, False), (50, True), (70, True), (71, False)])
def test_bounds_allow_nothing(number: int, holds: bool) -> None:
    check = check_length(words(number), Length("word", 50, 70))
    assert check.holds is holds


def test_nobody_is_called_wrong_over_a_way_of_counting() -> None:
    text = "A well-known, hand-made boat."
    assert count(text, "word") is not None
    for wanted in (Length("word", None, 4), Length("word", 6, None)):
        check = check_length(text, wanted)
        assert check.holds


def test_few_sentences_are_counted_exactly() -> None:
    text = "The sea rises. The moon pulls it. It falls again."
    three, two = (check_length(text, Length("sentence", n, n)) for n in (3, 2))
    assert (three.holds, two.holds) == (True, False)
    assert two.words == "2 sentences were asked for but the answer has 3."


def test_chinese_counts_characters_with_their_marks_and_without_blanks() -> None:
    found = count("海水 上涨，又落下。", "character", "zh")
    assert found is not None
    assert (found.main, found.least) == (9, 7)


def test_two_characters_are_two_with_a_full_stop() -> None:
    check = check_length("幸福。", Length("character", 2, 2), "zh")
    assert check.holds


def test_latin_characters_may_be_counted_with_their_blanks() -> None:
    text = " ".join(["abcd"] * 20)
    with_blanks, without = (check_length(text, Length("character", n, n)) for n in (99, 80))
    assert with_blanks.holds
    assert without.holds


def test_words_of_a_script_without_blanks_cannot_be_counted() -> None:
    assert check_length("แม่น้ำไหลลงทะเล", Length("word", 3, 3), "th").holds is None


def test_paragraphs_are_parted_by_empty_lines() -> None:
    check = check_length("One.\n\nTwo.\n\nThree.", Length("paragraph", 3, 3))
    assert check.holds


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Length("word", 1, 1), "1 word"),
        (Length("word", None, 1200), "at most 1,200 words"),
        (Length("sentence", 1, None), "at least 1 sentence"),
        (Length("character", 50, 80), "50 to 80 characters"),
        (Length("character", 200, 200, is_about=True), "about 200 characters"),
    ],
)
def test_a_length_is_said_in_words(wanted: Length, said: str) -> None:
    assert wanted.words == said


@given(st.text(max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    for unit in ("word", "character", "sentence", "paragraph"):
        found = count(text, unit)
        assert found is None or 0 <= found.least <= found.main <= max(found.most, found.main)


TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.mark.parametrize(
    ("name", "items", "right", "wrong"),
    [
        ("json", None, '{"a": [1, 2]}', "a: 1"),
        ("json", None, 'Here it is:\n```json\n{"a": 1}\n```', '{"a": 1,}'),
        ("json", None, "[]", "12"),
        ("table", None, TABLE, "a is 1 and b is 2."),
        ("csv", None, "name,size\noak,12\nelm,9", "name,size\noak"),
        ("bullets", None, "- one\n- two", "One and two."),
        ("bullets", 3, "- one\n- two\n  - so\n- three", "- one\n- two"),
        ("bullets", 2, "* one\n* two", "1. one\n2. two"),
        ("numbers", 2, "1. one\n2. two", "1. one\n2. two\n3. three"),
        ("upper", None, "THE SEA IS 4 KM DEEP.", "THE SEA IS 4 km DEEP."),
        ("lower", None, "the sea.", "The sea."),
        ("title", None, "Of tides\n\nThe moon pulls the sea.", "The moon pulls the sea."),
        ("title", None, "# Tides.\nThe moon.", "The moon pulls.\n\nThe sea rises."),
        ("no_commas", None, "It rises and falls.", "It rises, and falls."),
        ("no_commas", None, "海水上涨。", "海水上涨，又落下。"),
    ],
)
def test_a_format_is_kept_or_not(
    name: FormatName, items: int | None, right: str, wrong: str
) -> None:
    good, bad = (check_format(text, Format(name, items)) for text in (right, wrong))
    assert (good.holds, bad.holds) == (True, False)
    assert good.p < 0.5 < bad.p


def test_the_place_that_breaks_it_is_told() -> None:
    comma = check_format("It rises, and falls.", Format("no_commas"))
    assert (comma.start, comma.end) == (8, 9)
    assert comma.words == "No comma was asked for but the answer has one."
    assert check_format("ABc", Format("upper")).start == 2
    three = check_format("- a", Format("bullets", 3)).words
    assert three == "A bulleted list of 3 entries was asked for but the answer has 1."


@given(st.text(max_size=200), st.sampled_from(sorted(FORMATS)))
def test_any_text_can_be_looked_at(text: str, name: FormatName) -> None:
    found = check_format(text, Format(name, 2))
    assert found.holds is not None
    assert all(one.name in FORMATS for one in asked_formats(f"In JSON, {text} as a table"))


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
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
def test_words_are_there_or_not(wanted: Wording, right: str, wrong: str) -> None:
    good, bad = check_wording(right, wanted), check_wording(wrong, wanted)
    assert (good.holds, bad.holds) == (True, False)


def test_a_word_that_must_not_be_there_is_pointed_at() -> None:
    found = check_wording("A blue bell.", Wording("lacks", ("blue",)))
    assert (found.start, found.end) == (2, 6)
    assert found.words == "No “blue” was asked for but the answer has it."


LONG_FRENCH = "La mer monte et descend deux fois par jour parce que la lune attire l'eau."
LONG_ENGLISH = "The sea rises and falls twice a day because the moon pulls at the water."


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
        for wanted in asked_wordings(led):
            assert check_wording(text, wanted).holds is not None
        assert len(asked_language(led)) in (0, 2)
