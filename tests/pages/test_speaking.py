"""A person speaks into a debate that is under way, from the Run page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from core.documents.library import store_file
from core.pipeline.jobs import Jobs
from core.pipeline.streaming_input import Draft, store_case
from core.review.people import first_project
from core.runtime.config import Settings
from core.schema.records import Plan
from core.store import open_store
from tests.fakes import until
from tests.pages.conftest import CATS, WRONG, OpenApp
from tests.test_jobs import Hearing, Listening, remarks

RUN = "pages/check/run.py"


def drawn(at: AppTest) -> str:
    """All markup on the page."""
    return "\n".join(item.proto.body for item in at.get("html"))


@pytest.fixture
def listening(home: Path) -> Listening:
    """Runs whose debaters wait at their first word."""
    return Listening(home)


@pytest.fixture
def agents(listening: Listening) -> list[Hearing]:
    return listening.agents


@pytest.fixture
def jobs(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """The runs of this process."""
    monkeypatch.setattr(state, "jobs", lambda: listening.jobs)
    return listening.jobs


@pytest.fixture
def begun(home: Path, jobs: Jobs, agents: list[Hearing]) -> Callable[[Plan], str]:
    """Starts a run and waits for its first word."""

    def start(plan: Plan) -> str:
        with open_store(home) as store:
            project = first_project(store, "Mira", 1.0)
            store.projects.save_note("person", "Mira")
            entry = store_file(
                store, home, project.id, "cats.txt", CATS.encode(), "Mira", 1.0, Settings()
            )
            case = store_case(store, project, Draft(WRONG, documents=(entry.id,)), "Mira", 1.0)
        run_id = jobs.start(case, plan)
        until(lambda: bool(agents) and (not plan_speaks(plan) or agents[0].speaking.is_set()))
        return run_id

    return start


def test_whoever_only_looks_on_may_not_speak(
    app: OpenApp, home: Path, jobs: Jobs, agents: list[Hearing], begun: Callable[[Plan], str]
) -> None:
    run_id = begun(Plan())
    with open_store(home) as store:
        store.projects.save_note("person", "Nobody")
    at = app(RUN, run=run_id)
    at.text_area(key=f"run.{run_id}.say").set_value("Let me in.")
    at.button(key=f"run.{run_id}.say.send").click().run()
    assert any("takes the role annotator" in own.value for own in at.error)
    assert at.text_area(key=f"run.{run_id}.say").value == "Let me in."
    assert remarks(home, run_id) == []
    finish(jobs, run_id, agents)


def plan_speaks(plan: Plan) -> bool:
    return plan.protocol == "ceda"


def finish(jobs: Jobs, run_id: str, agents: list[Hearing]) -> None:
    for agent in agents:
        agent.gate.set()
    assert jobs.wait(run_id, 60)


def test_what_is_said_is_shown_at_once_heard_and_kept(
    app: OpenApp, home: Path, jobs: Jobs, agents: list[Hearing], begun: Callable[[Plan], str]
) -> None:
    run_id = begun(Plan())
    at = app(RUN, run=run_id)
    at.text_area(key=f"run.{run_id}.say").set_value("It is the other paw.")
    at.button(key=f"run.{run_id}.say.send").click().run()
    assert not at.exception
    assert at.text_area(key=f"run.{run_id}.say").value == ""
    assert "It is the other paw." in drawn(at)
    assert [said.text for said in remarks(home, run_id)] == ["It is the other paw."]
    finish(jobs, run_id, agents)
    assert agents[1].heard[0][0][1] == "It is the other paw."
    at = app(RUN, run=run_id)
    assert "a person, to all debaters" in drawn(at)
    assert not [own for own in at.text_area if own.key == f"run.{run_id}.say"]


def test_what_cannot_be_said_stays_in_the_box_with_the_reason(
    app: OpenApp, jobs: Jobs, agents: list[Hearing], begun: Callable[[Plan], str]
) -> None:
    run_id = begun(Plan())
    at = app(RUN, run=run_id)
    at.button(key=f"run.{run_id}.say.send").click().run()
    assert any("found nothing" in own.value for own in at.error)
    finish(jobs, run_id, agents)


def test_what_was_typed_and_not_said_outlives_a_reload_and_the_debate(
    app: OpenApp, jobs: Jobs, agents: list[Hearing], begun: Callable[[Plan], str]
) -> None:
    run_id = begun(Plan())
    at = app(RUN, run=run_id)
    at.text_area(key=f"run.{run_id}.say").set_value("Wait, one more").run()
    assert app(RUN, run=run_id).text_area(key=f"run.{run_id}.say").value == "Wait, one more"
    finish(jobs, run_id, agents)
    at = app(RUN, run=run_id)
    assert any("Wait, one more" in own.value for own in at.info)
    at.button(key=f"run.{run_id}.say.drop").click().run()
    assert not any("Wait, one more" in own.value for own in at.info)


def test_where_nobody_debates_there_is_no_box(
    app: OpenApp, jobs: Jobs, agents: list[Hearing], begun: Callable[[Plan], str]
) -> None:
    run_id = begun(Plan(protocol="audit"))
    at = app(RUN, run=run_id)
    assert not [own for own in at.text_area if own.key == f"run.{run_id}.say"]
    finish(jobs, run_id, agents)
