"""The grammar of sums, and what they come to: exact, bounded, and nothing beside it."""

from __future__ import annotations

import contextlib
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.errors import InputError
from core.tools.arithmetic import (
    FormulaNode,
    UndefinedValueError,
    evaluate,
    format_value,
    list_steps,
    parse_formula,
)
from tests.tools.corpus import rows

SECONDS = 2.0  # for whatever is given; a shared machine included


def test_formulas_of_the_corpus() -> None:
    corpus = rows("formulas")
    missed = [r for r in corpus if evaluate(parse_formula(r["text"])) != Fraction(r["value"])]
    assert missed == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("sqrt(2) * sqrt(8)", 4), ("lg(1000)", 3), ("ln(exp(2))", 2), ("8^(1/3)", 2), ("2π/π", 2)],
)
def test_irrational_steps_are_right_to_forty_digits(text: str, value: int) -> None:
    assert abs(evaluate(parse_formula(text)) - value) < Fraction(1, 10**40)


@pytest.mark.parametrize(
    "text",
    [
        "", "+", "3 +", "(3", "3)", "3 4", "1/2x", "8/2(2+2)", "__import__('os')",
        "os.system('ls')",
        "lambda: 3", "(3).real", "[1,2]", "3 if 4 else 5", "1,5 + 2", "1.2.3 + 4", "٣+٤", "१+२",
        "a.b", "f(3)", "{3: 4}", "3; 4", "x := 3", "3 == 4", "'a' * 9", "\x00", "𝟑+𝟒",
        "1_000 + 1", "3 of 5", "(" * 40 + "3" + ")" * 40, "-" * 50 + "3", "2" + "^2" * 40,
        "sqrt " * 50 + "3",
    ],
)  # fmt: skip
def test_what_is_no_sum_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="Expected a formula"):
        parse_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9", "10^10^10", "2^-99999999", "170!!!", "401!", "5/0", "0^0", "0^-1", "(-4)^(1/2)",
        "sqrt(-1)", "ln(0)", "ln(-3)", "exp(10000)", "3.5!", "(-3)!", "x + 1", "log(10)",
        "9" * 60 + "^9^9", "(2^4000)*(2^4000)", "(10^300)^0.5^0.5*10^1200", "(2^0.5)^(9^3.5)^5",
    ],
)  # fmt: skip
def test_what_has_no_value_or_too_large_a_one_is_said_at_once(text: str) -> None:
    began = time.perf_counter()
    with pytest.raises((UndefinedValueError, InputError)):
        evaluate(parse_formula(text))
    assert time.perf_counter() - began < SECONDS


def test_a_long_formula_is_refused_before_it_is_read() -> None:
    with pytest.raises(InputError, match="at most 2,000 characters"):
        parse_formula("1+" * 2000 + "1")
    with pytest.raises(InputError, match="more than 300"):
        parse_formula("1+" * 400 + "1")


whole = st.integers(-(10**6), 10**6)
decimal = st.decimals(-1000, 1000, allow_nan=False, places=3).map(Fraction)


def _written(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.3f}"


@st.composite
def sums(draw: st.DrawFn, depth: int = 4) -> tuple[str, Fraction | None]:
    """A sum in our signs, and what Python's own fractions make of it; None: it divides by zero."""
    if depth == 0 or draw(st.booleans()):
        value = draw(st.one_of(whole.map(Fraction), decimal))
        return (f"({_written(value)})" if value < 0 else _written(value)), value
    left, one = draw(sums(depth=depth - 1))
    right, other = draw(sums(depth=depth - 1))
    sign = draw(st.sampled_from("+-*/"))
    written = f"({left} {sign} {right})"
    if one is None or other is None or (sign == "/" and other == 0):
        return written, None
    if sign == "/":
        return written, one / other
    return written, {"+": one + other, "-": one - other, "*": one * other}[sign]


@given(sums())
def test_arithmetic_is_that_of_fractions(made: tuple[str, Fraction | None]) -> None:
    written, value = made
    node = parse_formula(written)
    if value is None:
        with pytest.raises(UndefinedValueError, match="zero"):
            evaluate(node)
    else:
        assert evaluate(node) == value


PIECES = [
    "1", "2.5", "999", "-", "+", "*", "/", "^", "**", "(", ")", "%", "!", "x", "y", " ", "√", "π",
    "sqrt", "\\frac{", "}", "{", "of", "half", "m", "km", "元", "的", "三", "百", "=", "≈", "is",
    "...", "e9", "²", "°", "1/2", ",", "ln", "exp", "__import__('os')", "lambda", ".real", "\u0663",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_nothing_hangs_or_breaks(text: str) -> None:
    began = time.perf_counter()
    with contextlib.suppress(InputError, UndefinedValueError):
        node = parse_formula(text)
        assert isinstance(node, FormulaNode)
        assert isinstance(evaluate(node), Fraction)
    assert time.perf_counter() - began < SECONDS


@pytest.mark.parametrize(
    ("formula", "steps"),
    [
        ("3 + 0.5 + 1.5", ("3 + 0.5 = 3.5", "3.5 + 1.5 = 5")),
        ("(1 + 2) * 3 ^ 2", ("1 + 2 = 3", "3 ^ 2 = 9", "3 × 9 = 27")),
        ("25% of 80", ("25% = 0.25", "0.25 × 80 = 20")),
        ("2 - 5 + 1", ("2 − 5 = -3", "(-3) + 1 = -2")),
        ("7 * 6", ()),
        ("2.5 hours + 30 minutes + 1 hour", ()),
        ("x + 1 + 2", ()),
        ("no sum", ()),
        ("1 / 0 + 2", ()),
        ("9 ^ 9 ^ 9", ()),
        ("(" * 5000, ()),
    ],
)
def test_what_is_innermost_comes_first(formula: str, steps: tuple[str, ...]) -> None:
    assert list_steps(formula) == steps


numbers = st.integers(1, 99).map(str)
nested = st.recursive(
    numbers,
    lambda part: st.tuples(part, st.sampled_from("+-*"), part).map(
        lambda made: f"({made[0]} {made[1]} {made[2]})"
    ),
    max_leaves=8,
)


@given(nested)
def test_the_last_step_is_the_value_and_every_step_holds(formula: str) -> None:
    steps = list_steps(formula)
    if steps:
        assert steps[-1].endswith(f"= {format_value(evaluate(parse_formula(formula)))}")
    for step in steps:
        left, _, right = step.replace("×", "*").replace("−", "-").partition(" = ")
        assert evaluate(parse_formula(left)) == Fraction(right)


def test_values_are_shown_exactly_or_to_ten_digits() -> None:
    assert format_value(Fraction(5)) == "5"
    assert format_value(Fraction(-1, 8)) == "-0.125"
    assert format_value(Fraction(1, 3)) == "0.3333333333"
    assert format_value(Fraction(1, 4), is_percent=True) == "25%"
    assert "digits" in format_value(Fraction(10**400, 3))
