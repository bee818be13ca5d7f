"""PDFs: exact page offsets, both readers, forms, locks, damage, and OCR where text is missing."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pypdf
import pypdfium2
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from core.documents import pdf_text
from core.documents.pdf import read_pdf
from core.documents.pdf_text import (
    PdfCharacter,
    TextLine,
    build_text_line,
    is_garbage,
    order_letters,
    read_page,
)
from core.documents.source_builder import STRUCK_TEXT_NOTE, TextBox
from core.runtime.errors import InputError
from core.schema.records import Source
from tests.documents.builders import (
    A4,
    CHINESE,
    HEBREW,
    LATIN,
    check_offsets,
    encrypted,
    font,
    needs_noto,
    page_picture,
    pdf,
    png,
    request,
    scan,
    write_lines,
)

LONG = "The museum had fifty thousand visitors in the year under review."


def read(data: bytes, **settings: int) -> Source:
    source = read_pdf(request("a.pdf", data, "pdf", **settings))
    check_offsets(source)
    return source


def page_texts(source: Source) -> list[str]:
    return [source.text[page.start : page.end] for page in source.pages]


def test_pages_know_their_text() -> None:
    source = read(pdf("First page.\nIts second line.", "", "Third page."))
    assert page_texts(source) == ["First page.\n\nIts second line.", "", "Third page."]
    assert [page.number for page in source.pages] == [1, 2, 3]
    assert [page.reading for page in source.pages] == ["text"] * 3
    assert source.notes == ()


def test_words_cut_at_line_ends_are_whole() -> None:
    source = read(pdf("A classi-\nfication of well-\nknown things.\nThe classification."))
    assert source.text == "A classification of well-known things.\n\nThe classification."


def write_with_raised(canvas: Canvas, line: str, y: float = 700, rise: float = 4) -> None:
    """Write a line whose parts in braces are smaller and raised."""
    text = canvas.beginText(60, y)
    for number, part in enumerate(re.split("[{}]", line)):
        text.setFont("Helvetica", 7 if number % 2 else 12)
        text.setRise(rise if number % 2 else 0)
        text.textOut(part)
    canvas.drawText(text)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("It has 120{3} people and 1,250{5} pumps.", "It has 120 people and 1,250 pumps."),
        ("In 2021{4}, people{2} paid. All of them.{1,2}", "In 2021, people paid. All of them."),
        ("It made 3 × 10{6} litres on 25 m{2}.", "It made 3 × 10⁶ litres on 25 m²."),
        ("It weighs 10{–3} g.", "It weighs 10⁻³ g."),
        ("{3} Apprentices included.", "3 Apprentices included."),
        ("Of 2505 pumps 12 are new, 1,234.50 euros.", "Of 2505 pumps 12 are new, 1,234.50 euros."),
    ],
)  # fmt: skip
def test_raised_text_changes_no_number(line: str, text: str) -> None:
    assert read(pdf(lambda canvas: write_with_raised(canvas, line))).text == text


def write_with_line(canvas: Canvas, words: tuple[int, int], rise: float, beyond: float) -> None:
    """Write a sentence with a line over some of its words, at a height and beyond them."""
    sentence = "It costs 120 90 euros."
    canvas.setFont("Helvetica", 12)
    canvas.drawString(60, 700, sentence)
    first, last = (60 + canvas.stringWidth(sentence[:n], "Helvetica", 12) for n in words)
    canvas.line(first - beyond, 700 + rise, last + beyond, 700 + rise)


@pytest.mark.parametrize(
    ("words", "rise", "beyond", "text"),
    [
        ((9, 12), 3.5, 0.5, "It costs 90 euros."),
        ((0, 22), 3.5, 0.0, ""),
        ((9, 12), -1.5, 0.5, "It costs 120 90 euros."),  # underlined
        ((9, 12), 3.5, 200.0, "It costs 120 90 euros."),  # a line of a drawing
    ],
)
def test_struck_text_is_left_out_and_noted(
    words: tuple[int, int], rise: float, beyond: float, text: str
) -> None:
    source = read(pdf(lambda canvas: write_with_line(canvas, words, rise, beyond)))
    assert source.text == text
    assert (STRUCK_TEXT_NOTE in source.notes) == ("120" not in text)


def test_lowered_text_ends_no_line() -> None:
    line = "The plant emits CO{2} in winter."
    source = read(pdf(lambda canvas: write_with_raised(canvas, line, rise=-2)))
    assert source.text == "The plant emits CO2 in winter."


def test_columns_are_read_one_after_the_other() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, ["Left one.", "Left two."])
        write_lines(canvas, ["Right one.", "Right two."], x=320)

    assert read(pdf(draw)).text == "Left one.\n\nLeft two.\n\nRight one.\n\nRight two."


def test_rows_of_a_table_carry_their_names_and_know_their_cells() -> None:
    def draw(canvas: Canvas) -> None:
        for number, row in enumerate((("Region", "2022"), ("North", "400"))):
            for column, text in enumerate(row):
                canvas.drawString(60 + 90 * column, 700 - 20 * number, text)

    source = read(pdf(draw))
    assert source.text == "Region North, 2022: 400"
    seen = {source.text[b.start : b.end]: b.box for b in source.boxes}
    assert list(seen) == ["Region", "North", "2022", "400"]
    assert seen["400"].left == pytest.approx(150 / 595, abs=0.01)
    assert seen["400"].bottom == pytest.approx(1 - 677 / 842, abs=0.01)


@needs_noto
def test_ligatures_are_spelled_out_and_other_letters_kept() -> None:
    def draw(canvas: Canvas) -> None:
        font(canvas, "NotoSans", LATIN)
        write_lines(canvas, ["Příliš žluťoučký kůň: ½ m²", "An official finding"])

    assert read(pdf(draw)).text == "Příliš žluťoučký kůň: ½ m²\n\nAn official finding"


@needs_noto
def test_hebrew_is_read_from_right_to_left() -> None:
    sentence = "המוזיאון ארח חמישים אלף איש בשנה שעברה"

    def draw(canvas: Canvas) -> None:
        font(canvas, "NotoHebrew", HEBREW)
        canvas.drawRightString(500, 700, sentence[::-1])  # As it lies on the page.
        canvas.setFont("Helvetica", 12)
        canvas.drawString(60, 600, "English: 1,250 people in 2023.")

    assert read(pdf(draw)).text == f"{sentence}\n\nEnglish: 1,250 people in 2023."


def letters(*placed: tuple[str, float]) -> list[PdfCharacter]:
    return [PdfCharacter(text, x, 0, x + 4, 10) for text, x in placed]


@pytest.mark.parametrize(
    ("placed", "text"),
    [
        ([("a", 0), ("b", 5)], "ab"),
        ([("\u05d1", 0), ("\u05d0", 5)], "\u05d0\u05d1"),
        ([("\u05d0", 5), ("\u05d1", 0)], "\u05d0\u05d1"),
        ([(",", 0), ("1", 5), ("2", 10), (" ", 0), ("\u05d0", 20)], "\u05d0 12,"),
        (
            [("a", 0), (" ", 0), ("\u05d1", 10), ("\u05d0", 15), (" ", 0), ("c", 20)],
            "a \u05d0\u05d1 c",
        ),
        ([("\u05d1", 0), ("\u05b8", 0), ("\u05d0", 5), ("\u05b7", 5)], "\u05d0\u05b7\u05d1\u05b8"),
    ],
)
def test_reading_order(placed: list[tuple[str, float]], text: str) -> None:
    assert "".join(letter.text for letter in order_letters(letters(*placed))) == text


def test_what_is_filled_into_a_form_is_read() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 700, "Name of the applicant:")
        canvas.acroForm.textfield(name="applicant", value="Maria Silva", x=250, y=690)

    assert read(pdf(draw)).text == "Name of the applicant:\n\nMaria Silva"


def test_turned_pages_are_read() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(90)
        canvas.drawString(60, 700, LONG)

    assert read(pdf(draw)).text == LONG


def test_an_empty_password_opens_a_document_and_another_does_not() -> None:
    assert read(encrypted("")).text == "Locked away."
    with pytest.raises(InputError, match=r"“a\.pdf” is protected by a password"):
        read(encrypted("secret"))


@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_truncated_files_are_refused(share: float) -> None:
    data = pdf(*[f"Page {number}. {LONG}" for number in range(20)])
    with pytest.raises(InputError, match=r"“a\.pdf” could not be read as a PDF: it is damaged"):
        read(data[: int(len(data) * share)])


def test_a_lost_end_is_noted() -> None:
    data = pdf(LONG)
    source = read(data.rpartition(b"%%EOF")[0])
    assert source.text == LONG
    assert source.notes == ("The file lacks its end; pages may be missing.",)


def test_too_many_pages_are_refused() -> None:
    with pytest.raises(InputError, match="has 4 pages; at most 3 are read"):
        read(pdf("1", "2", "3", "4"), pages=3)


def test_pypdf_reads_what_pdfium_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_data: bytes) -> None:
        raise pypdfium2.PdfiumError("Failed to load document.")

    monkeypatch.setattr(pypdfium2, "PdfDocument", refuse)
    source = read(pdf("First.", "Second."))
    assert page_texts(source) == ["First.", "Second."]
    assert source.notes[0].startswith("The file is damaged; what could be recovered was read")
    with pytest.raises(InputError, match="has 2 pages; at most 1"):
        read(pdf("First.", "Second."), pages=1)


def test_pypdf_is_asked_where_pdfium_gives_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    def garbled(_view: object) -> list[TextLine]:
        return [build_text_line([TextBox("\ue001\ue002\ufffd", 0, 0, 9, 9)])]

    with pypdfium2.PdfDocument(pdf("Words")) as document:
        assert read_page(document[0], 0, lambda _: "other").layer == "Words"
        monkeypatch.setattr(pdf_text._View, "lines", garbled)
        found = read_page(document[0], 0, lambda _: "real words\nhere\n")
        assert (found.fallback, found.is_garbage) == ("real words\nhere", False)
        found = read_page(document[0], 0, lambda _: "\ue001\ue002\ue003")
        assert (found.fallback, found.is_garbage) == ("", True)


@pytest.mark.parametrize(
    ("text", "garbage"),
    [("", False), ("plain", False), ("\ue000\ue001 a", True), ("a" * 9 + "\ufffd", False)],
)
def test_garbage(text: str, garbage: bool) -> None:
    assert is_garbage(text) is garbage


def test_pictures_on_pages_with_text_are_noted() -> None:
    def draw(canvas: Canvas) -> None:
        write_lines(canvas, [LONG])
        canvas.drawImage(ImageReader(Image.new("RGB", (40, 40), "red")), 60, 200, 400, 400)

    assert read(pdf(LONG, draw)).notes == (
        "Page 2 with pictures: text and charts in them were not read; "
        "their values cannot be checked here.",
    )


def test_pages_beyond_the_ocr_limit_are_named() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawImage(ImageReader(Image.new("RGB", (40, 40), "red")), 0, 0, *A4)

    source = read(pdf(draw, LONG, draw, draw), ocr_pages=0)
    assert page_texts(source) == ["", LONG, "", ""]
    assert source.notes == (
        "Pages 1, 3–4 without text not read: OCR reads at most 0 pages "
        "(“Most pages read by OCR” in Settings).",
    )


def test_when_time_runs_out_the_remaining_scans_are_named() -> None:
    late = request("a.pdf", scan(Image.new("RGB", (40, 40), "red")), "pdf")
    source = read_pdf(type(late)(**{**vars(late), "ends_at": 0.0}))
    assert source.notes[0].startswith("Page 1 without text not read: the time for reading")


def test_progress_is_reported_page_by_page() -> None:
    told: list[tuple[int, int, str]] = []
    given = request("a.pdf", pdf("One", "Two"), "pdf")
    read_pdf(type(given)(**{**vars(given), "report": lambda *what: told.append(what)}))
    assert told == [(0, 2, "page 1 of 2"), (1, 2, "page 2 of 2")]


def test_a_long_document_is_read_in_seconds() -> None:
    pages = [[f"{LONG[:-1]} {100 * n + k}." for k in range(40)] for n in range(1, 61)]
    source = read(pdf(*map("\n".join, pages)))
    assert len(source.pages) == 60
    assert page_texts(source)[59] == " ".join(pages[59])


def test_pypdf_agrees_with_the_builder() -> None:
    """The files these tests make are sound: an independent reader opens them."""
    assert len(pypdf.PdfReader(io.BytesIO(pdf("One", "Two"))).pages) == 2


@needs_noto
@pytest.mark.slow
def test_scans_are_read_by_ocr_with_boxes() -> None:
    lines = ["The harbour museum opened its doors in May.", "It has 1,250 exhibits on two floors."]
    source = read(pdf_with_pages(scan(page_picture(lines)), pdf(LONG)))
    assert page_texts(source) == ["\n\n".join(lines), LONG]
    assert [page.reading for page in source.pages] == ["ocr", "text"]
    seen = source.boxes[1]
    assert source.text[seen.start : seen.end] == lines[1]
    assert (seen.page, seen.score > 0.9) == (1, True)
    assert 0.08 < seen.box.left < 0.11
    assert 0.09 < seen.box.top < seen.box.bottom < 0.14


def pdf_with_pages(*parts: bytes) -> bytes:
    """The PDFs' pages in one."""
    writer = pypdf.PdfWriter()
    for part in parts:
        writer.append(io.BytesIO(part))
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


@needs_noto
@pytest.mark.slow
def test_outlines_without_a_text_layer_are_read_in_chinese_too(tmp_path: Path) -> None:
    picture = page_picture(["二〇二三年有五万人参观了博物馆。"], CHINESE, 44)
    assert png(picture).startswith(b"\x89PNG")
    assert read(scan(picture)).text == "二〇二三年有五万人参观了博物馆。"
    assert not list(tmp_path.iterdir())


def test_the_second_reader_never_fails() -> None:
    assert pdf_text.make_pypdf_reader(b"no pdf")(0) == ""
    assert pdf_text.make_pypdf_reader(pdf("One"))(7) == ""
    assert pdf_text.make_pypdf_reader(pdf("One"))(0).strip() == "One"
