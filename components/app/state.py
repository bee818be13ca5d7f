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
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.app import login
from components.app.login import read_remembered_name
from core.llm.keys import Keys, load_keys
from core.pipeline.jobs import BackgroundReader, JobRunner, warm_up
from core.review.people import ensure_project, find_project, name_guest, resolve_name
from core.review.queue_ranking import QueueRanker
from core.runtime.config import PROJECT_ROOT, has_sample, resolve_home
from core.runtime.errors import NotAllowed, ReviewError
from core.schema.records import PersonRole, Project
from core.schema.rosters import AgentConfig
from core.store import Store
from core.store import open_store as open_store_in
from core.store.projects import GUEST
from core.store.sqlite import ChangeMark

KEY_FIELD_PREFIX = "keys.typed."
SAMPLE_KEY = "sample.folder"
# Of the session's values, those that another project takes over: files on their way in among them.
KEPT_FIELDS = ("person", KEY_FIELD_PREFIX, "sample.", "settings.", "exchange.")
PROJECT_PARAMETER = "project"  # of every address, where there are several or in the sample
HEAVY_MODULES = (
    "litellm numpy pandas pyarrow onnxruntime tokenizers plotly PIL rapidfuzz mapie".split()
)
WARM_UP_DELAY_SECONDS = 0.5
MAX_RESULTS = 20


def own_home_folder() -> Path:
    """Return the folder that holds all data of the people who work here."""
    return resolve_home(os.environ)


def home_folder() -> Path:
    """Return the folder that this session works in: the sample project's while that is open.

    Raises NotAllowed: the sample was removed in another tab, and what is clicked here was not meant
    for one's own data.
    """
    sample = st.session_state.get(SAMPLE_KEY) if get_script_run_ctx() else ""
    if sample and not has_sample(Path(sample)):
        raise NotAllowed("The sample project was removed; reload the page to go on in your own.")
    return Path(sample) if sample else own_home_folder()


def enter_home(sample: str, project_id: str = "") -> None:
    """Work in the sample project's folder, or with "" in one's own; fields of the other go."""
    _forget_fields("person", KEY_FIELD_PREFIX)
    st.session_state[SAMPLE_KEY] = sample
    st.session_state["project"] = project_id


def open_store() -> Store:
    """Open a store for this script run, for a `with` block. Raises NotAllowed without a login."""
    login.require_logged_in()
    return open_store_in(home_folder())


def get_jobs() -> JobRunner:
    """Return the runs of this server process in the session's home."""
    return make_jobs(str(home_folder()))


@st.cache_resource
def make_jobs(home: str) -> JobRunner:
    """Return the runs of a home; the server's keys pay for none in a sample project."""
    is_own = Path(home) == own_home_folder()
    return JobRunner(Path(home), keys=load_keys(os.environ, PROJECT_ROOT) if is_own else None)


def get_typed_keys() -> dict[str, str]:
    """Return the keys typed in this session by name; they are stored nowhere else."""
    return {
        str(name).removeprefix(KEY_FIELD_PREFIX): key
        for name, value in st.session_state.items()
        if str(name).startswith(KEY_FIELD_PREFIX) and (key := str(value or "").strip())
    }


def get_keys() -> Keys:
    """Return the keys available in this session: typed ones first, then the server's."""
    return replace(get_jobs().keys, typed=get_typed_keys())


def get_background_reader() -> BackgroundReader:
    """Return the background reader of this server process."""
    return _make_reader(str(home_folder()))


@st.cache_resource
def _make_reader(home: str) -> BackgroundReader:
    return BackgroundReader(Path(home))


def get_queue_ranker() -> QueueRanker:
    """Return the object that keeps this server's review queues in order."""
    return _make_ranker(str(home_folder()))


@st.cache_resource
def _make_ranker(home: str) -> QueueRanker:
    return QueueRanker(Path(home))


def get_person(store: Store) -> str:
    """Return the current person: with login always who is logged in.

    Without login it is the name given in this session, else the one that this browser remembers,
    else a guest, who gives a name before their first answer.
    """
    identity = login.get_identity()
    if identity is not None:
        return resolve_name(store, identity, time.time())
    name = str(st.session_state.get("person") or read_remembered_name() or GUEST)
    st.session_state["person"] = name
    return name


def start_session_as(name: str) -> None:
    """Switch to another person: drop the last person's fields from the session."""
    _forget_fields("project", "settings.")
    st.session_state["person"] = name


def _forget_fields(*but: str) -> None:
    """Drop the session's values, except those whose keys begin so."""
    for key in [str(key) for key in st.session_state]:
        if not key.startswith(but):
            st.session_state.pop(key, None)


