"""A page with nothing but an editor: of the marks in a text, or of the boxes on a stored image.

`?text=` is read from a file of the home by that name, so that no address changes a character;
`?image=` is an image's id in the library. `&test=` names the file that tells what Python holds,
and `&locked=1` allows no change.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from components.widgets.annotation_editors import (
    BoxEditorState,
    SpanEditorState,
    SpanMark,
    draw_box_editor,
    draw_span_editor,
    load_picture,
    parse_box_editor,
    to_image_boxes,
)
from core.schema.records import CATEGORY_WORDS
from core.store.sqlite import to_plain

st.set_page_config(layout="wide")
folder = Path(os.environ["COUNTERPOINT_HOME"])
test = st.query_params["test"]
image = st.query_params.get("image", "")
categories = {str(name): words for name, words in CATEGORY_WORDS.items()}
given = folder / f"{test}.given.json"


def told(held: Any, more: dict[str, Any]) -> None:
    """Hold what the browser said, and write it where the test can see it."""
    st.session_state["held"] = held
    half = folder / f"{test}.half"  # nobody reads what is half written
    half.write_text(json.dumps(asdict(held) | more), encoding="utf-8")
    half.replace(folder / f"{test}.out.json")


def draw_spans(held: SpanEditorState) -> None:
    text = (folder / st.query_params["text"]).read_bytes().decode()

    def kept(marked: SpanEditorState) -> None:
        told(marked, {"quotes": [text[m.start : m.end] for m in marked.chosen]})

    draw_span_editor(
        text,
        held,
        categories,
        kept,
        key=f"editor.{test}",
        language=st.query_params.get("language", ""),
        none_words="Nothing is wrong",
    )


def draw_boxes(held: BoxEditorState) -> None:
    began = time.perf_counter()
    draw_box_editor(
        load_picture(image, "harbour.png"),
        held,
        categories,
        lambda drawn: told(drawn, {"kept": to_plain(to_image_boxes(drawn, image))}),
        key=f"editor.{image}",
        name="harbour.png",
        is_locked=st.query_params.get("locked") == "1",
    )
    (folder / f"{test}.seconds").write_text(str(time.perf_counter() - began), encoding="utf-8")
    st.button("Draw again", key="again")


@st.fragment
def draw() -> None:
    """As a page draws it."""
    (draw_boxes if image else draw_spans)(st.session_state["held"])


if "held" not in st.session_state:
    rows = json.loads(given.read_text()) if given.is_file() else []
    marks = () if image else tuple(SpanMark(**row) for row in rows)
    st.session_state["held"] = (
        parse_box_editor({"boxes": rows}, categories) if image else SpanEditorState(marks=marks)
    )
if not image or st.toggle("Show the image", value=True, key="shown"):
    draw()
