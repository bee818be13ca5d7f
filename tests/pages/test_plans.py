"""Pages of the queue find what they show by indexes: they read no long table from end to end."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st

from components.app import state
from core.review.adjudication import record_correction, record_gold, reopen_case
from core.schema.reviews import Correction, GoldAnswer
from core.store import Store, open_store
from core.store.database import DATABASE_FILE
from core.store.review_queue import ItemFilter, QueueRules
from tests.pages.conftest import OpenApp
from tests.pages.test_review_pages import say

# Tables with a row for each project, person, setting or version; a list that a query is given.
SMALL = {
    *("settings", "projects", "members", "people", "versions", "activations", "trainings"),
    "json_each",
}
KNOWN = {"_sqlite_migrations", "sqlite_master", "CONSTANT"}
WORK = ("SELECT", "WITH", "UPDATE", "INSERT", "DELETE")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every statement that stores opened by pages are asked, with its values in it."""
    found: set[str] = set()

    def open_traced(home: Path | None) -> Store:
        store = open_store(home)
        store.db.conn.set_trace_callback(found.add)
        return store

    monkeypatch.setattr(state, "open_store_in", open_traced)
    return found


def scans(home: Path, statements: set[str]) -> list[str]:
    """What reads a whole table that grows, and for which statement."""
    found = []
    connection = sqlite3.connect(home / DATABASE_FILE)
    for statement in sorted(statements):
        if not statement.lstrip().startswith(WORK):
            continue
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
            # How a subquery finds its rows, for instance those of one case, is a step of its own.
            read = re.match(r"SCAN (?!\(subquery-)(\S+)(.*)", step)
            # An index that tells whether anything has changed, or of what leads did.
            is_small = read and re.search(
                "INDEX (runs_ended|assignments_assigned|handlings_reopened)", read[2]
            )
            if read and read[1] not in SMALL | KNOWN and not is_small:
                found.append(f"{step}: {statement}")
    connection.close()
    return found


def test_a_query_without_an_index_would_be_found(home: Path, asked: set[str]) -> None:
    with state.open_store() as store:
        list(store.db.query("SELECT id FROM corrections WHERE author = ?", ["Mira"]))
        list(store.db.query("SELECT id FROM corrections WHERE case_id = ?", ["c"]))
    assert [line.split(":")[0] for line in scans(home, asked)] == ["SCAN corrections"]


@pytest.mark.parametrize("page", ["pending", "label", "adjudicate", "adjudicate_case"])
def test_a_page_of_the_queue_reads_no_table_from_end_to_end(
    app: OpenApp, run_id: str, home: Path, asked: set[str], page: str
) -> None:
    case_id = reviewed(home, run_id)
    at = app(f"pages/review/{page}.py", case=case_id)
    asked.clear()  # the first page was New check
    st.cache_resource.clear()
    assert not at.run().exception
    assert any("FROM items" in statement for statement in asked)
    assert scans(home, asked) == []


def reviewed(home: Path, run_id: str) -> str:
    """Two people differ on the run's case, which is in the queue; its id."""
    with open_store(home) as store:
        for person, label in (("Karl", "supported"), ("Ida", "hallucinated")):
            say(store, run_id, person, label)  # type: ignore[arg-type]
        run = store.runs.get(run_id, 9.0, 60.0)
        assert run is not None
        for person in ("Karl", "Ida"):
            with store.writing():
                store.queue.end(run.case_id, person, "submitted", 2.0)
        return run.case_id


def _claim(store: Store, case_id: str, project_id: str) -> None:
    for is_random in (True, False):
        wanted = ItemFilter(label="hallucinated", p_from=0.1, answers_from=1, differ=True)
        store.queue.claim(
            project_id, "Lea", QueueRules(9), time.time(), wanted, is_random=is_random
        )


def _answer(store: Store, case_id: str, project_id: str) -> None:
    case = store.cases.get(case_id)
    assert case is not None
    said = Correction("new", None, case_id, "Lea", 5.0, "unclear")
    record_correction(store, said, case)
    store.queue.end(case_id, "Lea", "submitted", 5.0)
    record_correction(
        store, Correction("undo", None, case_id, "Lea", 6.0, "unclear", withdraws="new"), case
    )
    store.queue.again(case_id, "Lea", QueueRules(9), 6.0)


def _settle(store: Store, case_id: str, project_id: str) -> None:
    case = store.cases.get(case_id)
    assert case is not None
    record_gold(store, GoldAnswer("gold", case_id, "Lea", 7.0, "adjudicated", "supported"), case)
    reopen_case(store, case_id, "Lea", 8.0)


@pytest.mark.parametrize("act", [_claim, _answer, _settle])
def test_what_buttons_do_reads_no_table_from_end_to_end(
    run_id: str, home: Path, asked: set[str], act: Callable[[Store, str, str], None]
) -> None:
    case_id = reviewed(home, run_id)
    with state.open_store() as store, store.writing():
        act(store, case_id, store.projects.all()[0].id)
    assert scans(home, asked) == []
