"""The sample project and the tour: tried with one click, apart from a person's own data."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import sample, state
from core.learning.training_set import load_training_set
from core.pipeline import sample_project
from core.runtime.config import SAMPLE_FOLDER
from core.store import open_store
from tests.pages.conftest import ROOT, RUN, TIMEOUT, WRONG, OpenApp, drawn, query, said
from tests.pages.driving import keys, press
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

PAGES = (
    "pages/review/pending.py",
    "pages/learn/retrain.py",
    "pages/learn/calibration.py",
    "pages/learn/reliability.py",
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of one document: building the whole one has a test of its own."""
    few = sample_project.SAMPLE_DOCUMENTS[:1]
    monkeypatch.setattr(sample_project, "SAMPLE_DOCUMENTS", few)


def counts(home: Path) -> dict[str, int]:
    """How many rows each table of a home holds."""
    with closing(sqlite3.connect(home / "counterpoint.db")) as db:
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in tables
        }


def until_built(home: Path) -> Path:
    folder = home / SAMPLE_FOLDER
    builder = sample._get_builder(str(folder))
    wait_for(lambda: not builder.is_building, "the sample project")
    assert builder.problem == ""
    return folder


def bar(at: AppTest) -> str:
    return "\n".join(item.value for item in at.markdown)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_whole_sample_can_be_learned_from(home: Path) -> None:
    folder = home / SAMPLE_FOLDER
    builder = sample_project.SampleBuilder(state.make_jobs(str(folder)))
    builder.start("Mira")
    wait_for(lambda: not builder.is_building, "the sample project")
    assert builder.problem == ""
    assert builder.answered == 40
    with open_store(folder) as store:
        (project,) = store.projects.all()
        answers = {one.case_id: one for one in store.corrections.newest_by_person(project.id)}
        assert len(answers) == 40
        assert {answer.label for answer in answers.values()} >= {"supported", "hallucinated"}
        assert all(answer.author in sample_project.REVIEWERS for answer in answers.values())
        assert all(span.text in case.response
                   for case in store.cases.several(list(answers))
                   for span in answers[case.id].spans)  # fmt: skip
        assert len(store.cases.all(project.id)) == 49, "eight claims and the tour's are left"
        assert load_training_set(store).rows
        assert store.projects.role_of(project.id, "Mira") == "lead"
        runs = [store.runs.of_case(case, 0.0, 0.0) for case in answers]
        assert all(len(own) == 1 and own[0].origin == "here" for own in runs)
    builder.start("Mira")
    wait_for(lambda: not builder.is_building, "the sample project")
    with open_store(folder) as store:
        assert len(store.cases.all(project.id)) == 49, "what is there is not made again"


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("page", PAGES)
def test_an_empty_page_opens_in_the_sample_by_one_click(
    app: OpenApp, home: Path, page: str
) -> None:
    at = app(page)
    title = at.title[0].value
    before = counts(home)
    press(at, "sample.open")
    assert at.title[0].value == title
    assert "Sample project" in bar(at)
    until_built(home)
    at.run()
    assert not at.exception
    assert counts(home) == before, "nothing of it is in the person's own home"
    press(at, "sample.leave")
    assert at.title[0].value == "New check"
    assert "Sample project" not in bar(at)


@pytest.mark.usefixtures("few")
def test_who_may_check_nothing_yet_may_try_the_sample(
    app: OpenApp, home: Path, project_id: str
) -> None:
    with open_store(home) as store:
        store.projects.save_note("person", "Otto")
    at = app("pages/check/new.py")
    assert said(at.caption, "Only people of this project can check a claim: Mira.")
    assert "new.check" not in keys(at)
    press(at, "sample.open")
    until_built(home)
    at.switch_page("pages/check/new.py").run()
    assert "new.check" in keys(at)


@pytest.mark.usefixtures("few")
def test_the_sample_is_removed_whole_and_can_be_opened_again(app: OpenApp, home: Path) -> None:
    at = press(app(PAGES[1]), "sample.open")
    folder = until_built(home)
    press(press(at, "sample.remove"), "sample.sure")
    assert not at.exception
    assert at.title[0].value == "New check"
    assert not folder.exists()
    at.switch_page(PAGES[1]).run()
    press(at, "sample.open")
    until_built(home)
    assert at.run().title[0].value == "Retrain"
    assert said(at.markdown, "Sample project")


