"""Reads HTML pages and Markdown: the visible blocks, without scripts and menus.

Nesting is bounded first, as in browsers: a parser takes minutes for a hundred thousand open tags.
Tags beyond the bound are dropped and their text stays; elements like <span> are not counted.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from core.documents.raised_text import RAISED_END, RAISED_START, write_raised
from core.documents.readers import MAX_TITLE_LENGTH, decode_page, decode_text
from core.documents.source_builder import (
    STRUCK_TEXT_NOTE,
    BlockContent,
    ReadRequest,
    SourceBuilder,
    text_block,
)
from core.documents.tables import build_table_blocks, clean_cell
from core.schema.records import BlockKind, Source

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

INVISIBLE_TAGS = frozenset(
    "script style template noscript head svg math-annotation object iframe canvas audio video "
    "select option datalist textarea input button dialog".split()
)
MENU_TAGS = frozenset({"nav", "menu"})
MENU_ROLES = frozenset({"navigation", "search", "menu", "menubar", "banner", "contentinfo"})
BLOCK_TAGS = frozenset(
    "address article aside blockquote body center dd details dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main ol p pre section "
    "summary table tbody td tfoot th thead tr ul caption".split()
)
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
STRUCK_TAGS = frozenset({"s", "strike", "del"})
STRUCK_STYLE = re.compile(r"text-decoration[a-z-]*\s*:[^;]*\bline-through\b", re.I)
RAISED_STYLE = re.compile(r"vertical-align\s*:\s*super\b", re.I)
MAX_STYLE_RULES = 50
WHITESPACE = re.compile(r"[ \t\r\n\f]+")
# Control characters, which no page shows, stand in for blanks that must not be joined.
PLACEHOLDERS = re.compile("[\x0e\x0f\x1c-\x1f]")
LINE_BREAK = "\x1e"
TO_PLACEHOLDERS = str.maketrans({" ": "\x1d", "\t": "\x1c", "\n": "\x1f"})
FROM_PLACEHOLDERS = str.maketrans({"\x1d": " ", "\x1c": "\t", "\x1f": "\n"})
SPAN_VALUE = re.compile(r"\s*([0-9]{1,9})\s*")
MAX_CELL_SPAN = 200
# Extra places that spanning cells fill, in all tables of a page.
MAX_SPANNED_CELLS = 500_000
MAX_CELL_LENGTH = 400
HEADING_LEVELS = {f"h{level}": level for level in range(1, 7)}
KIND_OF_TAG: dict[str, BlockKind] = {
    "li": "list item",
    "figcaption": "caption",
    "caption": "caption",
}
SENTENCE_END = re.compile(r"[.!?](?:\s|$)|[。！？]")
UNIT_NOTE = re.compile(  # “All amounts in thousands of euros.”
    r"(?:(?:all|alle|tous|todos|tutti|the|die|les|los|las|gli|le) )*(?:amounts|figures|values|"
    r"angaben|beträge|werte|montants|chiffres|valeurs|importes|cifras|importi|valori|单位|単位)",
    re.I,
)
MAX_KIND_ANCESTORS = 6  # elements between a text and the tag that gives its kind
RAISED_MARKDOWN = re.compile(r"\[\^[^\]\s]{1,40}\]|\^(?P<raised>[^\s^]{1,20})\^")
FOOTNOTE_OPENING = re.compile(r"(?P<raised>)\[\^[^\]\s]{1,40}\]:\s*")
CHART_WORD = re.compile(r"\b(?:chart|graph|plot|diagram)s?\b", re.I)
MAX_MARKDOWN_NESTING = 100  # nested quotes and lists of Markdown; deeper ones are not read
# Chromium and WebKit stop at 512. This count is rougher than theirs, so the bound is higher.
MAX_NESTING = 2000
# Parsers reopen these tags in each block until they are closed; they do not affect the text.
MAX_OPEN_FORMAT_TAGS = 64
FORMAT_TAGS = frozenset("a b big code em font i nobr s small strike strong tt u".split())
NESTING_TAGS = frozenset(
    "address article aside blockquote center details dir div dl fieldset figcaption figure footer "
    "h1 h2 h3 h4 h5 h6 header hgroup legend main menu nav ol pre section summary table ul".split()
)
CELL_TAGS = frozenset("caption tbody td tfoot th thead tr".split())
SELF_CLOSING_TAGS = frozenset("dd dt form li p".split())
# The content of these elements is text, even where it looks like tags.
RAW_TEXT_END = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in "iframe noembed noframes script style textarea title xmp".split()
}
TAG_OR_COMMENT = re.compile(
    r"""<(?:!--|(/?)([a-z][^\s/>]*)"""
    r"""(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z))""",
    re.I,
)
COMMENT_END = "-->"
# Ends one block and begins another without nesting.
BLOCK_BOUNDARY = "<hr>"


def read_html(request: ReadRequest) -> Source:
    """Read an HTML page, however malformed. Raises InputError: the text is too long."""
    draft = SourceBuilder(request)
    text, remark = decode_page(request.data)
    if remark:
        draft.note(remark)
    root = LexborHTMLParser(flatten_nesting(text)).root
    node = root.css_first("head title") if root else None
    title = WHITESPACE.sub(" ", (node.text() or "") if node else "").strip()
    empty = "There is no text to be seen in this page; it may be filled in by scripts."
    return _build_source(draft, root, title, empty)


def read_markdown(request: ReadRequest) -> Source:
    """Read a Markdown file (CommonMark with tables and strikethrough).

    Raises InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
    """
    from markdown_it import MarkdownIt

    options = {"maxNesting": MAX_MARKDOWN_NESTING}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "raised", _read_raised_markdown)
    parser.block.ruler.at("reference", _read_link_definition)
    page = parser.render(decode_text(request.name, request.data))
    root = LexborHTMLParser(flatten_nesting(page)).root
    return _build_source(
        SourceBuilder(request), root, "", "There is no text to be seen in this file."
    )


def _read_raised_markdown(state: StateInline, silent: bool) -> bool:
    """Leave out footnote references, [^1], and read raised text, 10^6^.

    At the start of a line, [^1]: opens the footnote itself.
    """
    match = FOOTNOTE_OPENING.match(state.src) if state.pos == 0 else None
    match = match or RAISED_MARKDOWN.match(state.src, state.pos)
    if match is None:
        return False
    if not silent and match["raised"]:
        state.push("sup_open", "sup", 1)
        state.push("text", "", 0).content = match["raised"]
        state.push("sup_close", "sup", -1)
    state.pos = match.end()
    return True


def _read_link_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a link's definition; [^1]: opens a footnote instead."""
    from markdown_it.rules_block import reference

    begin = state.bMarks[start] + state.tShift[start]
    return not state.src.startswith("[^", begin) and reference(state, start, end, silent)


