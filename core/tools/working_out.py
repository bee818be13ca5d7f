"""Works a sum out: exactly as a fraction where that can be, else to 40 digits.

Every step is bounded before it is taken, so that nothing can hang: 9**9**9 is refused, not begun.
Source: HaluAgent 2.2 (calculator), which uses SymPy; irrational steps are done by its mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from core.tools.measures import BARE, Dimensions
from core.tools.sum_tree import Node

MOST_BITS = 4096  # of a numerator or denominator: 1,233 decimal digits
MOST_FACTORIAL = 400
MOST_EXPONENT = 10_000
DIGITS = 60
SURE = 40  # digits to which two irrational values that agree are taken for one
LARGEST = Fraction(10**400)
PI_IN_SCHOOL = (Fraction(314, 100), Fraction(31416, 10000), Fraction(22, 7))


class NoValue(Exception):
    """Raised where a sum has no value that can be worked out; the text says why."""


@dataclass(frozen=True)
class Amount:
    """A value in metres, kilograms, seconds and yuan to the powers `dimensions`."""

    value: Fraction
    dimensions: Dimensions = BARE


def value_of(node: Node, pi: Fraction | None = None) -> Fraction:
    """The value, units aside; irrational ones as a fraction that is right to 40 digits.

    `pi` is what stands for π, None for π itself.

    Raises:
        NoValue: it has none, or one too large; or it holds an unknown.
    """
    if node.op == "number":
        return _bounded(node.value)
    if node.op == "pi":
        return pi if pi is not None else _pi()
    if node.op == "name":
        raise NoValue(f"“{node.name}” is not known")
    parts = [value_of(part, pi) for part in node.parts]
    if node.op in UNARY:
        return _bounded(UNARY[node.op](parts[0]))
    if node.op in BINARY:
        return _bounded(BINARY[node.op](parts[0], parts[1]))
    return _bounded(_function(node, parts))


def is_exact(node: Node) -> bool:
    """True where the value is a fraction by its steps and not rounded."""
    for one in node.walk():
        if one.op == "^" and any(n.op not in ("number", "neg") for n in one.parts[1].walk()):
            return False
        if one.op not in EXACT:
            return False
        if one.op == "^" and value_of(one.parts[1]).denominator != 1:
            return False
    return True


def amount_of(node: Node) -> Amount | None:
    """The value with its units; None where they do not fit together or are not all known."""
    if node.op == "number":
        return Amount(node.value)
    if node.op == "measured":
        inside, measure = amount_of(node.parts[0]), node.measure
        if inside is None or measure is None or inside.dimensions != BARE:
            return None
        return Amount(_bounded(inside.value * measure.factor), measure.dimensions)
    parts = [amount_of(part) for part in node.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not parts:
        return None
    if node.op in ("neg", "percent"):
        return Amount(UNARY[node.op](known[0].value), known[0].dimensions)
    if node.op in BINARY and len(known) == 2:
        return _together(node.op, known[0], known[1])
    return None


def _together(op: str, left: Amount, right: Amount) -> Amount | None:
    """Two amounts under a sign; only like is added to like."""
    if op in "+-":
        if left.dimensions != right.dimensions:
            return None
        return Amount(_bounded(BINARY[op](left.value, right.value)), left.dimensions)
    value = _bounded(BINARY[op](left.value, right.value))
    if op == "^":
        if right.dimensions != BARE or right.value.denominator != 1 or abs(right.value) > 9:
            return None
        return Amount(value, _times(left.dimensions, BARE, int(right.value), 0))
    return Amount(value, _times(left.dimensions, right.dimensions, 1, 1 if op == "*" else -1))


def _times(left: Dimensions, right: Dimensions, a: int, b: int) -> Dimensions:
    one, two, three, four = (a * x + b * y for x, y in zip(left, right, strict=True))
    return one, two, three, four


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise NoValue("a number in it is too large to be worked out")
    return value


def _divided(left: Fraction, right: Fraction) -> Fraction:
    if right == 0:
        raise NoValue("it divides by zero")
    return left / right


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        return _root_power(base, exponent)
    power = int(exponent)
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(power) > MOST_EXPONENT or (size > 1 and size * abs(power) > 2 * MOST_BITS):
        raise NoValue("a power in it is too large to be worked out")
    if base == 0 and power <= 0:
        raise NoValue("zero has no such power")
    return Fraction(base**power)


def _root_power(base: Fraction, exponent: Fraction) -> Fraction:
    if base < 0:
        raise NoValue("a root of a negative number is no real number")
    if base == 0:
        if exponent < 0:
            raise NoValue("zero has no such power")
        return Fraction(0)
    exact = _exact_root(base, exponent.denominator)
    if exact is not None:
        return _power(exact, Fraction(exponent.numerator))
    return _real(lambda m: m.power(_mpf(m, base), _mpf(m, exponent)))


def _exact_root(base: Fraction, degree: int) -> Fraction | None:
    """The root where it is a fraction itself."""
    if not 2 <= degree <= 64:
        return None
    top, bottom = (_whole_root(n, degree) for n in (base.numerator, base.denominator))
    return Fraction(top, bottom) if top is not None and bottom is not None else None


def _whole_root(number: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(number)
    else:
        low, high = 0, 1 << (number.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
        root = low
    return root if root**degree == number else None


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise NoValue("only whole numbers have a factorial")
    if value > MOST_FACTORIAL:
        raise NoValue("a factorial in it is too large to be worked out")
    return Fraction(math.factorial(int(value)))


def _function(node: Node, parts: list[Fraction]) -> Fraction:
    """Roots, logarithms and angles; angles only where π or ° says in what they are counted."""
    inside, op = parts[0], node.op
    if op == "sqrt" and len(parts) == 2:
        return _root_power(inside, _divided(Fraction(1), parts[1]))
    if op in ("sqrt", "cbrt"):
        sign = -1 if op == "cbrt" and inside < 0 else 1
        return sign * _root_power(sign * inside, Fraction(1, 2 if op == "sqrt" else 3))
    if op in ("ln", "lg") and inside > 0:
        return _real(lambda m: m.log(_mpf(m, inside)) / (1 if op == "ln" else m.log(10)))
    if op == "exp" and abs(inside) < 700:
        return _real(lambda m: m.exp(_mpf(m, inside)))
    if op in ("sin", "cos", "tan") and any(below.op == "pi" for below in node.walk()):
        return _real(lambda m: getattr(m, op)(_mpf(m, inside)))
    raise NoValue(f"“{op}” has no one value there")


@lru_cache(maxsize=1)
def _context() -> Any:
    """A context of its own, so that nobody else's precision is changed."""
    import mpmath

    context = mpmath.MPContext()
    context.dps = DIGITS
    return context


