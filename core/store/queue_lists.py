"""What is known of all items of a review queue together: languages, stances, what is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from core.records import Label
from core.store.active_learning import FIRST
from core.store.answered import PLANNED, PRESENT
from core.store.sqlite import Changes, Database, from_json
from core.store.versions import SEED_VERSION


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
        """What each agent said of each case that people answered, in the queue or on its run."""
        rows = self._db.query(
            "SELECT case_id, stances FROM items WHERE project_id = ? "
            "AND stances NOT IN ('', '[]') "
            "AND EXISTS (SELECT 1 FROM standing s WHERE s.case_id = items.case_id)",
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

    def put_first(self, project_id: str, limits: Sequence[tuple[str, str, float]] | None) -> None:
        """Put the items first whose verdicts are for people to decide; call inside `writing()`.

        `limits` are (version, roster, confidence) from which on a verdict stands by itself; None:
        the project decides nothing of the kind, and no item goes first for it.
        """
        version = PRESENT if Changes(self._db).of_runs()[-1] else PLANNED
        stands = (
            "EXISTS (SELECT 1 FROM runs r, json_each(:limits) l WHERE r.id = items.run_id "
            f"AND coalesce(nullif({version}, ''), :seed) = json_extract(l.value, '$[0]') "
            "AND json_extract(r.plan, '$.roster') = json_extract(l.value, '$[1]') "
            "AND r.confidence >= json_extract(l.value, '$[2]'))"
        )
        first = "0" if limits is None else f"(p IS NOT NULL AND NOT {stands})"
        self._db.execute(
            "UPDATE items SET teaches = teaches - :more * (teaches >= :more) + :more * is_first "
            f"FROM (SELECT case_id AS own, {first} AS is_first FROM items "
            "WHERE project_id = :project) WHERE case_id = own "
            "AND is_first != (teaches >= :more)",
            {"more": FIRST, "project": project_id}
            | ({} if limits is None else {"limits": json.dumps(limits), "seed": SEED_VERSION}),
        )
