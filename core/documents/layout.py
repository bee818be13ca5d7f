"""Turns pieces of text with places into blocks in reading order.

Columns are read one after the other; items side by side become tables; broken lines become
paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import regex

from core.documents.charts import find_chart, is_sideways, split_numbers
from core.documents.segmentation import (
    UNSPACED_CHARACTER,
    collect_words,
    is_cut,
    is_ended,
    join_lines,
)
from core.documents.source_builder import (
    BlockContent,
    PictureText,
    TextBox,
    TextPiece,
    bounding_box,
    group_rows,
    join_text_pieces,
    median_height,
)
from core.documents.tables import build_table_blocks, count_header_rows, is_number

CAPTION_START = regex.compile(
    r"(?:table|figure|fig\.|chart|graph|exhibit|box|map|tabelle|abbildung|abb\.|diagramm|tableau|"
    r"graphique|tabla|gráfico|figura|tabella|grafico|tabell|figur|таблица|рисунок)"
    r"\s*[A-Z]{0,2}[-.]?\d[\w.\-–]*(?:[:.—–\s]|$)|[表图圖]\s*\d+",
    regex.I,
)
DASHES = "-–—"
LIST_ITEM_START = regex.compile(
    r"(?:[-–—•*◦▪·●○■□➢✓]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\(?[ivx]{1,4}[.)])\s"
)
RTL_LETTER = regex.compile(r"[\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}]")
MAX_CELL_LETTERS = 28  # most letters in a typical cell; longer texts side by side are prose
# Lines of a paragraph: ratio of their heights, gap between them and length, in heights.
MAX_HEIGHT_RATIO = 1.3
MAX_EXTRA_GAP = 0.5
MIN_LINE_LENGTH = 8.0
MIN_LONE_LINE_LENGTH = 20.0  # used if fewer than three lines show how wide the column is
INDENT_HEIGHTS = 1.0
MAX_RAGGED_SHARE = 0.12  # share of the column's width by which unjustified lines may be shorter
MAX_CELL_GAP = 0.5
MAX_ROW_GAP = 12
MAX_WRAP_GAP = 0.7
# Columns of running text.
GUTTER_STEPS = 61
MIN_GUTTER = 0.3
BOX_SLACK = 0.25  # OCR boxes reach beyond their letters by about this share of their height
MAX_ACROSS_SHARE = 0.3
MIN_COLUMN_LINES = 3
MIN_LONG_COLUMN_LINES = 6
MIN_COLUMN_WIDTH = 6.0
MIN_WIDE_COLUMN_WIDTH = 9.0
MAX_LINE_GAP = 0.7
MIN_COLUMN_GAP = 0.4
CellBoxes = dict[tuple[int, int], list[TextBox]]


def build_picture_blocks(picture: PictureText) -> Iterator[BlockContent]:
    """Yield all text read in a picture as blocks that can each be understood alone."""
    words = collect_words(item.text for item in picture.items)
    for column in split_reading_columns(split_numbers(picture.items)):
        yield from _build_column_blocks(column, words)


def _build_column_blocks(
    column: Sequence[TextBox], words: frozenset[str]
) -> Iterator[BlockContent]:
    """Yield the blocks above a chart, the chart's bars, the blocks below, and the axes last."""
    chart, rest = find_chart(column)
    upright = [item for item in rest if not is_sideways(item)]
    below = [item for item in upright if chart.used and item.y > chart.top]
    above = [item for item in upright if not chart.used or item.y <= chart.top]
    before = list(_build_blocks(above, words))
    title: tuple[TextPiece, ...] = ()
    if chart.used and before and before[-1].kind == "paragraph" and not is_ended(before[-1].text):
        title = before[-1].pieces
        before[-1] = BlockContent("caption", title)
    yield from before
    yield from chart.rows(title)
    has_no_bars = bool(chart.axes) and not chart.bars
    for block in _build_blocks(below, words):
        is_label = has_no_bars and block.kind == "paragraph" and not is_ended(block.text)
        yield BlockContent("chart label", block.pieces) if is_label else block
    for parts in (*((TextPiece(i.text, i),) for i in rest if is_sideways(i)), *chart.axes):
        yield BlockContent("chart label", parts)


def _build_blocks(items: Sequence[TextBox], words: frozenset[str]) -> Iterator[BlockContent]:
    single: list[TextBox] = []
    grid: list[list[TextBox]] = []
    caption = ""
    for row in [*_join_cell_pieces(group_rows(items)), []]:
        if grid and len(row) == 1 and _add_wrapped(grid, row[0]):
            continue
        if grid and (len(row) < 2 or _is_far(grid, row)):
            yield from _build_grid_blocks(grid, caption)
            grid = []
        if single and len(row) != 1:
            lines = [_build_paragraph(lines, words) for lines in group_paragraphs(single)]
            yield from lines
            caption, single = lines[-1].text, []
        if len(row) > 1:
            grid.append(row)
        else:
            single += row


