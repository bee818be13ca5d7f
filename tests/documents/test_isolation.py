"""A file that hangs, kills or floods its reader costs the person a sentence, never the app."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.documents import isolation
from core.documents.isolation import WorkerTask, read_source, worker_command
from core.documents.readers import FILE_TYPES, detect_kind
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT, Settings
from core.runtime.errors import InputError, Stopped
from core.schema.records import Source, SourceKind
from tests.documents.builders import bar_chart, needs_noto, pdf, png, scan, word

pytestmark = pytest.mark.timing

ID = "b" * 64
ROOT = str(PROJECT_ROOT)
OPEN_FILES = Path("/proc/self/fd")


def silent(_done: int, _total: int, _note: str) -> None:
    """Nobody listens."""


def read(name: str, data: bytes, settings: Settings | None = None) -> Source:
    kind = detect_kind(name, data)
    return read_source(ID, name, data, kind, settings or Settings(), StopSignal(), silent)


def task(code: str, seconds: float = 20, data: bytes = b"data") -> WorkerTask:
    """A task whose child runs this Python in place of the worker."""
    return WorkerTask("read", "a.pdf", data, {}, seconds, argv=[sys.executable, "-I", "-c", code])


def answer_of(code: str, seconds: float = 20, data: bytes = b"data") -> dict[str, object]:
    return task(code, seconds, data).run(StopSignal(), silent)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", pdf("The museum had fifty thousand visitors.")),
        ("a.docx", word(lambda d: d.add_paragraph("The museum had fifty thousand visitors."))),
        ("a.html", b"<p>The museum had fifty thousand visitors.</p>"),
        ("a.txt", b"The museum had fifty thousand visitors."),
        ("a.csv", b"The museum had fifty thousand visitors."),
    ],
)
def test_every_kind_comes_back_as_a_source(name: str, data: bytes) -> None:
    source = read(name, data)
    assert (source.id, source.name, source.kind) == (ID, name, detect_kind(name, data))
    assert source.text == "The museum had fifty thousand visitors."
    assert source.language == "en"


def test_every_kind_has_a_reader() -> None:
    kinds = {"text", "markdown", "pdf", "docx", "html", "mail", "web archive", "table", "image"}
    assert {one.kind for one in FILE_TYPES} == kinds


def test_it_works_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a file in the folder was imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert read("a.html", b"<p>Hello</p>").text == "Hello"


def test_offsets_survive_the_way_from_the_child() -> None:
    text = "Emoji \U0001f600, cafe\u0301, 文字, \u05d0, \U0001d6fc."
    source = read("a.html", f"<p>{text}</p>".encode())
    assert source.text == text


def test_progress_arrives_page_by_page() -> None:
    told: list[tuple[int, int, str]] = []
    data = pdf("One", "Two", "Three")
    read_source(ID, "a.pdf", data, "pdf", Settings(), StopSignal(), lambda *what: told.append(what))
    assert told == [(number, 3, f"page {number + 1} of 3") for number in range(3)]


def test_refusals_come_back_as_they_were_said() -> None:
    with pytest.raises(InputError, match=r"“a\.pdf” has 3 pages; at most 2 are read"):
        read("a.pdf", pdf("1", "2", "3"), replace(Settings(), pages=2))


def test_a_hang_ends_at_the_time_limit() -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"“a\.pdf” could not be read within 1 seconds; split it"):
        answer_of("import time; time.sleep(60)", seconds=1)
    assert time.monotonic() - began < 3


def test_a_hang_before_the_file_is_taken_ends_too() -> None:
    with pytest.raises(InputError, match="could not be read within 1 seconds"):
        answer_of("import time; time.sleep(60)", seconds=1, data=b"x" * 5_000_000)


@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "code -11"),
        ("import os; os.abort()", "code -6"),
        ("raise SystemExit(3)", "code 3"),
        ("print('not JSON')", "ended with code"),
        ("print('[]' * 3)", "ended with code"),
        ("import sys; sys.stdin.buffer.read(10); print('1' * 10_000)", "ended with code"),
    ],
)
def test_a_child_that_dies_is_a_sentence(
    code: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InputError, match="its reader broke off; the file may be") as caught:
        answer_of(code)
    assert logged in caplog.text
    assert str(caught.value).startswith("“a.pdf” could not be read")
    assert "\n" not in str(caught.value)


def test_answers_longer_than_allowed_are_not_taken() -> None:
    flood = replace(task("print('{\"source\": \"' + 'x' * 5_000_000 + '\"}')"), longest=1_000_000)
    with pytest.raises(InputError, match="its reader broke off"):
        flood.run(StopSignal(), silent)


def test_stop_ends_reading_within_half_a_second() -> None:
    stop, ended = StopSignal(), []
    told = threading.Event()
    code = 'import time; print(\'{"progress": [0, 1, ""]}\', flush=True); time.sleep(60)'

    def read_on() -> None:
        with pytest.raises(Stopped):
            task(code).run(stop, lambda *_: told.set())
        ended.append(time.monotonic())

    thread = threading.Thread(target=read_on)
    thread.start()
    assert told.wait(20)
    began = time.monotonic()
    stop.set()
    thread.join(5)
    assert ended[0] - began < 0.5


def test_a_stop_keeps_nothing_of_a_file_that_was_read() -> None:
    stop = StopSignal()
    assert task("print('{}')").run(stop, silent) == {}
    with pytest.raises(InputError):
        task("raise SystemExit(3)").run(stop, silent)
    assert stop._callbacks == []


def test_a_stop_before_reading_is_obeyed() -> None:
    stop = StopSignal()
    stop.set()
    kinds: tuple[SourceKind, ...] = ("text", "pdf")
    for kind in kinds:
        with pytest.raises(Stopped):
            read_source(ID, "a", b"a", kind, Settings(), stop, silent)


def test_waiting_for_a_turn_is_ended_by_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = StopSignal()

    class Taken(threading.Semaphore):
        """Somebody stops the run while it waits for the first time."""

        def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
            stop.set()
            return super().acquire(timeout=0)

    monkeypatch.setattr(isolation, "_slots", Taken(0))
    with pytest.raises(Stopped):
        read_source(ID, "a.pdf", pdf("One"), "pdf", Settings(), stop, silent)


def test_an_error_of_the_listener_leaves_no_child_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def noted(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **named))
        return started[-1]

    def fail(_done: int, _total: int, _note: str) -> None:
        raise LookupError("gone")

    watched = SimpleNamespace(**vars(subprocess) | {"Popen": noted})
    monkeypatch.setattr(isolation, "subprocess", watched)
    code = 'import time; print(\'{"progress": [0, 1, ""]}\', flush=True); time.sleep(60)'
    with pytest.raises(LookupError):
        task(code).run(StopSignal(), fail)
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_the_child_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code = "import json, os; print(json.dumps({'env': dict(os.environ)}))"
    assert "OPENAI_API_KEY" not in str(answer_of(code))


def worker(*, memory: int = 1 << 32) -> subprocess.Popen[bytes]:
    """A real worker that was told that 4 bytes of text follow."""
    process = subprocess.Popen(
        worker_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    header = {
        "command": "read",
        "name": "a.txt",
        "size": 4,
        "about": {"source_id": ID, "kind": "text", "settings": Settings().as_dict()},
        "seconds": 20,
        "memory": memory,
        "too_large": "Too large.",
    }
    assert process.stdin
    process.stdin.write(json.dumps(header).encode() + b"\n")
    process.stdin.flush()
    return process


def test_the_child_ends_when_its_parent_is_gone() -> None:
    process = worker()
    assert process.stdin
    process.stdin.close()  # As the system does when the parent dies.
    assert process.wait(5) == 1
    assert process.stdout
    process.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_memory_is_limited() -> None:
    code = (
        f"import sys; sys.path.insert(0, {ROOT!r}); from core.documents.isolation import _limit; "
        "_limit(1 << 29, 20); bytearray(1 << 30)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"MemoryError" in done.stderr


def test_chatter_of_libraries_is_no_answer() -> None:
    code = (
        f"import os, sys; sys.path.insert(0, {ROOT!r}); "
        "from core.documents.isolation import _own_stdout; answers = _own_stdout(); "
        "print('chatter'); os.write(1, b'more'); "
        "answers.write(b'{\"good\": 1}\\n'); answers.flush()"
    )
    assert answer_of(code) == {"good": 1}


def test_the_child_starts_quickly() -> None:
    """About 0.15 s on an idle machine; the bound leaves room for a busy one."""
    read("a.html", b"<p>warm</p>")
    began = time.monotonic()
    read("a.html", b"<p>Hello</p>")
    assert time.monotonic() - began < 2


@needs_noto
@pytest.mark.slow
def test_charts_are_read_in_the_child_under_its_limits() -> None:
    source = read("a.png", png(bar_chart(480, 320, 11)))
    assert "East: 355" in source.text
    assert source.kind == "image"


@needs_noto
@pytest.mark.slow
def test_stop_ends_ocr_within_half_a_second() -> None:
    stop = StopSignal()
    data = scan(bar_chart(900, 600, 18))
    told = threading.Event()
    ended: list[float] = []

    def read_on() -> None:
        with pytest.raises(Stopped):
            read_source(ID, "a.pdf", data, "pdf", Settings(), stop, lambda *_: told.set())
        ended.append(time.monotonic())

    thread = threading.Thread(target=read_on)
    thread.start()
    assert told.wait(20)
    began = time.monotonic()
    stop.set()
    thread.join(5)
    assert ended[0] - began < 0.5


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc")
def test_nothing_is_left_open() -> None:
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(3):
        read("a.html", b"<p>Hello</p>")
    assert len(list(OPEN_FILES.iterdir())) <= before + 1
