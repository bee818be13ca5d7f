"""Benchmarks: what was measured, on which rows, and exactly one result for each cell and row.

A cell is one roster with one way to argue. The process that runs a benchmark holds a lease, as a
run's does; whoever wants it paused or cancelled leaves a wish, which the lease's holder reads with
each heartbeat. Only failed results are ever replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.runtime.errors import ConflictError
from core.store.sqlite import Repository, get_columns, insert_row

BenchmarkStatus = Literal[
    "queued", "running", "paused", "finished", "failed", "cancelled", "interrupted"
]
BenchmarkWish = Literal["", "pause", "cancel"]
STORED_COLUMNS = (
    "id, project_id, name, author, created_at, spec, card, repeats, status, message, started_at, "
    "finished_at, heartbeat_at, wish"
)
IS_SILENT_SQL = "abs(coalesce(heartbeat_at, 0) - ?) >= ?"  # a clock may have been set back


@dataclass(frozen=True)
class Benchmark:
    """A measurement as it was asked for, and how far it is.

    `spec` says as JSON what to measure, `card` under which conditions it began and went on.
    `repeats` is the id of the benchmark that it runs again. A running one whose process is silent
    is `interrupted`. `started_at` is when it was last begun or resumed.
    """

    id: str
    project_id: str
    name: str
    author: str
    created_at: float
    spec: str
    card: dict[str, Any]
    repeats: str = ""
    status: BenchmarkStatus = "queued"
    message: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    wish: BenchmarkWish = ""


@dataclass(frozen=True)
class BenchmarkResult:
    """One row's result in one cell; `payload` is the prediction as JSON.

    `calls` and `tokens` are those of language models; `cost` is in US dollars, None if unknown. All
    three are of every try of the row, by the ledger; `payload` is of the last.
    """

    cell: int
    position: int
    at: float
    is_failed: int
    calls: int
    tokens: int
    cost: float | None
    seconds: float
    payload: str


@dataclass(frozen=True)
class CellTotals:
    """What one cell's results add up to; `unpriced` counts results of unknown cost.

    `last_at` is when its newest result came.
    """

    done: int = 0
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    last_at: float = 0.0


class Benchmarks(Repository):
    """All benchmarks with their rows and results; call what writes inside a transaction."""

    def add(self, benchmark: Benchmark, rows: Sequence[tuple[str, str]]) -> None:
        """Store a queued benchmark with its rows as (digest, JSON), in order."""
        names = ("id", "project_id", "name", "author", "created_at", "spec", "repeats")
        columns = get_columns(benchmark)
        insert_row(self._db, "benchmarks", {name: columns[name] for name in names})
        self._db.conn.executemany(
            "INSERT INTO benchmark_rows VALUES (?, ?, ?, ?)",
            [(benchmark.id, n, digest, payload) for n, (digest, payload) in enumerate(rows)],
        )

    def get(self, benchmark_id: str, now: float, lease: float) -> Benchmark | None:
        """Return the benchmark with its status as of now, or None."""
        return next(self._select("id = ?", benchmark_id, now, lease), None)

    def of_project(self, project_id: str, now: float, lease: float) -> list[Benchmark]:
        """Return the project's benchmarks, newest first."""
        return list(self._select("project_id = ?", project_id, now, lease))

    def _select(self, where: str, value: str, now: float, lease: float) -> Iterator[Benchmark]:
        query = f"SELECT {STORED_COLUMNS} FROM benchmarks WHERE {where} ORDER BY created_at DESC"
        for row in self._db.query(query, [value]):
            is_silent = abs((row.pop("heartbeat_at") or 0.0) - now) >= lease
            if row["status"] == "running" and is_silent:
                row["status"] = "interrupted"
            yield Benchmark(**row | {"card": json.loads(row["card"])})

    def rows(self, benchmark_id: str) -> list[tuple[str, str]]:
        """Return (digest, JSON) of every row, by position."""
        query = (
            "SELECT digest, payload FROM benchmark_rows WHERE benchmark_id = ? ORDER BY position"
        )
        return self._db.conn.execute(query, [benchmark_id]).fetchall()

    def count_rows(self, benchmark_id: str) -> int:
        """Return how many rows the benchmark has."""
        query = "SELECT count(*) FROM benchmark_rows WHERE benchmark_id = ?"
        return int(self._db.conn.execute(query, [benchmark_id]).fetchone()[0])

    def take(self, benchmark_id: str, owner: str, now: float, lease: float) -> bool:
        """Begin or resume a benchmark; return False if a process runs it, or all is done.

        What people wished before its first start still counts; those of before it was resumed
        do not.
        """
        cursor = self._db.execute(
            "UPDATE benchmarks SET status = 'running', message = '', owner = ?, "
            "wish = CASE WHEN started_at IS NULL THEN wish ELSE '' END, "
            "heartbeat_at = ?, started_at = ?, finished_at = NULL WHERE id = ? AND "
            "(status != 'finished' OR EXISTS (SELECT 1 FROM benchmark_results r "
            "WHERE r.benchmark_id = benchmarks.id AND r.is_failed)) "
            f"AND (status != 'running' OR {IS_SILENT_SQL})",
            [owner, now, now, benchmark_id, now, lease],
        )
        return bool(cursor.rowcount)

    def put_card(self, benchmark_id: str, card: Mapping[str, Any], now: float) -> None:
        """Store the conditions of a start.

        The card is that of the first start; under `resumed` it keeps those of later ones, where
        they differ from the one before.
        """
        query = "SELECT card FROM benchmarks WHERE id = ?"
        (kept,) = self._db.conn.execute(query, [benchmark_id]).fetchone()
        if first := json.loads(kept):
            resumed = first.pop("resumed", [])
            before = {name: value for name, value in [first, *resumed][-1].items() if name != "at"}
            resumed += [] if before == card else [{**card, "at": now}]
            card = first | ({"resumed": resumed} if resumed else {})
        query = "UPDATE benchmarks SET card = ? WHERE id = ?"
        self._db.execute(query, [json.dumps(dict(card)), benchmark_id])

    def beat(self, benchmark_id: str, owner: str, now: float) -> BenchmarkWish:
        """Renew the lease and return what people wish.

        Raises ConflictError: another process has taken it over.
        """
        query = (
            "UPDATE benchmarks SET heartbeat_at = ? WHERE id = ? AND owner = ? "
            "AND status = 'running' RETURNING wish"
        )
        row = self._db.conn.execute(query, [now, benchmark_id, owner]).fetchone()
        if row is None:
            raise ConflictError("Another process has taken this benchmark over.")
        wish: BenchmarkWish = row[0]
        return wish

    def replace_spec(self, benchmark_id: str, spec: str) -> None:
        """Change what is asked for; what was measured stays."""
        self._db.execute("UPDATE benchmarks SET spec = ? WHERE id = ?", [spec, benchmark_id])

    def request(self, benchmark_id: str, wish: BenchmarkWish, now: float, lease: float) -> None:
        """Leave a wish for the process that runs it; without one, cancelling ends it at once."""
        self._db.execute("UPDATE benchmarks SET wish = ? WHERE id = ?", [wish, benchmark_id])
        if wish == "cancel":
            self._db.execute(
                "UPDATE benchmarks SET status = 'cancelled', finished_at = ? WHERE id = ? AND "
                "(status IN ('queued', 'paused') OR "
                f"status = 'running' AND {IS_SILENT_SQL})",
                [now, benchmark_id, now, lease],
            )

    def end(
        self, benchmark_id: str, owner: str, status: BenchmarkStatus, now: float, message: str = ""
    ) -> None:
        """Close the benchmark's run, unless another process has taken it over."""
        self._db.execute(
            "UPDATE benchmarks SET status = ?, finished_at = ?, message = ? "
            "WHERE id = ? AND owner = ? AND status = 'running'",
            [status, now, message, benchmark_id, owner],
        )

    def put_result(self, benchmark_id: str, result: BenchmarkResult) -> bool:
        """Store a result; return False if the row has one in this cell already that did not fail.

        Call `beat` in the same transaction: only the lease's holder may write.
        """
        columns = get_columns(result)
        changes = [f"{name} = excluded.{name}" for name in columns]
        cursor = self._db.execute(
            f"INSERT INTO benchmark_results (benchmark_id, {', '.join(columns)}) "
            f"VALUES (?, {', '.join('?' for _ in columns)}) "
            "ON CONFLICT (benchmark_id, cell, position) DO UPDATE SET "
            f"{', '.join(changes)} WHERE benchmark_results.is_failed",
            [benchmark_id, *columns.values()],
        )
        return bool(cursor.rowcount)

    def results(self, benchmark_id: str) -> Iterator[BenchmarkResult]:
        """Yield the results so far, cell by cell."""
        query = (
            f"SELECT {', '.join(BenchmarkResult.__dataclass_fields__)} FROM benchmark_results "
            "WHERE benchmark_id = ? ORDER BY cell, position"
        )
        for row in self._db.conn.execute(query, [benchmark_id]):
            yield BenchmarkResult(*row)

    def answered(self, benchmark_id: str) -> set[tuple[int, int]]:
        """Return (cell, position) of every result that did not fail."""
        query = (
            "SELECT cell, position FROM benchmark_results WHERE benchmark_id = ? AND NOT is_failed"
        )
        return set(self._db.conn.execute(query, [benchmark_id]))

    def count_failed_before(self, benchmark_id: str, before: float) -> int:
        """Return how many results that failed are older than that."""
        query = (
            "SELECT count(*) FROM benchmark_results WHERE benchmark_id = ? AND is_failed AND at < ?"
        )
        return int(self._db.conn.execute(query, [benchmark_id, before]).fetchone()[0])

    def count_since(self, benchmark_id: str, since: float) -> tuple[int, float]:
        """Return how many results came since then, and when the first of them did."""
        query = (
            "SELECT count(*), coalesce(min(at), 0.0) FROM benchmark_results "
            "WHERE benchmark_id = ? AND at >= ?"
        )
        count, first = self._db.conn.execute(query, [benchmark_id, since]).fetchone()
        return count, first

    def totals(self, benchmark_id: str) -> dict[int, CellTotals]:
        """Return each cell's totals; cells without results are left out."""
        query = (
            "SELECT cell, count(*), sum(is_failed), sum(calls), sum(tokens), "
            "coalesce(sum(cost), 0.0), sum(cost IS NULL), sum(seconds), max(at) "
            "FROM benchmark_results WHERE benchmark_id = ? GROUP BY cell"
        )
        rows = self._db.conn.execute(query, [benchmark_id])
        return {cell: CellTotals(*sums) for cell, *sums in rows}