def _build_source(draft: SourceBuilder, root: LexborNode | None, title: str, empty: str) -> Source:
    """Return the page as a source, including menus if it has nothing else.

    The title comes first unless one of the first five blocks contains it.
    """
    walk = _Walk(menus=False)
    for menus in (False, True):
        if root is not None and not walk.blocks:
            struck, raised = (_select_styled(root, one) for one in (STRUCK_STYLE, RAISED_STYLE))
            walk = _walk_tree(root, _Walk(menus, struck, raised))
    has_title = any(title in block.text for block in walk.blocks[:5])
    draft.add_blocks([text_block("heading", "" if has_title else title), *walk.blocks])
    if walk.charts:
        subject = "A picture seems" if walk.charts == 1 else f"{walk.charts} pictures seem"
        draft.note(f"{subject} to be a chart: its values cannot be read here.")
    if walk.has_struck_text:
        draft.note(STRUCK_TEXT_NOTE)
    if not walk.blocks:
        draft.note(empty)
    return draft.finish()


def _select_styled(root: LexborNode, style: re.Pattern[str]) -> frozenset[int]:
    """Return the ids of elements to which the page's style sheets give a matching style.

    Rules inside @media and the like are skipped: they may not apply on the screen.
    """
    styled: set[int] = set()
    rules, depth = 0, 0
    for rule in "".join(node.text() or "" for node in root.css("style")).split("}"):
        selector, _, declarations = rule.rpartition("{")
        depth += rule.count("{")
        if depth == 1 and rules < MAX_STYLE_RULES and style.search(declarations):
            rules += 1
            with contextlib.suppress(SelectolaxError):  # a selector that the parser does not know
                styled.update(node.mem_id for node in root.css(selector.rpartition("*/")[2]))
        depth = max(0, depth - 1)
    return frozenset(styled)


