"""The span editor: marks in a text by mouse or keyboard, exact in code points.

Python holds the truth. The browser sends the whole list of marks with a revision after every
change, is believed only once it fits the text (marks.py), and shows what Python holds as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from components.span_editor.marks import Marked, marked_from
from components.wording import escaped
from core.errors import InputError

HERE = Path(__file__).parent
Words = Mapping[str, str]


@cache
def _component() -> Callable[..., Any]:
    """Registered once per process: Streamlit warns where a name is registered again."""
    html, css, js = (
        (HERE / f"editor.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    made: Callable[..., Any] = st.components.v2.component(
        "counterpoint_span_editor", html=html, css=css, js=js, isolate_styles=False
    )
    return made


def span_editor(
    text: str,
    marked: Marked,
    categories: Words,
    on_edit: Callable[[Marked], None],
    *,
    key: str,
    language: str = "",
    none_words: str = "",
    is_locked: bool = False,
) -> None:
    """Draw the text with its marks; call it within a fragment, for the text travels at every rerun.

    Args:
        text: shown exactly as it is; offsets count its code points.
        marked: what stands in the editor by now.
        categories: ids to words; the first nine have the keys 1 to 9.
        on_edit: is called with all that stands there after each change.
        key: of the component; another text wants another one.
        language: of the text, for where its words end; "" where unknown.
        none_words: what the explicit answer says that nothing is to be marked; "" offers none.
        is_locked: nothing can be changed.
    """

    def told() -> None:
        said = st.session_state[key].get("edit")
        if said is None or is_locked:
            return
        try:
            on_edit(marked_from(said, text, categories))
        except InputError as error:
            st.session_state[f"{key}.problem"] = str(error)

    _component()(
        key=key,
        data={
            "text": text,
            "revision": marked.revision,
            "marks": [asdict(mark) for mark in marked.marks],
            "none": marked.none,
            "categories": [{"id": name, "words": words} for name, words in categories.items()],
            "language": language,
            "noneWords": none_words,
            "locked": is_locked,
        },
        default={"edit": None},
        on_edit_change=told,
    )
    if problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem), icon=":material/error:")
