"""Finds charts in the text of a picture or page, from where numbers and names stand.

A bar has its values above it (or beside it) and its name below; the numbers of an axis are evenly
spaced on one line. Pure geometry, in the picture's pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from core.documents.source_builder import (
    BlockContent,
    TextBox,
    TextPiece,
    group_rows,
    join_text_pieces,
    median_height,
)
from core.documents.tables import LABEL_SEPARATOR, NAME_SEPARATOR, is_number

AXIS_PREFIX = "Axis: "
MIN_AXIS_TICKS = 3
MAX_TICK_DEVIATION = 0.03
MIN_SHARE_WITH_VALUES = 0.6
MAX_CENTRE_OFFSET = 0.2
MAX_EDGE_OFFSET = 0.3
YEAR_LABEL = re.compile(r"(?:FY ?)?(?:1[6-9]|20|21)\d\d(?:[-/–]\d{2,4})?|['’]\d\d")
NON_NUMERIC = re.compile(r"[^\d.,\-−–kKmMbB]")
SUFFIX_FACTORS = {"k": 1e3, "m": 1e6, "b": 1e9}


ChartPieces = tuple[TextPiece, ...]


@dataclass(frozen=True)
class Chart:
    """Bars of a chart (name and values), its axes, and the items that they were built from."""

    bars: tuple[ChartPieces, ...]
    axes: tuple[ChartPieces, ...]
    used: frozenset[TextBox]

    @property
    def top(self) -> float:
        """Return the upper edge of the topmost item used."""
        return min((item.top for item in self.used), default=0.0)

    def rows(self, title: ChartPieces) -> Iterator[BlockContent]:
        """Yield each bar as a table row: “Visitors by region (thousands), North: 412”."""
        for bar in self.bars:
            before = (*title, TextPiece(LABEL_SEPARATOR)) if title else ()
            yield BlockContent("table row", (*before, *bar))


def find_chart(items: Sequence[TextBox]) -> tuple[Chart, list[TextBox]]:
    """Return the chart that the items form, with upright or lying bars, and the remaining items.

    The chart is empty if the numbers among the items form neither bars nor axes.
    """
    upright = [item for item in items if not is_sideways(item)]
    axis_items = [*_find_vertical_axes(upright), *_find_horizontal_axes(upright)]
    ticks = {item for axis in axis_items for item in axis}
    bars, used = _find_bars([item for item in upright if item not in ticks])
    axes = tuple((TextPiece(AXIS_PREFIX), *join_text_pieces(axis, ", ")) for axis in axis_items)
    chart = Chart(tuple(bars), axes, frozenset(ticks | used))
    rest = [item for item in items if item not in chart.used]
    return _find_lying_bars(chart, rest) if chart.axes and not chart.bars else (chart, rest)


def _find_lying_bars(chart: Chart, items: Sequence[TextBox]) -> tuple[Chart, list[TextBox]]:
    """Return the chart with lying bars (values beside each name), and the remaining items.

    Fewer than three such rows, or rows of different lengths, are not bars: a name may just stand
    beside a number of another axis.
    """
    rows = [row for row in group_rows(items) if len(row) > 1 and _is_name(row[0])]
    rows = [row for row in rows if all(is_number(item.text) for item in row[1:])]
    sizes = {len(row) for row in rows}
    edges = [[row[0].left for row in rows], [row[0].right for row in rows]]
    are_aligned = any(max(edge) - min(edge) < median_height(items) for edge in edges if edge)
    if len(rows) < MIN_AXIS_TICKS or len(sizes) > 1 or not are_aligned:
        return chart, list(items)
    bars = tuple(
        (
            TextPiece(row[0].text, row[0]),
            TextPiece(NAME_SEPARATOR),
            *join_text_pieces(row[1:], ", "),
        )
        for row in rows
    )
    used = {item for row in rows for item in row}
    rest = [item for item in items if item not in used]
    return Chart(bars, chart.axes, chart.used | used), rest


def split_numbers(items: Sequence[TextBox]) -> list[TextBox]:
    """Return the items; numbers that OCR read as one item (“1,200 1,500”) are split."""
    single: list[TextBox] = []
    for item in items:
        parts = item.text.split()
        is_grouped = all(len(part) == 3 and part.isdigit() for part in parts[1:])  # 1 200 500
        if (
            len(parts) > 1
            and not is_grouped
            and all(parse_tick_value(part) is not None for part in parts)
        ):
            end, length = 0, len(item.text)
            for part in parts:  # each is given its share of the width
                start = item.text.index(part, end)
                end = start + len(part)
                left, right = (item.left + item.width * at / length for at in (start, end))
                single.append(item._replace(text=part, left=left, right=right))
        else:
            single.append(item)
    return single


def is_sideways(item: TextBox) -> bool:
    """Return True for words that stand on end, such as the title of a vertical axis."""
    return len(item.text) > 2 and item.height > 1.5 * item.width


def parse_tick_value(text: str) -> float | None:
    """Return the number that a tick shows (“1,200”, “20%”, “$1.5k”), or None if it shows none."""
    if not is_number(text):
        return None
    plain = NON_NUMERIC.sub("", text).replace("−", "-").replace("–", "-")
    size = SUFFIX_FACTORS.get(plain[-1:].lower(), 1.0)
    plain = plain.rstrip("kKmMbB")
    if re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain):
        plain = plain.replace(",", "")
    try:
        return float(plain.replace(",", ".")) * size
    except ValueError:
        return None


def _find_vertical_axes(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """Return columns of numbers, lowest first, that grow upwards and have no number beside them."""
    axes = []
    for column in _group_aligned(items):
        axis = _find_axis(column, lambda item: -item.y)
        ticks = set(axis)
        others = [item for item in items if item not in ticks] if axis else []
        partners = sum(any(abs(o.y - tick.y) < 0.5 * tick.height for o in others) for tick in axis)
        if axis and 2 * partners < len(axis):
            axes.append(axis)
    return axes


def _find_horizontal_axes(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """Return rows of numbers that grow to the right and do not begin or end columns of numbers."""
    axes = []
    numbers = [item for item in items if is_number(item.text)]
    for row in group_rows(items):
        axis = _find_axis([item for item in row if is_number(item.text)], lambda item: item.x)
        if not axis or len(axis) < len(row) - 1:
            continue
        beside = set(row)
        if not _is_in_columns(axis, [item for item in numbers if item not in beside]):
            axes.append(axis)
    return axes


def _is_in_columns(row: Sequence[TextBox], others: Sequence[TextBox]) -> bool:
    """Return True if most of the row's numbers share an edge or their centre with the others."""

    def count_shared(edge: Callable[[TextBox], float]) -> int:
        places = [edge(other) for other in others]
        return sum(any(abs(p - edge(i)) < MAX_EDGE_OFFSET * i.height for p in places) for i in row)

    edges = (attrgetter("left"), attrgetter("right"), attrgetter("x"))
    return any(2 * count_shared(edge) >= len(row) for edge in edges)


