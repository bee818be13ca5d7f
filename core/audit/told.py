"""What a reading tool told beside its label: its readers' stances, wrong words, and why it is open.

`ToolUse.gave` is JSON made for the tool's own view; only what is of the shape here is taken from
it, and nothing where it is of another: an imported trace may hold anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from core.audited import ToolUse
from core.records import Cause, Judgement, Label, Point, ReaderView, Statement
from core.tools.toolbox import Answer

Finding = str


class _Told(msgspec.Struct, frozen=True):
    """Places of points are those of `Case.response`."""

    readers: tuple[ReaderView, ...] = ()
    points: tuple[Point, ...] = ()
    cause: Cause | None = None


DECODER = msgspec.json.Decoder(_Told)


def answer_of(found: Judgement, statement: Statement) -> Answer:
    """A judge's finding on one statement as a reading tool gives it.

    The place of the wrong words is that of the strongest point, in the statement's text.
    """
    gave: dict[str, Any] = {
        "finding": _finding(found),
        "readers": msgspec.to_builtins(found.readers),
        "points": msgspec.to_builtins(found.points),
        "cause": found.cause,
    }
    answer = Answer(found.label, found.prose or found.text, gave, found.p)
    wrong = [point for point in found.points if point.finding == "contradicted"] or found.points
    if found.label != "hallucinated" or not wrong:
        return answer
    point = max(wrong, key=lambda point: point.weight)
    return replace(
        answer,
        start=point.start - statement.start,
        end=point.end - statement.start,
        instead=point.evidence if point.finding == "contradicted" else "",
        category=point.category,
    )


def _finding(found: Judgement) -> Finding:
    """In the words of the tool `match`."""
    if found.label == "supported":
        return "holds"
    if found.label == "unclear":
        return "open"
    is_contradicted = any(point.finding == "contradicted" for point in found.points)
    return "contradicted" if is_contradicted or not found.points else "unsupported"


def readers_of(use: ToolUse) -> tuple[ReaderView, ...]:
    """What each of the tool's readers called the statement."""
    return _told(use).readers


def points_of(use: ToolUse) -> tuple[Point, ...]:
    """The words that its readers found wrong, with places in `Case.response`."""
    return _told(use).points


def cause_of(use: ToolUse) -> Cause | None:
    """Why it came to no label, where it said so."""
    return _told(use).cause


def do_differ(use: ToolUse) -> bool:
    """True where one of its readers calls the statement supported and another hallucinated."""
    stances: set[Label] = {view.stance for view in readers_of(use)}
    return {"supported", "hallucinated"} <= stances


def _told(use: ToolUse) -> _Told:
    try:
        return DECODER.decode(use.gave.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Told()
