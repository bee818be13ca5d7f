"""Files that come in: each in a thread of its own, so that a click or a reload stops nothing."""

from __future__ import annotations

import io
import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from components import state
from core.errors import ReviewError
from core.exchange.archive import take
from core.exchange.incoming import take_in
from core.exchange.order import Order, Outcome
from core.formats.row import Read
from core.store import Store
from core.store import open_store as open_store_in

LOGGER = logging.getLogger(__name__)
MOST_KEPT = 20
UNEXPECTED = "The import broke off: an unexpected error, of which the server’s log has the details."


@dataclass
class Import:
    """One file on its way in; the page reads it, its thread writes it."""

    done: int = 0
    total: int = 0
    is_over: bool = False
    outcome: Outcome | None = None
    project_id: str = ""
    words: str = ""
    problem: str = ""


@dataclass
class Imports:
    """The imports of this server process, the newest last."""

    known: dict[str, Import] = field(default_factory=dict)

    def start(self, work: Callable[[Import], None]) -> str:
        """Begin one in a thread of its own; its id."""
        name, one = uuid.uuid4().hex, Import()
        self.known[name] = one
        for old in list(self.known)[:-MOST_KEPT]:
            del self.known[old]
        threading.Thread(target=_carried_out, args=(one, work), daemon=True, name="import").start()
        return name


@st.cache_resource
def imports() -> Imports:
    """The imports of this server process."""
    return Imports()


def _carried_out(one: Import, work: Callable[[Import], None]) -> None:
    try:
        work(one)
    except ReviewError as error:
        one.problem = str(error)
    except Exception:
        LOGGER.exception("an import broke off")
        one.problem = UNEXPECTED
    one.is_over = True


def start_rows(read: Read, order: Order) -> str:
    """Bring the rows in; their documents are read afterwards."""
    home, prereading = state.home(), state.prereading()

    def work(one: Import) -> None:
        one.total = len(read.rows)

        def progress(done: int, total: int) -> None:
            one.done, one.total = done, total

        with open_store_in(home) as store:
            one.outcome = take_in(store, home, read, order, progress)
            _note(store, one, order)
        for source, name in one.outcome.sources.items():
            prereading.submit(source, name)

    return imports().start(work)


def _note(store: Store, one: Import, order: Order) -> None:
    project = store.projects.get(order.project.id)
    one.project_id = order.project.id
    one.words = f"Imported into “{project.name}”." if project else "Imported."


def start_archive(data: bytes, by: str) -> str:
    """Bring a whole project in."""
    home: Path = state.home()

    def work(one: Import) -> None:
        with open_store_in(home) as store:
            taken = take(store, home, io.BytesIO(data), by, time.time())
        one.words, one.project_id = taken.words, taken.project.id

    return imports().start(work)
