"""Reads Word documents: paragraphs and tables in order, then notes; tracked changes are accepted.

The XML is walked here because python-docx omits tracked insertions, content controls and text
boxes. Names are compared without namespace, for the transitional and strict dialects.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError, fromstring, iterparse
from xml.parsers import expat

from core.documents.raised_text import mark_raised, write_raised
from core.documents.source_builder import (
    STRUCK_TEXT_NOTE,
    BlockContent,
    ReadRequest,
    SourceBuilder,
    text_block,
)
from core.documents.tables import build_table_blocks
from core.runtime.config import MEGABYTE
from core.runtime.errors import InputError
from core.schema.records import Source

NOTE_PART = re.compile(r"(?:foot|end)notes\d*\.xml")
TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
ENCRYPTED_FLAG = 1  # bit 0 of a zip member's flags
DAMAGE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    KeyError,
    EOFError,
    NotImplementedError,
)
SAVE_AGAIN_ADVICE = "open it in Word, save it as .docx and add it again"
WRAPPER_TAGS = frozenset({"sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"})
SKIPPED_TAGS = frozenset(
    "del moveFrom delText instrText pPr rPr tblPr tcPr trPr sectPr sdtPr sdtEndPr Fallback "
    "rt delInstrText".split()
)
CHARACTER_TAGS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "ptab": "\t"}
FALSE_VALUES = frozenset({"0", "false", "off"})
RUN_PROPERTIES = frozenset({"strike", "dstrike", "vanish", "vertAlign"})
MAX_CELL_LENGTH = 400
MAX_SPANNED_COLUMNS = 200  # columns that cells may span; Word's own tables have at most 63
HEADING_STYLE = re.compile(r"heading (\d)")
TELLING_STYLE = re.compile(r"heading \d|title|toc|caption|list")
MAX_HEADING_LEVEL = 6
MAX_BASE_STYLES = 12  # length of a chain of base styles


def read_docx(request: ReadRequest) -> Source:
    """Read a Word document.

    Raises InputError: the file is damaged, unpacks to too much, or holds too much text.
    """
    draft = SourceBuilder(request)
    try:
        with zipfile.ZipFile(io.BytesIO(request.data)) as archive:
            _check_size(request, archive)
            if any(member.flag_bits & ENCRYPTED_FLAG for member in archive.infolist()):
                raise InputError(
                    f"{request.file} is protected by a password; save it without one and add it "
                    "again."
                )
            _read_parts(request, archive, draft)
    except DAMAGE_ERRORS as error:
        raise InputError(
            f"{request.file} could not be read as a Word document: it is damaged; "
            f"{SAVE_AGAIN_ADVICE}."
        ) from error
    except _HasDtd as error:
        raise InputError(
            f"{request.file} could not be read as a Word document: it has a document type "
            f"declaration, which no Word document has; {SAVE_AGAIN_ADVICE}."
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{request.file} could not be read as a Word document: its tables or text boxes are "
            "nested too deeply; put them beside each other and add it again."
        ) from error
    if not draft.length:
        draft.note("There is no text in this document; text in its pictures is not read.")
    return draft.finish()


def _check_size(request: ReadRequest, archive: zipfile.ZipFile) -> None:
    limit = request.settings.unpacked_megabytes
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > limit * MEGABYTE:
        raise InputError(
            f"{request.file} unpacks to {unpacked / MEGABYTE:,.0f} MB; at most {limit} MB are "
            "unpacked. Take large pictures out, or raise “Largest unpacked size” in Settings."
        )


def _read_parts(request: ReadRequest, archive: zipfile.ZipFile, draft: SourceBuilder) -> None:
    main = _find_main_part(archive)
    folder = posixpath.dirname(main)
    walk = _Walk(_load_styles(archive, f"{folder}/styles.xml"))
    changed = False
    for element in _iterate_body(archive, main):
        changed = changed or _has_changes(element)
        draft.add_blocks(walk.blocks(element))
    if changed:
        draft.note("The document has tracked changes; it was read as if all were accepted.")
    for part in sorted(archive.namelist()):
        if posixpath.dirname(part) == folder and NOTE_PART.fullmatch(posixpath.basename(part)):
            for item in fromstring(_read_part(archive, part)):  # noqa: S314 - DTDs are refused
                footnotes = [block for block in walk.blocks(item) if TWO_LETTERS.search(block.text)]
                draft.add_blocks(BlockContent("footnote", note.pieces) for note in footnotes)
    if walk.has_struck_text:
        draft.note(STRUCK_TEXT_NOTE)
    if walk.pictures:
        count = (
            "A picture or chart" if walk.pictures == 1 else f"{walk.pictures} pictures or charts"
        )
        draft.note(f"{count} in this document: text and values in them cannot be read here.")


@dataclass(frozen=True)
class _Style:
    """A style's name in lower case, the style it is based on, and its run properties."""

    name: str = ""
    base: str = ""
    run: dict[str, str] = field(default_factory=dict)


