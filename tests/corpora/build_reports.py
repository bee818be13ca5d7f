"""Render the reports of the acceptance corpus to the files a person would upload.

    python -m tests.corpora.build_reports FOLDER

writes each report under FOLDER/NN-name. The same JSON always gives the same bytes: PDF files
carry no date, and members of DOCX files all have the same one.
"""

from __future__ import annotations

import argparse
import base64
import csv
import html
import io
import zipfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.corpora.charts import draw_chart
from tests.corpora.loader import (
    BulletList,
    Chart,
    Footnote,
    Heading,
    PageBreak,
    Paragraph,
    Report,
    ReportCase,
    Table,
    load_reports,
)
from tests.corpora.pdf import render_pdf

RIGHT_TO_LEFT = ("ar",)
STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 46em; margin: auto; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { border: 1px solid #999; padding: 0.2em 0.6em; }
caption, figcaption { font-weight: bold; text-align: start; }
.footnote, header, footer { font-size: 80%; color: #555; }
"""


def build_report(case: ReportCase, folder: Path) -> list[Path]:
    """Write the files of one report into `folder` and return their paths, the report first."""
    report = case.report
    render = {"pdf": render_pdf, "docx": _docx, "html": _html, "md": _markdown}
    folder.mkdir(parents=True, exist_ok=True)
    kind = report.files[0].rpartition(".")[2]
    (folder / report.files[0]).write_bytes(render[kind](report))
    for block in report.blocks:
        if isinstance(block, Table) and block.file:
            (folder / block.file).write_bytes(_csv(block))
        if isinstance(block, Chart) and block.file:
            (folder / block.file).write_bytes(draw_chart(block))
    return [folder / name for name in report.files]


def _csv(table: Table) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue().encode()


def _markdown(report: Report) -> bytes:
    parts = [f"*{report.header}*", f"# {report.title}"]
    for block in report.blocks:
        parts.extend(_markdown_block(block))
    parts.append(f"*{report.footer}*")
    return ("\n\n".join(parts) + "\n").encode()


def _markdown_block(block: object) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield "#" * (level + 1) + " " + text
        case Paragraph(text) | Footnote(text):
            yield text
        case BulletList(items):
            yield "\n".join(f"- {item}" for item in items)
        case Table(file=""):
            yield f"**{block.caption}**" + (f" ({block.unit})" if block.unit else "")
            rule = ("---",) * len(block.columns)
            rows = [block.columns, rule, *block.rows]
            yield "\n".join("| " + " | ".join(row) + " |" for row in rows)
        case Chart():
            yield f"![{block.title}]({block.file})"
        case PageBreak():
            yield "---"


def _html(report: Report) -> bytes:
    direction = "rtl" if report.language in RIGHT_TO_LEFT else "ltr"
    title = html.escape(report.title)
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="{report.language}" dir="{direction}">',
        f'<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>',
        f"<body><header>{html.escape(report.header)}</header>",
        f"<main><h1>{title}</h1>",
        *(part for block in report.blocks for part in _html_block(block)),
        "</main>",
        f"<footer>{html.escape(report.footer)}</footer></body></html>",
    ]
    return "\n".join(parts).encode()


def _html_block(block: object) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"<h{level + 1}>{html.escape(text)}</h{level + 1}>"
        case Paragraph(text):
            yield f"<p>{html.escape(text)}</p>"
        case Footnote(text):
            yield f'<p class="footnote">{html.escape(text)}</p>'
        case BulletList(items):
            yield "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
        case Table():
            yield _html_table(block)
        case Chart():
            picture = base64.b64encode(draw_chart(block)).decode()
            title = html.escape(block.title)
            image = f'<img alt="{title}" width="640" src="data:image/png;base64,{picture}">'
            yield f"<figure>{image}<figcaption>{title}</figcaption></figure>"


def _html_table(table: Table) -> str:
    caption = table.caption + (f" ({table.unit})" if table.unit else "")
    head = [table.columns, *table.rows[: table.head_rows]]
    lines = [f"<table><caption>{html.escape(caption)}</caption><thead>"]
    for row in head:
        cells = (f'<th colspan="{n}">{html.escape(text)}</th>' for text, n in _merged(row))
        lines.append("<tr>" + "".join(cells) + "</tr>")
    lines.append("</thead><tbody>")
    for row in table.rows[table.head_rows :]:
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>")
    return "\n".join([*lines, "</tbody></table>"])


def _merged(row: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each cell of a head row and how many columns it spans."""
    for text, same in groupby(row):
        count = len(list(same))
        yield from [(text, count)] if text else [("", 1)] * count


def _docx(report: Report) -> bytes:
    import docx

    document = docx.Document()
    section = document.sections[0]
    section.header.paragraphs[0].text = report.header
    _docx_footer(section.footer.paragraphs[0], report.footer)
    document.add_heading(report.title, 0)
    for block in report.blocks:
        _docx_block(document, block)
    written = io.BytesIO()
    document.save(written)
    return _with_fixed_dates(written.getvalue())


def _docx_block(document: Any, block: object) -> None:
    from docx.shared import Cm, Pt

    match block:
        case Heading(text, level):
            document.add_heading(text, level)
        case Paragraph(text):
            document.add_paragraph(text)
        case Footnote(text):
            document.add_paragraph().add_run(text).font.size = Pt(8)
        case BulletList(items):
            for item in items:
                document.add_paragraph(item, style="List Bullet")
        case Table():
            _docx_table(document, block)
        case Chart():
            document.add_picture(io.BytesIO(draw_chart(block)), width=Cm(14))
            document.add_paragraph(block.title, style="Caption")
        case PageBreak():
            document.add_page_break()


def _docx_table(document: Any, table: Table) -> None:
    caption = table.caption + (f" ({table.unit})" if table.unit else "")
    document.add_paragraph(caption, style="Caption")
    rows = [table.columns, *table.rows]
    grid = document.add_table(len(rows), len(table.columns), style="Table Grid")
    for number, row in enumerate(rows):
        cells = grid.rows[number].cells
        if number > table.head_rows:
            for cell, text in zip(cells, row, strict=True):
                cell.text = text
            continue
        column = 0
        for text, span in _merged(row):
            merged = cells[column].merge(cells[column + span - 1])
            merged.paragraphs[0].add_run(text).bold = True
            column += span


def _docx_footer(paragraph: Any, footer: str) -> None:
    """Write the footer with Word's own fields for the page and the number of pages."""
    from docx.oxml.ns import qn
    from docx.oxml.parser import OxmlElement

    fields = {"page": "PAGE", "pages": "NUMPAGES"}
    for piece in footer.replace("{", "\0").replace("}", "\0").split("\0"):
        if piece not in fields:
            paragraph.add_run(piece)
            continue
        field = OxmlElement("w:fldSimple")
        field.set(qn("w:instr"), fields[piece])
        paragraph._p.append(field)


def _with_fixed_dates(archive: bytes) -> bytes:
    """Return the same archive with every member dated 1980, as zip files begin then."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED)
    return written.getvalue()


def main() -> None:
    """Render every report into the folder named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for case in load_reports():
        build_report(case, folder / case.name)


if __name__ == "__main__":
    main()
