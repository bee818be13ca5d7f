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
from components.widgets.controls import get_component, show_problem, store_problem
from components.widgets.wording import LABEL_WORDS, escape_markdown
from core.documents.library import load_file_bytes
from core.documents.rendering import UprightImage, load_upright_image
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import BoundingBox, Label, Source
from core.schema.reviews import ImageBox, format_category
from core.store.corrections import MAX_COMMENT_CHARACTERS
from core.store.sqlite import from_plain, to_plain

MAX_CACHED_PICTURES = 8  # pictures, of some megabytes each
MIN_BOX_SIDE = 0.004  # of a side; anything smaller is a click
ROUNDING_TOLERANCE = 1e-9
MAX_BOXES = 500
EDIT_HANDLERS = "editors"  # by key of an editor on the page, what handles its newest edit
CategoryWords = Mapping[str, str]
EditorState = TypeVar("EditorState")
MarkStatus = Literal["marked", "suggested", "rejected"]
SpanEdit = Literal[
    "", "mark", "category", "resize", "remove", "accept", "reject", "accept_all", "none",
    "not_none", "instead", "label", "save", "undo", "redo",
]  # fmt: skip
BoxEdit = Literal["", "draw", "move", "resize", "category", "comment", "remove", "undo", "redo"]


@dataclass(frozen=True)
class SpanMark:
    """Words `[start, end)` of the text, in code points; `by` suggested them with its `score`.

    `instead` is what they should say; None leaves what a suggestion says.
    """

    id: str
    start: int
    end: int
    category: str
    by: str = ""
    score: float | None = None
    status: MarkStatus = "marked"
    instead: str | None = None


@dataclass(frozen=True)
class SpanEditorState:
    """The editor's state; `none`: no single word is wrong; `did`: the last change.

    `label` is the answer on the whole, where the editor asks for it.
    """

    revision: int = 0
    marks: tuple[SpanMark, ...] = ()
    none: bool = False
    did: SpanEdit = ""
    label: Label | Literal[""] = ""

    @property
    def chosen(self) -> tuple[SpanMark, ...]:
        """The marks that count, a person's own and accepted ones, in the order of the text."""
        kept = [mark for mark in self.marks if mark.status == "marked"]
        return tuple(sorted(kept, key=lambda mark: (mark.start, mark.end)))


def parse_span_editor(value: object, text: str, categories: Collection[str]) -> SpanEditorState:
    """Parse what the browser sent. Raises InputError: it does not fit the text or categories."""
    marked = from_plain(SpanEditorState, value)
    for mark in marked.marks:
        if not 0 <= mark.start < mark.end <= len(text):
            raise InputError(
                f"Expected marks within the {len(text):,} characters of the text, found one from "
                f"{mark.start} to {mark.end}; mark these words again."
            )
        if mark.category not in categories:
            known = ", ".join(categories)
            raise InputError(f"Expected one of the categories {known}, found “{mark.category}”.")
        if len(mark.instead or "") > MAX_COMMENT_CHARACTERS:
            raise InputError(
                f"Expected at most {MAX_COMMENT_CHARACTERS:,} characters for what marked words "
                f"should say, found {len(mark.instead or ''):,}."
            )
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
    categories: CategoryWords,
    read: Callable[[object, Collection[str]], EditorState],
    on_edit: Callable[[EditorState], None],
    *,
    key: str,
    is_locked: bool,
) -> None:
    """Mount an editor: pass what `read` returns to `on_edit`, show an InputError of either."""

    def handle_edit() -> None:
        value = st.session_state[key].get("edit")
        if value is None or is_locked or value == st.session_state.get(f"{key}.handled"):
            return
        st.session_state[f"{key}.handled"] = value
        with store_problem(f"{key}.problem"):
            on_edit(read(value, categories))

    if key not in st.session_state:  # it was not on the page until now
        st.session_state.pop(f"{key}.handled", None)
    known: dict[str, Callable[[], None]] = st.session_state.get(EDIT_HANDLERS, {})
    drawn = {name: handle for name, handle in known.items() if name in st.session_state}
    st.session_state[EDIT_HANDLERS] = drawn | {key: handle_edit}

    choices = [{"id": name, "words": words} for name, words in categories.items()]
    get_component(name)(
        key=key,
        data=data | {"key": key, "categories": choices, "locked": is_locked},
        default={"edit": None},
        on_edit_change=handle_edit,
    )
    show_problem(f"{key}.problem")