def _load_styles(archive: zipfile.ZipFile, part: str) -> dict[str, _Style]:
    if part not in archive.namelist():
        return {}
    styles: dict[str, _Style] = {}
    for style in fromstring(_read_part(archive, part)):  # noqa: S314 - DTDs are refused
        if strip_namespace(style) == "style":
            name = (find_attribute(find_child(style, "name"), "val") or "").lower()
            base = find_attribute(find_child(style, "basedOn"), "val") or ""
            level = find_child(find_child(style, "pPr"), "outlineLvl")
            if level is not None:
                name = _outline_style(find_attribute(level, "val"))
            run = _read_run_properties(style)
            styles[find_attribute(style, "styleId") or ""] = _Style(name, base, run)
    return {style_id: _resolve_style(style_id, styles) for style_id in styles}


def _outline_style(level: str | None) -> str:
    return f"heading {int(level) + 1}" if level and level.isascii() and level.isdigit() else ""


def _read_run_properties(parent: Element) -> dict[str, str]:
    """Return the values of the properties in `RUN_PROPERTIES` that a run or style sets."""
    properties = find_child(parent, "rPr")
    return {
        strip_namespace(item): find_attribute(item, "val") or ""
        for item in (properties if properties is not None else ())
        if strip_namespace(item) in RUN_PROPERTIES
    }


def _resolve_style(style_id: str, styles: dict[str, _Style]) -> _Style:
    """Return the style with the properties, and any telling name, of the styles it is based on."""
    chain = [styles[style_id]]
    while len(chain) < MAX_BASE_STYLES and chain[-1].base in styles:
        chain.append(styles[chain[-1].base])
    name = next((style.name for style in chain if TELLING_STYLE.match(style.name)), chain[0].name)
    run = {key: value for style in reversed(chain) for key, value in style.run.items()}
    return _Style(name, run=run)


def _find_main_part(archive: zipfile.ZipFile) -> str:
    for relation in fromstring(_read_part(archive, "_rels/.rels")):  # noqa: S314 - DTDs are refused
        if relation.get("Type", "").endswith("/officeDocument"):
            return relation.get("Target", "").lstrip("/")
    return "word/document.xml"


def _read_part(archive: zipfile.ZipFile, part: str) -> bytes:
    """Return a part's bytes; its size was checked, and zipfile never yields more than declared."""
    data = archive.read(part)
    _refuse_dtd(data)
    return data


class _BodyBegins(Exception):
    """Signals the first element: no document type can be declared after it."""


class _HasDtd(Exception):
    """Signals a document type declaration, which could define endless entities."""


def _refuse_dtd(data: bytes) -> None:
    """Raise _HasDtd if the XML declares a document type, in any encoding.

    The XML parser itself looks for it, whatever precedes it.
    """

    def refuse(*_: object) -> None:
        raise _HasDtd

    def stop(*_: object) -> None:
        raise _BodyBegins

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        parser.Parse(data, True)
    except _BodyBegins:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:  # includes unknown encodings
        raise ParseError(str(error)) from error


def _iterate_body(archive: zipfile.ZipFile, part: str) -> Iterator[Element]:
    path: list[Element] = []
    stream = io.BytesIO(_read_part(archive, part))
    for event, element in iterparse(stream, events=("start", "end")):  # noqa: S314 - as above
        if event == "start":
            path.append(element)
            continue
        path.pop()
        if len(path) == 2 and strip_namespace(path[1]) == "body":
            yield element
            path[1].clear()


def _has_changes(element: Element) -> bool:
    return any(
        strip_namespace(item) in ("ins", "del", "moveFrom", "moveTo") for item in element.iter()
    )


