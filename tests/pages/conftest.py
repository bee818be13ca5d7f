"""Pages are driven through app.py, with a home and process-wide caches of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.app import state
from core.documents.library import store_file
from core.pipeline.streaming_input import Draft, store_case
from core.review.people import first_project
from core.runtime.config import Settings
from core.schema.records import Plan
from core.schema.rosters import DebaterSeat
from core.store import open_store
from tests.debate.test_all_protocols_served import sensible
from tests.llm.loopback import loopback
from tests.pages.driving import Site
from tests.test_with_models import sheet_at

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT = 60

OpenApp = Callable[..., AppTest]
CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
WRONG = "Female cats tend to be left pawed."


@pytest.fixture(autouse=True)
def _without_weights(without_weights: None) -> None:
    """Which words a page shows does not depend on what the shipped reader has learned."""


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    """Streamlit's caches belong to the process and would leak between tests."""
    st.cache_resource.clear()
    st.cache_data.clear()
    yield
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def app() -> Callable[..., AppTest]:
    """Opens the app, on a page if one is named, with query parameters."""

    def open_app(page: str = "", /, **query: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT).run()
        assert not at.exception
        if page:
            at.switch_page(page)
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
        return first_project(store, "Mira", 1.0).id


@pytest.fixture
def site(app: OpenApp, home: Path) -> Site:
    """The app and its home together."""
    return Site(app, home)


@pytest.fixture
def scripted(home: Path) -> Iterator[str]:
    """The name of a kept roster whose debaters and judge are a scripted model behind a server."""
    with loopback(sensible) as server:
        sheet = sheet_at(server, seconds=30)
        cleo = DebaterSeat("Cleo", sheet.debaters[0].seat)
        sheet = replace(sheet, name="scripted", debaters=(*sheet.debaters, cleo))
        with open_store(home) as store:
            store.rosters.save(sheet, "Mira", 1.0)
        yield sheet.name


@pytest.fixture
def run_id(home: Path) -> str:
    """A finished run over a wrong claim."""
    with open_store(home) as store:
        project = first_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        entry = store_file(
            store, home, project.id, "cats.txt", CATS.encode(), "Mira", 1.0, Settings()
        )
        case = store_case(store, project, Draft(WRONG, documents=(entry.id,)), "Mira", time.time())
    jobs = state.jobs()
    made = jobs.start(case, Plan())
    assert jobs.wait(made, 60)
    return made
