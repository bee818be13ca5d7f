"""The corrected text as it is told: in one line, and in both reports with its marks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.report import (
    BY_MARKS,
    LONGEST_TOLD,
    html_report,
    in_short,
    markdown_report,
    proposed,
)
from components.widgets.html import change_words, changes
from core.schema.events import ResponseRevised
from core.schema.progress import Progress
from tests.components.test_report import CASE, RUN, SPAN, progress

RIGHT = CASE.response.replace("512", "412")


def revised(text: str) -> Progress:
    made = progress()
    made.add(ResponseRevised(109.7, "Writer <b>", text))
    return made


@pytest.mark.parametrize("by", ["Writer <b>", BY_MARKS])
def test_reports_tell_what_goes_and_what_comes_and_by_whom(by: str) -> None:
    made = revised(RIGHT) if by != BY_MARKS else progress()
    assert proposed(CASE, made) == (RIGHT, by)
    html = html_report(RUN, CASE, made, [], None)
    assert html.index("As it should read") < html.index('<del title="taken out: 512">512</del>')
    assert '<ins title="put in: 412">412</ins>' in html
    assert "<b>" not in html
    text = markdown_report(RUN, CASE, made, [], None)
    assert f"Proposed by {by}." in text
    assert text.index("## As it should read") < text.index(RIGHT) < text.index("“512” → “412”")


def test_what_it_leaves_contested_is_told() -> None:
    other = replace(SPAN, start=4, end=9, text="tower")
    made = revised(RIGHT)
    made.rulings.append(replace(made.rulings[0], span=other))
    for report in (html_report, markdown_report):
        assert "Still as it was, though contested: “tower”." in report(RUN, CASE, made, [], None)


def test_nothing_is_told_where_nothing_would_change() -> None:
    for made in (revised(CASE.response), Progress()):
        assert proposed(CASE, made) == ("", "")
        for report in (html_report, markdown_report):
            assert "As it should read" not in report(RUN, CASE, made, [], None)


def test_many_changes_are_counted_in_the_line() -> None:
    assert in_short("a b c", "a x c") == "“b” → “x”"
    assert in_short("a b c", "a c") == "taken out: “b”"
    spans = (replace(SPAN, start=0, end=1, text="a"), replace(SPAN, start=2, end=3, text="b"))
    assert in_short("a b c", "a x c", spans) == "“b” → “x” · 1 of 2 marks left as it was"
    assert in_short("a b", "a\nb") == "other spaces"
    before = " ".join(f"{n} word" for n in range(40))
    assert in_short(before, before.replace("word", "text")) == "40 changes"


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_change_has_a_line_and_the_line_is_short(before: str, after: str) -> None:
    differ = [(gone, come) for gone, come in changes(before, after) if gone != come]
    assert len(change_words(before, after)) == len(differ)
    assert len(in_short(before, after)) <= LONGEST_TOLD
