"""Pages are driven through app.py, with a home and process-wide caches of their own."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from components.app import state
from components.app.frame import URL_PATHS
from core.documents.library import store_file
from core.learning.retrain import measure_sample_seconds
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.schema.records import Case, Plan, Project, Run
from core.schema.rosters import DebaterConfig
from core.store import Store, open_store
from core.store.traces import import_trace
from tests.debate.test_all_protocols_served import sensible
from tests.fakes import get_last_person
from tests.llm.loopback import loopback
from tests.pages.driving import Site
from tests.test_with_models import sheet_at

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT = 60

OpenApp = Callable[..., AppTest]
RUN = "pages/check/run.py"
CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
WRONG = "Female cats tend to be left pawed."


@pytest.fixture(autouse=True)
def _without_weights(without_weights: None) -> None:
    """Which words a page shows does not depend on what the shipped reader has learned."""


@pytest.fixture(autouse=True, scope="session")
def _measured_once() -> Iterator[None]:
    """How fast this computer trains is measured once in a process, not once in a test."""
    measure = functools.cache(measure_sample_seconds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("components.learn.retrain.measure_sample_seconds", measure)
        yield


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is drawn does not load the engine beside the test."""
    monkeypatch.setattr(state, "_warm_up", lambda: None)
    monkeypatch.setattr(state, "_freeze", lambda stage: None)


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    """Streamlit's caches belong to the process and would leak between tests."""
    st.cache_resource.clear()
    st.cache_data.clear()
    yield
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture(autouse=True)
def _remembering_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser remembers the name that was last given in the home."""

    def remembered() -> str:
        with open_store(state.own_home_folder()) as store:
            return get_last_person(store)

    monkeypatch.setattr(state, "read_remembered_name", remembered)


@pytest.fixture
def app() -> Callable[..., AppTest]:
    """Opens the app, on a page if one is named, with query parameters."""

    def open_app(page: str = "", /, **query: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
        if page:  # opened at its own address, as from a bookmark: one script run instead of two
            assert (ROOT / page).is_file(), page
            at._page_hash = calc_hash(URL_PATHS.get(page, Path(page).stem))
        for name, value in query.items():
            at.query_params[name] = value
        at.run()
        assert not at.exception, at.exception[0].message
        return at

    return open_app


@pytest.fixture
def project_id(home: Path) -> str:
    """A project whose admin is Mira."""
    with open_store(home) as store:
        store.projects.save_note("person", "Mira")
        return ensure_project(store, "Mira", 1.0).id


@pytest.fixture
def site(app: OpenApp, home: Path) -> Site:
    """The app and its home together."""
    return Site(app, home)


@pytest.fixture
def scripted(home: Path) -> Iterator[str]:
    """The name of a kept roster whose debaters and judge are a scripted model behind a server."""
    with loopback(sensible) as server:
        sheet = sheet_at(server, seconds=30)
        cleo = DebaterConfig("Cleo", sheet.debaters[0].seat)
        sheet = replace(sheet, name="scripted", debaters=(*sheet.debaters, cleo))
        with open_store(home) as store:
            store.rosters.save(sheet, "Mira", 1.0)
        yield sheet.name


@pytest.fixture
def run_id(home: Path) -> str:
    """A finished run over a wrong claim."""
    return checked(home, WRONG, ("cats.txt", CATS))


def query(at: AppTest, name: str) -> str:
    """A parameter of the page's address."""
    value = at.query_params[name]
    return str(value if isinstance(value, str) else value[0])


def drawn(at: AppTest) -> str:
    """All markup on the page."""
    return "\n".join(item.proto.body for item in at.get("html"))


def said(messages: Iterable[Any], words: str) -> bool:
    """Whether one of these elements says so, backslashes of Markdown aside."""
    return any(words in str(own.value).replace("\\", "") for own in messages)


def typed(at: AppTest, text: str = WRONG, *files: tuple[str, bytes]) -> AppTest:
    """New check with the text in it, and with the files, by default the one about cats."""
    given = [(name, data, "text/plain") for name, data in files or (("cats.txt", CATS.encode()),)]
    at.text_area(key="new.response").set_value(text)
    at.file_uploader(key="new.upload").set_value(given)
    return at


def finish(at: AppTest) -> str:
    """Wait for the run that the page shows, and draw it anew; its id."""
    run_id = query(at, "run")
    assert state.get_jobs().wait(run_id, 60)
    at.run()
    assert not at.exception
    return run_id


def check(at: AppTest) -> str:
    """Press Check, and wait for the run; its id."""
    at.button(key="new.check").click().run()
    assert not at.exception
    return finish(at)


def kept(home: Path, run_id: str) -> tuple[Run, Case]:
    """A run with its case, as they are stored."""
    with open_store(home) as store:
        run = store.runs.get(run_id, time.time(), 6.0)
        assert run
        case = store.cases.get(run.case_id)
    assert case
    return run, case


def ours(store: Store) -> Project:
    """The first project, where Mira is at the keyboard."""
    store.projects.save_note("person", "Mira")
    return ensure_project(store, "Mira", 1.0)


def brought(home: Path, trace: bytes) -> str:
    """A trace file taken into the first project; the run's id."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        return import_trace(store, trace, project.id, lambda text, _: text.split())


def stored_case(home: Path, text: str, *files: tuple[str, str]) -> Case:
    """A case of the first project over the text, with these files."""
    with open_store(home) as store:
        project, usual = ours(store), Settings()
        own = (store, home, project.id)
        ids = tuple(store_file(*own, n, t.encode(), "Mira", 1.0, usual).id for n, t in files)
        return store_case(store, project, CaseDraft(text, documents=ids), "Mira", time.time())


def checked(home: Path, text: str, *files: tuple[str, str]) -> str:
    """The id of a run over the text that has ended."""
    case = stored_case(home, text, *files)
    made = state.get_jobs().start(case, Plan())
    assert state.get_jobs().wait(made, 60)
    return made
