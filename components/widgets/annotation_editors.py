"""The box editor and the span editor: regions of an image and marks in a text.

Python holds the state: after every change the browser sends the whole list with a revision, which
is accepted only if it fits the image or the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import streamlit as st
from streamlit import runtime

from components.app import state
from components.widgets.controls import component, problem_kept, show_problem
from components.widgets.wording import escaped
from core.documents.library import file_bytes
from core.documents.rendering import Upright, upright_picture
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import Box, Source
from core.schema.reviews import ImageBox, category_words
from core.store.corrections import LONGEST_COMMENT
from core.store.sqlite import from_plain, to_plain

MOST_KEPT = 8  # pictures, of some megabytes each
SMALLEST = 0.004  # of a side; anything smaller is a click
ROUNDING = 1e-9
MOST_BOXES = 500
Words = Mapping[str, str]
Edited = TypeVar("Edited")
Status = Literal["marked", "suggested", "rejected"]
SpanEdit = Literal[
    "", "mark", "category", "resize", "remove", "accept", "reject", "accept_all", "none",
    "not_none", "undo", "redo",
]  # fmt: skip
BoxEdit = Literal["", "draw", "move", "resize", "category", "comment", "remove", "undo", "redo"]


@dataclass(frozen=True)
class Mark:
    """Words `[start, end)` of the text, in code points; `by` suggested them with its `score`."""

    id: str
    start: int
    end: int
    category: str
    by: str = ""
    score: float | None = None
    status: Status = "marked"


@dataclass(frozen=True)
class Marked:
    """The editor's state; `none`: no single word is wrong; `did`: the last change."""

    revision: int = 0
    marks: tuple[Mark, ...] = ()
    none: bool = False
    did: SpanEdit = ""

    @property
    def chosen(self) -> tuple[Mark, ...]:
        """The marks that count, a person's own and accepted ones, in the order of the text."""
        kept = [mark for mark in self.marks if mark.status == "marked"]
        return tuple(sorted(kept, key=lambda mark: (mark.start, mark.end)))


def marked_from(value: object, text: str, categories: Collection[str]) -> Marked:
    """Parse what the browser sent. Raises InputError: it does not fit the text or categories."""
    marked = from_plain(Marked, value)
    for mark in marked.marks:
        if not 0 <= mark.start < mark.end <= len(text):
            raise InputError(
                f"Expected marks within the {len(text):,} characters of the text, found one from "
                f"{mark.start} to {mark.end}; mark these words again."
            )
        if mark.category not in categories:
            known = ", ".join(categories)
            raise InputError(f"Expected one of the categories {known}, found “{mark.category}”.")
    if len({mark.id for mark in marked.marks}) < len(marked.marks):
        raise InputError("Expected every mark once, found one twice; mark these words again.")
    if marked.none and marked.chosen:
        raise InputError(
            "“No single word is wrong” and marked words exclude each other; undo one of them."
        )
    return marked


def _mount(
    name: str,
    data: dict[str, Any],
    categories: Words,
    read: Callable[[object, Collection[str]], Edited],
    on_edit: Callable[[Edited], None],
    *,
    key: str,
    is_locked: bool,
) -> None:
    """Mount an editor: pass what `read` returns to `on_edit`, show an InputError of either."""

    def handle_edit() -> None:
        value = st.session_state[key].get("edit")
        if value is not None and not is_locked:
            with problem_kept(f"{key}.problem"):
                on_edit(read(value, categories))

    choices = [{"id": name, "words": words} for name, words in categories.items()]
    component(name)(
        key=key,
        data=data | {"categories": choices, "locked": is_locked},
        default={"edit": None},
        on_edit_change=handle_edit,
    )
    show_problem(f"{key}.problem")


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
    """Draw the text with its marks; use it in a fragment, since each rerun sends the text."""
    data = asdict(marked) | {"text": text, "language": language, "noneWords": none_words}

    def read(value: object, known: Collection[str]) -> Marked:
        return marked_from(value, text, known)

    _mount("span_editor", data, categories, read, on_edit, key=key, is_locked=is_locked)


def picture_of(source_id: str, name: str) -> Upright:
    """Return the stored image, turned upright. Raises InputError: it is gone or unreadable."""
    data = file_bytes(state.home(), source_id)
    with state.open_store() as store:
        settings = store.projects.settings()
    return _upright(source_id, settings.megapixels, data, name, settings)


# A resource, not data: `Upright` is frozen, so nobody needs a copy of its bytes at each rerun.
@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Drawing the image…")
def _upright(
    source_id: str, megapixels: int, _data: bytes, _name: str, _settings: Settings
) -> Upright:
    return upright_picture(_data, name=_name, settings=_settings)


def address_of(picture: Upright, key: str) -> str:
    """Return the URL from which the browser fetches the picture once, not at every rerun."""
    if not runtime.exists():  # a script run without a server
        return ""
    files = runtime.get_instance().media_file_mgr
    path = files.add(picture.data, picture.media_type, f"box_editor.{key}")
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path


@dataclass(frozen=True)
class DrawnBox:
    """A box in the editor; its id lives as long as the editor."""

    id: str
    box: Box
    category: str
    comment: str = ""


@dataclass(frozen=True)
class Drawn:
    """The editor's state: boxes in the order of drawing; `did` is the last change."""

    revision: int = 0
    boxes: tuple[DrawnBox, ...] = ()
    did: BoxEdit = ""


Boxes = dict[str, Drawn]

# msgspec may crash if two threads are the first to convert the same dataclass.
from_plain(Drawn, {})


