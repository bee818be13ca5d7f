"""PDF documents, page by page: their text layer, or OCR where there is none."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pypdfium2
import pypdfium2.raw

from core.documents.draft import BlockContent, Draft, ReadRequest, shown
from core.documents.pdf_layout import pages_as_blocks, plain_title
from core.documents.pdf_text import (
    PdfPage,
    TextLine,
    is_marked_script,
    plain_page,
    read_page,
    second_reader,
)
from core.documents.readers import plain_blocks
from core.documents.segmentation import is_ended, joined_lines, words_in
from core.runtime.errors import InputError
from core.schema.records import Source

if TYPE_CHECKING:
    from PIL import Image

OCR_SCALE = 200 / 72
OCR_PIXELS = 12_000_000
FEW_LETTERS = 60
PICTURE_SHARE = 0.5
NOTED_PICTURE_SHARE = 0.15
MOST_BOOKMARKS = 1000
SHORT = 60
END_WITHIN = 8192
AGAIN = "open it in a PDF viewer, print or save it as PDF and add it again"


def read_pdf(request: ReadRequest) -> Source:
    """PDF documents.

    Raises InputError: it is encrypted, damaged, or has too many pages or too much text.
    """
    try:
        document = open_pdf(request.name, request.data)
    except pypdfium2.PdfiumError:
        return _read_by_pypdf(request)
    with document:
        _check_pages(request, len(document))
        return _Reading(request, document).whole()


def open_pdf(name: str, data: bytes) -> Any:
    """The document with its forms filled in as they are shown.

    Raises InputError: it wants a password; pypdfium2.PdfiumError: it is no PDF that PDFium can
    open.
    """
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise InputError(
                f"{shown(name)} is protected by a password; save a copy without one and add that."
            ) from error
        raise
    if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
        document.init_forms()
    return document


def load_page(document: Any, index: int) -> Any:
    """A page; what is filled into its form becomes part of its text."""
    page = document[index]
    if document.formenv is not None:
        page.flatten()
        page.close()
        page = document[index]
    return page


def _check_pages(request: ReadRequest, pages: int) -> None:
    most = request.settings.pages
    if pages > most:
        raise InputError(
            f"{request.file} has {pages:,} pages; at most {most:,} are read. Split it, or raise "
            "“Most pages” in Settings."
        )
    if not pages:
        raise InputError(f"{request.file} has no pages; {AGAIN}.")


@dataclass
class _Reading:
    """One document while it is read: its text layer first, then OCR where that is missing."""

    request: ReadRequest
    document: Any
    pages: list[PdfPage] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)
    pictured: list[int] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)

    def whole(self) -> Source:
        self._read_layers()
        draft = Draft(self.request)
        most = self.request.settings.ocr_pages
        wanted, beyond = self.scanned[:most], self.scanned[most:]
        late = [index for index in wanted if not self._read_picture(draft, index, wanted)]
        write_pages(draft, self.pages, self._bookmarks())
        self._note_gaps(draft, beyond, late)
        return draft.finish()

    def _read_layers(self) -> None:
        count = len(self.document)
        second = second_reader(self.request.data)
        for index in range(count):
            self.request.report(index, count, f"page {index + 1} of {count}")
            try:
                page = load_page(self.document, index)
                found = read_page(page, index, second)
                page.close()
            except pypdfium2.PdfiumError:
                self.broken.append(index)
                self.pages.append(plain_page(index + 1, second(index)))
                continue
            if _is_scan(found):
                self.scanned.append(index)
            elif found.picture_share >= NOTED_PICTURE_SHARE:
                self.pictured.append(index)
            if found.is_garbage:
                found.lines, found.layer = [], ""
            self.pages.append(found)

    def _read_picture(self, draft: Draft, index: int, wanted: Sequence[int]) -> bool:
        from core.documents.images import read_picture_text, remark_on

        if not self.request.has_time:
            return False
        done = wanted.index(index)
        self.request.report(
            done,
            len(wanted),
            f"page {index + 1} is a picture, reading it ({done + 1} of {len(wanted)})",
        )
        found = read_picture_text(self._rendered(index))
        page = self.pages[index]
        if sum(len(item.text) for item in found.items) >= len(page.layer.strip()):
            lines = [TextLine((item,), (item,), item) for item in found.items]
            self.pages[index] = PdfPage(index + 1, found.width, found.height, lines, picture=found)
            if remark := remark_on(found):
                draft.note(f"Page {index + 1}: {remark}")
        return True

    def _bookmarks(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with contextlib.suppress(pypdfium2.PdfiumError, ValueError):
            for item in itertools.islice(self.document.get_toc(max_depth=6), MOST_BOOKMARKS):
                found.setdefault(plain_title(item.get_title()), item.level + 1)
        return found

    def _rendered(self, index: int) -> Image.Image:
        page = load_page(self.document, index)
        try:
            width, height = page.get_size()
            scale = min(OCR_SCALE, math.sqrt(OCR_PIXELS / max(1.0, width * height)))
            image: Image.Image = page.render(scale=scale).to_pil().convert("RGB")
            return image
        finally:
            page.close()

    def _note_gaps(self, draft: Draft, beyond: Sequence[int], late: Sequence[int]) -> None:
        """Say what is not in the text."""
        settings = self.request.settings
        if beyond:
            draft.note(
                f"{_pages(beyond)} without text not read: OCR reads at most "
                f"{settings.ocr_pages} pages (“Most pages read by OCR” in Settings)."
            )
        if late:
            draft.note(
                f"{_pages(late)} without text not read: the time for reading "
                f"({settings.reading_seconds} s, “Longest reading time” in Settings) was over."
            )
        if self.pictured:
            draft.note(
                f"{_pages(self.pictured)} with pictures: text and charts in them were not read; "
                "their values cannot be checked here."
            )
        if charts := [n for n, page in enumerate(self.pages) if page.has_unread_chart]:
            draft.note(f"{_pages(charts)} with a chart: its values cannot be read here.")
        if self.broken:
            draft.note(f"{_pages(self.broken)} damaged: what could be recovered was read.")
        if any(is_marked_script(page.layer) for page in self.pages):
            draft.note(
                "PDFs often misplace marks of this script; a .docx or .txt copy reads better."
            )
        if b"%%EOF" not in self.request.data[-END_WITHIN:]:
            draft.note("The file lacks its end; pages may be missing.")
        if not draft.length and not self.scanned:
            draft.note("There is no text in this document.")


def _pages(indexes: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(index + 1 for index in indexes):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"Page {named}" if len(indexes) == 1 else f"Pages {named}"


def _is_scan(page: PdfPage) -> bool:
    """True when the page shows something and its text layer says (nearly) nothing of it."""
    letters = len("".join(page.layer.split()))
    if letters == 0:
        return page.objects > 0
    return page.is_garbage or (letters < FEW_LETTERS and page.picture_share >= PICTURE_SHARE)


def write_pages(draft: Draft, pages: Sequence[PdfPage], bookmarks: Mapping[str, int]) -> None:
    """Add the pages' blocks to the draft; a paragraph that goes on over a page's end is one."""
    known = words_in(page.layer for page in pages)
    blocks = pages_as_blocks(pages, bookmarks, known)
    for before, after in itertools.pairwise(blocks):
        _move_notes(before, after)
    writer = _PageWriter(draft, pages, known)
    for page, own, after in zip(pages, blocks, [*blocks[1:], []], strict=True):
        for content in plain_blocks(page.fallback, known):
            writer.add(page, content)
        for block in own:
            goes_on = block is own[-1] and bool(after) and _goes_on(block, after[0])
            writer.add(page, block, goes_on=goes_on)
    writer.close()


class _PageWriter:
    def __init__(self, draft: Draft, pages: Sequence[PdfPage], known: frozenset[str]) -> None:
        self._draft, self._pages, self._known = draft, pages, known
        self._page = 0  # how many pages are closed
        self._start: int | None = None  # where the current page began
        self._open: list[tuple[PdfPage, BlockContent]] = []

    def add(self, page: PdfPage, content: BlockContent, *, goes_on: bool = False) -> None:
        if content.text.strip():
            self._open.append((page, content))
        if self._open and not goes_on:
            self._write()

    def _write(self) -> None:
        page, first = self._open[0]
        self._close_pages(page.number - 1)
        self._draft.separate(first.kind)
        start = self._draft.length
        self._start = start if self._start is None else self._start
        for number, (page, content) in enumerate(self._open, start=1):
            *pieces, last = content.pieces
            turned, following = self._open[number] if number < len(self._open) else (None, None)
            text, by = last.text, ""
            if following:
                text, by = joined_lines(last.text, following.text, self._known)
            for piece in (*pieces, last._replace(text=text)):
                self._draft.add_piece(piece, page.number, page.box)
            if turned:
                self._close_pages(turned.number - 1)
                self._draft.add(by)
                self._start = self._draft.length if self._start is None else self._start
        self._draft.close_block(first, start)
        self._open = []

    def _close_pages(self, end: int) -> None:
        while self._page < end:
            page = self._pages[self._page]
            start = self._draft.length if self._start is None else self._start
            self._draft.add_page(page.number, start, "ocr" if page.picture else "text")
            self._page, self._start = self._page + 1, None

    def close(self) -> None:
        self._close_pages(len(self._pages))


def _goes_on(block: BlockContent, following: BlockContent) -> bool:
    if block.kind not in ("paragraph", "list item") or following.kind != "paragraph":
        return False
    return not is_ended(block.text) and (following.text[:1].islower() or len(block.text) > SHORT)


def _move_notes(before: list[BlockContent], after: Sequence[BlockContent]) -> None:
    last = next((n for n in reversed(range(len(before))) if before[n].kind != "footnote"), None)
    if last is not None and after and _goes_on(before[last], after[0]):
        before.append(before.pop(last))


def _read_by_pypdf(request: ReadRequest) -> Source:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    from pypdf import PdfReader

    try:
        reader = PdfReader(io.BytesIO(request.data))
        count = len(reader.pages)
        _check_pages(request, count)
        texts = [page.extract_text() for page in reader.pages]
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{request.file} could not be read as a PDF: it is damaged or cut off; {AGAIN}."
        ) from error
    draft = Draft(request)
    pages = [plain_page(n, text.strip("\n")) for n, text in enumerate(texts, 1)]
    write_pages(draft, pages, {})
    draft.note("The file is damaged; what could be recovered was read, and parts may be missing.")
    return draft.finish()
