"""Turns PDF pages into blocks without headers and footers: tables, paragraphs, ranked headings.

Lines come in the order of the file's content; positions are used only where they tell more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import regex

from core.documents.charts import Chart, find_chart, split_numbers
from core.documents.layout import (
    CAPTION_START,
    LIST_ITEM_START,
    MAX_CELL_LETTERS,
    build_picture_blocks,
    group_paragraphs,
    split_reading_columns,
)
from core.documents.pdf_tables import PdfTable, build_aligned_table, insert_tables, join_page_tables
from core.documents.pdf_text import MARGIN_SHARE, PdfPage, TextLine
from core.documents.segmentation import is_ended, join_lines
from core.documents.source_builder import (
    BlockContent,
    TextBox,
    TextPiece,
    bounding_box,
    group_rows,
    text_block,
)
from core.documents.tables import is_number

MAX_FURNITURE_SHIFT = 0.012
MAX_FURNITURE_LENGTH = 160
MAX_FURNITURE_LINES = 4  # lines in a margin
FEW_PAGES_COUNT = 4
PAGE_NUMBER = regex.compile(
    r"(?:page|seite|página|pagina|p\.|第|[a-z]{1,2}[-.–])?\s*[-–—|]?\s*"
    r"(\d{1,4}|[ivxlc]{1,7})\s*[-–—|]?"
    r"(?:\s*(?:of|von|de|di|/|共)\s*\d{1,4})?\s*页?",
    regex.I,
)
DIGIT_RUN = re.compile(r"\d+")
CONTENTS_LINE = re.compile(r"(?:\.\s?){4}\s*\d{1,4}$")
SECTION_NUMBER = regex.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\p{L}")
FOOTNOTE_START = re.compile(r"(?:\d{1,3}|[*†‡§]{1,3}|[¹²³⁴-⁹]+|\(\d\)|[a-z]\))\s*\S")
DRAWN_LINE = re.compile(r"[-_=—–.*\s]{5,}")  # a line drawn with characters
NO_LETTERS = re.compile(r"[\W_]+")
LETTERS = regex.compile(r"\p{L}.*\p{L}")
MIN_HEADING_SCALE = 1.14
MAX_FOOTNOTE_SCALE = 0.92
MAX_HEADING_LENGTH = 160
MAX_HEADING_LINES = 3
FOOTNOTE_REGION_START = 0.5
MAX_CAPTION_DISTANCE = 3.0  # heights between a table and its caption
MIN_ACROSS_LINES = 6  # lines that were set over all columns
MIN_FIGURE_LINES = 5
MIN_FIGURE_NUMBERS = 3


@dataclass
class ChartFigure:
    """A drawn chart: its bars as rows, all other text in it as labels that mean nothing alone."""

    chart: Chart
    labels: list[TextBox]
    area: TextBox
    caption: str = ""

    def blocks(self) -> list[BlockContent]:
        """Return the bars, then the labels."""
        title = CAPTION_START.sub("", self.caption, count=1).strip(" :.|—–")
        rows = list(self.chart.rows((TextPiece(title),) if title else ()))
        label_pieces = [(TextPiece(item.text, item),) for item in self.labels]
        return rows + [BlockContent("chart label", p) for p in (*label_pieces, *self.chart.axes)]


LayoutItem = TextLine | PdfTable | ChartFigure


def build_page_blocks(
    pages: Sequence[PdfPage], bookmarks: Mapping[str, int], known: frozenset[str]
) -> list[list[BlockContent]]:
    """Return the blocks of each page; `bookmarks` gives the level of titles in the outline."""
    dropped = find_furniture(pages)
    style = _Style.of(pages, bookmarks)
    flows: list[list[LayoutItem]] = []
    for page in pages:
        page.lines = [
            line
            for n, line in enumerate(page.lines)
            if (page.number, n) not in dropped and not DRAWN_LINE.fullmatch(line.whole.text)
        ]
        flows.append([] if page.picture else _build_flow(page))
    join_page_tables([[item for item in flow if not _is_footnote(item)] for flow in flows])
    page_blocks = []
    for page, flow in zip(pages, flows, strict=True):
        if page.picture:
            lines = tuple(line.whole for line in page.lines)
            page_blocks.append(list(build_picture_blocks(replace(page.picture, items=lines))))
        else:
            page_blocks.append(list(_build_blocks(page, flow, style, known)))
    return page_blocks


def find_furniture(pages: Sequence[PdfPage]) -> set[tuple[int, int]]:
    """Return (page, line) of running headers and footers and of page numbers.

    They stand in the margin, outermost on their page, and repeat on several pages at the same
    height apart from numbers; alternating pages have half of them each. A repeated sentence (“All
    figures are unaudited.”) is kept where it stands first.
    """
    margins = {page.number: list(_list_margin_lines(page)) for page in pages}
    repeated_lines = _Margins(len(pages))
    for page in pages:
        for _, line, is_top in margins[page.number]:
            repeated_lines.add(line, page, is_top=is_top)
    dropped: set[tuple[int, int]] = set()
    for page in pages:
        closed_margins: set[bool] = set()
        for number, line, is_top in margins[page.number]:
            is_furniture = repeated_lines.repeats(line, page, is_top=is_top) and not _heads_table(
                line, page
            )
            if is_furniture and is_top not in closed_margins:
                dropped.add((page.number, number))
            else:
                closed_margins.add(is_top)
    return dropped


class _Margins:
    """Remembers the lines in the margins of all pages, to recognise those that repeat."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._needed = 3 if pages > FEW_PAGES_COUNT else 2
        self._seen: dict[tuple[bool, str], dict[int, float]] = defaultdict(dict)
        self._offsets: Counter[int] = Counter()

    def add(self, line: TextLine, page: PdfPage, *, is_top: bool) -> None:
        for cell in line.cells:
            self._seen[is_top, _margin_pattern(cell.text)][page.number] = cell.y / page.height
            number = _parse_page_number(cell.text)
            if number is not None:
                self._offsets[number - page.number] += 1

    def repeats(self, line: TextLine, page: PdfPage, *, is_top: bool) -> bool:
        for cell in line.cells if LETTERS.search(line.whole.text) else ():
            heights = self._seen[is_top, _margin_pattern(cell.text)]
            usual = median(heights.values())
            is_repeated = (
                sum(abs(y - usual) < MAX_FURNITURE_SHIFT for y in heights.values()) >= self._needed
            )
            is_first = self._pages <= FEW_PAGES_COUNT or page.number == min(heights)
            if _is_sentence(line.whole.text) and is_first:
                return False
            is_there = abs(cell.y / page.height - usual) < MAX_FURNITURE_SHIFT
            if is_repeated and is_there and LETTERS.search(cell.text):
                return True
        numbers = [_parse_page_number(cell.text) for cell in line.cells]
        page_numbers = [n for n in numbers if n is not None]
        return len(page_numbers) == len(numbers) and any(
            n < 0 or self._offsets[n - page.number] > 1 or n == page.number for n in page_numbers
        )


