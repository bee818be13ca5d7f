"""Reports as people upload them, made in code: a PDF of nine pages, Word, HTML and CSV files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import simpleSplit
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Table, TableStyle

from tests.documents.builders import word

WIDTH, HEIGHT = A4
LEFT, RIGHT, TOP = 60.0, WIDTH - 60.0, HEIGHT - 90.0
FIRM = "Harbour Water Works plc"
BODY = 10.0

PROSE = (
    "The works supplied four towns and twelve villages with drinking water throughout the year. "
    "Demand rose in the dry months of June and July, when the reservoirs fell to half of their "
    "usual level, and the board asked households to water their gardens in the evening only. "
    "Nobody was cut off. The new filter hall at Elmstead was opened by the mayor in September."
)
LEAKS = (
    "Losses from leaking pipes fell to 11 percent of all water that was put into the network, "
    "the lowest share since records began in 1978. Forty kilometres of mains were replaced."
)


class Report:
    """A canvas with a running head, page numbers that alternate sides, and a cursor."""

    def __init__(self, pages: int) -> None:
        self.stream = io.BytesIO()
        self.canvas = Canvas(self.stream, pagesize=A4)
        self.pages, self.page, self.y = pages, 1, TOP

    def text(self, words: str, *, size: float = BODY, bold: bool = False, gap: float = 8.0) -> None:
        """A paragraph over the whole width."""
        self.column(words, LEFT, RIGHT, size=size, bold=bold)
        self.y -= gap

    def column(
        self, words: str, left: float, right: float, *, size: float = BODY, bold: bool = False
    ) -> None:
        """A paragraph between two edges."""
        font = "Helvetica-Bold" if bold else "Helvetica"
        self.canvas.setFont(font, size)
        for line in simpleSplit(words, font, size, right - left):
            self.canvas.drawString(left, self.y, line)
            self.y -= 1.25 * size

    def cells(self, row: Sequence[str], edges: Sequence[float], *, bold: bool = False) -> None:
        """A row without rules: the first cell from the left, the others end at the edges."""
        self.canvas.setFont("Helvetica-Bold" if bold else "Helvetica", BODY)
        self.canvas.drawString(LEFT, self.y, row[0])
        for cell, edge in zip(row[1:], edges, strict=True):
            self.canvas.drawRightString(edge, self.y, cell)
        self.y -= 14

    def ruled(self, rows: Sequence[Sequence[str]], style: Sequence[Any] = ()) -> None:
        """A table with all its rules."""
        table = Table([list(row) for row in rows], colWidths=[150, 80, 80, 80])
        grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("FONTSIZE", (0, 0), (-1, -1), 9)]
        table.setStyle(TableStyle([*grid, *style]))
        _, height = table.wrapOn(self.canvas, RIGHT - LEFT, HEIGHT)
        table.drawOn(self.canvas, LEFT, self.y - height)
        self.y -= height + 18

    def footnote(self, number: int, words: str) -> None:
        """A small line at the foot of the page, under a short rule."""
        self.canvas.line(LEFT, 92, LEFT + 90, 92)
        self.canvas.setFont("Helvetica", 7)
        self.canvas.drawString(LEFT, 80, f"{number} {words}")

    def turn(self) -> None:
        """End the page with its running head and number."""
        self.canvas.setFont("Helvetica", 8)
        if self.page % 2:
            self.canvas.drawRightString(RIGHT, HEIGHT - 40, "Annual report 2024")
            self.canvas.drawRightString(RIGHT, 36, f"Page {self.page} of {self.pages}")
        else:
            self.canvas.drawString(LEFT, HEIGHT - 40, FIRM)
            self.canvas.drawString(LEFT, 36, f"Page {self.page} of {self.pages}")
        self.canvas.showPage()
        self.page, self.y = self.page + 1, TOP


def nine_pages() -> bytes:
    """The annual report of a water works."""
    report = Report(9)
    report.text("Annual report 2024", size=26, bold=True, gap=20)
    report.text(f"{FIRM}, Elmstead", size=12)
    report.turn()
    _columns(report)
    _unruled(report)
    _spanning(report)
    _over_the_page(report)
    _list(report)
    _charts(report)
    report.text("4 Outlook", size=16, bold=True)
    report.text("The board expects sales of about 135 million euros in 2025.")
    report.turn()
    report.canvas.save()
    return report.stream.getvalue()


def _columns(report: Report) -> None:
    """Page 2: two columns, one after the other, and a footnote."""
    report.text("1 Supply", size=16, bold=True)
    top, middle = report.y, (LEFT + RIGHT) / 2
    report.column(PROSE, LEFT, middle - 12)
    report.y = top
    report.column(LEAKS, middle + 12, RIGHT)
    report.footnote(1, "As far as the meters of the towns show, which were read in January.")
    report.turn()


def _unruled(report: Report) -> None:
    """Page 3: years over units, groups, thousands, negatives in parentheses, empty cells."""
    edges = (330.0, 410.0, 490.0)
    report.text("2 Results", size=16, bold=True)
    report.text("2.1 Key figures", size=13, bold=True)
    report.text("Table 1: Key figures of the group", bold=True)
    report.cells(("", "2024", "2023", "Change"), edges, bold=True)
    report.cells(("", "EUR million", "EUR million", "%"), edges)
    report.canvas.line(LEFT, report.y + 10, edges[-1], report.y + 10)
    for row in (
        ("Income", "", "", ""),
        ("Revenue", "131.5", "120.2", "9.4"),
        ("Cost of materials", "(1,204.0)", "(1,180.5)", "2.0"),
        ("Other income", "", "3.1", ""),
        ("Employees", "", "", ""),
        ("Wages", "48.7", "45.0", "8.2"),
    ):
        report.cells(row, edges)
    report.y -= 10
    report.text("Revenue grew because the price of water was raised in March.")
    report.turn()


def _spanning(report: Report) -> None:
    """Pages 4 and 5: a ruled table that goes on, its header repeated."""
    header = ("Town", "Homes", "Metres sold (m³)", "Price (EUR)")
    rows = [(f"Town {n}", f"{1000 + n}", f"{n},450", f"{1 + n / 100:.2f}") for n in range(1, 41)]
    report.text("Table 2: Sales by town in 2024", bold=True)
    report.ruled([header, *rows[:30]])
    report.turn()
    report.ruled([header, *rows[30:]])
    report.text("All towns are supplied from the same works.")
    report.turn()


def _over_the_page(report: Report) -> None:
    """Pages 6 and 7: a sentence that goes on over the page, and a word cut at a line's end."""
    report.y = 160
    report.text("3 People", size=16, bold=True)
    report.text("The number of employees rose to 412, of whom 97 work in the laboratory, where the")
    report.footnote(2, "On 31 December; trainees are not counted.")
    report.turn()
    report.canvas.setFont("Helvetica", BODY)
    for line in (
        "quality of the water is tested every four hours by a team of chemists who are on con-",
        "stant call, also at night. Nothing was ever found.",
    ):
        report.canvas.drawString(LEFT, report.y, line)
        report.y -= 12.5
    report.y -= 20


