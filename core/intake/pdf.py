"""PDF documents, page by page: their text layer, or OCR where there is none."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pypdfium2
import pypdfium2.raw
from PIL import Image

from core.errors import InputError
from core.intake.draft import Draft
from core.intake.images import remark_on
from core.intake.lines import mended, words_in
from core.intake.pdf_text import is_garbage, is_marked_script, page_text, second_reader
from core.intake.request import ReadRequest, shown
from core.records import Source

OCR_SCALE = 200 / 72
OCR_PIXELS = 12_000_000
FEW_LETTERS = 60
PICTURE_SHARE = 0.5
NOTED_PICTURE_SHARE = 0.15
BETWEEN = "\n\n"
END_WITHIN = 8192
AGAIN = "open it in a PDF viewer, print or save it as PDF and add it again"


def read_pdf(request: ReadRequest) -> Source:
    """PDF documents.

    Raises:
        InputError: it is encrypted, damaged, or has too many pages or too much text.
    """
    try:
        document = open_pdf(request.name, request.data)
    except pypdfium2.PdfiumError as error:
        return _read_by_pypdf(request, error)
    with document:
        _check_pages(request, len(document))
        return _Reading(request, document).whole()


def open_pdf(name: str, data: bytes) -> Any:
    """The document with its forms filled in as they are shown.

    Raises:
        InputError: it wants a password.
        pypdfium2.PdfiumError: it is no PDF that PDFium can open.
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
    texts: list[str] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)
    pictured: list[int] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)

    def whole(self) -> Source:
        """All pages as one source."""
        self._read_layers()
        most = self.request.settings.ocr_pages
        wanted, beyond = self.scanned[:most], self.scanned[most:]
        known = words_in(self.texts)
        draft = Draft(self.request)
        late: list[int] = []
        for index, text in enumerate(self.texts):
            if index:
                draft.add(BETWEEN)
            start = draft.length
            is_wanted = index in wanted
            if is_wanted and not self.request.has_time:
                late.append(index)
                is_wanted = False
            if is_wanted and self._read_picture(draft, index, wanted):
                draft.add_page(index + 1, start, "ocr")
            else:
                draft.add(mended(text, known))
                draft.add_page(index + 1, start, "text")
        self._note_gaps(draft, beyond, late)
        return draft.finish()

    def _read_layers(self) -> None:
        """The text layer of each page, and which pages need OCR instead."""
        pages = len(self.document)
        second = second_reader(self.request.data)
        for index in range(pages):
            self.request.report(index, pages, f"page {index + 1} of {pages}")
            try:
                page = load_page(self.document, index)
                text = page_text(page, index, second)
                pictures = _picture_share(page)
                objects = pypdfium2.raw.FPDFPage_CountObjects(page)
                page.close()
            except pypdfium2.PdfiumError:
                self.broken.append(index)
                self.texts.append(second(index))
                continue
            if _is_scan(text, objects, pictures):
                self.scanned.append(index)
            elif pictures >= NOTED_PICTURE_SHARE:
                self.pictured.append(index)
            self.texts.append("" if is_garbage(text) else text)

    def _read_picture(self, draft: Draft, index: int, wanted: Sequence[int]) -> bool:
        """Add what OCR reads on the page; False when the text layer, if any, says more."""
        from core.intake.layout import write
        from core.intake.ocr import look

        done = wanted.index(index)
        self.request.report(
            done,
            len(wanted),
            f"page {index + 1} is a picture, reading it ({done + 1} of {len(wanted)})",
        )
        found = look(self._rendered(index))
        if sum(len(item.text) for item in found.seen) < len(self.texts[index].strip()):
            return False
        write(draft, found, page=index + 1, by=BETWEEN)
        if remark := remark_on(found):
            draft.note(f"Page {index + 1}: {remark}")
        return True

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
            draft.note(f"{_pages(self.pictured)} with pictures: text in them was not read.")
        if self.broken:
            draft.note(f"{_pages(self.broken)} damaged: what could be recovered was read.")
        if any(is_marked_script(text) for text in self.texts):
            draft.note(
                "PDFs often misplace marks of this script; a .docx or .txt copy reads better."
            )
        if b"%%EOF" not in self.request.data[-END_WITHIN:]:
            draft.note("The file lacks its end; pages may be missing.")
        if not draft.length or (not any(page.strip() for page in self.texts) and not self.scanned):
            draft.note("There is no text in this document.")


def _pages(indexes: Sequence[int]) -> str:
    """“Page 3” or “Pages 3–5, 8”, counted from 1."""
    runs: list[list[int]] = []
    for number in sorted(index + 1 for index in indexes):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"Page {named}" if len(indexes) == 1 else f"Pages {named}"


def _is_scan(text: str, objects: int, pictures: float) -> bool:
    """True when the page shows something and its text layer says (nearly) nothing of it."""
    letters = sum(not letter.isspace() for letter in text)
    if letters == 0:
        return objects > 0
    return is_garbage(text) or (letters < FEW_LETTERS and pictures >= PICTURE_SHARE)


def _picture_share(page: Any) -> float:
    """How much of the page its largest picture covers, from 0 to 1."""
    width, height = page.get_size()
    largest = 0.0
    for item in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = item.get_bounds()
        largest = max(largest, abs(right - left) * abs(top - bottom))
    return float(largest / max(1.0, width * height))


def _read_by_pypdf(request: ReadRequest, refusal: Exception) -> Source:
    """What pypdf recovers of a file that PDFium refuses; mostly that is nothing."""
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
            f"{request.file} could not be read as a PDF: it is damaged or cut off ({refusal}); "
            f"{AGAIN}."
        ) from error
    draft = Draft(request)
    known = words_in(texts)
    for number, text in enumerate(texts, start=1):
        if number > 1:
            draft.add(BETWEEN)
        start = draft.length
        draft.add(mended(text.strip("\n"), known))
        draft.add_page(number, start, "text")
    draft.note("The file is damaged; what could be recovered was read, and parts may be missing.")
    return draft.finish()