def take_unread_edits(prefix: str) -> None:
    """Handle edits in editors whose keys begin so, before what a button does.

    Where the browser sends both at once, Streamlit calls the button first.
    """
    handlers: dict[str, Callable[[], None]] = st.session_state.get(EDIT_HANDLERS, {})
    for key, handle_edit in handlers.items():
        if key.startswith(prefix) and st.session_state.get(key):
            handle_edit()


def draw_span_editor(
    text: str,
    marked: SpanEditorState,
    categories: CategoryWords,
    on_edit: Callable[[SpanEditorState], None],
    *,
    key: str,
    language: str = "",
    none_words: str = "",
    instead_words: str = "",
    labels: Sequence[Label] = (),
    likely: tuple[int, int] | None = None,
    seconds: float = 0.0,
    is_locked: bool = False,
) -> None:
    """Draw the text with its marks; use it in a fragment, since each rerun sends the text.

    With `instead_words` each mark has a field, named so, for what its words should say. With
    `labels` it is the page's editor: it has the focus, the keys s, h and u answer the whole, and
    Ctrl+Enter asks to save; `likely` are the words to begin with once it is said to be wrong,
    `seconds` what its clock begins with.
    """
    data = asdict(marked) | {
        "text": text,
        "language": language,
        "noneWords": none_words,
        "insteadWords": instead_words,
        "longestInstead": MAX_COMMENT_CHARACTERS,
        "labels": [{"id": label, "words": LABEL_WORDS[label]} for label in labels],
        "likely": likely,
        "seconds": seconds,
    }

    def read(value: object, known: Collection[str]) -> SpanEditorState:
        return parse_span_editor(value, text, known)

    _mount("span_editor", data, categories, read, on_edit, key=key, is_locked=is_locked)


def load_picture(source_id: str, name: str) -> UprightImage:
    """Return the stored image, turned upright. Raises InputError: it is gone or unreadable."""
    data = load_file_bytes(state.home_folder(), source_id)
    with state.open_store() as store:
        settings = store.projects.settings()
    return _upright(source_id, settings.megapixels, data, name, settings)


# A resource, not data: `UprightImage` is frozen, so nobody needs a copy of its bytes at each rerun.
@st.cache_resource(max_entries=MAX_CACHED_PICTURES, show_spinner="Drawing the image…")
def _upright(
    source_id: str, megapixels: int, _data: bytes, _name: str, _settings: Settings
) -> UprightImage:
    return load_upright_image(_data, name=_name, settings=_settings)


def serve_picture(data: bytes, media_type: str, key: str) -> str:
    """Return the URL from which the browser fetches the picture once, not at every rerun."""
    if not runtime.exists():  # a script run without a server
        return ""
    files = runtime.get_instance().media_file_mgr
    path = files.add(data, media_type, key)
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path


@dataclass(frozen=True)
class DrawnBox:
    """A box in the editor; its id lives as long as the editor."""

    id: str
    box: BoundingBox
    category: str
    comment: str = ""


@dataclass(frozen=True)
class BoxEditorState:
    """The editor's state: boxes in the order of drawing; `did` is the last change."""

    revision: int = 0
    boxes: tuple[DrawnBox, ...] = ()
    did: BoxEdit = ""


BoxEditorStates = dict[str, BoxEditorState]

# msgspec may crash if two threads are the first to convert the same dataclass.
from_plain(BoxEditorState, {})


