"""Dates: those of the corpus, what must hold of any text, and whether two agree."""

from __future__ import annotations

import itertools
from datetime import date

import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st

from core.tools.date_values import DateValue, compare_dates
from core.tools.dates import find_dates
from tests.tools.corpus import missed, rows, same_dates
from tests.tools.test_quantities import LANGUAGES, QUICK, TAGS, TEXTS

FLOOR = 0.97  # 372 of 378 rows


def only(text: str, language: str = "en") -> DateValue:
    [found] = find_dates(text, language)
    return found


def test_dates_of_the_corpus() -> None:
    wrong = missed("dates", same_dates)
    assert 1 - len(wrong) / len(rows("dates")) >= FLOOR, wrong
    assert {row["language"] for row in rows("dates")} >= set(LANGUAGES)


def test_comparisons_of_the_corpus() -> None:
    corpus = rows("compare_dates")
    wrong = [
        r for r in corpus if compare_dates(only(r["claim"]), only(r["evidence"])) != r["match"]
    ]
    assert 1 - len(wrong) / len(corpus) >= FLOOR, wrong


@pytest.mark.parametrize(
    ("language", "text", "english"),
    [
        ("de", "3. Mai 1999", "3 May 1999"),
        ("zh", "1999年5月3日", "3 May 1999"),
        ("ar", "٣ مايو ١٩٩٩", "3 May 1999"),
        ("fa", "۲۷ اسفند ۱۳۵۰", "17 March 1972"),
        ("ja", "平成11年5月3日", "3 May 1999"),
        ("th", "พ.ศ. 2562", "in 2019"),
    ],
)
def test_same_day_in_any_language(language: str, text: str, english: str) -> None:
    assert compare_dates(only(text, language), only(english)) == "same"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 12 March 2019", date(2019, 3, 12), date(2019, 3, 12)),
        ("in February 2020", date(2020, 2, 1), date(2020, 2, 29)),
        ("in 2019", date(2019, 1, 1), date(2019, 12, 31)),
        ("Q3 2020", date(2020, 7, 1), date(2020, 9, 30)),
        ("the 1990s", date(1990, 1, 1), date(1999, 12, 31)),
        ("12–15 March 2019", date(2019, 3, 12), date(2019, 3, 15)),
    ],
)
def test_a_date_is_an_interval_of_days(text: str, first: date, last: date) -> None:
    assert only(text).interval == (first, last)


@pytest.mark.parametrize("text", ["44 BC", "in March", "03/04/2019"])
def test_no_interval_where_the_days_are_not_sure(text: str) -> None:
    assert [found.interval for found in find_dates(text)] in ([None], [])


@QUICK
@given(TEXTS, TAGS)
def test_dates_lie_where_they_say(text: str, language: str) -> None:
    found = find_dates(text, language)
    for one in found:
        assert 0 <= one.start < one.end
        assert text[one.start : one.end] == one.text
        assert one.month is None or 1 <= one.month <= 12
        assert one.day is None or 1 <= one.day <= 31
        assert one.interval is None or one.interval[0] <= one.interval[1]
    for first, second in itertools.pairwise(found):
        assert first.end <= second.start


@QUICK
@given(TEXTS, TEXTS, TAGS)
def test_dates_compare_alike_both_ways(one: str, other: str, language: str) -> None:
    found = find_dates(one, language) + find_dates(other, language)
    for first in found:
        assert compare_dates(first, first) == "same"
        for second in found:
            assert compare_dates(first, second) == compare_dates(second, first)


@given(
    st.dates(date(1000, 1, 1), date(2100, 1, 1)),
    st.sampled_from("en de fr es it pt nl sv fi cs ca pl tr ru hi zh ja ko".split()),
    st.sampled_from(["long", "full"]),
)
def test_days_as_cldr_formats_them_are_found_again(day: date, language: str, form: str) -> None:
    found = find_dates(format_date(day, form, locale=language), language)
    assert (day.year, day.month, day.day) in [(one.year, one.month, one.day) for one in found]


@given(st.dates())
def test_iso_dates_keep_their_parts(day: date) -> None:
    found = [(d.year, d.month, d.day) for d in find_dates(f"on {day}") if d.day]
    parts = (day.year, day.month, day.day)
    assert found == ([parts] if 1000 <= day.year < 3000 else [])
