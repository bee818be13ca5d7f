"""Session and process state: the home, the store, the jobs, who is here, and widget keys."""

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


def home() -> Path:
    """The folder that holds everything."""
    return home_from(os.environ)


def open_store() -> Store:
    """A store for this script run, for a `with` block. Raises NotAllowed: one must log in first."""
    login.require_inside()
    return open_store_in(home())


@st.cache_resource
def jobs() -> Jobs:
    """The runs of this server process."""
    return Jobs(home(), keys=keys_here(os.environ, PROJECT_ROOT))


def typed_keys() -> dict[str, str]:
    """Keys typed in this session, by name; they are kept nowhere else."""
    typed = {str(name): str(value or "").strip() for name, value in st.session_state.items()}
    return {n.removeprefix(KEY_FIELD): v for n, v in typed.items() if n.startswith(KEY_FIELD) and v}


def keys() -> Keys:
    """The keys at hand in this session: typed ones first, then the server's."""
    return replace(jobs().keys, typed=typed_keys())


@st.cache_resource
def prereading() -> Prereading:
    """The background reader of this server process."""
    return Prereading(home())


@st.cache_resource
def reordering() -> Reordering:
    """What keeps the review queues of this server process in order."""
    return Reordering(home())


def person(store: Store) -> str:
    """Who is here: whoever logged in, whatever the session says.

    Without login a name is enough: that given in this session, else in this browser, else the last
    one, else the system's.
    """
    identity = login.identity()
    if identity is not None:
        return name_of(store, identity, time.time())
    name = str(st.session_state.get("person") or remembered() or person_here(store))
    st.session_state["person"] = name
    return name


def begin_as(name: str) -> None:
    """Another person in this session: what stands in its fields is not theirs."""
    for key in [str(key) for key in st.session_state]:
        if not key.startswith(("project", "settings.")):
            st.session_state.pop(key, None)
    st.session_state["person"] = name


def project(store: Store) -> Project:
    """The project at hand; a newcomer gets one. With login it is one in which they have a role.

    Raises:
        NotAllowed: they are logged in, and have a role in none.
    """
    name, wanted = person(store), str(st.session_state.get("project", ""))
    if login.is_on():
        found = project_of(store, name, wanted)
    else:
        found = store.projects.get(wanted) or first_project(store, name, time.time())
    st.session_state["project"] = found.id
    return found


def projects(store: Store) -> list[Project]:
    """The projects that whoever is here may see, oldest first."""
    return store.projects.of(person(store)) if login.is_on() else store.projects.all()


def may_see(store: Store, project_id: str) -> bool:
    """True where whoever is here may look at a project's cases: with login, its people only."""
    return not login.is_on() or store.projects.role_of(project_id, person(store)) is not None


def may_see_source(store: Store, source_id: str) -> bool:
    """True where they may look at a whole source: with login, one in a library of theirs.

    A trace file names sources by their content alone, and may name those of others.
    """
    mine = projects(store)
    return not login.is_on() or any(store.library.get(one.id, source_id) for one in mine)


def is_admitted() -> bool:
    """True where whoever is here may see anything at all."""
    try:
        if not login.is_on():
            return True
        with open_store() as store:
            project(store)
    except ReviewError:
        return False
    return True


def require(store: Store, project_id: str, at_least: PersonRole, what: str) -> str:
    """Who is here, once their role permits it, else NotAllowed; call it where it is written."""
    name = person(store)
    store.projects.require(project_id, name, at_least, what)
    return name


@st.cache_resource
def _warm_up() -> None:
    """Load the engine soon after the first page is drawn, so that the first check need not."""
    folder = home()

    def load() -> None:
        time.sleep(WARM_AFTER_SECONDS)
        with contextlib.suppress(ReviewError):  # the first check says it where it can be seen
            warm_up(folder)

    threading.Thread(target=load, daemon=True, name="warm-up").start()


@st.cache_resource
def warm_models(seats: tuple[Seat, ...]) -> None:
    """Import the clients of the seats' calls, once somebody has chosen a roster with them."""
    from core.llm.providers import load

    def load_all() -> None:
        for seat in seats:
            load(seat)

    threading.Thread(target=load_all, daemon=True, name="warm-up models").start()


@st.cache_resource
def _freeze(stage: tuple[str, ...]) -> None:
    """Take what is loaded out of the collector's sight: each collection held the GIL for 0.5 s."""
    gc.collect()
    gc.freeze()


def settle() -> None:
    """Call at the end of each script run."""
    _freeze(tuple(name for name in HEAVY if name in sys.modules))
    _warm_up()


MOST_RESULTS = 20


@dataclass(frozen=True)
class KeptResult:
    """A result; `mark` is that of the answers it rests on, `at` when it was counted."""

    value: Any
    mark: Mark
    at: float


@st.cache_resource
def _shelf() -> dict[tuple[str, str], KeptResult]:
    """By home and name, the newest last."""
    return {}


def keep_result(name: str, value: Any, mark: Mark, at: float) -> None:
    """Keep a result under its name; what was there before is gone, and at last the oldest."""
    shelf, key = _shelf(), (str(home()), name)
    shelf.pop(key, None)
    shelf[key] = KeptResult(value, mark, at)
    while len(shelf) > MOST_RESULTS:
        shelf.pop(next(iter(shelf)), None)


def kept_result(name: str) -> KeptResult | None:
    """What is kept under a name, however old; None where nobody has asked for it yet."""
    return _shelf().get((str(home()), name))


def answers_mark() -> Mark:
    """Changes with every answer, settled case and ended run."""
    with open_store() as store:
        return (*store.changes.of_corrections(), *store.changes.of_runs())