def _mpf(context: Any, value: Fraction) -> Any:
    return context.mpf(value.numerator) / value.denominator


def _real(work: Callable[[Any], Any]) -> Fraction:
    """An irrational value, as the fraction that its digits are.

    Raises:
        NoValue: it is too large, too small, or no real number.
    """
    found = work(_context())
    try:
        size = float(_context().log10(abs(found))) if found else 0.0
        if not abs(size) < 300:
            raise NoValue("a number in it is too large or too small to be worked out")
        sign, digits, power, _ = found._mpf_
    except (TypeError, ValueError, AttributeError) as error:
        raise NoValue("it is no real number") from error
    return Fraction((-1) ** sign * int(digits)) * Fraction(2) ** int(power)


@lru_cache(maxsize=1)
def _pi() -> Fraction:
    return _real(lambda m: +m.pi)


UNARY: dict[str, Callable[[Fraction], Fraction]] = {
    "neg": lambda value: -value,
    "percent": lambda value: value / 100,
    "factorial": _factorial,
    "measured": lambda value: value,
    "abs": abs,
}
BINARY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divided,
    "^": _power,
}
EXACT = frozenset(("number", "neg", "percent", "factorial", "measured", "abs", "+", "-", "*", "/",
                   "^"))  # fmt: skip
