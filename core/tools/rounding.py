"""When a stated value is right: it is the true one, or the true one rounded as it is written.

A stated value with its last digit worth `step` passes where it is

- equal to the true value (to 40 digits, where that is irrational);
- the true value rounded to `step`, half up or half to even, with two or more decimals;
- the same with one decimal, where the true value has no end within three more digits, or is
  missed by at most 1 %: 0.7 for 2/3, but not 0.8 for 3/4;
- the same without decimals, where it is missed by at most 0.5 %: 333 for 1000/3, not 3 for 10/3;
- the true value cut off after its last digit, with decimals, where the true value has no end
  within three more digits: 0.66 for 2/3, not 0.7 for 0.75;
- called about right (“about”, “≈”), or broken off by “...”: rounded or cut off at its last digit
  that is not a zero of a whole number: about 4,000 for 3,987.

A percentage may be stated for a share of 100 that was worked out: 450 / 1800 * 100 = 25 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from core.tools.sum_tree import Node
from core.tools.working_out import SURE, value_of

SURE_SHARE = Fraction(1, 10**SURE)
WHOLE_SHARE, ONE_DECIMAL_SHARE = Fraction(5, 1000), Fraction(1, 100)
FURTHER_DIGITS = 3
MOST_SHOWN = 12


@dataclass(frozen=True)
class Stated:
    """A value as it is written: its last digit is worth `step`, `is_about` says it is rounded."""

    value: Fraction
    step: Fraction
    is_whole: bool
    is_about: bool = False
    is_percent: bool = False


def stated_in(node: Node, is_about: bool = False) -> Stated | None:
    """The written value; None where it has to be worked out first."""
    if node.op == "number":
        step = _last_digit(node) if is_about else node.step
        return Stated(node.value, step, node.is_whole, is_about)
    if node.op not in ("neg", "percent", "measured"):
        return None
    inside = stated_in(node.parts[0], is_about)
    if inside is None or node.op == "measured":
        return inside
    if node.op == "neg":
        return Stated(-inside.value, inside.step, inside.is_whole, is_about, inside.is_percent)
    return Stated(inside.value / 100, inside.step / 100, inside.is_whole, is_about, True)


def _last_digit(node: Node) -> Fraction:
    """The worth of the last digit that is no zero of a whole number: 1,000 in 4,000."""
    step, value = node.step, abs(node.value)
    while node.is_whole and value and value % (step * 10) == 0:
        step *= 10
    return step


def agrees(true: Fraction, stated: Stated) -> bool:
    """Whether the stated value is the true one, rounded as it is written."""
    off = abs(stated.value - true)
    if off <= SURE_SHARE * abs(true):
        return True
    if not stated.step:
        return False  # no decimal, but a fraction or a sum: that is exact
    nearest = off <= stated.step / 2
    cut = abs(stated.value) <= abs(true) and off < stated.step and stated.value * true >= 0
    if stated.is_about:
        return nearest or cut
    if stated.is_whole and not stated.is_percent:
        return nearest and off <= WHOLE_SHARE * abs(true)
    goes_on = (true / stated.step * 10**FURTHER_DIGITS).denominator != 1
    decimals = _decimals(stated)
    if nearest and (decimals > 1 or goes_on or off <= ONE_DECIMAL_SHARE * abs(true)):
        return decimals > 0 or off <= WHOLE_SHARE * abs(true) or (goes_on and stated.is_percent)
    return cut and goes_on and decimals > 0


def _decimals(stated: Stated) -> int:
    """How many decimals are written, of a percentage those before its sign."""
    step, count = stated.step * (100 if stated.is_percent else 1), 0
    while step < 1 and count < MOST_SHOWN:
        step, count = step * 10, count + 1
    return count


def agree(left: Node, right: Node, factor: Fraction = Fraction(1)) -> bool:
    """Whether two sums come to the same where decimals in the second may have been rounded.

    `factor` is what one of the right's unit is in the left's.

    Raises:
        NoValue: one of them cannot be worked out.
    """
    true, found = value_of(left), value_of(right) * factor
    off = abs(true - found)
    if off <= SURE_SHARE * max(abs(true), abs(found)):
        return True
    slack = sum((_moved(right, node, found / factor) for node in _rounded(right)), Fraction(0))
    return off <= slack * abs(factor) and off <= ONE_DECIMAL_SHARE * abs(true)


def _rounded(node: Node) -> list[Node]:
    return [one for one in node.walk() if one.op == "number" and not one.is_whole]


def _moved(node: Node, number: Node, found: Fraction) -> Fraction:
    """How far the sum moves when one number in it moves by half of its last digit."""
    return abs(value_of(_with(node, number)) - found)


def _with(node: Node, number: Node) -> Node:
    if node is number:
        return replace(node, value=node.value + node.step / 2)
    return replace(node, parts=tuple(_with(part, number) for part in node.parts))


def shown(value: Fraction, is_percent: bool = False) -> str:
    """The value for people: whole, as a short decimal, or rounded to ten digits."""
    if is_percent:
        return f"{shown(value * 100)}%"
    if value.denominator == 1 and len(str(abs(value.numerator))) <= 30:
        return str(value.numerator)
    for digits in range(1, MOST_SHOWN + 1):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            sign, whole = "-" if scaled < 0 else "", f"{abs(scaled.numerator):0{digits + 1}}"
            return f"{sign}{whole[:-digits]}.{whole[-digits:]}"
    try:
        return f"{float(value):.10g}"
    except OverflowError:
        return f"a number of {len(str(abs(value.numerator // value.denominator)))} digits"
