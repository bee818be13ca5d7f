"""HTML pages: what a reader of the page sees, block by block, without scripts and menus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from core.intake.draft import Draft
from core.intake.nesting import flattened
from core.intake.page_encoding import decoded_page
from core.intake.request import ReadRequest
from core.intake.rows import table_lines
from core.records import Source

UNSEEN = frozenset(
    "script style template noscript head svg math-annotation object iframe canvas audio video "
    "select option datalist textarea input button dialog".split()
)
MENUS = frozenset({"nav", "menu"})
MENU_ROLES = frozenset({"navigation", "search", "menu", "menubar", "banner", "contentinfo"})
BLOCKS = frozenset(
    "address article aside blockquote body center dd details dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main ol p pre section "
    "summary table tbody td tfoot th thead tr ul caption".split()
)
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
BLANKS = re.compile(r"[ \t\r\n\f]+")
# Control characters stand in for what must outlive the joining of blanks; no page shows them.
STAND_INS = re.compile("[\x1c-\x1f]")
LINE_BREAK = "\x1e"
KEPT = str.maketrans({" ": "\x1d", "\t": "\x1c", "\n": "\x1f"})
SHOWN = str.maketrans({"\x1d": " ", "\x1c": "\t", "\x1f": "\n"})
SPAN = re.compile(r"\s*([0-9]{1,9})\s*")
WIDEST = 200
# Places that cells fill beside their own, in all tables of a page.
MOST_REPEATS = 500_000
LONGEST_CELL = 400
BETWEEN = "\n\n"


def read_html(request: ReadRequest) -> Source:
    """HTML pages, however malformed. Raises InputError when the text is too long."""
    draft = Draft(request)
    text, remark = decoded_page(request.data)
    if remark:
        draft.note(remark)
    root = LexborHTMLParser(flattened(text)).root
    blocks = _seen(root)
    title = _title(root, blocks) if root else ""
    draft.add_blocks([title, *blocks] if title else blocks, BETWEEN)
    if not blocks:
        draft.note("There is no text to be seen in this page; it may be filled in by scripts.")
    return draft.finish()


def blocks_of(page: str) -> list[str]:
    """What a reader of the HTML sees, block by block."""
    return _seen(LexborHTMLParser(flattened(page)).root)


def _seen(root: LexborNode | None) -> list[str]:
    """The blocks; those of menus too where there is nothing else."""
    if root is None:
        return []
    return _blocks(root, menus=False) or _blocks(root, menus=True)


def _title(root: LexborNode, blocks: list[str]) -> str:
    """The page's title, unless one of its first lines says the same."""
    node = root.css_first("head title")
    title = BLANKS.sub(" ", (node.text() or "") if node else "").strip()
    return "" if any(title in block for block in blocks[:5]) else title


@dataclass
class _Walk:
    """The blocks found so far and the line being put together."""

    menus: bool
    blocks: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    within: list[str] = field(default_factory=list)  # the blocks that are open, outermost first
    repeats: int = MOST_REPEATS

    def close(self) -> None:
        """End the line: several blanks are one, as the browser shows them."""
        rows = (BLANKS.sub(" ", row).strip(" ") for row in "".join(self.line).split(LINE_BREAK))
        text = "\n".join(row for row in rows if row).translate(SHOWN).strip("\n")
        if text.strip():
            self.blocks.append(text)
        self.line.clear()


def _blocks(root: LexborNode, *, menus: bool) -> list[str]:
    """The texts of all blocks below the node, in the page's order."""
    walk = _Walk(menus)
    _descend(root, walk)
    walk.close()
    return walk.blocks


def _descend(root: LexborNode, walk: _Walk) -> None:
    """Visit the tree without recursion: a page may nest deeper than Python's stack."""
    node: LexborNode | None = root
    while node is not None:
        goes_in = _enter(node, walk)
        if goes_in and node.child is not None:
            if node.tag in BLOCKS:
                walk.within.append(node.tag)
            node = node.child
            continue
        while node is not None:
            if node.tag in BLOCKS:
                walk.close()
            if node.mem_id == root.mem_id:
                return
            if node.next is not None:
                node = node.next
                break
            node = node.parent
            if node is not None and node.tag in BLOCKS:
                walk.within.pop()


