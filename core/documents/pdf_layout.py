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

from core.documents.charts import Chart, chart_in, single_numbers
from core.documents.draft import BlockContent, TextBox, TextPiece, around, content, rows_of
from core.documents.layout import (
    CAPTION,
    ITEM,
    PROSE_LETTERS,
    paragraphs_of,
    picture_blocks,
    reading_columns,
)
from core.documents.pdf_tables import PdfTable, aligned_table, join_pages, with_tables
from core.documents.pdf_text import MARGIN, PdfPage, TextLine
from core.documents.segmentation import is_ended, joined_lines
from core.documents.tables import is_number

SAME_PLACE = 0.012
LONGEST_FURNITURE = 160
MOST_FURNITURE = 4  # lines in a margin
FEW_PAGES = 4
PAGE_NUMBER = regex.compile(
    r"(?:page|seite|página|pagina|p\.|第|[a-z]{1,2}[-.–])?\s*[-–—|]?\s*"
    r"(\d{1,4}|[ivxlc]{1,7})\s*[-–—|]?"
    r"(?:\s*(?:of|von|de|di|/|共)\s*\d{1,4})?\s*页?",
    regex.I,
)
DIGITS = re.compile(r"\d+")
CONTENTS = re.compile(r"(?:\.\s?){4}\s*\d{1,4}$")
NUMBERED = regex.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\p{L}")
FOOTNOTE = re.compile(r"(?:\d{1,3}|[*†‡§]{1,3}|[¹²³⁴-⁹]+|\(\d\)|[a-z]\))\s*\S")
DRAWN = re.compile(r"[-_=—–.*\s]{5,}")  # a line drawn with characters
NO_LETTERS = re.compile(r"[\W_]+")
LETTERS = regex.compile(r"\p{L}.*\p{L}")
LARGER = 1.14
SMALLER = 0.92
LONGEST_HEADING = 160
MOST_HEADING_LINES = 3
LOWER_PART = 0.5
NEAR = 3.0  # heights between a table and its caption
FEWEST_ACROSS = 6  # lines that were set over all columns
FEWEST_BITS = 5
FEWEST_VALUES = 3


@dataclass
class ChartFigure:
    """A drawn chart: its bars as rows, all other text in it as labels that mean nothing alone."""

    chart: Chart
    labels: list[TextBox]
    area: TextBox
    caption: str = ""

    def blocks(self) -> list[BlockContent]:
        """Return the bars, then the labels."""
        title = CAPTION.sub("", self.caption, count=1).strip(" :.|—–")
        rows = list(self.chart.rows((TextPiece(title),) if title else ()))
        label_pieces = [(TextPiece(item.text, item),) for item in self.labels]
        return rows + [BlockContent("chart label", p) for p in (*label_pieces, *self.chart.axes)]


Item = TextLine | PdfTable | ChartFigure


def pages_as_blocks(
    pages: Sequence[PdfPage], bookmarks: Mapping[str, int], known: frozenset[str]
) -> list[list[BlockContent]]:
    """Return the blocks of each page; `bookmarks` gives the level of titles in the outline."""
    dropped = furniture_of(pages)
    style = _Style.of(pages, bookmarks)
    flows: list[list[Item]] = []
    for page in pages:
        page.lines = [
            line
            for n, line in enumerate(page.lines)
            if (page.number, n) not in dropped and not DRAWN.fullmatch(line.whole.text)
        ]
        flows.append([] if page.picture else _build_flow(page))
    join_pages([[item for item in flow if not _is_footnote(item)] for flow in flows])
    page_blocks = []
    for page, flow in zip(pages, flows, strict=True):
        if page.picture:
            lines = tuple(line.whole for line in page.lines)
            page_blocks.append(list(picture_blocks(replace(page.picture, items=lines))))
        else:
            page_blocks.append(list(_build_blocks(page, flow, style, known)))
    return page_blocks