def _join_cell_pieces(rows: Sequence[Sequence[TextBox]]) -> list[list[TextBox]]:
    """Return the rows, joining pieces of one cell that OCR read separately."""
    whole: list[list[TextBox]] = []
    for row in rows:
        cells: list[TextBox] = []
        for item in row:
            last = cells[-1] if cells else item
            if cells and item.left - last.right < MAX_CELL_GAP * min(item.height, last.height):
                cells[-1] = _join_boxes(last, item)
            else:
                cells.append(item)
        whole.append(cells)
    return whole


def _join_boxes(first: TextBox, second: TextBox) -> TextBox:
    """Return two pieces as one, over the rectangle around both."""
    by = join_lines(first.text, second.text, frozenset())[1]
    return bounding_box((first, second), f"{first.text}{by}{second.text}")


def _add_wrapped(grid: Sequence[list[TextBox]], item: TextBox) -> bool:
    """Add the item to the cell right above it if it is that cell's second line.

    It must be clearly nearer to its row than the table's rows are to each other. Returns True if
    it was added.
    """
    cells = [n for n, cell in enumerate(grid[-1]) if _measure_overlap(cell, item) > 0]
    if len(grid) < 2 or len(cells) != 1:
        return False
    spacing = median(b[0].y - a[0].y for a, b in pairwise(grid))
    above = grid[-1][cells[0]]
    if (
        item.y - above.y > MAX_WRAP_GAP * spacing
        or item.top - above.bottom > MAX_WRAP_GAP * item.height
    ):
        return False
    grid[-1][cells[0]] = _join_boxes(above, item)
    return True


def _is_far(grid: Sequence[Sequence[TextBox]], row: Sequence[TextBox]) -> bool:
    gap = row[0].y - grid[-1][0].y
    if len(grid) < 2:
        return gap > MAX_ROW_GAP * median_height(row)
    return gap > 2 * median(b[0].y - a[0].y for a, b in pairwise(grid))


def _measure_overlap(one: TextBox, other: TextBox) -> float:
    return min(one.right, other.right) - max(one.left, other.left)


def group_paragraphs(lines: Sequence[TextBox]) -> list[list[TextBox]]:
    """Group the lines into paragraphs; lines broken only for lack of room belong together.

    A line continues if the next line's first word had no room in it, unless a gap, an indent,
    another size or a list marker starts something new.
    """
    groups: list[list[TextBox]] = []
    for run in _split_runs(lines):
        column = _Column(run)
        begun = 0
        for number, line in enumerate(run):
            if number and column.goes_on(number, begun):
                groups[-1].append(line)
            else:
                groups.append([line])
                begun = number
    return groups


def _split_runs(lines: Sequence[TextBox]) -> Iterator[list[TextBox]]:
    """Yield stretches of lines that stand closely below each other."""
    run: list[TextBox] = []
    for line in lines:
        if run:
            above = run[-1]
            is_below = line.y > above.y + 0.4 * above.height
            near = line.top - above.bottom < 2.5 * max(line.height, above.height)
            beside = _measure_overlap(above, line) > 0.2 * min(above.width, line.width)
            if not (is_below and near and beside):
                yield run
                run = []
        run.append(line)
    if run:
        yield run


