"""Rows to a CSV table: one a case, lists as JSON in a cell, no cell a formula."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from core.documents.csv_cells import folded, masked
from core.exchange.fields import plain_span, plain_suggestion
from core.exchange.rows import SCHEMA, ExchangeRow

COLUMNS = (
    "schema", "id", "question", "response", "language", "label", "spans", "soft", "reason",
    "corrected_answer", "answers", "document", "verdict", "p_hallucinated",
    "suggestions",
)  # fmt: skip
OURS = frozenset(COLUMNS) - {"suggestions"}  # older tables have none


def write(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a table: UTF-8 with BOM, for spreadsheets."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    titles = list(dict.fromkeys(_title(name) for row in rows for name, _ in row.others))
    writer.writerow([masked(name) for name in (*COLUMNS, *titles)])
    for row in rows:
        others = {_title(name): text for name, text in row.others}
        cells = [*_cells(row), *(others.get(name, "") for name in titles)]
        writer.writerow([masked(cell) for cell in cells])
    return b"\xef\xbb\xbf" + out.getvalue().encode()


def _title(name: str) -> str:
    """A further column's name; one that bears a name of ours is told apart."""
    return f"{name} (other)" if folded(name) in COLUMNS else name


def _cells(row: ExchangeRow) -> list[str]:
    answer = row.answer
    people = [one for one in row.people if one is not answer]
    answers = [
        {
            "person": one.author,
            "label": one.label,
            "spans": [plain_span(span) for span in one.spans],
            "reason": one.reason,
            "corrected_answer": one.corrected_answer,
        }
        for one in people
    ]
    documents = [
        {"name": d.name, "text": d.text} if d.text is not None else {"name": d.name, "id": d.id}
        for d in row.documents
    ]
    verdict = row.verdict
    p = verdict.p_hallucinated if verdict else None
    return [
        str(SCHEMA),
        row.id,
        row.question,
        row.response,
        row.language,
        answer.label if answer else "",
        _dumped([plain_span(span) for span in answer.spans]) if answer else "",
        _dumped([{"start": s.start, "end": s.end, "prob": s.p} for s in row.soft])
        if row.soft
        else "",
        answer.reason if answer else "",
        answer.corrected_answer if answer else "",
        _dumped(answers) if answers else "",
        _dumped(documents) if documents else "",
        verdict.label if verdict else "",
        "" if p is None else str(p),
        _dumped([plain_suggestion(one) for one in row.suggestions]) if row.suggestions else "",
    ]


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
