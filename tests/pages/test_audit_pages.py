"""An audited response on its pages: run, replay, imported, and while events still come."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.schema.events import Event
from core.schema.records import Case, Plan, Run
from core.store import open_store
from core.store.traces import export_trace
from tests.audits_told import CASE, RESPONSE, STEPS, begun, told
from tests.pages.conftest import RUN, OpenApp, brought, check, drawn, kept, ours, said

ID = "a" * 32


def tell(home: Path, events: Sequence[Event] | None = None, owner: str = "nobody") -> Case:
    """A stored run of these events over the audited response, all of them unless told."""
    with open_store(home) as store:
        project = ours(store)
        case = store_case(store, project, CaseDraft(RESPONSE, CASE.question), "Mira", 1.0)
        run = Run(ID, case.id, project.id, Plan(), "queued", time.time())
        with store.writing():
            store.runs.add(run, owner, time.time())
            store.runs.append(ID, owner, told(case) if events is None else events)
    return case


def numbers(at: AppTest) -> list[str]:
    """The statements' numbers in the order of the table."""
    bodies = [item.proto.body for item in at.get("html")]
    rows = [body for body in bodies if body.startswith("<details") and "cp-row-number" in body]
    return [row.split('class="cp-row-number">')[1].split("<")[0] for row in rows]


def test_a_run_shows_how_each_statement_was_checked(app: OpenApp, home: Path) -> None:
    tell(home)
    at = app(RUN, run=ID)
    assert numbers(at) == ["1", "2", "3", "4", "5"]
    assert any("3 hallucinated · 0 unclear · 1 supported" in own.label for own in at.expander)
    assert "The whole response" in drawn(at)
    assert 'href="#cp-statement-4"' in drawn(at)


def test_a_run_of_debate_alone_has_no_statements_table(app: OpenApp, run_id: str) -> None:
    at = app(RUN, run=run_id)
    assert numbers(at) == []
    assert not any("How each statement was checked" in own.label for own in at.expander)


def test_an_imported_trace_shows_the_same(app: OpenApp, home: Path) -> None:
    tell(home)
    with open_store(home) as store:
        data = export_trace(store, ID, time.time(), 6.0)
    imported = brought(home, data)
    at, there = app(RUN, run=ID), app(RUN, run=imported)
    assert numbers(there) == numbers(at)
    assert "3 + 0.5 + 1.5" in drawn(there)


def test_an_imported_trace_of_twisted_tools_is_drawn(app: OpenApp, home: Path) -> None:
    """What tools gave is any JSON in a trace from elsewhere."""
    case = tell(home, [])
    odd: tuple[Any, ...] = (
        {},
        {"equations": 7},
        {"equations": [[], {"start": 1e308, "holds": "?"}]},
        {"dates": {"a": None}},
        {"sources": [None, {"text": [1]}]},
        {"conditions": [-1]},
    )
    events: list[Event] = []
    for number, event in enumerate(told(case)):
        if event.kind == "tool_called":
            gave = json.dumps(odd[number % len(odd)])
            event = replace(event, use=replace(event.use, gave=gave, seconds=1e308))
        events.append(event)
    with open_store(home) as store:
        with store.writing():
            store.runs.append(ID, "nobody", events)
        data = export_trace(store, ID, time.time(), 6.0)
    imported = brought(home, data)
    at = app(RUN, run=imported)
    assert sorted(numbers(at)) == ["1", "2", "3", "4", "5"]


def test_statements_are_drawn_while_they_are_checked(app: OpenApp, home: Path) -> None:
    tell(home, [*begun(), *STEPS[:5]], owner="somebody")
    at = app(RUN, run=ID)
    assert at.button(key="run.stop")
    assert numbers(at) == ["1", "2", "3", "4", "5"]
    assert "The source says 412 m." in drawn(at)
    assert "waiting" in drawn(at)


def test_a_replay_plays_the_audit_step_by_step(app: OpenApp, home: Path) -> None:
    tell(home)
    at = app("pages/check/replay.py", run=ID)
    assert numbers(at) == []
    concluded = []
    for _ in range(3):
        at.button(key=f"replay.{ID}.step").click().run()
        assert not at.exception
        concluded.append(drawn(at).count("In memory"))
    assert concluded == [1, 2, 3]


def test_layers_of_agents_are_laid_over_the_response(app: OpenApp, run_id: str) -> None:
    at = app(RUN, run=run_id)
    assert "--cp-heat: " not in drawn(at)
    layers = at.pills(key=f"run.{run_id}.layers")
    assert len(layers.options) >= 2
    layers.set_value([0, 1]).run()
    assert not at.exception
    assert 'class="cp-mark cp-mark-hard cp-heat"' in drawn(at)
    assert said(at.caption, "who says what")
    at.pills(key=f"run.{run_id}.layers").set_value([]).run()
    assert "--cp-heat: " not in drawn(at)


def test_new_check_audits_and_remembers_the_choice_in_the_project(app: OpenApp, home: Path) -> None:
    at = app()
    assert at.selectbox(key="new.protocol").value == "ceda"
    assert said(at.caption, "fits a single claim")
    at.selectbox(key="new.protocol").set_value("audit").run()
    assert said(at.caption, "fits a long response")
    at.text_area(key="new.response").set_value("The tour took 3 + 0.5 + 1.5 = 6 hours. Hello!")
    run, _ = kept(home, check(at))
    assert run.plan.protocol == "audit"
    assert sorted(numbers(at)) == ["1", "2"]
    assert app().selectbox(key="new.protocol").value == "audit"


def test_the_project_says_how_a_newcomer_checks(app: OpenApp, home: Path) -> None:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save(replace(project, protocol="audit"))
    assert app().selectbox(key="new.protocol").value == "audit"
