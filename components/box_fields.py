"""Boxes that a person draws in a case's images, as a part of their correction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from components.box_editor import box_editor
from components.box_editor.boxes import Drawn, drawn_of, image_boxes
from components.box_editor.picture import picture_of
from components.wording import escaped
from core.errors import InputError
from core.records import Source
from core.reviews import ImageBox, category_words
from core.store.sqlite import from_plain, to_plain

Boxes = dict[str, Drawn]


def boxes_kept(key: str) -> Boxes:
    """What stands in a form's editors, by image."""
    found: Boxes = st.session_state.get(f"{key}.boxes") or {}
    return found


def boxes_of(key: str) -> tuple[ImageBox, ...]:
    """All boxes of a form."""
    return _boxes_in(boxes_kept(key))


def boxes_to(kept: Boxes) -> Any:
    """As a draft keeps it."""
    return to_plain(_boxes_in(kept))


def _boxes_in(kept: Boxes) -> tuple[ImageBox, ...]:
    return tuple(box for source_id, drawn in kept.items() for box in image_boxes(drawn, source_id))


def boxes_from(draft: object) -> Boxes:
    """What a draft kept, where it can still be read."""
    try:
        return boxes_again(from_plain(tuple[ImageBox, ...], draft or []))
    except InputError:
        return {}


def boxes_again(boxes: Sequence[ImageBox]) -> Boxes:
    """Saved boxes, to stand in the editors again."""
    return {source_id: drawn_of(boxes, source_id) for source_id in {b.source_id for b in boxes}}


def draw_box_fields(
    key: str, images: Sequence[Source], categories: Mapping[str, str], changed: Callable[[], None]
) -> None:
    """An image to choose and the editor over it; `changed` keeps the draft."""
    names = {image.id: image.name for image in images}
    chosen = next(iter(names))
    if len(names) > 1:
        chosen = st.selectbox(
            "Image", list(names), format_func=lambda i: names[i], key=f"{key}.boxes.image"
        )
    _draw_editor(key, chosen, names[chosen], categories, changed)


@st.fragment
def _draw_editor(
    key: str, source_id: str, name: str, categories: Mapping[str, str], changed: Callable[[], None]
) -> None:
    def told(drawn: Drawn) -> None:
        st.session_state[f"{key}.boxes"] = boxes_kept(key) | {source_id: drawn}
        changed()

    try:
        picture = picture_of(source_id, name)
    except InputError as error:
        st.info(escaped(str(error)))
        return
    held = boxes_kept(key).get(source_id, Drawn())
    categories = {**categories, **{b.category: category_words(b.category) for b in held.boxes}}
    box_editor(picture, held, categories, told, key=f"{key}.boxes.editor.{source_id}", name=name)
