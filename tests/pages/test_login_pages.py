"""A server with a login: who sees what, under which name, and what a role permits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.agents.rosters import SHIPPED_ROSTERS
from core.documents.library import store_file
from core.pipeline import sample_project
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ProviderIdentity, ensure_project
from core.runtime.config import SAMPLE_FOLDER, Settings
from core.schema.events import RunStopped
from core.schema.records import Member, Plan, Project, Run
from core.store import open_store
from core.store.cases import Batch, BatchRow
from core.store.traces import export_trace, import_trace
from core.store.versions import ClassifierVersion
from tests.pages.conftest import ROOT, TIMEOUT, WRONG
from tests.pages.driving import keys, member, press, put, told
from tests.test_login import GOOD

OpenApp = Callable[..., AppTest]
Door = Callable[..., AppTest]
PAGES = [
    f"pages/{name}.py"
    for name in "check/new check/history check/batch check/run check/table check/replay "
    "check/compare review/pending review/label review/agreement learn/retrain setup/project "
    "setup/library setup/settings".split()
]
ISSUER = "https://id.example.org"
ANNA = {"is_logged_in": True, "iss": ISSUER, "sub": "1", "email": "anna@example.org"}
ANNA |= {"email_verified": True}
BO = ANNA | {"sub": "2", "email": "bo@example.org"}
HERS, HIS = "anna@example.org", "bo@example.org"


@pytest.fixture
def door() -> Door:
    """Opens the app of a server with login, as somebody or as nobody."""

    def open_app(
        user: dict[str, Any] | None = None, page: str = "", /, auth: object = GOOD, **query: str
    ) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
        at.secrets = {"auth": auth}
        at.user = user or {}
        at.run()
        if page:
            at.switch_page(page)
        for name, value in query.items():
            at.query_params[name] = value
        at.run()
        assert not at.exception, at.exception[0].message
        return at

    return open_app


def begun(home: Path) -> str:
    """A home whose first project is Anna's, with a run of hers; the project's id."""
    with open_store(home) as store:
        project = ensure_project(store, HERS, 1.0)
        store.projects.save(Project(project.id, "Bridges of ours", 1.0))
    return project.id


def towers(home: Path) -> str:
    """A second project, whose admin is Bo; its id."""
    with open_store(home) as store, store.writing():
        store.projects.save(Project("p" * 32, "Towers", 2.0))
    member(home, "p" * 32, HIS, "admin")
    return "p" * 32


def stopped_run(home: Path, project_id: str, author: str = HERS) -> str:
    """A run in a table that was stopped before it began; of its id both are made."""
    with open_store(home) as store:
        project = store.projects.get(project_id)
        assert project
        case = store_case(store, project, CaseDraft(WRONG), author, 1.0)
        run = Run("a" * 32, case.id, project_id, Plan(), "queued", 1.0)
        with store.writing():
            store.runs.add(run, "nobody", 1.0)
            store.runs.append(run.id, "nobody", [RunStopped(2.0, author)])
        store.batches.add(
            Batch("b" * 32, project_id, "secret-table.csv", author, 1.0, Plan()),
            [BatchRow("b" * 32, 1, WRONG, (), case.id, run.id)],
        )
    return run.id


# The door


@pytest.mark.parametrize("page", PAGES)
def test_nobody_sees_or_writes_anything_before_login(door: Door, page: str, home: Path) -> None:
    at = door(None, page, run="a" * 32, batch="b" * 32)
    assert [title.value for title in at.title] == ["Counterpoint"]
    assert [button.label for button in at.button] == ["Log in"]
    assert not at.sidebar.caption
    assert not at.error
    assert not home.exists(), "the home was made"


@pytest.mark.parametrize(
    "user", [{"is_logged_in": False} | {"email": HERS}, {"email": HERS}, {"is_logged_in": "yes"}]
)
def test_claims_without_a_login_are_nothing(door: Door, user: dict[str, Any], home: Path) -> None:
    begun(home)
    at = door(user)
    assert [button.label for button in at.button] == ["Log in"]
    assert "Bridges" not in told(at)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"client_secret": ""}, "found no client_secret"),
        ({"cookie_secret": "short"}, "cookie_secret of at least 32"),
    ],
)
def test_an_incomplete_section_lets_nobody_in(
    door: Door, change: dict[str, str], words: str, home: Path
) -> None:
    for user in (None, ANNA):
        at = door(user, auth=GOOD | change)
        (error,) = at.error
        assert words in error.value.replace("\\", "")
        assert not at.button
    assert not home.exists()


def test_a_provider_that_does_not_answer_is_said_where_one_clicked(door: Door) -> None:
    nowhere = GOOD | {"server_metadata_url": "http://127.0.0.1:9/x"}
    at = door(None, auth=nowhere)
    press(at, "login.default")
    assert "Expected the identity provider at 127" in told(at)


def test_every_provider_has_its_button(door: Door) -> None:
    keys = ("client_id", "client_secret", "server_metadata_url")
    at = door(None, auth=GOOD | {"google": {key: GOOD[key] for key in keys}})
    assert [button.label for button in at.button] == ["Log in", "Log in with google"]


def test_who_stands_at_another_address_is_told_the_right_one(door: Door) -> None:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.secrets = {"auth": GOOD}
    at.context = {"url": "http://localhost:8501/history"}
    at.run()
    assert "only at https://cp.example.org" in told(at)
    assert not at.button
    at.context = {"url": "https://cp.example.org/"}
    at.run()
    assert [button.label for button in at.button] == ["Log in"]


def test_whom_the_provider_does_not_name_can_go_out_again(door: Door) -> None:
    at = door({"is_logged_in": True, "email": HERS, "email_verified": True})
    assert "“iss” and “sub”" in told(at)
    assert [button.label for button in at.button] == ["Log out"]


# Inside


def test_the_first_to_come_is_admin_under_the_name_of_the_identity(door: Door, home: Path) -> None:
    at = door(ANNA)
    assert "First project · anna@example.org" in told(at)
    assert [b.label for b in at.sidebar.button] == ["Log out"]
    with open_store(home) as store:
        (project,) = store.projects.all()
        assert store.projects.role_of(project.id, HERS) == "admin"


def test_who_has_no_role_is_told_whom_to_ask(door: Door, home: Path) -> None:
    begun(home)
    for page in PAGES:
        at = door(BO, page)
        assert f"logged in as {HIS}, who has no role here yet. Ask {HERS} to add" in told(at)
        assert "Bridges" not in told(at)
        assert not at.error
        assert [title.value for title in at.title] == ["Counterpoint"]
        assert [button.label for button in at.button] == ["Log out"]


def test_who_is_added_by_name_comes_in(door: Door, home: Path) -> None:
    project = begun(home)
    at = door(ANNA, "pages/setup/project.py")
    at.text_input(key="project.member").set_value(" Bo@Example.org ")
    press(at, "project.member.add")
    assert not at.error
    with open_store(home) as store:
        assert store.projects.role_of(project, HIS) == "annotator"
    assert f"Bridges of ours · {HIS}" in told(door(BO))


def test_who_is_taken_out_sees_nothing_any_more(door: Door, home: Path) -> None:
    project = begun(home)
    member(home, project, HIS, "annotator")
    his = door(BO)
    assert "Bridges" in told(his)
    at = door(ANNA, "pages/setup/project.py")
    press(at, f"project.{project}.remove.{HERS}")
    assert "only admin" in at.error[0].value
    press(at, f"project.{project}.remove.{HIS}")
    assert not at.error
    his.text_area(key="new.response").set_value("A claim of his")
    press(his, "new.check")
    assert "who has no role here yet" in told(his)
    assert "Bridges" not in told(his)
    with open_store(home) as store:
        assert [row["n"] for row in store.db.query("SELECT count(*) AS n FROM cases")] == [0]


def test_an_annotator_takes_nobody_out(door: Door, home: Path) -> None:
    project = begun(home)
    member(home, project, HIS, "lead")
    at = door(BO, "pages/setup/project.py")
    assert f"project.{project}.remove.{HERS}" not in keys(at)
    assert f"Only admins can change who is in the project: {HERS}." in told(at)
    member(home, project, HIS, "admin")
    at = door(BO, "pages/setup/project.py")
    member(home, project, HIS, "lead")  # while his page is open
    press(at, f"project.{project}.remove.{HERS}")
    assert "To change who is in the project takes the role admin" in at.error[0].value


def test_nobody_poses_as_another(door: Door, home: Path) -> None:
    project = begun(home)
    member(home, project, HIS, "annotator")
    with open_store(home) as store:
        store.projects.save_note("person", HERS)
    at = door(BO, "pages/setup/settings.py")
    assert f"You are logged in as **{HIS}**" in told(at)
    assert not [field for field in at.text_input if field.key == "settings.person"]
    at.session_state["person"] = HERS
    at.session_state["settings.person"] = HERS
    at.run()
    assert f"Bridges of ours · {HIS}" in told(at)
    assert at.number_input(key="settings.passages").disabled
    assert f"Only admins can change limits: {HERS}." in told(at)


def test_a_typed_name_is_refused_even_where_no_field_was_drawn(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    from components.app import login
    from components.setup import settings

    begun(home)
    monkeypatch.setattr(login, "is_login_required", lambda: True)
    kept: dict[str, str] = {"settings.person": HERS}
    monkeypatch.setattr("components.setup.settings.st.session_state", kept)
    settings._rename_person()
    assert "cannot take another name" in kept["settings.person.problem"]
    assert "person" not in kept


def test_the_same_address_of_another_identity_is_another_person(door: Door, home: Path) -> None:
    begun(home)
    assert f"· {HERS}" in told(door(ANNA))
    heir = door(ANNA | {"sub": "77"})
    assert ProviderIdentity(ISSUER, "77").own_name in told(heir)
    assert "Bridges" not in told(heir)


def test_logging_out_leaves_the_door(door: Door, home: Path) -> None:
    begun(home)
    at = door(ANNA)
    press(at, "login.out")
    assert [button.label for button in at.button] == ["Log in"]
    assert "Bridges" not in told(at)


# Other people's projects


def test_links_into_a_project_of_others_lead_nowhere(door: Door, home: Path) -> None:
    theirs = begun(home)
    run_id = stopped_run(home, theirs)
    towers(home)
    opened = {
        "pages/check/run.py": {"run": run_id},
        "pages/check/replay.py": {"run": run_id},
        "pages/check/table.py": {"batch": "b" * 32},
        "pages/check/compare.py": {"before": run_id, "after": run_id},
    }
    for page, query in opened.items():
        at = door(BO, page, **query)
        refusal = at.info[0].value
        assert "link" in refusal or f"There is no run “{run_id}”" in refusal, page
        for secret in (WRONG, "secret-table", "Bridges"):
            assert secret not in told(at), page
        hers = told(door(ANNA, page, **query))
        assert "Bridges of ours" in hers
        assert "this link" not in hers, page
        assert "There is no run" not in hers, page
    at = door(BO, "pages/check/run.py", run="z", batch="b" * 32)
    assert not [b for b in at.button if str(b.key).startswith("run.arrow")]


def test_an_imported_trace_opens_no_source_of_others(door: Door, home: Path, run_id: str) -> None:
    """A trace names a source by the hash of its content, which somebody may know."""
    with open_store(home) as store:
        trace = export_trace(store, run_id, time.time(), 6)
        with store.writing():
            store.projects.save(Project("p" * 32, "Towers", 2.0))
        mira = store.projects.first()
        imported = import_trace(store, trace, "p" * 32, lambda *_: [])
    assert mira
    member(home, mira.id, HERS, "annotator")
    member(home, "p" * 32, HERS, "annotator")
    member(home, "p" * 32, HIS, "annotator")
    for who, may in ((ANNA, True), (BO, False)):
        at = door(who, "pages/check/run.py", run=imported)
        next(b for b in at.button if "cats" in b.label).click().run()
        assert not at.exception
        assert any("is not in the library" in i.value for i in at.info) is not may


def test_only_ones_own_projects_are_offered_and_taken(door: Door, home: Path) -> None:
    theirs = begun(home)
    towers(home)
    at = door(BO, "pages/setup/project.py")
    assert "project.choice" not in keys(at)
    at.session_state["project"] = theirs
    at.run()
    assert f"Towers · {HIS}" in told(at)
    assert "Bridges" not in told(at)
    assert "Bridges" not in told(door(BO, "pages/setup/project.py", project=theirs))


def test_what_holds_for_all_projects_is_not_for_the_admin_of_a_later_one(
    door: Door, home: Path
) -> None:
    begun(home)
    towers(home)
    at = door(BO, "pages/setup/settings.py")
    assert at.number_input(key="settings.day_cents").disabled
    assert "rosters.copy" not in keys(at)
    assert "Only leads and admins can change model sets" in told(at)
    at = door(BO, "pages/setup/project.py")
    assert "project.begin" not in keys(at)
    assert f"Only admins can create a project: {HERS}." in told(at)
    with open_store(home) as store:
        assert store.projects.settings() == Settings()
        assert len(store.projects.all()) == 2


def test_held_out_claims_of_others_are_not_shown(door: Door, home: Path) -> None:
    theirs = begun(home)
    run_id = stopped_run(home, theirs)
    towers(home)
    with open_store(home) as store, store.writing():
        row: dict[str, Any] = {"run_id": run_id, "claim": "A claim of theirs", "label": "supported"}
        row |= {"before": 0.4, "after": 0.3}
        rates = {"n": 1, "accuracy": 1.0, "always_hallucinated": 0.0}
        card = {"holdout": {"before": rates, "after": rates, "rows": [row]}}
        store.versions.add(ClassifierVersion("v1", 3.0, HERS, card))
    shown = {
        who["sub"]: [list(table.value["Claim"]) for table in at.dataframe if "Claim" in table.value]
        for who in (ANNA, BO)
        for at in [door(who, "pages/learn/retrain.py")]
    }
    assert shown == {"1": [["A claim of theirs"]], "2": []}


# Roles where data is written: the page was drawn for somebody who has none in the project


@pytest.fixture
def stranger(home: Path) -> str:
    """Without login everybody sees the page; Karl is here and has no role. The project's id."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Karl")
        store_file(store, home, project.id, "a.txt", b"Cats sleep.", "Mira", 1.0, Settings())
    return project.id