@dataclass
class _Walk:
    """The blocks collected so far, and the line and elements that are open."""

    menus: bool
    struck: frozenset[int] = frozenset()  # elements that a style sheet strikes through
    raised: frozenset[int] = frozenset()  # and those that it raises
    has_struck_text: bool = False
    blocks: list[BlockContent] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)  # raised elements around the current one
    within: list[str] = field(default_factory=list)  # open block elements, outermost first
    about: tuple[str, ...] = ()  # those open when the line began, innermost first
    term: str = ""  # a term whose definition is yet to come
    table_end: int = 0  # blocks up to the end of the last table
    repeats: int = MAX_SPANNED_CELLS
    charts: int = 0

    def add(self, text: str) -> None:
        if not self.line:
            self.about = tuple(reversed(self.within[-MAX_KIND_ANCESTORS:]))
        self.line.append(text)

    def close(self) -> None:
        """End the line; runs of blanks become one, as in a browser."""
        rows = write_raised("".join(self.line)).split(LINE_BREAK)
        rows = [WHITESPACE.sub(" ", row).strip(" ") for row in rows]
        text = "\n".join(row for row in rows if row).translate(FROM_PLACEHOLDERS).strip("\n")
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
            self.blocks.append(text_block("paragraph", self.term))
        self.term = ""

    def _block(self, text: str) -> BlockContent:
        for tag in self.about:
            if tag in HEADING_LEVELS:
                return text_block("heading", clean_cell(text), HEADING_LEVELS[tag])
            if tag in KIND_OF_TAG:
                return text_block(KIND_OF_TAG[tag], text)
            if tag in ("td", "th", "table"):
                break
        return text_block("paragraph", text)


def _walk_tree(root: LexborNode, walk: _Walk) -> _Walk:
    """Visit the tree without recursion, as a page may nest deeper than Python's stack."""
    node: LexborNode | None = root
    while node is not None:
        if _visit_node(node, walk) and node.child is not None:
            if node.tag in BLOCK_TAGS:
                walk.within.append(node.tag)
            node = node.child
            continue
        while node is not None:
            _leave_node(node, walk)
            if node.mem_id == root.mem_id:
                node = None
            elif node.next is not None:
                node = node.next
                break
            else:
                node = node.parent
                if node is not None and node.tag in BLOCK_TAGS:
                    walk.within.pop()
    walk.close()
    walk.end_term()
    return walk


def _leave_node(node: LexborNode, walk: _Walk) -> None:
    if node.tag in BLOCK_TAGS:
        walk.close()
    elif walk.opened[-1:] == [node.mem_id]:
        walk.opened.pop()
        walk.add(RAISED_END)
    if node.tag == "table":
        walk.table_end = len(walk.blocks)


def _visit_node(node: LexborNode, walk: _Walk) -> bool:
    """Process one node; return False if its children are not to be visited."""
    tag = node.tag or ""
    if tag == "-text":
        text = PLACEHOLDERS.sub(" ", node.text_content or "")
        is_preformatted = walk.within[-1:] == ["pre"]
        walk.add(text.replace("\r\n", "\n").translate(TO_PLACEHOLDERS) if is_preformatted else text)
    elif tag == "br":
        walk.add(LINE_BREAK)
    if tag == "br" or tag.startswith(("-", "_", "!")):
        return tag == "-document"
    if tag in ("img", "svg", "canvas"):
        attributes = " ".join(value or "" for value in node.attributes.values())
        is_drawing = tag != "img" and _parent_is(node, "figure")
        walk.charts += is_drawing or bool(CHART_WORD.search(re.sub("[-_]", " ", attributes)))
    if tag in INVISIBLE_TAGS or _is_hidden(node) or (not walk.menus and _is_menu(node)):
        return False
    if _is_struck(node, walk):
        return False
    if tag in BLOCK_TAGS:
        walk.close()
    elif _is_raised(node, walk):
        walk.opened.append(node.mem_id)
        walk.add(RAISED_START)
    rows = _read_table(node, walk) if tag == "table" else None
    walk.blocks.extend(rows or ())
    return rows is None


