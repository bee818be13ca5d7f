"""The box editor: regions of an image by mouse, pen, touch or keyboard, each with its comment.

Python holds the truth. The browser sends the whole list of boxes with a revision after every
change, is believed only once it fits the image (boxes.py), and shows comments as text. To draw it:

    @st.fragment
    def draw_boxes() -> None:
        held = st.session_state.get("x.boxes") or drawn_of(correction.boxes, source_id)
        box_editor(
            picture_of(source_id, name),  # raises InputError where the file is gone
            held,
            CATEGORIES,
            lambda drawn: st.session_state.update({"x.boxes": drawn}),
            key=f"x.editor.{source_id}",
            name=name,
        )

and `image_boxes(held, source_id)` is what a correction keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from components.box_editor.boxes import MOST_BOXES, SMALLEST, Drawn, drawn_from
from components.box_editor.picture import address_of
from components.wording import escaped
from core.documents.rendering import Upright
from core.errors import InputError
from core.store.corrections import LONGEST_COMMENT

HERE = Path(__file__).parent
Words = Mapping[str, str]


@cache
def _component() -> Callable[..., Any]:
    """Registered once per process: Streamlit warns where a name is registered again."""
    html, css, js = (
        (HERE / f"editor.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    made: Callable[..., Any] = st.components.v2.component(
        "counterpoint_box_editor", html=html, css=css, js=js, isolate_styles=False
    )
    return made


def box_editor(
    picture: Upright,
    drawn: Drawn,
    categories: Words,
    on_edit: Callable[[Drawn], None],
    *,
    key: str,
    name: str,
    is_locked: bool = False,
) -> None:
    """Draw the image with its boxes; call it within a fragment, since every change reruns it.

    Args:
        picture: of `picture_of`; boxes are shares of its width and height.
        drawn: what stands in the editor by now.
        categories: ids to words; the first nine have the keys 1 to 9.
        on_edit: is called with all that stands there after each change.
        key: of the component; another image wants another one.
        name: what the image is called, for those who cannot see it.
        is_locked: nothing can be changed.
    """

    def told() -> None:
        said = st.session_state[key].get("edit")
        if said is None or is_locked:
            return
        try:
            on_edit(drawn_from(said, categories))
        except InputError as error:
            st.session_state[f"{key}.problem"] = str(error)

    _component()(
        key=key,
        data={
            "address": address_of(picture, key),
            "width": picture.width,
            "height": picture.height,
            "name": name,
            "revision": drawn.revision,
            "boxes": [asdict(one) for one in drawn.boxes],
            "categories": [{"id": name, "words": words} for name, words in categories.items()],
            "smallest": SMALLEST,
            "mostBoxes": MOST_BOXES,
            "longestComment": LONGEST_COMMENT,
            "locked": is_locked,
        },
        default={"edit": None},
        on_edit_change=told,
    )
    if problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem), icon=":material/error:")
