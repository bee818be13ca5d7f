"""Files are read and indexed in the background; nothing that was asked for is swallowed."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from core.baseline.encoder import load_multilingual_encoder
from core.documents import isolation, library, retrieval
from core.documents.library import discard_reading, store_file
from core.pipeline.jobs import BackgroundReader
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.runtime.errors import ConfigError
from core.schema.records import Source
from core.store import open_store
from tests.waiting import wait_for

pytestmark = [pytest.mark.timing, pytest.mark.usefixtures("without_weights")]

PATIENCE = 30.0


def stored(home: Path, name: str, data: bytes) -> str:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        return store_file(store, home, project.id, name, data, "Mira", 1.0, Settings()).id


def is_ready(home: Path, source_id: str) -> bool:
    with open_store(home) as store:
        return store.readings.has_index(source_id, load_multilingual_encoder().id)


class Reader:
    """Counts what is read, and can hold a reading up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.gate = threading.Event()
        self.gate.set()
        read = isolation.read_source

        def counted(*arguments: Any) -> Source:
            self.count += 1
            assert self.gate.wait(PATIENCE)
            return read(*arguments)

        monkeypatch.setattr(library, "read_source", counted)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """What the library reads files with, watched."""
    return Reader(monkeypatch)


def test_a_file_is_read_and_indexed(home: Path, reader: Reader) -> None:
    source = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    prereading.submit(source, "a.txt")
    wait_for(lambda: prereading.note(source) == "")
    assert is_ready(home, source)
    assert reader.count == 1


def test_its_thread_ends_with_the_work_and_does_not_hold_up_the_end_of_the_process(
    home: Path, reader: Reader
) -> None:
    source = stored(home, "a.txt", b"Cats sleep.")
    reader.gate.clear()
    BackgroundReader(home).submit(source, "a.txt")
    wait_for(lambda: reader.count, "the reading")
    (thread,) = [each for each in threading.enumerate() if each.name.startswith("prereading")]
    assert thread.daemon
    reader.gate.set()
    wait_for(lambda: not thread.is_alive(), "the end of the thread")


def test_it_says_what_it_does_meanwhile(home: Path, reader: Reader) -> None:
    first, second = stored(home, "a.txt", b"Cats sleep."), stored(home, "b.txt", b"Dogs bark.")
    prereading = BackgroundReader(home)
    reader.gate.clear()
    prereading.submit(first, "a.txt")
    prereading.submit(second, "b.txt")
    wait_for(lambda: prereading.note(first) == "reading")
    assert prereading.note(second) == "waiting"
    assert prereading.note("c") == ""
    reader.gate.set()
    wait_for(lambda: is_ready(home, second))


def test_a_file_that_is_under_way_is_not_read_twice(home: Path, reader: Reader) -> None:
    """A page that shows it asks again and again."""
    source = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    reader.gate.clear()
    prereading.submit(source, "a.txt")
    wait_for(lambda: reader.count == 1)
    prereading.submit(source, "a.txt")
    reader.gate.set()
    wait_for(lambda: prereading.note(source) == "")
    assert reader.count == 1


def test_read_again_during_a_read_is_not_swallowed(home: Path, reader: Reader) -> None:
    source = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    reader.gate.clear()
    prereading.submit(source, "a.txt")
    wait_for(lambda: reader.count == 1)
    with open_store(home) as store:
        discard_reading(store, source)
    prereading.submit(source, "a.txt", anew=True)
    reader.gate.set()
    wait_for(lambda: prereading.note(source) == "")
    assert reader.count == 2
    assert is_ready(home, source)


def test_read_again_reads_what_is_ready_anew(home: Path, reader: Reader) -> None:
    source = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    for count in (1, 2):
        prereading.submit(source, "a.txt", anew=True)
        wait_for(lambda: prereading.note(source) == "")
        assert reader.count == count
    assert is_ready(home, source)


def test_a_refused_file_costs_no_worker(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = stored(home, "bad.pdf", b"%PDF-1.7 and no more")
    good = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    with caplog.at_level(logging.INFO):
        prereading.submit(bad, "bad.pdf")
        prereading.submit(good, "a.txt")
        wait_for(lambda: is_ready(home, good))
    assert "bad.pdf was refused" in caplog.text
    with open_store(home) as store:
        entries = {entry.id: entry for entry in store.library.all(store.projects.all()[0].id)}
    assert (entries[bad].status, entries[good].status) == ("refused", "ready")
    assert entries[bad].problem


@pytest.mark.parametrize("error", [RuntimeError("a bug"), ConfigError("The setup is wrong.")])
def test_what_fails_before_it_is_read_is_refused_and_not_tried_for_ever(
    home: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: Any) -> Source:
        raise error

    monkeypatch.setattr(library, "ensure_read", broken)
    source = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    prereading.submit(source, "a.txt")
    wait_for(lambda: prereading.note(source) == "")
    with open_store(home) as store:
        entry = store.library.all(store.projects.all()[0].id)[0]
    assert entry.status == "refused"
    assert "log has the details" in entry.problem or entry.problem == "The setup is wrong."


def test_a_file_that_was_read_stays_ready_though_its_index_failed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("a bug")

    monkeypatch.setattr(retrieval, "ensure_index", broken)
    source = stored(home, "a.txt", b"Cats sleep.")
    prereading = BackgroundReader(home)
    prereading.submit(source, "a.txt")
    wait_for(lambda: prereading.note(source) == "")
    with open_store(home) as store:
        assert store.library.all(store.projects.all()[0].id)[0].status == "ready"