def _group_aligned(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """Return columns of at least three numbers aligned on the right or left edge, longest first."""
    numbers = [item for item in items if parse_tick_value(item.text) is not None]
    columns = []
    for edge in (attrgetter("right"), attrgetter("left")):
        column: list[TextBox] = []
        for item in sorted(numbers, key=edge):
            if column and edge(item) - edge(column[0]) > 0.7 * median_height(column):
                columns.append(column)
                column = []
            column.append(item)
        columns.append(column)
    used: set[TextBox] = set()
    selected = []
    for column in sorted(columns, key=len, reverse=True):
        if len(column) >= MIN_AXIS_TICKS and not used & set(column):
            selected.append(column)
            used |= set(column)
    return selected


def _find_axis(column: Sequence[TextBox], position: Callable[[TextBox], float]) -> list[TextBox]:
    """Return the numbers, lowest first, if value grows evenly with position, one outlier aside."""
    values = ((parse_tick_value(item.text), position(item), item) for item in column)
    points = sorted(
        ((value, coordinate, item) for value, coordinate, item in values if value is not None),
        key=lambda point: point[:2],
    )
    for left_out in (None, *column):
        if axis := _order_on_line([point for point in points if point[2] is not left_out]):
            return axis
    return []


def _order_on_line(points: Sequence[tuple[float, float, TextBox]]) -> list[TextBox]:
    """Return the items of (value, position, item), lowest first, if they lie on a line; else []."""
    if len(points) < MIN_AXIS_TICKS:
        return []
    (low, first, _), (high, last, _) = points[0], points[-1]
    is_straight = (
        high > low
        and last > first
        and all(
            abs((position - first) / (last - first) - (value - low) / (high - low))
            <= MAX_TICK_DEVIATION
            for value, position, _ in points
        )
    )
    return [item for _, _, item in points] if is_straight else []


def _find_bars(items: Sequence[TextBox]) -> tuple[list[ChartPieces], set[TextBox]]:
    """Return “name: values” for columns of values above names, left to right, and the items used.

    If several rows could be the names (a legend, a second line), the one with the most values is
    taken, and among those the one whose values are centred best.
    """
    rows = group_rows(items)
    candidates = [bars for row in rows if (bars := _match_bars(row, items))]
    if not candidates:
        return [], set()
    best = max(candidates, key=lambda bars: (sum(map(len, bars.values.values())), -bars.offset))
    below = _collect_second_lines(best, rows)
    lines: list[ChartPieces] = []
    used: set[TextBox] = set()
    for name, values in best.values.items():
        if values:
            title = [name, *below[name]]
            name_pieces, value_pieces = join_text_pieces(title, " "), join_text_pieces(values, ", ")
            lines.append((*name_pieces, TextPiece(NAME_SEPARATOR), *value_pieces))
            used.update(title, values)
    return lines, used


class _BarRow(NamedTuple):
    """A row of names with the numbers above each; `offset` is the median distance off centre."""

    values: dict[TextBox, list[TextBox]]
    spacing: float
    offset: float


def _match_bars(row: Sequence[TextBox], items: Sequence[TextBox]) -> _BarRow | None:
    """Return the row as names of bars, or None if it does not look like that."""
    names = [item for item in row if _is_name(item)]
    if len(names) < 2 or any(
        names[0].left < item.left < names[-1].left for item in row if item not in names
    ):
        return None
    spacing = min(b.x - a.x for a, b in pairwise(names))
    values = _collect_values(names, items, spacing)
    filled = {name: column for name, column in values.items() if column}
    if len(filled) < max(2, MIN_SHARE_WITH_VALUES * len(names)) or _is_table(values):
        return None
    offset = median(
        abs(sum(item.x for item in column) / len(column) - name.x)
        for name, column in filled.items()
    )
    return _BarRow(values, spacing, offset) if offset < MAX_CENTRE_OFFSET * spacing else None


def _is_name(item: TextBox) -> bool:
    return not is_number(item.text) or YEAR_LABEL.fullmatch(item.text) is not None


def _collect_values(
    names: Sequence[TextBox], items: Sequence[TextBox], spacing: float
) -> dict[TextBox, list[TextBox]]:
    """Return the numbers above each name that are nearer to its centre than to any other name's."""
    values: dict[TextBox, list[TextBox]] = {name: [] for name in names}
    for item in items:
        if not is_number(item.text) or item in values or item.bottom > names[0].top:
            continue
        nearest = min(names, key=lambda name: abs(name.x - item.x))
        if abs(nearest.x - item.x) < 0.45 * spacing:
            values[nearest].append(item)
    for name in names:
        values[name].sort(key=lambda item: (round(item.x / max(item.width, 1)), item.y))
    return values


def _is_table(values: dict[TextBox, list[TextBox]]) -> bool:
    """Return True if all columns have several numbers at the same heights, as in a table's body."""
    heights = [[item.y for item in column] for column in values.values()]
    if min(len(column) for column in heights) < 2 or len({len(column) for column in heights}) > 1:
        return False
    tall = median_height([item for column in values.values() for item in column])
    first = sorted(heights[0])
    return all(
        abs(a - b) < 0.5 * tall
        for column in heights[1:]
        for a, b in zip(first, sorted(column), strict=True)
    )


def _collect_second_lines(
    bars: _BarRow, rows: Sequence[Sequence[TextBox]]
) -> dict[TextBox, list[TextBox]]:
    """Return the words centred right below each name: the rest of a name that was too long."""
    names = list(bars.values)
    second_lines: dict[TextBox, list[TextBox]] = {name: [] for name in names}
    bottom, tall = max(name.bottom for name in names), median(name.height for name in names)
    for row in rows:
        if not 0 <= row[0].y - bottom < 1.2 * tall:
            continue
        for item in row:
            nearest = min(names, key=lambda name: abs(name.x - item.x))
            is_centred = abs(nearest.x - item.x) < MAX_CENTRE_OFFSET * bars.spacing
            if is_centred and item.width < bars.spacing and not is_number(item.text):
                second_lines[nearest].append(item)
    return second_lines
