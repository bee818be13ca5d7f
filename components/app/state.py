"""State of the session and the server process: home, store, jobs, person, project, results."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import login
from components.app.login import remembered
from core.llm.keys import Keys, keys_here
from core.pipeline.jobs import Jobs, Prereading, warm_up
from core.review.people import first_project, name_of, person_here, project_of
from core.review.queue_ranking import Reordering
from core.runtime.config import PROJECT_ROOT, home_from
from core.runtime.errors import ReviewError
from core.schema.records import PersonRole, Project
from core.schema.rosters import Seat
from core.store import Store
from core.store import open_store as open_store_in
from core.store.sqlite import Mark

KEY_FIELD = "keys.typed."
HEAVY = "litellm numpy pandas pyarrow onnxruntime tokenizers plotly PIL rapidfuzz mapie".split()
WARM_AFTER_SECONDS = 0.5
MOST_RESULTS = 20


def home() -> Path:
    """Return the folder that holds all data."""
    return home_from(os.environ)


def open_store() -> Store:
    """Open a store for this script run, for a `with` block. Raises NotAllowed without a login."""
    login.require_inside()
    return open_store_in(home())


@st.cache_resource
def jobs() -> Jobs:
    """Return the runs of this server process."""
    return Jobs(home(), keys=keys_here(os.environ, PROJECT_ROOT))


def typed_keys() -> dict[str, str]:
    """Return the keys typed in this session by name; they are stored nowhere else."""
    return {
        str(name).removeprefix(KEY_FIELD): key
        for name, value in st.session_state.items()
        if str(name).startswith(KEY_FIELD) and (key := str(value or "").strip())
    }


def keys() -> Keys:
    """Return the keys available in this session: typed ones first, then the server's."""
    return replace(jobs().keys, typed=typed_keys())


@st.cache_resource
def prereading() -> Prereading:
    """Return the background reader of this server process."""
    return Prereading(home())


@st.cache_resource
def reordering() -> Reordering:
    """Return the object that keeps this server's review queues in order."""
    return Reordering(home())


def person(store: Store) -> str:
    """Return the current person: with login always who is logged in.

    Without login it is the name given in this session, else the one that this browser remembers,
    else the last one used here, else the system's user name.
    """
    identity = login.identity()
    if identity is not None:
        return name_of(store, identity, time.time())
    name = str(st.session_state.get("person") or remembered() or person_here(store))
    st.session_state["person"] = name
    return name


def begin_as(name: str) -> None:
    """Switch to another person: drop the last person's fields from the session."""
    for key in [str(key) for key in st.session_state]:
        if not key.startswith(("project", "settings.")):
            st.session_state.pop(key, None)
    st.session_state["person"] = name


def project(store: Store) -> Project:
    """Return the current project and remember it; a newcomer gets a new one.

    With login it is a project in which the person has a role.

    Raises:
        NotAllowed: the person is logged in and has a role in no project.
    """
    name, wanted = person(store), str(st.session_state.get("project", ""))
    if login.is_on():
        current = project_of(store, name, wanted)
    else:
        current = store.projects.get(wanted) or first_project(store, name, time.time())
    st.session_state["project"] = current.id
    return current


def projects(store: Store) -> list[Project]:
    """Return the projects that the current person may see, oldest first."""
    return store.projects.of(person(store)) if login.is_on() else store.projects.all()


def may_see(store: Store, project_id: str) -> bool:
    """Return True if the current person may see the project's cases: with login, members only."""
    return not login.is_on() or store.projects.role_of(project_id, person(store)) is not None


def may_see_source(store: Store, source_id: str) -> bool:
    """Return True if the current person may see the whole source: with login, one in their library.

    A trace file names sources by content hash only, and may name those of others.
    """
    visible = projects(store)
    return not login.is_on() or any(store.library.get(p.id, source_id) for p in visible)


def is_admitted() -> bool:
    """Return True if the current person may see anything at all."""
    try:
        if not login.is_on():
            return True
        with open_store() as store:
            project(store)
    except ReviewError:
        return False
    return True


def require(store: Store, project_id: str, at_least: PersonRole, what: str) -> str:
    """Return the current person if their role permits `what`; call it where that is written.

    Raises:
        NotAllowed: their role in the project is below `at_least`.
    """
    name = person(store)
    store.projects.require(project_id, name, at_least, what)
    return name


@st.cache_resource
def _warm_up() -> None:
    """Load the engine soon after the first page is drawn, so that the first check is fast."""
    folder = home()

    def load() -> None:
        time.sleep(WARM_AFTER_SECONDS)
        with contextlib.suppress(ReviewError):  # the first check shows the error
            warm_up(folder)

    threading.Thread(target=load, daemon=True, name="warm-up").start()


@st.cache_resource
def warm_models(seats: tuple[Seat, ...]) -> None:
    """Import the clients of the seats' calls, once a roster with language models is chosen."""
    from core.llm.providers import load

    def load_all() -> None:
        for seat in seats:
            load(seat)

    threading.Thread(target=load_all, daemon=True, name="warm-up models").start()


@st.cache_resource
def _freeze(stage: tuple[str, ...]) -> None:
    """Exempt loaded modules from garbage collection: each collection held the GIL for 0.5 s."""
    gc.collect()
    gc.freeze()


def settle() -> None:
    """Freeze loaded modules and warm up the engine; call it at the end of each script run."""
    _freeze(tuple(name for name in HEAVY if name in sys.modules))
    _warm_up()


@dataclass(frozen=True)
class KeptResult:
    """A computed result; `mark` is the state of the answers it rests on, `at` when it was made."""

    value: Any
    mark: Mark
    at: float


@st.cache_resource
def _stored_results() -> dict[tuple[str, str], KeptResult]:
    """Return the results by home and name, the newest last."""
    return {}


def keep_result(name: str, value: Any, mark: Mark, at: float) -> None:
    """Store a result under its name, and drop the oldest result beyond the limit."""
    results = _stored_results()
    key = (str(home()), name)
    results.pop(key, None)
    results[key] = KeptResult(value, mark, at)
    while len(results) > MOST_RESULTS:
        results.pop(next(iter(results)), None)


def kept_result(name: str) -> KeptResult | None:
    """Return the result stored under a name, however old; None if there is none."""
    return _stored_results().get((str(home()), name))


def answers_mark() -> Mark:
    """Return a mark that changes with every answer, settled case and ended run."""
    with open_store() as store:
        return (*store.changes.of_corrections(), *store.changes.of_runs())
