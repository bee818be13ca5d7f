"""Who works here and where: a new browser, several projects, and what a role is not shown."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from components.app.frame import MENU
from core.__main__ import main
from core.exchange.importer import ImportRequest, import_rows
from core.exchange.rows import ExchangeRow, ParsedFile, build_correction
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import load_draft
from core.review.queue_ranking import fill_queue
from core.schema.records import Member, PersonRole, Project
from core.schema.reviews import Correction, QueueItem
from core.store import open_store
from core.store.projects import GUEST
from tests.pages.conftest import RUN, WRONG, check, query, typed
from tests.pages.driving import Site, keys, member, press, project_of, put, run_of, told

OpenApp = Callable[..., AppTest]
TAKES = "takes the role"
SLOW = {"tour.begin", "sample.open", "settings.health"}
LEADS_ONLY = ("project", "adjudicate", "exchange")
PAGES = [path for entries in MENU.values() for path, _, _ in entries]


@pytest.fixture
def new_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that remembers nobody."""
    monkeypatch.setattr(state, "read_remembered_name", lambda: "")


def named(at: AppTest, name: str) -> AppTest:
    at.text_input(key="person.name").set_value(name)
    press(at, "person.save")
    return at


def test_a_new_browser_is_nobody_and_is_asked_before_the_first_answer(
    app: OpenApp, home: Path, project_id: str, new_browser: None
) -> None:
    at = app()
    assert "no name yet" in told(at)
    assert "Mira" not in told(at)
    run_id = check(typed(at))
    assert "person.name" in keys(at)
    assert not [key for key in keys(at) if key.startswith("run.") and ".choose." in key]
    named(at, "Ben")
    assert "person.name" not in keys(at)
    press(at, f"run.{run_id}.correct.choose.hallucinated")
    press(at, f"run.{run_id}.correct.save")
    with open_store(home) as store:
        assert [each.author for each in store.corrections.of_run(run_id)] == ["Ben"]
        roles = {each.person: each.role for each in store.projects.members(project_id)}
    assert roles == {"Mira": "admin", "Ben": "annotator"}


def test_who_names_the_browser_that_began_a_home_has_it(
    app: OpenApp, home: Path, new_browser: None
) -> None:
    typed(app()).run()
    named(app("pages/setup/settings.py"), "Ana")
    with open_store(home) as store:
        (project,) = store.projects.all()
        assert [(m.person, m.role) for m in store.projects.members(project.id)] == [
            ("Ana", "admin")
        ]
        assert WRONG in load_draft(store, "Ana", f"new.{project.id}")
        assert not load_draft(store, GUEST, f"new.{project.id}")
    named(app("pages/setup/settings.py"), "Bo")
    with open_store(home) as store:
        assert store.projects.role_of(project.id, "Bo") == "annotator"


def test_who_first_names_a_browser_of_a_home_from_the_command_line_leads_it_too(
    app: OpenApp, home: Path, new_browser: None, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "a", "response": WRONG}) + "\n", encoding="utf-8")
    assert main(["import", "--format", "jsonl", str(rows), "--home", str(home)]) == 0
    lead = named(app("pages/setup/settings.py"), "Lena")
    assert "project.begin" in keys(lead.switch_page("pages/setup/project.py").run())
    named(app("pages/setup/settings.py"), "Ann")
    with open_store(home) as store:
        members = store.projects.members(store.projects.all()[0].id)
    assert {one.person: one.role for one in members} == {
        getpass.getuser(): "admin", "Lena": "admin", "Ann": "annotator",
    }  # fmt: skip


def test_a_guest_whom_project_refuses_may_give_an_admins_name_there(
    app: OpenApp, project_id: str, new_browser: None
) -> None:
    at = app("pages/setup/project.py")
    assert "Only admins can create a project: Mira" in told(at)
    assert "project.begin" in keys(named(at, "Mira"))


def test_a_guest_gives_a_name_before_projects_and_roles(
    app: OpenApp, home: Path, new_browser: None
) -> None:
    typed(app()).run()
    at = app("pages/setup/project.py")
    assert not keys(at) & {"project.begin", "project.member.add"}
    assert keys(named(at, "Ana")) >= {"project.begin", "project.member.add"}


@pytest.mark.parametrize("name", ["", "  ", GUEST])
def test_no_name_is_no_name(app: OpenApp, project_id: str, new_browser: None, name: str) -> None:
    at = named(app("pages/setup/settings.py"), name)
    assert at.error[0].value.startswith("Expected a name")
    assert "person.name" in keys(at)


def test_a_guest_is_given_no_item(app: OpenApp, run_id: str, home: Path, new_browser: None) -> None:
    with open_store(home) as store:
        run = run_of(store, run_id)
        fill_queue(store, run.project_id, 9.0)
    for page in ("pages/review/pending.py", "pages/review/label.py"):
        at = app(page, case=run.case_id)
        assert "person.name" in keys(at)
        assert "review.next" not in keys(at)
        assert "review.skipped" not in keys(at)
    with open_store(home) as store:
        assert store.queue.people_of(run.case_id) == []


