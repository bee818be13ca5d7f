"""What figures imply: sums, differences, shares and changes that a text does not write out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from core.tools.quantities import Quantity, compare

Operation = Literal["sum", "difference", "ratio", "share", "change", "total"]
MOST_FIGURES = 40
FEWEST_OF_TOTAL = 3


@dataclass(frozen=True)
class Derivation:
    """A stated figure worked out from figures of the evidence.

    `sum`, `difference`, `ratio` (how many times), `share` (per cent of the other) and `change` (per
    cent up or down) are of two figures in `parts`; `total` is of all of a list or column. `value`
    is exact, in the base unit that its quantities are in: metres for kilometres.
    """

    operation: Operation
    parts: tuple[Quantity, ...]
    value: float

    @property
    def words(self) -> str:
        """The derivation as people write it: "90,000 − 68,000 = 22,000"."""
        shown = [" ".join(part.text.split()) for part in self.parts]
        unit = self.parts[0].unit if self.operation in ("sum", "difference", "total") else ""
        value = f"{self.value:,.10g}{' ' if unit else ''}{unit}"
        if self.operation in ("sum", "total"):
            return f"{' + '.join(shown)} = {value}"
        if self.operation == "change":
            return f"{shown[0]} → {shown[1]} is {self.value:+,.3g} %"
        sign = " − " if self.operation == "difference" else " / "
        return f"{sign.join(shown)} = {value}{' %' if self.operation == 'share' else ''}"


def derived_values(stated: Quantity, evidence: Sequence[Quantity]) -> list[Derivation]:
    """How figures of the evidence give the stated one, by as few of them as can be.

    Only the first 40 single values of the evidence are tried; figures that say the stated one
    themselves are left out. Empty where none gives it.
    """
    single = [q for q in evidence if q.low == q.high and not q.ordinal][:MOST_FIGURES]
    if stated.ordinal or any(
        compare(stated, q) == "same" and q.unit == stated.unit for q in single
    ):
        return []
    alike = [q for q in single if q.unit == stated.unit]
    found = [one for pair in combinations(alike, 2) for one in _of_two(*pair)]
    if stated.unit in ("percent", "times", "percentage_point"):
        # Shares and changes are of figures of any one unit.
        pairs = [p for p in combinations(single, 2) if p[0].unit == p[1].unit != stated.unit]
        found += [one for pair in pairs for one in _ratios(stated.unit, *pair)]
    if len(alike) >= FEWEST_OF_TOTAL:
        found += list(_totals(alike))
    return [one for one in found if _gives(one, stated)]


def _of_two(one: Quantity, other: Quantity) -> Iterator[Derivation]:
    yield Derivation("sum", (one, other), one.low + other.low)
    larger, smaller = (one, other) if one.low >= other.low else (other, one)
    yield Derivation("difference", (larger, smaller), larger.low - smaller.low)


def _ratios(unit: str, one: Quantity, other: Quantity) -> Iterator[Derivation]:
    """Either over the other: as times, as a share, and the change from the first to the second."""
    for first, second in ((one, other), (other, one)):
        top, base = second.low - second.offset, first.low - first.offset
        if not base:
            continue
        if unit == "times":
            yield Derivation("ratio", (second, first), top / base)
        elif 0 < top < base:
            yield Derivation("share", (second, first), 100 * top / base)
        if unit == "percent":
            yield Derivation("change", (first, second), 100 * (top - base) / abs(base))


def _totals(alike: Sequence[Quantity]) -> Iterator[Derivation]:
    """All of a list added up, and all but the largest, which may be their stated total."""
    largest = max(alike, key=lambda q: abs(q.low))
    for parts in (tuple(alike), tuple(q for q in alike if q is not largest)):
        if len(parts) >= FEWEST_OF_TOTAL:
            yield Derivation("total", parts, sum(part.low for part in parts))


def _gives(derived: Derivation, stated: Quantity) -> bool:
    """Return True where the derived value agrees with the stated one, its sign aside."""
    value = abs(derived.value) if derived.operation == "change" else derived.value
    # Shares and changes are told in round figures; sums carry the rounding of their parts.
    step = stated.step if derived.operation in ("share", "change", "ratio") else 0.0
    step = step or min(max(p.step for p in derived.parts) / 2, abs(value) * 0.005)
    sign = -1.0 if stated.low < 0 and derived.operation == "change" else 1.0
    exact = replace(
        stated, low=sign * value, high=sign * value, bound="exact", step=step,
        noun="", other_factor=1.0,
    )  # fmt: skip
    return compare(replace(stated, noun=""), exact) == "same"
