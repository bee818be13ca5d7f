"""Whether two quantities can both hold of the same thing.

Both are brought to intervals in base units. Two exact values agree where they differ by no more
than half the last written digit of the coarser one: "1.5 million" holds of 1,487,203, "400" does
not hold of 412. "about" reaches a tenth of the value either way. `compare` is symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from core.tools.values.kinds import Bound, Match, Quantity

CLOSE = 1e-9
OVERLAP = 0.5  # the part of the shorter range that must lie in the longer
WORDS: dict[Bound, str] = {
    "exact": "", "about": "about ", "at_least": "at least ", "at_most": "at most ",
    "more_than": "more than ", "less_than": "less than ",
}  # fmt: skip


def compare(claim: Quantity, evidence: Quantity) -> Match:
    """How the claim's quantity stands to the evidence's; different units cannot be compared."""
    if not _is_comparable(claim, evidence):
        return "incomparable"
    if claim.unit != evidence.unit:
        return "different"  # two currencies
    found = _compare(claim, evidence)
    if found == "different" and any(
        _compare(one, other) != "different" for one, other in _other_readings(claim, evidence)
    ):
        return "compatible"
    return found


def _other_readings(one: Quantity, other: Quantity) -> Iterator[tuple[Quantity, Quantity]]:
    """Both as differences of temperature; and each with its other grouping, in turn."""
    if one.offset or other.offset:
        yield _shifted(one), _shifted(other)
    if one.other_factor != 1:
        yield _regrouped(one), other
    if other.other_factor != 1:
        yield one, _regrouped(other)


def _shifted(quantity: Quantity) -> Quantity:
    low, high = quantity.low - quantity.offset, quantity.high - quantity.offset
    return replace(quantity, low=low, high=high)


def _regrouped(quantity: Quantity) -> Quantity:
    factor = quantity.other_factor
    return replace(
        quantity,
        low=quantity.low * factor,
        high=quantity.high * factor,
        step=quantity.step * factor,
        margin=quantity.margin * factor,
    )


def _compare(claim: Quantity, evidence: Quantity) -> Match:
    if _is_same(claim, evidence):
        return "equal"
    if _is_point(claim) and _is_point(evidence):
        slack = max(claim.step, evidence.step) / 2
        near = abs(claim.low - evidence.low) <= slack * (1 + CLOSE)
        return "compatible" if near and not claim.ordinal else "different"
    return "compatible" if _overlap(claim, evidence) else "different"


def describe(quantity: Quantity) -> str:
    """The quantity as people write it, in its own words: "about 412 m"."""
    return WORDS[quantity.bound] + " ".join(quantity.text.split())


def _is_comparable(one: Quantity, other: Quantity) -> bool:
    if one.ordinal != other.ordinal:
        return False
    if one.unit != other.unit:
        return _is_currency(one.unit) and _is_currency(other.unit)
    return bool(one.unit) or not one.noun or not other.noun or one.noun == other.noun


def _is_currency(unit: str) -> bool:
    return len(unit) == 3 and unit.isupper()


def _is_point(quantity: Quantity) -> bool:
    return quantity.bound == "exact" and quantity.low == quantity.high


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)


def _is_same(one: Quantity, other: Quantity) -> bool:
    return (
        one.bound == other.bound
        and _is_close(one.low, other.low)
        and _is_close(one.high, other.high)
    )


def _interval(quantity: Quantity) -> tuple[float, float]:
    """The least and greatest value the quantity allows; "more than 400" leaves out 400."""
    low, high = quantity.low, quantity.high
    if quantity.bound == "about":
        return low - quantity.margin, high + quantity.margin
    inside = 10 * CLOSE * max(1.0, abs(low), abs(high))
    if quantity.bound in ("at_least", "more_than"):
        return low + (inside if quantity.bound == "more_than" else 0.0), math.inf
    if quantity.bound in ("at_most", "less_than"):
        return -math.inf, high - (inside if quantity.bound == "less_than" else 0.0)
    return low, high


def _overlap(one: Quantity, other: Quantity) -> bool:
    """Whether the intervals share a value; ranges must share at least half of the shorter."""
    first, second = _interval(one), _interval(other)
    slack = _slack(one, other)
    shared = min(first[1], second[1]) - max(first[0], second[0])
    if shared < -slack or _meet_in_a_point(one, other, shared):
        return False
    lengths = [high - low for low, high in (first, second)]
    if one.low < one.high and other.low < other.high and max(lengths) < math.inf:
        return shared >= OVERLAP * min(lengths)
    return True


def _meet_in_a_point(one: Quantity, other: Quantity, shared: float) -> bool:
    """True for "at least 300" and "at most 300", which say nearly the opposite."""
    opposed = {one.bound, other.bound} == {"at_least", "at_most"}
    return opposed and abs(shared) <= CLOSE * max(1.0, abs(one.low))


def _slack(one: Quantity, other: Quantity) -> float:
    """Rounding between a point and a range or an inclusive bound; strict bounds have none."""
    eps = CLOSE * max(1.0, abs(one.low), abs(other.low))
    if "more_than" in (one.bound, other.bound) or "less_than" in (one.bound, other.bound):
        return eps
    if one.step < 1 and other.step < 1 and not one.unit:
        return max(one.step, other.step) / 2
    rounds = one.unit or one.step > 1 or other.step > 1
    return max(one.step, other.step) / 2 if rounds else eps
