"""Quantities: those of the corpus, what must hold of any text, and what figures imply."""

from __future__ import annotations

import itertools
import math

import pytest
from babel.numbers import format_decimal
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tools.quantities import Quantity, compare, find_quantities
from core.tools.units import derived_values
from core.tools.vocabulary import file_of, lower, plain, vocabulary
from tests.tools.corpus import missed, rows, same_quantities

FLOOR = 0.98  # 517 of 523 rows
LANGUAGES = "en de fr es it pt nl sv fi cs ca eu pl tr ru ar fa hi zh ja ko".split()
TAGS = st.sampled_from(LANGUAGES)
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


def only(text: str, language: str = "en") -> Quantity:
    [quantity] = find_quantities(text, language)
    return quantity


def test_quantities_of_the_corpus() -> None:
    wrong = missed("quantities", same_quantities)
    assert 1 - len(wrong) / len(rows("quantities")) >= FLOOR, wrong
    assert {row["language"] for row in rows("quantities")} >= set(LANGUAGES)


def test_comparisons_of_the_corpus() -> None:
    corpus = rows("compare_quantities")
    wrong = [r for r in corpus if compare(only(r["claim"]), only(r["evidence"])) != r["match"]]
    assert 1 - len(wrong) / len(corpus) >= FLOOR, wrong


def test_ambiguous_grouping_agrees_either_way() -> None:
    spanish = only("39,000 habitantes", "es")
    assert compare(spanish, only("39.000 habitantes", "es")) == "same"
    assert compare(spanish, only("38.000 habitantes", "es")) == "different"


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ("638 people", "about 640 people", "same"),
        ("131.5 m", "131.48 m", "same"),
        ("1.2 million votes", "1,204,000 votes", "same"),
        ("€5 per kg", "€5 per lb", "different"),
        ("€5 per kg", "$5 per kg", "different"),
        ("€5 per kg", "€5", "different"),
    ],
)
def test_the_tolerance_follows_from_the_precision_as_written(
    one: str, other: str, match: str
) -> None:
    assert compare(only(one), only(other)) == match


@QUICK
@given(TEXTS, TAGS)
def test_quantities_lie_where_they_say(text: str, language: str) -> None:
    found = find_quantities(text, language)
    for quantity in found:
        assert text[quantity.start : quantity.end] == quantity.text
        assert 0 <= quantity.start < quantity.end <= len(text)
        assert quantity.low <= quantity.high
        assert math.isfinite(quantity.low)
        assert math.isfinite(quantity.high)
    for one, other in itertools.pairwise(found):
        assert one.end <= other.start


@QUICK
@given(TEXTS, TEXTS, TAGS)
def test_quantities_compare_alike_both_ways(one: str, other: str, language: str) -> None:
    found = find_quantities(one, language) + find_quantities(other, language)
    for first in found:
        assert compare(first, first) == "same"
        for second in found:
            assert compare(first, second) == compare(second, first)


@QUICK
@given(st.text(max_size=80))
def test_plain_text_keeps_every_place(text: str) -> None:
    assert len(plain(text)) == len(text)
    assert len(lower(text)) == len(text)


@given(
    st.integers(2, 10**9),
    st.sampled_from([0, 2]),
    st.sampled_from(["en", "de", "fr", "es", "ar", "fa", "hi", "ru", "fi"]),
)
def test_numbers_as_cldr_formats_them_keep_their_value(
    whole: int, decimals: int, language: str
) -> None:
    value = whole / 10**decimals
    written = format_decimal(value, format="#,##0.00" if decimals else "#,##0", locale=language)
    quantity = only(f"({written})", language)
    assert value in (
        pytest.approx(quantity.low), pytest.approx(quantity.low * quantity.other_factor)
    )  # fmt: skip


@pytest.mark.parametrize(
    "tag", ["x" * 5000, "../../core/words/de", "/etc/passwd", "e\0n", "..", ""]
)
def test_what_a_model_gives_as_a_language_names_no_file(tag: str) -> None:
    assert file_of(tag) == "en"
    assert vocabulary(tag).language == "en"


@pytest.mark.parametrize("language", ["xx", "und", "en-GB", "zh-Hans-CN", "pt_BR", "", "nb"])
def test_any_language_tag_is_accepted(language: str) -> None:
    assert [q.low for q in find_quantities("5 km", language)] == [5000]


def test_positions_cover_number_and_unit_not_the_bound() -> None:
    quantity = only("😀 It cost about US$1.5 million then.")
    assert (quantity.start, quantity.end, quantity.text) == (16, 30, "US$1.5 million")


DERIVED = [
    ("up by 22,000", "from 68,000 to 90,000", "90,000 − 68,000 = 22,000"),
    ("46 less", "it fell from 140 to 94", "140 − 94 = 46"),
    ("a third less", "it fell from 140 to 94", "140 → 94 is -32.9 %"),
    ("12 %", "from 50 to 56", "50 → 56 is +12 %"),
    ("40 %", "20 of the 50 boats", "20 / 50 = 40 %"),
    ("doubled", "40 in May and 80 in June", "80 / 40 = 2"),
    ("1,240 people", "A: 400 people, B: 500 people, C: 340 people", "400 + 500 + 340 = 1,240"),
    ("22 million euros", "68 million euros, then 90 million euros",
     "90 million euros − 68 million euros = 22,000,000 EUR"),
    ("1.7 km", "500 m and 1.2 km", "500 m + 1.2 km = 1,700 meter"),
]  # fmt: skip


@pytest.mark.parametrize(("stated", "evidence", "words"), DERIVED)
def test_what_two_figures_or_a_list_of_them_give(stated: str, evidence: str, words: str) -> None:
    found = derived_values(find_quantities(stated)[0], find_quantities(evidence))
    assert words in [one.words for one in found]


@pytest.mark.parametrize(
    ("stated", "evidence"),
    [
        ("23,000", "from 68,000 to 90,000"),
        ("50 %", "it fell from 140 to 94"),
        ("5 kg", "3 m and 2 m"),
        ("90,000", "from 68,000 to 90,000"),
        ("the second", "3 and 1"),
        ("7", ""),
    ],
)
def test_what_figures_do_not_give(stated: str, evidence: str) -> None:
    for quantity in find_quantities(stated):
        assert derived_values(quantity, find_quantities(evidence)) == []


@given(st.lists(st.integers(10, 10**6), min_size=2, max_size=60))
def test_totals_and_differences_are_found_among_few_or_many(values: list[int]) -> None:
    evidence = find_quantities("; ".join(f"{value} km" for value in values))
    for total in (sum(values), abs(values[0] - values[1])):
        stated = only(f"({total} km)")
        is_said = any(value == total for value in values[:40])
        found = derived_values(stated, evidence)
        assert bool(found) is not is_said or len(values) > 40
