"""Equations that a text states: found, worked out, and right only where they are."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.equations import equations_in
from core.tools.growth import told_sums
from core.tools.rounding import shown
from tests.tools.test_formula import PIECES, SECONDS, sums


def verdicts(text: str) -> list[bool | None]:
    return [one.holds for one in equations_in(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is (12 / 4 = 5).", [("5", "3")]),
        ("About 1,123 a day on average (410,000 / 365 = 1,123).", []),
        ("2 * (3 + 4) = 14", []),
        ("(3 + 4) = 8", [("8", "7")]),
    ],
)
def test_a_sum_in_parentheses_is_one_too(text: str, found: list[tuple[str, str]]) -> None:
    assert equations_in(text)
    assert wrong(text) == found


@pytest.mark.parametrize(
    ("text", "holds", "instead"),
    [
        ("30 + 18 = 48 million euros", True, "48 million"),
        ("30 + 18 = 46 million euros", False, "48 million"),
        ("3,000,000 + 2,000,000 = 6 million", False, "5 million"),
        ("1.5 million + 2.25 million = 4 million", False, "3.75 million"),
        ("3000万+1800万=4600万欧元", False, "4800万"),
        ("300 * 200 = 6万", True, "6万"),
    ],
)
def test_a_scale_that_only_the_result_has_is_meant_of_the_whole_sum(
    text: str, holds: bool, instead: str
) -> None:
    (found,) = equations_in(text)
    assert (found.holds, found.instead) == (holds, instead)


def wrong(text: str) -> list[tuple[str, str]]:
    """The values that do not hold, as they are written, with what they should be."""
    found = [*equations_in(text), *told_sums(text)]
    return [
        (text[one.wrong_start : one.wrong_end], one.instead) for one in found if one.holds is False
    ]


@pytest.mark.parametrize(
    "text",
    [
        "2287720 / 2 = 1143860",
        "25 % of 80 is 20.",
        "Half of 90 is 45, and three quarters of 40 is 30.",
        "三加五等于八。",
        "120的25%是30",
        "小明买了8袋盐，总共花费了8 * 3 = 24元。",
        "V = π*10^2*20 = 2000π cubic metres",
        "周长 = π * 直径 = 3.14 * 0.8 = 2.512 米",
        r"$S = \frac{(12 + 16) \times 9}{2} = \frac{28 \times 9}{2} = 126$",
        "**8 * 3 = 24**",
        "1. 3 + 5 = 8\n- 3 + 4 = 7",
        "17 / 5 = 3 remainder 2 and 17÷5=3……2",
        "The total is 40 - 24 = 16 - so 16 are left? No: 40 - 24 = 16.",
        "12 m + 30 cm = 12.3 m",
        "24000000厘米 = 240千米",
        "120 minutes / 60 = 2 hours",
        "450 / 1800 * 100 = 25%",
        "100 + 10% = 110",
        "2/3 = 0.67 and 2/3 = 0.66 and 1/3 ≈ 0.3 and 10 / 3 = 3.33...",
        "sqrt(2) ≈ 1.41",
        "24 = 8 * 3",
        "200-40-70=200-110=90",
        "2 girls' teams + 2 boys' teams = 4",
        "the square root of 49 is 7",
        "4 + 24 + x = 28 + x",
        "2x + 3 = 27, so x = 12",
        "x^2 = 9, x = 3",
        "x^5 = 0, x = 0",
        "x^3 = 4x, x = -2",
        "3x = 10, x = 3.33",
        "3 hours + 20 minutes = 3 hours 20 minutes",
        "We have 5! = 120 ways. 2 + 2 = 4!",
        "$4.50 × 2 = $9.00",
    ],
)
def test_what_holds(text: str) -> None:
    assert verdicts(text)
    assert set(verdicts(text)) == {True}


@pytest.mark.parametrize(
    ("text", "value", "instead"),
    [
        ("3 hours + 0.5 hours + 1.5 hours = 4 hours", "4", "5"),
        ("6314246 + 25256984 + 50513968 = 82185198", "82185198", "82085198"),
        ("60000 / 35732050 = 0.001677", "0.001677", "0.001679164783"),
        ("20 * 10 / 2 = 200 / 2 = 101", "101", "100"),
        ("三加五等于九", "九", "8"),
        ("120的25%是31", "31", "30"),
        ("one hundred divided by four equals twenty-six", "twenty-six", "25"),
        ("长1米 x 宽0.6米 x 高5分米 = 3 立方米", "3", "0.3"),
        ("5 m + 30 cm = 5.03 m", "5.03", "5.3"),
        ("10/3 = 3", "3", "3.333333333"),
        ("3/4 = 0.8", "0.8", "0.75"),
        ("2 + 2 = -4", "-4", "4"),
        ("8000 - 2000π ≈ 1047.2", "1047.2", "1716.814693"),
        ("2x + 3 = 27\nx = 13", "13", "12"),
        ("x + 3x + (1/4)x = (13/4)x", "(13/4)x", "17*x/4"),
        ("17 / 5 = 3 remainder 1", "3", "3"),
        ("2 + 2 = 5!", "5", "4"),
        ("3,000 + 5 = 3,500", "3,500", "3005"),
        ("12的一半是7", "7", "6"),
        ("3x = 1, x = 2/3", "2/3", "0.3333333333"),
        ("😀 3 + 5 = 9 é", "9", "8"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_marked_with_what_it_should_be(
    text: str, value: str, instead: str
) -> None:
    assert wrong(text) == [(value, instead)]


@pytest.mark.parametrize(
    "text",
    [
        "It is not true that 3 + 5 = 9.",
        "He wrongly wrote, which is incorrect, 3 + 5 = 9.",
        "In binary 1 + 1 = 10.",
        "7 + 8 = 3 mod 12",
        "total - 5 = 10",
        "cost * 3 = 10",
        "f(2) = 4 and g(3 + 1) = 7",
        "a = 5, b = 7",
        "x + y = 10",
        "From 2019-2020 is one year.",
        "20 more than 5 + 3 = 28",
        "3 times 5 is 2 more than 13",
        "the average of 3 + 5 = 4",
        "2,5 * 2 = 5",
        "1 + 2 + ... + 100 = 5050",
        "if (a == 3 + 4) b = 8",
        "3 + 5 != 9, 3 + 5 >= 9, 3 + 5 => 9",
        "The score was 3 - 2. Room 12 is closed.",
        "24/7 is 3 words",
        "10:30 = 22:30",
        "Let x = 5. Let 2x = 12.",
        "S = (a + b) * h / 2",
        "The odds were higher (OR = 2.1, 95% CI = 1.5-2.8; 95%CI=0.91-1.67).",
        "Ratings varied (r = 0.21-r = 0.77, then r = 0.64-r = 0.80).",
        "The range of 5 = 3-4.",
        "",
        "=",
        "= 3",
        "3 =",
    ],
)
def test_what_states_no_wrong_sum(text: str) -> None:
    assert not wrong(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9**9**9 = 5", "too large"),
        ("5 / 0 = 3", "divides by zero"),
        ("999! = 3", "too large"),
        ("sqrt(-4) = 2", "negative"),
    ],
)
def test_what_cannot_be_worked_out_is_open(text: str, why: str) -> None:
    (found,) = equations_in(text)
    assert found.holds is None
    assert why in found.why


def test_a_step_that_does_not_follow_is_told_with_what_the_last_one_came_to() -> None:
    text = "x/15 = x/17 + 4\n17x = 15x + 60\n2x = 60\nx = 30"
    (step,) = [one for one in equations_in(text) if one.holds is False]
    assert text[step.wrong_start : step.wrong_end] == "15x + 60"
    assert "x = 510" in step.why


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Sales grew by 20 % from 50 to 60.", []),
        ("Revenue fell 25% from 80 million to 60 million.", []),
        ("Prices rose from 50 to 60, an increase of 25%.", [("25", "20")]),
        ("from 60 to 50, a decrease of 17 %", []),
        ("从50增长到60，增长了20%", []),
        ("从50增长20%到65", [("20", "30")]),
        ("the sum of 3, 4 and 5 is 13", [("13", "12")]),
        ("the average of three and five is four", []),
        ("3与5的积是16", [("16", "15")]),
        ("8:6 = 4:3", []),
        ("8:6 = 3:4", [("3:4", "4:3")]),
        ("80元打八折是66元", [("66", "64")]),
        ("from 0 to 60, an increase of 20 %", []),
    ],
)
def test_sums_that_are_told_without_a_sign(text: str, found: list[tuple[str, str]]) -> None:
    assert wrong(text) == found


@given(sums(), st.integers(-50, 50))
def test_a_stated_value_is_right_only_where_it_is(
    made: tuple[str, Fraction | None], off: int
) -> None:
    """A whole value is right where it is the true one, or its nearest within half a per cent."""
    formula, value = made
    if value is None or not any(sign in formula for sign in "+-*/"):
        return
    stated = round(value) + off
    found = [
        one for one in equations_in(f"We get {formula} = {stated}.") if one.stated == str(stated)
    ]
    missed = abs(stated - value)
    is_right = missed == 0 or (missed <= Fraction(1, 2) and missed <= abs(value) / 200)
    assert [one.holds for one in found] == [is_right] or not any(c in formula for c in "+*/")


@given(st.fractions(-100, 100, max_denominator=1000), st.integers(2, 6))
def test_a_value_rounded_or_cut_at_any_of_its_decimals_is_right(
    value: Fraction, digits: int
) -> None:
    scaled = value * 10**digits
    nearest = Fraction(round(scaled), 10**digits)
    written = f"{float(nearest):.{digits}f}"
    formula = f"{value.numerator} / {value.denominator}"
    assert set(verdicts(f"{formula} = {written}")) == {True}
    off = f"{float(nearest + Fraction(3, 10**digits)):.{digits}f}"
    assert set(verdicts(f"{formula} = {off}")) == {False}


@given(
    st.lists(st.sampled_from([*PIECES, "\n", "3", "8", "is", "等于", ":", "and"]), max_size=80).map(
        "".join
    )
)
def test_no_text_hangs_or_breaks_the_reading(text: str) -> None:
    began = time.perf_counter()
    for one in [*equations_in(text), *told_sums(text)]:
        assert 0 <= one.start <= one.end <= len(text)
        assert 0 <= one.wrong_start <= one.wrong_end <= len(text)
    assert time.perf_counter() - began < SECONDS


@pytest.mark.parametrize(
    "text",
    ["3+" * 9000 + "3=4", "=" * 20_000, "3=" * 10_000, "(" * 20_000, "1 " * 10_000,
     "x+" * 9000 + "=1", "三" * 20_000, "9^" * 9000 + "=1",
     "one hundred and " * 1200, "a, " * 6000 + "is 3"],
)  # fmt: skip
def test_long_texts_are_read_in_time(text: str) -> None:
    began = time.perf_counter()
    equations_in(text)
    told_sums(text)
    assert time.perf_counter() - began < 10 * SECONDS


def test_a_function_of_an_unknown_is_left_out() -> None:
    assert equations_in("sqrt(x)^0 + x = 3, so x = 5") == []


def test_values_are_shown_exactly_or_to_ten_digits() -> None:
    assert shown(Fraction(5)) == "5"
    assert shown(Fraction(-1, 8)) == "-0.125"
    assert shown(Fraction(1, 3)) == "0.3333333333"
    assert shown(Fraction(1, 4), is_percent=True) == "25%"
    assert "digits" in shown(Fraction(10**400, 3))