def parse_box_editor(value: object, categories: Collection[str]) -> BoxEditorState:
    """Parse what the browser sent. Raises InputError: it does not fit an image or categories."""
    drawn = from_plain(BoxEditorState, value)
    if len(drawn.boxes) > MAX_BOXES:
        raise InputError(
            f"Expected at most {MAX_BOXES} boxes on an image, found {len(drawn.boxes):,}; "
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
        elif high - low < MIN_BOX_SIDE - ROUNDING_TOLERANCE:
            problem = (
                f"Expected box {number} to take at least {MIN_BOX_SIDE:.1%} of the {side}, found "
                f"{high - low:.2%}; draw it larger."
            )
        if problem:
            raise InputError(problem)
    if drawn.category not in categories:
        known = ", ".join(categories)
        raise InputError(f"Expected one of the categories {known}, found “{drawn.category}”.")
    if len(drawn.comment) > MAX_COMMENT_CHARACTERS:
        raise InputError(
            f"Expected at most {MAX_COMMENT_CHARACTERS:,} characters in the comment on box "
            f"{number}, "
            f"found {len(drawn.comment):,}; shorten it."
        )
    try:
        drawn.comment.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The comment on box {number} holds half a character at {error.start + 1}; "
            "delete it and type it again."
        ) from error


def to_image_boxes(drawn: BoxEditorState, source_id: str) -> tuple[ImageBox, ...]:
    """Return the boxes in the editor of that image, as a correction stores them."""
    return tuple(ImageBox(source_id, box.box, box.category, box.comment) for box in drawn.boxes)


def select_boxes(boxes: Sequence[ImageBox], source_id: str) -> BoxEditorState:
    """Return an editor state with those of a correction's boxes that lie on that image."""
    own = [box for box in boxes if box.source_id == source_id]
    drawn = [DrawnBox(f"kept.{n}", box.box, box.category, box.comment) for n, box in enumerate(own)]
    return BoxEditorState(boxes=tuple(drawn))


def draw_box_editor(
    picture: UprightImage,
    drawn: BoxEditorState,
    categories: CategoryWords,
    on_edit: Callable[[BoxEditorState], None],
    *,
    key: str,
    name: str,
    is_locked: bool = False,
) -> None:
    """Draw the image with its boxes (shares of width and height); use it in a fragment."""
    data = asdict(drawn) | {
        "address": serve_picture(picture.data, picture.media_type, key),
        "width": picture.width,
        "height": picture.height,
        "name": name,
        "smallest": MIN_BOX_SIDE,
        "mostBoxes": MAX_BOXES,
        "longestComment": MAX_COMMENT_CHARACTERS,
    }
    _mount("box_editor", data, categories, parse_box_editor, on_edit, key=key, is_locked=is_locked)


def get_box_editors(key: str) -> BoxEditorStates:
    """Return the states of a form's editors by image."""
    boxes: BoxEditorStates = st.session_state.get(f"{key}.boxes") or {}
    return boxes


def list_drawn_boxes(key: str) -> tuple[ImageBox, ...]:
    """Return all boxes drawn in a form."""
    return _flatten_boxes(get_box_editors(key))


def encode_boxes(kept: BoxEditorStates) -> Any:
    """Return the boxes as plain values for a draft."""
    return to_plain(_flatten_boxes(kept))


def _flatten_boxes(kept: BoxEditorStates) -> tuple[ImageBox, ...]:
    return tuple(
        box for source_id, drawn in kept.items() for box in to_image_boxes(drawn, source_id)
    )


def decode_boxes(draft: object) -> BoxEditorStates:
    """Return the boxes of a draft; none if they cannot be read."""
    try:
        return group_boxes_by_image(from_plain(tuple[ImageBox, ...], draft or []))
    except InputError:
        return {}


def group_boxes_by_image(boxes: Sequence[ImageBox]) -> BoxEditorStates:
    """Return editor states by image for saved boxes."""
    return {source_id: select_boxes(boxes, source_id) for source_id in {b.source_id for b in boxes}}


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
    def store_edit(drawn: BoxEditorState) -> None:
        st.session_state[f"{key}.boxes"] = get_box_editors(key) | {source_id: drawn}
        changed()

    try:
        picture = load_picture(source_id, name)
    except InputError as error:
        st.info(escape_markdown(str(error)))
        return
    editor = get_box_editors(key).get(source_id, BoxEditorState())
    categories = {**categories, **{b.category: format_category(b.category) for b in editor.boxes}}
    draw_box_editor(
        picture, editor, categories, store_edit, key=f"{key}.boxes.editor.{source_id}", name=name
    )
