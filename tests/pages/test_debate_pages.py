"""A debate on its pages: under way, spoken into, with signals, and played again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from components.run.run_view import count_past_records
from core.review.people import ensure_project
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
from tests.learning.recorded_runs import Told, events_of, tell
from tests.llm.cast import Cast, Part, as_json, judged
from tests.llm.loopback import loopback
from tests.pages.conftest import CATS, RUN, WRONG, OpenApp, drawn, kept, ours, said, stored_case
from tests.pages.test_protocol_pages import by_models
from tests.test_jobs import Listening, remarks
from tests.test_with_models import sheet_at
from tests.waiting import wait_for

WRONG_OFTEN = Told(
    (("Ada", "supported"), ("Ben", "hallucinated")), "hallucinated", "hallucinated",
    models={"Ada": "openai/one"},
)  # fmt: skip


REPLAY = "pages/check/replay.py"
VERDICT = '<div class="cp-verdict-label">'
TOLD = Told((("Ada", "supported"), ("Ben", "hallucinated")), "hallucinated", "hallucinated")


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
        tell(store, [replace(WRONG_OFTEN, claim=f"The tower is {n} m tall.") for n in range(30)])
    return home


def test_signals_stand_beside_the_turn_and_are_counted(
    app: OpenApp, home_with_answers: Path
) -> None:
    with open_store(home_with_answers) as store:
        case = asked(store)
        events = events_of(replace(WRONG_OFTEN, at=5_000.0), case)
        events = [surer_with_a_forged_quote(event) for event in events]
        run_id = stored(store, case, Plan("colmad"), events, at=5_000.0)
    app(RUN, run=run_id)  # the first visit may have counted for too short a time
    at = app(RUN, run=run_id)
    markup = drawn(at)
    assert "⚑ “measured twice by the mayor” stands in no source." in markup
    assert "⚑ Sounds 90% sure, but was right in 0 of 30 answered cases." in markup
    assert "answers alone" in markup
    assert "90% sure · names no doubt" in markup
    caption = next(c.value for c in at.caption if "Signals of debate hacking" in c.value)
    assert "Ada 2" in caption
    assert "Ben none" in caption


def test_records_are_those_of_the_debaters(home_with_answers: Path) -> None:
    with open_store(home_with_answers) as store:
        project_id = ensure_project(store, "Mira", 1.0).id
    pasts = count_past_records(home_with_answers, project_id, {})
    assert {name: (past.right, past.n) for name, past in pasts.items()} == {
        "one": (0, 30),
        "Reader Ben": (30, 30),
    }
    assert pasts["one"].high < 0.4


def checked(home: Path, run_id: str, plan: Plan) -> str:
    """The same case by another plan."""
    made = state.get_jobs().start(kept(home, run_id)[1], plan)
    assert state.get_jobs().wait(made, 60)
    return made


def labels(at: AppTest) -> list[str]:
    """The links on the page."""
    return [link.proto.label for link in at.get("page_link")]


def test_where_nobody_spoke_it_is_said_and_nothing_is_offered(
    app: OpenApp, home: Path, run_id: str
) -> None:
    made = checked(home, run_id, Plan("single"))
    at = app(RUN, run=made)
    assert not any(label.startswith("Replay") for label in labels(at))
    assert said(at.caption, "nothing to replay")
    at = app(REPLAY, run=made)
    assert said(at.info, "nothing to play")
    assert not [button for button in at.button if button.label == "Play"]


def test_of_a_debate_that_was_not_held_what_judges_said_is_played(app: OpenApp, home: Path) -> None:
    decided = DebateDecided(2.0, is_needed=False, why="It was sure.", then="colmad")
    wrong = Judgement("Judge", "hallucinated", "Wrong.", p=0.9)
    judged: list[Event] = [
        decided,
        JudgementSampled(3.0, wrong, 1, "alone", 0.1),
        JudgementReached(4.0, wrong, 0.1),
        RunStopped(5.0),
    ]
    with open_store(home) as store:
        case, plan = asked(store), Plan("adaptive")
        made = stored(store, case, plan, [RunStarted(1.0, case, plan, ()), *judged])
    assert "Replay the check" in labels(app(RUN, run=made))
    at = app(REPLAY, run=made)
    assert said(at.caption, "The debate was not held")
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
    at = app(RUN, run=run_id)
    assert at.button(key="run.stop")
    markup = drawn(at)
    assert ">Round 2</div>" in markup
    assert "advises: Ben’s answer" in markup
    assert "advises: Ada’s answer" in markup
    assert markup.count('cp-caret" dir') == 2
    assert "⚑ “measured twice by the mayor” stands in no source." in markup
    assert said(at.caption, "Signals of debate hacking so far")


@pytest.mark.slow
def test_who_writes_is_there_before_anybody_debates(app: OpenApp, home: Path) -> None:
    """The judge's and others' prose, too; of a local model the time is a range at first."""
    facts = as_json({"facts": [], "conflicts": [], "shares": {}, "summary": "Cats have paws."})
    parts: dict[str, Part] = {
        "context": replace(facts, gap=0.3, piece=4),
        "judge": replace(judged(0), gap=0.3, piece=4),
    }
    with loopback(Cast(parts)) as server:
        sheet = replace(sheet_at(server, seconds=30), name="slow")
        with open_store(home) as store:
            store.rosters.save(sheet, "Mira", 1.0)
        case = stored_case(home, WRONG, ("cats.txt", CATS))
        jobs = state.get_jobs()
        at = by_models(app, "slow")
        assert not said(at.caption, "expected time")
        assert said(at.caption, "rough time: ")
        run_id = jobs.start(case, Plan(roster="slow", sheet=sheet, max_turns=1))
        live = jobs.live(run_id)
        assert live
        wait_for(lambda: any(len(call.pieces) > 2 for call in list(live.under_way)))
        at = app(RUN, run=run_id)
        assert "Context writer (loopback) is writing: about " in drawn(at)
        assert "facts" not in drawn(at), "JSON is nothing to read"
        assert said(at.markdown, "Sharing out the evidence")
        assert not said(at.markdown, "Searching for evidence")
        wait_for(lambda: any("decides" in "".join(call.pieces) for call in list(live.under_way)))
        at = app(RUN, run=run_id)
        assert "Judge (loopback) is writing: about " in drawn(at)
        assert "The evidence decides" in drawn(at)
        jobs.wait(run_id, 60)
        assert "is writing" not in drawn(app(RUN, run=run_id))
    assert said(by_models(app, "slow").caption, "expected time")


class Debate:
    """A run whose debaters wait at their first word, on its page."""

    def __init__(self, home: Path, app: OpenApp) -> None:
        self.app = app
        self.listening = Listening(home)
        self.case = stored_case(home, WRONG, ("cats.txt", CATS))
        self.run_id = self.box = ""

    def begin(self, protocol: str = "ceda") -> AppTest:
        """Start it and wait for its first word; its page."""
        agents = self.listening.agents
        self.run_id = self.listening.jobs.start(self.case, Plan(protocol))
        self.box = f"run.{self.run_id}.say"
        wait_for(lambda: bool(agents) and (protocol != "ceda" or agents[0].speaking.is_set()))
        return self.page()

    def page(self) -> AppTest:
        """Its page, drawn anew."""
        return self.app(RUN, run=self.run_id)

    def end(self) -> None:
        """Let everybody speak to the end."""
        for agent in self.listening.agents:
            agent.gate.set()
        assert self.listening.jobs.wait(self.run_id, 60)

    def say(self, at: AppTest, words: str) -> str:
        """Say it; what stays in the box."""
        at.text_area(key=self.box).set_value(words)
        at.button(key=f"{self.box}.send").click().run()
        assert not at.exception
        return str(at.text_area(key=self.box).value)


@pytest.fixture
def debate(home: Path, app: OpenApp, monkeypatch: pytest.MonkeyPatch) -> Debate:
    made = Debate(home, app)
    monkeypatch.setattr(state, "get_jobs", lambda: made.listening.jobs)
    return made


def boxes(at: AppTest, debate: Debate) -> list[str]:
    return [own.key for own in at.text_area if own.key == debate.box]


def test_whoever_only_looks_on_may_not_speak(home: Path, debate: Debate) -> None:
    debate.begin()
    with open_store(home) as store:
        store.projects.save_note("person", "Nobody")
    assert not boxes(debate.page(), debate)
    assert remarks(home, debate.run_id) == []
    debate.end()


def test_what_is_said_is_shown_at_once_heard_and_kept(home: Path, debate: Debate) -> None:
    at, words = debate.begin(), "It is the other paw."
    assert debate.say(at, words) == ""
    assert words in drawn(at)
    assert [one.text for one in remarks(home, debate.run_id)] == [words]
    debate.end()
    assert debate.listening.agents[1].heard[0][0][1] == words
    at = debate.page()
    assert "a person, to all debaters" in drawn(at)
    assert not boxes(at, debate)


def test_what_cannot_be_said_stays_in_the_box_with_the_reason(debate: Debate) -> None:
    at = debate.begin()
    debate.say(at, "")
    assert said(at.error, "found nothing")
    debate.end()


def test_what_was_typed_and_not_said_outlives_a_reload_and_the_debate(debate: Debate) -> None:
    debate.begin().text_area(key=debate.box).set_value("Wait, one more").run()
    assert debate.page().text_area(key=debate.box).value == "Wait, one more"
    debate.end()
    at = debate.page()
    assert said(at.info, "Wait, one more")
    at.button(key=f"{debate.box}.drop").click().run()
    assert not said(at.info, "Wait, one more")


def test_where_nobody_debates_there_is_no_box(debate: Debate) -> None:
    assert not boxes(debate.begin("audit"), debate)
    debate.end()
