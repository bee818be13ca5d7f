"""Reads and indexes a case's sources, several at once, and tells what came of each.

A source that cannot be read costs only itself: the run goes on with the others and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.concurrency import Stop, merged, streamed
from core.config import Settings
from core.documents.library import ensure_read
from core.documents.retrieval import ensure_index
from core.errors import InputError, ReplyError
from core.events import DocumentRead, Event, ImageDescribed, ProblemMet, ProgressMade
from core.models.encoder import Embedder
from core.records import Case, Cause, Source
from core.roles import ImageReader
from core.store import Store, open_store

READ_AT_ONCE = 2  # reading and OCR want a core each
ASKED_AT_ONCE = 8  # asking a model about an image only waits
TRIES = 3
Report = Callable[[Event], None]


@dataclass(frozen=True)
class _Picture:
    """An image that was read and indexed, in so many seconds, and is yet to be described."""

    image: Source
    seconds: float


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
        def read(report: Report) -> Event | _Picture:
            return _read_one(job, source_id, report)

        with job.turns_at_reading:
            event = yield from streamed(read)
        if isinstance(event, _Picture):
            yield from _describe(job, event)
        else:
            yield event

    return events


def _read_one(job: Gathering, source_id: str, report: Report) -> Event | _Picture:
    """Read and index one source; the event says how it went, an image is yet to be described."""
    now = job.now
    with open_store(job.home) as store:
        name = store.library.name_of(job.case.project_id, source_id) or "a deleted file"
        report(ProgressMade(now(), "reading", f"Reading {name}"))
        try:
            source, reused, seconds = ensure_read(
                store,
                job.home,
                source_id,
                name,
                job.settings,
                job.stop,
                lambda done, total, note: report(
                    ProgressMade(now(), "reading", f"{name}: {note}", done, total)
                ),
                now,
            )
        except InputError as error:
            message = str(error) if name in str(error) else f"{name}: {error}"
            return ProblemMet(now(), "reading", message, name, _cause(job, source_id), source_id)
        ensure_index(
            store,
            source,
            job.encoder,
            job.stop,
            lambda done, total: report(
                ProgressMade(now(), "searching", f"Indexing {name}", done, total)
            ),
        )
    if not source.is_image:
        return DocumentRead(
            now(),
            source.id,
            source.name,
            source.pages,
            len(source.text),
            seconds,
            reused,
            source.notes,
        )
    return _Picture(source, seconds)


def _describe(job: Gathering, picture: _Picture) -> Iterator[Event]:
    """What the image reader says of an image (CEDA agent B); OCR stands in for a useless reply."""
    image, reader, now = picture.image, job.image_reader, job.now
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
    seconds = picture.seconds + at - began
    yield ImageDescribed(at, image.id, image.name, reader.name, bool(text), text, seconds)
