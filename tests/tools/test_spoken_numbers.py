"""Numbers in words, English and Chinese."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.spoken_numbers import english_number, han_number, han_value

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
TENS = " twenty thirty forty fifty sixty seventy eighty ninety".split(" ")
HAN = "零一二三四五六七八九"


def english(number: int) -> str:
    """The number in words, as one says it."""
    if number < 20:
        return SMALL[number]
    if number < 100:
        return TENS[number // 10 - 1] + (f"-{SMALL[number % 10]}" if number % 10 else "")
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if number >= size:
            rest = f" {english(number % size)}" if number % size else ""
            return f"{english(number // size)} {name}{rest}"
    rest = f" and {english(number % 100)}" if number % 100 else ""
    return f"{SMALL[number // 100]} hundred{rest}"


def han(number: int) -> str:
    """The number in Chinese, written out."""
    if number >= 10**4:
        size, name = (10**8, "亿") if number >= 10**8 else (10**4, "万")
        rest = number % size
        gap = "零" if rest and rest < size // 10 else ""
        return han(number // size) + name + gap + (han(rest) if rest else "")
    written, is_gap = "", False
    for size, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // size % 10
        if digit:
            written += ("零" if is_gap and written else "") + HAN[digit] + name
        is_gap = not digit
    return written or "零"


@given(st.integers(0, 10**12 - 1))
def test_any_whole_number_is_read_as_it_is_said(number: int) -> None:
    spoken = english_number(english(number), 0)
    assert spoken is not None
    assert (int(spoken.value), spoken.end) == (number, len(english(number)))


@given(st.integers(0, 10**12 - 1))
def test_any_whole_number_is_read_as_it_is_written_in_chinese(number: int) -> None:
    written = han(number)
    spoken = han_number(written, 0)
    assert spoken is not None
    assert (int(spoken.value), spoken.end) == (number, len(written))


@pytest.mark.parametrize(
    ("written", "value", "end"),
    [
        ("twelve hundred people", 1200, 14),
        ("one hundred and twenty-three", 123, 28),
        ("a hundred", 100, 9),
        ("three quarters of 40", Fraction(3, 4), 14),
        ("two thirds", Fraction(2, 3), 10),
        ("a quarter", Fraction(1, 4), 9),
        ("half of 90", Fraction(1, 2), 4),
        ("twenty ten", 20, 6),
        ("five and six", 5, 4),
    ],
)
def test_english_numbers(written: str, value: Fraction, end: int) -> None:
    spoken = english_number(written, 0)
    assert spoken is not None
    assert (spoken.value, spoken.end) == (value, end)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("两百零五", 205),
        ("3万5千", 35_000),
        ("三万五", 35_000),
        ("三百五", 350),
        ("一万亿", 10**12),
        ("1.2亿", 120_000_000),
        ("百分之二十五", Fraction(1, 4)),
        ("三分之二", Fraction(2, 3)),
        ("二〇二四", 2024),
        ("十五", 15),
        ("三点一四", Fraction(314, 100)),
        ("一半", Fraction(1, 2)),
    ],
)
def test_chinese_numbers(written: str, value: Fraction) -> None:
    spoken = han_number(written, 0)
    assert spoken is not None
    assert (spoken.value, spoken.end) == (value, len(written))


def test_a_part_of_nothing_is_no_number() -> None:
    assert han_number("零分之三", 0) is None
    assert english_number("apples", 0) is None
    assert han_value("") == 0
