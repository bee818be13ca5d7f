"""Pieces of text with the rectangles around them, on a page or in a picture, y downwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from core.documents.draft import Content, Piece, Place
from core.records import BlockKind, Box


class TextBox(NamedTuple):
    """A piece of text and the upright rectangle around it. `score` in [0, 1] is OCR's."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0
    bold: bool = False

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top

    @property
    def x(self) -> float:
        """The centre, horizontally."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The centre, vertically."""
        return (self.top + self.bottom) / 2


@dataclass(frozen=True)
class PictureText:
    """All text that OCR read in a picture of `width` x `height` pixels.

    Where the picture had to be turned clockwise by `turned` degrees to be read, places and size
    are those of the turned picture; `box` gives them in the picture as it is. `unread` counts
    places that look like text and could not be read.
    """

    items: tuple[TextBox, ...]
    width: int
    height: int
    unread: int = 0
    turned: int = 0

    def box(self, item: TextBox) -> Box:
        """The item's place as shares of the picture before it was turned."""
        left, right = (share(x, self.width) for x in (item.left, item.right))
        top, bottom = (share(y, self.height) for y in (item.top, item.bottom))
        if self.turned == 90:
            return Box(top, 1 - right, bottom, 1 - left)
        if self.turned == 180:
            return Box(1 - right, 1 - bottom, 1 - left, 1 - top)
        if self.turned == 270:
            return Box(1 - bottom, left, 1 - top, right)
        return Box(left, top, right, bottom)


class Part(NamedTuple):
    """Some characters of a block; `box` is None for what only joins the others."""

    text: str
    box: TextBox | None = None


@dataclass(frozen=True)
class PlacedBlock:
    """A block whose parts know where they were seen."""

    kind: BlockKind | None
    parts: tuple[Part, ...]
    level: int = 0

    @property
    def text(self) -> str:
        """The block's characters."""
        return "".join(part.text for part in self.parts)

    def content(self, place: Callable[[TextBox], Place]) -> Content:
        """The block with places on a page."""
        pieces = (Piece(part.text, place(part.box) if part.box else None) for part in self.parts)
        return Content(self.kind, tuple(pieces), self.level)


def share(place: float, size: float) -> float:
    """A coordinate as a share of the size, between 0 and 1."""
    return min(max(place / size, 0.0), 1.0) if size else 0.0


def usual_height(items: Sequence[TextBox]) -> float:
    """The median height of the items; 1 when there are none."""
    return median(item.height for item in items) if items else 1.0


def around(items: Iterable[TextBox], text: str) -> TextBox:
    """The rectangle around all items, with that text."""
    lefts, tops, rights, bottoms, scores = zip(
        *((i.left, i.top, i.right, i.bottom, i.score) for i in items), strict=True
    )
    return TextBox(text, min(lefts), min(tops), max(rights), max(bottoms), min(scores))


def rows_of(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """The items in rows from top to bottom, each row from left to right.

    An item joins the row whose items' centres it overlaps by half its height.
    """
    rows: list[list[TextBox]] = []
    total = height = 0.0  # of the last row: the sum of its centres, and how high its first item is
    for y, item in sorted(((item[2] + item[4]) / 2, item) for item in items):
        own = item[4] - item[2]
        if rows and y - total / len(rows[-1]) < 0.5 * min(own, height):
            rows[-1].append(item)
            total += y
        else:
            rows.append([item])
            total, height = y, own
    return [sorted(row, key=itemgetter(1)) if len(row) > 1 else row for row in rows]


def split_box(item: TextBox, parts: Sequence[str]) -> list[TextBox]:
    """The item cut into the parts of its text, each given its share of the width."""
    cut: list[TextBox] = []
    place = 0
    for part in parts:
        start = item.text.index(part, place)
        place = start + len(part)
        left, right = (item.left + item.width * at / len(item.text) for at in (start, place))
        cut.append(item._replace(text=part, left=left, right=right))
    return cut
