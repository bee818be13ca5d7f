"""What stands in the box editor, and how what a browser says of it is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from core.errors import InputError
from core.records import Box
from core.reviews import ImageBox
from core.store.corrections import LONGEST_COMMENT
from core.store.sqlite import from_plain

Did = Literal["", "draw", "move", "resize", "category", "comment", "remove", "undo", "redo"]
SMALLEST = 0.004  # of a side: anything smaller is a click
ROUNDING = 1e-9
MOST_BOXES = 500


@dataclass(frozen=True)
class DrawnBox:
    """A box as it stands in the editor, with an id that lives as long as the editor."""

    id: str
    box: Box
    category: str
    comment: str = ""


@dataclass(frozen=True)
class Drawn:
    """Everything that stands in the editor; `revision` counts up with each change.

    The boxes stand in the order in which they were drawn, which numbers them from 1; `did` is what
    changed last.
    """

    revision: int = 0
    boxes: tuple[DrawnBox, ...] = ()
    did: Did = ""


# msgspec may crash where two threads are the first to convert the same dataclass.
from_plain(Drawn, {})


def drawn_from(said: object, categories: Collection[str]) -> Drawn:
    """What the browser said, once it fits an image.

    Raises:
        InputError: it has another shape, a box lies outside of the image, is too small or has no
            category of these, a comment is too long or cannot be kept, or two have one id.
    """
    found = from_plain(Drawn, said)
    if len(found.boxes) > MOST_BOXES:
        raise InputError(
            f"Expected at most {MOST_BOXES} boxes on an image, found {len(found.boxes):,}; "
            "remove some of them."
        )
    for number, drawn in enumerate(found.boxes, 1):
        _check(number, drawn, categories)
    if len({drawn.id for drawn in found.boxes}) < len(found.boxes):
        raise InputError("Expected every box once, found one twice; draw this box again.")
    return found


def _check(number: int, drawn: DrawnBox, categories: Collection[str]) -> None:
    box = drawn.box
    for low, high, side in ((box.left, box.right, "width"), (box.top, box.bottom, "height")):
        if not 0.0 <= low <= high <= 1.0:
            raise InputError(
                f"Expected box {number} within the image, found it from {low:.1%} to {high:.1%} "
                f"of the {side}; draw this box again."
            )
        if high - low < SMALLEST - ROUNDING:
            raise InputError(
                f"Expected box {number} to take at least {SMALLEST:.1%} of the {side}, found "
                f"{high - low:.2%}; draw it larger."
            )
    if drawn.category not in categories:
        raise InputError(
            f"Expected one of the categories {', '.join(categories)}, found “{drawn.category}”."
        )
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
    """What stands in the editor over that image, as a correction keeps it."""
    return tuple(ImageBox(source_id, one.box, one.category, one.comment) for one in drawn.boxes)


def drawn_of(boxes: Sequence[ImageBox], source_id: str) -> Drawn:
    """The boxes of that image among what a correction keeps, to stand in the editor again."""
    own = [box for box in boxes if box.source_id == source_id]
    return Drawn(
        boxes=tuple(
            DrawnBox(f"kept.{n}", one.box, one.category, one.comment) for n, one in enumerate(own)
        )
    )
