"""Stores to import into and export from, and what of a row every format keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.exchange.exporter import load_project_rows
from core.exchange.importer import ImportOutcome, ImportRequest, LabelUse, import_rows
from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeRow, ParsedFile
from core.review.people import ensure_project
from core.schema.records import Project
from core.store import Store, open_store

NOW = 1_700_000_000.0
NOWHERE = Path("/nowhere")  # no row here has a document


def project_of(store: Store) -> Project:
    """The one project."""
    return ensure_project(store, "lee", NOW)


def imported(
    store: Store,
    read: ParsedFile,
    labels: LabelUse = "gold",
    *,
    home: Path = NOWHERE,
    now: float = NOW,
    agent: str = "",
) -> ImportOutcome:
    """Rows brought in by lee."""
    order = ImportRequest(project_of(store), "lee", now, "rows", labels, agent)
    return import_rows(store, home, read, order)


def exported(store: Store, name: str, home: Path = NOWHERE, which: str = "all") -> bytes:
    """The project's cases as a file."""
    write = FORMATS[name].write
    assert write is not None
    return write(load_project_rows(store, home, project_of(store), which))


def moved(rows: tuple[ExchangeRow, ...], name: str) -> tuple[list[ExchangeRow], list[ExchangeRow]]:
    """(the rows of a store, those of a fresh one that its file was read into)."""
    with open_store(None) as first, open_store(None) as second:
        assert not imported(first, ParsedFile(rows)).problems
        read = FORMATS[name].read("rows", exported(first, name))
        assert not read.problems
        assert not imported(second, read).problems
        sides = [load_project_rows(s, NOWHERE, project_of(s)) for s in (first, second)]
        return sides[0], sides[1]


def kept(row: ExchangeRow) -> dict[str, Any]:
    """What must come through every format."""
    answer = row.answer
    return {
        "id": row.id,
        "response": row.response,
        "question": row.question,
        "label": answer.label if answer else None,
        "spans": [(s.start, s.end, s.text, s.category) for s in answer.spans] if answer else None,
        "reason": answer.reason if answer else "",
        "corrected_answer": answer.corrected_answer if answer else "",
        "soft": row.soft,
    }
