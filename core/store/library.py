"""The files of each project's library: names, states, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.records import LibraryEntry, Page, SourceKind
from core.store.codec import from_json
from core.store.sqlite import Database

COLUMNS = """
    l.source_id, l.project_id, l.name, l.kind, l.size, l.status, l.problem, l.added_by,
    l.added_at, r.pages, r.language, r.notes, length(r.text) AS characters
"""


class Library:
    """Entries of the library; the bytes lie in the home's `documents` folder."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, entry: LibraryEntry) -> None:
        """Put a file into the library; the same content again takes the newest name."""
        self._db.execute(
            "INSERT INTO library (project_id, source_id, name, kind, size, status, problem, "
            "added_by, added_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (project_id, source_id) DO UPDATE SET name = excluded.name, "
            "kind = excluded.kind, status = excluded.status, problem = excluded.problem, "
            "removed_at = NULL",
            [
                entry.project_id,
                entry.id,
                entry.name,
                entry.kind,
                entry.size,
                entry.status,
                entry.problem,
                entry.added_by,
                entry.added_at,
            ],
        )

    def set_status(self, source_id: str, status: str, problem: str = "") -> None:
        """Note how the reading went, in every project that has the file."""
        self._db.execute(
            "UPDATE library SET status = ?, problem = ? WHERE source_id = ?",
            [status, problem, source_id],
        )

    def get(self, project_id: str, source_id: str) -> LibraryEntry | None:
        """The entry, or None when it is not (or no longer) in this library."""
        return next(iter(self._select("l.source_id = ?", [project_id, source_id])), None)

    def all(self, project_id: str) -> list[LibraryEntry]:
        """All entries, newest first."""
        return self._select("1 = 1", [project_id])

    def is_held(self, source_id: str) -> bool:
        """True while any library holds that content."""
        row = next(
            self._db.query(
                "SELECT 1 AS yes FROM library WHERE source_id = ? AND removed_at IS NULL",
                [source_id],
            ),
            None,
        )
        return row is not None

    def name_of(self, project_id: str, source_id: str) -> str:
        """The name under which that content is or was known in the project; empty if never."""
        row = next(
            self._db.query(
                "SELECT name FROM library WHERE project_id = ? AND source_id = ?",
                [project_id, source_id],
            ),
            None,
        )
        return str(row["name"]) if row else ""

    def kind_of(self, source_id: str) -> SourceKind | None:
        """What kind of file that content is, or None when it was never added."""
        row = next(
            self._db.query("SELECT kind FROM library WHERE source_id = ? LIMIT 1", [source_id]),
            None,
        )
        return row["kind"] if row else None

    def remove(self, project_id: str, source_id: str, now: float) -> bool:
        """Take an entry out; True when no library holds that content any more."""
        self._db.execute(
            "UPDATE library SET removed_at = ? WHERE project_id = ? AND source_id = ?",
            [now, project_id, source_id],
        )
        left = next(
            self._db.query(
                "SELECT count(*) AS n FROM library WHERE source_id = ? AND removed_at IS NULL",
                [source_id],
            )
        )
        return bool(left["n"] == 0)

    def _select(self, where: str, values: Sequence[Any]) -> list[LibraryEntry]:
        rows = self._db.query(
            f"SELECT {COLUMNS} FROM library l LEFT JOIN readings r ON r.source_id = l.source_id "
            f"WHERE l.project_id = ? AND l.removed_at IS NULL AND {where} "
            "ORDER BY l.added_at DESC, l.rowid DESC",
            list(values),
        )
        return [_entry(row) for row in rows]


def _entry(row: dict[str, Any]) -> LibraryEntry:
    pages = from_json(tuple[Page, ...], row["pages"] or "[]")
    return LibraryEntry(
        id=row["source_id"],
        project_id=row["project_id"],
        name=row["name"],
        kind=row["kind"],
        size=row["size"],
        status=row["status"],
        added_by=row["added_by"],
        added_at=row["added_at"],
        problem=row["problem"],
        pages=len(pages),
        ocr_pages=tuple(page.number for page in pages if page.reading == "ocr"),
        characters=row["characters"] or 0,
        language=row["language"] or "und",
        notes=from_json(tuple[str, ...], row["notes"] or "[]"),
    )
