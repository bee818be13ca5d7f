"""The library on disk: bytes by their sha256, each content stored, read and indexed once.

A source that cannot be read costs only itself: the run goes on and says so.
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

from core.documents.draft import Report, shown
from core.documents.isolation import read_source
from core.documents.readers import READER_VERSION, kind_of
from core.documents.retrieval import ensure_index
from core.llm.encoder import Embedder
from core.runtime.concurrency import Stop, merged, streamed
from core.runtime.config import MEGABYTE, Settings
from core.runtime.errors import InputError, ReplyError, Stopped
from core.schema.events import DocumentRead, Event, ImageDescribed, ProblemMet, ProgressMade
from core.schema.records import Case, Cause, LibraryEntry, Source
from core.schema.roles import ImageReader
from core.store import Store, open_store

LOGGER = logging.getLogger(__name__)
DOCUMENTS = "documents"
ID = re.compile(r"[0-9a-f]{64}")
POLL_SECONDS = 0.05

Clock = Callable[[], float]


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
    """Put a file into a project's library; the same content again is stored once.

    Raises InputError: it is empty, too large, or of a type that is not read; nothing is stored.
    """
    most = settings.file_megabytes
    if len(data) > most * MEGABYTE:
        raise InputError(
            f"{shown(name)} is {len(data) / MEGABYTE:,.1f} MB large; at most {most} MB are read. "
            "Split it, or raise “Largest file” in Settings."
        )
    kind = kind_of(name, data)
    source_id = hashlib.sha256(data).hexdigest()
    _write_once(_path(home, source_id), data)
    with store.writing():  # Keeps `remove_file` away, which may just have taken the bytes.
        _write_once(_path(home, source_id), data)
        known = store.readings.get(source_id, name, reader=READER_VERSION)
        if known is not None and known.kind != kind:
            store.readings.forget(source_id)  # The newest name says how to read it.
            known = None
        entry = LibraryEntry(
            id=source_id,
            project_id=project_id,
            name=name,
            kind=kind,
            size=len(data),
            status="ready" if known else "waiting",
            added_by=by,
            added_at=now,
        )
        store.library.add(entry)
        return store.library.get(project_id, source_id) or entry


def file_bytes(home: Path, source_id: str) -> bytes:
    """The bytes of a stored file. Raises InputError: they are not there (any more)."""
    try:
        return _path(home, source_id).read_bytes()
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
    stop: Stop,
    on_progress: Report,
    now: Clock,
) -> tuple[Source, bool, float]:
    """(the source, whether an earlier reading was reused, the seconds that reading took).

    A second caller for the same content waits for the first and takes its reading.

    Raises:
        InputError: the file cannot be read, whatever the reason; the library says so too.
        Stopped: `stop` was set meanwhile.
    """
    with _alone(source_id, stop):
        known = store.readings.get(source_id, name, reader=READER_VERSION)
        if known is not None:
            return known, True, 0.0
        try:
            began = now()
            data = file_bytes(home, source_id)
            kind = store.library.kind_of(source_id) or kind_of(name, data)
            store.library.set_status(source_id, "reading")
            source = read_source(source_id, name, data, kind, settings, stop, on_progress)
            seconds = max(0.0, now() - began)
            with store.writing():
                # Another process may have been quicker, and its index may be in use already.
                known = store.readings.get(source_id, name, reader=READER_VERSION)
                is_held = store.library.is_held(source_id)
                if known is None and is_held:
                    store.readings.save(source, reader=READER_VERSION, seconds=seconds, now=now())
                if known is not None or is_held:
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
                f"{shown(name)} could not be read: an unexpected error, of which the server's log "
                "has the details. Choose Read again, or save the file anew and add it once more."
            )
            store.library.set_status(source_id, "refused", problem)
            raise InputError(problem) from error
    if known is not None:
        return known, True, 0.0
    if not is_held:
        raise InputError(f"{shown(name)} was deleted while it was read.")
    return source, False, seconds


def remove_file(store: Store, home: Path, project_id: str, source_id: str, now: float) -> None:
    """Take a file out of a project; bytes and reading go when no library holds them."""
    with store.writing():
        is_last = store.library.remove(project_id, source_id, now)
        if is_last:
            store.readings.forget(source_id)
            _path(home, source_id).unlink(missing_ok=True)


def reindex(store: Store, source_id: str) -> None:
    """Forget a file's reading and index, so that both are made anew when next needed."""
    with store.writing():
        store.readings.forget(source_id)
        store.library.set_status(source_id, "waiting")


def _path(home: Path, source_id: str) -> Path:
    if not ID.fullmatch(source_id):
        raise InputError(f"Expected the id of a stored file, found {source_id[:80]!r}.")
    return home / DOCUMENTS / source_id


def _write_once(path: Path, data: bytes) -> None:
    """Write the file unless it is there; it appears whole or not at all."""
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
    """The lock on one content and how many threads hold or want it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wanted: int = 0


_turns: dict[str, _Turn] = {}
_turns_lock = threading.Lock()


@contextlib.contextmanager
def _alone(source_id: str, stop: Stop) -> Iterator[None]:
    """Only one thread of this process reads a content; Stop ends the waiting."""
    with _turns_lock:
        turn = _turns.setdefault(source_id, _Turn())
        turn.wanted += 1
    try:
        while not turn.lock.acquire(timeout=POLL_SECONDS):
            stop.check()
        try:
            yield
        finally:
            turn.lock.release()
    finally:
        with _turns_lock:
            turn.wanted -= 1
            if not turn.wanted:
                del _turns[source_id]


READ_AT_ONCE = 2  # reading and OCR want a core each
ASKED_AT_ONCE = 8  # asking a model about an image only waits
TRIES = 3
GatherReport = Callable[[Event], None]


@dataclass(frozen=True)
class Gathering:
    """What reading a case's sources takes."""

    case: Case
    home: Path
    settings: Settings
    encoder: Embedder
    image_reader: ImageReader
    spare_reader: ImageReader
    stop: Stop
    now: Callable[[], float]
    turns_at_reading: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(READ_AT_ONCE)
    )