def drawn_from(value: object, categories: Collection[str]) -> Drawn:
    """Parse what the browser sent. Raises InputError: it does not fit an image or categories."""
    drawn = from_plain(Drawn, value)
    if len(drawn.boxes) > MOST_BOXES:
        raise InputError(
            f"Expected at most {MOST_BOXES} boxes on an image, found {len(drawn.boxes):,}; "
            "remove some of them."
        )
    for number, box in enumerate(drawn.boxes, 1):
        _validate_box(number, box, categories)
    if len({box.id for box in drawn.boxes}) < len(drawn.boxes):
        raise InputError("Expected every box once, found one twice; draw this box again.")
    return drawn


def _validate_box(number: int, drawn: DrawnBox, categories: Collection[str]) -> None:
    """Raise InputError if the box, counted from 1, lies off the image or is otherwise invalid."""
    box, problem = drawn.box, ""
    for low, high, side in ((box.left, box.right, "width"), (box.top, box.bottom, "height")):
        if not 0.0 <= low <= high <= 1.0:
            problem = (
                f"Expected box {number} within the image, found it from {low:.1%} to {high:.1%} "
                f"of the {side}; draw this box again."
            )
        elif high - low < SMALLEST - ROUNDING:
            problem = (
                f"Expected box {number} to take at least {SMALLEST:.1%} of the {side}, found "
                f"{high - low:.2%}; draw it larger."
            )
        if problem:
            raise InputError(problem)
    if drawn.category not in categories:
        known = ", ".join(categories)
        raise InputError(f"Expected one of the categories {known}, found “{drawn.category}”.")
    if len(drawn.comment) > LONGEST_COMMENT:
        raise InputError(
            f"Expected at most {LONGEST_COMMENT:,} characters in the comment on box {number}, "
            f"found {len(drawn.comment):,}; shorten it."
        )
    try:
        drawn.comment.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The comment on box {number} holds half a character at {error.start + 1}; "
            "delete it and type it again."
        ) from error


def image_boxes(drawn: Drawn, source_id: str) -> tuple[ImageBox, ...]:
    """Return the boxes in the editor of that image, as a correction stores them."""
    return tuple(ImageBox(source_id, box.box, box.category, box.comment) for box in drawn.boxes)


def drawn_of(boxes: Sequence[ImageBox], source_id: str) -> Drawn:
    """Return an editor state with those of a correction's boxes that lie on that image."""
    own = [box for box in boxes if box.source_id == source_id]
    drawn = [DrawnBox(f"kept.{n}", box.box, box.category, box.comment) for n, box in enumerate(own)]
    return Drawn(boxes=tuple(drawn))


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
    """Draw the image with its boxes (shares of width and height); use it in a fragment."""
    data = asdict(drawn) | {
        "address": address_of(picture, key),
        "width": picture.width,
        "height": picture.height,
        "name": name,
        "smallest": SMALLEST,
        "mostBoxes": MOST_BOXES,
        "longestComment": LONGEST_COMMENT,
    }
    _mount("box_editor", data, categories, drawn_from, on_edit, key=key, is_locked=is_locked)


def boxes_kept(key: str) -> Boxes:
    """Return the states of a form's editors by image."""
    boxes: Boxes = st.session_state.get(f"{key}.boxes") or {}
    return boxes


def boxes_of(key: str) -> tuple[ImageBox, ...]:
    """Return all boxes drawn in a form."""
    return _flatten_boxes(boxes_kept(key))


def boxes_to(kept: Boxes) -> Any:
    """Return the boxes as plain values for a draft."""
    return to_plain(_flatten_boxes(kept))


def _flatten_boxes(kept: Boxes) -> tuple[ImageBox, ...]:
    return tuple(box for source_id, drawn in kept.items() for box in image_boxes(drawn, source_id))


def boxes_from(draft: object) -> Boxes:
    """Return the boxes of a draft; none if they cannot be read."""
    try:
        return boxes_again(from_plain(tuple[ImageBox, ...], draft or []))
    except InputError:
        return {}


def boxes_again(boxes: Sequence[ImageBox]) -> Boxes:
    """Return editor states by image for saved boxes."""
    return {source_id: drawn_of(boxes, source_id) for source_id in {b.source_id for b in boxes}}


def draw_box_fields(
    key: str, images: Sequence[Source], categories: Mapping[str, str], changed: Callable[[], None]
) -> None:
    """Draw a choice of image and its editor; `changed` is called to store the draft."""
    names = {image.id: image.name for image in images}
    chosen = next(iter(names))
    if len(names) > 1:
        words = names.__getitem__
        chosen = st.selectbox("Image", list(names), format_func=words, key=f"{key}.boxes.image")
    _draw_editor(key, chosen, names[chosen], categories, changed)


@st.fragment
def _draw_editor(
    key: str, source_id: str, name: str, categories: Mapping[str, str], changed: Callable[[], None]
) -> None:
    def store_edit(drawn: Drawn) -> None:
        st.session_state[f"{key}.boxes"] = boxes_kept(key) | {source_id: drawn}
        changed()

    try:
        picture = picture_of(source_id, name)
    except InputError as error:
        st.info(escaped(str(error)))
        return
    editor = boxes_kept(key).get(source_id, Drawn())
    categories = {**categories, **{b.category: category_words(b.category) for b in editor.boxes}}
    box_editor(
        picture, editor, categories, store_edit, key=f"{key}.boxes.editor.{source_id}", name=name
    )
