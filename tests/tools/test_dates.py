"""Dates in texts, and what a calendar makes of them: times, weekdays, ages, claims."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import date, timedelta

import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.concurrency import StopSignal
from core.tools.calendar import TOOL, CalendarInput
from core.tools.date_claims import (
    DateClaim,
    TimeUnit,
    check_question,
    compute_age,
    find_claims,
    measure_span,
    name_weekday,
    shift_date,
    translate_duration,
)
from core.tools.date_values import DateValue, compare_dates
from core.tools.dates import find_dates
from core.tools.registry import ToolContext, use_tool
from tests.tools.corpus import Row, missed, rows, same_dates, table
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


@pytest.mark.parametrize(*table("dates: same day in any language"))
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


LEAP = date(2024, 2, 29)


def test_days_count_nights_unless_both_ends_are_meant() -> None:
    first, last = date(2023, 12, 30), date(2024, 3, 1)
    assert measure_span(first, last, "day").whole == 62
    assert measure_span(last, first, "day").whole == 62
    assert measure_span(first, last, "day", is_inclusive=True).whole == 63


@pytest.mark.parametrize(
    ("last", "unit", "whole", "over"),
    [
        (date(2024, 2, 29), "month", 0, 29),
        (date(2024, 3, 1), "month", 1, 1),
        (date(2024, 3, 31), "month", 2, 0),
        (date(2025, 1, 30), "year", 0, 365),
        (date(2026, 1, 31), "year", 2, 0),
        (date(2024, 2, 14), "week", 2, 0),
    ],
)
def test_stretches_from_the_end_of_january(
    last: date, unit: TimeUnit, whole: int, over: int
) -> None:
    found = measure_span(date(2024, 1, 31), last, unit)
    assert (found.whole, found.days_over) == (whole, over)


def test_a_stretch_with_days_over_may_be_rounded_either_way() -> None:
    found = measure_span(date(2024, 1, 1), date(2024, 1, 18), "week")
    assert [found.is_said_by(n) for n in (1, 2, 2.43, 3, 4)] == [False, True, True, True, False]
    exact = measure_span(date(2024, 1, 1), date(2024, 1, 15), "week")
    assert [exact.is_said_by(n) for n in (2, 3)] == [True, False]


def test_moving_keeps_inside_months_and_the_calendar() -> None:
    assert shift_date(date(2023, 1, 31), 1, "month") == date(2023, 2, 28)
    assert shift_date(LEAP, -1, "year") == date(2023, 2, 28)
    assert shift_date(date(2024, 1, 1), -1, "day") == date(2023, 12, 31)
    assert shift_date(date(9999, 12, 31), 1, "day") is None
    assert shift_date(date(1, 1, 1), -(10**12), "month") is None


def test_weekdays_and_ages() -> None:
    assert name_weekday(date(2000, 1, 1)) == "Saturday"
    assert compute_age(date(1990, 6, 15), date(2020, 6, 14)) == 29
    assert compute_age(date(1990, 6, 15), date(2020, 6, 15)) == 30
    assert compute_age(LEAP, date(2025, 2, 28)) == 0
    assert compute_age(date(2020, 1, 1), date(2019, 1, 1)) is None


@given(st.dates(max_value=date(9000, 1, 1)), st.integers(0, 200_000))
def test_moving_and_measuring_agree(first: date, days: int) -> None:
    last = first + timedelta(days=days)
    assert shift_date(first, measure_span(first, last, "day").whole, "day") == last
    for unit in ("week", "month", "year"):
        found = measure_span(first, last, unit)
        reached = shift_date(first, found.whole, unit)
        assert reached is not None
        assert reached + timedelta(days=found.days_over) == last


@pytest.mark.parametrize(*table("calendar: what is said in Chinese"))
def test_what_is_worked_out_for_a_chinese_text_is_said_in_chinese(words: str, chinese: str) -> None:
    assert translate_duration(words, "zh-Hans") == chinese
    assert translate_duration(words, "en") == words


def test_a_wrong_chinese_weekday_is_put_right_in_chinese() -> None:
    found = use_tool(
        TOOL,
        CalendarInput("大桥于1931年5月4日通车，那天是星期日。", language="zh"),
        ToolContext(StopSignal()),
    )
    assert (found.label, found.instead) == ("hallucinated", "星期一")


def claimed(row: Row) -> bool:
    """True where the text's claim holds, is wrong, or is none, as the row says."""
    claims = find_claims(row["text"], row["language"])
    if row["finding"] == "none" or len(claims) != 1:
        return row["finding"] == "none" and not claims
    found = claims[0].finding
    is_told = found.worked_out.startswith(row["worked_out"])
    return found.holds is (row["finding"] == "holds") and is_told


def borne_out(row: Row) -> bool:
    """True where the words that the dates bear out, not the dates themselves, are the row's."""
    claims = find_claims(row["text"], row["language"])
    return [row["text"][slice(*claim.follows)] for claim in claims] == [row["follows"]]


def answered(row: Row) -> bool:
    """True where the answer is right, wrong or left alone, as the row says."""
    found = check_question(row["question"], row["answer"], row["language"])
    holds = {"holds": True, "wrong": False, "none": None}[row["finding"]]
    return (found.holds if found else None) is holds


@pytest.mark.parametrize(
    ("name", "is_right"), [("date_claims", claimed), ("date_questions", answered)]
)
def test_claims_and_questions_of_the_corpus(name: str, is_right: Callable[[Row], bool]) -> None:
    corpus = rows(name)
    missed = [row for row in corpus if not is_right(row)]
    assert 1 - len(missed) / len(corpus) >= FLOOR, missed


def test_the_dates_themselves_are_not_among_the_words_borne_out() -> None:
    assert [row for row in rows("borne_out") if not borne_out(row)] == []


def test_the_calendars_answer_is_said_in_words() -> None:
    found = check_question("How many weeks between 2024-01-01 and 2024-01-18?", "5 weeks")
    assert found is not None
    assert found.worked_out == "2 weeks and 3 days"


def only_claim(text: str, language: str) -> DateClaim:
    (claim,) = find_claims(text, language)
    return claim


def test_a_date_before_the_text_may_be_what_it_leans_on() -> None:
    text = "Ten years later, in 2010, it was sold."
    assert find_claims(text, "en") == []
    (claim,) = find_claims(text, "en", "The firm was founded in 1990. ")
    assert not claim.finding.holds
    assert text[claim.finding.start : claim.finding.end] == "2010"
    assert find_claims("It was sold.", "en", "12 March 2024 was a Monday. ") == []


@given(st.dates(min_value=date(1600, 1, 1), max_value=date(2400, 1, 1)), st.integers(0, 6))
def test_weekdays_of_any_date(day: date, said: int) -> None:
    name = name_weekday(date(2024, 1, 1 + said))
    claim = only_claim(f"{day.day} {day:%B} {day.year} was a {name}.", "en")
    assert claim.finding.holds is (day.weekday() == said)


@given(st.integers(1700, 1950), st.integers(2, 90), st.integers(2, 90))
def test_years_between_any_two(first: int, apart: int, said: int) -> None:
    claims = find_claims(f"From {first} to {first + apart} are {said} years.", "en")
    assert [claim.finding.holds for claim in claims] == [apart == said] * (abs(apart - said) != 1)


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_can_be_read(text: str, before: str) -> None:
    for led in (text, f"From 3 March 2020 {text} are 4 days", f"born 1976-07-04 {text} was 23"):
        for claim in find_claims(led, "en", before):
            assert 0 <= claim.start <= claim.finding.start < claim.finding.end <= len(led)
