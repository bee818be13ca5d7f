"""Reads HTML pages and Markdown: the visible blocks, without scripts and menus.

Nesting is bounded first, as in browsers: a parser takes minutes for a hundred thousand open tags.
Tags beyond the bound are dropped and their text stays; elements like <span> are not counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from core.documents.draft import BlockContent, Draft, ReadRequest, content
from core.documents.readers import decoded, decoded_page
from core.documents.tables import clean, table_contents
from core.schema.records import BlockKind, Source

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
# Control characters, which no page shows, stand in for blanks that must not be joined.
STAND_INS = re.compile("[\x1c-\x1f]")
LINE_BREAK = "\x1e"
KEPT = str.maketrans({" ": "\x1d", "\t": "\x1c", "\n": "\x1f"})
SHOWN = str.maketrans({"\x1d": " ", "\x1c": "\t", "\x1f": "\n"})
SPAN = re.compile(r"\s*([0-9]{1,9})\s*")
WIDEST = 200
# Extra places that spanning cells fill, in all tables of a page.
MOST_REPEATS = 500_000
LONGEST_CELL = 400
HEADINGS = {f"h{level}": level for level in range(1, 7)}
KINDS: dict[str, BlockKind] = {"li": "list item", "figcaption": "caption", "caption": "caption"}
DEEPEST_KIND = 6  # elements between a text and the tag that gives its kind
CHART = re.compile(r"\b(?:chart|graph|plot|diagram)s?\b", re.I)
DEEPEST_QUOTE = 100  # nested quotes and lists of Markdown; deeper ones are not read
# Chromium and WebKit stop at 512. This count is rougher than theirs, so the bound is higher.
DEEPEST = 2000
# Parsers reopen these tags in each block until they are closed; they do not affect the text.
MOST_FORMATS = 64
FORMATS = frozenset("a b big code em font i nobr s small strike strong tt u".split())
NESTING = frozenset(
    "address article aside blockquote center details dir div dl fieldset figcaption figure footer "
    "h1 h2 h3 h4 h5 h6 header hgroup legend main menu nav ol pre section summary table ul".split()
)
CELLS = frozenset("caption tbody td tfoot th thead tr".split())
SELF_CLOSING = frozenset("dd dt form li p".split())
# The content of these elements is text, even where it looks like tags.
RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in "iframe noembed noframes script style textarea title xmp".split()
}
TAG = re.compile(
    r"""<(?:!--|(/?)([a-z][^\s/>]*)"""
    r"""(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z))""",
    re.I,
)
COMMENT_END = "-->"
# Ends one block and begins another without nesting.
BOUNDARY = "<hr>"


def read_html(request: ReadRequest) -> Source:
    """Read an HTML page, however malformed. Raises InputError: the text is too long."""
    draft = Draft(request)
    text, remark = decoded_page(request.data)
    if remark:
        draft.note(remark)
    root = LexborHTMLParser(flattened(text)).root
    node = root.css_first("head title") if root else None
    title = BLANKS.sub(" ", (node.text() or "") if node else "").strip()
    empty = "There is no text to be seen in this page; it may be filled in by scripts."
    return _build_source(draft, root, title, empty)


def read_markdown(request: ReadRequest) -> Source:
    """Read a Markdown file (CommonMark with tables and strikethrough).

    Raises InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
    """
    from markdown_it import MarkdownIt

    options = {"maxNesting": DEEPEST_QUOTE}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    page = parser.render(decoded(request.name, request.data))
    root = LexborHTMLParser(flattened(page)).root
    return _build_source(Draft(request), root, "", "There is no text to be seen in this file.")


def _build_source(draft: Draft, root: LexborNode | None, title: str, empty: str) -> Source:
    """Return the page as a source, including menus if it has nothing else.

    The title comes first unless one of the first five blocks contains it.
    """
    walk = _Walk(menus=False)
    for menus in (False, True):
        if root is not None and not walk.blocks:
            walk = _walk_tree(root, menus=menus)
    has_title = any(title in block.text for block in walk.blocks[:5])
    draft.add_blocks([content("heading", "" if has_title else title), *walk.blocks])
    if walk.charts:
        subject = "A picture seems" if walk.charts == 1 else f"{walk.charts} pictures seem"
        draft.note(f"{subject} to be a chart: its values cannot be read here.")
    if not walk.blocks:
        draft.note(empty)
    return draft.finish()


@dataclass
class _Walk:
    """The blocks collected so far, and the line and elements that are open."""

    menus: bool
    blocks: list[BlockContent] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    within: list[str] = field(default_factory=list)  # open block elements, outermost first
    about: tuple[str, ...] = ()  # those open when the line began, innermost first
    term: str = ""  # a term whose definition is yet to come
    repeats: int = MOST_REPEATS
    charts: int = 0

    def add(self, text: str) -> None:
        if not self.line:
            self.about = tuple(reversed(self.within[-DEEPEST_KIND:]))
        self.line.append(text)

    def close(self) -> None:
        """End the line; runs of blanks become one, as in a browser."""
        rows = (BLANKS.sub(" ", row).strip(" ") for row in "".join(self.line).split(LINE_BREAK))
        text = "\n".join(row for row in rows if row).translate(SHOWN).strip("\n")
        self.line.clear()
        if not text.strip():
            return
        if self.about[:1] == ("dd",) and self.term:
            text, self.term = f"{self.term.removesuffix(':')}: {text}", ""
        self.end_term()
        if self.about[:1] == ("dt",):
            self.term = text
        else:
            self.blocks.append(self._block(text))

    def end_term(self) -> None:
        if self.term:
            self.blocks.append(content("paragraph", self.term))
        self.term = ""

    def _block(self, text: str) -> BlockContent:
        for tag in self.about:
            if tag in HEADINGS:
                return content("heading", clean(text), HEADINGS[tag])
            if tag in KINDS:
                return content(KINDS[tag], text)
            if tag in ("td", "th", "table"):
                break
        return content("paragraph", text)


def _walk_tree(root: LexborNode, *, menus: bool) -> _Walk:
    """Visit the tree without recursion, as a page may nest deeper than Python's stack."""
    walk = _Walk(menus)
    node: LexborNode | None = root
    while node is not None:
        if _visit_node(node, walk) and node.child is not None:
            if node.tag in BLOCKS:
                walk.within.append(node.tag)
            node = node.child
            continue
        while node is not None:
            if node.tag in BLOCKS:
                walk.close()
            if node.mem_id == root.mem_id:
                node = None
            elif node.next is not None:
                node = node.next
                break
            else:
                node = node.parent
                if node is not None and node.tag in BLOCKS:
                    walk.within.pop()
    walk.close()
    walk.end_term()
    return walk


