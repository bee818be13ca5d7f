"""What a reading tool told beside its label: its readers' stances, wrong words, and why it is open.

`ToolUse.gave` is JSON made for the tool's own view; only what is of the shape here is taken from
it, and nothing where it is of another: an imported trace may hold anything.
"""

from __future__ import annotations

import msgspec

from core.audited import ToolUse
from core.records import Cause, Label, MeasuredShare, Point, ReaderView


class _Told(msgspec.Struct, frozen=True):
    """Places of points are those of `Case.response`."""

    readers: tuple[ReaderView, ...] = ()
    points: tuple[Point, ...] = ()
    cause: Cause | None = None
    measured: MeasuredShare | None = None


DECODER = msgspec.json.Decoder(_Told)


def readers_of(use: ToolUse) -> tuple[ReaderView, ...]:
    """What each of the tool's readers called the statement."""
    return _told(use).readers


def points_of(use: ToolUse) -> tuple[Point, ...]:
    """The words that its readers found wrong, with places in `Case.response`."""
    return _told(use).points


def cause_of(use: ToolUse) -> Cause | None:
    """Why it came to no label, where it said so."""
    return _told(use).cause


def measured_of(use: ToolUse) -> MeasuredShare | None:
    """How often readings this sure were right, where that was measured."""
    return _told(use).measured


def do_differ(use: ToolUse) -> bool:
    """True where one of its readers calls the statement supported and another hallucinated."""
    stances: set[Label] = {view.stance for view in readers_of(use)}
    return {"supported", "hallucinated"} <= stances


def _told(use: ToolUse) -> _Told:
    try:
        return DECODER.decode(use.gave.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Told()
