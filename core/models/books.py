"""Writes what several threads want in the ledger at the same moment, in one transaction.

Each of them alone would open the database anew and wait until the disk has its row, one behind the
other: calls that could go out together would leave one by one.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from core.store import Store, open_store

T = TypeVar("T")
Act = Callable[[Store], T]


@dataclass
class _Entry(Generic[T]):
    """What one thread wants written, and what came of it once it `is_done`."""

    act: Act[T]
    is_note: bool
    is_done: bool = False
    result: T | None = None
    error: BaseException | None = None


class Books:
    """The ledger of a home, for the threads of one run."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[_Entry[Any]] = []
        self._keepers = 0
        self._kept: Store | None = None

    @contextlib.contextmanager
    def kept_open(self) -> Iterator[None]:
        """Around several writes: they share one connection, whichever threads they come from."""
        with self._lock:
            self._keepers += 1
        try:
            yield
        finally:
            with self._lock:
                self._keepers -= 1
                is_last = not self._keepers
            if is_last:
                with self._turn:
                    self._let_go()

    def write(self, act: Act[T]) -> T:
        """What `act` returns, once what it wrote is on the disk; it may run in another thread.

        It is all written or none of it. What it raises is raised here and is no other act's loss,
        but for errors of the database, which every act of the transaction gets to hear.
        """
        return self._written(_Entry(act, is_note=False))

    def note(self, act: Act[T]) -> T:
        """As `write`, without waiting for the disk (`Store.noting`)."""
        return self._written(_Entry(act, is_note=True))

    def _written(self, entry: _Entry[T]) -> T:
        with self._lock:
            self._waiting.append(entry)
        with self._turn:  # whoever comes first writes for all that wait by then
            if not entry.is_done:
                self._write_waiting()
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]  # done, so it is what the act returned

    def _write_waiting(self) -> None:
        with self._lock:
            entries, self._waiting = self._waiting, []
        try:
            store = self._kept = self._kept or open_store(self._home, is_shared=True)
            with _turn_of(entries, store):
                for entry in entries:
                    _carry_out(entry, store)
        except BaseException as error:  # noqa: BLE001 - handed to those whose writes are lost
            for entry in entries:
                entry.error = error
            self._let_go(is_broken=True)
        else:
            self._let_go()
        finally:  # also where a connection cannot even be closed: others wait for theirs
            for entry in entries:
                entry.is_done = True

    def _let_go(self, *, is_broken: bool = False) -> None:
        """Close the connection unless others go on with it; by whoever has the turn."""
        with self._lock:
            if self._kept is None or (self._keepers and not is_broken):
                return
            store, self._kept = self._kept, None
        store.close()


def _turn_of(entries: Sequence[_Entry[Any]], store: Store) -> AbstractContextManager[None]:
    """The transaction for all of them, on the disk when it ends unless none of them minds."""
    return store.noting() if all(entry.is_note for entry in entries) else store.writing()


def _carry_out(entry: _Entry[T], store: Store) -> None:
    """One act in a part of the transaction that is taken back alone where it fails."""
    try:
        with store.part():
            entry.result = entry.act(store)
    except sqlite3.Error:
        raise  # the whole transaction may be gone, and with it what was written before
    except BaseException as error:  # noqa: BLE001 - carried over to the thread that asked
        entry.error = error
