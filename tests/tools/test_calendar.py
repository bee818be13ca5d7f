"""Times between dates, dates some time away, weekdays and ages."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.concurrency import Stop
from core.tools.box.calendar import TOOL, Dates
from core.tools.calendar import TimeUnit, age_on, between, in_language, moved, weekday_name
from core.tools.toolbox import Bench, use

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