def furniture_of(pages: Sequence[PdfPage]) -> set[tuple[int, int]]:
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
        self._needed = 3 if pages > FEW_PAGES else 2
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
            is_repeated = sum(abs(y - usual) < SAME_PLACE for y in heights.values()) >= self._needed
            is_first = self._pages <= FEW_PAGES or page.number == min(heights)
            if _is_sentence(line.whole.text) and is_first:
                return False
            is_there = abs(cell.y / page.height - usual) < SAME_PLACE
            if is_repeated and is_there and LETTERS.search(cell.text):
                return True
        numbers = [_parse_page_number(cell.text) for cell in line.cells]
        page_numbers = [n for n in numbers if n is not None]
        return len(page_numbers) == len(numbers) and any(
            n < 0 or self._offsets[n - page.number] > 1 or n == page.number for n in page_numbers
        )


def _list_margin_lines(page: PdfPage) -> Iterator[tuple[int, TextLine, bool]]:
    """Yield (number, line, is at the top) of the few lines in the margins, the outermost first."""
    short = [(n, li) for n, li in enumerate(page.lines) if len(li.whole.text) < LONGEST_FURNITURE]
    top = [(n, li, True) for n, li in short if li.whole.bottom < MARGIN * page.height]
    foot = [(n, li, False) for n, li in short if li.whole.top > (1 - MARGIN) * page.height]
    yield from sorted(top, key=lambda item: item[1].whole.top)[:MOST_FURNITURE]
    yield from sorted(foot, key=lambda item: -item[1].whole.bottom)[:MOST_FURNITURE]


def _heads_table(line: TextLine, page: PdfPage) -> bool:
    """Return True for a row of cells close above another: a table header repeated on every page."""
    return len(line.cells) > 2 and any(
        len(other.cells) > 2 and 0 < other.whole.y - line.whole.y < 2 * line.whole.height
        for other in page.lines
    )


def _margin_pattern(text: str) -> str:
    return text if _is_sentence(text) else DIGITS.sub("#", text.casefold())


def _is_sentence(text: str) -> bool:
    return is_ended(text) and len(text) > PROSE_LETTERS


def _parse_page_number(text: str) -> int | None:
    match = PAGE_NUMBER.fullmatch(text.strip())
    if not match:
        return None
    return int(match[1]) if match[1].isdigit() else -1000


def _build_flow(page: PdfPage) -> list[Item]:
    flow = _insert_figures(with_tables(page, _split_columns(page.lines)))
    for number, item in enumerate(flow):
        before, after = flow[max(0, number - 4) : number][::-1], flow[number + 1 : number + 4]
        if isinstance(item, PdfTable):
            item.caption = _find_caption(item, before)
        elif isinstance(item, ChartFigure):
            lines = [i.whole.text for i in (*before[:2], *after) if isinstance(i, TextLine)]
            item.caption = next((text for text in lines if CAPTION.match(text)), "")
            page.has_unread_chart |= not item.chart.bars
    return flow


def _find_caption(table: PdfTable, before: Sequence[Item]) -> str:
    texts: list[str] = []
    edge = table.area.top
    for item in before:
        if not isinstance(item, TextLine) or len(item.whole.text) > LONGEST_HEADING:
            break
        if not -item.whole.height < edge - item.whole.bottom < NEAR * item.whole.height:
            break
        texts.insert(0, item.whole.text)
        edge = item.whole.top
        if CAPTION.match(item.whole.text):
            break
    return " ".join(texts)


def _split_columns(lines: Sequence[TextLine]) -> list[TextLine]:
    across = [line for line in lines if len(line.cells) > 1 and _is_prose(line)]
    if len(across) < FEWEST_ACROSS or 3 * len(across) < len(lines):
        return list(lines)
    cells = [cell for line in lines for cell in line.cells]
    return [TextLine((c,), (c,), c) for column in reading_columns(cells) for c in column]


def _is_prose(line: TextLine) -> bool:
    return median(len(cell.text) for cell in line.cells) > PROSE_LETTERS


def _insert_figures(flow: Sequence[Item]) -> list[Item]:
    """Return the flow with runs of short texts (numbers, names) made tables or charts by position.

    This also finds tables that were set column by column.
    """
    result: list[Item] = []
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
    is_short = all(len(cell.text) <= PROSE_LETTERS for cell in line.cells)
    return is_short and not is_ended(line.whole.text) and not CAPTION.match(line.whole.text)


