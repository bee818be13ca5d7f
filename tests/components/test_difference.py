"""Differences of two texts, by lines and within one text: they give back both versions."""

from __future__ import annotations

from html import unescape
from re import DOTALL, findall, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.widgets import html
from components.widgets.html import (
    count_changed_lines,
    is_unchanged,
    iter_changes,
    render_inline_diff,
    render_line_diff,
)

LINES = st.lists(st.text(alphabet="ab <>&正确é", max_size=6), max_size=12)


def words(markup: str, kind: str) -> list[str]:
    """The lines of one kind, as a reader sees them."""
    pattern = (
        rf'<div class="cp-diff-line cp-diff-{kind}".*?cp-diff-words" dir="auto">(.*?)</span></div>'
    )
    return [unescape(sub("</?strong>", "", found)) for found in findall(pattern, markup, DOTALL)]


@given(LINES, LINES)
def test_whoever_applies_it_gets_the_other_text(before: list[str], after: list[str]) -> None:
    if "\n".join(before) == "\n".join(after):
        after = [*after, "more", "and more"]
    shown = render_line_diff("\n".join(before), "\n".join(after), context=99)
    same = words(shown, "same")
    assert sorted(same + words(shown, "removed")) == sorted("\n".join(before).split("\n"))
    assert sorted(same + words(shown, "added")) == sorted("\n".join(after).split("\n"))


def test_equal_texts_have_none() -> None:
    assert render_line_diff("a\nb", "a\nb") == ""
    assert count_changed_lines("a\nb", "a\nb") == (0, 0)


def test_signs_and_words_say_what_colour_says_too() -> None:
    shown = render_line_diff("one\nold words here\nlast", "one\nnew words here\nlast")
    assert words(shown, "removed") == ["old words here"]
    assert words(shown, "added") == ["new words here"]
    assert 'aria-label="removed">−<' in shown
    assert 'aria-label="added">+<' in shown
    assert "<strong>old</strong> words here" in shown
    assert "<strong>new</strong> words here" in shown
    assert count_changed_lines("one\nold words here", "one\nnew words here\nx") == (1, 2)


def test_chinese_is_compared_character_by_character() -> None:
    shown = render_line_diff("陈述是正确的", "陈述是错误的")
    assert "陈述是<strong>正确</strong>的" in shown
    assert "陈述是<strong>错误</strong>的" in shown


def test_what_is_alike_far_away_is_left_out_and_counted() -> None:
    before = [f"line {n}" for n in range(20)]
    shown = render_line_diff("\n".join(before), "\n".join([*before, "more"]))
    assert "line 19" in shown
    assert "line 3<" not in shown
    assert "19 lines that are alike" in shown


def test_a_very_long_line_is_compared_as_a_whole() -> None:
    long = "a b " * 5000
    shown = render_line_diff(long, long + "c")
    assert "<strong>" not in shown
    assert words(shown, "added") == [long + "c"]


TEXTS = st.text(alphabet='ab \n<&>"正确العé🌉', max_size=30)


def version(markup: str, without: str) -> str:
    """The text of the markup without what one kind of element holds."""
    kept = sub(rf"<{without}\b.*?</{without}>", "", markup, flags=DOTALL)
    return unescape(sub(r"<[^>]*>", "", kept))


@given(TEXTS, TEXTS)
def test_both_versions_can_be_read_out_of_it(before: str, after: str) -> None:
    made = render_inline_diff(before, after)
    assert version(made, "ins") == before
    assert version(made, "del") == after


@given(TEXTS, TEXTS)
def test_so_they_can_where_the_texts_are_too_long_to_compare(before: str, after: str) -> None:
    found = list(html._cut_common_ends(before, after))
    assert "".join(gone for gone, _ in found) == before
    assert "".join(come for _, come in found) == after
    long = "x" * html.MAX_LINE_DIFF_CHARS
    assert sum(gone != come for gone, come in iter_changes(long + before, long + after)) <= 1


def test_words_change_not_lines_and_markup_stays_text() -> None:
    made = render_inline_diff(
        "It is <b>530</b> m long.\nشكرا 大桥", "It is <b>412</b> m long.\nشكرا 大楼"
    )
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
    assert is_unchanged("It is open.", "Now. It is open.", 0, 11)


def test_words_put_in_beside_a_mark_change_it() -> None:
    text = "It has the largest clock."
    assert not is_unchanged(text, "It has one of the largest clock.", 7, 18)
    assert not is_unchanged(text, "It has the largest old clock.", 7, 18)
    assert is_unchanged(text, "It now has the largest clock.", 7, 18)


def test_a_number_changes_whole() -> None:
    assert ("3,200", "2,300") in list(
        iter_changes("It holds 3,200 clocks.", "It holds 2,300 clocks.")
    )