def gather_sources(job: Gathering, done: Collection[str]) -> Iterator[Event]:
    """Yield the events of reading and indexing every source that is not ready.

    `done` are those that an interrupted run has read; they are read again when their reading or
    index went away meanwhile, and missed aloud when their file did. So is what goes away while
    the others are read.
    """
    ready = _ready(job, done)
    waiting = [i for i in _wanted(job.case) if i not in ready]
    settled = set(done)
    for _ in range(TRIES):
        if not waiting:
            return
        settled -= set(waiting)
        readings = [_reading_of(job, source_id) for source_id in waiting]
        for event in merged(readings, workers=ASKED_AT_ONCE):
            if isinstance(event, DocumentRead | ImageDescribed):
                settled.add(event.source_id)
            yield event
        ready = _ready(job, settled)  # “Read again” may have dropped one while others were read
        waiting = [i for i in _wanted(job.case) if i in settled and i not in ready]


def missed(job: Gathering, store: Store, read: Collection[str]) -> Iterator[Event]:
    """Yield a problem for every source that was read and cannot be searched any more."""
    for source_id in _wanted(job.case):
        if source_id in read and not _is_ready(job, store, source_id):
            name = store.library.name_of(job.case.project_id, source_id) or "a deleted file"
            message = f"{name}: it was deleted or is being read again; the check does without it."
            yield ProblemMet(job.now(), "reading", message, name, _cause(job, source_id), source_id)


def _wanted(case: Case) -> tuple[str, ...]:
    return (*case.documents, *case.images)


def _ready(job: Gathering, read: Collection[str]) -> set[str]:
    with open_store(job.home) as store:
        return {i for i in read if _is_ready(job, store, i)}


def _is_ready(job: Gathering, store: Store, source_id: str) -> bool:
    is_read = store.readings.get(source_id, "") is not None
    return is_read and store.readings.has_index(source_id, job.encoder.id)


def _cause(job: Gathering, source_id: str) -> Cause | None:
    return "image_not_readable" if source_id in job.case.images else None


def sources_of(store: Store, case: Case, read: Collection[str]) -> list[Source]:
    """The sources that could be read, in the case's order."""
    wanted = [i for i in _wanted(case) if i in read]
    found = [store.readings.get(i, store.library.name_of(case.project_id, i)) for i in wanted]
    return [source for source in found if source is not None]


def _reading_of(job: Gathering, source_id: str) -> Callable[[], Iterator[Event]]:
    def events() -> Iterator[Event]:
        def read(report: GatherReport) -> Event | tuple[Source, float]:
            return _read_one(job, source_id, report)

        with job.turns_at_reading:
            found = yield from streamed(read)
        if isinstance(found, tuple):
            yield from _describe(job, *found)
        else:
            yield found

    return events


def _read_one(job: Gathering, source_id: str, report: GatherReport) -> Event | tuple[Source, float]:
    """Reads and indexes a source; of an image the source and the seconds: it is yet to be told."""
    now = job.now
    with open_store(job.home) as store:
        name = store.library.name_of(job.case.project_id, source_id) or "a deleted file"

        def reading(done: int, total: int, note: str) -> None:
            report(ProgressMade(now(), "reading", f"{name}: {note}", done, total))

        def indexing(done: int, total: int) -> None:
            report(ProgressMade(now(), "searching", f"Indexing {name}", done, total))

        report(ProgressMade(now(), "reading", f"Reading {name}"))
        try:
            source, reused, seconds = ensure_read(
                store, job.home, source_id, name, job.settings, job.stop, reading, now
            )
        except InputError as error:
            message = str(error) if name in str(error) else f"{name}: {error}"
            return ProblemMet(now(), "reading", message, name, _cause(job, source_id), source_id)
        ensure_index(store, source, job.encoder, job.stop, indexing)
    if source.is_image:
        return source, seconds
    said = (source.pages, len(source.text), seconds, reused, source.notes)
    return DocumentRead(now(), source.id, source.name, *said)


def _describe(job: Gathering, image: Source, seconds: float) -> Iterator[Event]:
    """What the image reader says of an image (CEDA agent B); OCR stands in for a useless reply.

    `seconds` are those that reading it took.
    """
    reader, now = job.image_reader, job.now
    began = now()
    yield ProgressMade(began, "reading", f"{reader.name} looks at {image.name}")
    try:
        text = reader.describe(job.case, image, job.stop)
    except ReplyError as error:
        message = f"{reader.name} on {image.name}: {error} What OCR reads in it is used instead."
        yield ProblemMet(now(), "reading", message, reply=error.reply)
        reader = job.spare_reader
        text = reader.describe(job.case, image, job.stop)
    at = now()
    seconds += at - began
    yield ImageDescribed(at, image.id, image.name, reader.name, bool(text), text, seconds)
