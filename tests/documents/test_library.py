"""Files are stored once, read once, and go when nobody holds them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.documents import isolation, library
from core.documents.library import (
    discard_reading,
    ensure_read,
    load_file_bytes,
    remove_file,
    store_file,
)
from core.documents.readers import READER_VERSION
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import InputError, Stopped
from core.schema.records import LibraryEntry, Project, Source
from core.store import Store, open_store
from tests.documents.builders import pdf
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

TEXT = b"The museum had fifty thousand visitors in 2023."
ID = hashlib.sha256(TEXT).hexdigest()
PATIENCE = 30.0


@pytest.fixture
def shelf(home: Path) -> Iterator[Store]:
    """A store on disk with the projects `p` and `q`."""
    with open_store(home) as store:
        for name in ("p", "q"):
            store.projects.save(Project(name, name, 1.0))
        yield store


def put(
    store: Store, home: Path, data: bytes = TEXT, name: str = "a.txt", project: str = "p"
) -> LibraryEntry:
    return store_file(store, home, project, name, data, "ann", 5.0, Settings())


def read(
    store: Store, home: Path, source_id: str = ID, name: str = "a.txt"
) -> tuple[Source, bool, float]:
    return ensure_read(
        store, home, source_id, name, Settings(), StopSignal(), lambda *_: None, time.time
    )


def status(store: Store, project: str = "p", source_id: str = ID) -> str:
    entry = store.library.get(project, source_id)
    return entry.status if entry else "gone"


def test_a_file_is_stored_under_its_hash_and_waits(shelf: Store, home: Path) -> None:
    entry = put(shelf, home)
    assert (entry.id, entry.status, entry.kind, entry.size) == (ID, "waiting", "text", len(TEXT))
    assert (entry.added_by, entry.added_at) == ("ann", 5.0)
    assert (home / "documents" / ID).read_bytes() == TEXT
    assert load_file_bytes(home, ID) == TEXT
    assert [path.name for path in (home / "documents").iterdir()] == [ID]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"", "is empty"),
        ("a.exe", b"MZ\x00\x00", "a Windows program"),
        ("a.txt", b"x" * (1024 * 1024 + 1), "is 1.0 MB large; at most 1 MB are read"),
    ],
)
def test_refused_files_are_not_stored(
    shelf: Store, home: Path, name: str, data: bytes, words: str
) -> None:
    settings = Settings().with_value("file_megabytes", 1)
    with pytest.raises(InputError, match=words):
        store_file(shelf, home, "p", name, data, "ann", 5.0, settings)
    assert shelf.library.all("p") == []
    assert not (home / "documents").exists()


def test_two_files_of_one_name_have_different_names(shelf: Store, home: Path) -> None:
    first, second = (put(shelf, home, data, "plan.txt") for data in (b"25 min", b"55 min"))
    put(shelf, home, b"other project", "plan.txt", project="q")
    bare = [put(shelf, home, data, "README") for data in (b"one", b"two", b"three")]
    assert [entry.name for entry in (first, second)] == ["plan.txt", "plan [2].txt"]
    assert [entry.name for entry in bare] == ["README", "README [2]", "README [3]"]
    assert [shelf.library.name_of("p", e.id) for e in (first, second)] == [first.name, second.name]
    names = {"README", "README [2]", "README [3]", "plan.txt", "plan [2].txt"}
    assert {entry.name for entry in shelf.library.all("p")} == names
    assert [entry.name for entry in shelf.library.all("q")] == ["plan.txt"]


def test_a_shared_name_finds_the_newest_file(shelf: Store, home: Path) -> None:
    first, second = (put(shelf, home, data, "plan.txt") for data in (b"25 min", b"55 min"))
    assert {name: entry.id for name, entry in shelf.library.by_name("p").items()} == {
        "plan.txt": second.id,
        "plan [2].txt": second.id,
    }
    remove_file(shelf, home, "p", second.id, 6.0)
    assert shelf.library.by_name("p")["plan.txt"].id == first.id
    assert put(shelf, home, b"65 min", "plan.txt").name == "plan [2].txt"


def test_a_name_alone_again_needs_no_number(shelf: Store, home: Path) -> None:
    first, second = (put(shelf, home, data, "plan.txt") for data in (b"25 min", b"55 min"))
    remove_file(shelf, home, "p", first.id, 6.0)
    assert shelf.library.name_of("p", second.id) == "plan.txt"


def test_reading_is_done_once(shelf: Store, home: Path) -> None:
    put(shelf, home)
    source, reused, seconds = read(shelf, home)
    assert (source.text, source.language, reused) == (TEXT.decode(), "en", False)
    assert seconds > 0
    assert status(shelf) == "ready"
    assert read(shelf, home, name="other.txt") == (
        Source(**{**vars(source), "name": "other.txt"}),
        True,
        0.0,
    )
    assert put(shelf, home, project="q").status == "ready"


def test_another_readers_reading_is_made_anew(
    shelf: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shelf, home)
    read(shelf, home)
    monkeypatch.setattr(library, "READER_VERSION", READER_VERSION + "-next")
    assert read(shelf, home)[1] is False
    assert read(shelf, home)[1] is True


def test_the_same_content_under_a_name_of_another_kind_is_read_anew(
    shelf: Store, home: Path
) -> None:
    data = b"Region,Visitors\nNorth,400\n"
    entry = put(shelf, home, data)
    assert read(shelf, home, entry.id)[0].text == data.decode()
    assert put(shelf, home, data, "a.csv").status == "waiting"
    assert read(shelf, home, entry.id, "a.csv")[0].text == "Region North, Visitors: 400"


def test_a_file_that_cannot_be_read_says_so_in_the_library(shelf: Store, home: Path) -> None:
    data = pdf("One", "Two")
    entry = put(shelf, home, data[: len(data) // 2], "a.pdf")
    with pytest.raises(InputError, match="could not be read as a PDF"):
        read(shelf, home, entry.id, "a.pdf")
    kept = shelf.library.get("p", entry.id)
    assert kept
    assert (kept.status, kept.problem.startswith("“a.pdf” could not be read")) == ("refused", True)


def test_a_stop_leaves_the_file_waiting(shelf: Store, home: Path) -> None:
    put(shelf, home)
    stop = StopSignal()
    stop.set()
    with pytest.raises(Stopped):
        ensure_read(shelf, home, ID, "a.txt", Settings(), stop, lambda *_: None, time.time)
    assert status(shelf) == "waiting"


def test_an_unexpected_failure_refuses_the_file_and_is_not_tried_for_ever(
    shelf: Store, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> Source:
        raise RuntimeError("a bug in a reader")

    monkeypatch.setattr(library, "read_source", broken)
    put(shelf, home)
    with pytest.raises(InputError, match="could not be read: an unexpected error"):
        read(shelf, home)
    kept = shelf.library.get("p", ID)
    assert kept
    assert (kept.status, "Read again" in kept.problem) == ("refused", True)
    assert "a bug in a reader" in caplog.text


def test_a_reading_that_cannot_be_kept_refuses_the_file(
    shelf: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unkept(*_: object, **__: object) -> None:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    monkeypatch.setattr(shelf.readings, "save", unkept)
    put(shelf, home)
    with pytest.raises(InputError, match="an unexpected error"):
        read(shelf, home)
    assert status(shelf) == "refused"


def test_bytes_and_reading_go_with_the_last_holder(shelf: Store, home: Path) -> None:
    put(shelf, home)
    put(shelf, home, project="q")
    read(shelf, home)
    remove_file(shelf, home, "p", ID, 9.0)
    assert (status(shelf), status(shelf, "q")) == ("gone", "ready")
    assert load_file_bytes(home, ID) == TEXT
    remove_file(shelf, home, "q", ID, 9.0)
    assert shelf.readings.get(ID, "a.txt") is None
    with pytest.raises(InputError, match="not in the library any more"):
        load_file_bytes(home, ID)
    with pytest.raises(InputError, match="not in the library any more"):
        read(shelf, home)
    assert put(shelf, home).status == "waiting"
    assert read(shelf, home)[1] is False


def test_reindexing_reads_anew(shelf: Store, home: Path) -> None:
    put(shelf, home)
    read(shelf, home)
    discard_reading(shelf, ID)
    assert status(shelf) == "waiting"
    assert read(shelf, home)[1] is False


@pytest.mark.parametrize("source_id", ["", "../../etc/passwd", "x" * 64, ID + "/.."])
def test_only_hashes_name_files(home: Path, source_id: str) -> None:
    with pytest.raises(InputError, match="Expected the id of a stored file"):
        load_file_bytes(home, source_id)


def test_many_at_once_read_one_content_once(
    shelf: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = isolation.read_source

    def counted(*arguments: object) -> Source:
        calls.append("read")
        wait_for(lambda: library._turns[ID].wanted == 6, "the other readers")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(library, "read_source", counted)
    put(shelf, home)
    found: list[tuple[str, bool]] = []

    def work() -> None:
        with open_store(home) as store:
            source, reused, _ = read(store, home)
            found.append((source.text, reused))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert sorted(reused for _, reused in found) == [False, *[True] * 5]
    assert {text for text, _ in found} == {TEXT.decode()}
    assert library._turns == {}


def test_another_process_that_was_quicker_wins(
    shelf: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shelf, home)
    real = isolation.read_source

    def overtaken(*arguments: object) -> Source:
        source = real(*arguments)  # type: ignore[arg-type]
        with open_store(home) as other:
            other.readings.save(source, reader=READER_VERSION, seconds=1, now=1)
        return source

    monkeypatch.setattr(library, "read_source", overtaken)
    assert read(shelf, home)[1] is True
    assert status(shelf) == "ready"


def test_many_at_once_store_one_content(home: Path) -> None:
    with open_store(home) as store:
        for number in range(6):
            store.projects.save(Project(f"p{number}", f"p{number}", 1.0))

    def work(number: int) -> None:
        with open_store(home) as store:
            put(store, home, project=f"p{number}")
            remove_file(store, home, f"p{number}", ID, 9.0)
            put(store, home, project=f"p{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_file_bytes(home, ID) == TEXT
    with open_store(home) as store:
        assert all(status(store, f"p{number}") == "waiting" for number in range(6))
