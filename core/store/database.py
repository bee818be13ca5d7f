"""Opens the database safely and hands out its repositories.

A connection belongs to the thread that opened it, unless it is opened to be shared. What reads and
then writes does so inside `Store.writing()`, which begins with BEGIN IMMEDIATE: a deferred
transaction would lose most of several concurrent claims to "database is locked".
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from core.runtime.errors import ConfigError
from core.store.answered import AnsweredVerdicts, QueueLists
from core.store.cases import Batches, Cases, Library, Readings
from core.store.corrections import Corrections, Golds
from core.store.ledger import Ledger, WebSearches
from core.store.migrations import migrations
from core.store.projects import Projects, PromptEdits, Rosters
from core.store.queue import Queue, QueueEvents, QueueOrder
from core.store.runs import Runs
from core.store.sqlite import Changes, Database
from core.store.versions import LearnedThings, Versions

DATABASE = "counterpoint.db"
BUSY_SECONDS = 15.0
APPLIED = f"SELECT name FROM {migrations.migrations_table} WHERE migration_set = ?"


class Store:
    """All repositories over one connection; a context manager that closes it."""

    def __init__(self, db: Database, turn: threading.RLock | None = None) -> None:
        """`turn` is taken by who writes: threads of one process wait there, not in SQLite."""
        self.db = db
        self._turn = turn or threading.RLock()
        self.projects = Projects(db)
        self.library = Library(db)
        self.readings = Readings(db)
        self.cases = Cases(db)
        self.runs = Runs(db)
        self.corrections = Corrections(db)
        self.batches = Batches(db)
        self.versions = Versions(db)
        self.ledger = Ledger(db)
        self.rosters = Rosters(db)
        self.prompt_edits = PromptEdits(db)
        self.queue = Queue(db)
        self.queue_lists = QueueLists(db)
        self.queue_order = QueueOrder(db)
        self.golds = Golds(db)
        self.handlings = QueueEvents(db)
        self.learned = LearnedThings(db)
        self.answered = AnsweredVerdicts(db)
        self.changes = Changes(db)
        self.web_searches = WebSearches(db)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One IMMEDIATE transaction over several repositories.

        SQLite makes a writer sleep up to a tenth of a second and look again; threads of this
        process hand the turn on at once. Whoever has waited too long asks SQLite, which says so.
        """
        has_turn = self._turn.acquire(timeout=BUSY_SECONDS)
        try:
            with immediate(self.db):
                yield
        finally:
            if has_turn:
                self._turn.release()

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """As `writing`, but without waiting for the disk: for what can be done again.

        A process that is killed loses nothing. A power cut may take back what was noted since
        anybody last wrote, never a part of it: what follows is on the disk only with what it is of.
        """
        self.db.conn.execute("PRAGMA synchronous = NORMAL")
        try:
            with self.writing():
                yield
        finally:
            self.db.conn.execute("PRAGMA synchronous = FULL")

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """A part of a transaction that is taken back alone when it fails; inside `writing()`."""
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
        """One view of the database: what others write or drop meanwhile is not seen."""
        self.db.conn.execute("BEGIN")
        try:
            yield
        finally:
            self.db.conn.rollback()

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
def immediate(db: Database) -> Iterator[None]:
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
    """The store in `home` (made when missing); None gives an empty one in memory.

    One that `is_shared` may be handed from thread to thread, by whoever sees to it that only one of
    them uses it at a time. Raises ConfigError: the folder cannot be written, or the database is
    newer than this code.
    """
    try:
        if home is None:
            connection = sqlite3.connect(":memory:", isolation_level=None)
        else:
            home.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                home / DATABASE,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=not is_shared,
            )
        db = Database(connection)
        _prepare(db)
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
    return Store(db, None if home is None else _turn_of(home))


@lru_cache(maxsize=64)
def _turn_of(home: Path) -> threading.RLock:
    return threading.RLock()


def _prepare(db: Database) -> None:
    db.conn.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    db.conn.execute("PRAGMA foreign_keys = ON")
    if _is_current(db):
        return
    _write_ahead(db)
    with immediate(db):
        if not _is_current(db):
            migrations.apply(db)


def _write_ahead(db: Database) -> None:
    """Switch to WAL; here SQLite asks nobody to wait for another who is just making the home."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.conn.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _is_current(db: Database) -> bool:
    """True when every migration is applied; refuses a database from newer code untouched."""
    known = {migration.name for migration in migrations._migrations}
    try:  # asked directly: this is looked up each time that a thread opens the store
        rows = db.conn.execute(APPLIED, [migrations.name])
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
