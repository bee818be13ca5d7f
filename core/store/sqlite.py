"""The database connection, records to JSON and strictly back, and marks for cached results.

All decoders are made while this module is imported, by one thread: msgspec 0.22 crashes or hangs
when two threads are the first to decode the same dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from core.runtime.concurrency import block_import
from core.runtime.errors import InputError
from core.schema.events import EVENT_TYPES, Event
from core.schema.records import (
    BoxedText,
    Case,
    Label,
    LibraryEntry,
    Member,
    Plan,
    Project,
    Run,
    Source,
    SourcePage,
    TextBlock,
)
from core.schema.reviews import (
    Assignment,
    Correction,
    GoldAnswer,
    QueueEvent,
    QueueItem,
    Suggestion,
)
from core.schema.rosters import RosterConfig

Record = TypeVar("Record")
IS_REOPENED_SQL = "did = 'reopened'"
STORED_TYPES: tuple[Any, ...] = (
    *EVENT_TYPES.values(), Assignment, Case, Correction, GoldAnswer, QueueEvent, QueueItem,
    LibraryEntry, Member,
    Plan, Project, RosterConfig, Run, Source, Suggestion, tuple[TextBlock, ...], tuple[BoxedText,
    ...],
    tuple[SourcePage, ...], tuple[str, ...], tuple[tuple[str, str], ...], tuple[tuple[str, Label],
    ...],
)  # fmt: skip
DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in STORED_TYPES
}


def to_json(value: object) -> str:
    """Return a frozen record (or tuple of records) as compact JSON."""
    return msgspec.json.encode(value).decode()


def to_plain(value: object) -> Any:
    """Return a record as dicts, lists and plain values."""
    return msgspec.to_builtins(value)


def get_columns(record: Any) -> dict[str, Any]:
    """Return a record as a row; `vars` lacks defaults, which msgspec leaves on the class."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def from_json(kind: type[Record], text: str) -> Record:
    """Decode a record that `to_json` wrote; `kind` is one of `STORED_TYPES`.

    Raises InputError: the text is not JSON of that shape.
    """
    try:
        decoded: Record = DECODERS[kind].decode(text.encode())
        return decoded
    except msgspec.MsgspecError as error:
        raise InputError(
            f"Expected a stored {kind.__name__}, found something else: {error}."
        ) from error


def from_plain(kind: type[Record], value: object) -> Record:
    """Convert plain values from `to_plain` to a record; strict, for data from outside.

    Raises InputError: the value has another shape.
    """
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.MsgspecError as error:
        raise InputError(f"Expected a {kind.__name__}, found something else: {error}.") from error


def event_from_json(kind: str, text: str) -> Event:
    """Decode an event of that kind.

    Raises InputError: the kind is unknown, or the text has another shape.
    """
    if kind not in EVENT_TYPES:
        raise InputError(f"Expected a known kind of event, found “{kind}”.")
    return from_json(EVENT_TYPES[kind], text)


with block_import("pandas"):  # which sqlite-utils would import: a third of a second on every start
    from sqlite_utils import Database, Migrations

__all__ = ["Database", "Migrations"]


def insert_row(db: Database, table: str, values: Mapping[str, Any]) -> int:
    """Add a row and return its rowid."""
    names = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("?" for _ in values)
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
    return int(db.execute(sql, list(values.values())).lastrowid or 0)


def fetch_first_row(db: Database, query: str, values: Sequence[Any] = ()) -> dict[str, Any] | None:
    """Return the first row of a query, or None."""
    return next(db.query(query, list(values)), None)


def load_records(
    db: Database, kind: type[Record], rest: str, values: Sequence[Any] = ()
) -> list[Record]:
    """Return the records in the column `payload` of `SELECT … FROM rest`."""
    rows = db.conn.execute(f"SELECT payload FROM {rest}", list(values))
    return [from_json(kind, payload) for (payload,) in rows]


def upsert_row(
    db: Database, table: str, values: Mapping[str, Any], keys: str, renewed: Sequence[str] = ()
) -> None:
    """Insert a row, or update the row with these keys (the columns `renewed`, else all others)."""
    key_columns = keys.split(", ")
    sets = ", ".join(f"{n} = excluded.{n}" for n in renewed or values if n not in key_columns)
    db.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(f':{n}' for n in values)}) "
        f"ON CONFLICT ({keys}) DO UPDATE SET {sets}",
        dict(values),
    )


class Repository:
    """One kind of records over the store's connection."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _all(self, kind: type[Record], query: str, *values: Any) -> list[Record]:
        """Return a record for each row of the query, whose columns are its fields."""
        return [kind(**row) for row in self._db.query(query, list(values))]


ChangeMark = tuple[float | str, ...]


class ChangeMarks(Repository):
    """Marks for cached results: two are equal only if nothing of their kind changed in between."""

    def of_corrections(self) -> tuple[int, int, str]:
        """Changes with each correction, right answer, settled case given back, and rule for truth.

        (Newest correction, newest right answer, the rest.) Answers are only ever appended.
        """
        corrections, golds, rules = self._read_mark(
            "SELECT (SELECT coalesce(max(rowid), 0) FROM corrections), "
            "(SELECT coalesce(max(rowid), 0) FROM golds), "
            "(SELECT coalesce(group_concat(coalesce(json_extract(payload, '$.people_each'), '') || "
            "coalesce(json_extract(payload, '$.truth_rule'), '')), '') FROM projects) "
            f"|| ';' || (SELECT count(*) FROM handlings WHERE {IS_REOPENED_SQL})"
        )
        return corrections, golds, rules

    def of_runs(self) -> tuple[float, float, float, float]:
        """Changes when a run ends, is resumed or scored again, or is imported after its end."""
        count, newest, total, rescored = self._read_mark(
            "SELECT count(*), coalesce(max(finished_at), 0.0), total(finished_at), "
            "(SELECT count(*) FROM learned WHERE kind = 'rescoring') FROM runs "
            "WHERE finished_at IS NOT NULL"
        )
        return count, newest, total, rescored

    def of_holdout(self) -> ChangeMark:
        """Changes when cases are assigned a side, which is permanent."""
        return self._read_mark("SELECT coalesce(max(rowid), 0) FROM holdout")

    def of_learned(self) -> ChangeMark:
        """Changes when something is learned or activated, including a version of the classifier."""
        return self._read_mark(
            "SELECT (SELECT coalesce(max(number), 0) FROM learned), "
            "(SELECT coalesce(max(number), 0) FROM learned_choices), "
            "(SELECT coalesce(max(number), 0) FROM activations), (SELECT count(*) FROM versions)"
        )

    def _read_mark(self, query: str) -> tuple[Any, ...]:
        return tuple(self._db.conn.execute(query).fetchone())
