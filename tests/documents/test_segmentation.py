"""Sentences with exact offsets, whatever the script and layout."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import segmentation
from core.documents.segmentation import LONGEST, joined_lines, sentences, words_in


def cut(text: str, language: str = "en") -> list[str]:
    return [text[s.start : s.end] for s in sentences(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("One. Two!  Three?", "en", ["One.", "Two!", "Three?"]),
        ("北京是首都。人口很多！", "zh", ["北京是首都。", "人口很多！"]),
        ("القاهرة عاصمة. عدد سكانها كبير؟", "ar", ["القاهرة عاصمة.", "عدد سكانها كبير؟"]),
        ("दिल्ली राजधानी है। वह बड़ी है।", "hi", ["दिल्ली राजधानी है।", "वह बड़ी है।"]),
        ("Gegründet am 3. Mai 1999. Ende.", "de", ["Gegründet am 3. Mai 1999.", "Ende."]),
        (
            "It cost $3.50, e.g. on Jan. 5, 2019. Yes.",
            "en",
            ["It cost $3.50, e.g. on Jan. 5, 2019.", "Yes."],
        ),
    ],
)
def test_sentences_of_many_languages(text: str, language: str, expected: list[str]) -> None:
    assert cut(text, language) == expected


def test_line_ends_inside_wrapped_prose_are_no_sentence_ends() -> None:
    prose = (
        "The bridge was opened to traffic in the spring of 1932 after\n"
        "eight years of work and was paid for by tolls until the year\n"
        "1988. It is still in use.\n"
    )
    assert cut(prose) == [prose[: prose.index(" It is")], "It is still in use."]


def test_list_items_headings_and_rows_stand_alone() -> None:
    text = "Prices\n\n- Apples cost 3\n- Pears cost 4\nNorth: 412\nSouth: 287"
    assert cut(text) == ["Prices", "- Apples cost 3", "- Pears cost 4", "North: 412", "South: 287"]


def test_a_stretch_of_the_text_is_cut_alone() -> None:
    text = "First. Second page. More. Last."
    found = sentences(text, "en", 7, 25)
    assert [text[s.start : s.end] for s in found] == ["Second page.", "More."]


def test_text_without_stops_is_cut_at_blanks() -> None:
    text = "กรุงเทพมหานคร " * 200
    pieces = cut(text, "th")
    assert len(pieces) > 3
    assert all(len(piece) <= LONGEST for piece in pieces)


def test_a_hundred_thousand_characters_take_no_time() -> None:
    began = time.perf_counter()
    assert len(cut("Dr. Smith paid 3.50 on Jan. 5. " * 3500)) >= 3500
    assert time.perf_counter() - began < 2.0


@given(st.text(max_size=400), st.sampled_from(["en", "zh", "ar", "th", "und"]))
def test_offsets_hold_for_any_text(text: str, language: str) -> None:
    end = 0
    for item in sentences(text, language):
        assert end <= item.start < item.end <= len(text)
        piece = text[item.start : item.end]
        assert piece == piece.strip()
        end = item.end


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "北京是首都。“好。”他说。"),
        ("en", "Dr. Smith paid $3.50 on Jan. 5. (One. Two.) "),
        ("de", "Gegründet am 3. Mai 1999. "),
    ],
)
def test_sentences_are_the_same_whatever_the_window(
    language: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = text * 200
    monkeypatch.setattr(segmentation, "WINDOW", len(long))
    whole = cut(long, language)
    for window in (1000, 1237, 2001):
        monkeypatch.setattr(segmentation, "WINDOW", window)
        assert cut(long, language) == whole


def test_no_window_is_longer_than_sentencex_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def segmented(_language: str, text: str) -> list[str]:
        lengths.append(len(text))
        return [text[at : at + 6] for at in range(0, len(text), 6)]

    monkeypatch.setattr("sentencex.segment", segmented)
    text = "北京是首都。" * 50_000
    assert len(cut(text, "zh")) == 50_000
    assert max(lengths) <= segmentation.WINDOW
    assert sum(lengths) < 2 * len(text)


@pytest.mark.parametrize(
    ("above", "below", "known", "joined"),
    [
        ("an exam-", "ple here", "", "an example here"),
        ("a well-", "known case", "", "a well-known case"),
        ("a cross-", "border case", "", "a cross-border case"),
        ("two north-", "south lines", "north-south", "two north-south lines"),
        ("the re-", "form came", "reform", "the reform came"),
        ("soft\u00ad", "ware", "", "software"),
        ("in 2019-", "2020 it", "", "in 2019- 2020 it"),
        ("Rhein-", "Main", "", "Rhein- Main"),
        ("trailing -", "word", "", "trailing - word"),
        ("über-", "mäßig", "", "übermäßig"),
        ("one", "two", "", "one two"),
        ("文字", "接着", "", "文字接着"),
        ("文字", "and", "", "文字 and"),
    ],
)
def test_lines_of_a_paragraph_are_joined(above: str, below: str, known: str, joined: str) -> None:
    text, by = joined_lines(above, below, words_in([known]))
    assert text + by + below == joined


def test_words_are_found_with_their_hyphens() -> None:
    assert words_in(["A well-known Thing"]) == {"a", "well-known", "thing"}


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_nothing_but_a_hyphen_is_ever_lost_between_lines(above: str, below: str) -> None:
    text, by = joined_lines(above, below, frozenset())
    assert text in (above, above[:-1])
    assert by in ("", " ")
    assert text == above or above[-1] in "-\u2010\u00ad"
