"""A changed text as one: what is struck out and what is put in give back both versions."""

from __future__ import annotations

from html import unescape
from re import DOTALL, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.widgets import html as difference_within
from components.widgets.html import changes, is_unchanged, within_html

TEXTS = st.text(alphabet='ab \n<&>"正确العé🌉', max_size=30)


def version(markup: str, without: str) -> str:
    """The text of the markup without what one kind of element holds."""
    kept = sub(rf"<{without}\b.*?</{without}>", "", markup, flags=DOTALL)
    return unescape(sub(r"<[^>]*>", "", kept))


@given(TEXTS, TEXTS)
def test_both_versions_can_be_read_out_of_it(before: str, after: str) -> None:
    made = within_html(before, after)
    assert version(made, "ins") == before
    assert version(made, "del") == after


@given(TEXTS, TEXTS)
def test_so_they_can_where_the_texts_are_too_long_to_compare(before: str, after: str) -> None:
    found = list(difference_within._around(before, after))
    assert "".join(gone for gone, _ in found) == before
    assert "".join(come for _, come in found) == after
    long = "x" * difference_within.LONGEST_COMPARED
    assert sum(gone != come for gone, come in changes(long + before, long + after)) <= 1


def test_words_change_not_lines_and_markup_stays_text() -> None:
    made = within_html("It is <b>530</b> m long.\nشكرا 大桥", "It is <b>412</b> m long.\nشكرا 大楼")
    assert made.count("<del") == made.count("<ins") == 2
    assert ">530</del>" in made
    assert ">412</ins>" in made
    assert ">桥</del>" in made
    assert "&lt;b&gt;" in made
    assert 'dir="auto"' in made


@pytest.mark.parametrize(
    ("start", "end", "is_same"), [(0, 2, True), (6, 9, False), (10, 11, True), (0, 18, False)]
)
def test_words_that_were_left_as_they_were_are_known(start: int, end: int, is_same: bool) -> None:
    text = "It is 530 m long."
    assert is_unchanged(text, "It is 412 m long.", start, end) is is_same


def test_words_put_in_within_a_stretch_change_it() -> None:
    assert not is_unchanged("It is open.", "It is not open.", 0, 11)
    assert is_unchanged("It is open.", "It is open. Now.", 0, 11)


def test_a_number_changes_whole() -> None:
    assert ("3,200", "2,300") in list(changes("It holds 3,200 clocks.", "It holds 2,300 clocks."))
