"""A debate on its pages: under way, with signals, and played again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from components.run.run_view import counted_pasts
from core.review.people import first_project
from core.schema.events import (
    DebateDecided,
    Event,
    JudgementReached,
    JudgementSampled,
    RunStarted,
    RunStopped,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import Case, Judgement, Plan, Quote, Run, new_id
from core.schema.rosters import DebateOptions
from core.store import Store, open_store
from tests.learning.runs_told import Told, events_of, tell
from tests.pages.conftest import OpenApp, drawn, kept, ours

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


def stored_with_signals(store: Store) -> str:
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
        run_id = stored_with_signals(store)
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


REPLAY, RUN = "pages/check/replay.py", "pages/check/run.py"
VERDICT = '<div class="cp-verdict-label">'
TOLD = Told((("Ada", "supported"), ("Ben", "hallucinated")), "hallucinated", "hallucinated")


def checked(home: Path, run_id: str, plan: Plan) -> str:
    """The same case by another plan."""
    made = state.jobs().start(kept(home, run_id)[1], plan)
    assert state.jobs().wait(made, 60)
    return made


def asked(store: Store) -> Case:
    """A case of a project's own."""
    project = ours(store)
    return Case(new_id(), project.id, "The tower is 99 m tall.", language="en", author="Mira")


def stored(store: Store, case: Case, plan: Plan, events: Sequence[Event], at: float = 1.0) -> str:
    """A run of it that went so."""
    run = Run(new_id(), case.id, case.project_id, plan, "queued", at)
    with store.writing():
        store.cases.add(case, [])
        store.runs.add(run, "told", run.started_at)
        store.runs.append(run.id, "told", events)
    return run.id


def labels(at: AppTest) -> list[str]:
    """The links on the page."""
    return [link.proto.label for link in at.get("page_link")]


def test_where_nobody_spoke_it_is_said_and_nothing_is_offered(
    app: OpenApp, home: Path, run_id: str
) -> None:
    made = checked(home, run_id, Plan("single"))
    at = app(RUN, run=made)
    assert not any(label.startswith("Replay") for label in labels(at))
    assert any("nothing to replay" in caption.value for caption in at.caption)
    at = app(REPLAY, run=made)
    assert any("nothing to play" in info.value for info in at.info)
    assert not [button for button in at.button if button.label == "Play"]


def test_of_a_debate_that_was_not_held_what_judges_said_is_played(app: OpenApp, home: Path) -> None:
    decided = DebateDecided(2.0, is_needed=False, why="It was sure.", then="colmad")
    said = Judgement("Judge", "hallucinated", "Wrong.", p=0.9)
    judged: list[Event] = [
        decided,
        JudgementSampled(3.0, said, 1, "alone", 0.1),
        JudgementReached(4.0, said, 0.1),
        RunStopped(5.0),
    ]
    with open_store(home) as store:
        case, plan = asked(store), Plan("adaptive")
        made = stored(store, case, plan, [RunStarted(1.0, case, plan, ()), *judged])
    assert "Replay the check" in labels(app(RUN, run=made))
    at = app(REPLAY, run=made)
    assert any("The debate was not held" in caption.value for caption in at.caption)
    at.button(key=f"replay.{made}.step").click().run()
    assert "cp-turn-person" in drawn(at)


def test_one_goes_to_a_round_and_to_the_verdict(
    app: OpenApp, home: Path, run_id: str, scripted: str
) -> None:
    with open_store(home) as store:
        sheet = store.rosters.get(scripted)
    plan = Plan("colmad", scripted, sheet=sheet, options=DebateOptions(rounds=1))
    made = checked(home, run_id, plan)
    at = app(REPLAY, run=made)
    (menu,) = at.menu_button
    assert menu.options == ["First answers", "Round 1", "The verdict"]
    menu.click("Round 1").run()
    assert not at.exception
    assert "First answers" in drawn(at)
    assert ">Round 1</div>" in drawn(at)
    assert "cp-caret" in drawn(at)
    assert VERDICT not in drawn(at)
    at.menu_button[0].click("The verdict").run()
    assert VERDICT in drawn(at)


@pytest.fixture
def hacked(home: Path) -> str:
    """A stored debate in which one quotes what stands nowhere."""
    with open_store(home) as store:
        case = asked(store)
        events = [surer_with_a_forged_quote(one) for one in events_of(replace(TOLD, at=5e3), case)]
        return stored(store, case, Plan("colmad"), events)


def test_signals_come_with_the_turns(app: OpenApp, hacked: str) -> None:
    at = app(REPLAY, run=hacked)
    assert "stands in no source" not in drawn(at)
    at.button(key=f"replay.{hacked}.step").click().run()
    assert "⚑ “measured twice by the mayor” stands in no source." in drawn(at)
    (told,) = (c.value for c in at.caption if "Signals of debate hacking so far" in c.value)
    assert "Ada 1" in told


def test_signals_headings_and_what_was_asked_are_there_while_it_is_spoken(
    app: OpenApp, home: Path
) -> None:
    now = time.time()
    with open_store(home) as store:
        case = asked(store)
        told = [surer_with_a_forged_quote(one) for one in events_of(replace(TOLD, at=now), case)]
        spoken: list[Event] = [e for e in told if e.kind in ("run_started", "turn_finished")]
        for number, (name, about) in enumerate((("Ada", "Ben"), ("Ben", "Ada")), start=3):
            spoken.append(TurnStarted(now, name, "m", number, 2, "advise", about))
        run_id = stored(store, case, Plan("sc_maks"), spoken, at=now)
    at = app("pages/check/run.py", run=run_id)
    assert at.button(key="run.stop")
    markup = drawn(at)
    assert ">Round 2</div>" in markup
    assert "advises: Ben’s answer" in markup
    assert "advises: Ada’s answer" in markup
    assert markup.count('cp-caret" dir') == 2
    assert "⚑ “measured twice by the mayor” stands in no source." in markup
    assert any("Signals of debate hacking so far" in caption.value for caption in at.caption)