def get_project(store: Store) -> Project:
    """Return the current project and remember it; a newcomer gets a new one.

    It is the one that the address names, else the session's. With login it is a project in which
    the person has a role.

    Raises:
        NotAllowed: the person is logged in and has a role in no project.
    """
    name, named = get_person(store), str(st.query_params.get(PROJECT_PARAMETER, ""))
    wanted = str(st.session_state.get("project", ""))
    if named != wanted and store.projects.get(named) and can_see_project(store, named):
        if wanted:  # the browser went back to another project: fields of this one go
            _forget_fields(*KEPT_FIELDS)
        wanted = named
    if login.is_login_required():
        current = find_project(store, name, wanted)
    else:
        current = store.projects.get(wanted) or ensure_project(store, name, time.time())
        if name != GUEST and store.projects.of(GUEST):  # a guest began it, who had no name yet
            name_guest(store, current.id, name, time.time())
    st.session_state["project"] = current.id
    return current


def choose_project(project_id: str) -> None:
    """Go on in another project, in this session and its address."""
    _forget_fields(*KEPT_FIELDS)
    st.session_state["project"] = project_id
    st.query_params.from_dict({PROJECT_PARAMETER: project_id})


def list_projects(store: Store) -> list[Project]:
    """Return the projects that the current person may see, oldest first."""
    return (
        store.projects.of(get_person(store)) if login.is_login_required() else store.projects.all()
    )


def can_see_project(store: Store, project_id: str) -> bool:
    """Return True if the current person may see the project's cases: with login, members only."""
    return (
        not login.is_login_required()
        or store.projects.role_of(project_id, get_person(store)) is not None
    )


def can_see_source(store: Store, source_id: str) -> bool:
    """Return True if the current person may see the whole source: with login, one in their library.

    A trace file names sources by content hash only, and may name those of others.
    """
    visible = list_projects(store)
    return not login.is_login_required() or any(store.library.get(p.id, source_id) for p in visible)


def has_access() -> bool:
    """Return True if the current person may see anything at all."""
    try:
        if not login.is_login_required():
            return True
        with open_store() as store:
            get_project(store)
    except ReviewError:
        return False
    return True


def require_role(store: Store, project_id: str, at_least: PersonRole, what: str) -> str:
    """Return the current person if their role permits `what`; call it where that is written.

    Raises:
        NotAllowed: their role in the project is below `at_least`.
    """
    name = get_person(store)
    store.projects.require(project_id, name, at_least, what)
    return name


@st.cache_resource
def _warm_up() -> None:
    """Load the engine soon after the first page is drawn, so that the first check is fast."""
    folder = home_folder()

    def load() -> None:
        time.sleep(WARM_UP_DELAY_SECONDS)
        with contextlib.suppress(ReviewError):  # the first check shows the error
            warm_up(folder)

    threading.Thread(target=load, daemon=True, name="warm-up").start()


@st.cache_resource
def warm_up_models(models: tuple[tuple[str, str], ...]) -> None:
    """Import the clients of these models (name, address), once a roster with some is chosen."""
    from core.llm.providers import import_client

    def import_all() -> None:
        for model, api_base in models:
            import_client(AgentConfig(model, api_base))

    threading.Thread(target=import_all, daemon=True, name="warm-up models").start()


@st.cache_resource
def _freeze(stage: tuple[str, ...]) -> None:
    """Exempt loaded modules from garbage collection: each collection held the GIL for 0.5 s."""
    gc.collect()
    gc.freeze()


def finish_script_run() -> None:
    """Freeze loaded modules and warm up the engine; call it at the end of each script run."""
    _freeze(tuple(name for name in HEAVY_MODULES if name in sys.modules))
    _warm_up()


@dataclass(frozen=True)
class StoredResult:
    """A computed result; `mark` is the state of the answers it rests on, `at` when it was made."""

    value: Any
    mark: ChangeMark
    at: float


@st.cache_resource
def _stored_results() -> dict[tuple[str, str], StoredResult]:
    """Return the results by home and name, the newest last."""
    return {}


def store_result(name: str, value: Any, mark: ChangeMark, at: float) -> None:
    """Store a result under its name, and drop the oldest result beyond the limit."""
    results = _stored_results()
    key = (str(home_folder()), name)
    results.pop(key, None)
    results[key] = StoredResult(value, mark, at)
    while len(results) > MAX_RESULTS:
        results.pop(next(iter(results)), None)


def find_result(name: str) -> StoredResult | None:
    """Return the result stored under a name, however old; None if there is none."""
    return _stored_results().get((str(home_folder()), name))


def get_answers_mark() -> ChangeMark:
    """Return a mark that changes with every answer, settled case and ended run."""
    with open_store() as store:
        return (*store.changes.of_corrections(), *store.changes.of_runs())
