"""The Run page names signals of debate hacking beside the turns, and counts them by debater."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from components.run.run_view import counted_pasts
from core.review.people import first_project
from core.schema.events import Event, TurnFinished
from core.schema.records import Case, Plan, Quote, Run, new_id
from core.store import Store, open_store
from tests.learning.runs_told import Told, events_of, tell
from tests.pages.conftest import OpenApp
from tests.pages.test_check_pages import drawn

WRONG_OFTEN = Told(
    (("Ada", "supported"), ("Ben", "hallucinated")), "hallucinated", "hallucinated",
    models={"Ada": "openai/one"},
)  # fmt: skip


def surer_with_a_forged_quote(event: Event) -> Event:
    if event.kind != "turn_finished" or event.turn.debater != "Ada":
        return event
    quotes = (Quote("measured twice by the mayor", "not_found", 0.0),)
    text = "CORRECT. The tower was “measured twice by the mayor”."
    told = replace(event.turn, manner="answer", quotes=quotes, confidence=0.9, text=text)
    return TurnFinished(event.at, told, event.seconds)


@pytest.fixture
def home_with_answers(home: Path) -> Path:
    with open_store(home) as store:
        tell(store, [replace(WRONG_OFTEN, claim=f"The tower is {n} m tall.") for n in range(12)])
    return home


def stored(store: Store) -> str:
    """A run of its own, about which nobody has said anything."""
    project = first_project(store, "Mira", 1.0)
    case = Case(new_id(), project.id, "The tower is 99 m tall.", language="en", author="Mira")
    run = Run(new_id(), case.id, project.id, Plan("colmad"), "queued", 5_000.0)
    events = events_of(replace(WRONG_OFTEN, at=5_000.0), case)
    with store.writing():
        store.cases.add(case, [])
        store.runs.add(run, "told", run.started_at)
        store.runs.append(run.id, "told", [surer_with_a_forged_quote(event) for event in events])
    return run.id


def test_signals_stand_beside_the_turn_and_are_counted(
    app: OpenApp, home_with_answers: Path
) -> None:
    with open_store(home_with_answers) as store:
        run_id = stored(store)
    app("pages/check/run.py", run=run_id)  # the first visit may have counted for too short a time
    at = app("pages/check/run.py", run=run_id)
    markup = drawn(at)
    assert "⚑ “measured twice by the mayor” stands in no source." in markup
    assert "⚑ Sounds 90% sure, but was right in 0 of 12 answered cases." in markup
    assert "answers alone" in markup
    assert "90% sure · names no doubt" in markup
    caption = next(c.value for c in at.caption if "Signals of debate hacking" in c.value)
    assert "Ada 2" in caption
    assert "Ben none" in caption


def test_records_are_those_of_the_debaters(home_with_answers: Path) -> None:
    with open_store(home_with_answers) as store:
        project_id = first_project(store, "Mira", 1.0).id
    pasts = counted_pasts(home_with_answers, project_id, {})
    assert {name: (past.right, past.n) for name, past in pasts.items()} == {
        "one": (0, 12),
        "Reader Ben": (12, 12),
    }
    assert pasts["one"].high < 0.4
