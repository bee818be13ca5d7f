"""A report as blocks of text, and how they are written as HTML, Markdown, DOCX and PDF.

All texts are untrusted: each writer escapes them, and leaves out characters that its format cannot
hold. The PDF's fonts cover Latin, Greek, Cyrillic, Arabic, Devanagari and common Chinese and
Japanese; it says by itself what else it could not show.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from components.widgets.controls import ASSETS
from components.widgets.html import Html, element, html_table, join_html

if TYPE_CHECKING:
    from fpdf import FPDF

TextStyle = Literal["", "strong", "quiet", "wrong", "removed", "added"]
ParagraphKind = Literal["", "lead", "text", "quote"]
HTML_TAGS: dict[TextStyle, tuple[str, str | None]] = {
    "strong": ("strong", None),
    "quiet": ("bdi", "cp-quiet"),
    "wrong": ("mark", "cp-mark"),
    "removed": ("del", None),
    "added": ("ins", None),
}
HTML_CLASSES: dict[ParagraphKind, str | None] = {
    "": None, "lead": "cp-lead", "text": "cp-text", "quote": "cp-quote",
}  # fmt: skip
MARKDOWN_SIGNS: dict[TextStyle, str] = {
    "strong": "**", "wrong": "**", "added": "**", "removed": "~~",
}  # fmt: skip
MARKDOWN_SPECIAL = re.compile(r"[\\`*_\[\]<>|~$&]|(?<=[A-Za-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
MARKDOWN_LINE_START = re.compile(r"^(\s*)(?:([#+=-])|(\d{1,9})([.)])(?=\s|$))")
# What XML, and with it DOCX, cannot hold; private characters are our marks in a PDF.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ue000-\uf8ff\ufffe\uffff]")
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
RIGHT_TO_LEFT_STRETCH = re.compile(f"{_RIGHT_TO_LEFT}(?:[^a-zA-Z\n]*{_RIGHT_TO_LEFT})?")
NUMBER_PATTERN = re.compile(r"(\s*\d[\d.,:/-]*\s*)")
WRONG_COLOUR = (0x9A, 0x34, 0x12)
QUIET_COLOUR = (0x56, 0x61, 0x70)
FONTS = ASSETS / "fonts"
FALLBACK_FONTS = {
    "arabic": "NotoSansArabic-Regular.ttf",
    "devanagari": "NotoSansDevanagari-Regular.ttf",
    "chinese": "NotoSansSC-Regular.otf",
}
BOLD, STRUCK, UNDERLINED, UNUSED = ("\ue000\ue001", "\ue002\ue003", "\ue004\ue005", "\ue006\ue007")
PDF_SIGNS: dict[TextStyle, str] = {
    "strong": BOLD, "wrong": BOLD + UNDERLINED, "added": UNDERLINED, "removed": STRUCK,
}  # fmt: skip
PDF_SIZES: dict[ParagraphKind, float] = {"": 9.5, "lead": 13, "text": 10, "quote": 9}
MAX_PDF_CELL_CHARS = 1500  # a row must fit on a page
MAX_SHOWN_MISSING = 12  # characters


@dataclass(frozen=True)
class Words:
    """Words in one style; `wrong` marks words that do not hold."""

    text: str
    style: TextStyle = ""


Line = Sequence[Words]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, in which line breaks count; `text` is somebody's own, `quote` a source's."""

    words: Line
    kind: ParagraphKind = ""


@dataclass(frozen=True)
class ReportTable:
    """A table; `widths` are the columns' shares of its width in percent."""

    heads: Sequence[str]
    widths: Sequence[int]
    rows: Sequence[Sequence[Line]]


Block = Paragraph | ReportTable


@dataclass(frozen=True)
class ReportSection:
    """A section of the details; in HTML it is folded, and `html` is drawn instead of its blocks."""

    title: str
    blocks: Sequence[Block]
    html: Html | None = None


@dataclass(frozen=True)
class Report:
    """A run's report: a page to read first, then the details."""

    title: str
    summary: Sequence[Block]
    details: Sequence[ReportSection]