def _list_margin_lines(page: PdfPage) -> Iterator[tuple[int, TextLine, bool]]:
    """Yield (number, line, is at the top) of the few lines in the margins, the outermost first."""
    short = [
        (n, li) for n, li in enumerate(page.lines) if len(li.whole.text) < MAX_FURNITURE_LENGTH
    ]
    top = [(n, li, True) for n, li in short if li.whole.bottom < MARGIN_SHARE * page.height]
    foot = [(n, li, False) for n, li in short if li.whole.top > (1 - MARGIN_SHARE) * page.height]
    yield from sorted(top, key=lambda item: item[1].whole.top)[:MAX_FURNITURE_LINES]
    yield from sorted(foot, key=lambda item: -item[1].whole.bottom)[:MAX_FURNITURE_LINES]


def _heads_table(line: TextLine, page: PdfPage) -> bool:
    """Return True for a row of cells close above another: a table header repeated on every page."""
    return len(line.cells) > 2 and any(
        len(other.cells) > 2 and 0 < other.whole.y - line.whole.y < 2 * line.whole.height
        for other in page.lines
    )


def _margin_pattern(text: str) -> str:
    return text if _is_sentence(text) else DIGIT_RUN.sub("#", text.casefold())


def _is_sentence(text: str) -> bool:
    return is_ended(text) and len(text) > MAX_CELL_LETTERS