def dump(home: Path) -> dict[str, list[Any]]:
    """What people may write, table by table; not readings, notes and the like."""
    tables = ("cases", "runs", "batches", "batch_rows", "corrections", "projects", "members")
    with open_store(home) as store:
        names = {row["name"] for row in store.db.query("SELECT name FROM sqlite_master")}
        assert set(tables) <= names, names
        return {name: list(store.db.query(f"SELECT * FROM {name}")) for name in tables} | {
            "files": [(e.id, e.name) for p in store.projects.all() for e in store.library.all(p.id)]
        }


def outdated(
    app: OpenApp, home: Path, page: str, choice: tuple[str, str] | None = None, **query: str
) -> AppTest:
    """A page that was drawn for Karl before he lost his role; it still offers everything."""
    with open_store(home) as store:
        projects = store.projects.all()
        for project in projects:
            store.projects.set_member(Member(project.id, "Karl", "annotator", 1.0))
        at = app(page, **query)
        if choice is not None:
            put(at, *choice)
        for project in projects:
            store.projects.remove_member(project.id, "Karl")
    return at


def test_who_has_no_role_checks_nothing(app: OpenApp, home: Path, stranger: str) -> None:
    before = dump(home)
    at = app()
    assert not {"new.check"} & keys(at)
    assert not any(key.startswith("new.example.") for key in keys(at))
    assert "Only people of this project can check a claim" in told(at)
    assert not {"many.start", "many.pasted"} & keys(app("pages/check/batch.py"))
    at = outdated(app, home, "pages/check/new.py")
    first = next(b for b in at.button if str(b.key).startswith("new.example."))
    first.click().run()
    assert first.key not in keys(at)
    at = outdated(app, home, "pages/check/batch.py")
    at.text_area(key="many.pasted").set_value("claim\nOne.\n").run()
    assert "many.start" not in keys(at)
    assert dump(home) == before