def write_html(report: Report) -> str:
    """Return one HTML file that loads nothing; its details are folded."""
    sections = (
        element(
            "details",
            element("summary", element("h2", section.title)),
            render_blocks(section.blocks) if section.html is None else section.html,
            class_="cp-section",
        )
        for section in report.details
    )
    heading = element("h1", report.title, dir="auto")
    return str(
        render_page(report.title, join_html([heading, render_blocks(report.summary), *sections]))
    )


def render_page(title: str, body: Html) -> Html:
    """Return the document around the body; its styles are our own files, never a person's text."""
    styles = [(ASSETS / f"{name}.css").read_text(encoding="utf-8") for name in ("app", "report")]
    parts = (
        element("meta", charset="utf-8"),
        element("title", title),
        element("style", Html("".join(styles))),
    )
    page = element("html", element("head", *parts), element("body", body), lang="en")
    return join_html([Html("<!doctype html>"), page])


def render_blocks(blocks: Iterable[Block]) -> Html:
    """Render paragraphs and tables."""
    return join_html(map(_render_block, blocks))


def _render_block(block: Block) -> Html:
    if isinstance(block, Paragraph):
        class_ = HTML_CLASSES[block.kind]
        return element("p", *map(_render_words, block.words), class_=class_, dir="auto")
    rows = ([join_html(map(_render_words, cell)) for cell in row] for row in block.rows)
    columns = (element("col", style=f"width: {width}%") for width in block.widths)
    head, rest = html_table(block.heads, rows, "cp-table").split(">", 1)
    return Html(f"{head}>{element('colgroup', *columns)}{rest}")


def _render_words(words: Words) -> Html:
    lines = words.text.split("\n")
    inner = [part for line in lines for part in (element("br"), line)][1:]
    if words.style not in HTML_TAGS:
        return join_html(inner)
    tag, class_ = HTML_TAGS[words.style]
    return element(tag, *inner, class_=class_)


