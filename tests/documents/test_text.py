"""Plain text is kept to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.draft import Content, Draft, Piece, TextBox, storable
from core.documents.readers import decoded, read_text
from core.runtime.errors import InputError
from core.schema.records import BlockKind
from tests.documents.builders import blocks_of, check_offsets, request

KINDS: tuple[BlockKind | None, ...] = ("heading", "paragraph", "table row", None)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


@given(ANY_TEXT)
def test_text_is_stored_exactly(text: str) -> None:
    kept = text.removeprefix("\ufeff")
    assert read_text(request("a.txt", text.encode(), "text")).text == kept
    assert decoded("a.txt", b"\xef\xbb\xbf" + text.encode()) == text
    assert decoded("a.txt", b"\xff\xfe" + text.encode("utf-16-le")) == text
    assert decoded("a.txt", b"\xfe\xff" + text.encode("utf-16-be")) == text


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
        decoded("a.txt", data)
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
    assert storable(text) == kept
    kept.encode()


@given(st.lists(st.tuples(st.text(), st.booleans(), st.sampled_from(KINDS)), max_size=20))
def test_drafts_know_where_their_pieces_lie(
    pieces: list[tuple[str, bool, BlockKind | None]],
) -> None:
    draft = Draft(request("a.pdf", b"", "pdf"))
    for text, is_seen, kind in pieces:
        seen = TextBox(text, 0, 0, 1, 1, 0.9) if is_seen else None
        block = Content(kind, (Piece(text, seen), Piece("!")))
        draft.add_blocks([block], 1, lambda box: box.share_of(1, 1))
    draft.add_page(1, 0, "ocr")
    source = draft.finish()
    check_offsets(source)
    kept = [(kind, storable(text) + "!") for text, _, kind in pieces]
    assert blocks_of(source) == [(kind, text) for kind, text in kept if kind]
    found = [source.text[seen.start : seen.end] for seen in source.boxes]
    assert found == [storable(text) for text, is_seen, _ in pieces if is_seen and text]
