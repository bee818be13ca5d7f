"""Keeps the project's files by their sha256: each content is stored, read and indexed once.

Reads the sources of a case for a run. A source that cannot be read does not stop the run; it is
reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.documents.isolation import read_source
from core.documents.readers import READER_VERSION, detect_kind
from core.documents.retrieval import ensure_index
from core.documents.source_builder import ProgressCallback, format_file_name
from core.llm.encoder import Embedder
from core.runtime.concurrency import StopSignal, merge_streams, stream_call
from core.runtime.config import MEGABYTE, Settings
from core.runtime.errors import InputError, ReplyError, Stopped
from core.schema.events import DocumentRead, Event, ImageDescribed, ProblemMet, ProgressMade
from core.schema.records import Case, LibraryEntry, Source, UnclearCause
from core.schema.roles import ImageReader
from core.store import Store, open_store

LOGGER = logging.getLogger(__name__)
DOCUMENTS_FOLDER = "documents"
SOURCE_ID = re.compile(r"[0-9a-f]{64}")
POLL_SECONDS = 0.05
MAX_READERS = 2  # reading and OCR need a core each
MAX_SOURCES_AT_ONCE = 8  # asking a model about an image only waits
MAX_GATHER_ROUNDS = 3

Clock = Callable[[], float]
EventCallback = Callable[[Event], None]


def store_file(
    store: Store,
    home: Path,
    project_id: str,
    name: str,
    data: bytes,
    by: str,
    now: float,
    settings: Settings,
) -> LibraryEntry:
    """Store a file in a project's library; the same content is stored only once.

    Raises InputError: it is empty, too large, or of an unsupported type; nothing is stored.
    """
    limit = settings.file_megabytes
    if len(data) > limit * MEGABYTE:
        raise InputError(
            f"{format_file_name(name)} is {len(data) / MEGABYTE:,.1f} MB large; at most {limit} "
            f"MB are read. "
            "Split it, or raise “Largest file” in Settings."
        )
    kind = detect_kind(name, data)
    source_id = hashlib.sha256(data).hexdigest()
    _write_once(get_file_path(home, source_id), data)
    with store.writing():  # again, locked: `remove_file` may just have deleted the bytes
        _write_once(get_file_path(home, source_id), data)
        reading = store.readings.get(source_id, name, reader=READER_VERSION)
        if reading is not None and reading.kind != kind:
            store.readings.forget(source_id)  # the newest name decides how to read it
            reading = None
        entry = LibraryEntry(
            id=source_id,
            project_id=project_id,
            name=name,
            kind=kind,
            size=len(data),
            status="ready" if reading else "waiting",
            added_by=by,
            added_at=now,
        )
        store.library.add(entry)
        return store.library.get(project_id, source_id) or entry


def load_file_bytes(home: Path, source_id: str) -> bytes:
    """Return the bytes of a stored file. Raises InputError: they are missing."""
    try:
        return get_file_path(home, source_id).read_bytes()
    except OSError as error:
        raise InputError(
            "The file's content is not in the library any more; add the file again."
        ) from error


def ensure_read(
    store: Store,
    home: Path,
    source_id: str,
    name: str,
    settings: Settings,
    stop: StopSignal,
    on_progress: ProgressCallback,
    now: Clock,
) -> tuple[Source, bool, float]:
    """Return (the source, True if an earlier reading was reused, the seconds that reading took).

    A second caller for the same content waits for the first and gets its reading.

    Raises:
        InputError: the file cannot be read, for any reason; the library shows it too.
        Stopped: `stop` was set meanwhile.
    """
    with _hold_source(source_id, stop):
        reading = store.readings.get(source_id, name, reader=READER_VERSION)
        if reading is not None:
            return reading, True, 0.0
        try:
            started_at = now()
            data = load_file_bytes(home, source_id)
            kind = store.library.kind_of(source_id) or detect_kind(name, data)
            store.library.set_status(source_id, "reading")
            source = read_source(source_id, name, data, kind, settings, stop, on_progress)
            seconds = max(0.0, now() - started_at)
            with store.writing():
                # Another process may have been faster, and its index may already be in use.
                reading = store.readings.get(source_id, name, reader=READER_VERSION)
                is_held = store.library.is_held(source_id)
                if reading is None and is_held:
                    store.readings.save(source, reader=READER_VERSION, seconds=seconds, now=now())
                if reading is not None or is_held:
                    store.library.set_status(source_id, "ready")
        except InputError as error:
            store.library.set_status(source_id, "refused", str(error))
            raise
        except BaseException as error:
            if isinstance(error, Stopped) or not isinstance(error, Exception):
                store.library.set_status(source_id, "waiting")
                raise
            LOGGER.exception("%s could not be read", name)
            problem = (
                f"{format_file_name(name)} could not be read: an unexpected error, of which the "
                f"server's log "
                "has the details. Choose Read again, or save the file anew and add it once more."
            )
            store.library.set_status(source_id, "refused", problem)
            raise InputError(problem) from error
    if reading is not None:
        return reading, True, 0.0
    if not is_held:
        raise InputError(f"{format_file_name(name)} was deleted while it was read.")
    return source, False, seconds


def remove_file(store: Store, home: Path, project_id: str, source_id: str, now: float) -> None:
    """Remove a file from a project; delete its bytes and reading if no other library holds them."""
    with store.writing():
        is_last = store.library.remove(project_id, source_id, now)
        if is_last:
            store.readings.forget(source_id)
            get_file_path(home, source_id).unlink(missing_ok=True)


def discard_reading(store: Store, source_id: str) -> None:
    """Discard a file's reading and index, so that both are made anew when next needed."""
    with store.writing():
        store.readings.forget(source_id)
        store.library.set_status(source_id, "waiting")


