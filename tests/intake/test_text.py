"""Plain text is kept to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.intake.draft import Draft, storable
from core.intake.text import decoded, read_text
from core.records import Box
from tests.intake.builders import check_offsets, request

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


@given(st.lists(st.tuples(st.text(), st.booleans()), max_size=20))
def test_drafts_know_where_their_pieces_lie(pieces: list[tuple[str, bool]]) -> None:
    draft = Draft(request("a.pdf", b"", "pdf"))
    places = []
    for text, is_seen in pieces:
        if is_seen:
            places.append((storable(text), draft.length))
            draft.add_seen(text, 1, Box(0, 0, 1, 1), 0.9)
        else:
            draft.add(text)
    draft.add_page(1, 0, "ocr")
    source = draft.finish()
    check_offsets(source)
    found = [(source.text[seen.start : seen.end], seen.start) for seen in source.boxes]
    assert found == [place for place in places if place[0]]
