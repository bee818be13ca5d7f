"""Reads PDF documents page by page: their text layer, or OCR if there is none."""

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

from core.documents.pdf_layout import build_page_blocks, normalize_title
from core.documents.pdf_text import (
    PdfPage,
    TextLine,
    build_plain_page,
    is_marked_script,
    make_pypdf_reader,
    read_page,
)
from core.documents.readers import build_plain_blocks
from core.documents.segmentation import collect_words, is_ended, join_lines
from core.documents.source_builder import (
    STRUCK_TEXT_NOTE,
    BlockContent,
    ReadRequest,
    SourceBuilder,
    format_file_name,
)
from core.runtime.errors import InputError
from core.schema.records import Source

if TYPE_CHECKING:
    from PIL import Image

OCR_SCALE = 200 / 72
OCR_PIXELS = 12_000_000
MIN_LAYER_LETTERS = 60
MIN_SCAN_PICTURE_SHARE = 0.5
MIN_NOTED_PICTURE_SHARE = 0.15
MAX_BOOKMARKS = 1000
MIN_UNFINISHED_LETTERS = 60
END_SEARCH_BYTES = 8192
PRINT_AGAIN_ADVICE = "open it in a PDF viewer, print or save it as PDF and add it again"


def read_pdf(request: ReadRequest) -> Source:
    """Read a PDF document.

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
    """Return the document with its forms filled in as shown.

    Raises InputError: it needs a password; pypdfium2.PdfiumError: PDFium cannot open it as a PDF.
    """
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise InputError(
                f"{format_file_name(name)} is protected by a password; save a copy without one "
                f"and add that."
            ) from error
        raise
    if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
        document.init_forms()
    return document


def load_page(document: Any, index: int) -> Any:
    """Return a page; what is filled into its form becomes part of its text."""
    page = document[index]
    if document.formenv is not None:
        page.flatten()
        page.close()
        page = document[index]
    return page


def _check_pages(request: ReadRequest, pages: int) -> None:
    limit = request.settings.pages
    if pages > limit:
        raise InputError(
            f"{request.file} has {pages:,} pages; at most {limit:,} are read. Split it, or raise "
            "“Most pages” in Settings."
        )
    if not pages:
        raise InputError(f"{request.file} has no pages; {PRINT_AGAIN_ADVICE}.")


@dataclass
class _Reading:
    """Reads one document: its text layer first, then OCR for the pages without one."""

    request: ReadRequest
    document: Any
    pages: list[PdfPage] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)
    pictured: list[int] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)

    def whole(self) -> Source:
        self._read_layers()
        draft = SourceBuilder(self.request)
        limit = self.request.settings.ocr_pages
        scans, beyond = self.scanned[:limit], self.scanned[limit:]
        unread = [index for index in scans if not self._read_picture(draft, index, scans)]
        write_pages(draft, self.pages, self._bookmarks())
        self._note_gaps(draft, beyond, unread)
        return draft.finish()

    def _read_layers(self) -> None:
        count = len(self.document)
        read_with_pypdf = make_pypdf_reader(self.request.data)
        for index in range(count):
            self.request.report(index, count, f"page {index + 1} of {count}")
            try:
                page = load_page(self.document, index)
                pdf_page = read_page(page, index, read_with_pypdf)
                page.close()
            except pypdfium2.PdfiumError:
                self.broken.append(index)
                self.pages.append(build_plain_page(index + 1, read_with_pypdf(index)))
                continue
            if _is_scan(pdf_page):
                self.scanned.append(index)
            elif pdf_page.picture_share >= MIN_NOTED_PICTURE_SHARE:
                self.pictured.append(index)
            if pdf_page.is_garbage:
                pdf_page.lines, pdf_page.layer = [], ""
            self.pages.append(pdf_page)

    def _read_picture(self, draft: SourceBuilder, index: int, indexes: Sequence[int]) -> bool:
        from core.documents.images import describe_ocr_gaps, read_picture_text

        if not self.request.has_time:
            return False
        done = indexes.index(index)
        self.request.report(
            done,
            len(indexes),
            f"page {index + 1} is a picture, reading it ({done + 1} of {len(indexes)})",
        )
        picture_text = read_picture_text(self._rendered(index))
        page = self.pages[index]
        if sum(len(item.text) for item in picture_text.items) >= len(page.layer.strip()):
            lines = [TextLine((item,), (item,), item) for item in picture_text.items]
            self.pages[index] = PdfPage(
                index + 1, picture_text.width, picture_text.height, lines, picture=picture_text
            )
            if remark := describe_ocr_gaps(picture_text):
                draft.note(f"Page {index + 1}: {remark}")
        return True

    def _bookmarks(self) -> dict[str, int]:
        levels: dict[str, int] = {}
        with contextlib.suppress(pypdfium2.PdfiumError, ValueError):
            for item in itertools.islice(self.document.get_toc(max_depth=6), MAX_BOOKMARKS):
                levels.setdefault(normalize_title(item.get_title()), item.level + 1)
        return levels

    def _rendered(self, index: int) -> Image.Image:
        page = load_page(self.document, index)
        try:
            width, height = page.get_size()
            scale = min(OCR_SCALE, math.sqrt(OCR_PIXELS / max(1.0, width * height)))
            image: Image.Image = page.render(scale=scale).to_pil().convert("RGB")
            return image
        finally:
            page.close()

    def _note_gaps(
        self, draft: SourceBuilder, beyond: Sequence[int], unread: Sequence[int]
    ) -> None:
        """Note what is missing from the text."""
        settings = self.request.settings
        if beyond:
            draft.note(
                f"{_list_pages(beyond)} without text not read: OCR reads at most "
                f"{settings.ocr_pages} pages (“Most pages read by OCR” in Settings)."
            )
        if unread:
            draft.note(
                f"{_list_pages(unread)} without text not read: the time for reading "
                f"({settings.reading_seconds} s, “Longest reading time” in Settings) was over."
            )
        if self.pictured:
            draft.note(
                f"{_list_pages(self.pictured)} with pictures: text and charts in them were not "
                "read; their values cannot be checked here."
            )
        if any(page.has_struck_text for page in self.pages):
            draft.note(STRUCK_TEXT_NOTE)
        if charts := [n for n, page in enumerate(self.pages) if page.has_unread_chart]:
            draft.note(f"{_list_pages(charts)} with a chart: its values cannot be read here.")
        if self.broken:
            draft.note(f"{_list_pages(self.broken)} damaged: what could be recovered was read.")
        if any(is_marked_script(page.layer) for page in self.pages):
            draft.note(
                "PDFs often misplace marks of this script; a .docx or .txt copy reads better."
            )
        if b"%%EOF" not in self.request.data[-END_SEARCH_BYTES:]:
            draft.note("The file lacks its end; pages may be missing.")
        if not draft.length and not self.scanned:
            draft.note("There is no text in this document.")


def _list_pages(indexes: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(index + 1 for index in indexes):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    numbers = ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"Page {numbers}" if len(indexes) == 1 else f"Pages {numbers}"


def _is_scan(page: PdfPage) -> bool:
    """Return True if the page shows something that its text layer (nearly) lacks."""
    letters = len("".join(page.layer.split()))
    if letters == 0:  # OCR would read struck text as any other
        return page.objects > 0 and not page.has_struck_text
    return page.is_garbage or (
        letters < MIN_LAYER_LETTERS and page.picture_share >= MIN_SCAN_PICTURE_SHARE
    )


def write_pages(
    draft: SourceBuilder, pages: Sequence[PdfPage], bookmarks: Mapping[str, int]
) -> None:
    """Add the pages' blocks to the draft; a paragraph that continues on the next page stays one."""
    known_words = collect_words(page.layer for page in pages)
    blocks = build_page_blocks(pages, bookmarks, known_words)
    for before, after in itertools.pairwise(blocks):
        _move_footnotes_up(before, after)
    writer = _PageWriter(draft, pages, known_words)
    for page, page_blocks, after in zip(pages, blocks, [*blocks[1:], []], strict=True):
        for content in build_plain_blocks(page.fallback, known_words):
            writer.add(page, content)
        for block in page_blocks:
            is_continued = block is page_blocks[-1] and bool(after) and _continues(block, after[0])
            writer.add(page, block, is_continued=is_continued)
    writer.close()


