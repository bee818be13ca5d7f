"""Quantities: those of the corpus, what must hold of any text, and what figures imply."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from babel.numbers import format_decimal
from hypothesis import given, settings
from hypothesis import strategies as st

from core.runtime.concurrency import StopSignal
from core.schema.events import ToolUse
from core.schema.records import Case
from core.tools import units
from core.tools.quantities import Quantity, find_quantities, match_quantities
from core.tools.registry import ToolContext, read_input, use_tool
from core.tools.units import convert_unit, derive_value
from core.tools.vocabulary import load_vocabulary, lower_text, normalize_chars, resolve_language
from tests.tools.corpus import Row, missed, rows, same_quantities, table

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
    wrong = [
        r for r in corpus if match_quantities(only(r["claim"]), only(r["evidence"])) != r["match"]
    ]
    assert 1 - len(wrong) / len(corpus) >= FLOOR, wrong


@pytest.mark.parametrize(
    "written", ["3 × 10⁶", "3×10^6", "3 · 10^{6}", "3 x 10**6", "3e6", "3,000,000", "3,000,000⁵"]
)
def test_powers_of_ten_are_read_however_they_are_written(written: str) -> None:
    quantity = only(f"{written} litres")
    assert match_quantities(quantity, only("3 million litres")) == "same"
    assert match_quantities(quantity, only("4 million litres")) == "different"


@pytest.mark.parametrize("text", ["120 people³ live", "120³ people live"])
def test_superscript_marks_change_neither_number_nor_noun(text: str) -> None:
    quantity = only(text)
    assert (quantity.low, quantity.noun) == (120, only("120 people").noun)


def test_ambiguous_grouping_agrees_either_way() -> None:
    spanish = only("39,000 habitantes", "es")
    assert match_quantities(spanish, only("39.000 habitantes", "es")) == "same"
    assert match_quantities(spanish, only("38.000 habitantes", "es")) == "different"


@pytest.mark.parametrize(*table("quantities: the tolerance follows from the precision as written"))
def test_the_tolerance_follows_from_the_precision_as_written(
    one: str, other: str, match: str
) -> None:
    assert match_quantities(only(one), only(other)) == match


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
        assert match_quantities(first, first) == "same"
        for second in found:
            assert match_quantities(first, second) == match_quantities(second, first)


@QUICK
@given(st.text(max_size=80))
def test_plain_text_keeps_every_place(text: str) -> None:
    assert len(normalize_chars(text)) == len(text)
    assert len(lower_text(text)) == len(text)


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
    assert resolve_language(tag) == "en"
    assert load_vocabulary(tag).language == "en"


@pytest.mark.parametrize("language", ["xx", "und", "en-GB", "zh-Hans-CN", "pt_BR", "", "nb"])
def test_any_language_tag_is_accepted(language: str) -> None:
    assert [q.low for q in find_quantities("5 km", language)] == [5000]


def test_positions_cover_number_and_unit_not_the_bound() -> None:
    quantity = only("😀 It cost about US$1.5 million then.")
    assert (quantity.start, quantity.end, quantity.text) == (16, 30, "US$1.5 million")


@pytest.mark.parametrize(*table("quantities: what two figures or a list of them give"))
def test_what_two_figures_or_a_list_of_them_give(stated: str, evidence: str, words: str) -> None:
    found = derive_value(find_quantities(stated)[0], find_quantities(evidence))
    assert words in [one.words for one in found]


@pytest.mark.parametrize(*table("quantities: what figures do not give"))
def test_what_figures_do_not_give(stated: str, evidence: str) -> None:
    for quantity in find_quantities(stated):
        assert derive_value(quantity, find_quantities(evidence)) == []


@given(st.lists(st.integers(10, 10**6), min_size=2, max_size=60))
def test_totals_and_differences_are_found_among_few_or_many(values: list[int]) -> None:
    evidence = find_quantities("; ".join(f"{value} km" for value in values))
    for total in (sum(values), abs(values[0] - values[1])):
        stated = only(f"({total} km)")
        is_said = any(value == total for value in values[:40])
        found = derive_value(stated, evidence)
        assert bool(found) is not is_said or len(values) > 40


ROOT = Path(__file__).resolve().parents[2]


def used(**given: object) -> ToolUse:
    return use_tool(
        units.TOOL, read_input(units.TOOL, json.dumps(given)), ToolContext(StopSignal())
    )


def found(row: Row) -> bool:
    """True where the conversion holds, is marked as wrong, or is none, as the row says."""
    told = used(text=row["text"], language=row["language"])
    if row["wrong"] in ("holds", "none"):
        return told.label == {"holds": "supported", "none": "unclear"}[row["wrong"]]
    number, unit = told.instead.split()
    wanted, wanted_unit = row["instead"].split()
    is_right = float(number) == pytest.approx(float(wanted), rel=1e-9) and unit == wanted_unit
    return is_right and row["text"][told.start : told.end] == row["wrong"]


def test_conversions_of_the_corpus() -> None:
    corpus = rows("conversions")
    missed = [row for row in corpus if not found(row)]
    assert missed == []


@pytest.mark.parametrize("text", ["It is 5 m long.", "5 m (5 kg)", ""])
def test_a_text_without_a_conversion_is_nothing_to_look_at(text: str) -> None:
    assert used(text=text).outcome == "nothing"
    assert units.read_conversion(None, Case("c", "p", text, language="en")) is None


def test_an_amount_is_converted() -> None:
    told = used(value=100, unit="km/h", to="mph")
    assert (told.outcome, told.label) == ("found", "unclear")
    assert json.loads(told.gave)["value"].startswith("62.137119")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": 1, "unit": "km/h", "to": "kg"}, "two units of one kind"),
        ({"value": 1, "unit": "m**9999999", "to": "kg"}, "Expected a unit such as"),
        ({"value": 1, "unit": "__import__", "to": "kg"}, "Expected a unit such as"),
        ({"value": 1e300, "unit": "km", "to": "m"}, "at most 1e+15"),
        ({"text": "5 km (3 miles) " * 2000}, "at most 20,000"),
    ],
)
def test_what_cannot_be_converted_fails_with_a_sentence(
    given: dict[str, object], said: str
) -> None:
    told = used(**given)
    assert (told.outcome, told.label) == ("failed", "unclear")
    assert said in told.words


@given(
    st.floats(-1e9, 1e9).filter(lambda value: abs(value) > 1e-6 or value == 0),
    st.sampled_from([("metres", "feet"), ("°C", "°F"), ("kg", "pounds"), ("km/h", "mph")]),
)
def test_there_and_back_is_where_one_began(value: float, pair: tuple[str, str]) -> None:
    there = float(convert_unit(value, *pair))
    assert float(convert_unit(there, *reversed(pair))) == pytest.approx(value, rel=1e-9, abs=1e-6)
