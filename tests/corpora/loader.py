"""Load the two acceptance corpora: single statements, and long responses against reports.

Both are described in README.md beside this file. They are read by tests and measurements only:
nothing is trained on them and nothing is tuned to them. Every offset counts code points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

FOLDER = Path(__file__).parent
STATEMENTS = FOLDER / "statements.jsonl"
REPORTS = FOLDER / "reports"

LANGUAGES = ("en", "de", "fr", "es", "it", "sv", "fi", "zh", "ar", "hi", "ru", "tr")
RIGHT_KINDS = ("verbatim", "paraphrase")
WRONG_KINDS = (
    "number",
    "unit",
    "date",
    "name",
    "negation",
    "roles",
    "direction",
    "quantifier",
    "invented",
    "half",
)
REPORT_KINDS = ("table", "sum", "chart")
"""Kinds a statement of a report may have as well, right or wrong: what it rests on."""

GENERIC = "generic"
"""Kind of a sentence that says nothing a report could confirm; its label is supported."""

Label: TypeAlias = Literal["supported", "hallucinated"]
Form: TypeAlias = Literal["close", "paraphrase"]


@dataclass(frozen=True)
class StatementRow:
    """One statement about one paragraph."""

    id: str
    """Language and number within the language, such as `de-07`."""
    language: str
    """ISO 639-1 code; source and statement are in the same language."""
    source: str
    """The only evidence: a paragraph of three to six sentences."""
    statement: str
    """What is said about the source."""
    label: Label
    """Whether the source supports the statement as a whole."""
    kind: str
    """One of `RIGHT_KINDS` for a supported statement, of `WRONG_KINDS` for a hallucinated one."""
    form: Form
    """Whether the statement keeps the source's words or says it in its own."""
    wrong: tuple[str, ...]
    """The smallest wrong words, each occurring exactly once in the statement."""
    right: tuple[str, ...]
    """What the source says instead of each of `wrong`; empty where it says nothing of the kind."""

    @property
    def is_held(self) -> bool:
        """Return True if the row belongs to the held part (odd numbers)."""
        return int(self.id.rpartition("-")[2]) % 2 == 1


@dataclass(frozen=True)
class Heading:
    """A heading of a report."""

    text: str
    """With its section number, if it has one."""
    level: int
    """1 for chapters to 3 for the smallest."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of running text."""

    text: str


@dataclass(frozen=True)
class BulletList:
    """A bulleted list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table; equal neighbours in a head row are one cell over several columns."""

    caption: str
    unit: str
    """Printed under the caption; empty if the columns name their units."""
    columns: tuple[str, ...]
    """The first head row."""
    rows: tuple[tuple[str, ...], ...]
    """Cells as printed, with thousand separators and negative amounts in parentheses."""
    head_rows: int
    """How many of `rows` continue the head, for instance units under years."""
    file: str
    """CSV file the table is written to instead of the report; empty for the report itself."""


@dataclass(frozen=True)
class Chart:
    """A bar or line chart, drawn as a picture."""

    kind: Literal["bar", "line"]
    title: str
    """Printed as the figure's caption."""
    unit: str
    """What the values count, written above the axis."""
    labels: tuple[str, ...]
    values: tuple[float, ...]
    printed_values: bool
    """Whether each value stands at its bar or point; otherwise it can only be estimated."""
    file: str
    """PNG file the picture is written to, beside the report; empty if it is inside the report."""


@dataclass(frozen=True)
class PageBreak:
    """The next block starts a page."""

    columns: int
    """Text columns from that page on; 0 to keep the number."""


@dataclass(frozen=True)
class Footnote:
    """A note at the foot of the page of the block before it, beginning with its mark."""

    text: str


Block: TypeAlias = Heading | Paragraph | BulletList | Table | Chart | PageBreak | Footnote


