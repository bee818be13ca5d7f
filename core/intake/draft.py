"""A source's text while a reader puts it together, so that every offset is exact by construction.

Offsets are half-open and count code points of the text that `finish` returns.
"""

from __future__ import annotations

import re

from core.errors import InputError
from core.intake.request import ReadRequest
from core.records import Box, BoxedText, Page, Reading, Source

# SQLite ends text at NUL in length() and substr(), and UTF-8 has no place for half a surrogate
# pair; damaged PDFs yield both.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text with what no database can keep replaced, character for character."""
    if not UNSTORABLE.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\x00", UNKNOWN)


class Draft:
    """Text, pages, boxes and notes of one source, growing."""

    def __init__(self, request: ReadRequest) -> None:
        self._request = request
        self._parts: list[str] = []
        self._pages: list[Page] = []
        self._boxes: list[BoxedText] = []
        self._notes: list[str] = []
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

    def add_blocks(self, blocks: list[str], between: str) -> None:
        """Append the texts with `between` standing between them."""
        for block in blocks:
            if self.length:
                self.add(between)
            self.add(block)

    def add_seen(self, text: str, page: int, box: Box, score: float) -> None:
        """Append a text together with where on the page it was seen."""
        start, end = self.add(text)
        if end > start:
            self._boxes.append(BoxedText(start, end, page, box, score))

    def add_page(self, number: int, start: int, reading: Reading) -> None:
        """Close the page that began at `start`."""
        self._pages.append(Page(number, start, self.length, reading))

    def note(self, text: str) -> None:
        """Keep a remark for the person: one sentence."""
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
        )
