"""Quoted words are found where they stand in a response, in any script, or nowhere."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from core.documents.quotes import MIN_SIMILARITY, locate_quote

TEXTS = (
    "The Orne bridge opened in 1931, and Otto Falk, who built it, died in 1957.",
    "افتُتح جسر أورن عام ١٩٣١ وتوفي أوتو فالك في سنة ١٩٥٧.",
    "पुल 1931 में खुला और ओटो फ़ाल्क ने इसे बनाया, उनकी मृत्यु १९५७ में हुई।",
    "奥恩大桥于1931年通车，设计师奥托·法尔克于1957年去世。",
    "🌉 Die Brücke 👩‍👩‍👧 wurde 1931 von Otto Falk – „dem Älteren“ – eröffnet. 🇩🇪",
)


def found(quote: str, text: str) -> str | None:
    place = locate_quote(quote, text)
    return text[slice(*place)] if place else None


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=40)
@given(data=st.data())
def test_words_of_the_text_are_found_where_they_stand(text: str, data: st.DataObject) -> None:
    words = text.split()
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first + 1, len(words)))
    quote = " ".join(words[first:last])
    assert found(quote, text) == quote
    for form in ("NFC", "NFD"):
        # Another Unicode form, case or spacing of the quote marks the same words of the text.
        other = unicodedata.normalize(form, quote).replace(" ", "\u00a0 ").swapcase()
        assert found(other, text) == quote


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_slip_of_typing_marks_a_stretch_that_is_as_like_as_was_asked(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    slip = data.draw(st.sampled_from(["", "x", "##"]))
    place = locate_quote(text[:at] + slip + text[at + 1 :], text)
    assert place is not None
    start, end = place
    assert text[start:end] == text[start:end].strip()
    likeness = Levenshtein.normalized_similarity(
        unicodedata.normalize("NFKD", text[start:end]).casefold(),
        unicodedata.normalize("NFKD", text[:at] + slip + text[at + 1 :].strip()).casefold(),
    )
    assert likeness >= MIN_SIMILARITY - 0.06  # unseen letters and blanks are left out of ours


@given(st.text(max_size=60), st.text(max_size=30))
def test_what_is_found_lies_in_the_text(text: str, quote: str) -> None:
    place = locate_quote(quote, text)
    if place:
        assert 0 <= place[0] < place[1] <= len(text)


@given(st.text(max_size=30), st.text(min_size=1, max_size=12), st.text(max_size=30))
def test_exact_words_are_found_exactly(before: str, quote: str, after: str) -> None:
    if quote.strip():
        assert found(quote, before + quote + after) == quote.strip()


@pytest.mark.parametrize(
    ("quote", "text", "place"),
    [
        ("5", "In 1975 it had 5 arches.", "5"),
        ("cat", "A category for the cat", "cat"),
        ("大桥", "这座大桥很长", "大桥"),
        ("“opened in 1926”", 'It "opened in 1926".', '"opened in 1926"'),
        ("Café", "the CAFÉ there", "CAFÉ"),
        ("cafe\u0301 bar", "the café bar", "café bar"),
        ("café bar", "the cafe\u0301 bar", "cafe\u0301 bar"),
        ("सड़क", "यह स\u0921\u093cक है", "स\u0921\u093cक"),
        ("1931", "सन १९३१ में", "१९३१"),
        ("1957", "في سنة ١٩٥٧.", "١٩٥٧"),
        ("soft hyphen", "a soft hy\u00adphen here", "soft hy\u00adphen"),
        (
            "built by Oto Falkenstein",
            "It was built by Otto Falkenstein.",
            "built by Otto Falkenstein",
        ),
        ("built by Oto Falk", "It was built by Otto Falkenstein.", None),
        ("nothing like it", "the bridge", None),
        ("the bridge was opened in 1826", "The bridge was opened in 1931.", None),
        ("", "the bridge", None),
        ("\u200b", "the bridge", None),
        ("the whole long bridge and more of it", "bridge", None),
    ],
)
def test_places(quote: str, text: str, place: str | None) -> None:
    assert found(quote, text) == place


def test_below_nine_tenths_is_nowhere() -> None:
    assert found("abcdefghiX", "say abcdefghij now") == "abcdefghij"
    assert found("abcdefghXX", "say abcdefghij now") is None


@pytest.mark.parametrize(
    ("before", "start"), [("", 4), ("Of:", 4), ("and was built in", 27), ("BUILT  in", 27)]
)
def test_of_the_same_words_those_after_the_right_ones_are_meant(before: str, start: int) -> None:
    text = "Of: 1926 it says, built in 1926; 1926 again."
    assert locate_quote("1926", text, before=before) == (start, start + 4)


def test_a_place_that_is_taken_is_given_again_only_when_no_other_is_left() -> None:
    text = "1926 and 1926"
    assert locate_quote("1926", text, [(0, 4)]) == (9, 13)
    assert locate_quote("1926", text, [(0, 4), (9, 13)], before="and") == (9, 13)
    text = "Built by Otto Falkner. Built by Otto Falkner."
    quote = "Built by Oto Falkner"
    assert locate_quote(quote, text) == (0, 21)
    assert locate_quote(quote, text, [(0, 21)]) == (23, 44)


def test_a_family_is_not_parted() -> None:
    text = "👩‍👩‍👧 and 👩 came"
    place = locate_quote("👩", text)
    assert place
    assert place[0] == text.rindex("👩")


def test_a_long_quote_with_slips_is_found_soon() -> None:
    text = " ".join(f"word{n} of the long response" for n in range(2000))
    quote = text[20_000:24_000].strip().replace("long response", "long respnse", 20)
    began = time.monotonic()
    place = locate_quote(quote, text)
    assert time.monotonic() - began < 10.0  # half a minute where every stretch is compared
    assert place
    assert abs(place[0] - 20_000) < 20
