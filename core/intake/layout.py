"""From pieces of text with places to readable lines, in the order in which a person reads them.

Charts first (charts.py), then what is left, block by block (columns.py): tables and pairs
(grids.py), and wrapped lines joined to paragraphs. Pure functions; places in pixels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from core.intake.arranged import Line, Piece, piece
from core.intake.charts import is_sideways, read_chart, single_numbers
from core.intake.columns import blocks_of
from core.intake.draft import Draft
from core.intake.grids import grid_lines
from core.intake.lines import between, uncut, words_in
from core.intake.seen import Look, Seen, rows_of, usual_height

ITEM = re.compile(r"(?:[-–—•*◦▪·●○■□]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s")
SAME_CELL = 0.5
LINE_GAP = 0.8
FAR = 12
WRAPPED = 0.7
FULL = 0.7
ENDED_FULL = 0.9
ENDS = frozenset(".!?:;。！？：；")
LIKE = 1.35
LONG_LINE = 8.0
INDENT = 2.5


def arrange(items: Sequence[Seen]) -> list[Line]:
    """All that was seen as lines, each of which can be understood by itself."""
    known = words_in(item.text for item in items)
    blocks = blocks_of(single_numbers(items))
    return [line for block in blocks for line in _arranged(block, known)]


def _arranged(block: Sequence[Seen], known: frozenset[str]) -> list[Line]:
    """One block: what stands above its chart, the chart, the rest, and the axes at the end."""
    chart = read_chart(block)
    left = [item for item in block if item not in chart.used]
    upright = [item for item in left if not is_sideways(item)]
    above = [item for item in upright if not chart.used or item.y <= chart.top]
    below = [item for item in upright if chart.used and item.y > chart.top]
    aside = [(piece(item),) for item in left if is_sideways(item)]
    return [
        *_block_lines(above, known),
        *chart.bars,
        *_block_lines(below, known),
        *aside,
        *chart.axes,
    ]


def write(draft: Draft, look: Look, page: int, by: str) -> None:
    """Add what was seen on a page to the draft, each piece with its place."""
    for number, line in enumerate(arrange(look.seen)):
        if number:
            draft.add(by)
        for part in line:
            if part.seen is None:
                draft.add(part.text)
            else:
                draft.add_seen(part.text, page, look.box(part.seen), part.seen.score)


def _block_lines(block: Sequence[Seen], known: frozenset[str]) -> list[Line]:
    """One block's lines: grids where rows hold several things, paragraphs elsewhere."""
    lines: list[Line] = []
    single: list[Seen] = []
    grid: list[list[Seen]] = []

    def close() -> None:
        lines.extend(_paragraphs(single, known))
        lines.extend(_grid_or_lines(grid))
        single.clear()
        grid.clear()

    for row in _whole_rows(rows_of(block)):
        if grid and len(row) == 1 and _add_wrapped(grid, row[0]):
            continue
        if (grid and len(row) == 1) or (single and len(row) > 1):
            close()
        if len(row) > 1:
            if grid and _is_far(grid, row):
                close()
            grid.append(row)
        else:
            single.append(row[0])
    close()
    return lines


def _whole_rows(rows: Sequence[Sequence[Seen]]) -> list[list[Seen]]:
    """The rows with pieces of one cell made one that were seen beside each other."""
    whole: list[list[Seen]] = []
    for row in rows:
        cells: list[Seen] = []
        for item in row:
            if cells and item.left - cells[-1].right < SAME_CELL * min(
                item.height, cells[-1].height
            ):
                cells[-1] = _one(cells[-1], item)
            else:
                cells.append(item)
        whole.append(cells)
    return whole


def _add_wrapped(grid: Sequence[list[Seen]], item: Seen) -> bool:
    """Take the item into the cell right above it, if it is that cell's second line.

    It must lie clearly nearer to its row than the table's rows lie to each other.
    """
    if len(grid) < 2:
        return False
    apart = median(b[0].y - a[0].y for a, b in pairwise(grid))
    cells = [
        number
        for number, cell in enumerate(grid[-1])
        if min(cell.right, item.right) - max(cell.left, item.left) > 0
    ]
    if len(cells) != 1 or item.y - grid[-1][cells[0]].y > WRAPPED * apart:
        return False
    if item.top - grid[-1][cells[0]].bottom > WRAPPED * item.height:
        return False
    grid[-1][cells[0]] = _one(grid[-1][cells[0]], item)
    return True


def _one(first: Seen, second: Seen) -> Seen:
    """Two pieces as one, over the rectangle around both."""
    return Seen(
        f"{first.text}{between(first.text, second.text)}{second.text}",
        min(first.left, second.left),
        min(first.top, second.top),
        max(first.right, second.right),
        max(first.bottom, second.bottom),
        min(first.score, second.score),
    )


def _is_far(grid: Sequence[Sequence[Seen]], row: Sequence[Seen]) -> bool:
    """True when the row lies much farther below than the grid's rows lie apart."""
    gap = row[0].y - grid[-1][0].y
    if len(grid) < 2:
        return gap > FAR * usual_height(row)
    return gap > 2 * median(b[0].y - a[0].y for a, b in pairwise(grid))


def _grid_or_lines(grid: Sequence[list[Seen]]) -> list[Line]:
    if not grid:
        return []
    lines = grid_lines(grid)
    if lines is None:
        return [(piece(item),) for row in grid for item in row]
    return lines


def _paragraphs(items: Sequence[Seen], known: frozenset[str]) -> list[Line]:
    """Lines below each other; those that were only wrapped become one."""
    if not items:
        return []
    left, right = min(item.left for item in items), max(item.right for item in items)
    lines: list[list[Piece]] = []
    for number, item in enumerate(items):
        if number and _goes_on(items[number - 1], item, left, right):
            text, by = uncut(items[number - 1].text, item.text, known)
            lines[-1][-1] = Piece(text, items[number - 1])
            lines[-1].extend([Piece(by), piece(item)] if by else [piece(item)])
        else:
            lines.append([piece(item)])
    return [tuple(line) for line in lines]


def _goes_on(above: Seen, below: Seen, left: float, right: float) -> bool:
    """True when the lower line continues the upper one's sentence."""
    height = min(above.height, below.height)
    share = (above.right - left) / max(right - left, 1.0)
    if share < (ENDED_FULL if above.text.rstrip()[-1:] in ENDS else FULL):
        return False
    return (
        max(above.height, below.height) <= LIKE * height
        and below.top - above.bottom < LINE_GAP * height
        and above.width > LONG_LINE * height
        and abs(above.left - below.left) < INDENT * height
        and not ITEM.match(below.text)
    )
