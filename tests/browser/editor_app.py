"""A page with nothing but the span editor over a text, and what Python holds of its marks.

`?text=` is read from a file of the home by that name, so that no address changes a character.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import streamlit as st

from components.widgets.annotation_editors import Mark, Marked, span_editor
from core.schema.records import CATEGORY_WORDS

st.set_page_config(layout="wide")
folder = Path(os.environ["COUNTERPOINT_HOME"])
name = st.query_params.get("text", "text")
text = (folder / name).read_bytes().decode()
suggested = folder / f"{name}.marks.json"


def kept(marked: Marked) -> None:
    """Hold what the browser said, and write it where the test can see it."""
    st.session_state["marked"] = marked
    told = asdict(marked) | {"quotes": [text[m.start : m.end] for m in marked.chosen]}
    half = folder / f"{name}.half"  # nobody reads what is half written
    half.write_text(json.dumps(told), encoding="utf-8")
    half.replace(folder / f"{name}.out.json")


if "marked" not in st.session_state:
    rows = json.loads(suggested.read_text()) if suggested.is_file() else []
    st.session_state["marked"] = Marked(marks=tuple(Mark(**row) for row in rows))


@st.fragment
def draw() -> None:
    """As a page draws it."""
    span_editor(
        text,
        st.session_state["marked"],
        {str(name): words for name, words in CATEGORY_WORDS.items()},
        kept,
        key=f"editor.{name}",
        language=st.query_params.get("language", ""),
        none_words="Nothing is wrong",
    )


draw()