def _parse_page_number(text: str) -> int | None:
    match = PAGE_NUMBER.fullmatch(text.strip())
    if not match:
        return None
    return int(match[1]) if match[1].isdigit() else -1000


def _build_flow(page: PdfPage) -> list[LayoutItem]:
    flow = _insert_figures(insert_tables(page, _split_columns(page.lines)))
    for number, item in enumerate(flow):
        before, after = flow[max(0, number - 4) : number][::-1], flow[number + 1 : number + 4]
        if isinstance(item, PdfTable):
            item.caption = _find_caption(item, before)
        elif isinstance(item, ChartFigure):
            lines = [i.whole.text for i in (*before[:2], *after) if isinstance(i, TextLine)]
            item.caption = next((text for text in lines if CAPTION_START.match(text)), "")
            page.has_unread_chart |= not item.chart.bars
    return flow


def _find_caption(table: PdfTable, before: Sequence[LayoutItem]) -> str:
    texts: list[str] = []
    edge = table.area.top
    for item in before:
        if not isinstance(item, TextLine) or len(item.whole.text) > MAX_HEADING_LENGTH:
            break
        if (
            not -item.whole.height
            < edge - item.whole.bottom
            < MAX_CAPTION_DISTANCE * item.whole.height
        ):
            break
        texts.insert(0, item.whole.text)
        edge = item.whole.top
        if CAPTION_START.match(item.whole.text):
            break
    return " ".join(texts)


def _split_columns(lines: Sequence[TextLine]) -> list[TextLine]:
    across = [line for line in lines if len(line.cells) > 1 and _is_prose(line)]
    if len(across) < MIN_ACROSS_LINES or 3 * len(across) < len(lines):
        return list(lines)
    cells = [cell for line in lines for cell in line.cells]
    return [TextLine((c,), (c,), c) for column in split_reading_columns(cells) for c in column]


def _is_prose(line: TextLine) -> bool:
    return median(len(cell.text) for cell in line.cells) > MAX_CELL_LETTERS


def _insert_figures(flow: Sequence[LayoutItem]) -> list[LayoutItem]:
    """Return the flow with runs of short texts (numbers, names) made tables or charts by position.

    This also finds tables that were set column by column.
    """
    result: list[LayoutItem] = []
    short_lines: list[TextLine] = []
    for item in [*flow, None]:
        if isinstance(item, TextLine) and _is_bit(item):
            short_lines.append(item)
            continue
        result += _build_figure(short_lines)
        short_lines = []
        result += [item] if item else []
    return result


def _is_bit(line: TextLine) -> bool:
    is_short = all(len(cell.text) <= MAX_CELL_LETTERS for cell in line.cells)
    return is_short and not is_ended(line.whole.text) and not CAPTION_START.match(line.whole.text)


def _build_figure(short_lines: Sequence[TextLine]) -> Sequence[LayoutItem]:
    cells = split_numbers([cell for line in short_lines for cell in line.cells])
    numbers = sum(is_number(cell.text) for cell in cells)
    if len(short_lines) < MIN_FIGURE_LINES or numbers < MIN_FIGURE_NUMBERS:
        return short_lines
    chart, labels = find_chart(cells)
    if chart.axes or chart.bars:
        return [ChartFigure(chart, labels, bounding_box(cells))]
    rows = group_rows(cells)
    table = build_aligned_table(rows) if 2 * sum(len(row) > 1 for row in rows) > len(rows) else None
    if table or 2 * numbers < len(cells):
        return [table] if table else short_lines
    return [ChartFigure(chart, labels, bounding_box(cells))]


