"""Reads and indexes new library files in the background, so that a check finds them ready."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.concurrency import Stop
from core.errors import InputError, ReviewError
from core.store import open_store

LOGGER = logging.getLogger(__name__)
UNEXPECTED = (
    "The file could not be read: an unexpected error, of which the server's log has the details. "
    "Choose Read again."
)


class Prereading:
    """One reader for the whole process; each file is queued once at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prereading")
        self._notes: dict[str, str] = {}
        self._anew: set[str] = set()
        self._lock = threading.Lock()

    def submit(self, source_id: str, name: str, *, anew: bool = False) -> None:
        """Queue a file; one that is queued already is not queued again.

        `anew` forgets what was read in it; a reading that is under way is then not the last.
        """
        with self._lock:
            if anew:
                self._anew.add(source_id)
            if source_id in self._notes:
                return
            self._notes[source_id] = "waiting"
        self._pool.submit(self._work, source_id, name)

    def note(self, source_id: str) -> str:
        """What is being done with the file; empty when nothing is."""
        with self._lock:
            return self._notes.get(source_id, "")

    def _work(self, source_id: str, name: str) -> None:
        """Read the file, and again as long as that was asked for meanwhile."""
        while True:
            with self._lock:
                self._notes[source_id] = "reading"
                anew = source_id in self._anew
                self._anew.discard(source_id)
            self._read(source_id, name, anew=anew)
            with self._lock:
                if source_id not in self._anew:
                    del self._notes[source_id]
                    return

    def _read(self, source_id: str, name: str, *, anew: bool) -> None:
        from core.baseline.encoder import load_multilingual_encoder
        from core.documents.library import ensure_read, reindex
        from core.documents.retrieval import ensure_index

        try:
            with open_store(self._home) as store:
                if anew:
                    reindex(store, source_id)
                settings = store.projects.settings()
                source, _, _ = ensure_read(
                    store,
                    self._home,
                    source_id,
                    name,
                    settings,
                    Stop(),
                    lambda done, total, note: self._say(source_id, note, done, total),
                    time.time,
                )
                encoder = load_multilingual_encoder()
                ensure_index(
                    store,
                    source,
                    encoder,
                    Stop(),
                    lambda done, total: self._say(source_id, "indexing", done, total),
                )
        except InputError as error:
            LOGGER.info("%s was refused: %s", name, error)  # the library entry says it too
        except ReviewError as error:
            LOGGER.warning("%s could not be prepared: %s", name, error)
            self._refuse(source_id, str(error))
        except Exception:
            LOGGER.exception("%s could not be prepared", name)
            self._refuse(source_id, UNEXPECTED)

    def _refuse(self, source_id: str, problem: str) -> None:
        """A file that stayed waiting would be tried again at every look at the library."""
        from core.documents.readers import READER_VERSION

        try:
            with open_store(self._home) as store, store.writing():
                if store.readings.get(source_id, "", reader=READER_VERSION) is None:
                    store.library.set_status(source_id, "refused", problem)
        except Exception:
            LOGGER.exception("%s could not even be refused", source_id)

    def _say(self, source_id: str, note: str, done: int, total: int) -> None:
        share = f" {done} of {total}" if total else ""
        with self._lock:
            self._notes[source_id] = f"{note}{share}"
