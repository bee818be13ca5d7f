"""What is known of all items of a review queue together: their languages, what agents said."""

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
