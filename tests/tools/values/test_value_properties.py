"""What must hold of quantities and dates found in any text."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tools.values.dates import compare_dates, describe_date, find_dates
from core.tools.values.plain import lower, plain
from core.tools.values.quantities import compare, describe, find_quantities
from core.tools.values.value_words import file_of, value_words

LANGUAGES = st.sampled_from(
    "en de fr es it pt nl da sv fi cs ca eu ru tr ar fa hi zh ja ko".split()
)
WORDS = """1 12 412 1,234.5 2019 1.5 % $ km m °C -5 of and to – between about million 3rd second one
    May March 5:30 pm BC 19th century two hundred thirds half dozen 2019-03-12 ½ 1990s 3/4 2/3 ± 年
    月 日 千 万 百分之 三 第 個 ٣ ३ مليون Mio. avril mai en 10^6 e5 × ' " ( ) , . : / twice least
    more than""".split()
PIECES = st.sampled_from([*WORDS, " ", "\u00a0", "\u202f", "\n", "\u0301", "😀", "İ", "ß"])
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(PIECES, max_size=14).map(" ".join),
    st.lists(PIECES, max_size=14).map("".join),
)
QUICK = settings(max_examples=max(300, settings().max_examples))


@QUICK
@given(TEXTS, LANGUAGES)
def test_quantities_lie_where_they_say(text: str, language: str) -> None:
    found = find_quantities(text, language)
    for quantity in found:
        assert text[quantity.start : quantity.end] == quantity.text
        assert 0 <= quantity.start <= quantity.number_start < quantity.number_end <= len(text)
        assert quantity.low <= quantity.high
        assert math.isfinite(quantity.low)
        assert math.isfinite(quantity.high)
        assert quantity.significant >= 1
        assert describe(quantity)
    for one, other in itertools.pairwise(found):
        assert one.end <= other.start


@QUICK
@given(TEXTS, LANGUAGES)
def test_dates_lie_where_they_say(text: str, language: str) -> None:
    found = find_dates(text, language)
    for date in found:
        assert 0 <= date.start < date.end
        assert text[date.start : date.end] == date.text
        assert date.month is None or 1 <= date.month <= 12
        assert date.day is None or 1 <= date.day <= 31
        assert date.hour is None or 0 <= date.hour < 24
        assert describe_date(date)
    for one, other in itertools.pairwise(found):
        assert one.end <= other.start


@QUICK
@given(TEXTS, TEXTS, LANGUAGES)
def test_quantities_compare_alike_both_ways(one: str, other: str, language: str) -> None:
    found = find_quantities(one, language) + find_quantities(other, language)
    for first in found:
        assert compare(first, first) == "equal"
        for second in found:
            assert compare(first, second) == compare(second, first)


@QUICK
@given(TEXTS, TEXTS, LANGUAGES)
def test_dates_compare_alike_both_ways(one: str, other: str, language: str) -> None:
    found = find_dates(one, language) + find_dates(other, language)
    for first in found:
        assert compare_dates(first, first) == "equal"
        for second in found:
            assert compare_dates(first, second) == compare_dates(second, first)


@QUICK
@given(st.text(max_size=80))
def test_plain_text_keeps_every_place(text: str) -> None:
    assert len(plain(text)) == len(text)
    assert len(lower(text)) == len(text)


@given(st.integers(min_value=2, max_value=999_999_999_999))
def test_grouped_digits_keep_their_value(value: int) -> None:
    [quantity] = find_quantities(f"({value:,} votes)")
    assert (quantity.low, quantity.noun) == (value, "vote")


@given(st.dates())
def test_iso_dates_keep_their_parts(date: object) -> None:
    text = f"on {date}"
    found = [(d.year, d.month, d.day) for d in find_dates(text) if d.day]
    expected = tuple(int(part) for part in str(date).split("-"))
    assert found == ([expected] if 1000 <= expected[0] < 3000 else [])


@pytest.mark.parametrize(
    "tag", ["x" * 5000, "../../../builtin/lexicon/de", "/etc/passwd", "e\0n", "..", ""]
)
def test_what_a_model_gives_as_a_language_names_no_file(tag: str) -> None:
    assert file_of(tag) == "en"
    assert value_words(tag).language == "en"