def strip_namespace(element: Element) -> str:
    """Return the element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def find_attribute(element: Element | None, name: str) -> str | None:
    """Return an attribute by its name without namespace."""
    if element is None:
        return None
    return next((v for key, v in element.attrib.items() if key.rpartition("}")[2] == name), None)


def find_child(element: Element | None, name: str) -> Element | None:
    """Return the first child of that name, or None."""
    if element is None:
        return None
    return next((item for item in element if strip_namespace(item) == name), None)


@dataclass
class _Walk:
    """Walks the body and yields its blocks; counts pictures and remembers the last text."""

    styles: dict[str, _Style]
    pictures: int = 0
    has_struck_text: bool = False
    caption: str = field(default="", init=False)  # the paragraph right before the next table

    def blocks(self, element: Element) -> Iterator[BlockContent]:
        name = strip_namespace(element)
        if name == "p":
            yield from self._paragraph(element)
        elif name == "tbl":
            yield from self._table(element)
        elif name not in SKIPPED_TAGS:
            for item in element:
                yield from self.blocks(item)

    def _paragraph(self, paragraph: Element) -> Iterator[BlockContent]:
        boxes: list[Element] = []
        style = self._style(find_child(paragraph, "pPr"), "pStyle")
        text = write_raised("".join(self._pieces(paragraph, boxes, style))).strip("\n")
        self.caption = text.strip()
        if self.caption:
            yield self._block(paragraph, text, style.name)
        for box in boxes:
            yield from self.blocks(box)

    def _style(self, properties: Element | None, name: str) -> _Style:
        style_id = find_attribute(find_child(properties, name), "val") or ""
        return self.styles.get(style_id, _Style())

    def _block(self, paragraph: Element, text: str, style: str) -> BlockContent:
        properties = find_child(paragraph, "pPr")
        outline = find_attribute(find_child(properties, "outlineLvl"), "val")
        heading = HEADING_STYLE.match(style if outline is None else _outline_style(outline))
        if style.startswith("toc"):
            return text_block(None, text)
        if style.startswith("title"):
            return text_block("heading", text)
        if heading and int(heading[1]) <= MAX_HEADING_LEVEL:
            return text_block("heading", text, int(heading[1]))
        if style.startswith("caption"):
            return text_block("caption", text)
        is_item = style.startswith("list") or find_child(properties, "numPr") is not None
        return text_block("list item" if is_item else "paragraph", text)

    def _pieces(self, element: Element, boxes: list[Element], style: _Style) -> Iterator[str]:
        for item in element:
            name = strip_namespace(item)
            if name == "t":
                yield item.text or ""
            elif name == "txbxContent":
                boxes.append(item)
            elif name in CHARACTER_TAGS:
                yield CHARACTER_TAGS[name]
            elif name == "r":
                yield self._run(item, boxes, style)
            elif name not in SKIPPED_TAGS:
                self.pictures += name in ("blip", "chart", "imagedata")
                yield from self._pieces(item, boxes, style)

    def _run(self, run: Element, boxes: list[Element], style: _Style) -> str:
        """Return the run's text as its own properties and its styles show it."""
        own = _read_run_properties(run)
        properties = style.run | self._style(find_child(run, "rPr"), "rStyle").run | own
        shown = {name for name, value in properties.items() if value not in FALSE_VALUES}
        if "vanish" in shown:
            return ""
        text = "".join(self._pieces(run, boxes, style))
        if shown & {"strike", "dstrike"}:
            self.has_struck_text |= bool(text.strip())
            return ""
        return mark_raised(text) if properties.get("vertAlign") == "superscript" else text

    def _table(self, table: Element) -> Iterator[BlockContent]:
        caption, self.caption = self.caption, ""
        grid: list[list[str]] = []
        nested: list[Element] = []
        headers = 0
        for row in _find_children(table, "tr"):
            properties = find_child(row, "trPr")
            if find_child(properties, "del") is not None:
                continue
            if find_child(properties, "tblHeader") is not None and headers == len(grid):
                headers += 1
            grid.append(self._row(row, grid[-1] if grid else [], nested))
        widest = max((len(row) for row in grid), default=0)
        if widest < 2 or any(len(text) > MAX_CELL_LENGTH for row in grid for text in row):
            for row in _find_children(table, "tr"):
                for cell in _find_children(row, "tc"):
                    for item in cell:
                        yield from self.blocks(item)
        else:
            yield from build_table_blocks(grid, headers or None, caption)
            for inner in nested:
                self.caption = ""
                yield from self.blocks(inner)
        self.caption = ""

    def _row(self, row: Element, above: list[str], nested: list[Element]) -> list[str]:
        """Return one row of the grid; a cell merged downwards repeats the text above it.

        A cell that spans columns repeats its text in each.
        """
        skipped = find_attribute(find_child(find_child(row, "trPr"), "gridBefore"), "val")
        cells = [""] * _parse_span(skipped or "0")
        for cell in _find_children(row, "tc"):
            properties = find_child(cell, "tcPr")
            merge = find_child(properties, "vMerge")
            if (
                merge is not None
                and find_attribute(merge, "val") != "restart"
                and len(cells) < len(above)
            ):
                text = above[len(cells)]
            else:
                text = " ".join(self._cell(cell, nested))
            across = _parse_span(find_attribute(find_child(properties, "gridSpan"), "val") or "1")
            cells.extend([text] * max(1, min(across, MAX_SPANNED_COLUMNS - len(cells))))
        return cells

    def _cell(self, cell: Element, nested: list[Element]) -> Iterator[str]:
        for item in cell:
            if strip_namespace(item) == "tbl":
                nested.append(item)
            else:
                yield from (block.text for block in self.blocks(item))


def _parse_span(columns: str) -> int:
    is_number = columns.isascii() and columns.isdigit()
    return min(int(columns), MAX_SPANNED_COLUMNS) if is_number else 0


def _find_children(element: Element, name: str) -> Iterator[Element]:
    for item in element:
        if strip_namespace(item) == name:
            yield item
        elif strip_namespace(item) in WRAPPER_TAGS:
            yield from _find_children(item, name)