# Projects


def second(home: Path, **fields: object) -> Project:
    """Another project, of Mira's."""
    project = replace(Project("t" * 32, "Towers", 5.0), **fields)  # type: ignore[arg-type]
    with open_store(home) as store, store.writing():
        store.projects.save(project)
        store.projects.set_member(Member(project.id, "Mira", "admin", 5.0))
    return project


def test_an_address_names_its_project_and_a_reload_stays_there(
    app: OpenApp, home: Path, project_id: str
) -> None:
    towers = second(home)
    at = app("pages/check/new.py", project=towers.id)
    at.text_area(key="new.response").set_value("The tower is 512 m tall.").run()
    again = app("pages/check/new.py", project=towers.id)
    assert again.text_area(key="new.response").value == "The tower is 512 m tall."
    assert again.session_state["project"] == towers.id
    assert not app("pages/check/new.py", project=project_id).text_area(key="new.response").value
    links = [link.proto.query_string for link in app("pages/check/compare.py").get("page_link")]
    assert all(f"project={project_id}" in each for each in links)
    lost = app("pages/check/new.py", project="nowhere")
    assert lost.session_state["project"] == project_id


def test_the_sidebar_switches_between_projects(app: OpenApp, home: Path, project_id: str) -> None:
    assert "project.choice" not in keys(app("pages/check/history.py"))
    towers = second(home)
    at = put(app("pages/check/history.py", search="cats"), "project.choice", towers.id)
    assert (at.session_state["project"], query(at, "project")) == (towers.id, towers.id)
    assert "search" not in at.query_params


def test_what_was_open_is_closed_with_a_way_back_when_the_project_is_switched(
    app: OpenApp, home: Path, run_id: str
) -> None:
    with open_store(home) as store:
        run = run_of(store, run_id)
        fill_queue(store, run.project_id, 9.0)
    towers = second(home)
    at = app("pages/review/label.py", case=run.case_id)
    put(at, "project.choice", towers.id)
    assert (at.title[0].value, query(at, "project")) == ("Review", towers.id)
    assert "What you had open belongs to “First project”" in told(at)
    (back,) = [link.proto for link in at.get("page_link") if link.proto.label == "Back to it"]
    assert (back.page, f"case={run.case_id}" in back.query_string) == ("label", True)
    assert f"project={run.project_id}" in back.query_string
    assert "What you had open" not in told(at.run()), "it is said once"


def test_a_file_to_import_stays_when_the_project_is_switched(
    app: OpenApp, home: Path, project_id: str
) -> None:
    towers = second(home)
    at = app("pages/setup/exchange.py")
    rows = [("rows.jsonl", b'{"response": "One."}', "text/plain")]
    at.file_uploader(key="exchange.file").set_value(rows).run()
    put(at, "project.choice", towers.id)
    assert "**1 row**: 1 new, 0 known." in told(at)


def test_a_link_to_a_run_carries_its_project(app: OpenApp, home: Path, run_id: str) -> None:
    second(home)
    (link,) = [
        each.proto.query_string
        for each in app("pages/check/history.py").get("page_link")
        if f"run={run_id}" in each.proto.query_string
    ]
    assert "project=" in link