@dataclass(frozen=True)
class Report:
    """What a report says, from which the builder renders its files."""

    title: str
    language: str
    """ISO 639-1 code."""
    format: Literal["pdf", "docx", "html", "md", "csv+pdf"]
    header: str
    """Running header of every page."""
    footer: str
    """Running footer, with `{page}` and `{pages}` where the format has pages."""
    files: tuple[str, ...]
    """Names of the files the builder writes, the report itself first."""
    pages: int
    """Pages of the PDF file; 0 for formats that have none."""
    columns: int
    """Text columns at the beginning."""
    font: str
    """A base PDF font: Helvetica or Times-Roman."""
    size: float
    """Size of running text in points."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class WrongWords:
    """The smallest wrong words of a statement."""

    text: str
    start: int
    """First code point, in the text of the response (not of the statement)."""
    end: int
    """One past the last code point, in the text of the response."""
    right: str
    """What the report says instead; empty where it says nothing of the kind."""


@dataclass(frozen=True)
class ReportStatement:
    """A sentence or clause of a response."""

    text: str
    start: int
    """First code point, in the text of the response."""
    end: int
    """One past the last code point, in the text of the response."""
    label: Label
    kind: str
    """A kind of `RIGHT_KINDS`, `WRONG_KINDS` or `REPORT_KINDS`, or `GENERIC`."""
    wrong: tuple[WrongWords, ...]
    """Empty for a supported statement."""
    where: tuple[str, ...]
    """Headings, table captions and chart titles the statement rests on, as the report has them."""


@dataclass(frozen=True)
class Response:
    """A long answer to a question about a report."""

    language: str
    """May differ from the report's."""
    question: str
    """What the person asked; may be empty."""
    text: str
    statements: tuple[ReportStatement, ...]
    """In the order of the text, without overlaps."""


@dataclass(frozen=True)
class ReportCase:
    """A report and the response checked against it."""

    number: int
    name: str
    """Number and name, as the folder is called."""
    report: Report
    response: Response

    @property
    def is_held(self) -> bool:
        """Return True if the case belongs to the held part (odd numbers)."""
        return self.number % 2 == 1


def load_statements(path: Path = STATEMENTS) -> tuple[StatementRow, ...]:
    """Return all rows of the corpus of statements, in the order of the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(_statement_row(json.loads(line)) for line in lines)


def load_reports(folder: Path = REPORTS) -> tuple[ReportCase, ...]:
    """Return all reports with their responses, by number."""
    return tuple(load_report_case(each) for each in sorted(folder.iterdir()) if each.is_dir())


def load_report_case(folder: Path) -> ReportCase:
    """Return the report and the response kept in one folder, called `NN-name`."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    response = json.loads((folder / "response.json").read_text(encoding="utf-8"))
    return ReportCase(
        number=int(folder.name.partition("-")[0]),
        name=folder.name,
        report=_report(report),
        response=_response(response),
    )


def _statement_row(row: Mapping[str, Any]) -> StatementRow:
    return StatementRow(**{**row, "wrong": tuple(row["wrong"]), "right": tuple(row["right"])})


def _report(row: Mapping[str, Any]) -> Report:
    layout = row.get("layout", {})
    return Report(
        title=row["title"],
        language=row["language"],
        format=row["format"],
        header=row["header"],
        footer=row["footer"],
        files=tuple(row["files"]),
        pages=row.get("pages", 0),
        columns=layout.get("columns", 1),
        font=layout.get("font", "Helvetica"),
        size=layout.get("size", 10),
        blocks=tuple(_block(block) for block in row["blocks"]),
    )


def _block(row: Mapping[str, Any]) -> Block:
    match row:
        case {"heading": text, "level": level}:
            return Heading(text, level)
        case {"paragraph": text}:
            return Paragraph(text)
        case {"list": items}:
            return BulletList(tuple(items))
        case {"footnote": text}:
            return Footnote(text)
        case {"page_break": True}:
            return PageBreak(row.get("columns", 0))
        case {"table": table}:
            return _table(table)
        case {"chart": chart}:
            return _chart(chart)
    raise ValueError(f"expected a block of a report, found the keys {sorted(row)}")


def _table(row: Mapping[str, Any]) -> Table:
    return Table(
        caption=row["caption"],
        unit=row.get("unit", ""),
        columns=tuple(row["columns"]),
        rows=tuple(tuple(cells) for cells in row["rows"]),
        head_rows=row.get("head_rows", 0),
        file=row.get("file", ""),
    )


def _chart(row: Mapping[str, Any]) -> Chart:
    return Chart(
        kind=row["kind"],
        title=row["title"],
        unit=row["unit"],
        labels=tuple(row["labels"]),
        values=tuple(row["values"]),
        printed_values=row["printed_values"],
        file=row.get("file", ""),
    )


def _response(row: Mapping[str, Any]) -> Response:
    return Response(
        language=row["language"],
        question=row.get("question", ""),
        text=row["text"],
        statements=tuple(_report_statement(each) for each in row["statements"]),
    )


def _report_statement(row: Mapping[str, Any]) -> ReportStatement:
    wrong = tuple(WrongWords(**words) for words in row["wrong"])
    return ReportStatement(**{**row, "wrong": wrong, "where": tuple(row["where"])})
