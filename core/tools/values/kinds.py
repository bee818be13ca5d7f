"""Values that a claim and its evidence may state: quantities and dates, as frozen records.

`[start, end)` counts code points of the text the finder was given. `find_quantities` and
`find_dates` make them; `compare` and `compare_dates` set two of them against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["exact", "about", "at_least", "at_most", "more_than", "less_than"]
DateBound = Literal["exact", "about", "before", "after", "since", "until"]
Match = Literal["equal", "compatible", "different", "incomparable"]
DateKind = Literal["point", "range", "decade", "century"]

PERCENT = "percent"


@dataclass(frozen=True)
class Quantity:
    """A number with what it counts or measures; `low` and `high` are in `unit`.

    `[start, end)` covers the number and its unit, percent or currency sign, not the modifier.
    `low == high` for a single value; "10-20" and "hundreds" have `low < high`.
    `unit` is pint's base unit ("meter", "kilogram / meter ** 3"), "percent", "percentage_point",
    an ISO currency code, a unit of our own ("degree", "decibel", "pixel") or "" for a bare number.
    `noun` is what a bare number counts ("toes" gives "toe"); for an ordinal what it ranks, for a
    label ("Figure 3", "Apollo 11", read as ordinals) the label.
    `significant` counts digits as written, trailing zeros included: 7 for "1,500,000", 2 for
    "1.5 million". `step` is the size of the last written digit and `margin` how far "about" may
    reach, both in `unit`. `offset` is what a temperature's absolute zero adds to it: without it
    the value is a difference. `other_factor` is not 1 where grouping is ambiguous ("39,000" in
    Spanish): the value times it is the other reading.
    """

    start: int
    end: int
    text: str
    low: float
    high: float
    unit: str
    noun: str
    bound: Bound
    ordinal: bool
    number_start: int
    number_end: int
    significant: int
    step: float = 1.0
    margin: float = 0.0
    offset: float = 0.0
    other_factor: float = 1.0


@dataclass(frozen=True)
class DateValue:
    """A date, a time of day, or a stretch of time; parts that are not stated are None.

    Years count upwards from 1 in both eras. A stretch has `end_*` and a `kind` other than
    "point"; `season` is "spring" ... "winter" where only that is said. `ambiguous` marks
    "03/04/2019", whose day and month may be the other way round.
    """

    start: int
    end: int
    text: str
    year: int | None = None
    month: int | None = None
    day: int | None = None
    end_year: int | None = None
    weekday: int | None = None
    bound: DateBound = "exact"
    hour: int | None = None
    minute: int | None = None
    era: Literal["ce", "bce"] = "ce"
    end_month: int | None = None
    end_day: int | None = None
    kind: DateKind = "point"
    season: str = ""
    ambiguous: bool = False
