"""Small things learned from people's answers: appended, with which of each kind is in use.

A body is plain JSON of the kind's own making. The classifier's versions are folders and have their
own table (`versions.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from core.errors import ConfigError, InputError
from core.store.sqlite import Database

Read = TypeVar("Read")
NONE = 0  # the number of what ships: nothing learned is in use


@dataclass(frozen=True)
class Learned:
    """One learned thing of a project; `number` is given when it is kept."""

    kind: str
    project_id: str
    at: float
    author: str
    body: dict[str, Any]
    number: int = NONE


def read_body(learned: Learned, read: Callable[[dict[str, Any]], Read]) -> Read:
    """What `read` makes of the body.

    Raises:
        ConfigError: the body has another form, as a later version may keep it.
    """
    try:
        return read(learned.body)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"Expected {learned.kind} {learned.number} in the form that this version keeps, found "
            f"another ({type(error).__name__}: {error}); it was not used. Take another into use, "
            "or update Counterpoint."
        ) from error


@dataclass(frozen=True)
class Choice:
    """Somebody took a learned thing into use, or went back to what ships (`number` 0)."""

    kind: str
    project_id: str
    number: int
    at: float
    by: str
    reason: str


class LearnedThings:
    """All that was learned, by kind and project, and every choice of what is in use."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, learned: Learned) -> int:
        """Keep a learned thing and return its number; the number it comes with is not looked at."""
        body = json.dumps(learned.body, sort_keys=True, ensure_ascii=False, allow_nan=False)
        cursor = self._db.execute(
            "INSERT INTO learned (kind, project_id, at, author, body, sha256) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [
                learned.kind,
                learned.project_id,
                learned.at,
                learned.author,
                body,
                _digest(body),
            ],
        )
        return int(cursor.lastrowid or 0)

    def get(self, number: int) -> Learned | None:
        """The learned thing, or None.

        Raises:
            ConfigError: it is not as it was written.
        """
        row = next(self._db.query("SELECT * FROM learned WHERE number = ?", [number]), None)
        return _learned(row) if row else None

    def all(self, kind: str, project_id: str) -> list[Learned]:
        """Everything of that kind that the project learned, newest first.

        Raises:
            ConfigError: one of them is not as it was written.
        """
        rows = self._db.query(
            "SELECT * FROM learned WHERE kind = ? AND project_id = ? ORDER BY number DESC",
            [kind, project_id],
        )
        return [_learned(row) for row in rows]

    def intact(self, kind: str, project_id: str) -> list[Learned]:
        """As `all`, without those that are not as they were written."""
        rows = self._db.query(
            "SELECT * FROM learned WHERE kind = ? AND project_id = ? ORDER BY number DESC",
            [kind, project_id],
        )
        return [_learned(row) for row in rows if _digest(row["body"]) == row["sha256"]]

    def newest(self, kind: str, project_id: str) -> Learned | None:
        """What the project learned last of that kind, or None; earlier ones are not looked at.

        Raises:
            ConfigError: it is not as it was written.
        """
        rows = self._db.query(
            "SELECT * FROM learned WHERE kind = ? AND project_id = ? ORDER BY number DESC LIMIT 1",
            [kind, project_id],
        )
        return next((_learned(row) for row in rows), None)

    def use(self, choice: Choice) -> None:
        """Take a learned thing into use from now on; number 0 goes back to what ships.

        Raises:
            InputError: there is no such thing of that kind in that project.
        """
        known = self.get(choice.number) if choice.number != NONE else None
        is_there = known and (known.kind, known.project_id) == (choice.kind, choice.project_id)
        if choice.number != NONE and not is_there:
            raise InputError(f"There is no {choice.kind} of number {choice.number} here.")
        self._db.execute(
            "INSERT INTO learned_choices (kind, project_id, learned, at, by, reason) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [choice.kind, choice.project_id, choice.number, choice.at, choice.by, choice.reason],
        )

    def choices(self, kind: str, project_id: str) -> list[Choice]:
        """Every choice of that kind, newest first."""
        rows = self._db.query(
            "SELECT * FROM learned_choices WHERE kind = ? AND project_id = ? ORDER BY number DESC",
            [kind, project_id],
        )
        return [
            Choice(r["kind"], r["project_id"], r["learned"], r["at"], r["by"], r["reason"])
            for r in rows
        ]

    def in_use(self, kind: str, project_id: str) -> Learned | None:
        """What was last taken into use; None where what ships counts.

        Raises:
            ConfigError: it is not as it was written.
        """
        row = next(
            self._db.query(
                "SELECT learned FROM learned_choices WHERE kind = ? AND project_id = ? "
                "ORDER BY number DESC LIMIT 1",
                [kind, project_id],
            ),
            None,
        )
        return self.get(row["learned"]) if row and row["learned"] != NONE else None


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _learned(row: Mapping[str, Any]) -> Learned:
    if _digest(row["body"]) != row["sha256"]:
        raise ConfigError(
            f"Expected {row['kind']} {row['number']} as it was learned, found it changed "
            "(checksum differs); it was not used. Take another into use."
        )
    body = json.loads(row["body"])
    kept = Learned(row["kind"], row["project_id"], row["at"], row["author"], body, row["number"])
    return read_body(kept, lambda found: replace(kept, body={**found}))