class _Column:
    """Lines below each other, with their edges and their usual gap."""

    def __init__(self, run: Sequence[TextBox]) -> None:
        self.lines = [_mirror_rtl(line) for line in run]
        self.left = min(line.left for line in self.lines)
        self.right = max(line.right for line in self.lines)
        gaps = [b.top - a.bottom for a, b in pairwise(self.lines)]
        self.gap = max(0.0, median(gaps)) if gaps else 0.0
        self.shortest = MIN_LINE_LENGTH if len(run) > 2 else MIN_LONE_LINE_LENGTH

    def goes_on(self, number: int, begun: int) -> bool:
        """Return True if the line continues the one above it, whose paragraph began at `begun`."""
        first, above, below = (self.lines[n] for n in (begun, number - 1, number))
        height = min(above.height, below.height)
        if not self._are_alike(above, below, height):
            return False
        if is_cut(above.text, below.text):
            return True
        is_lower = below.text[:1].islower()
        if above.width < (MIN_LINE_LENGTH if is_lower else self.shortest) * height:
            return False
        is_item = LIST_ITEM_START.match(first.text) is not None
        is_hanging = number == begun + 1 and (is_item or CAPTION_START.match(first.text))
        if below.left - above.left > INDENT_HEIGHTS * height and not is_hanging:
            return False
        if is_item and below.left < first.left - 0.5 * INDENT_HEIGHTS * height:
            return False
        end = above.right + _measure_first_word(below)
        if is_ended(above.text):
            is_outside = is_item and below.left < first.left + 0.5 * height
            return end > self.right - 0.3 * height and not is_outside
        return is_lower or end > self.right - max(
            0.3 * height, MAX_RAGGED_SHARE * (self.right - self.left)
        )

    def _are_alike(self, above: TextBox, below: TextBox, height: float) -> bool:
        if above.bold != below.bold or CAPTION_START.match(below.text):
            return False
        if LIST_ITEM_START.match(below.text) and (
            below.text[0] not in DASHES or is_ended(above.text)
        ):
            return False
        if max(above.height, below.height) > MAX_HEIGHT_RATIO * height:
            return False
        return below.top - above.bottom <= min(self.gap + MAX_EXTRA_GAP * height, 1.5 * height)


def _mirror_rtl(line: TextBox) -> TextBox:
    if line.text.isascii() or not RTL_LETTER.search(line.text):
        return line
    return line._replace(left=-line.right, right=-line.left)


def _measure_first_word(line: TextBox) -> float:
    word = line.text.split(None, 1)[0] if line.text.strip() else ""
    letters = 1 if UNSPACED_CHARACTER.match(word) else len(word) + 1
    return line.width * letters / max(1, len(line.text))


def _build_paragraph(lines: Sequence[TextBox], words: frozenset[str]) -> BlockContent:
    parts: list[TextPiece] = []
    for line in lines:
        if parts:
            text, by = join_lines(parts[-1].text, line.text, words)
            parts[-1] = TextPiece(text, parts[-1].box)
            parts += [TextPiece(by)] if by else []
        parts.append(TextPiece(line.text, line))
    is_item = LIST_ITEM_START.match(lines[0].text) is not None
    return BlockContent("list item" if is_item else "paragraph", tuple(parts))


