"""sqlite-utils without pandas, which it imports only to accept data frames: we never give any.

Cheap marks of the store's state: who keeps a result keeps its mark, and looks if it still is.
"""

from __future__ import annotations

from core.concurrency import without

with without("pandas"):  # a third of a second on every start
    from sqlite_utils import Database, Migrations

__all__ = ["Database", "Migrations"]


Mark = tuple[float, ...]


class Changes:
    """Two marks are equal only while nothing of their kind was added or has ended meanwhile."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of_corrections(self) -> Mark:
        """Changes with each correction and each right answer: they are only ever appended."""
        return self._mark(
            "SELECT (SELECT coalesce(max(rowid), 0) FROM corrections), "
            "(SELECT coalesce(max(rowid), 0) FROM golds)"
        )

    def of_runs(self) -> Mark:
        """Changes when a run ends, is taken up again or scored again, or imported after its end."""
        return self._mark(
            "SELECT count(*), coalesce(max(finished_at), 0.0), total(finished_at), "
            "(SELECT count(*) FROM learned WHERE kind = 'rescoring') FROM runs "
            "WHERE finished_at IS NOT NULL"
        )

    def of_holdout(self) -> Mark:
        """Changes when cases get their side: that is for good."""
        return self._mark("SELECT coalesce(max(rowid), 0) FROM holdout")

    def of_learned(self) -> Mark:
        """Changes when something was learned or taken into use, a version of the classifier too."""
        return self._mark(
            "SELECT (SELECT coalesce(max(number), 0) FROM learned), "
            "(SELECT coalesce(max(number), 0) FROM learned_choices), "
            "(SELECT coalesce(max(number), 0) FROM activations), (SELECT count(*) FROM versions)"
        )

    def _mark(self, query: str) -> Mark:
        return tuple(self._db.conn.execute(query).fetchone())
