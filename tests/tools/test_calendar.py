"""Times between dates, dates some time away, weekdays and ages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.concurrency import Stop
from core.tools.calendar import TOOL, Dates
from core.tools.date_claims import (
    DateClaim,
    TimeUnit,
    age_on,
    between,
    check_question,
    claims_in,
    in_language,
    moved,
    weekday_name,
)
from core.tools.registry import Bench, use
from tests.tools.corpus import Row, rows

LEAP = date(2024, 2, 29)


def test_days_count_nights_unless_both_ends_are_meant() -> None:
    first, last = date(2023, 12, 30), date(2024, 3, 1)
    assert between(first, last, "day").whole == 62
    assert between(last, first, "day").whole == 62
    assert between(first, last, "day", is_inclusive=True).whole == 63


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
    found = between(date(2024, 1, 31), last, unit)
    assert (found.whole, found.days_over) == (whole, over)


def test_a_stretch_with_days_over_may_be_rounded_either_way() -> None:
    found = between(date(2024, 1, 1), date(2024, 1, 18), "week")
    assert [found.is_said_by(n) for n in (1, 2, 2.43, 3, 4)] == [False, True, True, True, False]
    exact = between(date(2024, 1, 1), date(2024, 1, 15), "week")
    assert [exact.is_said_by(n) for n in (2, 3)] == [True, False]


def test_moving_keeps_inside_months_and_the_calendar() -> None:
    assert moved(date(2023, 1, 31), 1, "month") == date(2023, 2, 28)
    assert moved(LEAP, -1, "year") == date(2023, 2, 28)
    assert moved(date(2024, 1, 1), -1, "day") == date(2023, 12, 31)
    assert moved(date(9999, 12, 31), 1, "day") is None
    assert moved(date(1, 1, 1), -(10**12), "month") is None


def test_weekdays_and_ages() -> None:
    assert weekday_name(date(2000, 1, 1)) == "Saturday"
    assert age_on(date(1990, 6, 15), date(2020, 6, 14)) == 29
    assert age_on(date(1990, 6, 15), date(2020, 6, 15)) == 30
    assert age_on(LEAP, date(2025, 2, 28)) == 0
    assert age_on(date(2020, 1, 1), date(2019, 1, 1)) is None


@given(st.dates(max_value=date(9000, 1, 1)), st.integers(0, 200_000))
def test_moving_and_measuring_agree(first: date, days: int) -> None:
    last = first + timedelta(days=days)
    assert moved(first, between(first, last, "day").whole, "day") == last
    for unit in ("week", "month", "year"):
        found = between(first, last, unit)
        reached = moved(first, found.whole, unit)
        assert reached is not None
        assert reached + timedelta(days=found.days_over) == last


@pytest.mark.parametrize(
    ("words", "chinese"),
    [
        ("Sunday", "星期日"),
        ("1 day", "1天"),
        ("1,200 weeks", "1,200周"),
        ("2 weeks and 3 days", "2周零3天"),
        ("3 to 4 years", "3至4年"),
        ("2014-02-06", "2014-02-06"),
    ],
)
def test_what_is_worked_out_for_a_chinese_text_is_said_in_chinese(words: str, chinese: str) -> None:
    assert in_language(words, "zh-Hans") == chinese
    assert in_language(words, "en") == words


def test_a_wrong_chinese_weekday_is_put_right_in_chinese() -> None:
    found = use(TOOL, Dates("大桥于1931年5月4日通车，那天是星期日。", language="zh"), Bench(Stop()))
    assert (found.label, found.instead) == ("hallucinated", "星期一")


FLOOR = 0.97  # all rows hold today


def claimed(row: Row) -> bool:
    """True where the text's claim holds, is wrong, or is none, as the row says."""
    claims = claims_in(row["text"], row["language"])
    if row["finding"] == "none" or len(claims) != 1:
        return row["finding"] == "none" and not claims
    found = claims[0].finding
    is_told = found.worked_out.startswith(row["worked_out"])
    return found.holds is (row["finding"] == "holds") and is_told


def borne_out(row: Row) -> bool:
    """True where the words that the dates bear out, not the dates themselves, are the row's."""
    claims = claims_in(row["text"], row["language"])
    return [row["text"][slice(*claim.follows)] for claim in claims] == [row["follows"]]


def answered(row: Row) -> bool:
    """True where the answer is right, wrong or left alone, as the row says."""
    found = check_question(row["question"], row["answer"], row["language"])
    holds = {"holds": True, "wrong": False, "none": None}[row["finding"]]
    return (found.holds if found else None) is holds


@pytest.mark.parametrize(
    ("name", "is_right"), [("date_claims", claimed), ("date_questions", answered)]
)
def test_dates_of_the_corpus(name: str, is_right: Callable[[Row], bool]) -> None:
    corpus = rows(name)
    missed = [row for row in corpus if not is_right(row)]
    assert 1 - len(missed) / len(corpus) >= FLOOR, missed


def test_the_dates_themselves_are_not_among_the_words_borne_out() -> None:
    assert [row for row in rows("borne_out") if not borne_out(row)] == []


def test_the_calendars_answer_is_said_in_words() -> None:
    found = check_question("How many weeks between 2024-01-01 and 2024-01-18?", "5 weeks")
    assert found is not None
    assert found.worked_out == "2 weeks and 3 days"


def only(text: str, language: str) -> DateClaim:
    (claim,) = claims_in(text, language)
    return claim


def test_a_date_before_the_text_may_be_what_it_leans_on() -> None:
    text = "Ten years later, in 2010, it was sold."
    assert claims_in(text, "en") == []
    (claim,) = claims_in(text, "en", "The firm was founded in 1990. ")
    assert not claim.finding.holds
    assert text[claim.finding.start : claim.finding.end] == "2010"
    assert claims_in("It was sold.", "en", "12 March 2024 was a Monday. ") == []


@given(st.dates(min_value=date(1600, 1, 1), max_value=date(2400, 1, 1)), st.integers(0, 6))
def test_weekdays_of_any_date(day: date, said: int) -> None:
    name = weekday_name(date(2024, 1, 1 + said))
    claim = only(f"{day.day} {day:%B} {day.year} was a {name}.", "en")
    assert claim.finding.holds is (day.weekday() == said)


@given(st.integers(1700, 1950), st.integers(2, 90), st.integers(2, 90))
def test_years_between_any_two(first: int, apart: int, said: int) -> None:
    claims = claims_in(f"From {first} to {first + apart} are {said} years.", "en")
    assert [claim.finding.holds for claim in claims] == [apart == said] * (abs(apart - said) != 1)


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_can_be_read(text: str, before: str) -> None:
    for led in (text, f"From 3 March 2020 {text} are 4 days", f"born 1976-07-04 {text} was 23"):
        for claim in claims_in(led, "en", before):
            assert 0 <= claim.start <= claim.finding.start < claim.finding.end <= len(led)
