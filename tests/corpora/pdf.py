"""Lay out a report as PDF: running header and footer, one or two columns, notes at page feet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    Image,
    KeepTogether,
    NextPageTemplate,
    PageTemplate,
    Spacer,
)
from reportlab.platypus import PageBreak as PdfPageBreak
from reportlab.platypus import Paragraph as PdfParagraph
from reportlab.platypus import Table as PdfTable

from tests.corpora.charts import HEIGHT, WIDTH, draw_chart
from tests.corpora.loader import (
    BulletList,
    Chart,
    Footnote,
    Heading,
    PageBreak,
    Paragraph,
    Report,
    Table,
)

MARGIN = 62
NOTE_HEIGHT = 46
"""Points kept free above the footer for the notes of a page."""
GUTTER = 20
ROOM_FOR_HEADING, ROOM_FOR_TABLE = 150, 110
"""Points that must be left on a page for a heading or a table to begin there."""
BOLD = {"Helvetica": "Helvetica-Bold", "Times-Roman": "Times-Bold"}
SHADE = colors.HexColor("#e6ebf0")


class _NoteAnchor(Flowable):
    """Takes no room; hands its note to the foot of the page it lands on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.width = self.height = 0
        self.text = text

    def draw(self) -> None:
        self.canv.page_notes.append(self.text)


def render_pdf(report: Report) -> bytes:
    """Return the report as a PDF file without dates; laid out twice to know its page count."""
    pages = _layout(report, 0)[1]
    return _layout(report, pages)[0]


def _layout(report: Report, pages: int) -> tuple[bytes, int]:
    written = io.BytesIO()
    document = BaseDocTemplate(
        written, pagesize=A4, invariant=1, title=report.title, lang=report.language
    )
    document.addPageTemplates(
        [
            _page_template(report, count, pages)
            for count in sorted({1, 2}, key=report.columns.__ne__)
        ]
    )
    styles = _styles(report)
    title = PdfParagraph(escape(report.title), styles["title"])
    width = (A4[0] - 2 * MARGIN - GUTTER * (report.columns - 1)) / report.columns
    story = [title]
    for block in report.blocks:
        if isinstance(block, PageBreak) and block.columns:
            story.append(NextPageTemplate(str(block.columns)))
            width = (A4[0] - 2 * MARGIN - GUTTER * (block.columns - 1)) / block.columns
        story.extend(_flowables(block, styles, width))
    document.build(story)
    return written.getvalue(), document.page


def _page_template(report: Report, columns: int, pages: int) -> Any:
    width = (A4[0] - 2 * MARGIN - GUTTER * (columns - 1)) / columns
    bottom = MARGIN + NOTE_HEIGHT
    frames = [
        Frame(
            MARGIN + place * (width + GUTTER),
            bottom,
            width,
            A4[1] - bottom - MARGIN - 10,
            leftPadding=0,
            rightPadding=0,
        )
        for place in range(columns)
    ]
    small = ParagraphStyle("note", fontName=report.font, fontSize=7.5, leading=9)

    def begin(canvas: Any, _document: object) -> None:
        canvas.page_notes = []

    def end(canvas: Any, document: Any) -> None:
        canvas.setFont(report.font, 8)
        canvas.drawString(MARGIN, A4[1] - MARGIN + 12, report.header)
        canvas.line(MARGIN, A4[1] - MARGIN + 6, A4[0] - MARGIN, A4[1] - MARGIN + 6)
        footer = report.footer.replace("{pages}", str(pages)).replace("{page}", str(document.page))
        canvas.drawRightString(A4[0] - MARGIN, MARGIN - 26, footer)
        y = bottom - 8
        if canvas.page_notes:
            canvas.line(MARGIN, y + 3, MARGIN + 120, y + 3)
        for text in canvas.page_notes:
            note = PdfParagraph(escape(text), small)
            height = note.wrap(A4[0] - 2 * MARGIN, 100)[1]
            y -= height
            note.drawOn(canvas, MARGIN, y)

    return PageTemplate(id=str(columns), frames=frames, onPage=begin, onPageEnd=end)


