"""A page with nothing but the box editor over a stored image, and what Python holds of its boxes.

`?image=` is the image's id in the library, `&test=` names the file that tells what was held, and
`&locked=1` allows no change.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

import streamlit as st

from components.widgets.annotation_editors import (
    Drawn,
    box_editor,
    drawn_from,
    drawn_of,
    image_boxes,
    picture_of,
)
from core.schema.records import CATEGORY_WORDS
from core.store.sqlite import to_plain

st.set_page_config(layout="wide")
folder = Path(os.environ["COUNTERPOINT_HOME"])
image = st.query_params["image"]
test = st.query_params["test"]
categories = {str(name): words for name, words in CATEGORY_WORDS.items()}
given = folder / f"{test}.boxes.json"


def kept(drawn: Drawn) -> None:
    """Hold what the browser said, and write it where the test can see it."""
    st.session_state["drawn"] = drawn
    told = asdict(drawn) | {"kept": to_plain(image_boxes(drawn, image))}
    half = folder / f"{test}.half"  # nobody reads what is half written
    half.write_text(json.dumps(told), encoding="utf-8")
    half.replace(folder / f"{test}.out.json")


if "drawn" not in st.session_state:
    st.session_state["drawn"] = (
        drawn_from(json.loads(given.read_text()), categories)
        if given.is_file()
        else drawn_of((), image)
    )


@st.fragment
def draw() -> None:
    """As a page draws it."""
    began = time.perf_counter()
    box_editor(
        picture_of(image, "harbour.png"),
        st.session_state["drawn"],
        categories,
        kept,
        key=f"editor.{image}",
        name="harbour.png",
        is_locked=st.query_params.get("locked") == "1",
    )
    (folder / f"{test}.seconds").write_text(str(time.perf_counter() - began), encoding="utf-8")
    st.button("Draw again", key="again")


if st.toggle("Show the image", value=True, key="shown"):
    draw()