def _visit_node(node: LexborNode, walk: _Walk) -> bool:
    """Process one node; return False if its children are not to be visited."""
    tag = node.tag or ""
    if tag == "-text":
        text = STAND_INS.sub(" ", node.text_content or "")
        is_preformatted = walk.within[-1:] == ["pre"]
        walk.add(text.replace("\r\n", "\n").translate(KEPT) if is_preformatted else text)
    elif tag == "br":
        walk.add(LINE_BREAK)
    if tag == "br" or tag.startswith(("-", "_", "!")):
        return tag == "-document"
    if tag in ("img", "svg", "canvas"):
        attributes = " ".join(value or "" for value in node.attributes.values())
        is_drawing = tag != "img" and _parent_is(node, "figure")
        walk.charts += is_drawing or bool(CHART.search(re.sub("[-_]", " ", attributes)))
    if tag in UNSEEN or _is_hidden(node) or (not walk.menus and _is_menu(node)):
        return False
    if tag in BLOCKS:
        walk.close()
    rows = _read_table(node, walk) if tag == "table" else None
    walk.blocks.extend(rows or ())
    return rows is None


def _parent_is(node: LexborNode, tag: str) -> bool:
    return node.parent is not None and node.parent.tag == tag


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(HIDDEN_STYLE.search(attributes.get("style") or ""))


def _is_menu(node: LexborNode) -> bool:
    if node.tag in MENUS or (node.attributes.get("role") or "").lower() in MENU_ROLES:
        return True
    return node.tag == "footer" and _parent_is(node, "body")


