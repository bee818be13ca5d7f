"""Lengths made of the figures and bounds that a question states, in whatever language."""

from __future__ import annotations

from collections.abc import Sequence

from core.tools.lengths import Length, LengthUnit

LONGEST = 600  # a longer question holds a text; what is asked stands at its beginning or its end
ENDS = 300


def both_ends(question: str) -> str:
    """A question's beginning and end where it is long: between them stands a text."""
    return question if len(question) <= LONGEST else f"{question[:ENDS]}\n{question[-ENDS:]}"


def agree(found: Sequence[Length]) -> bool:
    """False where two lengths of one unit are for two texts or cannot both be kept."""
    for unit in {length.unit for length in found}:
        same = [length for length in found if length.unit == unit]
        kinds = {(length.least is None, length.most is None) for length in same}
        if len(same) > 1 and (len(same) > 2 or kinds != {(True, False), (False, True)}):
            return False
        least = max(length.least or 0 for length in same)
        if any(length.most is not None and length.most < least for length in same):
            return False
    return True


def asked_range(unit: LengthUnit, one: int, other: int) -> Length | None:
    """The length from one figure to the other; None where they are the same or none."""
    least, most = min(one, other), max(one, other)
    return Length(unit, least, most) if 0 < least < most else None


def asked_with_bound(unit: LengthUnit, wanted: int, bound: str) -> Length | None:
    """The length of one figure under a bound: least, more, most, less, about or "" for none."""
    bounds = {
        "least": Length(unit, wanted, None),
        "more": Length(unit, wanted + 1, None),
        "most": Length(unit, None, wanted),
        "less": Length(unit, None, max(0, wanted - 1)),
        "about": Length(unit, wanted, wanted, "about"),
    }
    return bounds.get(bound, Length(unit, wanted, wanted)) if wanted else None
