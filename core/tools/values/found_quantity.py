"""A number with its unit while a text is still being read: raw value, scale and unit apart.

Kept apart because ranges share them: in "10-20 million" the first number takes the second's scale.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.tools.values.digits import Number
from core.tools.values.kinds import PERCENT, Bound, Quantity
from core.tools.values.units import Base, base

ABOUT = 0.1  # "about" reaches a tenth of the value as written
ROUND_SCALE = 1000  # "five hundred" and "two dozen" are as exact as 500 and 24
BARE = Base("", 1.0)


@dataclass(frozen=True)
class Context:
    """A text being read: as given, plain, and plain in lower case; offsets are the same in all."""

    text: str
    plain: str
    low: str
    language: str


@dataclass(frozen=True)
class FoundQuantity:
    """`[start, end)` covers number, scale, unit and currency."""

    start: int
    end: int
    number: Number
    scale: float | None
    unit: str
    base: Base
    noun: str
    bound: Bound
    ordinal: bool

    @property
    def low(self) -> float:
        """The lower value in base units."""
        return self.number.low * (self.scale or 1.0) * self.base.factor + self.base.offset

    @property
    def high(self) -> float:
        """The upper value in base units."""
        return self.number.high * (self.scale or 1.0) * self.base.factor + self.base.offset

    @property
    def step(self) -> float:
        """The size of the last written digit in base units."""
        scale = self.scale if self.scale and self.scale >= ROUND_SCALE else 1.0
        return self.number.step * scale * self.base.factor

    @property
    def margin(self) -> float:
        """How far "about" reaches, in base units."""
        size = min(abs(self.number.low), abs(self.number.high))
        return ABOUT * size * (self.scale or 1.0) * self.base.factor

    @property
    def is_bare(self) -> bool:
        """True for a number without unit, percent or currency."""
        return not self.base.symbol


def unit_base(unit: str) -> Base:
    """The base of a unit in any of our names: pint's, percent, or a currency code."""
    if unit == "permille":
        return Base(PERCENT, 0.1)
    if unit in (PERCENT, "percentage_point") or (len(unit) == 3 and unit.isupper()):
        return Base(unit, 1.0)
    return base(unit) if unit else BARE


def finished(found: FoundQuantity, text: str) -> Quantity:
    """The quantity as callers see it; `text` is the original."""
    low, high = sorted((found.low, found.high))
    return Quantity(
        start=found.start,
        end=found.end,
        text=text[found.start : found.end],
        low=low,
        high=high,
        unit=found.base.symbol,
        noun=found.noun,
        bound=found.bound,
        ordinal=found.ordinal,
        number_start=found.number.start,
        number_end=found.number.end,
        significant=found.number.significant,
        step=abs(found.step),
        margin=abs(found.margin),
        offset=found.base.offset,
        other_factor=found.number.other_factor,
    )
