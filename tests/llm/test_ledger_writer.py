"""The books: what waits together is written together, and nobody's failure is another's loss."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from core.llm import metering as books
from core.llm.metering import Act, LedgerWriter
from core.store import Store, open_store
from tests.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.timing

MANY = 12
NORMAL, FULL = 1, 2  # as SQLite has it


class Refused(Exception):
    """What an act may raise."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path | None]:
    """The homes whose database was opened by the books, once for each transaction."""
    homes: list[Path | None] = []

    def opening(home: Path | None, *, is_shared: bool = False) -> Store:
        homes.append(home)
        return open_store(home, is_shared=is_shared)

    monkeypatch.setattr(books, "open_store", opening)
    return homes


def noting(number: int) -> Act[int]:
    """Writes a setting of that number."""

    def act(store: Store) -> int:
        store.projects.save_note(f"note {number}", str(number))
        return number

    return act


def noted(home: Path) -> set[int]:
    with open_store(home) as store:
        return {n for n in range(MANY) if store.projects.note(f"note {n}") == str(n)}


def together(home: Path, acts: list[Act[int]]) -> list[Future[int]]:
    """The acts, all of which wait while another is written."""
    ledger, begun, goes_on = LedgerWriter(home), threading.Event(), threading.Event()

    def first(store: Store) -> None:
        begun.set()
        assert goes_on.wait(PATIENCE_SECONDS)

    with ThreadPoolExecutor(len(acts) + 1) as pool:
        pool.submit(ledger.write, first)
        assert begun.wait(PATIENCE_SECONDS)
        asked = [pool.submit(ledger.write, act) for act in acts]
        wait_for(lambda: len(ledger._waiting) == len(acts), "all acts")
        goes_on.set()
    return asked


def test_what_waits_together_is_written_in_one_transaction(
    home: Path, opened: list[Path | None]
) -> None:
    done = together(home, [noting(n) for n in range(MANY)])
    assert [each.result() for each in done] == list(range(MANY))
    assert noted(home) == set(range(MANY))
    assert opened == [home, home], "the first one's, and that of all others"


def test_what_is_written_within_a_call_shares_one_connection(
    home: Path, opened: list[Path | None]
) -> None:
    """From several threads too; whoever leaves last closes it, and the next one opens another."""
    ledger, inside, goes_on = LedgerWriter(home), threading.Barrier(MANY + 1), threading.Event()

    def call(number: int) -> None:
        with ledger.kept_open():
            ledger.write(noting(number))
            inside.wait(PATIENCE_SECONDS)
            assert goes_on.wait(PATIENCE_SECONDS)
            ledger.write(noting(number), is_note=True)

    with ThreadPoolExecutor(MANY) as pool:
        calls = [pool.submit(call, number) for number in range(MANY)]
        inside.wait(PATIENCE_SECONDS)
        assert noted(home) == set(range(MANY)), "others see what is written, while it is kept open"
        store = ledger._kept
        goes_on.set()
    assert [each.result() for each in calls] == [None] * MANY
    assert opened == [home]
    assert store is not None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.db.conn.execute("SELECT 1")
    ledger.write(noting(1))
    assert opened == [home, home]


def test_a_connection_that_failed_is_not_kept(home: Path, opened: list[Path | None]) -> None:
    def broken(store: Store) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    ledger = LedgerWriter(home)
    with ledger.kept_open():
        with pytest.raises(sqlite3.OperationalError, match="disk I/O"):
            ledger.write(broken)
        assert ledger.write(noting(1)) == 1
    assert noted(home) == {1}
    assert opened == [home, home]


def test_what_was_written_is_told_though_its_connection_cannot_be_closed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Store) -> None:
        raise sqlite3.OperationalError("cannot be closed")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "close", broken)
        told = together(home, [noting(number) for number in range(MANY)])
        results = [one.exception(20) or one.result() for one in told]
    kept = [result for result in results if not isinstance(result, sqlite3.OperationalError)]
    assert len(kept) == MANY - 1  # but for whoever closed it
    assert set(kept) <= set(range(MANY))


def test_what_one_act_raises_is_its_own_loss_alone(home: Path) -> None:
    def refused(store: Store) -> int:
        noting(3)(store)
        raise Refused

    done = together(home, [refused if n == 3 else noting(n) for n in range(MANY)])
    assert isinstance(done[3].exception(), Refused)
    assert all(each.exception() is None for each in done if each is not done[3])
    assert noted(home) == set(range(MANY)) - {3}, "what it wrote before is taken back"


def test_an_error_of_the_database_is_heard_by_all_whose_writes_are_lost(home: Path) -> None:
    def broken(store: Store) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    done = together(home, [broken if n == 5 else noting(n) for n in range(MANY)])
    for each in done:
        with pytest.raises(sqlite3.OperationalError, match="disk is full"):
            each.result()
    assert noted(home) == set()
    assert LedgerWriter(home).write(noting(1)) == 1, "the next one is written again"


def test_what_is_only_noted_does_not_wait_for_the_disk(home: Path) -> None:
    def safety(store: Store) -> int:
        (level,) = store.db.conn.execute("PRAGMA synchronous").fetchone()
        return int(level)

    ledger = LedgerWriter(home)
    kinds = [ledger.write(safety, is_note=is_note) for is_note in (False, True, False)]
    assert kinds == [FULL, NORMAL, FULL]