def _enter(node: LexborNode, walk: _Walk) -> bool:
    """Take in one node; False when its children are not to be visited."""
    tag = node.tag or ""
    if tag == "-text":
        walk.line.append(_text_of(node, walk.within))
        return False
    if tag.startswith(("-", "_", "!")):
        return tag == "-document"
    if tag == "br":
        walk.line.append(LINE_BREAK)
        return False
    if tag in UNSEEN or _is_hidden(node) or (not walk.menus and _is_menu(node)):
        return False
    if tag in BLOCKS:
        walk.close()
    if tag == "table":
        lines = _table(node, walk)
        if lines is not None:
            walk.blocks.extend(lines)
            return False
    return True


def _text_of(node: LexborNode, within: Sequence[str]) -> str:
    """A text node's characters; blanks right inside a <pre> are kept from being made one."""
    text = STAND_INS.sub(" ", node.text_content or "")
    if within and within[-1] == "pre":
        return text.replace("\r\n", "\n").translate(KEPT)
    return text


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(HIDDEN_STYLE.search(attributes.get("style") or ""))


def _is_menu(node: LexborNode) -> bool:
    """True for navigation, and for a footer of the whole page."""
    if node.tag in MENUS or (node.attributes.get("role") or "").lower() in MENU_ROLES:
        return True
    parent = node.parent
    return node.tag == "footer" and parent is not None and parent.tag == "body"


def _holds_tables(table: LexborNode) -> bool:
    """True when there is a table within the table; the search ends at the first."""
    child = table.child
    while child is not None:
        if (child.tag or "-").isalnum() and child.css_first("table") is not None:
            return True
        child = child.next
    return False


def _table(table: LexborNode, walk: _Walk) -> list[str] | None:
    """A table's rows as lines; None for a table that only lays out the page."""
    role = table.attributes.get("role") or ""
    if role in ("presentation", "none") or _holds_tables(table):
        return None
    menus = walk.menus
    captions = [" ".join(_blocks(node, menus=menus)) for node in table.css("caption")]
    grid: list[list[str]] = []
    names: list[bool] = []
    spans = _Spans(walk.repeats)
    for row in table.css("tr"):
        if _is_hidden(row):
            continue
        cells = row.css("td, th")
        texts = [" ".join(_blocks(cell, menus=menus)) for cell in cells]
        if any(len(text) > LONGEST_CELL for text in texts):
            return None
        names.append(bool(cells) and all(cell.tag == "th" for cell in cells))
        grid.append(_row(cells, texts, len(grid), spans, names[-1]))
    walk.repeats = spans.left
    if max((len(row) for row in grid), default=0) < 2:
        return None
    headers = 0
    while headers < len(names) and names[headers]:
        headers += 1
    return [text for text in captions if text] + table_lines(grid, headers or None)


@dataclass
class _Spans:
    """What cells above span into the rows below, by column: (text, the last row it reaches).

    `left` is how many more places spans may fill; when none are left, each cell fills its own.
    """

    left: int
    below: dict[int, tuple[str, int]] = field(default_factory=dict)

    def fill(self, row: list[str], number: int) -> None:
        """Append what reaches into the row from above, up to the first free column."""
        while self.left > 0 and self.below.get(len(row), ("", -1))[1] >= number:
            row.append(self.below[len(row)][0])
            self.left -= 1


def _row(
    cells: list[LexborNode],
    texts: list[str],
    number: int,
    spans: _Spans,
    is_header: bool,
) -> list[str]:
    """One row of the grid, with what spans into it from above and across it."""
    row: list[str] = []
    for cell, text in zip(cells, texts, strict=True):
        spans.fill(row, number)
        across = min(_span(cell, "colspan"), 1 + max(0, spans.left))
        down = _span(cell, "rowspan")
        for offset in range(across):
            shown = text if offset == 0 or is_header else ""
            if down > 1:
                spans.below[len(row)] = shown, number + down - 1
            row.append(shown)
        spans.left -= across - 1
    spans.fill(row, number)
    return row


def _span(cell: LexborNode, name: str) -> int:
    value = SPAN.fullmatch(cell.attributes.get(name) or "")
    return min(max(int(value[1]), 1), WIDEST) if value else 1
