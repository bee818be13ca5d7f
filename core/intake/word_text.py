"""The text of WordprocessingML elements: paragraphs, runs, tables, text boxes.

Tracked changes are read as accepted; hidden text is not read. Names are compared without their
namespace, so that both the transitional and the strict dialect are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from core.intake.rows import table_lines

WRAPPERS = frozenset({"sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"})
SKIPPED = frozenset(
    "del moveFrom delText instrText pPr rPr tblPr tcPr trPr sectPr sdtPr sdtEndPr Fallback "
    "rt delInstrText".split()
)
MARKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "ptab": "\t"}
OFF = frozenset({"0", "false", "off"})
LONGEST_CELL = 400
WIDEST = 200  # columns that cells may span; Word's own tables have at most 63


def local(element: Element) -> str:
    """The element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def value(element: Element | None, name: str) -> str | None:
    """An attribute by its name without namespace."""
    if element is None:
        return None
    return next((v for key, v in element.attrib.items() if key.rpartition("}")[2] == name), None)


def child(element: Element | None, name: str) -> Element | None:
    """The first child of that name."""
    if element is None:
        return None
    return next((item for item in element if local(item) == name), None)


def blocks_of(element: Element) -> Iterator[str]:
    """The texts of a block: a paragraph with its text boxes, or a table's rows."""
    name = local(element)
    if name == "p":
        yield from _paragraph(element)
    elif name == "tbl":
        yield from _table(element)
    elif name not in SKIPPED:
        for item in element:
            yield from blocks_of(item)


def _paragraph(paragraph: Element) -> Iterator[str]:
    boxes: list[Element] = []
    text = "".join(_pieces(paragraph, boxes))
    if text.strip():
        yield text.strip("\n")
    for box in boxes:
        yield from blocks_of(box)


def _pieces(element: Element, boxes: list[Element]) -> Iterator[str]:
    """The characters of a paragraph or run; text boxes are put aside."""
    for item in element:
        name = local(item)
        if name == "t":
            yield item.text or ""
        elif name == "txbxContent":
            boxes.append(item)
        elif name in MARKS:
            yield MARKS[name]
        elif name == "r" and _is_hidden(item):
            continue
        elif name not in SKIPPED:
            yield from _pieces(item, boxes)


def _is_hidden(run: Element) -> bool:
    vanish = child(child(run, "rPr"), "vanish")
    return vanish is not None and (value(vanish, "val") or "") not in OFF


def _inside(element: Element, name: str) -> Iterator[Element]:
    """Children of that name, also those in content controls and tracked insertions."""
    for item in element:
        if local(item) == name:
            yield item
        elif local(item) in WRAPPERS:
            yield from _inside(item, name)


def _table(table: Element) -> Iterator[str]:
    """A table's rows as lines; its cells one by one where it only lays out the page."""
    grid: list[list[str]] = []
    nested: list[Element] = []
    headers = 0
    for row in _inside(table, "tr"):
        about = child(row, "trPr")
        if child(about, "del") is not None:
            continue
        if child(about, "tblHeader") is not None and headers == len(grid):
            headers += 1
        grid.append(_row(row, grid[-1] if grid else [], nested))
    widest = max((len(row) for row in grid), default=0)
    if widest < 2 or any(len(text) > LONGEST_CELL for row in grid for text in row):
        for row in _inside(table, "tr"):
            for cell in _inside(row, "tc"):
                for item in cell:
                    yield from blocks_of(item)
        return
    yield from table_lines(grid, headers or None)
    for inner in nested:
        yield from blocks_of(inner)


def _row(row: Element, above: list[str], nested: list[Element]) -> list[str]:
    """One row of the grid: a cell merged downwards says again what stands above it."""
    cells: list[str] = []
    for cell in _inside(row, "tc"):
        about = child(cell, "tcPr")
        merge = child(about, "vMerge")
        if merge is not None and value(merge, "val") != "restart" and len(cells) < len(above):
            text = above[len(cells)]
        else:
            text = " ".join(_cell(cell, nested))
        cells.append(text)
        span = value(child(about, "gridSpan"), "val") or "1"
        across = min(int(span), WIDEST) if span.isascii() and span.isdigit() else 1
        cells.extend([""] * min(across - 1, WIDEST - len(cells)))
    return cells


def _cell(cell: Element, nested: list[Element]) -> Iterator[str]:
    """The cell's paragraphs; tables within it are put aside."""
    for item in cell:
        if local(item) == "tbl":
            nested.append(item)
        else:
            yield from blocks_of(item)
