"""Table rows as lines that stand alone: “Region: North; 2023: 412”.

A retrieved row must say what its numbers are without the header above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

AFTER_NAME = ": "
BETWEEN = "; "
LONGEST_NAME = 80
LONGEST_NUMBER = 40
NUMBER = re.compile(
    r"[\s(<>≤≥~≈±+\-−–$€£¥₹₩]*\d[\d\s.,'’\u00a0\u202f/:\-–]*"
    r"(?:%|‰|[kKmMbB]n?\b|[€$£¥₹₩°]|[A-Za-zµ²³/]{0,4})?[\s)]*"
)


@dataclass(frozen=True)
class Cell:
    """A piece of a row's line: the text of `row, column` of the grid, or only a separator."""

    text: str
    row: int = -1
    column: int = -1


def is_number(text: str) -> bool:
    """True for what reads as a quantity: “412”, “-3.5 %”, “€1,200”, “2019-20”."""
    return len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text) is not None


def clean(text: str) -> str:
    """The cell's text on one line."""
    return " ".join(text.split())


def header_rows(grid: Sequence[Sequence[str]]) -> int:
    """How many leading rows name the columns: 1 or 0.

    The first row is a header unless it holds numbers, repeats itself, or leaves gaps: data does.
    """
    if len(grid) < 2 or len(grid[0]) < 2:
        return 0
    names = [clean(text) for text in grid[0]]
    filled = [name for name in names if name]
    starts_blank = not names[0] and len(filled) == len(names) - 1
    if len(filled) < len(names) and not starts_blank:
        return 0
    if len(set(filled)) < len(filled) or any(len(name) > LONGEST_NAME for name in filled):
        return 0
    if not any(is_number(name) for name in filled):
        return 1
    return int(_is_year_header(names, grid[1:]))


def _is_year_header(names: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """True for “Region | 2022 | 2023” over rows that begin with words."""
    years = [name.removeprefix("FY").strip() for name in names[1:]]
    return (
        not is_number(names[0])
        and len(years) > 1
        and all(re.fullmatch(r"(?:1[89]|20)\d\d", year) for year in years)
        and years in (sorted(years), sorted(years, reverse=True))
        and all(row and row[0].strip() and not is_number(row[0]) for row in body)
    )


def row_cells(grid: Sequence[Sequence[str]], row: int, headers: int) -> list[Cell]:
    """The line of one row in pieces; joined they are the line. Empty cells are left out."""
    pieces: list[Cell] = []
    for column, text in enumerate(grid[row]):
        value = clean(text)
        if not value:
            continue
        if pieces:
            pieces.append(Cell(BETWEEN))
        pieces.extend(_names(grid, column, headers))
        pieces.append(Cell(value, row, column))
    return pieces


def _names(grid: Sequence[Sequence[str]], column: int, headers: int) -> Iterator[Cell]:
    """The column's names from top to bottom, each once, then the colon."""
    last = ""
    for row in range(headers):
        name = clean(grid[row][column]) if column < len(grid[row]) else ""
        if name and name != last:
            if last:
                yield Cell(" ")
            yield Cell(name.removesuffix(":"), row, column)
            last = name
    if last:
        yield Cell(AFTER_NAME)


def row_line(grid: Sequence[Sequence[str]], row: int, headers: int) -> str:
    """One row as a line."""
    return "".join(piece.text for piece in row_cells(grid, row, headers))


def table_lines(grid: Sequence[Sequence[str]], headers: int | None = None) -> list[str]:
    """All rows below the header as lines; a table of only a header gives its names."""
    if headers is None:
        headers = header_rows(grid)
    if headers >= len(grid):
        headers = 0
    lines = [row_line(grid, row, headers) for row in range(headers, len(grid))]
    return [line for line in lines if line]
