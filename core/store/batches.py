"""Tables of claims that are checked together, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.records import Plan
from core.store.codec import from_json, to_json
from core.store.sqlite import Database


@dataclass(frozen=True)
class Batch:
    """A table of claims under one plan."""

    id: str
    project_id: str
    name: str
    author: str
    created_at: float
    plan: Plan


@dataclass(frozen=True)
class BatchRow:
    """One claim of a table: its case and run once they exist, or why they cannot.

    `others` are the table's further columns, as (header, cell).
    """

    batch_id: str
    row: int
    claim: str
    sources: tuple[str, ...]
    case_id: str | None = None
    run_id: str | None = None
    problem: str = ""
    question: str = ""
    others: tuple[tuple[str, str], ...] = ()


class Batches:
    """All batches and their rows."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, batch: Batch, rows: Sequence[BatchRow]) -> None:
        """Store a batch with all its rows; call inside `Store.writing()`."""
        self._db.execute(
            "INSERT INTO batches (id, project_id, name, author, created_at, plan) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [
                batch.id,
                batch.project_id,
                batch.name,
                batch.author,
                batch.created_at,
                to_json(batch.plan),
            ],
        )
        for row in rows:
            self._db.execute(
                "INSERT INTO batch_rows (batch_id, row, case_id, run_id, problem, claim, sources, "
                "question, others) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    batch.id,
                    row.row,
                    row.case_id,
                    row.run_id,
                    row.problem,
                    row.claim,
                    to_json(row.sources),
                    row.question,
                    to_json(row.others),
                ],
            )

    def set_run(self, batch_id: str, row: int, run_id: str) -> None:
        """Note which run checks a row."""
        self._db.execute(
            "UPDATE batch_rows SET run_id = ? WHERE batch_id = ? AND row = ?",
            [run_id, batch_id, row],
        )

    def get(self, batch_id: str) -> Batch | None:
        """The batch, or None."""
        row = next(self._db.query("SELECT * FROM batches WHERE id = ?", [batch_id]), None)
        return _batch(row) if row else None

    def all(self, project_id: str) -> list[Batch]:
        """The project's batches, newest first."""
        rows = self._db.query(
            "SELECT * FROM batches WHERE project_id = ? ORDER BY created_at DESC", [project_id]
        )
        return [_batch(row) for row in rows]

    def rows(self, batch_id: str) -> list[BatchRow]:
        """The batch's rows in order."""
        rows = self._db.query(
            "SELECT * FROM batch_rows WHERE batch_id = ? ORDER BY row", [batch_id]
        )
        return [
            BatchRow(
                batch_id,
                row["row"],
                row["claim"],
                from_json(tuple[str, ...], row["sources"]),
                row["case_id"],
                row["run_id"],
                row["problem"],
                row["question"],
                from_json(tuple[tuple[str, str], ...], row["others"]),
            )
            for row in rows
        ]


def _batch(row: dict[str, Any]) -> Batch:
    return Batch(
        row["id"],
        row["project_id"],
        row["name"],
        row["author"],
        row["created_at"],
        from_json(Plan, row["plan"]),
    )