def split_reading_columns(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """Split the items into groups that are read one after the other.

    Where a gutter separates running text, a line across it (a title, a caption) ends the columns
    above it; between such lines the left column is read before the right one.
    """
    gutter = _find_gutter(items)
    if gutter is None:
        return [list(items)] if items else []
    groups: list[list[TextBox]] = []
    across: list[TextBox] = []
    beside: list[TextBox] = []
    for item in sorted(items, key=lambda item: item.y):
        if _side_of(item, gutter) == 0:
            groups.extend(_split_sides(beside, gutter))
            beside = []
            across.append(item)
        else:
            if across:
                groups.append(across)
                across = []
            beside.append(item)
    groups.extend(_split_sides(beside, gutter))
    return [*groups, across] if across else groups


def _side_of(item: TextBox, x: float) -> int:
    """Return -1 if the item is left of x, 1 if it is right of x, 0 if it reaches across."""
    slack = BOX_SLACK * item.height
    if item.right - slack <= x:
        return -1
    return 1 if item.left + slack >= x else 0


def _split_sides(items: Sequence[TextBox], gutter: float) -> list[list[TextBox]]:
    left = [item for item in items if _side_of(item, gutter) < 0]
    right = [item for item in items if _side_of(item, gutter) > 0]
    return [*split_reading_columns(left), *split_reading_columns(right)]


def _find_gutter(items: Sequence[TextBox]) -> float | None:
    """Return the x of an empty strip between two columns of running text, or None."""
    if len(items) < 2 * MIN_COLUMN_LINES:
        return None
    start, end = min(item.left for item in items), max(item.right for item in items)
    height = median_height(items)
    best: tuple[float, float] | None = None
    position = None
    for step in range(GUTTER_STEPS):
        x = start + (end - start) * (0.2 + 0.6 * step / (GUTTER_STEPS - 1))
        left = [item for item in items if _side_of(item, x) < 0]
        right = [item for item in items if _side_of(item, x) > 0]
        across = len(items) - len(left) - len(right)
        if across > MAX_ACROSS_SHARE * len(items) or not _are_columns(left, right):
            continue
        gap = min(item.left for item in right) - max(item.right for item in left)
        gap += 2 * BOX_SLACK * height
        if gap >= MIN_GUTTER * height and (best is None or (-across, gap) > best):
            best, position = (-across, gap), x
    return position


def _are_columns(left: Sequence[TextBox], right: Sequence[TextBox]) -> bool:
    if min(len(left), len(right)) < MIN_COLUMN_LINES:
        return False
    if _is_running(left, MIN_COLUMN_WIDTH):
        return _is_running(right, MIN_COLUMN_WIDTH) or (
            len(left) >= MIN_LONG_COLUMN_LINES and _is_running(left, MIN_WIDE_COLUMN_WIDTH)
        )
    return len(right) >= MIN_LONG_COLUMN_LINES and _is_running(right, MIN_WIDE_COLUMN_WIDTH)


def _is_running(items: Sequence[TextBox], longest: float) -> bool:
    """Return True for lines of text set close together, unlike cells, labels and legends."""
    if 3 * sum(is_number(item.text) for item in items) > len(items):
        return False
    height = median_height(items)
    if median(item.width for item in items) < longest * height:
        return False
    rows = group_rows(items)
    gaps = [min(i.top for i in b) - max(i.bottom for i in a) for a, b in pairwise(rows)]
    return bool(gaps) and median(gaps) < MAX_LINE_GAP * height


def _build_grid_blocks(rows: Sequence[Sequence[TextBox]], caption: str) -> list[BlockContent]:
    """Return rows of items side by side as blocks: table rows, pairs, or each item alone."""
    items = [item for row in rows for item in row]
    if len(rows) < 2 or median(len(item.text) for item in items) > MAX_CELL_LETTERS:
        return [BlockContent("paragraph", (TextPiece(item.text, item),)) for item in items]
    columns = find_column_edges(rows)
    grid, boxes = arrange_in_columns(rows, columns) if len(columns) > 1 else ([], {})
    headers = count_header_rows(grid)
    if len(columns) < 2 or (not headers and any(_is_pair(row) for row in rows)):
        return list(_build_pair_blocks(rows))
    return build_table_blocks(grid, headers, caption, boxes)


def _build_pair_blocks(rows: Sequence[Sequence[TextBox]]) -> Iterator[BlockContent]:
    """Yield pairs as rows, and each item of the other rows alone."""
    for row in rows:
        if _is_pair(row):
            name = TextPiece(row[0].text.removesuffix(":"), row[0])
            yield BlockContent(
                "table row", (name, TextPiece(": "), *join_text_pieces(row[1:], ", "))
            )
        else:
            yield from (BlockContent("paragraph", (TextPiece(item.text, item),)) for item in row)


def _is_pair(row: Sequence[TextBox]) -> bool:
    """Return True for a name followed by numbers only: a horizontal bar, a line of a legend."""
    return not is_number(row[0].text) and all(is_number(item.text) for item in row[1:])


def find_column_edges(rows: Sequence[Sequence[TextBox]]) -> list[tuple[float, float]]:
    """Return the columns' left and right edges; strips that most rows leave empty separate them."""
    widest = max(len(row) for row in rows)
    full = [row for row in rows if len(row) >= max(2, 0.6 * widest)]
    height = median_height([item for row in full for item in row])
    allowed = len(full) // 8
    events = sorted(
        event
        for row in full
        for item in row
        for event in ((item.left, 1), (max(item.left, item.right - 0.1 * height), -1))
    )
    edges: list[list[float]] = []
    covered = 0
    for x, step in events:
        if covered == allowed and step > 0:
            if not edges or x - edges[-1][1] >= MIN_COLUMN_GAP * height:
                edges.append([x, x])
        elif covered > allowed:
            edges[-1][1] = x
        covered += step
    return [(left, right) for left, right in edges]


def arrange_in_columns(
    rows: Sequence[Sequence[TextBox]], columns: Sequence[tuple[float, float]]
) -> tuple[list[list[str]], CellBoxes]:
    """Place the rows' items in the columns; a name that spans several columns is put in each."""
    boxes: CellBoxes = {}
    for number, row in enumerate(rows):
        has_only_names = not any(is_number(item.text) for item in row)
        for item in row:
            spanned = find_columns_under(item, columns)
            for column in spanned if has_only_names else spanned[:1]:
                boxes.setdefault((number, column), []).append(item)
    grid = [
        [" ".join(item.text for item in boxes.get((row, n), ())) for n in range(len(columns))]
        for row in range(len(rows))
    ]
    return grid, boxes


def find_columns_under(item: TextBox, columns: Sequence[tuple[float, float]]) -> list[int]:
    """Return the columns that the item stands spanned, or the nearest one."""
    spanned = [
        n
        for n, (left, right) in enumerate(columns)
        if min(item.right, right) - max(item.left, left) > 0.4 * min(item.width, right - left)
    ]
    gaps = [max(left - item.x, item.x - right) for left, right in columns]
    return spanned or [gaps.index(min(gaps))]
