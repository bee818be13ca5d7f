"""Kinds are told by content; whatever is not read is refused in one sentence."""

from __future__ import annotations

import io
import time

import pytest
from PIL import Image

from core.documents.draft import shown
from core.documents.readers import kind_of
from core.runtime.errors import InputError
from tests.documents.builders import pdf, png, word, zipped

PNG = png(Image.new("RGB", (4, 4)))
HTML = b"<!DOCTYPE html><html><body><p>Hello</p></body></html>"
PDF = pdf("Hello")
WORD = word(lambda document: document.add_paragraph("Hello"))


def saved_as(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", b"Hello", "text"),
        ("a.md", b"# Hello", "markdown"),
        ("README", b"Hello", "text"),
        ("code.py", b"print('hello')\n", "text"),
        ("a.txt", b"BM and MZ are initials", "text"),
        ("notes.txt", b"BMW made 2.4 million cars.", "text"),
        ("a.txt", HTML, "text"),
        ("a.txt", "\ufeffGrüße".encode("utf-16"), "text"),
        ("a.pdf", PDF, "pdf"),
        ("a.pdf", b"\n\n" + PDF, "pdf"),
        ("A.PDF", PDF, "pdf"),
        ("without ending", PDF, "pdf"),
        ("a.docx", WORD, "docx"),
        ("a.html", HTML, "html"),
        ("a.htm", b"<p>caf\xe9", "html"),
        ("page", HTML, "html"),
        ("a.csv", b"a,b\n1,2\n", "table"),
        ("a.tsv", b"a\tb\n1\t2\n", "table"),
        ("a.png", PNG, "image"),
        ("a.jpg", PNG, "image"),
        ("a.jpeg", saved_as("JPEG"), "image"),
        ("a.webp", saved_as("WEBP"), "image"),
    ],
)
def test_what_is_read(name: str, data: bytes, kind: str) -> None:
    assert kind_of(name, data) == kind


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"", "is empty (0 bytes)"),
        ("scan.pdf", PNG, "is called .pdf but holds a PNG, JPEG or WebP image"),
        ("report.docx", HTML, "is called .docx but holds an HTML page"),
        ("report.docx", PDF, "is called .docx but holds a PDF"),
        ("table.csv", HTML, "is called .csv but holds an HTML page"),
        ("report.pdf", b"Hello", "is called .pdf but holds plain text, not a PDF"),
        ("report.pdf", bytes(range(256)), "is called .pdf but holds something else"),
        ("image.png", b"Hello", "holds plain text, not a PNG, JPEG or WebP image"),
        ("notes.txt", PDF, "is called .txt but holds a PDF"),
        ("notes.txt", b"\x00\x01\x02\x03" * 9, "NUL character at offset 0"),
        ("notes.txt", b"caf\xe9 au lait", "the byte at offset 3 (0xe9)"),
        ("table.csv", b"name;caf\xe9", "the byte at offset 8 (0xe9)"),
        ("tool.exe", b"MZ\x90\x00\x03\x00", "is a Windows program"),
        ("song.mp3", b"ID3\x03\x00\x00", "is an audio file"),
        ("film.mp4", b"\x00\x00\x00\x18ftypmp42", "is a video file"),
        ("photo.heic", b"\x00\x00\x00\x18ftypheic", "save it as JPEG"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
        ("a.rtf", b"{\\rtf1 Hello}", "a rich text (RTF) document"),
        ("a.gif", b"GIF89a", "a GIF image (save it as PNG)"),
        ("a.svg", b"<svg xmlns='x'></svg>", "an SVG drawing"),
        ("book.xlsx", zipped(xl__workbook_xml=b"<x/>"), "an Excel workbook"),
        ("talk.pptx", zipped(ppt__presentation_xml=b"<x/>"), "a PowerPoint file"),
        ("a.odt", zipped(mimetype=b"application/vnd.oasis"), "an OpenDocument or EPUB file"),
        ("a.zip", zipped(readme=b"Hello"), "a zip archive (add the files in it one by one)"),
        ("report.docx", zipped(readme=b"Hello"), "is a zip archive"),
        ("report.docx", WORD[: len(WORD) // 2], "is cut off or damaged"),
        ("report.docx", WORD[:-30], "is cut off or damaged"),
        ("blob.bin", bytes(range(256)), "is of a type that is not read"),
    ],
)
def test_what_is_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(InputError) as caught:
        kind_of(name, data)
    message = str(caught.value)
    assert words in message
    assert f"“{name}”" in message
    assert "\n" not in message
    assert message.endswith(".")


def test_names_are_shown_on_one_line_and_not_at_length() -> None:
    assert shown("a\nb\x07.txt") == "“a b .txt”"
    assert len(shown("x" * 500 + ".pdf")) < 130
    assert shown("x" * 500 + ".pdf").endswith(".pdf”")
    assert shown("") == "“the file”"


def test_a_row_of_comments_does_not_hold_things_up() -> None:
    began = time.monotonic()
    for page in (b"<!---->" * 500 + b"x", b"<?a?>" * 700 + b"x", b"<!doctype x>" * 300):
        assert kind_of("a.html", page) == "html"
        assert kind_of("no ending", page) == "text"
    assert kind_of("page", b"<!-- a --> <?xml version='1.0'?>\n<!DOCTYPE html><p>") == "html"
    assert time.monotonic() - began < 1
