"""What was done with a case beside answering it: passed over, flagged, settled; appended."""

from __future__ import annotations

from core.reviews import Handling
from core.store.sqlite import Database


class Handlings:
    """The log of all cases."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, handling: Handling) -> None:
        """Append one; call inside `Store.writing()`."""
        self._db.execute(
            "INSERT INTO handlings (case_id, person, at, did, words) VALUES (?, ?, ?, ?, ?)",
            [handling.case_id, handling.person, handling.at, handling.did, handling.words],
        )

    def of_case(self, case_id: str) -> list[Handling]:
        """Everything that was done with the case, oldest first."""
        rows = self._db.query("SELECT * FROM handlings WHERE case_id = ? ORDER BY rowid", [case_id])
        return [
            Handling(row["case_id"], row["person"], row["at"], row["did"], row["words"])
            for row in rows
        ]