class _PageWriter:
    """Writes blocks to the draft and closes pages as it passes their ends."""

    def __init__(
        self, draft: SourceBuilder, pages: Sequence[PdfPage], known: frozenset[str]
    ) -> None:
        self._draft, self._pages, self._known = draft, pages, known
        self._page = 0  # how many pages are closed
        self._start: int | None = None  # where the current page began
        self._open: list[tuple[PdfPage, BlockContent]] = []

    def add(self, page: PdfPage, content: BlockContent, *, is_continued: bool = False) -> None:
        if content.text.strip():
            self._open.append((page, content))
        if self._open and not is_continued:
            self._write()

    def _write(self) -> None:
        page, first = self._open[0]
        self._close_pages(page.number - 1)
        self._draft.separate(first.kind)
        start = self._draft.length
        self._start = start if self._start is None else self._start
        for number, (page, content) in enumerate(self._open, start=1):
            *pieces, last = content.pieces
            next_page, following = self._open[number] if number < len(self._open) else (None, None)
            text, by = last.text, ""
            if following:
                text, by = join_lines(last.text, following.text, self._known)
            for piece in (*pieces, last._replace(text=text)):
                self._draft.add_piece(piece, page.number, page.box)
            if next_page:
                self._close_pages(next_page.number - 1)
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


def _continues(block: BlockContent, following: BlockContent) -> bool:
    if block.kind not in ("paragraph", "list item") or following.kind != "paragraph":
        return False
    return not is_ended(block.text) and (
        following.text[:1].islower() or len(block.text) > MIN_UNFINISHED_LETTERS
    )


def _move_footnotes_up(before: list[BlockContent], after: Sequence[BlockContent]) -> None:
    last = next((n for n in reversed(range(len(before))) if before[n].kind != "footnote"), None)
    if last is not None and after and _continues(before[last], after[0]):
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
            f"{request.file} could not be read as a PDF: it is damaged or cut off; "
            f"{PRINT_AGAIN_ADVICE}."
        ) from error
    draft = SourceBuilder(request)
    pages = [build_plain_page(n, text.strip("\n")) for n, text in enumerate(texts, 1)]
    write_pages(draft, pages, {})
    draft.note("The file is damaged; what could be recovered was read, and parts may be missing.")
    return draft.finish()
