"""A piece of text seen in a picture, in the picture's pixels, y downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from core.records import Box


@dataclass(frozen=True)
class Seen:
    """What was read and the upright rectangle around it. `score` in [0, 1]."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0

    @property
    def width(self) -> float:
        """Pixels from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Pixels from top to bottom."""
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
class Look:
    """All that was seen in a picture of `width` x `height` pixels.

    Where the picture had to be turned clockwise by `turned` degrees to be read, places and
    size are those of the turned picture; `box` gives them in the picture as it is.
    """

    seen: tuple[Seen, ...]
    width: int
    height: int
    unread: int = 0
    turned: int = 0

    def box(self, item: Seen) -> Box:
        """The item's place as shares of the picture before it was turned."""
        left, right = (_share(x, self.width) for x in (item.left, item.right))
        top, bottom = (_share(y, self.height) for y in (item.top, item.bottom))
        if self.turned == 90:
            return Box(top, 1 - right, bottom, 1 - left)
        if self.turned == 180:
            return Box(1 - right, 1 - bottom, 1 - left, 1 - top)
        if self.turned == 270:
            return Box(1 - bottom, left, 1 - top, right)
        return Box(left, top, right, bottom)


def _share(place: float, size: int) -> float:
    return min(max(place / size, 0.0), 1.0) if size else 0.0


def usual_height(items: Sequence[Seen]) -> float:
    """The median height of the items in pixels; 1 when there are none."""
    return median(item.height for item in items) if items else 1.0


def rows_of(items: Sequence[Seen]) -> list[list[Seen]]:
    """The items in rows from top to bottom, each row from left to right.

    An item joins the row whose items' centres it overlaps by half its height.
    """
    rows: list[list[Seen]] = []
    for item in sorted(items, key=lambda item: item.y):
        last = rows[-1] if rows else []
        if last and item.y - sum(other.y for other in last) / len(last) < 0.5 * min(
            item.height, usual_height(last)
        ):
            last.append(item)
        else:
            rows.append([item])
    return [sorted(row, key=lambda item: item.left) for row in rows]


def apart(item: Seen, parts: Sequence[str]) -> list[Seen]:
    """The item cut into the parts of its text, each given its share of the width."""
    cut: list[Seen] = []
    place = 0
    for part in parts:
        start = item.text.index(part, place)
        place = start + len(part)
        left, right = (item.left + item.width * at / len(item.text) for at in (start, place))
        cut.append(Seen(part, left, item.top, right, item.bottom, item.score))
    return cut
