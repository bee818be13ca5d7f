"""Columns of running text: which pieces belong to which, in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from core.intake.rows import is_number
from core.intake.seen import Seen, rows_of, usual_height

TRIED = 61
GUTTER = 0.3
# Seen boxes reach beyond their letters by about this share of their height.
SLACK = 0.25
MOST_ACROSS = 0.3
FEWEST_LINES = 3
MANY_LINES = 6
LONG_LINE = 6.0
VERY_LONG_LINE = 9.0
TIGHT = 0.7


def blocks_of(items: Sequence[Seen]) -> list[list[Seen]]:
    """The items in blocks that are read one after the other.

    Where a gutter parts running text, what reaches across it (a title, a caption) ends the
    columns above it, and between such lines the left column is read before the right one.
    """
    gutter = _gutter(items)
    if gutter is None:
        return [list(items)] if items else []
    blocks: list[list[Seen]] = []
    across: list[Seen] = []
    beside: list[Seen] = []
    for item in sorted(items, key=lambda item: item.y):
        if _side(item, gutter) == 0:
            blocks.extend(_sides(beside, gutter))
            beside = []
            across.append(item)
        else:
            if across:
                blocks.append(across)
                across = []
            beside.append(item)
    blocks.extend(_sides(beside, gutter))
    return [*blocks, across] if across else blocks


def _side(item: Seen, x: float) -> int:
    """-1 left of that place, 1 right of it, 0 across it."""
    slack = SLACK * item.height
    if item.right - slack <= x:
        return -1
    return 1 if item.left + slack >= x else 0


def _sides(items: Sequence[Seen], gutter: float) -> list[list[Seen]]:
    left = [item for item in items if _side(item, gutter) < 0]
    right = [item for item in items if _side(item, gutter) > 0]
    return [*blocks_of(left), *blocks_of(right)]


def _gutter(items: Sequence[Seen]) -> float | None:
    """Where an empty strip parts two columns of running text, or None."""
    if len(items) < 2 * FEWEST_LINES:
        return None
    start, end = min(item.left for item in items), max(item.right for item in items)
    height = usual_height(items)
    best: tuple[float, float] | None = None
    place = None
    for step in range(TRIED):
        x = start + (end - start) * (0.2 + 0.6 * step / (TRIED - 1))
        left = [item for item in items if _side(item, x) < 0]
        right = [item for item in items if _side(item, x) > 0]
        across = len(items) - len(left) - len(right)
        if across > MOST_ACROSS * len(items) or not _are_columns(left, right):
            continue
        gap = min(item.left for item in right) - max(item.right for item in left)
        gap += 2 * SLACK * height
        if gap >= GUTTER * height and (best is None or (-across, gap) > best):
            best, place = (-across, gap), x
    return place


def _are_columns(left: Sequence[Seen], right: Sequence[Seen]) -> bool:
    """True for running text on both sides, or much of it beside something else, e.g. a chart."""
    if min(len(left), len(right)) < FEWEST_LINES:
        return False
    if _is_running(left, LONG_LINE):
        return _is_running(right, LONG_LINE) or (
            len(left) >= MANY_LINES and _is_running(left, VERY_LONG_LINE)
        )
    return len(right) >= MANY_LINES and _is_running(right, VERY_LONG_LINE)


def _is_running(items: Sequence[Seen], longest: float) -> bool:
    """True for lines of text set close together; cells, labels and legends are not."""
    if 3 * sum(is_number(item.text) for item in items) > len(items):
        return False
    height = usual_height(items)
    if median(item.width for item in items) < longest * height:
        return False
    rows = rows_of(items)
    gaps = [min(i.top for i in b) - max(i.bottom for i in a) for a, b in pairwise(rows)]
    return bool(gaps) and median(gaps) < TIGHT * height
