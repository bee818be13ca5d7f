"""CSV and TSV: one line per row, each with its column names."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from core.errors import InputError
from core.intake.draft import Draft
from core.intake.request import ReadRequest
from core.intake.rows import clean, header_rows, row_line
from core.intake.text import decoded
from core.records import Source

DELIMITERS = (",", ";", "\t", "|")
DECLARED = re.compile(r"sep=([,;\t|])\r?\n")  # Excel's own first line.
SNIFFED = 60
NAMED = 5

Grid = list[list[str]]


def read_table(request: ReadRequest) -> Source:
    """CSV and TSV files, whatever separates their cells.

    Raises:
        InputError: the file is not UTF-8, has no rows, or is too long.
    """
    draft = Draft(request)
    text = decoded(request.name, request.data)
    declared = DECLARED.match(text)
    if declared:
        text = text[declared.end() :]
    delimiter = declared[1] if declared else delimiter_of(text, request.name)
    grid, is_whole = _parsed(text, delimiter)
    if not is_whole:
        draft.note("A quotation mark in this table is never closed, so every line counts as a row.")
    if not grid:
        raise InputError(f"{request.file} has no rows; add a table with at least one row.")
    titles = _titles(grid)
    draft.add_blocks([clean(" ".join(row)) for row in grid[:titles]], "\n")
    body = grid[titles:]
    headers = header_rows(body)
    if not headers and len(body) > 1 and len(body[0]) > 1:
        draft.note("The first row looks like data, so the rows stand without column names.")
    if ragged := _ragged(body):
        draft.note(ragged)
    first = headers if headers < len(body) else 0
    lines = (row_line(body, row, first) for row in range(first, len(body)))
    draft.add_blocks([line for line in lines if line], "\n")
    return draft.finish()


def delimiter_of(text: str, name: str = "") -> str:
    """What separates the cells: the candidate that cuts the most rows into equally many cells."""
    if name.lower().endswith(".tsv"):
        return "\t"
    sample = "\n".join(text.splitlines()[:SNIFFED])
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        widths = Counter(len(row) for row in _parsed(sample, delimiter)[0])
        wide = {width: count for width, count in widths.items() if width > 1}
        if not wide:
            continue
        width, count = max(wide.items(), key=lambda item: (item[1], item[0]))
        share = count / sum(widths.values())
        score = share + min(width, 20) / 1000
        if share > 0.5 and score > best_score:
            best, best_score = delimiter, score
    return best


def _parsed(text: str, delimiter: str) -> tuple[Grid, bool]:
    """The non-empty rows, and False when a quotation mark was never closed."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    stream = io.StringIO(text, newline="")
    try:
        return _rows(csv.reader(stream, delimiter=delimiter, strict=True)), True
    except csv.Error as error:
        is_whole = "unexpected end" not in str(error)
    stream.seek(0)
    if is_whole:
        return _rows(csv.reader(stream, delimiter=delimiter)), True
    lines = io.StringIO(text, newline=None)
    return _rows(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)), False


def _rows(reader: Iterable[list[str]]) -> Grid:
    """The rows that hold anything."""
    return [row for row in reader if any(cell.strip() for cell in row)]


def _titles(grid: Grid) -> int:
    """How many rows above the table hold one cell only: its title, its source."""
    usual = Counter(len(row) for row in grid).most_common(1)[0][0]
    if usual < 2:
        return 0
    count = 0
    while count < len(grid) - 1 and sum(bool(cell.strip()) for cell in grid[count]) == 1:
        count += 1
    return count


def _ragged(body: Sequence[Sequence[str]]) -> str:
    """A sentence naming the rows that have more or fewer cells than the first; empty if none."""
    width = len(body[0]) if body else 0
    rows = [number for number, row in enumerate(body, start=1) if len(row) != width]
    if not rows:
        return ""
    named = ", ".join(str(row) for row in rows[:NAMED]) + (" …" if len(rows) > NAMED else "")
    which = f"Row {named} has" if len(rows) == 1 else f"{len(rows)} rows ({named}) have"
    return f"{which} more or fewer cells than the first, which has {width}."
