"""Rows of things seen side by side: tables with their column names, and name-value pairs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from core.intake.arranged import Line, Piece, joined, piece, text_of
from core.intake.rows import header_rows, is_number, row_cells
from core.intake.seen import Seen

PROSE_LETTERS = 28

Row = list[Seen]


def grid_lines(rows: Sequence[Row]) -> list[Line] | None:
    """The rows as lines that stand alone; None when they are neither pairs nor a table.

    Every row has two items or more.
    """
    items = [item for row in rows for item in row]
    if len(rows) < 2 or median(len(item.text) for item in items) > PROSE_LETTERS:
        return None
    columns = _columns(rows)
    table, has_header = _table(rows, columns) if columns else ([], False)
    if has_header:
        return table
    if any(_is_pair(row) for row in rows):
        return _pairs_and_rest(rows)
    return table or None


def _pairs_and_rest(rows: Sequence[Row]) -> list[Line]:
    """Pairs as pairs; of the other rows each thing by itself."""
    lines: list[Line] = []
    for row in rows:
        lines.extend([_pair(row)] if _is_pair(row) else [(piece(item),) for item in row])
    return lines


def _is_pair(row: Row) -> bool:
    """A name, then numbers only: a horizontal bar, a line of a legend."""
    return not is_number(row[0].text) and all(is_number(item.text) for item in row[1:])


def _pair(row: Row) -> Line:
    name = row[0].text.removesuffix(":")
    return (Piece(name, row[0]), Piece(": "), *joined(row[1:], ", "))


def _columns(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """The columns' left and right edges: stretches that the fullest rows fill separately."""
    widest = max(len(row) for row in rows)
    edges: list[tuple[float, float]] = []
    for item in sorted(
        (item for row in rows if len(row) == widest for item in row), key=lambda item: item.left
    ):
        if edges and item.left < edges[-1][1]:
            edges[-1] = (edges[-1][0], max(edges[-1][1], item.right))
        else:
            edges.append((item.left, item.right))
    return edges if len(edges) == widest else []


def _table(rows: Sequence[Row], columns: Sequence[tuple[float, float]]) -> tuple[list[Line], bool]:
    """The rows below the header as lines, and whether there is a header.

    Names of columns without a value stand first, by themselves: what was seen is never lost.
    """
    cells: list[list[list[Seen]]] = []
    for row in rows:
        places: list[list[Seen]] = [[] for _ in columns]
        for item in row:
            places[_column_of(item, columns)].append(item)
        cells.append(places)
    grid = [[" ".join(item.text for item in cell) for cell in places] for places in cells]
    headers = header_rows(grid)
    lines: list[Line] = [
        _cell(cells[row][column], name)
        for row in range(headers)
        for column, name in enumerate(grid[row])
        if name and not any(below[column] for below in grid[headers:])
    ]
    for number in range(headers, len(grid)):
        line: list[Piece] = []
        for part in row_cells(grid, number, headers):
            if part.row < 0:
                line.append(Piece(part.text))
            else:
                line.extend(_cell(cells[part.row][part.column], part.text))
        lines.append(tuple(line))
    return lines, headers > 0


def _cell(items: Sequence[Seen], text: str) -> Line:
    """The cell's pieces; in one where its text was changed on the way."""
    line = joined(items, " ")
    if text_of(line) == text:
        return line
    return (Piece(text, items[0]),)


def _column_of(item: Seen, columns: Sequence[tuple[float, float]]) -> int:
    """The column that the item overlaps most, or the nearest."""

    def overlap(number: int) -> float:
        left, right = columns[number]
        return min(item.right, right) - max(item.left, left)

    return max(range(len(columns)), key=overlap)
