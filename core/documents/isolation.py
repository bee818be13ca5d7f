"""Reads untrusted files in a child process that is ended by a time limit, a memory limit or Stop.

The child gets no keys. Its stdin carries one line of JSON, then the file's bytes, and stays open:
when it closes, the parent is gone. Its stdout carries lines of JSON: progress, then one answer.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from core.documents.readers import find_file_type, read_file
from core.documents.source_builder import ProgressCallback, ReadRequest, format_file_name
from core.runtime.concurrency import StopSignal
from core.runtime.config import MEGABYTE, PROJECT_ROOT, Settings
from core.runtime.errors import InputError, Stopped
from core.schema.records import Source, SourceKind

LOGGER = logging.getLogger(__name__)
# Measured: OCR of pages and charts takes 1.2 to 1.7 GB of address space (0.5 to 0.8 GB in use), the
# largest pictures 2.3 GB, text alone less than 1 GB.
MEMORY_BYTES = 4096 * MEGABYTE
MAX_IN_PROCESS_BYTES = (
    MEGABYTE  # the largest file that a light reader reads without a child process
)
MAX_WORKERS = 2
LOADER_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
# Per-thread arenas reserve address space by the gigabyte on machines with many cores.
WORKER_VARIABLES = {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}
WORKER_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from core.documents.isolation import main; main()"
)
MAX_ANSWER_BYTES = 64 * MEGABYTE
MAX_CHARACTER_BYTES = 12  # bytes, as JSON writes it
EXIT_WAIT_SECONDS = 2.0  # seconds
# The share of the parent's time limit for reading; the rest is for finishing with a remark.
READING_TIME_SHARE = 0.85

WorkerAnswer = dict[str, Any]
AnswerWriter = Callable[[WorkerAnswer], None]

_slots = threading.BoundedSemaphore(MAX_WORKERS)


def read_source(
    source_id: str,
    name: str,
    data: bytes,
    kind: SourceKind,
    settings: Settings,
    stop: StopSignal,
    on_progress: ProgressCallback,
) -> Source:
    """Return the source in these bytes; `on_progress` receives (done, total, current step).

    Raises:
        InputError: the file cannot be read within the limits; one sentence says why.
        Stopped: `stop` was set meanwhile; the child has ended.
    """
    from core.documents.segmentation import describe_unknown_language, detect_language
    from core.store.sqlite import from_plain

    stop.check()
    if find_file_type(kind).is_light and len(data) <= MAX_IN_PROCESS_BYTES:
        source = read_file(ReadRequest(source_id, name, data, kind, settings, on_progress))
    else:
        task = WorkerTask(
            "read",
            name,
            data,
            {"source_id": source_id, "kind": kind, "settings": settings.as_dict()},
            seconds=settings.reading_seconds,
            longest=MAX_ANSWER_BYTES + MAX_CHARACTER_BYTES * settings.source_characters,
        )
        answer = run_task(task, stop, on_progress)
        source = from_plain(Source, answer["source"])
    stop.check()
    language = detect_language(source.text)
    note = describe_unknown_language(language)
    notes = (*source.notes, note) if note else source.notes
    return replace(source, name=name, language=language, notes=notes)


def run_task(task: WorkerTask, stop: StopSignal, on_progress: ProgressCallback) -> WorkerAnswer:
    """Run the task once one of the few worker slots is free, and return its answer."""
    while not _slots.acquire(timeout=0.1):
        stop.check()
    try:
        return task.run(stop, on_progress)
    finally:
        _slots.release()


def worker_command() -> list[str]:
    """Return the command that starts a child with this import path and no site or user settings."""
    path = [str(PROJECT_ROOT), *(entry for entry in sys.path if entry)]
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", WORKER_CODE, json.dumps(path)]


@dataclass(frozen=True)
class WorkerTask:
    """A command for a child process on one file.

    `longest` is the largest answer accepted, in bytes; `argv` starts the child.
    """

    command: str
    name: str
    data: bytes
    about: Mapping[str, Any]
    seconds: float
    longest: int = MAX_ANSWER_BYTES
    argv: Sequence[str] = field(default_factory=worker_command)

    def run(self, stop: StopSignal, on_progress: ProgressCallback) -> WorkerAnswer:
        """Return the child's answer. Raises InputError and Stopped as `read_source` does."""
        process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=WORKER_VARIABLES
            | {name: os.environ[name] for name in LOADER_VARIABLES if name in os.environ},
            start_new_session=True,
        )
        overdue = threading.Event()

        def give_up() -> None:
            overdue.set()
            process.kill()

        timer = threading.Timer(self.seconds, give_up)
        timer.daemon = True
        timer.start()
        unregister = stop.on_stop(process.kill)
        try:
            answer = self._conversation(process, on_progress)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(
                    EXIT_WAIT_SECONDS
                )  # so that the exit code is the child's own, not our signal
        finally:
            unregister()
            timer.cancel()
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if stop.is_set:
            raise Stopped("The run was stopped.")
        if answer is None:
            raise self._failure(process.returncode, is_overdue=overdue.is_set())
        if "problem" in answer:
            raise InputError(str(answer["problem"]))
        return answer

    def _conversation(
        self, process: subprocess.Popen[bytes], on_progress: ProgressCallback
    ) -> WorkerAnswer | None:
        """Send the file and read lines until the answer; return None if none comes."""
        header = {
            "about": dict(self.about),
            "command": self.command,
            "name": self.name,
            "size": len(self.data),
            "seconds": self.seconds,
            "memory": MEMORY_BYTES,
            "too_large": f"{format_file_name(self.name)} needs more than the "
            f"{MEMORY_BYTES // MEGABYTE:,} MB of "
            "memory that reading may use; split it and add its parts.",
        }
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        with contextlib.suppress(OSError):  # the child may end before it has read everything
            process.stdin.write(json.dumps(header).encode() + b"\n")
            process.stdin.write(self.data)
            process.stdin.flush()
        while line := process.stdout.readline(self.longest):
            try:
                message = json.loads(line)
            except ValueError:  # not one of our workers, so there is nothing to wait for
                process.kill()
                return None
            if "progress" not in message:
                return dict(message)
            on_progress(*message["progress"])
        return None

    def _failure(self, code: int | None, *, is_overdue: bool) -> InputError:
        if is_overdue:
            return InputError(
                f"{format_file_name(self.name)} could not be read within {self.seconds:,.0f} "
                f"seconds; split "
                "it, or raise “Longest reading time” in Settings."
            )
        LOGGER.warning("The reader of %s ended with code %s", format_file_name(self.name), code)
        return InputError(
            f"{format_file_name(self.name)} could not be read: its reader broke off; the file "
            f"may be damaged "
            "or too large for the memory allowed. Open it in the program it comes from, save it "
            "again and add it once more."
        )


