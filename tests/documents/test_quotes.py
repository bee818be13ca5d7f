"""Quotes are what the source says, or are marked as what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.quotes import find_absent_words, find_folded, relocate_words, verify_quote
from tests.fakes import make_passage

TEXT = "The tower, built in 1931, is 412 m tall; it was never “rebuilt”."
PASSAGE = make_passage(TEXT)
SOURCES = {"facts.txt": TEXT + " Elsewhere it says 500 m."}


def test_the_exact_words_are_verified_with_their_place() -> None:
    quote = verify_quote("412 m tall", [PASSAGE], SOURCES)
    assert (quote.status, quote.score, quote.source) == ("verified", 100.0, "facts.txt")
    assert quote.start is not None
    assert TEXT[quote.start : quote.end] == "412 m tall"


def test_spacing_case_and_typography_do_not_matter() -> None:
    quote = verify_quote('never  "Rebuilt"', [PASSAGE], SOURCES)
    assert quote.status == "verified"
    assert quote.start is not None
    assert TEXT[quote.start : quote.end] == "never “rebuilt”"


def test_what_nobody_sees_does_not_matter() -> None:
    passage = make_passage("The yel\u00adlow tower is 412\u200b m tall.")
    found = verify_quote("yellow tower is 412 m", [passage], {})
    assert (found.status, found.start) == ("verified", 4)
    assert found.end
    assert passage.text[4 : found.end] == "yel\u00adlow tower is 412\u200b m"


def test_words_elsewhere_in_the_source_are_found() -> None:
    quote = verify_quote("it says 500 m", [PASSAGE], SOURCES)
    assert quote.status == "verified"
    assert quote.start is not None
    assert SOURCES["facts.txt"][quote.start : quote.end] == "it says 500 m"


def test_nearly_the_words_are_fuzzy_with_a_score() -> None:
    quote = verify_quote("The tower, build in 1931, is 412 m tall", [PASSAGE], {})
    assert quote.status == "fuzzy"
    assert 90 <= quote.score < 100


def test_other_words_are_not_found() -> None:
    quote = verify_quote("The tower is owned by a bank", [PASSAGE], SOURCES)
    assert (quote.status, quote.score, quote.start) == ("not_found", 0.0, None)
    assert verify_quote("   ", [PASSAGE], SOURCES).status == "not_found"


def test_a_changed_number_is_not_the_same_quote() -> None:
    assert verify_quote("is 512 m", [PASSAGE], {}).status != "verified"


@given(st.text(min_size=1, max_size=60), st.text(max_size=30), st.text(max_size=30))
def test_whatever_stands_there_is_found(middle: str, left: str, right: str) -> None:
    whole = left + middle + right
    if middle.strip():
        quote = verify_quote(middle, [make_passage(whole)], {})
        assert quote.status == "verified"
        assert quote.start is not None
        assert whole[quote.start : quote.end] == middle.strip()


@given(st.text(max_size=60), st.text(max_size=60))
def test_folded_places_lie_inside(wanted: str, text: str) -> None:
    place = find_folded(wanted, text)
    if place is not None:
        assert 0 <= place[0] < place[1] <= len(text)


@pytest.mark.parametrize(
    ("text", "start", "words", "found"),
    [
        ("The tower is tall.", 4, "tower", (4, 9)),
        ("Title The tower is tall.", 4, "tower", (10, 15)),
        ("tower, tower, tower", 12, "tower", (14, 19)),
        ("The  Tower is\ntall.", 0, "the tower is tall", (0, 18)),
        ("The bridge is long.", 4, "tower", None),
        ("The bridge is long.", 4, "", (4, 9)),
    ],
)
def test_words_are_found_again_in_a_later_reading(
    text: str, start: int, words: str, found: tuple[int, int] | None
) -> None:
    assert relocate_words(text, start, start + 5, words) == found


@pytest.mark.parametrize(
    ("response", "source", "words"),
    [
        ("The bridge is 512 m long, built by Maud.", "The bridge is 412 m long.", "512"),
        ("The bridge was opened by Maud.", "the bridge was opened by Haakon", "Maud"),
        ("Cats are mostly left pawed.", "Cats are right pawed.", "mostly"),
        ("It was won in the end.", "She won.", ""),
        ("全长512米。", "全长412米。", "512"),
        ("全长很短。", "全长412米。", ""),
        ("يبلغ 512 مترا", "يبلغ 412 مترا", "512"),
        ("\u06a9تابخانه \u06cc\u06a9ى سوخت.", "\u0643تابخانه \u064a\u0643ي سوخت.", ""),
        ("Cats sleep.", "Cats sleep.", ""),
    ],
)
def test_the_likeliest_wrong_word_is_the_first_that_no_source_has(
    response: str, source: str, words: str
) -> None:
    start, end = find_absent_words(response, [source]) or (0, 0)
    assert response[start:end] == words
