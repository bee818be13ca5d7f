"""What a browser says of marks is believed only once it fits the text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.widgets.annotation_editors import Mark, Marked, marked_from
from core.runtime.errors import InputError

TEXT = "One \U0001d4b3 three."
CATEGORIES = ("contradicted", "reasoning")


def said(**values: Any) -> dict[str, Any]:
    mark: dict[str, Any] = {"id": "a", "start": 4, "end": 5, "category": "reasoning"} | values
    return {"revision": 1, "marks": [mark], "none": False, "did": "mark"}


def test_what_fits_is_believed() -> None:
    found = marked_from(said(by="Judge", score=1, status="suggested"), TEXT, CATEGORIES)
    assert found == Marked(
        1, (Mark("a", 4, 5, "reasoning", "Judge", 1.0, "suggested"),), False, "mark"
    )
    assert found.chosen == ()


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (said(start=-1), "within the 12 characters"),
        (said(end=13), "from 4 to 13"),
        (said(start=5), "from 5 to 5"),
        (said(start=4.5), "start"),
        (said(category="<b>"), "one of the categories contradicted, reasoning"),
        (said(status="accepted"), "status"),
        (said(score="high"), "score"),
        (said() | {"did": "eval"}, "did"),
        (said() | {"none": True}, "cannot both"),
        (said() | {"marks": said()["marks"] * 2}, "found one twice"),
        ({"revision": "1", "marks": []}, "revision"),
        ([], "Marked"),
        ("marks", "Marked"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(payload: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        marked_from(payload, TEXT, CATEGORIES)
    assert words in str(caught.value)


def test_marks_that_count_stand_in_the_order_of_the_text() -> None:
    marks = (
        Mark("b", 4, 5, "reasoning"),
        Mark("c", 0, 3, "reasoning", "Ada", 0.5, "rejected"),
        Mark("a", 0, 3, "contradicted", "Judge", 0.5),
    )
    assert [mark.id for mark in Marked(1, marks).chosen] == ["a", "b"]


@given(
    st.lists(
        st.builds(
            Mark,
            st.uuids().map(str),
            st.integers(0, 5),
            st.integers(6, len(TEXT)),
            st.sampled_from(CATEGORIES),
            st.text(max_size=5),
            st.none() | st.floats(0, 1),
            st.sampled_from(("marked", "suggested", "rejected")),
        ),
        max_size=5,
        unique_by=lambda mark: mark.id,
    ),
    st.integers(0, 10**6),
)
def test_there_and_back(marks: list[Mark], revision: int) -> None:
    held = Marked(revision, tuple(marks))
    assert marked_from(asdict(held), TEXT, CATEGORIES) == held
