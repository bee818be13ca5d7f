"""Web search in Settings, through the app itself: off, chosen, tried, and who may."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.llm.keys import SEARCH_KEY
from core.review.people import ensure_project
from core.schema.records import Member
from core.store import open_store
from core.tools.web_search import WebSearchChoice, load_web_choice
from tests.pages.conftest import OpenApp
from tests.pages.driving import Site, told
from tests.tools.web.server import as_json, serving

PAGE = "pages/setup/settings.py"
RESULT = {"title": "Wikipedia", "url": "https://a.org/", "content": "An encyclopedia."}


@pytest.fixture(autouse=True)
def _mira(home: Path) -> None:
    with open_store(home) as store:
        ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")


def chosen(home: Path) -> WebSearchChoice:
    with open_store(home) as store:
        return load_web_choice(store)


def choose(app: OpenApp, provider: str) -> AppTest:
    at = app(PAGE)
    at.selectbox(key="settings.web.provider").set_value(provider).run()
    assert not at.exception
    return at


def test_nothing_is_searched_until_somebody_chooses(site: Site) -> None:
    at = site.open(PAGE)
    assert at.selectbox(key="settings.web.provider").value == ""
    assert "none: nothing is ever searched" in at.selectbox(key="settings.web.provider").options[0]
    assert "settings.web.test" not in {button.key for button in at.button}
    assert chosen(site.home) == WebSearchChoice()


def test_a_server_is_chosen_and_tried(site: Site) -> None:
    with serving(as_json({"results": [RESULT]})) as server:
        at = choose(site.open, "searxng")
        assert any("sends a statement" in info.value for info in at.info)
        at.text_input(key="settings.web.address").set_value(server.origin)
        at.button(key="settings.web.save").click().run()
        assert chosen(site.home) == WebSearchChoice("searxng", server.origin)
        assert server.got == [], "saving asks nobody"
        at.button(key="settings.web.test").click().run()
        assert "SearXNG found 1" in at.success[0].value
        at.run()
        assert len(server.got) == 1, "a rerun asks nobody"
    at.button(key="settings.web.test").click().run()
    assert "could not be asked" in at.error[0].value
    assert not at.exception


def test_what_cannot_be_an_address_is_said_and_not_kept(site: Site) -> None:
    at = choose(site.open, "searxng")
    at.text_input(key="settings.web.address").set_value("my server")
    at.button(key="settings.web.save").click().run()
    assert "Expected the SearXNG server" in at.error[0].value
    assert chosen(site.home) == WebSearchChoice()


def test_the_key_is_asked_for_by_name_and_never_stored(site: Site) -> None:
    at = choose(site.open, "google")
    at.text_input(key="settings.web.cx").set_value("engine:1")
    at.text_input(key=f"settings.web.key.{SEARCH_KEY}").set_value("AIza-secret-0123").run()
    assert not at.exception
    assert any("typed in this session" in caption.value for caption in at.caption)
    at.button(key="settings.web.save").click().run()
    assert chosen(site.home) == WebSearchChoice("google", cx="engine:1")
    assert b"AIza-secret" not in b"".join(
        p.read_bytes() for p in site.home.rglob("*") if p.is_file()
    )


def test_only_an_admin_chooses(site: Site) -> None:
    with open_store(site.home) as store, store.writing():
        project = ensure_project(store, "Mira", 1.0)
        store.projects.set_member(Member(project.id, "Karl", "lead", 1.0))
        store.projects.save_note("person", "Karl")
    at = site.open("pages/setup/settings.py")
    assert "Only admins can choose another provider: Mira." in told(at)
    assert not [button for button in at.button if button.key == "settings.web.save"]
    assert chosen(site.home) == WebSearchChoice()