@dataclass
class _Style:
    """The body text's height and the letter styles that mark headings."""

    body: float = 0.0
    ranks: list[tuple[float, bool]] = field(default_factory=list)
    bookmarks: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, pages: Sequence[PdfPage], bookmarks: Mapping[str, int]) -> _Style:
        """Measure the usual height of letters and the styles that stand out, largest first."""
        letters: Counter[tuple[float, bool]] = Counter()
        heights: Counter[float] = Counter()
        for page in pages:
            for line in page.lines if not page.picture else ():
                style = _style_of(line.whole)
                letters[style] += len(line.whole.text)
                heights[style[0]] += len(line.whole.text)
        if not letters:
            return cls(bookmarks=bookmarks)
        body = heights.most_common(1)[0][0]
        is_bold = letters[body, True] > letters[body, False]
        ranks = [
            (height, bold)
            for height, bold in letters
            if height >= MIN_HEADING_SCALE * body
            or (bold and not is_bold and height >= MAX_FOOTNOTE_SCALE * body)
        ]
        return cls(body, sorted(ranks, reverse=True), bookmarks)

    def level(self, lines: Sequence[TextBox], page: int) -> int | None:
        """Return the level of the heading that the lines form, or None."""
        text = " ".join(line.text for line in lines)
        is_short = len(text) <= MAX_HEADING_LENGTH and len(lines) <= MAX_HEADING_LINES
        if not is_short or not LETTERS.search(text):
            return None
        bookmark_level = self.bookmarks.get(normalize_title(text))
        if bookmark_level is not None:
            return bookmark_level
        styles = [_style_of(line) for line in lines]
        if text[-1] in ".,;:" or not all(style in self.ranks for style in styles):
            return None
        if len(lines) == 1 and text.islower():
            return None
        if numbered := SECTION_NUMBER.match(text):
            return 1 + numbered[1].count(".")
        rank = max(map(self.ranks.index, styles))
        return rank if page == 1 or rank else 1


def _style_of(line: TextBox) -> tuple[float, bool]:
    return round(2 * line.height) / 2, line.bold


def normalize_title(text: str) -> str:
    """Return a title's letters and digits, for comparison."""
    return NO_LETTERS.sub("", text.casefold())


def _build_blocks(
    page: PdfPage, flow: Sequence[LayoutItem], style: _Style, known: frozenset[str]
) -> Iterator[BlockContent]:
    footnotes = _find_footnotes(page, flow, style)
    footnote_ids = set(map(id, footnotes))
    lines: list[TextBox] = []
    for item in [*(item for item in flow if id(item) not in footnote_ids), None]:
        if isinstance(item, TextLine):
            lines.append(item.whole)
            continue
        yield from _build_text_blocks(lines, page.number, style, known)
        lines = []
        if item:
            yield from item.blocks()
    for group in _group_footnotes(footnotes):
        yield text_block("footnote", _join_text(group, known))


def _build_text_blocks(
    lines: Sequence[TextBox], page: int, style: _Style, known: frozenset[str]
) -> Iterator[BlockContent]:
    for group in group_paragraphs(lines):
        text = _join_text(group, known)
        level = style.level(group, page)
        if any(CONTENTS_LINE.search(line.text) for line in group):
            yield text_block(None, text)
        elif CAPTION_START.match(group[0].text) and len(text) < 2 * MAX_HEADING_LENGTH:
            yield text_block("caption", text)
        elif level is not None:
            yield text_block("heading", text, level)
        else:
            yield text_block(
                "list item" if LIST_ITEM_START.match(group[0].text) else "paragraph", text
            )


def _join_text(lines: Sequence[TextBox], known: frozenset[str]) -> str:
    """Return the lines as one text without places; quotes are located when the page is shown."""
    text = lines[0].text
    for line in lines[1:]:
        before, by = join_lines(text, line.text, known)
        text = before + by + line.text
    return text


def _is_footnote(item: LayoutItem) -> bool:
    return isinstance(item, TextLine) and FOOTNOTE_START.match(item.whole.text) is not None


def _find_footnotes(page: PdfPage, flow: Sequence[LayoutItem], style: _Style) -> list[TextLine]:
    footnotes: list[TextLine] = []
    for item in reversed(flow):
        if not isinstance(item, TextLine) or item.whole.height > MAX_FOOTNOTE_SCALE * style.body:
            break
        if item.whole.top < FOOTNOTE_REGION_START * page.height:
            break
        footnotes.insert(0, item)
    while footnotes and not FOOTNOTE_START.match(footnotes[0].whole.text):
        footnotes.pop(0)
    return footnotes


def _group_footnotes(lines: Sequence[TextLine]) -> list[list[TextBox]]:
    groups: list[list[TextBox]] = []
    for line in lines:
        if not groups or FOOTNOTE_START.match(line.whole.text):
            groups.append([])
        groups[-1].append(line.whole)
    return groups