def main() -> None:
    """Answer one request in the child process."""
    say = _make_writer(_own_stdout())
    header = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read(header["size"])
    if len(data) < header["size"]:  # the parent went away in the middle
        os._exit(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit(header["memory"], header["seconds"])
    try:
        say(_run_command(header, data, say))
    except InputError as error:
        say({"problem": str(error)})
    except MemoryError:
        say({"problem": header["too_large"]})
    except Exception:  # noqa: BLE001 - the libraries' errors on damaged files are endless
        file_name = format_file_name(header["name"])
        say({"problem": f"{file_name} cannot be shown as a picture; open it in its own program."})
    # Not sys.exit: PDFium and onnxruntime may hang or crash while they are taken down.
    os._exit(0)


def _own_stdout() -> BinaryIO:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _make_writer(stream: BinaryIO) -> AnswerWriter:
    def say(answer: WorkerAnswer) -> None:
        stream.write(json.dumps(answer, default=vars).encode() + b"\n")
        stream.flush()

    return say


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _limit(memory: int, seconds: float) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    cores = os.cpu_count() or 1
    cpu_seconds = int(seconds * cores) + 10
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(limit, (allowed, hard))
        except (ValueError, OSError):  # macOS refuses some of them
            continue


def _run_command(header: WorkerAnswer, data: bytes, say: AnswerWriter) -> WorkerAnswer:
    """Read the file, or run the function of `rendering` that the header names."""
    name, about = header["name"], header["about"]
    if header["command"] != "read":
        from core.documents import rendering

        answer: WorkerAnswer = getattr(rendering, header["command"])(name, data, **about)
        return answer
    request = ReadRequest(
        about["source_id"],
        name,
        data,
        about["kind"],
        Settings(**about["settings"]),
        report=lambda done, total, note: say({"progress": [done, total, note]}),
        ends_at=time.monotonic() + READING_TIME_SHARE * header["seconds"],
    )
    return {"source": read_file(request)}