def _build_figure(short_lines: Sequence[TextLine]) -> Sequence[Item]:
    cells = single_numbers([cell for line in short_lines for cell in line.cells])
    numbers = sum(is_number(cell.text) for cell in cells)
    if len(short_lines) < FEWEST_BITS or numbers < FEWEST_VALUES:
        return short_lines
    chart, labels = chart_in(cells)
    if chart.axes or chart.bars:
        return [ChartFigure(chart, labels, around(cells))]
    rows = rows_of(cells)
    table = aligned_table(rows) if 2 * sum(len(row) > 1 for row in rows) > len(rows) else None
    if table or 2 * numbers < len(cells):
        return [table] if table else short_lines
    return [ChartFigure(chart, labels, around(cells))]


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
            if height >= LARGER * body or (bold and not is_bold and height >= SMALLER * body)
        ]
        return cls(body, sorted(ranks, reverse=True), bookmarks)

    def level(self, lines: Sequence[TextBox], page: int) -> int | None:
        """Return the level of the heading that the lines form, or None."""
        text = " ".join(line.text for line in lines)
        is_short = len(text) <= LONGEST_HEADING and len(lines) <= MOST_HEADING_LINES
        if not is_short or not LETTERS.search(text):
            return None
        bookmark_level = self.bookmarks.get(plain_title(text))
        if bookmark_level is not None:
            return bookmark_level
        styles = [_style_of(line) for line in lines]
        if text[-1] in ".,;:" or not all(style in self.ranks for style in styles):
            return None
        if len(lines) == 1 and text.islower():
            return None
        if numbered := NUMBERED.match(text):
            return 1 + numbered[1].count(".")
        rank = max(map(self.ranks.index, styles))
        return rank if page == 1 or rank else 1


def _style_of(line: TextBox) -> tuple[float, bool]:
    return round(2 * line.height) / 2, line.bold


def plain_title(text: str) -> str:
    """Return a title's letters and digits, for comparison."""
    return NO_LETTERS.sub("", text.casefold())


def _build_blocks(
    page: PdfPage, flow: Sequence[Item], style: _Style, known: frozenset[str]
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
        yield content("footnote", _join_text(group, known))


def _build_text_blocks(
    lines: Sequence[TextBox], page: int, style: _Style, known: frozenset[str]
) -> Iterator[BlockContent]:
    for group in paragraphs_of(lines):
        text = _join_text(group, known)
        level = style.level(group, page)
        if any(CONTENTS.search(line.text) for line in group):
            yield content(None, text)
        elif CAPTION.match(group[0].text) and len(text) < 2 * LONGEST_HEADING:
            yield content("caption", text)
        elif level is not None:
            yield content("heading", text, level)
        else:
            yield content("list item" if ITEM.match(group[0].text) else "paragraph", text)


def _join_text(lines: Sequence[TextBox], known: frozenset[str]) -> str:
    """Return the lines as one text without places; quotes are located when the page is shown."""
    text = lines[0].text
    for line in lines[1:]:
        before, by = joined_lines(text, line.text, known)
        text = before + by + line.text
    return text


def _is_footnote(item: Item) -> bool:
    return isinstance(item, TextLine) and FOOTNOTE.match(item.whole.text) is not None


def _find_footnotes(page: PdfPage, flow: Sequence[Item], style: _Style) -> list[TextLine]:
    footnotes: list[TextLine] = []
    for item in reversed(flow):
        if not isinstance(item, TextLine) or item.whole.height > SMALLER * style.body:
            break
        if item.whole.top < LOWER_PART * page.height:
            break
        footnotes.insert(0, item)
    while footnotes and not FOOTNOTE.match(footnotes[0].whole.text):
        footnotes.pop(0)
    return footnotes


def _group_footnotes(lines: Sequence[TextLine]) -> list[list[TextBox]]:
    groups: list[list[TextBox]] = []
    for line in lines:
        if not groups or FOOTNOTE.match(line.whole.text):
            groups.append([])
        groups[-1].append(line.whole)
    return groups
