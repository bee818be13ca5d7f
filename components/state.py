"""Session and process state: the home, the store, the jobs, who is here, and widget keys."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import streamlit as st

from core.agents.keys_here import keys_here
from core.checking import first_project, person_here
from core.config import PROJECT_ROOT, home_from
from core.errors import ReviewError
from core.jobs import Jobs
from core.models.keys import Keys
from core.prereading import Prereading
from core.records import Project
from core.store import Store
from core.store import open_store as open_store_in
from core.warm_up import warm_up

KEY_FIELD = "keys.typed."
HEAVY = (
    "litellm",
    "numpy",
    "pandas",
    "pyarrow",
    "onnxruntime",
    "tokenizers",
    "plotly",
    "PIL",
    "rapidfuzz",
)
WARM_AFTER_SECONDS = 0.5


def home() -> Path:
    """The folder that holds everything."""
    return home_from(os.environ)


def open_store() -> Store:
    """A store for this script run; use it in a `with` block."""
    return open_store_in(home())


@st.cache_resource
def jobs() -> Jobs:
    """The runs of this server process."""
    return Jobs(home(), keys=keys_here(os.environ, PROJECT_ROOT))


def typed_keys() -> dict[str, str]:
    """Keys typed in this session, by name; they are kept nowhere else."""
    fields = st.session_state.items()
    named = {str(name): str(value or "") for name, value in fields}
    return {
        name.removeprefix(KEY_FIELD): value.strip()
        for name, value in named.items()
        if name.startswith(KEY_FIELD) and value.strip()
    }


def keys() -> Keys:
    """The keys at hand in this session: typed ones first, then the server's."""
    return replace(jobs().keys, typed=typed_keys())


@st.cache_resource
def prereading() -> Prereading:
    """The background reader of this server process."""
    return Prereading(home())


def person(store: Store) -> str:
    """Who is here: the name given in this session, else the last one, else the system's."""
    name = str(st.session_state.get("person") or person_here(store))
    st.session_state["person"] = name
    return name


def project(store: Store) -> Project:
    """The project at hand; a newcomer gets one."""
    chosen = store.projects.get(str(st.session_state.get("project", "")))
    found = chosen or first_project(store, person(store), time.time())
    st.session_state["project"] = found.id
    return found


@st.cache_resource
def _warm_up() -> None:
    """Load the engine soon after the first page is drawn, so that the first check need not."""

    def load() -> None:
        time.sleep(WARM_AFTER_SECONDS)
        try:
            warm_up(home())
        except ReviewError:
            return  # the first check says it, in words and where it can be seen

    threading.Thread(target=load, daemon=True, name="warm-up").start()


@st.cache_resource
def warm_models() -> None:
    """Load what calls to language models need, once somebody has chosen a roster with some."""
    from core.models.llm import load

    threading.Thread(target=load, daemon=True, name="warm-up models").start()


@st.cache_resource
def _freeze(stage: tuple[str, ...]) -> None:
    """Take what is loaded out of the collector's sight, once for each set of heavy imports.

    Streamlit collects after every script run; with heavy libraries loaded that holds the GIL for
    half a second each time, frozen for a millisecond.
    """
    gc.collect()
    gc.freeze()


def settle() -> None:
    """Call at the end of each script run."""
    _freeze(tuple(name for name in HEAVY if name in sys.modules))
    _warm_up()
