"""Library, Project and Settings, through the app itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from components.app import state
from components.widgets.wording import ROSTER_TITLES
from core.agents.rosters import SHIPPED_ROSTERS
from core.documents.library import store_file
from core.review.people import ensure_project, list_drafts, save_draft
from core.runtime.config import Settings
from core.schema.records import LibraryEntry
from core.schema.rosters import RosterConfig
from core.store import open_store
from tests.pages.conftest import OpenApp
from tests.pages.driving import Site, member, press, project_of, put, told
from tests.waiting import wait_for


def until_read(home: Path, project_id: str) -> None:
    with open_store(home) as store:
        wait_for(
            lambda: all(e.status in ("ready", "refused") for e in store.library.all(project_id)),
            "all files",
        )


@pytest.fixture
def project_id(home: Path) -> str:
    """A project whose admin is Mira, with one file."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        store_file(store, home, project.id, "a.txt", b"Cats sleep.", "Mira", 1.0, Settings())
    return project.id


def test_the_library_reads_lists_and_deletes(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/library.py")
    at.file_uploader(key="library.upload").set_value([("b.txt", b"Dogs bark.", "text/plain")]).run()
    state.get_background_reader().submit(
        next(e.id for e in entries(site.home, project_id) if e.name == "a.txt"), "a.txt"
    )
    until_read(site.home, project_id)
    at.run()
    assert not at.exception
    assert sorted(at.dataframe[0].value["Name"]) == ["a.txt", "b.txt"]
    assert set(at.dataframe[0].value["State"]) == {"ready"}
    for key in ("delete", "sure"):
        chosen = {"selection": {"rows": [0], "columns": [], "cells": []}}
        at.session_state["library.table.0"] = chosen
        press(at.run(), f"library.{key}")
    assert len(entries(site.home, project_id)) == 1


def entries(home: Path, project_id: str) -> list[LibraryEntry]:
    with open_store(home) as store:
        return store.library.all(project_id)


def test_the_project_is_renamed_and_gets_people(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/project.py")
    key = f"project.{project_id}"
    at.text_input(key=f"{key}.name").set_value("Bridges")
    press(at, f"{key}.save")
    at.text_input(key="project.member").set_value("Karl")
    at.selectbox(key="project.member.role").set_value("lead")
    press(at, "project.member.add")
    with open_store(site.home) as store:
        assert store.projects.get(project_id).name == "Bridges"  # type: ignore[union-attr]
        assert store.projects.role_of(project_id, "Karl") == "lead"


def test_adding_whoever_is_there_changes_no_role(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/project.py")
    at.text_input(key="project.member").set_value("Mira")
    press(at, "project.member.add")
    assert "Mira is in this project already" in at.error[0].value
    with open_store(site.home) as store:
        assert store.projects.role_of(project_id, "Mira") == "admin"


def test_the_only_admin_stays_one_and_is_shown_so(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/project.py")
    key = f"project.{project_id}.role.Mira"
    at.selectbox(key=key).set_value("lead").run()
    assert "only admin" in at.error[0].value
    assert at.selectbox(key=key).value == "admin"
    with open_store(site.home) as store:
        assert store.projects.role_of(project_id, "Mira") == "admin"


def test_the_projects_choices_are_put_in_words(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/project.py")
    key = f"project.{project_id}"
    roster, protocol = at.selectbox(key=f"{key}.roster"), at.selectbox(key=f"{key}.protocol")
    assert roster.options[0] == "Built-in engine"
    assert "No key, network or language model" in roster.help
    assert protocol.options[0] == "Debate in turn (CEDA)"
    assert "two unlike debaters" in protocol.help
    press(at, f"{key}.save")
    project = project_of(site.home, project_id)
    assert (project.roster, project.protocol) == ("builtin", "ceda")


def test_every_roster_can_be_a_projects_own(site: Site, project_id: str) -> None:
    with open_store(site.home) as store:
        store.rosters.save(RosterConfig("our-lab", "See [this](http://evil.example)"), "Mira", 1.0)
    at = site.open("pages/setup/project.py")
    key = f"project.{project_id}"
    roster = at.selectbox(key=f"{key}.roster")
    assert roster.options == [*(ROSTER_TITLES[name] for name in SHIPPED_ROSTERS), "our-lab"]
    assert "](http" not in roster.help
    roster.set_value("our-lab")
    press(at, f"{key}.save")
    with open_store(site.home) as store:
        assert store.projects.get(project_id).roster == "our-lab"  # type: ignore[union-attr]
        store.rosters.remove("our-lab", "Karl", 2.0)
    at = site.open("pages/setup/project.py")
    assert "not there any more" in at.warning[0].value
    assert at.selectbox(key=f"{key}.roster").value == "builtin"


def test_an_annotator_may_not_change_the_project(site: Site, project_id: str) -> None:
    member(site.home, project_id, "Karl", "admin")
    member(site.home, project_id, "Mira", "annotator")
    at = site.open("pages/setup/project.py")
    assert "Only admins can change the project: Karl." in told(at)
    member(site.home, project_id, "Mira", "admin")
    at = site.open("pages/setup/project.py")
    key = f"project.{project_id}"
    at.text_input(key=f"{key}.name").set_value("Mine")
    member(site.home, project_id, "Mira", "annotator")  # while her page is open
    press(at, f"{key}.save")
    assert project_of(site.home, project_id).name == "First project"


def test_what_somebody_else_saved_meanwhile_is_not_overwritten(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/project.py")
    key = f"project.{project_id}"
    with open_store(site.home) as store:
        store.projects.save(replace(project_of(site.home, project_id), description="By Karl."))
    at.text_input(key=f"{key}.name").set_value("Mine").run()
    press(at, f"{key}.save")
    assert "Someone changed this project" in at.error[0].value
    assert project_of(site.home, project_id).description == "By Karl."
    at = site.open("pages/setup/project.py")
    for name in ("Mine", "Ours"):
        at.text_input(key=f"{key}.name").set_value(name).run()
        press(at, f"{key}.save")
        assert not at.error
        with open_store(site.home) as store:
            assert store.projects.get(project_id).name == name  # type: ignore[union-attr]


def test_a_second_project_is_begun_and_chosen(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/project.py")
    at.text_input(key="project.new").set_value("Towers")
    press(at, "project.begin")
    with open_store(site.home) as store:
        assert [p.name for p in store.projects.all()] == ["First project", "Towers"]
    assert at.text_input(key=f"project.{at.session_state['project']}.name").value == "Towers"


def test_a_name_is_kept_with_its_role(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/settings.py")
    at.text_input(key="settings.person").set_value("Mira Berg").run()
    press(at, "settings.rename")
    with open_store(site.home) as store:
        assert store.projects.note("person") == "Mira Berg"
        assert store.projects.role_of(project_id, "Mira Berg") == "admin"


def test_somebody_else_takes_nothing_over(site: Site, project_id: str) -> None:
    with open_store(site.home) as store:
        save_draft(store, "Mira", "new.x", '{"response": "mine"}')
    at = site.open("pages/setup/settings.py")
    at.text_input(key="settings.person").set_value("Karla").run()
    press(at, "settings.change")
    assert at.session_state["person"] == "Karla"
    with open_store(site.home) as store:
        assert store.projects.role_of(project_id, "Karla") == "annotator"
        assert store.projects.role_of(project_id, "Mira") == "admin"
        assert list_drafts(store, "Karla") == []
        assert list_drafts(store, "Mira") == ["new.x"]


def test_limits_are_kept(site: Site, project_id: str) -> None:
    at = site.open("pages/setup/settings.py")
    put(at, "settings.passages", 7)
    with open_store(site.home) as store:
        assert store.projects.settings().passages == 7


def test_health_is_looked_at_on_request(app: OpenApp, project_id: str) -> None:
    at = app("pages/setup/settings.py")
    press(at, "settings.health")
    assert any("encoder" in item.value for item in at.markdown)
    assert not at.error


def test_a_persons_name_is_never_markdown(site: Site, project_id: str) -> None:
    name = "![x](http://evil.example/p.png)"
    member(site.home, project_id, name, "lead")
    at = site.open("pages/setup/project.py")
    labels = [box.label for box in at.selectbox]
    assert any("evil" in label for label in labels)
    assert not any("](http" in label for label in labels)


def test_pages_open_at_their_own_address_after_a_restart(app: OpenApp, project_id: str) -> None:
    for page in ("history", "batch"):
        assert not app(f"pages/check/{page}.py").exception
