"""How often agents were right before, for a run's debate: counted in the background, then kept.

Counting takes seconds where people have answered very much; a page then goes without for once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from components import state
from core.debate.signals import Past, held_by
from core.store import open_store
from core.store.changes import Mark

if TYPE_CHECKING:
    from core.learning.heard import Heard

WAIT_SECONDS = 0.2
Pasts = Mapping[str, Past]
Key = tuple[str, str]  # a home, a project


@dataclass
class _Kept:
    """What was counted or is being counted, for the newest state of each project.

    `known` keeps what was heard in each run, so that only new runs are read.
    """

    counting: dict[Key, tuple[Mark, Future[Pasts]]] = field(default_factory=dict)
    known: dict[Key, dict[str, Heard]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "pasts"))


@st.cache_resource
def _kept() -> _Kept:
    return _Kept()


def pasts_of(project_id: str) -> Pasts:
    """By debater's agent, where at least ten of its answers were judged by people."""
    with state.open_store() as store:
        mark = (*store.changes.of_corrections(), *store.changes.of_runs())
    kept, key = _kept(), (str(state.home()), project_id)
    with kept.lock:
        before = kept.counting.get(key)
        if before is None or before[0] != mark:
            known = kept.known.setdefault(key, {})
            future = kept.worker.submit(counted_pasts, state.home(), project_id, known)
            before = kept.counting[key] = (mark, future)
    try:
        return before[1].result(timeout=WAIT_SECONDS)
    except NotYet:
        return {}


def counted_pasts(home: Path, project_id: str, known: dict[str, Heard]) -> Pasts:
    """Each debater's record by its agent's name, with its seat where two share that.

    Of equal names, the one with the most cases.
    """
    from core.learning.heard import DEBATER, rows_of
    from core.learning.posterior import FEWEST
    from core.learning.reliability import records, table_of

    with open_store(home) as store:
        rows = rows_of(store, project_id, known)
    found: dict[str, Past] = {}
    for record in records(table_of(rows)):
        share = record.accuracy
        if record.agent.part == DEBATER and share.n >= FEWEST:
            name = held_by(record.agent.name, record.agent.seat)
            found.setdefault(name, Past(share.right, share.n, share.high))
    return found
