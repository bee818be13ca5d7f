"""Terms meet across case, accents, inflection, digits and unspaced scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.segmentation import fold, query_terms, terms


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("The Towers", "tower", "en"),
        ("ZÜRICH", "Zurich", "de"),
        ("1,234", "1234", "en"),
        ("٤١٢", "412", "ar"),
        ("العاصمةُ", "العاصمة", "ar"),
        ("employees", "employee’s", "en"),
        ("ﬁne", "fine", "en"),
        ("２０２３", "2023", "ja"),
    ],
)
def test_what_is_the_same_word_meets(one: str, other: str, language: str) -> None:
    assert set(terms(one, language)) & set(terms(other, language))


@pytest.mark.parametrize(
    ("text", "inside"), [("人口有两千万的北京市", "北京"), ("กรุงเทพมหานครเป็นเมืองหลวง", "เมือง")]
)
def test_a_word_inside_an_unspaced_run_is_found(text: str, inside: str) -> None:
    assert set(terms(inside)) <= set(terms(text))


def test_indic_vowels_are_kept() -> None:
    assert list(terms("दिल्ली", "hi")) != list(terms("दल्ला", "hi"))


def test_decimals_are_not_grouped_numbers() -> None:
    assert list(terms("3.5")) == ["3d5"]
    assert list(terms("1.234.567")) == ["1234567"]


def test_function_words_are_searched_only_when_there_is_nothing_else() -> None:
    assert query_terms("What is the height of the tower?", "en") == ["height", "tower"]
    assert query_terms("to be or not to be", "en")


@given(st.text(max_size=200))
def test_any_text_gives_terms_without_blanks(text: str) -> None:
    for term in terms(text):
        assert term
        assert not any(letter.isspace() for letter in term)


@given(st.text(max_size=50))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)
