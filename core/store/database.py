"""Opens the database safely and hands out its repositories.

A connection belongs to the thread that opened it, unless it is opened as shared. Code that reads
and then writes does so inside `Store.writing()`, which begins with BEGIN IMMEDIATE: with a deferred
transaction most of several concurrent claims would fail with "database is locked".
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from core.runtime.errors import ConfigError
from core.schema.records import LEARNED_FIELDS, Plan
from core.store.answered_verdicts import AnsweredVerdicts, QueueLists
from core.store.benchmarks import Benchmarks
from core.store.cases import Batches, Cases, Library, Readings
from core.store.corrections import Corrections, Golds
from core.store.ground_truth import GroundTruths
from core.store.ledger import Ledger, WebSearches
from core.store.migrations import migrations
from core.store.projects import Guidelines, Projects, PromptEdits, Rosters
from core.store.queue_order import QueueOrder
from core.store.review_queue import QueueEvents, ReviewQueue
from core.store.runs import Runs
from core.store.sqlite import ChangeMarks, Database
from core.store.versions import ClassifierVersions, LearnedArtefacts

DATABASE_FILE = "counterpoint.db"
BUSY_SECONDS = 15.0
# What rows are checked by. People's names, and what they wrote besides, stay in this home.
_IS_NEWEST = "number IN (SELECT max(number) FROM main.{} GROUP BY {}) AND "
COPIED_CONFIGURATION = (
    "settings SELECT * FROM main.settings WHERE name NOT LIKE 'note.%' "
    "OR name LIKE 'note.qualification.%'",
    # whether a failed model's verdicts count, without the words of who decided so
    "settings SELECT name, '\"yes\"' FROM main.settings WHERE name LIKE 'note.model_trusted.%' "
    "AND value != '\"\"'",
    "projects SELECT id, id, created_at, json_set(payload, '$.name', id, '$.description', '') "
    "FROM main.projects WHERE id IN (SELECT value FROM json_each(:projects))",
    "prompt_edits SELECT number, project_id, name, language, text, at, '' FROM main.prompt_edits "
    f"WHERE {_IS_NEWEST.format('prompt_edits', 'project_id, name, language')}"
    "project_id IN (SELECT value FROM json_each(:projects))",
    "rosters SELECT number, name, at, '', sheet FROM main.rosters "
    f"WHERE {_IS_NEWEST.format('rosters', 'name')}"
    "name IN (SELECT value FROM json_each(:rosters))",
    "learned SELECT number, kind, project_id, at, '', body, sha256 FROM main.learned "
    "WHERE number IN (SELECT value FROM json_each(:learned))",
)
APPLIED_MIGRATIONS_SQL = f"SELECT name FROM {migrations.migrations_table} WHERE migration_set = ?"


class Store:
    """All repositories over one connection; a context manager that closes it."""

    def __init__(self, db: Database, turn: threading.RLock | None = None) -> None:
        """Create all repositories; threads of one process wait for the lock `turn` to write."""
        self.db = db
        self._write_lock = turn or threading.RLock()
        self.projects = Projects(db)
        self.library = Library(db)
        self.readings = Readings(db)
        self.cases = Cases(db)
        self.runs = Runs(db)
        self.corrections = Corrections(db)
        self.batches = Batches(db)
        self.versions = ClassifierVersions(db)
        self.ledger = Ledger(db)
        self.rosters = Rosters(db)
        self.prompt_edits = PromptEdits(db)
        self.guidelines = Guidelines(db)
        self.queue = ReviewQueue(db)
        self.queue_lists = QueueLists(db)
        self.queue_order = QueueOrder(db)
        self.golds = Golds(db)
        self.truths = GroundTruths(db)
        self.queue_events = QueueEvents(db)
        self.learned = LearnedArtefacts(db)
        self.answered = AnsweredVerdicts(db)
        self.changes = ChangeMarks(db)
        self.web_searches = WebSearches(db)
        self.benchmarks = Benchmarks(db)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One IMMEDIATE transaction over several repositories.

        SQLite makes a waiting writer sleep up to a tenth of a second before it tries again; a lock
        hands over between threads of this process at once. A thread that has waited too long for
        the lock tries SQLite, which raises the error.
        """
        has_lock = self._write_lock.acquire(timeout=BUSY_SECONDS)
        try:
            with begin_immediate(self.db):
                yield
        finally:
            if has_lock:
                self._write_lock.release()

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """As `writing`, but without waiting for the disk: for steps that can be repeated.

        If the process is killed, nothing is lost. A power cut may undo what was noted since the
        last full write, but never a part of it, and never what a later full write depends on.
        """
        self.db.conn.execute("PRAGMA synchronous = NORMAL")
        try:
            with self.writing():
                yield
        finally:
            self.db.conn.execute("PRAGMA synchronous = FULL")

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """A savepoint inside `writing()`: if it fails, only this part is rolled back."""
        self.db.conn.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self.db.conn.execute("ROLLBACK TO part")
            self.db.conn.execute("RELEASE part")
            raise
        self.db.conn.execute("RELEASE part")

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot of the database: writes by others meanwhile are not seen."""
        self.db.conn.execute("BEGIN")
        try:
            yield
        finally:
            self.db.conn.rollback()

    def copy_configuration(
        self, folder: Path, project_ids: Collection[str], plans: Collection[Plan]
    ) -> list[Path]:
        """Copy what checks with these plans in these projects use to an empty folder.

        No case, file, name or answer of a person is copied, but for what a plan names, such as
        examples of marked words. Return the new database's files.
        """
        values = {
            "projects": list(project_ids),
            "rosters": [plan.sheet.name for plan in plans if plan.sheet],
            "learned": [getattr(plan, name) for plan in plans for name in LEARNED_FIELDS],
        }
        open_store(folder).close()
        self.db.conn.execute("ATTACH ? AS copy", [str(folder / DATABASE_FILE)])
        try:
            for copied in COPIED_CONFIGURATION:
                self.db.conn.execute(
                    f"INSERT INTO copy.{copied}",
                    {name: json.dumps(value) for name, value in values.items()},
                )
        finally:
            self.db.conn.execute("DETACH copy")
        return sorted(folder.glob(f"{DATABASE_FILE}*"))

    def close(self) -> None:
        """Close the connection."""
        self.db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextlib.contextmanager
def begin_immediate(db: Database) -> Iterator[None]:
    """BEGIN IMMEDIATE … COMMIT; joins a transaction that is already open."""
    if db.conn.in_transaction:
        yield
        return
    db.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.conn.rollback()
        raise
    db.conn.commit()


def open_store(home: Path | None, *, is_shared: bool = False) -> Store:
    """Open the store in `home` (created when missing); None gives an empty one in memory.

    A store with `is_shared` may be passed between threads if the caller ensures that only one uses
    it at a time. Raises ConfigError: the folder cannot be written, or the database is newer than
    this code.
    """
    try:
        if home is None:
            connection = sqlite3.connect(":memory:", isolation_level=None)
        else:
            home.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                home / DATABASE_FILE,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=not is_shared,
            )
        db = Database(connection)
        _prepare_connection(db)
    except (OSError, sqlite3.OperationalError) as error:
        raise ConfigError(
            f"Expected a folder that can be written at {home}, found: {error}. "
            "Choose another with --home or COUNTERPOINT_HOME."
        ) from error
    except sqlite3.DatabaseError as error:
        raise ConfigError(
            f"Expected a Counterpoint database in {home}, found another file: {error}. "
            "Move it away or choose another folder with --home."
        ) from error
    return Store(db, None if home is None else _get_lock(home))


@lru_cache(maxsize=64)
def _get_lock(home: Path) -> threading.RLock:
    return threading.RLock()


def _prepare_connection(db: Database) -> None:
    db.conn.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    db.conn.execute("PRAGMA foreign_keys = ON")
    if _is_current(db):
        return
    _switch_to_wal(db)
    with begin_immediate(db):
        if not _is_current(db):
            migrations.apply(db)


def _switch_to_wal(db: Database) -> None:
    """Switch to WAL; retry, as SQLite does not wait for another process creating the home."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.conn.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _is_current(db: Database) -> bool:
    """Return True if every migration is applied; refuse a database from newer code untouched."""
    known = {migration.name for migration in migrations._migrations}
    try:  # plain SQL for speed: this runs each time that a thread opens the store
        rows = db.conn.execute(APPLIED_MIGRATIONS_SQL, [migrations.name])
        applied = {name for (name,) in rows}
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        applied = set()
    if applied - known:
        raise ConfigError(
            "This database was written by a newer version of Counterpoint "
            f"(it knows {', '.join(sorted(applied - known))}); it was left untouched. "
            "Update Counterpoint, or choose another folder with --home."
        )
    return applied == known
