"""Roster sheets that people wrote: every save and every removal is a row, the newest counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core.errors import ConflictError, InputError
from core.seats import BUILT_IN, LONGEST_NAME, RosterSheet
from core.store.codec import from_json, to_json
from core.store.sqlite import Database


@dataclass(frozen=True)
class SavedRoster:
    """A sheet as somebody saved it; None where it was removed."""

    number: int
    name: str
    at: float
    author: str
    sheet: RosterSheet | None


class Rosters:
    """Append-only roster sheets of the whole home."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(
        self, sheet: RosterSheet, author: str, at: float, *, seen: int | None = None
    ) -> SavedRoster:
        """Keep a sheet under its name; `seen` is the number that was changed (0: a new name).

        Raises:
            InputError: the name is empty, too long, or the built-in engine's.
            ConflictError: somebody saved that name since; with `seen` None that is not asked.
        """
        name = sheet.name
        if name != name.strip() or not 0 < len(name) <= LONGEST_NAME or name == BUILT_IN:
            raise InputError(
                f"Expected a name for the roster of 1 to {LONGEST_NAME} characters, without spaces "
                f"around it and other than “{BUILT_IN}”; found “{name[:LONGEST_NAME]}”."
            )
        return self._append(SavedRoster(0, name, at, author, sheet), seen)

    def remove(
        self, name: str, author: str, at: float, *, seen: int | None = None
    ) -> SavedRoster | None:
        """Take a name off the list; its history stays. None where there is no such name.

        Raises:
            ConflictError: somebody saved that name since it was `seen`.
        """
        if self.get(name) is None:
            return None
        return self._append(SavedRoster(0, name, at, author, None), seen)

    def get(self, name: str) -> RosterSheet | None:
        """The sheet of that name as it is now, or None."""
        newest = self.newest(name)
        return newest.sheet if newest else None

    def newest(self, name: str) -> SavedRoster | None:
        """The newest row of that name, a removal too."""
        return next(iter(self.history(name)), None)

    def all(self) -> list[SavedRoster]:
        """Every name's newest sheet, by name."""
        rows = self._db.query(
            "SELECT * FROM rosters WHERE sheet IS NOT NULL AND number IN "
            "(SELECT MAX(number) FROM rosters GROUP BY name) ORDER BY name"
        )
        return [_saved(row) for row in rows]

    def history(self, name: str) -> list[SavedRoster]:
        """All saves and removals of that name, newest first."""
        rows = self._db.query("SELECT * FROM rosters WHERE name = ? ORDER BY number DESC", [name])
        return [_saved(row) for row in rows]

    def _append(self, saved: SavedRoster, seen: int | None) -> SavedRoster:
        """One statement looks and writes, so that of two people at once only one succeeds."""
        sheet = None if saved.sheet is None else to_json(saved.sheet)
        cursor = self._db.execute(
            "INSERT INTO rosters (name, at, author, sheet) SELECT :name, :at, :author, :sheet "
            "WHERE :seen IS NULL OR :seen = "
            "(SELECT COALESCE(MAX(number), 0) FROM rosters WHERE name = :name)",
            {
                "name": saved.name,
                "at": saved.at,
                "author": saved.author,
                "sheet": sheet,
                "seen": seen,
            },
        )
        if cursor.rowcount == 0:
            newest = self.newest(saved.name)
            who = newest.author if newest else "somebody"
            raise ConflictError(
                f"The roster “{saved.name}” was changed by {who} meanwhile, so yours was not "
                "saved. Look at theirs, then save again or choose another name."
            )
        return replace(saved, number=cursor.lastrowid or 0)


def _saved(row: dict[str, Any]) -> SavedRoster:
    sheet = None if row["sheet"] is None else from_json(RosterSheet, row["sheet"])
    return SavedRoster(row["number"], row["name"], row["at"], row["author"], sheet)