def _list(report: Report) -> None:
    """Page 7: items, one of two lines."""
    for item in (
        "The laboratory was given a second spectrometer, which finds traces of medicine that no one",  # noqa: E501
        "The canteen now serves breakfast from six o'clock.",
    ):
        report.canvas.drawString(LEFT, report.y, f"•  {item}")
        report.y -= 12.5
        if item.endswith("no one"):
            report.canvas.drawString(LEFT + 11, report.y, "could measure before 2020.")
            report.y -= 12.5
    report.turn()


def _charts(report: Report) -> None:
    """Page 8: bars with their values, and a curve of which only the axes are labelled."""
    canvas = report.canvas
    report.text("Figure 1: Visitors of the museum by month (thousands)", bold=True)
    canvas.setFont("Helvetica", 9)
    for n, (name, value) in enumerate((("May", 12), ("June", 31), ("July", 24), ("August", 18))):
        x = LEFT + 60 + 90 * n
        canvas.rect(x, 520, 40, 4 * value, fill=1)
        canvas.drawCentredString(x + 20, 524 + 4 * value, str(value))
        canvas.drawCentredString(x + 20, 506, name)
    report.y = 440
    report.text("Figure 2: Level of the reservoirs (metres)", bold=True)
    canvas.setFont("Helvetica", 9)
    for n in range(6):
        canvas.drawRightString(LEFT + 40, 200 + 40 * n, str(10 * n))
        canvas.drawCentredString(LEFT + 80 + 60 * n, 180, str(2019 + n))
    canvas.bezier(LEFT + 60, 210, LEFT + 160, 400, LEFT + 260, 220, LEFT + 390, 380)
    report.turn()


def word_report() -> bytes:
    """A Word document with styles, a caption, merged cells and a footer."""

    def build(document: Any) -> None:
        document.add_heading("Annual report 2024", 0)
        document.add_heading("Water", 1)
        document.add_heading("Prices", 2)
        document.add_paragraph("The price of water was raised in March. Nobody protested.")
        document.add_paragraph("Table 1: Prices by tariff (EUR)", style="Caption")
        table = document.add_table(5, 3)
        cells = (("Tariff", "2024", ""), ("", "net", "gross"), ("Homes", "", ""),
                 ("Basic", "1.20", "1.28"), ("Large", "1.10", "1.18"))  # fmt: skip
        for row, texts in enumerate(cells):
            for column, text in enumerate(texts):
                table.cell(row, column).text = text
        table.cell(0, 1).merge(table.cell(0, 2))
        table.cell(0, 0).merge(table.cell(1, 0))
        table.cell(2, 0).merge(table.cell(2, 2))
        document.add_paragraph("Bills are sent four times a year.", style="List Bullet")
        document.sections[0].footer.paragraphs[0].text = f"{FIRM}, confidential"

    return word(build)


WEB_REPORT = f"""<!doctype html><html><head><title>Water prices | {FIRM}</title></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/jobs">Jobs</a></li></ul></nav>
<main><h1>Water prices</h1><p>Prices hold for all towns.<br>They were raised in March.</p>
<h2>Tariffs</h2><table><caption>Prices by tariff (EUR)</caption>
<thead><tr><th rowspan="2">Tariff</th><th colspan="2">2024</th></tr>
<tr><th>net</th><th>gross</th></tr></thead>
<tbody><tr><td colspan="3">Homes</td></tr><tr><td>Basic</td><td>1.20</td><td>1.28</td></tr>
<tr><td>Large</td><td>1.10</td><td></td></tr></tbody></table>
<figure><img src="price-chart.svg" alt="Chart of prices"><figcaption>Prices since 1990</figcaption>
</figure></main><footer>© 2024 {FIRM}. Imprint. Privacy.</footer></body></html>"""

CSV_REPORT = """Sales by town;;;
Town;Homes;Water sold (1000 m³);Price (EUR)
Elmstead;12 450;1.204,5;1,20
Marlow;8 310;;1,18
"""
