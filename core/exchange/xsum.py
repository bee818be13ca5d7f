"""The XSum hallucination annotations: a CSV with a line for each span of each annotator.

Starts count from 1 and are often a few characters off: the quoted words are what counts. What more
than half of a summary's annotators say is the gold, each one's own marks are their answer.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from core.documents.csv_cells import require_columns
from core.errors import InputError
from core.exchange.fields import reason
from core.exchange.packed import MOST_ROW, text_of
from core.exchange.rows import (
    UNSPECIFIED,
    ExchangeRow,
    GoldSpan,
    Problem,
    Read,
    Record,
    correction_of,
    gold_of,
    majority,
    nearest,
    shares,
    word,
)
from core.records import Span, WordScore

COLUMNS = frozenset(
    "bbcid system summary hallucination_type hallucinated_span hallucinated_span_start "
    "worker_id".split()
)
NO_MARK = ("null", "")


def read(name: str, data: bytes) -> Read:
    """A case for each summary, with the answers of its annotators.

    Raises:
        InputError: nothing in it can be read, or it has other columns.
    """
    csv.field_size_limit(MOST_ROW)
    reader = csv.DictReader(io.StringIO(text_of(name, data), newline=""))
    found: dict[str, list[Record]] = {}
    problems: list[Problem] = []
    try:
        require_columns(name, reader.fieldnames or (), COLUMNS)
        for cells in reader:
            record = Record({k: v for k, v in cells.items() if k is not None}, "", reader.line_num)
            try:
                summary = f"{record.text('bbcid')}:{record.text('system')}"
                record.text("summary"), record.text("worker_id")
            except InputError as error:
                problems.append(Problem(record.line, reason(error)))
            else:
                found.setdefault(summary, []).append(record)
    except csv.Error as error:
        problems.append(Problem(reader.line_num, f"expected a table, found: {error}."))
    rows = []
    for summary, lines in found.items():
        try:
            rows.append(_row(summary, lines))
        except InputError as error:
            problems.append(Problem(lines[0].line, reason(error)))
    return Read(tuple(rows), tuple(problems))


def _row(name: str, lines: Sequence[Record]) -> ExchangeRow:
    summary = lines[0].text("summary")
    if any(line.text("summary") != summary for line in lines):
        raise InputError(f"expected one summary called {name}, found several; rename them.")
    workers: dict[str, list[Span]] = {}
    unsure = set()
    for line in lines:
        spans = workers.setdefault(line.text("worker_id"), [])
        if word(line.fields.get("hallucination_type")) in NO_MARK:
            continue
        unsure.add(line.text("worker_id"))
        found = _span(summary, line)
        spans += [found] if found else []
    marked = [[GoldSpan(s.start, s.end) for s in spans] for spans in workers.values()]
    soft = shares(marked)
    is_wrong = 2 * len(unsure) > len(workers)
    hard = [
        Span(one.start, one.end, summary[one.start : one.end], 1.0, UNSPECIFIED, "")
        for one in (majority(soft) if is_wrong else ())
    ]
    return ExchangeRow(
        id=name,
        response=summary,
        golds=(
            gold_of(
                "hallucinated" if is_wrong else "supported",
                hard,
                soft=[WordScore(one.start, one.end, one.p) for one in soft],
            ),
        ),
        corrections=tuple(
            correction_of(who, "hallucinated" if who in unsure else "supported", spans)
            for who, spans in workers.items()
        ),
        others=(("bbcid", lines[0].text("bbcid")), ("system", lines[0].text("system"))),
        place=lines[0].line,
    )


def _span(summary: str, line: Record) -> Span | None:
    """The marked words where they stand nearest; None where they stand nowhere."""
    text = line.text("hallucinated_span").replace("\\n", "").strip()
    start = nearest(summary, text, int(line.number("hallucinated_span_start")))
    if start < 0 or not text:
        return None
    kind = line.text("hallucination_type").strip()
    end = start + len(text)
    return Span(start, end, summary[start:end], 1.0, kind, "")