def _read_table(table: LexborNode, walk: _Walk) -> list[BlockContent] | None:
    """Return a table's rows as blocks; None for a table that only lays out the page."""
    child = table.child
    while child is not None and not (
        (child.tag or "-").isalnum() and child.css_first("table") is not None
    ):
        child = child.next
    if child is not None or (table.attributes.get("role") or "") in ("presentation", "none"):
        return None

    def text_in(node: LexborNode) -> str:
        return " ".join(block.text for block in _walk_tree(node, menus=walk.menus).blocks)

    caption = " ".join(text_in(node) for node in table.css("caption"))
    grid: list[list[str]] = []
    names: list[bool] = []
    spans = _Spans(walk.repeats)
    for row in table.css("tr"):
        if _is_hidden(row):
            continue
        cells = row.css("td, th")
        texts = [clean(text_in(cell)) for cell in cells]
        if any(len(text) > LONGEST_CELL for text in texts):
            return None
        is_header = _parent_is(row, "thead") or {cell.tag for cell in cells} == {"th"}
        names.append(is_header)
        grid.append(_fill_row(cells, texts, len(grid), spans, is_header))
    walk.repeats = spans.left
    if max((len(row) for row in grid), default=0) < 2:
        return None
    headers = names.index(False) if False in names else len(names)
    return [content("caption", caption), *table_contents(grid, headers or None, caption)]


@dataclass
class _Spans:
    """Texts that cells above span into the rows below, by column: (text, last row reached).

    `left` is how many more places spans may fill; at 0 each cell fills only its own.
    """

    left: int
    below: dict[int, tuple[str, int]] = field(default_factory=dict)

    def fill(self, row: list[str], number: int) -> None:
        while self.left > 0 and self.below.get(len(row), ("", -1))[1] >= number:
            row.append(self.below[len(row)][0])
            self.left -= 1


def _fill_row(
    cells: list[LexborNode], texts: list[str], number: int, spans: _Spans, is_header: bool
) -> list[str]:
    row: list[str] = []
    for cell, text in zip(cells, texts, strict=True):
        spans.fill(row, number)
        across = min(_parse_span(cell, "colspan"), 1 + max(0, spans.left))
        down = _parse_span(cell, "rowspan")
        for offset in range(across):
            cell_text = text if offset == 0 or is_header or len(cells) == 1 else ""
            if down > 1:
                spans.below[len(row)] = cell_text, number + down - 1
            row.append(cell_text)
        spans.left -= across - 1
    spans.fill(row, number)
    return row


def _parse_span(cell: LexborNode, name: str) -> int:
    value = SPAN.fullmatch(cell.attributes.get(name) or "")
    return min(max(int(value[1]), 1), WIDEST) if value else 1


def flattened(page: str) -> str:
    """Return the page without tags that nest too deeply; nearly every page is unchanged."""
    nesting = _Nesting()
    parts: list[str] = []
    copied, position = 0, 0
    while tag := TAG.search(page, position):
        name = (tag[2] or "").lower()
        replacement = nesting.take(name, is_end=bool(tag[1]))
        if replacement is not None:
            parts += (page[copied : tag.start()], replacement)
            copied = tag.end()
        position = _next_position(page, tag, name)
    return "".join((*parts, page[copied:]))


def _next_position(page: str, tag: re.Match[str], name: str) -> int:
    """Return where the next tag may begin: after a comment, or after raw text."""
    if not name:
        end = page.find(COMMENT_END, tag.start() + 2)
        return end + len(COMMENT_END) if end >= 0 else len(page)
    if name in RAW and not tag[1]:
        close = RAW[name].search(page, tag.end())
        return close.start() if close else len(page)
    return tag.end()


@dataclass
class _Nesting:
    """Counts open tags, to drop those that nest too deeply."""

    path: list[str] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    formats: int = 0

    def take(self, name: str, *, is_end: bool) -> str | None:
        """Count the tag; return its replacement, or None if it may stay."""
        if name in FORMATS:
            is_over = self.formats >= MOST_FORMATS + is_end
            self.formats = max(0, self.formats - 1) if is_end else self.formats + 1
            return "" if is_over else None
        is_over = len(self.path) > DEEPEST
        if name in NESTING and not is_end:
            self.path.append(name)
            self.opened[name] += 1
        elif name in NESTING:
            while self.opened[name] and self._pop() != name:
                pass
        elif name in CELLS:  # a cell's tag closes what an earlier cell of its table left open
            while self.opened["table"] and self.path[-1] != "table":
                self._pop()
        elif name not in SELF_CLOSING:
            return None
        return BOUNDARY if is_over or len(self.path) > DEEPEST else None

    def _pop(self) -> str:
        last = self.path.pop()
        self.opened[last] -= 1
        return last
