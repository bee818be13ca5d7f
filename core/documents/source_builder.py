"""What a document reader receives (`ReadRequest`) and builds (`SourceBuilder`, then `Source`).

Coordinates grow downwards. Offsets are half-open and count code points of `SourceBuilder.finish`'s
text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import (
    BlockKind,
    BoundingBox,
    BoxedText,
    ReadingMethod,
    Source,
    SourceKind,
    SourcePage,
    TextBlock,
)

MAX_NAME_LENGTH = 120
# SQLite ends text at NUL in length() and substr(), and UTF-8 has no place for half a surrogate
# pair; damaged PDFs yield both.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
STRUCK_TEXT_NOTE = "Struck-through text was left out; it supports nothing."
ROW_KINDS = frozenset({"table row", "chart label"})

ProgressCallback = Callable[[int, int, str], None]


def ignore_progress(_done: int, _total: int, _note: str) -> None:
    """Report nothing."""


def format_file_name(name: str) -> str:
    """Return the file name in quotes, on one line and shortened to a readable length."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "the file"
    if len(plain) > MAX_NAME_LENGTH:
        plain = f"{plain[: MAX_NAME_LENGTH - 20]}…{plain[-19:]}"
    return f"“{plain}”"


@dataclass(frozen=True)
class ReadRequest:
    """One file to read; slow extras such as OCR give up at `ends_at` (monotonic seconds)."""

    source_id: str
    name: str
    data: bytes
    kind: SourceKind
    settings: Settings
    report: ProgressCallback = ignore_progress
    ends_at: float = float("inf")

    @property
    def file(self) -> str:
        """Return the file's name as messages show it."""
        return format_file_name(self.name)

    @property
    def has_time(self) -> bool:
        """Return False once the time limit for slow extras is reached."""
        return time.monotonic() < self.ends_at


class TextBox(NamedTuple):
    """A piece of text and its upright bounding rectangle; `score` in [0, 1] is OCR's confidence."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0
    bold: bool = False

    @property
    def width(self) -> float:
        """The width, from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """The height, from top to bottom."""
        return self.bottom - self.top

    @property
    def x(self) -> float:
        """The centre, horizontally."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The centre, vertically."""
        return (self.top + self.bottom) / 2

    def share_of(self, width: float, height: float) -> BoundingBox:
        """Return the rectangle as shares of a page of that size."""
        sizes = (width, height, width, height)
        edges = zip((self.left, self.top, self.right, self.bottom), sizes, strict=True)
        return BoundingBox(*(min(max(at / size, 0.0), 1.0) if size else 0.0 for at, size in edges))


def median_height(items: Sequence[TextBox]) -> float:
    """Return the median height of the items, or 1 if there are none."""
    return median(item.height for item in items) if items else 1.0


def bounding_box(items: Iterable[TextBox], text: str = "") -> TextBox:
    """Return the bounding rectangle of all items, carrying that text."""
    _, lefts, tops, rights, bottoms, scores, _ = zip(*items, strict=True)
    return TextBox(text, min(lefts), min(tops), max(rights), max(bottoms), min(scores))