def _parent_is(node: LexborNode, tag: str) -> bool:
    return node.parent is not None and node.parent.tag == tag


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(HIDDEN_STYLE.search(attributes.get("style") or ""))


def _is_struck(node: LexborNode, walk: _Walk) -> bool:
    """Return True if the element is struck through; the walk remembers that it had text."""
    is_struck = (
        node.tag in STRUCK_TAGS
        or node.mem_id in walk.struck
        or STRUCK_STYLE.search(node.attributes.get("style") or "") is not None
    )
    walk.has_struck_text |= is_struck and bool((node.text() or "").strip())
    return is_struck


def _is_raised(node: LexborNode, walk: _Walk) -> bool:
    if node.tag == "sup" or node.mem_id in walk.raised:
        return True
    style = None if (node.tag or "-")[0] == "-" else node.attributes.get("style")
    return RAISED_STYLE.search(style or "") is not None


def _is_menu(node: LexborNode) -> bool:
    if node.tag in MENU_TAGS or (node.attributes.get("role") or "").lower() in MENU_ROLES:
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
        cell = _walk_tree(node, _Walk(walk.menus, walk.struck, walk.raised))
        walk.has_struck_text |= cell.has_struck_text
        return " ".join(block.text for block in cell.blocks)

    caption = " ".join(text_in(node) for node in table.css("caption"))
    grid: list[list[str]] = []
    names: list[bool] = []
    spans = _Spans(walk.repeats)
    for row in table.css("tr"):
        if _is_hidden(row) or _is_struck(row, walk):
            continue
        cells = row.css("td, th")
        texts = [clean_cell(text_in(cell)) for cell in cells]
        if any(len(text) > MAX_CELL_LENGTH for text in texts):
            return None
        is_header = _parent_is(row, "thead") or {cell.tag for cell in cells} == {"th"}
        names.append(is_header)
        grid.append(_fill_row(cells, texts, len(grid), spans, is_header))
    walk.repeats = spans.left
    if max((len(row) for row in grid), default=0) < 2:
        return None
    headers = names.index(False) if False in names else len(names)
    before = [block.text for block in walk.blocks[walk.table_end :][-1:] if _is_title(block)]
    above = caption or "".join(before)
    return [text_block("caption", caption), *build_table_blocks(grid, headers or None, above)]


def _is_title(block: BlockContent) -> bool:
    """Return True for a heading, a caption, a short line that is no sentence, or a unit note."""
    is_short = len(block.text) <= MAX_TITLE_LENGTH and not SENTENCE_END.search(block.text)
    is_line = block.kind == "paragraph" and (is_short or UNIT_NOTE.match(block.text))
    return block.kind in ("heading", "caption") or bool(is_line)


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
    value = SPAN_VALUE.fullmatch(cell.attributes.get(name) or "")
    return min(max(int(value[1]), 1), MAX_CELL_SPAN) if value else 1


def flatten_nesting(page: str) -> str:
    """Return the page without tags that nest too deeply; nearly every page is unchanged."""
    nesting = _Nesting()
    parts: list[str] = []
    copied, position = 0, 0
    while tag := TAG_OR_COMMENT.search(page, position):
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
    if name in RAW_TEXT_END and not tag[1]:
        close = RAW_TEXT_END[name].search(page, tag.end())
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
        if name in FORMAT_TAGS:
            is_over = self.formats >= MAX_OPEN_FORMAT_TAGS + is_end
            self.formats = max(0, self.formats - 1) if is_end else self.formats + 1
            return "" if is_over else None
        is_over = len(self.path) > MAX_NESTING
        if name in NESTING_TAGS and not is_end:
            self.path.append(name)
            self.opened[name] += 1
        elif name in NESTING_TAGS:
            while self.opened[name] and self._pop() != name:
                pass
        elif name in CELL_TAGS:  # a cell's tag closes what an earlier cell of its table left open
            while self.opened["table"] and self.path[-1] != "table":
                self._pop()
        elif name not in SELF_CLOSING_TAGS:
            return None
        return BLOCK_BOUNDARY if is_over or len(self.path) > MAX_NESTING else None

    def _pop(self) -> str:
        last = self.path.pop()
        self.opened[last] -= 1
        return last
