"""The difference of two texts: every line that goes or comes, and nothing else."""

from __future__ import annotations

from html import unescape
from re import DOTALL, findall, sub

from hypothesis import given
from hypothesis import strategies as st

from components.widgets.html import changed_lines, difference_html

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
    shown = difference_html("\n".join(before), "\n".join(after), context=99)
    same = words(shown, "same")
    assert sorted(same + words(shown, "removed")) == sorted("\n".join(before).split("\n"))
    assert sorted(same + words(shown, "added")) == sorted("\n".join(after).split("\n"))


def test_equal_texts_have_none() -> None:
    assert difference_html("a\nb", "a\nb") == ""
    assert changed_lines("a\nb", "a\nb") == (0, 0)


def test_signs_and_words_say_what_colour_says_too() -> None:
    shown = difference_html("one\nold words here\nlast", "one\nnew words here\nlast")
    assert words(shown, "removed") == ["old words here"]
    assert words(shown, "added") == ["new words here"]
    assert 'aria-label="removed">−<' in shown
    assert 'aria-label="added">+<' in shown
    assert "<strong>old</strong> words here" in shown
    assert "<strong>new</strong> words here" in shown
    assert changed_lines("one\nold words here", "one\nnew words here\nx") == (1, 2)


def test_chinese_is_compared_character_by_character() -> None:
    shown = difference_html("陈述是正确的", "陈述是错误的")
    assert "陈述是<strong>正确</strong>的" in shown
    assert "陈述是<strong>错误</strong>的" in shown


def test_what_is_alike_far_away_is_left_out_and_counted() -> None:
    before = [f"line {n}" for n in range(20)]
    shown = difference_html("\n".join(before), "\n".join([*before, "more"]))
    assert "line 19" in shown
    assert "line 3<" not in shown
    assert "19 lines that are alike" in shown


def test_a_very_long_line_is_compared_as_a_whole() -> None:
    long = "a b " * 5000
    shown = difference_html(long, long + "c")
    assert "<strong>" not in shown
    assert words(shown, "added") == [long + "c"]
