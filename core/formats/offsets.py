"""Where a file's spans lie in its response: code points, or UTF-16 units where quotes show that.

Tools written in JavaScript count UTF-16 units. One tool writes all of an answer, so that its spans
are read in one unit; where both units fit all of them, they count code points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from core.errors import InputError

Unit = Literal["code points", "utf-16"]
Place = tuple[object, object, object]  # start, end and the quoted words, as the file has them


def unit_of(response: str, places: Iterable[Place]) -> Unit | None:
    """What the spans of one answer count; None where their quotes do not tell.

    One quote that stands only where the unit leads tells, if it leads to all the others too.
    """
    if max(response, default="") <= "\uffff":
        return None  # every character is one unit
    quoted = [(start, end, quote) for start, end, quote in places if isinstance(quote, str)]
    by_points = [_by_points(response, *place) is not None for place in quoted]
    by_units = [_by_units(response, *place) is not None for place in quoted]
    if by_points == by_units:
        return None
    return "utf-16" if all(by_units) else "code points" if all(by_points) else None


def placed(
    response: str, start: object, end: object, quote: object = None, unit: Unit | None = None
) -> tuple[int, int]:
    """Where the span lies, counted in code points; without a unit the quoted words decide.

    Raises:
        InputError: it does not lie in the response, or the quoted words do not stand there.
    """
    if not _is_whole(start) or not _is_whole(end):
        raise InputError(
            f"expected whole numbers as a span’s start and end, found {start!r:.40} and "
            f"{end!r:.40}; correct them."
        )
    assert isinstance(start, int) and isinstance(end, int)  # noqa: S101, PT018 - for the types
    found = _by_units(response, start, end, quote) if unit == "utf-16" else None
    found = found or _by_points(response, start, end, quote)
    if found is None and isinstance(quote, str):
        found = _by_units(response, start, end, quote)
    if found is not None:
        return found
    if 0 <= start < end <= len(response):
        raise InputError(
            f"expected the span’s text at characters {start} to {end}, found "
            f"“{response[start:end][:40]}” there and “{str(quote)[:40]}” in the span; correct its "
            "start and end, which count code points."
        )
    raise InputError(
        f"expected a span inside a response of {len(response)} characters, found {start} to {end}; "
        "correct its start and end, which count code points."
    )


def from_utf16(text: str, start: int, end: int) -> tuple[int, int] | None:
    """UTF-16 offsets as code points; None where they cut a character or lie outside."""
    units = text.encode("utf-16-le")
    try:
        before = len(units[: 2 * start].decode("utf-16-le"))
        inside = len(units[2 * start : 2 * end].decode("utf-16-le"))
    except UnicodeDecodeError:
        return None
    return (before, before + inside) if 2 * end <= len(units) else None


def _by_points(response: str, start: object, end: object, quote: object) -> tuple[int, int] | None:
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    is_there = 0 <= start < end <= len(response) and (quote is None or response[start:end] == quote)
    return (start, end) if is_there else None


def _by_units(response: str, start: object, end: object, quote: object) -> tuple[int, int] | None:
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        return None
    found = from_utf16(response, start, end)
    if found is None or (quote is not None and response[found[0] : found[1]] != quote):
        return None
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
