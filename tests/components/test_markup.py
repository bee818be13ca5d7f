"""Everything drawn is escaped; marks sit exactly on their words; copying copies the text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.widgets.html import (
    MOST_TITLES,
    Html,
    Mark,
    element,
    joined,
    marked_text,
    show,
    text,
)

NASTY = "<script>alert(1)</script> & \"quotes\" 'single' <b onclick=x>bold</b> &amp; ]]>"


def bare(markup: str) -> str:
    """The text of markup as a browser would copy it."""
    return unescape(re.sub(r"<[^>]*>", "", markup))


def test_text_and_attributes_are_escaped() -> None:
    made = element("span", NASTY, title=NASTY, class_="cp-tag")
    assert "<script" not in made
    assert "<b" not in made.replace("<br>", "")
    assert 'title="&lt;script&gt;' in made
    assert bare(made) == NASTY


def test_only_our_tags_and_attributes_exist() -> None:
    with pytest.raises(ValueError, match="<script> is not among our tags"):
        element("script", "x")
    with pytest.raises(ValueError, match="onclick is not among our attributes"):
        element("span", "x", onclick="alert(1)")


def test_markup_is_not_escaped_twice() -> None:
    inner = element("em", "<")
    assert element("p", inner, "&") == "<p><em>&lt;</em>&amp;</p>"
    assert isinstance(joined([inner, "<"]), Html)
    assert text(inner) is inner


def test_a_plain_string_is_never_drawn() -> None:
    with pytest.raises(TypeError, match="only markup"):
        show("<b>hello</b>")  # type: ignore[arg-type]


def test_a_mark_sits_on_its_words_only() -> None:
    words = "The tower is 512 m tall, not 512 m wide."
    made = marked_text(words, [Mark(13, 18, "1", "the evidence says 412 m")])
    assert made.count("<mark") == 1
    assert '<mark class="cp-mark" title="the evidence says 412 m">512 m</mark>' in made
    assert 'data-n="1"' in made


def test_overlapping_marks_show_all_their_numbers() -> None:
    made = marked_text("abcdef", [Mark(0, 4, "1"), Mark(2, 6, "2")])
    assert bare(made) == "abcdef"
    assert made.count("<mark") == 3
    assert made.index('data-n="1"') < made.index('data-n="2"')


LETTERS = "ab<>&\"' \n\r\té\u0301北京𝒳👩\u200d👧العربية"
scripts = st.text(alphabet=st.sampled_from(LETTERS), min_size=1, max_size=60)


@given(scripts, st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=5))
def test_marking_never_changes_the_text(words: str, places: list[tuple[int, int]]) -> None:
    marks = [
        Mark(start, min(len(words), start + length), str(number))
        for number, (start, length) in enumerate(places)
        if start < len(words)
    ]
    assert bare(marked_text(words, marks)) == words


@given(st.text(max_size=80))
def test_any_text_survives_escaping(words: str) -> None:
    assert bare(element("p", words)) == words


class Walked(list[Mark]):
    """Marks that count how often they are gone through."""

    walks = 0

    def __iter__(self) -> Iterator[Mark]:
        self.walks += 1
        return super().__iter__()


def test_marks_are_gone_through_a_few_times_however_many_they_are() -> None:
    marks = Walked(Mark(n, 10_000 - n, str(n)) for n in range(2000))
    assert marked_text("word " * 2000, marks).count("<sup") == 2000
    assert marks.walks < 10


def test_a_stretch_under_very_many_marks_names_some_of_them() -> None:
    marks = [Mark(n, 10_000 - n, title=f"mark {n}") for n in range(2000)]
    made = marked_text("word " * 2000, marks)
    assert len(made) < 3_000_000
    assert f"mark {MOST_TITLES - 1}\n…" in made
    assert f'mark {MOST_TITLES - 2}\nmark {MOST_TITLES - 1}">' in made
