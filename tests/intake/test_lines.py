"""Words cut at line ends become whole, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.intake import lines
from core.intake.lines import mended, uncut, words_in


@pytest.mark.parametrize(
    ("text", "known", "whole"),
    [
        ("an exam-\nple here", "", "an example\nhere"),
        ("an exam-\nple", "", "an example"),
        ("an exam-\nple, it is", "", "an example,\nit is"),
        ("a well-\nknown case", "", "a well-known\ncase"),
        ("a cross-\nborder case", "", "a cross-border\ncase"),
        ("two north-\nsouth lines", "north-south", "two north-south\nlines"),
        ("the re-\nform came", "reform", "the reform\ncame"),
        ("soft\u00ad\nware", "", "software"),
        ("in 2019-\n2020 it", "", "in 2019-\n2020 it"),
        ("Rhein-\nMain", "", "Rhein-\nMain"),
        ("a list:\n- one\n- two", "", "a list:\n- one\n- two"),
        ("trailing -\nword", "", "trailing -\nword"),
        ("exam-\n\nple", "", "exam-\n\nple"),
        ("über-\nmäßig", "", "übermäßig"),
    ],
)
def test_cut_words(text: str, known: str, whole: str) -> None:
    assert mended(text, words_in([known])) == whole


def test_scripts_without_blanks_run_on_over_full_lines() -> None:
    lines = [
        "博物馆的历史",
        "这座博物馆建于一九二五年，它的",
        "第一任馆长是一位物理学家，后来",
        "退休了。",
        "第二章",
    ]
    assert mended("\n".join(lines), frozenset()).split("\n") == [
        "博物馆的历史",
        "".join(lines[1:4]),
        "第二章",
    ]


def test_words_are_found_with_their_hyphens() -> None:
    assert words_in(["A well-known Thing"]) == {"a", "well-known", "thing"}


def test_what_stands_between_lines_of_a_paragraph() -> None:
    assert uncut("one", "two", frozenset()) == ("one", " ")
    assert uncut("exam-", "ple", frozenset()) == ("exam", "")
    assert uncut("文字", "接着", frozenset()) == ("文字", "")


@given(st.text(st.characters(codec="utf-8")))
def test_nothing_but_hyphens_and_line_ends_is_ever_lost(text: str) -> None:
    def kept(some: str) -> str:
        return "".join(c for c in some if c not in "-\u2010\u00ad\n ")

    assert kept(mended(text, words_in([text]))) == kept(text)


def test_a_line_that_goes_on_and_on_is_not_copied_for_each_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handled: list[int] = []

    def between(above: str, _below: str) -> str:
        handled.append(len(above))
        return ""

    monkeypatch.setattr(lines, "between", between)
    line = "北京是首都人口很多"
    assert mended("\n".join([line] * 500), frozenset()) == line * 500
    assert max(handled) <= lines.LONGEST_WORD