def write_markdown(report: Report) -> str:
    """Return the report as Markdown, in which nobody's text acts as markup."""
    blocks = [f"# {_escape_markdown_line(report.title)}", *map(_write_block, report.summary)]
    for section in report.details:
        blocks += [f"## {section.title}", *map(_write_block, section.blocks)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _write_block(block: Block) -> str:
    if isinstance(block, Paragraph):
        lines = "".join(map(_write_words, block.words)).split("\n")
        prefix = "> " if block.kind == "quote" else ""
        return "  \n".join(f"{prefix}{line.strip()}" for line in lines if line.strip())
    rows = [
        [" ".join("".join(map(_write_words, cell)).split("\n")).strip() for cell in row]
        for row in block.rows
    ]
    return "\n".join(
        f"| {' | '.join(row)} |" for row in [block.heads, ["---"] * len(block.heads), *rows]
    )


def _write_words(words: Words) -> str:
    text = "\n".join(map(_escape_markdown_line, UNPRINTABLE.sub("", words.text).split("\n")))
    sign = MARKDOWN_SIGNS.get(words.style, "")
    # Signs beside spaces are no emphasis, nor are those around several lines.
    return re.sub(r"\S(?:.*\S)?", rf"{sign}\g<0>{sign}", text) if sign else text


def _escape_markdown_line(line: str) -> str:
    line = MARKDOWN_SPECIAL.sub(lambda match: f"\\{match[0]}", line)
    return MARKDOWN_LINE_START.sub(r"\1\3\\\2\4", line)


def is_right_to_left(text: str) -> bool:
    """Return True if the first letter belongs to a script that is written from right to left."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


def _join_words(line: Line) -> str:
    return "".join(words.text for words in line)


def write_docx(report: Report) -> bytes:
    """Return the report as a Word document; letters are drawn with the reader's own fonts."""
    from docx import Document
    from docx.shared import Cm, Pt

    document = Document()
    document.core_properties.title = UNPRINTABLE.sub("", report.title)
    document.core_properties.author = "Counterpoint"
    document.styles["Normal"].font.size = Pt(10)
    document.styles["Normal"].paragraph_format.space_after = Pt(4)
    for part in document.sections:
        part.page_width, part.page_height = Cm(21), Cm(29.7)
        part.left_margin = part.right_margin = part.top_margin = part.bottom_margin = Cm(2)
    width = Cm(21 - 2 * 2)
    _fill_docx(document.add_heading(level=1), [Words(report.title)])
    for block in report.summary:
        _add_docx_block(document, block, width)
    for section in report.details:
        document.add_heading(section.title, level=2)
        for block in section.blocks:
            _add_docx_block(document, block, width)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add_docx_block(document: Any, block: Block, width: int) -> None:
    from docx.shared import Pt

    if isinstance(block, Paragraph):
        paragraph = document.add_paragraph(style="Quote" if block.kind == "quote" else None)
        _fill_docx(paragraph, block.words, Pt(14) if block.kind == "lead" else None)
        return
    table = document.add_table(rows=0, cols=len(block.heads), style="Table Grid")
    table.autofit = False
    heads = [[Words(head, "strong")] for head in block.heads]
    for row in [heads, *block.rows]:
        for cell, line, share in zip(table.add_row().cells, row, block.widths, strict=True):
            cell.width = width * share // 100
            _fill_docx(cell.paragraphs[0], line, Pt(9))
    document.add_paragraph()


def _fill_docx(paragraph: Any, line: Line, size: int | None = None) -> None:
    from docx.oxml import OxmlElement
    from docx.shared import RGBColor

    is_rtl = is_right_to_left(_join_words(line))
    if is_rtl:
        paragraph._p.get_or_add_pPr().append(OxmlElement("w:bidi"))
    for words in line:
        run = paragraph.add_run(UNPRINTABLE.sub("", words.text))
        run.font.size, run.font.rtl = size, is_rtl or None
        run.bold = words.style in ("strong", "wrong") or None
        run.underline = words.style in ("wrong", "added") or None
        run.font.strike = words.style == "removed" or None
        if words.style in ("wrong", "quiet"):
            colour = WRONG_COLOUR if words.style == "wrong" else QUIET_COLOUR
            run.font.color.rgb = RGBColor(*colour)


def write_pdf(report: Report) -> bytes:
    """Return the report as a PDF with its own fonts; characters they lack are named in it."""
    pdf = _open_pdf()
    pdf.set_title(report.title)
    missing = _find_missing(pdf, report)
    _write_pdf_block(pdf, Paragraph([Words(report.title, "strong")], "lead"), missing)
    if missing:
        shown = f"{len(missing)} characters" if len(missing) > 1 else "1 character"
        codes = ", ".join(f"U+{ord(c):04X}" for c in missing[:MAX_SHOWN_MISSING])
        more = ", …" if len(missing) > MAX_SHOWN_MISSING else ""
        words = (
            f"The fonts of this PDF lack {shown} of these texts ({codes}{more}); a □ stands for "
            "each. The HTML, Word and Markdown reports have them."
        )
        _write_pdf_block(pdf, Paragraph([Words(words, "strong")]))
    for block in report.summary:
        _write_pdf_block(pdf, block, missing)
    for section in report.details:
        pdf.ln(2)
        _write_pdf_block(pdf, Paragraph([Words(section.title, "strong")], "lead"))
        for block in section.blocks:
            _write_pdf_block(pdf, block, missing)
    return bytes(pdf.output())


def _open_pdf() -> FPDF:
    from fpdf import FPDF

    class ReportPdf(FPDF):
        """A page of the report; characters that no text has switch styles, and nothing links."""

        MARKDOWN_BOLD_MARKER = BOLD
        MARKDOWN_STRIKETHROUGH_MARKER = STRUCK
        MARKDOWN_UNDERLINE_MARKER = UNDERLINED
        MARKDOWN_ITALICS_MARKER = UNUSED
        MARKDOWN_MARKERS = (BOLD, STRUCK, UNDERLINED, UNUSED)
        MARKDOWN_ESCAPE_CHARACTER = "\uf8ff"
        MARKDOWN_LINK_REGEX = re.compile(r"(?!)")

        def footer(self) -> None:
            """Number the page."""
            self.set_y(-11)
            self.set_font("sans", size=8)
            self.cell(0, 6, str(self.page_no()), align="C")

    pdf = ReportPdf(format="A4")
    pdf.str_alias_nb_pages = ""  # or “{nb}” in a text would become a number
    pdf.set_margin(13)
    pdf.set_auto_page_break(True, 13)
    pdf.add_font("sans", "", FONTS / "NotoSans-Regular.ttf")
    pdf.add_font("sans", "B", FONTS / "NotoSans-Bold.ttf")
    for name, file in FALLBACK_FONTS.items():
        pdf.add_font(name, "", FONTS / file)
    pdf.set_fallback_fonts([*FALLBACK_FONTS], exact_match=False)
    pdf.set_font("sans")
    pdf.set_text_shaping(True)
    pdf.add_page()
    return pdf


def _find_missing(pdf: FPDF, report: Report) -> list[str]:
    """Return the characters of the report that no font of the PDF has, in order."""
    blocks = [*report.summary, *(b for section in report.details for b in section.blocks)]
    texts = [report.title, *(section.title for section in report.details)]
    for block in blocks:
        texts += map(_join_words, _list_lines(block))
    known = {code for font in pdf.fonts.values() for code in font.cmap}
    found = dict.fromkeys(UNPRINTABLE.sub("", "".join(texts)))
    return [c for c in found if ord(c) not in known and not _is_invisible(c)]


def _list_lines(block: Block) -> list[Line]:
    return [block.words] if isinstance(block, Paragraph) else [c for r in block.rows for c in r]


def _is_invisible(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cf", "Mn", "Cc")


def _write_pdf_block(pdf: FPDF, block: Block, missing: Sequence[str] = ()) -> None:
    from fpdf.enums import TableBordersLayout
    from fpdf.fonts import FontFace

    signs = str.maketrans(dict.fromkeys(missing, "□"))
    if isinstance(block, Paragraph):
        pdf.set_font("sans", size=PDF_SIZES[block.kind])
        align = "R" if is_right_to_left(_join_words(block.words)) else "L"
        text = _pdf_text(block.words, signs)
        margin = pdf.l_margin + (5 if block.kind == "quote" else 0)
        pdf.set_x(margin)
        height = PDF_SIZES[block.kind] * 0.5
        pdf.multi_cell(0, height, text, align=align, markdown=True, new_x="LMARGIN", new_y="NEXT")
        pdf.ln(1.2)
        return
    pdf.set_font("sans", size=7.5)
    with pdf.table(
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
        col_widths=tuple(block.widths),
        headings_style=FontFace(emphasis="B"),
        line_height=3.6,
        padding=(0.5, 1),
        markdown=True,
        v_align="TOP",
    ) as table:
        for row in [[[Words(head)] for head in block.heads], *block.rows]:
            cells = table.row()
            for line in row:
                align = "R" if is_right_to_left(_join_words(line)) else "L"
                cells.cell(_pdf_text(_clip_line(line), signs), align=align)
    pdf.ln(2)


def _clip_line(line: Line) -> Line:
    """Return at most as much of a cell as fits on a page."""
    clipped, left = [], MAX_PDF_CELL_CHARS
    for words in line:
        clipped.append(Words(words.text[:left], words.style))
        if len(words.text) > left:
            return [*clipped, Words("…")]
        left -= len(words.text)
    return clipped


def _reorder_numbers(stretch: re.Match[str]) -> str:
    """Put words from right to left around a number in the order in which fpdf2 must draw them."""
    parts = reversed(NUMBER_PATTERN.split(stretch[0]))
    return "".join(f"\u200e{part}\u200e" if index % 2 else part for index, part in enumerate(parts))


def _pdf_text(line: Line, signs: dict[int, str]) -> str:
    # Our marks count as letters from left to right: a mark before them says how the line begins.
    is_rtl = is_right_to_left(_join_words(line))
    parts = ["\u200f"] if is_rtl else []
    for words in line:
        text = UNPRINTABLE.sub("", words.text).translate(signs)
        text = text if is_rtl else RIGHT_TO_LEFT_STRETCH.sub(_reorder_numbers, text)
        sign = PDF_SIGNS.get(words.style, "") if text.strip() else ""
        closing = "".join(reversed([sign[i : i + 2] for i in range(0, len(sign), 2)]))
        parts.append(f"{sign}{text}{closing}")
    return "".join(parts)
