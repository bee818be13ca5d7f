"""What a browser says of marks and boxes is believed only once it fits the text or image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit import config
from streamlit.testing.v1 import AppTest

from components.widgets import annotation_editors
from components.widgets.annotation_editors import (
    BoxEditorState,
    DrawnBox,
    SpanEditorState,
    SpanMark,
    parse_box_editor,
    parse_span_editor,
    select_boxes,
    to_image_boxes,
)
from core.runtime.errors import InputError
from core.schema.records import BoundingBox
from core.schema.reviews import ImageBox

TEXT = "One \U0001d4b3 three."
CATEGORIES = ("contradicted", "reasoning")


def said(**values: Any) -> dict[str, Any]:
    mark: dict[str, Any] = {"id": "a", "start": 4, "end": 5, "category": "reasoning"} | values
    return {"revision": 1, "marks": [mark], "none": False, "did": "mark"}


def test_what_fits_is_believed() -> None:
    found = parse_span_editor(said(by="Judge", score=1, status="suggested"), TEXT, CATEGORIES)
    assert found == SpanEditorState(
        1, (SpanMark("a", 4, 5, "reasoning", "Judge", 1.0, "suggested"),), False, "mark"
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
        (said() | {"none": True}, "exclude each other"),
        (said() | {"marks": said()["marks"] * 2}, "found one twice"),
        ({"revision": "1", "marks": []}, "revision"),
        ([], "SpanEditorState"),
        ("marks", "SpanEditorState"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(payload: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_span_editor(payload, TEXT, CATEGORIES)
    assert words in str(caught.value)


def test_marks_that_count_stand_in_the_order_of_the_text() -> None:
    marks = (
        SpanMark("b", 4, 5, "reasoning"),
        SpanMark("c", 0, 3, "reasoning", "Ada", 0.5, "rejected"),
        SpanMark("a", 0, 3, "contradicted", "Judge", 0.5),
    )
    assert [mark.id for mark in SpanEditorState(1, marks).chosen] == ["a", "b"]


@given(
    st.lists(
        st.builds(
            SpanMark,
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
def test_there_and_back(marks: list[SpanMark], revision: int) -> None:
    held = SpanEditorState(revision, tuple(marks))
    assert parse_span_editor(asdict(held), TEXT, CATEGORIES) == held


PLACE = {"left": 0.1, "top": 0, "right": 0.5, "bottom": 1}


def drew(**values: Any) -> dict[str, Any]:
    box: dict[str, Any] = {"id": "a", "box": PLACE, "category": "reasoning", "comment": "<b>"}
    return {"revision": 1, "boxes": [box | values], "did": "draw"}


def placed(**values: Any) -> dict[str, Any]:
    return drew(box=PLACE | values)


def test_boxes_that_fit_are_believed() -> None:
    found = parse_box_editor(drew(), CATEGORIES)
    assert found == BoxEditorState(
        1, (DrawnBox("a", BoundingBox(0.1, 0, 0.5, 1), "reasoning", "<b>"),), "draw"
    )


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (placed(left=-0.01), "box 1 within the image, found it from -1.0% to 50.0% of the width"),
        (placed(bottom=1.01), "of the height"),
        (placed(left=0.6), "from 60.0% to 50.0%"),
        (placed(left=float("nan")), "within the image"),
        (placed(right=float("inf")), "within the image"),
        (placed(right=0.1039), "at least 0.4% of the width, found 0.39%"),
        (placed(left="0"), "left"),
        (placed(left=None), "left"),
        (drew(box=None), "box"),
        (drew(category="<b>"), "one of the categories contradicted, reasoning"),
        (drew(comment=3), "comment"),
        (drew(comment="x" * 4_001), "at most 4,000 characters in the comment on box 1"),
        (drew(comment="x\ud800"), "half a character at 2"),
        (drew() | {"did": "eval"}, "did"),
        (drew() | {"boxes": drew()["boxes"] * 2}, "found one twice"),
        (drew() | {"boxes": drew()["boxes"] * 501}, "at most 500 boxes on an image, found 501"),
        ({"revision": "1", "boxes": []}, "revision"),
        ([], "BoxEditorState"),
        ("boxes", "BoxEditorState"),
    ],
)
def test_boxes_that_do_not_fit_are_refused_in_words(payload: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_box_editor(payload, CATEGORIES)
    assert words in str(caught.value)


def test_the_smallest_box_is_believed_wherever_it_lies() -> None:
    least = annotation_editors.MIN_BOX_SIDE
    for step in range(249):
        left = step * least
        parse_box_editor(placed(left=left, right=min(1.0, left + least)), CATEGORIES)


def test_boxes_become_a_corrections_and_stand_in_the_editor_again() -> None:
    here = ImageBox("s1", BoundingBox(0.1, 0.2, 0.3, 0.4), "reasoning", "not a lamp")
    there = ImageBox("s2", BoundingBox(0, 0, 1, 1), "contradicted")
    drawn = select_boxes([there, here], "s1")
    assert [one.comment for one in drawn.boxes] == ["not a lamp"]
    assert to_image_boxes(drawn, "s1") == (here,)
    assert to_image_boxes(select_boxes([there, here], "s3"), "s3") == ()


def sides() -> st.SearchStrategy[tuple[float, float]]:
    return st.tuples(st.floats(0, 0.9), st.floats(0.004, 0.1)).map(lambda s: (s[0], s[0] + s[1]))


@given(
    st.lists(
        st.builds(
            lambda x, y, *rest: DrawnBox(rest[0], BoundingBox(x[0], y[0], x[1], y[1]), *rest[1:]),
            sides(),
            sides(),
            st.uuids().map(str),
            st.sampled_from(CATEGORIES),
            st.text(max_size=5),
        ),
        max_size=5,
        unique_by=lambda one: one.id,
    ),
    st.integers(0, 10**6),
)
def test_boxes_there_and_back(drawn: list[DrawnBox], revision: int) -> None:
    held = BoxEditorState(revision, tuple(drawn))
    assert parse_box_editor(asdict(held), CATEGORIES) == held


def one_image() -> None:
    """The editor over a picture of one pixel, what it told, and where the picture is fetched."""
    import streamlit as st

    from components.widgets.annotation_editors import BoxEditorState, draw_box_editor, serve_picture
    from core.documents.rendering import UprightImage

    picture = UprightImage(b"bytes of a picture", "image/png", 1, 1)
    held = st.session_state.setdefault("held", BoxEditorState())
    words = {"contradicted": "contradicted", "reasoning": "reasoning"}
    draw_box_editor(
        picture,
        held,
        words,
        lambda drawn: st.session_state.update(held=drawn),
        key="boxes",
        name="lamp.png",
        is_locked=st.session_state.get("is_locked", False),
    )
    st.text(serve_picture(picture.data, picture.media_type, "boxes"))


def test_python_holds_what_fits_and_says_why_it_does_not_hold_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def browser(*, on_edit_change: Callable[[], None], **_: Any) -> None:
        on_edit_change()  # which AppTest never does

    monkeypatch.setattr(annotation_editors, "get_component", lambda name: browser)
    at = AppTest.from_function(one_image, default_timeout=30)
    at.session_state["boxes"] = {"edit": drew()}
    at.run()
    assert not at.exception
    assert [one.comment for one in at.session_state["held"].boxes] == ["<b>"]
    at.session_state["boxes"] = {"edit": placed(right=1.5) | {"revision": 2}}
    at.run()
    assert "within the image" in at.error[0].value
    assert at.session_state["held"].revision == 1
    at.session_state["is_locked"] = True
    at.session_state["boxes"] = {"edit": drew() | {"revision": 3}}
    at.run()
    assert not at.error
    assert at.session_state["held"].revision == 1


@pytest.mark.parametrize("base", ["", "checks", "/checks/"])
def test_the_picture_is_fetched_below_the_servers_own_path(base: str) -> None:
    before = config.get_option("server.baseUrlPath")
    config.set_option("server.baseUrlPath", base)
    try:
        address = AppTest.from_function(one_image, default_timeout=30).run().text[0].value
    finally:
        config.set_option("server.baseUrlPath", before)
    assert address.startswith("/checks/" if base else "/mock/media/")
    assert "/mock/media/" in address
    assert address.endswith(".png")