def _styles(report: Report) -> dict[str, Any]:
    size, font, bold = report.size, report.font, BOLD[report.font]
    body = ParagraphStyle(
        "body", fontName=font, fontSize=size, leading=size * 1.4, spaceAfter=size * 0.7
    )
    styles = {
        "title": ParagraphStyle("title", fontName=bold, fontSize=20, leading=25, spaceAfter=16),
        "body": body,
        "item": ParagraphStyle("item", parent=body, leftIndent=14, bulletIndent=4, spaceAfter=3),
        "caption": ParagraphStyle(
            "caption", parent=body, fontName=bold, fontSize=size - 1, spaceBefore=6, spaceAfter=2
        ),
        "unit": ParagraphStyle(
            "unit", fontName=font, fontSize=size - 2, leading=size, spaceAfter=2
        ),
        "cell": ParagraphStyle("cell", fontName=font, fontSize=size - 2, leading=size),
        "head": ParagraphStyle("head", fontName=bold, fontSize=size - 2, leading=size),
    }
    for level, larger in ((1, 5), (2, 2), (3, 0.5)):
        styles[f"heading{level}"] = ParagraphStyle(
            f"heading{level}",
            fontName=bold,
            fontSize=size + larger,
            leading=(size + larger) * 1.25,
            spaceBefore=size,
            spaceAfter=size * 0.5,
        )
    return styles


def _flowables(block: object, styles: dict[str, Any], width: float) -> Iterator[Any]:
    match block:
        case Heading(text, level):
            yield CondPageBreak(ROOM_FOR_HEADING)
            yield PdfParagraph(escape(text), styles[f"heading{level}"])
        case Paragraph(text):
            yield PdfParagraph(escape(text), styles["body"])
        case BulletList(items):
            for item in items:
                yield PdfParagraph(escape(item), styles["item"], bulletText="•")
            yield Spacer(1, 6)
        case Footnote(text):
            yield _NoteAnchor(text)
        case PageBreak():
            yield PdfPageBreak()
        case Table(file=""):
            yield CondPageBreak(ROOM_FOR_TABLE)
            yield PdfParagraph(escape(block.caption), styles["caption"])
            if block.unit:
                yield PdfParagraph(escape(block.unit), styles["unit"])
            yield _table(block, styles, width)
            yield Spacer(1, 12)
        case Chart(file=""):
            picture = Image(io.BytesIO(draw_chart(block)), width, width * HEIGHT / WIDTH)
            yield KeepTogether([picture, PdfParagraph(escape(block.title), styles["caption"])])


def _table(table: Table, styles: dict[str, Any], width: float) -> Any:
    """Return a table that repeats its head on every page it runs over."""
    head = 1 + table.head_rows
    rows = [table.columns, *table.rows]
    cells = [
        [PdfParagraph(escape(text), styles["head" if number < head else "cell"]) for text in row]
        for number, row in enumerate(rows)
    ]
    numeric = [
        column
        for column in range(1, len(table.columns))
        if all(_is_numeric(row[column]) for row in table.rows[table.head_rows :])
    ]
    for row in cells:
        for column in numeric:
            row[column].style = row[column].style.clone("number", alignment=2)
    commands: list[tuple[Any, ...]] = [
        ("GRID", (0, 0), (-1, -1), 0.4, colors.grey),
        ("BACKGROUND", (0, 0), (-1, head - 1), SHADE),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
        ("LEFTPADDING", (0, 0), (-1, -1), 3),
        ("RIGHTPADDING", (0, 0), (-1, -1), 3),
    ]
    for number in range(head):
        for first, last in _spans(rows[number]):
            commands.append(("SPAN", (first, number), (last, number)))
            cells[number][first].style = styles["head"].clone("span", alignment=1)
    widths = _column_widths(rows, width, styles["head"])
    return PdfTable(cells, widths, repeatRows=head, style=commands, hAlign="LEFT")


def _is_numeric(cell: str) -> bool:
    return sum(letter.isalpha() for letter in cell) <= 2


def _spans(row: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last column of each head cell that spans several."""
    column = 0
    for text, same in groupby(row):
        count = len(list(same))
        if text and count > 1:
            yield column, column + count - 1
        column += count


def _column_widths(rows: Sequence[Sequence[str]], width: float, style: Any) -> list[float]:
    """Give every column its longest word, and share out what is left by the longest cell."""

    def measure(text: str) -> float:
        return float(stringWidth(text, style.fontName, style.fontSize)) + 8

    columns = list(zip(*rows, strict=True))
    least = [
        max(measure(word) for text in column for word in text.split() or [""]) for column in columns
    ]
    wanted = [min(max(map(measure, column)), 170.0) for column in columns]
    wanted = [max(pair) for pair in zip(least, wanted, strict=True)]
    missing = [want - need for want, need in zip(wanted, least, strict=True)]
    left = width - sum(least)
    if left > sum(missing):
        return [width * want / sum(wanted) for want in wanted]
    return [need + left * gap / sum(missing) for need, gap in zip(least, missing, strict=True)]
