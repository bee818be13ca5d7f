"""What is known of all items of a review queue together: languages, stances, what is missing."""

from __future__ import annotations

from core.records import Label
from core.store.codec import from_json
from core.store.sqlite import Database


class QueueLists:
    """Lists over the items of a project."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def languages(self, project_id: str) -> list[str]:
        """The languages of the project's items, in order."""
        rows = self._db.query(
            "SELECT DISTINCT language FROM items WHERE project_id = ? ORDER BY language",
            [project_id],
        )
        return [row["language"] for row in rows]

    def stances(self, project_id: str) -> dict[str, tuple[tuple[str, Label], ...]]:
        """What each agent said of each case, where a run's agents are known."""
        rows = self._db.query(
            "SELECT case_id, stances FROM items WHERE project_id = ? AND given > 0 "
            "AND stances NOT IN ('', '[]')",
            [project_id],
        )
        kind = tuple[tuple[str, Label], ...]
        return {row["case_id"]: from_json(kind, row["stances"]) for row in rows}

    def missing(self, project_id: str, most: int) -> list[str]:
        """Newest finished runs of cases that the queue does not hold them for, oldest first."""
        rows = self._db.query(
            "SELECT r.id FROM runs r LEFT JOIN items i ON i.case_id = r.case_id "
            "WHERE r.project_id = ? AND r.status = 'finished' "
            "AND (i.run_id IS NOT r.id OR i.stances = '') "
            "AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.case_id = r.case_id "
            "AND n.status = 'finished' AND (n.started_at, n.id) > (r.started_at, r.id)) "
            "ORDER BY r.started_at, r.id LIMIT ?",
            [project_id, most],
        )
        return [row["id"] for row in rows]