def get_file_path(home: Path, source_id: str) -> Path:
    """Return where the file's bytes are kept. Raises InputError: it is no id of a file."""
    if not SOURCE_ID.fullmatch(source_id):
        raise InputError(f"Expected the id of a stored file, found {source_id[:80]!r}.")
    return home / DOCUMENTS_FOLDER / source_id


def _write_once(path: Path, data: bytes) -> None:
    """Write the file atomically unless a file of that size is there."""
    with contextlib.suppress(OSError):
        if path.stat().st_size == len(data):
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@dataclass
class _Turn:
    """The lock on one content, and how many threads hold or want it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wanted: int = 0


_turns: dict[str, _Turn] = {}
_turns_lock = threading.Lock()


@contextlib.contextmanager
def _hold_source(source_id: str, stop: StopSignal) -> Iterator[None]:
    """Let only one thread of this process read a content; Stop ends the wait."""
    with _turns_lock:
        entry = _turns.setdefault(source_id, _Turn())
        entry.wanted += 1
    try:
        while not entry.lock.acquire(timeout=POLL_SECONDS):
            stop.check()
        try:
            yield
        finally:
            entry.lock.release()
    finally:
        with _turns_lock:
            entry.wanted -= 1
            if not entry.wanted:
                del _turns[source_id]


@dataclass(frozen=True)
class GatherJob:
    """Everything needed to read the sources of a case."""

    case: Case
    home: Path
    settings: Settings
    encoder: Embedder
    image_reader: ImageReader
    spare_reader: ImageReader
    stop: StopSignal
    now: Callable[[], float]
    turns_at_reading: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(MAX_READERS)
    )


def gather_sources(job: GatherJob, done: Collection[str]) -> Iterator[Event]:
    """Yield the events of reading and indexing every source that is not ready.

    `done` holds the sources that an interrupted run has read. They are read again if their reading
    or index has gone since, and reported as problems if their file has. The same holds for sources
    that go away while the others are read.
    """
    ready = _find_ready(job, done)
    pending = [i for i in _source_ids(job.case) if i not in ready]
    read_ids = set(done)
    for _ in range(MAX_GATHER_ROUNDS):
        if not pending:
            return
        read_ids -= set(pending)
        readings = [_make_reading(job, source_id) for source_id in pending]
        for event in merge_streams(readings, workers=MAX_SOURCES_AT_ONCE):
            if isinstance(event, DocumentRead | ImageDescribed):
                read_ids.add(event.source_id)
            yield event
        # “Read again” may have dropped one while others were read.
        ready = _find_ready(job, read_ids)
        pending = [i for i in _source_ids(job.case) if i in read_ids and i not in ready]


def report_missing_sources(
    job: GatherJob, store: Store, read: Collection[str]
) -> Iterator[ProblemMet]:
    """Yield a problem for every source that was read but can no longer be searched."""
    for source_id in _source_ids(job.case):
        if source_id in read and not _is_ready(job, store, source_id):
            name = store.library.name_of(job.case.project_id, source_id) or "a deleted file"
            message = f"{name}: it was deleted or is being read again; the check does without it."
            yield ProblemMet(
                job.now(), "reading", message, name, _cause_of(job, source_id), source_id
            )


def _source_ids(case: Case) -> tuple[str, ...]:
    return (*case.documents, *case.images)


def _find_ready(job: GatherJob, read: Collection[str]) -> set[str]:
    with open_store(job.home) as store:
        return {i for i in read if _is_ready(job, store, i)}


def _is_ready(job: GatherJob, store: Store, source_id: str) -> bool:
    is_read = store.readings.get(source_id, "") is not None
    return is_read and store.readings.has_index(source_id, job.encoder.id)


def _cause_of(job: GatherJob, source_id: str) -> UnclearCause | None:
    return "image_not_readable" if source_id in job.case.images else None


def load_sources(store: Store, case: Case, read: Collection[str]) -> list[Source]:
    """Return the sources that could be read, in the case's order."""
    source_ids = [i for i in _source_ids(case) if i in read]
    sources = [store.readings.get(i, store.library.name_of(case.project_id, i)) for i in source_ids]
    return [source for source in sources if source is not None]


