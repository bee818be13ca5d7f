"""What kind of file bytes are, and plain text as it stands."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from core.documents.readers import decode_text, detect_kind, read_text
from core.documents.source_builder import (
    BlockContent,
    SourceBuilder,
    TextBox,
    TextPiece,
    format_file_name,
    replace_unstorable,
)
from core.runtime.errors import InputError
from core.schema.records import BlockKind
from tests.documents.builders import blocks_of, check_offsets, pdf, png, request, word, zipped

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
    assert detect_kind(name, data) == kind


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
        detect_kind(name, data)
    message = str(caught.value)
    assert words in message
    assert f"“{name}”" in message
    assert "\n" not in message
    assert message.endswith(".")


def test_names_are_shown_on_one_line_and_not_at_length() -> None:
    assert format_file_name("a\nb\x07.txt") == "“a b .txt”"
    assert len(format_file_name("x" * 500 + ".pdf")) < 130
    assert format_file_name("x" * 500 + ".pdf").endswith(".pdf”")
    assert format_file_name("") == "“the file”"


def test_a_row_of_comments_does_not_hold_things_up() -> None:
    began = time.monotonic()
    for page in (b"<!---->" * 500 + b"x", b"<?a?>" * 700 + b"x", b"<!doctype x>" * 300):
        assert detect_kind("a.html", page) == "html"
        assert detect_kind("no ending", page) == "text"
    assert detect_kind("page", b"<!-- a --> <?xml version='1.0'?>\n<!DOCTYPE html><p>") == "html"
    assert time.monotonic() - began < 1


KINDS: tuple[BlockKind | None, ...] = ("heading", "paragraph", "table row", None)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


@given(ANY_TEXT)
def test_text_is_stored_exactly(text: str) -> None:
    kept = text.removeprefix("\ufeff")
    assert read_text(request("a.txt", text.encode(), "text")).text == kept
    assert decode_text("a.txt", b"\xef\xbb\xbf" + text.encode()) == text
    assert decode_text("a.txt", b"\xff\xfe" + text.encode("utf-16-le")) == text
    assert decode_text("a.txt", b"\xfe\xff" + text.encode("utf-16-be")) == text


def test_line_ends_and_compositions_are_not_touched() -> None:
    text = "one\r\ntwo\rthree\u2028cafe\u0301 \u212b"
    source = read_text(request("a.txt", text.encode(), "text"))
    assert (source.text, source.kind, source.pages) == (text, "text", ())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"na\xefve", "the byte at offset 2 (0xef) does not fit"),
        (b"\xef\xbb\xbfna\xefve", "offset 5 (0xef)"),
        (b"\xff\xfea\x00\x00\xd8", "is not UTF-16 text: the byte at offset 4"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32"),
        (b"two\x00words", "NUL character at offset 3"),
    ],
)
def test_other_encodings_are_refused_with_the_place(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=r"a\.txt") as caught:
        decode_text("a.txt", data)
    assert words in str(caught.value)
    assert "save it as UTF-8" in str(caught.value)


def test_blank_files_say_so() -> None:
    assert read_text(request("a.txt", b" \n", "text")).notes == (
        "There is no text in this file, only blanks.",
    )


def test_headings_items_and_paragraphs_are_told_apart() -> None:
    text = (
        "Water report\n\nThe works sold five million cubic metres\nof water.\n\n"
        "## Prices\nThey rose.\n\nOutlook\n=======\n- One item\n- Another\n\n"
        "Next steps\n\nWe go on.\n\nIt is 412 m tall\n\nThe end is near."
    )
    source = read_text(request("a.txt", text.encode(), "text"))
    check_offsets(source)
    assert blocks_of(source) == [
        ("heading", "Water report"),
        ("paragraph", "The works sold five million cubic metres\nof water."),
        ("heading", "## Prices"),
        ("paragraph", "They rose."),
        ("heading", "Outlook"),
        ("list item", "- One item"),
        ("list item", "- Another"),
        ("heading", "Next steps"),
        ("paragraph", "We go on."),
        ("paragraph", "It is 412 m tall"),
        ("paragraph", "The end is near."),
    ]


@pytest.mark.parametrize("text", ["North: 412\nSouth: 287", "It rose.\nIt fell.", "one line", ""])
def test_a_first_line_that_says_something_is_no_title(text: str) -> None:
    source = read_text(request("a.txt", text.encode(), "text"))
    assert all(block.kind == "paragraph" for block in source.blocks)


@given(ANY_TEXT)
def test_blocks_slice_any_text(text: str) -> None:
    check_offsets(read_text(request("a.txt", text.encode(), "text")))


def test_too_much_text_is_refused() -> None:
    with pytest.raises(InputError, match="more than 1,000 characters"):
        read_text(request("a.txt", b"x" * 1001, "text", source_characters=1000))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\N{GRINNING FACE}"),
        ("plain", "plain"),
    ],
)
def test_what_no_database_can_keep_is_replaced(text: str, kept: str) -> None:
    assert replace_unstorable(text) == kept
    kept.encode()


@given(st.lists(st.tuples(st.text(), st.booleans(), st.sampled_from(KINDS)), max_size=20))
def test_drafts_know_where_their_pieces_lie(
    pieces: list[tuple[str, bool, BlockKind | None]],
) -> None:
    draft = SourceBuilder(request("a.pdf", b"", "pdf"))
    for text, is_seen, kind in pieces:
        seen = TextBox(text, 0, 0, 1, 1, 0.9) if is_seen else None
        block = BlockContent(kind, (TextPiece(text, seen), TextPiece("!")))
        draft.add_blocks([block], 1, lambda box: box.share_of(1, 1))
    draft.add_page(1, 0, "ocr")
    source = draft.finish()
    check_offsets(source)
    kept = [(kind, replace_unstorable(text) + "!") for text, _, kind in pieces]
    assert blocks_of(source) == [(kind, text) for kind, text in kept if kind]
    found = [source.text[seen.start : seen.end] for seen in source.boxes]
    assert found == [replace_unstorable(text) for text, is_seen, _ in pieces if is_seen and text]
