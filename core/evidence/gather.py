"""Reads and indexes a case's sources, several at once, and tells what came of each.

A source that cannot be read costs only itself: the run goes on with the others and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.concurrency import Stop, merged, streamed
from core.config import Settings
from core.errors import InputError
from core.events import DocumentRead, Event, ImageDescribed, ProblemMet, ProgressMade
from core.evidence.index import ensure_index
from core.intake.library import ensure_read
from core.models.encoder import Embedder
from core.records import Case, Cause, Source
from core.roles import ImageReader
from core.store import Store, open_store

AT_ONCE = 2
Report = Callable[[Event], None]


@dataclass(frozen=True)
class Gathering:
    """What reading a case's sources takes."""

    case: Case
    home: Path
    settings: Settings
    encoder: Embedder
    image_reader: ImageReader
    stop: Stop
    now: Callable[[], float]


def gather_sources(job: Gathering, done: Collection[str]) -> Iterator[Event]:
    """Yield the events of reading and indexing every source that is not ready.

    `done` are those that an interrupted run has read; they are read again when their reading or
    index went away meanwhile, and missed aloud when their file did.
    """
    with open_store(job.home) as store:
        ready = {
            i
            for i in done
            if store.readings.get(i, "") and store.readings.has_index(i, job.encoder.id)
        }
    waiting = [i for i in (*job.case.documents, *job.case.images) if i not in ready]
    if waiting:
        yield from merged([_reading_of(job, source_id) for source_id in waiting], workers=AT_ONCE)


def sources_of(store: Store, case: Case, read: Collection[str]) -> list[Source]:
    """The sources that could be read, in the case's order."""
    wanted = [i for i in (*case.documents, *case.images) if i in read]
    found = [store.readings.get(i, store.library.name_of(case.project_id, i)) for i in wanted]
    return [source for source in found if source is not None]


def _reading_of(job: Gathering, source_id: str) -> Callable[[], Iterator[Event]]:
    def events() -> Iterator[Event]:
        def read(report: Report) -> Event:
            return _read_one(job, source_id, report)

        yield (yield from streamed(read))

    return events


def _read_one(job: Gathering, source_id: str, report: Report) -> Event:
    """Read and index one source; the event says how it went."""
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
            cause: Cause | None = "image_not_readable" if source_id in job.case.images else None
            message = str(error) if name in str(error) else f"{name}: {error}"
            return ProblemMet(now(), "reading", message, name, cause, source_id)
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
    text = job.image_reader.describe(job.case, source)
    return ImageDescribed(
        now(), source.id, source.name, job.image_reader.name, bool(text), text, seconds
    )