def _make_reading(job: GatherJob, source_id: str) -> Callable[[], Iterator[Event]]:
    def events() -> Iterator[Event]:
        def read(report: EventCallback) -> Event | tuple[Source, float]:
            return _read_one(job, source_id, report)

        with job.turns_at_reading:
            result = yield from stream_call(read)
        if isinstance(result, tuple):
            yield from _describe(job, *result)
        else:
            yield result

    return events


def _read_one(
    job: GatherJob, source_id: str, report: EventCallback
) -> Event | tuple[Source, float]:
    """Read and index a source; return its event, or an image with the seconds that reading took.

    Images are returned because the image reader has yet to describe them.
    """
    now = job.now
    with open_store(job.home) as store:
        name = store.library.name_of(job.case.project_id, source_id) or "a deleted file"

        def reading(done: int, total: int, note: str) -> None:
            report(ProgressMade(now(), "reading", f"Reading {name}: {note}", done, total))

        def indexing(done: int, total: int) -> None:
            note = f"Indexing {name}: passage {done:,} of {total:,}"
            report(ProgressMade(now(), "searching", note, done, total))

        report(ProgressMade(now(), "reading", f"Reading {name}"))
        try:
            source, reused, seconds = ensure_read(
                store, job.home, source_id, name, job.settings, job.stop, reading, now
            )
        except InputError as error:
            message = str(error) if name in str(error) else f"{name}: {error}"
            return ProblemMet(now(), "reading", message, name, _cause_of(job, source_id), source_id)
        ensure_index(store, source, job.encoder, job.stop, indexing)
    if source.is_image:
        return source, seconds
    return DocumentRead(
        now(), source.id, source.name, source.pages, len(source.text), seconds, reused, source.notes
    )


def _describe(job: GatherJob, image: Source, seconds: float) -> Iterator[Event]:
    """Yield the image reader's description (CEDA agent B), or OCR's text after a useless reply.

    `seconds` is how long reading the image took.
    """
    reader, now = job.image_reader, job.now
    started_at = now()
    yield ProgressMade(started_at, "reading", f"{reader.name} looks at {image.name}")
    try:
        text = reader.describe(job.case, image, job.stop)
    except ReplyError as error:
        message = f"{reader.name} on {image.name}: {error} What OCR reads in it is used instead."
        yield ProblemMet(now(), "reading", message, reply=error.reply)
        reader = job.spare_reader
        text = reader.describe(job.case, image, job.stop)
    described_at = now()
    seconds += described_at - started_at
    yield ImageDescribed(described_at, image.id, image.name, reader.name, bool(text), text, seconds)