def test_who_has_answers_is_not_offered_a_sample(app: OpenApp, home: Path, run_id: str) -> None:
    at = app(RUN, run=run_id)
    at.button(key=f"run.{run_id}.correct.choose.hallucinated").click().run()
    at.button(key=f"run.{run_id}.correct.save").click().run()
    for page in PAGES:
        assert not [b for b in app(page).button if b.key == "sample.open"]


@pytest.mark.usefixtures("few")
def test_the_tour_leads_through_five_pages_and_leaves_everything_as_it_was(
    app: OpenApp, home: Path
) -> None:
    at = app()
    at.text_area(key="new.response").set_value(WRONG).run()
    before = counts(home)
    press(at, "tour.begin")
    assert "tour.next" in keys(at)
    assert not [key for key in keys(at) if key.startswith("new.example.")], "the page fits a screen"
    assert "1 of 5" in bar(at)
    assert "512 m" in str(at.text_area(key="new.response").value)
    assert at.multiselect(key="new.library").value
    until_built(home)
    press(at, "tour.next")
    assert "2 of 5" in bar(at)
    assert "Hallucinated" in drawn(at)
    press(press(at, "tour.next"), "tour.next")
    assert query(at, "run")
    assert "[Further down](#your-judgement)" in bar(at)
    assert "your-judgement" in [heading.anchor for heading in at.subheader], "a click leads there"
    press(at, "tour.next")
    assert at.title[0].value == "Retrain"
    press(at, "tour.close")
    assert at.title[0].value == "New check"
    assert at.text_area(key="new.response").value == WRONG, "the draft is still there"
    assert counts(home) == before
    assert at.button(key="tour.begin"), "it comes back from a link"


@pytest.mark.usefixtures("few")
def test_a_link_into_the_sample_opens_it(app: OpenApp, home: Path) -> None:
    at = press(app(), "tour.begin")
    until_built(home)
    press(at, "tour.next")
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    again.query_params["run"] = query(at, "run")
    again.run()
    again.switch_page(RUN).run()
    assert "512 m" in drawn(again)
    assert "Sample project" in bar(again)


def opened_at(page: str, address: str) -> AppTest:
    """A new session, as after a reload, at a page's address in the project."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.query_params["project"] = address
    at.run()
    return at.switch_page(page).run()


@pytest.mark.usefixtures("few")
def test_a_reload_stays_in_the_sample(app: OpenApp, home: Path) -> None:
    at = press(app(PAGES[0]), "sample.open")
    with open_store(until_built(home)) as store:
        (project,) = store.projects.all()
    assert at.session_state["link.parameters"] == {"project": project.id}, "the address has it"
    again = opened_at(PAGES[0], project.id)
    assert "Sample project" in bar(again)
    press(again, "sample.leave")
    assert again.session_state["link.parameters"] == {}
    again.switch_page(PAGES[0]).run()
    assert "Sample project" not in bar(again)


@pytest.mark.usefixtures("few")
def test_the_browser_s_back_leads_into_the_sample_and_out_of_it(app: OpenApp, home: Path) -> None:
    at = press(app(PAGES[0]), "sample.open")
    with open_store(until_built(home)) as store:
        (project,) = store.projects.all()
    with open_store(home) as store:
        (own,) = store.projects.all()
    at.query_params["project"] = own.id
    assert "Sample project" not in bar(at.run())
    at.query_params["project"] = project.id
    assert "Sample project" in bar(at.run())
    press(at, "sample.leave")
    assert at.session_state["project"] == own.id


@pytest.mark.usefixtures("few")
def test_a_server_s_keys_pay_for_nothing_in_a_sample(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
    press(app(PAGES[0]), "sample.open")
    folder = until_built(home)
    assert state.make_jobs(str(home)).keys.get("OPENAI_API_KEY") == "sk-of-the-server"
    assert state.make_jobs(str(folder)).keys.get("OPENAI_API_KEY") is None