# Roles


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("person", [GUEST, "Otto", "Nora", "Lena", "Mira"])
def test_nothing_that_a_person_is_offered_ends_in_a_refusal(
    app: OpenApp,
    home: Path,
    run_id: str,
    page: str,
    person: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest, a person without a role, an annotator, a lead and an admin press everything."""
    with open_store(home) as store:
        run = run_of(store, run_id)
        store.projects.save_note("person", person)
        project = project_of(home, run.project_id)
        case = store_case(store, project, CaseDraft("Cats bark."), "Mira", 1.0)
        store.queue.add(QueueItem(case.id, project.id, None, 1.0, "", None, 0.0, "en", 0.0))
        fill_queue(store, run.project_id, 9.0)
    roles: dict[str, PersonRole] = {"Nora": "annotator", "Lena": "lead"}
    if role := roles.get(person):
        member(home, run.project_id, person, role)
    ids = {"run": run_id, "case": run.case_id} if page != "pages/check/new.py" else {}
    if person == GUEST:
        monkeypatch.setattr(state, "read_remembered_name", lambda: "")
    at = app(page, **ids)
    refused = [error.value for error in at.error]
    asked = [button.label for button in at.button if button.disabled and "lead" in button.help]
    if person in (GUEST, "Otto", "Nora"):
        refused += [f"{label} waits for a lead" for label in asked]
        locked = [link.proto.label for link in at.get("page_link") if link.proto.page in LEADS_ONLY]
        refused += [f"{label} leads to a locked page" for label in locked]
    files = [("a.txt", b"Cats purr.", "text/plain")]
    offered = {str(one.key) for one in at.button if not one.disabled} - SLOW
    for key in sorted({str(one.key) for one in at.file_uploader}) + sorted(offered):
        at.switch_page(page)
        at.query_params.clear()
        at.query_params.update(ids)
        at.run()
        if key in offered & keys(at):
            at.button(key=key).click()
        elif key in keys(at):
            at.file_uploader(key=key).set_value(files)
        refused += [f"{key}: {e.value}" for e in at.run().error if TAKES in e.value]
    assert not refused


def test_forms_that_are_not_shown_say_who_can_use_them(
    app: OpenApp, home: Path, project_id: str
) -> None:
    member(home, project_id, "Nora", "annotator")
    with open_store(home) as store:
        store.projects.save_note("person", "Nora")
    lines = {
        "pages/setup/project.py": "Only admins can change the project: Mira.",
        "pages/setup/exchange.py": "Only leads and admins can export the answers of all: Mira.",
        "pages/review/adjudicate.py": "Only leads and admins can settle cases: Mira.",
        "pages/learn/retrain.py": "Only leads and admins can retrain: Mira.",
        "pages/setup/settings.py": "Only admins can change limits: Mira.",
    }
    for page, line in lines.items():
        assert line in told(app(page)), page


# The limit of answers


def test_no_page_takes_more_answers_than_are_wanted(site: Site, run_id: str) -> None:
    with open_store(site.home) as store, store.writing():
        run = run_of(store, run_id)
        project = project_of(site.home, run.project_id)
        store.projects.save(replace(project, people_each=2))
        fill_queue(store, project.id, 9.0)
        case = store.cases.get(run.case_id)
        assert case is not None
        for place, person in enumerate(("Ida", "Karl", "Nora")):
            store.projects.set_member(Member(project.id, person, "annotator", 1.0))
            if person == "Nora":
                continue
            said = Correction(f"k{place}", run_id, case.id, person, 5.0 + place, "unclear")
            store.corrections.add(said, case.response)
            store.queue.end(case.id, person, "submitted", 5.0)
        store.projects.save_note("person", "Nora")
    at = site.open(RUN, run=run_id)
    assert "as many as this project wants" in told(at)
    choose = f"run.{run_id}.correct.choose.supported"
    assert choose not in keys(at)
    with open_store(site.home) as store:
        store.projects.save_note("person", "Karl")
    assert choose in keys(site.open(RUN, run=run_id)), "who answered may answer anew"


@pytest.mark.parametrize(("wanted", "is_full"), [(2, True), (3, False)])
def test_answers_that_came_with_a_file_count_towards_those_wanted(
    site: Site, run_id: str, wanted: int, is_full: bool
) -> None:
    with open_store(site.home) as store:
        run = run_of(store, run_id)
        project = replace(project_of(site.home, run.project_id), people_each=wanted, is_blind=True)
        with store.writing():
            store.projects.save(project)
            store.projects.set_member(Member(project.id, "Nora", "annotator", 1.0))
            store.projects.save_note("person", "Nora")
            fill_queue(store, project.id, 9.0)
        case = store.cases.get(run.case_id)
        assert case is not None
        said = tuple(build_correction(who, "supported") for who in ("ana", "bo"))
        row = ExchangeRow(case.id, case.response, case.question, corrections=said)
        order = ImportRequest(project, "Mira", 10.0, "said.jsonl")
        assert import_rows(store, site.home, ParsedFile((row,)), order).corrections == 2
        assert store.truths.of_case(case.id).is_decided is is_full
    run_page = told(site.open(RUN, run=run_id))
    assert ("Answer it" in run_page) is not is_full
    label = site.open("pages/review/label.py", case=case.id)
    assert ("Others have answered this case already" in told(label)) is is_full
    assert (f"run.{case.id}.correct.choose.supported" in keys(label)) is not is_full
    listed = site.open("pages/review/pending.py").dataframe
    assert [list(table.value["Reviewed"]) for table in listed] == ([] if is_full else [["2 of 3"]])


def test_an_answer_too_many_is_refused_and_stays_in_its_form(site: Site, run_id: str) -> None:
    with open_store(site.home) as store, store.writing():
        run = run_of(store, run_id)
        fill_queue(store, run.project_id, 9.0)
        store.projects.set_member(Member(run.project_id, "Nora", "annotator", 1.0))
        store.projects.save_note("person", "Nora")
    key = f"run.{run_id}.correct"
    at = press(site.open(RUN, run=run_id), f"{key}.choose.supported")
    put(at, f"{key}.reason", "I read it so.")
    with open_store(site.home) as store, store.writing():
        said = Correction("k", run_id, run.case_id, "Ida", 5.0, "hallucinated", reason="No.")
        store.corrections.add(said, WRONG)
    press(at, f"{key}.save")
    assert "as many as this project wants" in told(at)
    with open_store(site.home) as store:
        assert [each.author for each in store.corrections.of_run(run_id)] == ["Ida"]
        assert "I read it so." in load_draft(store, "Nora", key)


def test_the_same_text_in_two_projects_is_two_cases(home: Path, project_id: str) -> None:
    towers = second(home)
    with open_store(home) as store:
        first = project_of(home, project_id)
        ids = {store_case(store, p, CaseDraft("One."), "Mira", 1.0).id for p in (first, towers)}
    assert len(ids) == 2