def test_each_who_logs_in_has_a_sample_of_their_own_and_sets_no_limits_in_it(
    door: Door, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = sample_project.SAMPLE_DOCUMENTS[:1]
    monkeypatch.setattr(sample_project, "SAMPLE_DOCUMENTS", few)
    project_id = begun(home)
    member(home, project_id, HIS, "annotator")
    for user, name in ((ANNA, HERS), (BO, HIS)):
        at = press(door(user, "pages/review/pending.py"), "sample.open")
        assert at.title[0].value == "Review"
        assert f"Sample project · {name}" in told(at)
        with open_store(Path(at.session_state["sample.folder"])) as store:
            (sample,) = store.projects.all()
            roles = {m.person: m.role for m in store.projects.members(sample.id)}
        assert roles.pop(name) == "lead"
        assert not {HERS, HIS} & roles.keys(), "nobody else is in it"
    assert len(list((home / SAMPLE_FOLDER).iterdir())) == 2


def test_who_has_no_role_stops_and_resumes_nothing(app: OpenApp, home: Path, stranger: str) -> None:
    run_id = stopped_run(home, stranger, "Mira")
    before = dump(home)
    offered = {"run.resume", "run.stop", "many.resume", "many.stop", f"run.{run_id}.again.go"}
    pages = (("pages/check/run.py", {"run": run_id}), ("pages/check/table.py", {"batch": "b" * 32}))
    for key, (page, query) in (
        ("run.resume", pages[0]),
        (f"run.{run_id}.again.go", pages[0]),
        ("many.resume", pages[1]),
    ):
        assert not offered & keys(app(page, **query))
        assert not offered & keys(press(outdated(app, home, page, None, **query), key))
    with open_store(home) as store, store.writing():
        store.db.execute(
            "UPDATE runs SET status = 'running', heartbeat_at = ?", [time.time() + 1e6]
        )
    running = dump(home)
    for key, (page, query) in zip(("run.stop", "many.stop"), pages, strict=True):
        assert not offered & keys(app(page, **query))
        assert not offered & keys(press(outdated(app, home, page, None, **query), key))
    assert dump(home) == running
    assert {k: v for k, v in running.items() if k != "runs"} == {
        k: v for k, v in before.items() if k != "runs"
    }


def test_who_has_no_role_leaves_the_library_as_it_is(
    app: OpenApp, home: Path, stranger: str
) -> None:
    before, page = dump(home)["files"], "pages/setup/library.py"
    assert not {"library.upload", "library.reindex", "library.delete"} & keys(app(page))
    at = outdated(app, home, page)
    at.file_uploader(key="library.upload").set_value([("b.txt", b"Dogs bark.", "text/plain")]).run()
    assert "library.upload" not in keys(at)
    assert dump(home)["files"] == before


def test_who_has_no_role_opens_no_trace_file(
    app: OpenApp, home: Path, run_id: str, tmp_path: Path
) -> None:
    with open_store(home) as store:
        data = export_trace(store, run_id, time.time(), 6)
        store.projects.save_note("person", "Karl")
    before = dump(home)
    assert "history.trace" not in keys(app("pages/check/history.py"))
    at = outdated(app, home, "pages/check/history.py")
    at.file_uploader(key="history.trace").set_value(("t.json", data, "application/json")).run()
    assert "history.trace" not in keys(at)
    assert dump(home) == before


def test_who_has_no_role_tests_no_roster(app: OpenApp, home: Path, stranger: str) -> None:
    page = "pages/setup/settings.py"
    assert "rosters.test" not in keys(app(page))
    at = outdated(app, home, page, ("rosters.choice", list(SHIPPED_ROSTERS)[1]))
    press(at, "rosters.test")
    assert "rosters.test" not in keys(at)
    assert not at.session_state["rosters.trials"]
