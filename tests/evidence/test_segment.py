"""Sentences with exact offsets, whatever the script and layout."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence import segment
from core.evidence.segment import LONGEST, sentences
from core.records import Page


def cut(text: str, language: str = "en", *, by_line: bool = False) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text, language, by_line=by_line)]


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


def test_rows_of_tables_and_charts_are_never_joined() -> None:
    row = "Region: North; Visitors in thousands: 412; Year of the count: 2023"
    assert cut(f"{row}\n{row}", by_line=True) == [row, row]


def test_pages_are_kept() -> None:
    text = "First page.\n\nSecond page. More."
    found = sentences(text, "en", [Page(1, 0, 11), Page(2, 13, len(text))])
    assert [(text[s.start : s.end], s.page) for s in found] == [
        ("First page.", 1),
        ("Second page.", 2),
        ("More.", 2),
    ]


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
    monkeypatch.setattr(segment, "WINDOW", len(long))
    whole = cut(long, language)
    for window in (1000, 1237, 2001):
        monkeypatch.setattr(segment, "WINDOW", window)
        assert cut(long, language) == whole


def test_no_window_is_longer_than_sentencex_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def segmented(_language: str, text: str) -> list[str]:
        lengths.append(len(text))
        return [text[at : at + 6] for at in range(0, len(text), 6)]

    monkeypatch.setattr("core.evidence.segment.sentencex.segment", segmented)
    text = "北京是首都。" * 50_000
    assert len(cut(text, "zh")) == 50_000
    assert max(lengths) <= segment.WINDOW
    assert sum(lengths) < 2 * len(text)
