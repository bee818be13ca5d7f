"""Lengths of answers against the length asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.lengths import Length, check_length, count, length_words

HUNDRED = Length("word", 100, 100)


def words(number: int) -> str:
    return " ".join(["oak"] * number) + "."


@pytest.mark.parametrize(
    ("number", "holds"), [(100, True), (107, True), (93, True), (108, False), (92, False)]
)
def test_a_figure_allows_seven_and_a_half_per_cent(number: int, holds: bool) -> None:
    check = check_length(words(number), HUNDRED)
    assert check is not None
    assert check.holds is holds
    assert check.counted == number


def test_about_reaches_further_than_a_bare_figure() -> None:
    about = check_length(words(85), Length("word", 100, 100, "about"))
    exact = check_length(words(85), HUNDRED)
    assert about
    assert exact
    assert (about.holds, exact.holds) == (True, False)


@pytest.mark.parametrize(("number", "holds"), [(49, False), (50, True), (70, True), (71, False)])
def test_bounds_allow_nothing(number: int, holds: bool) -> None:
    check = check_length(words(number), Length("word", 50, 70))
    assert check
    assert check.holds is holds


def test_nobody_is_called_wrong_over_a_way_of_counting() -> None:
    text = "A well-known, hand-made boat."
    assert count(text, "word") is not None
    for asked in (Length("word", None, 4), Length("word", 6, None)):
        check = check_length(text, asked)
        assert check
        assert check.holds


def test_few_sentences_are_counted_exactly() -> None:
    text = "The sea rises. The moon pulls it. It falls again."
    three, two = (check_length(text, Length("sentence", n, n)) for n in (3, 2))
    assert three
    assert two
    assert (three.holds, two.holds) == (True, False)
    assert two.words == "2 sentences were asked for but the answer has 3."


def test_chinese_counts_characters_with_their_marks_and_without_blanks() -> None:
    found = count("海水 上涨，又落下。", "character", "zh")
    assert found is not None
    assert (found.main, found.least) == (9, 7)


def test_two_characters_are_two_with_a_full_stop() -> None:
    check = check_length("幸福。", Length("character", 2, 2), "zh")
    assert check
    assert check.holds


def test_latin_characters_may_be_counted_with_their_blanks() -> None:
    text = " ".join(["abcd"] * 20)
    with_blanks, without = (check_length(text, Length("character", n, n)) for n in (99, 80))
    assert with_blanks
    assert without
    assert with_blanks.holds
    assert without.holds


def test_words_of_a_script_without_blanks_cannot_be_counted() -> None:
    assert check_length("แม่น้ำไหลลงทะเล", Length("word", 3, 3), "th") is None


def test_paragraphs_are_parted_by_empty_lines() -> None:
    check = check_length("One.\n\nTwo.\n\nThree.", Length("paragraph", 3, 3))
    assert check
    assert check.holds


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Length("word", 1, 1), "1 word"),
        (Length("word", None, 1200), "at most 1,200 words"),
        (Length("sentence", 1, None), "at least 1 sentence"),
        (Length("character", 50, 80), "50 to 80 characters"),
        (Length("character", 200, 200, "about"), "about 200 characters"),
    ],
)
def test_a_length_is_said_in_words(asked: Length, said: str) -> None:
    assert length_words(asked) == said


@given(st.text(max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    for unit in ("word", "character", "sentence", "paragraph"):
        found = count(text, unit)
        assert found is None or 0 <= found.least <= found.main <= max(found.most, found.main)
