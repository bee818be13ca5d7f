"""Reads untrusted files in a child process that time, memory and Stop can end.

A reader's library may hang, crash or eat memory on a damaged or hostile file; then only the
child goes, and the person gets a sentence. The child sees neither keys nor other files' bytes:
its environment is empty but for what dynamic loaders need.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.concurrency import Stop
from core.config import MEGABYTE, PROJECT_ROOT, Settings
from core.documents.language import language_note, language_of
from core.documents.readers import read
from core.documents.request import ReadRequest, Report, shown
from core.errors import InputError, Stopped
from core.records import Source, SourceKind
from core.store.sqlite import from_plain

# Measured: OCR of pages and charts takes 1.2 to 1.7 GB of address space (0.5 to 0.8 GB in use), the
# largest pictures 2.3 GB, text alone less than 1 GB.
MEMORY = 4096 * MEGABYTE
# These readers are plain Python and linear, so small files need no child of their own.
HERE: frozenset[SourceKind] = frozenset({"text", "table"})
LARGEST_HERE = MEGABYTE
AT_ONCE = 2
NEEDED_BY_LOADERS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
# Per-thread arenas reserve address space by the gigabyte on machines with many cores.
THRIFTY = {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from core.documents.worker import main; main()"
)
LONGEST_ANSWER = 64 * MEGABYTE
LONGEST_CHARACTER = 12  # bytes, as JSON writes it
PARTING = 2.0  # seconds
SAVE_AGAIN = "Open it in the program it comes from, save it again and add it once more."

_slots = threading.BoundedSemaphore(AT_ONCE)


def read_source(
    source_id: str,
    name: str,
    data: bytes,
    kind: SourceKind,
    settings: Settings,
    stop: Stop,
    on_progress: Report,
) -> Source:
    """The source in these bytes. `on_progress` gets (done, total, what is being done).

    Raises:
        InputError: the file cannot be read within the limits; one sentence says why.
        Stopped: `stop` was set meanwhile; the child is gone then.
    """
    stop.check()
    if kind in HERE and len(data) <= LARGEST_HERE:
        source = read(ReadRequest(source_id, name, data, kind, settings, on_progress))
    else:
        task = Task(
            "read",
            name,
            data,
            {"source_id": source_id, "kind": kind, "settings": settings.as_dict()},
            seconds=settings.reading_seconds,
            longest=LONGEST_ANSWER + LONGEST_CHARACTER * settings.source_characters,
        )
        answer = run_alone(task, stop, on_progress)
        source = from_plain(Source, answer["source"])
    stop.check()
    language = language_of(source.text)
    note = language_note(language)
    notes = (*source.notes, note) if note else source.notes
    return replace(source, name=name, language=language, notes=notes)


def run_alone(task: Task, stop: Stop, on_progress: Report) -> dict[str, Any]:
    """The task's answer, from one of the few children that may work at the same time."""
    with _slot(stop):
        return task.run(stop, on_progress)


def worker_command() -> list[str]:
    """Starts the child: without site and user settings, with this process's own import path."""
    path = [str(PROJECT_ROOT), *(entry for entry in sys.path if entry)]
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", START, json.dumps(path)]


@dataclass(frozen=True)
class Task:
    """Something that a child process is asked to do with one file.

    `longest` is the longest answer that is taken from it, in bytes; `argv` starts the child.
    """

    command: str
    name: str
    data: bytes
    about: Mapping[str, Any]
    seconds: float
    longest: int = LONGEST_ANSWER
    argv: Sequence[str] = field(default_factory=worker_command)

    def run(self, stop: Stop, on_progress: Report) -> dict[str, Any]:
        """The child's answer. Raises InputError and Stopped as `read_source` does."""
        process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=THRIFTY
            | {name: os.environ[name] for name in NEEDED_BY_LOADERS if name in os.environ},
            start_new_session=True,
        )
        overdue = threading.Event()

        def give_up() -> None:
            overdue.set()
            process.kill()

        timer = threading.Timer(self.seconds, give_up)
        timer.daemon = True
        timer.start()
        stop.on_stop(process.kill)
        try:
            answer = self._conversation(process, on_progress)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PARTING)  # So that the exit code is its own and not our signal.
        finally:
            timer.cancel()
            _end(process)
        if stop.is_set:
            raise Stopped("The run was stopped.")
        if answer is None:
            raise InputError(self._failure(process.returncode, is_overdue=overdue.is_set()))
        if "problem" in answer:
            raise InputError(str(answer["problem"]))
        return answer

    def _conversation(
        self, process: subprocess.Popen[bytes], on_progress: Report
    ) -> dict[str, Any] | None:
        """Hand the file over and take lines until the answer; None if none comes."""
        header = {
            **self.about,
            "command": self.command,
            "name": self.name,
            "size": len(self.data),
            "seconds": self.seconds,
            "memory": MEMORY,
            "too_large": f"{shown(self.name)} needs more than the {MEMORY // MEGABYTE:,} MB of "
            "memory that reading may use; split it and add its parts.",
        }
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        with contextlib.suppress(OSError):  # It may be gone before it has taken everything.
            process.stdin.write(json.dumps(header).encode() + b"\n")
            process.stdin.write(self.data)
            process.stdin.flush()
        while line := process.stdout.readline(self.longest):
            try:
                said = json.loads(line)
            except ValueError:  # No worker of ours: it need not be seen out.
                process.kill()
                return None
            if "progress" not in said:
                return dict(said)
            on_progress(*said["progress"])
        return None

    def _failure(self, code: int | None, *, is_overdue: bool) -> str:
        """A sentence on a child that ended without an answer."""
        if is_overdue:
            return (
                f"{shown(self.name)} could not be read within {self.seconds:,.0f} seconds; split "
                "it, or raise “Longest reading time” in Settings."
            )
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return (
            f"{shown(self.name)} could not be read: its reader broke off ({how}); the file may be "
            f"damaged or too large for the memory allowed. {SAVE_AGAIN}"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave neither the child nor its pipes behind."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


@contextlib.contextmanager
def _slot(stop: Stop) -> Iterator[None]:
    """One of the few children that may read at the same time; Stop ends the waiting."""
    while not _slots.acquire(timeout=0.1):
        stop.check()
    try:
        yield
    finally:
        _slots.release()