def group_rows(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """Group the items into rows, top to bottom, and sort each row from left to right.

    An item joins the last row if its centre is less than half a height from that row's mean centre.
    """
    rows: list[list[TextBox]] = []
    total = height = 0.0  # of the last row: the sum of its centres, the height of its first item
    for y, item in sorted(((item[2] + item[4]) / 2, item) for item in items):
        item_height = item[4] - item[2]
        if rows and y - total / len(rows[-1]) < 0.5 * min(item_height, height):
            rows[-1].append(item)
            total += y
        else:
            rows.append([item])
            total, height = y, item_height
    return [sorted(row, key=itemgetter(1)) if len(row) > 1 else row for row in rows]


@dataclass(frozen=True)
class PictureText:
    """All text that OCR read in a picture of `width` x `height` pixels.

    If the picture had to be turned clockwise by `turned` degrees to be read, places and size are
    those of the turned picture; `box` maps them back to the original. `unread` counts places that
    look like text but could not be read.
    """

    items: tuple[TextBox, ...]
    width: int
    height: int
    unread: int = 0
    turned: int = 0

    def box(self, item: TextBox) -> BoundingBox:
        """Return the item's place as shares of the picture before it was turned."""
        box = item.share_of(self.width, self.height)
        left, top, right, bottom = box.left, box.top, box.right, box.bottom
        turned = {
            90: BoundingBox(top, 1 - right, bottom, 1 - left),
            180: BoundingBox(1 - right, 1 - bottom, 1 - left, 1 - top),
            270: BoundingBox(1 - bottom, left, 1 - top, right),
        }
        return turned.get(self.turned, box)


class TextPiece(NamedTuple):
    """Some characters of a block; `box` is None for text that only joins other pieces."""

    text: str
    box: TextBox | None = None


@dataclass(frozen=True)
class BlockContent:
    """A block before it has offsets; `kind` is None for text that is no block of the source."""

    kind: BlockKind | None
    pieces: tuple[TextPiece, ...]
    level: int = 0

    @property
    def text(self) -> str:
        """Return the block's characters."""
        return "".join(piece.text for piece in self.pieces)


def text_block(kind: BlockKind | None, text: str, level: int = 0) -> BlockContent:
    """Return a block of one piece, without a place."""
    return BlockContent(kind, (TextPiece(text),), level)


def join_text_pieces(items: Iterable[TextBox], by: str) -> tuple[TextPiece, ...]:
    """Return the items as pieces, with `by` between them."""
    pieces = [piece for item in items for piece in (TextPiece(by), TextPiece(item.text, item))]
    return tuple(pieces[1:])


def replace_unstorable(text: str) -> str:
    """Replace characters that no database can store by U+FFFD; the length stays the same."""
    if not UNSTORABLE.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\x00", "\N{REPLACEMENT CHARACTER}")


class SourceBuilder:
    """Collects the text, blocks, pages, boxes and notes of one source while it is read."""

    def __init__(self, request: ReadRequest) -> None:
        self._request = request
        self._parts: list[str] = []
        self._blocks: list[TextBlock] = []
        self._pages: list[SourcePage] = []
        self._boxes: list[BoxedText] = []
        self._notes: list[str] = []
        self._last: BlockKind | None = None
        self.length = 0

    def add(self, text: str) -> None:
        """Append the text.

        Raises InputError: the source holds more characters than the settings allow.
        """
        storable_text = replace_unstorable(text)
        self.length += len(storable_text)
        most = self._request.settings.source_characters
        if self.length > most:
            raise InputError(
                f"{self._request.file} holds more than {most:,} characters of text, the most that "
                "is read; split it, or raise “Most text in one source” in Settings."
            )
        self._parts.append(storable_text)

    def separate(self, kind: BlockKind | None) -> None:
        """Append the separator before a block of that kind; nothing at the beginning."""
        if self.length:
            self.add("\n" if kind in ROW_KINDS and self._last in ROW_KINDS else "\n\n")

    def add_blocks(
        self,
        blocks: Iterable[BlockContent],
        page: int = 1,
        box: Callable[[TextBox], BoundingBox] | None = None,
    ) -> None:
        """Append the blocks in order; `box` maps each piece's place to shares of that page.

        Blocks without visible text are left out.
        """
        for block in blocks:
            if block.text.strip():
                self.separate(block.kind)
                start = self.length
                for piece in block.pieces:
                    self.add_piece(piece, page, box)
                self.close_block(block, start)

    def add_piece(
        self, piece: TextPiece, page: int = 1, box: Callable[[TextBox], BoundingBox] | None = None
    ) -> None:
        """Append a piece of a block together with its place."""
        start = self.length
        self.add(piece.text)
        if piece.box and box and self.length > start:
            seen = BoxedText(start, self.length, page, box(piece.box), piece.box.score)
            self._boxes.append(seen)

    def close_block(self, block: BlockContent, start: int) -> None:
        """Record a block that began at `start` and ends here."""
        self._last = block.kind
        if block.kind is not None:
            self._blocks.append(TextBlock(block.kind, start, self.length, block.level))

    def mark(self, block: TextBlock) -> None:
        """Record a block of text that was added verbatim."""
        self._blocks.append(block)

    def add_source(self, source: Source) -> None:
        """Append the text and blocks of a part that has been read, without its pages and places."""
        self.separate(None)
        start = self.length
        self.add(source.text)
        self._last = None
        for block in source.blocks:
            self.mark(replace(block, start=block.start + start, end=block.end + start))
        for note in source.notes:
            self.note(note)

    def add_page(self, number: int, start: int, reading: ReadingMethod) -> None:
        """Close the page that began at `start`."""
        self._pages.append(SourcePage(number, start, self.length, reading))

    def note(self, text: str) -> None:
        """Add a remark for the person (one sentence); repeats are dropped."""
        if text not in self._notes:
            self._notes.append(text)

    def finish(self, *, width: int = 0, height: int = 0) -> Source:
        """Return the source as read; its language is detected later."""
        return Source(
            id=self._request.source_id,
            name=self._request.name,
            kind=self._request.kind,
            text="".join(self._parts),
            pages=tuple(self._pages),
            boxes=tuple(self._boxes),
            notes=tuple(self._notes),
            width=width,
            height=height,
            blocks=tuple(self._blocks),
        )
