"""A source's text while a reader puts it together, so that every offset is exact by construction.

A reader gives blocks of pieces: what each block is (a paragraph, a row of a table, a heading) and,
where it was seen on a page, the place of each piece. Offsets are half-open and count code points
of the text that `finish` returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from core.documents.request import ReadRequest
from core.errors import InputError
from core.records import Block, BlockKind, Box, BoxedText, Page, Reading, Source

# SQLite ends text at NUL in length() and substr(), and UTF-8 has no place for half a surrogate
# pair; damaged PDFs yield both.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
BETWEEN_BLOCKS = "\n\n"
BETWEEN_ROWS = "\n"
IN_ROWS = frozenset({"table row", "chart label"})


def storable(text: str) -> str:
    """The text with what no database can keep replaced, character for character."""
    if not UNSTORABLE.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\x00", UNKNOWN)


class Place(NamedTuple):
    """Where on which page some characters were seen, and how surely."""

    page: int
    box: Box
    score: float = 1.0


class Piece(NamedTuple):
    """Some characters of a block; `place` is None for what only joins the others."""

    text: str
    place: Place | None = None


@dataclass(frozen=True)
class Content:
    """A block before it has offsets; `kind` is None for text that nobody is handed."""

    kind: BlockKind | None
    pieces: tuple[Piece, ...]
    level: int = 0

    @property
    def text(self) -> str:
        """The block's characters."""
        return "".join(piece.text for piece in self.pieces)


def content(kind: BlockKind | None, text: str, level: int = 0) -> Content:
    """A block of one piece, without a place."""
    return Content(kind, (Piece(text),), level)


class Draft:
    """Text, blocks, pages, boxes and notes of one source, growing."""

    def __init__(self, request: ReadRequest) -> None:
        self._request = request
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._pages: list[Page] = []
        self._boxes: list[BoxedText] = []
        self._notes: list[str] = []
        self._last: BlockKind | None = None
        self.length = 0

    def add(self, text: str) -> tuple[int, int]:
        """Append the text and return its `[start, end)`.

        Raises:
            InputError: the source holds more characters than the settings allow.
        """
        kept = storable(text)
        start, self.length = self.length, self.length + len(kept)
        most = self._request.settings.source_characters
        if self.length > most:
            raise InputError(
                f"{self._request.file} holds more than {most:,} characters of text, the most that "
                "is read; split it, or raise “Most text in one source” in Settings."
            )
        self._parts.append(kept)
        return start, self.length

    def separate(self, kind: BlockKind | None) -> None:
        """Append what stands before a block of that kind; nothing at the beginning."""
        if self.length:
            are_rows = kind in IN_ROWS and self._last in IN_ROWS
            self.add(BETWEEN_ROWS if are_rows else BETWEEN_BLOCKS)

    def add_block(self, block: Content) -> None:
        """Append a block after what stands between blocks; one without any text is left out."""
        if not block.text.strip():
            return
        self.separate(block.kind)
        start = self.length
        for piece in block.pieces:
            self.add_piece(piece)
        self.close_block(block, start)

    def add_blocks(self, blocks: Iterable[Content]) -> None:
        """Append the blocks in order."""
        for block in blocks:
            self.add_block(block)

    def add_piece(self, piece: Piece) -> None:
        """Append a piece of a block together with its place."""
        start, end = self.add(piece.text)
        if piece.place and end > start:
            page, box, score = piece.place
            self._boxes.append(BoxedText(start, end, page, box, score))

    def close_block(self, block: Content, start: int) -> None:
        """Keep that a block began at `start` and ends here."""
        self._last = block.kind
        if block.kind is not None:
            self._blocks.append(Block(block.kind, start, self.length, block.level))

    def mark(self, block: Block) -> None:
        """Keep a block of text that was added as it stood."""
        self._blocks.append(block)

    def add_page(self, number: int, start: int, reading: Reading) -> None:
        """Close the page that began at `start`."""
        self._pages.append(Page(number, start, self.length, reading))

    def note(self, text: str) -> None:
        """Keep a remark for the person: one sentence."""
        if text not in self._notes:
            self._notes.append(text)

    def finish(self, *, width: int = 0, height: int = 0) -> Source:
        """The source as it was read; its language is found out later."""
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
