"""An audited response on its pages: run, replay, imported, and while events still come."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.run import response_reader
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.schema.events import Event
from core.schema.records import Case, Plan, Run, Span
from core.schema.reviews import Correction, StatementLabel
from core.store import open_store
from core.store.runs import Runs
from core.store.traces import export_trace
from tests.audit.audit_events import CASE, RESPONSE, STEPS, begun, told
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


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the page gives the reader each time; `edit` in the session is what the browser sends."""
    given: list[dict[str, Any]] = []

    def mount(
        *, key: str, data: dict[str, Any], on_edit_change: Callable[[], None], **_: Any
    ) -> None:
        given.append(data)
        if key in st.session_state:
            on_edit_change()  # which AppTest never does

    monkeypatch.setattr(response_reader, "get_component", lambda name: mount)
    return given


def labelled(at: AppTest, labels: str, saves: int = 1) -> None:
    """Send labels of the five statements by their first letters, "-" for none, and save them."""
    words = {"s": "supported", "h": "hallucinated", "u": "unclear", "-": ""}
    statements = [{"id": str(n), "label": words[letter]} for n, letter in enumerate(labels)]
    edit = {"revision": saves, "statements": statements, "shown": "0", "saves": saves}
    at.session_state[f"run.{ID}.reader.editor"] = {"edit": edit}
    at.run()
    assert not at.exception


def test_labels_of_statements_are_saved_as_one_correction(
    app: OpenApp, home: Path, browser: list[dict[str, Any]]
) -> None:
    tell(home)
    at = app(RUN, run=ID)
    assert browser[-1]["source"]["statement"] == "1"  # the gravest
    assert browser[-1]["saved"] == ""
    labelled(at, "s----")
    assert said(at.error, "found 3 without a label")
    labelled(at, "shuu-", saves=2)
    at.run()  # a browser's edit comes before the page is drawn
    assert browser[-1]["saved"] == "saved"
    assert said(at.markdown, "Statements: 1 supported, 1 hallucinated, 2 unclear")
    labelled(at, "shuu-", saves=3)  # nothing new
    labelled(at, "ssss-", saves=4)
    at.run()
    with open_store(home) as store:
        corrections = store.corrections.of_run(ID)
    assert [(one.label, one.machine_label) for one in corrections] == [
        ("hallucinated", "hallucinated"),
        ("supported", "hallucinated"),
    ]
    assert [span.text for span in corrections[0].spans] == ["Monday"]
    assert [span.text for span in corrections[1].rejected] == ["Monday"]
    assert corrections[1].reason == "Changed: statements 2, 3, 4: supported"
    # The form keeps them as long as it says the same of the whole.
    at.button(key=f"run.{ID}.correct.choose.supported").click().run()
    at.text_area(key=f"run.{ID}.correct.reason").set_value("read again").run()
    at.button(key=f"run.{ID}.correct.save").click().run()
    with open_store(home) as store:
        newest = store.corrections.of_run(ID)[-1]
    assert (newest.reason, newest.statements) == ("read again", corrections[1].statements)


def test_labels_of_statements_keep_marks_of_an_answer_on_another_check(
    app: OpenApp, home: Path, browser: list[dict[str, Any]]
) -> None:
    case = tell(home)
    start = case.response.index("years")
    mark = Span(start, start + 5, "years", 1.0, "number_or_date", "Mira")
    earlier = Correction("k" * 32, None, case.id, "Mira", 2.0, "hallucinated", (mark,), "sums")
    with open_store(home) as store, store.writing():
        store.corrections.add(earlier, case.response)
    labelled(app(RUN, run=ID), "shhh-")
    with open_store(home) as store:
        (saved,) = store.corrections.of_run(ID)
    assert (saved.spans, saved.reason, len(saved.statements)) == ((mark,), "sums", 4)


def test_a_new_check_begins_with_the_labels_of_the_one_before(
    app: OpenApp, home: Path, browser: list[dict[str, Any]]
) -> None:
    case = tell(home)
    labelled(app(RUN, run=ID), "shuu-")
    again = Run("b" * 32, case.id, case.project_id, Plan(), "queued", time.time(), parent_id=ID)
    with open_store(home) as store, store.writing():
        store.runs.add(again, "nobody", time.time())
        store.runs.append(again.id, "nobody", told(case))
    app(RUN, run=again.id)
    assert [one["label"] for one in browser[-1]["statements"]][:2] == ["supported", "hallucinated"]
    assert browser[-1]["saved"] == "not saved yet"


@pytest.mark.parametrize("is_blind", [False, True])
def test_what_another_person_saved_meanwhile_is_a_conflict_unless_they_answer_blind(
    app: OpenApp, home: Path, browser: list[dict[str, Any]], is_blind: bool
) -> None:
    case = tell(home)
    with open_store(home) as store, store.writing():
        store.projects.save(replace(ours(store), is_blind=is_blind, people_each=2))
    at = app(RUN, run=ID)
    labelled(at, "shhh-", saves=0)
    theirs = Correction("k" * 32, ID, case.id, "Karl", 2.0, "unclear", reason="cannot tell",
                        statements=(StatementLabel(0, 29, "unclear"),))  # fmt: skip
    with open_store(home) as store, store.writing():
        store.corrections.add(theirs, case.response)
    labelled(at, "shhh-")
    key = f"run.{ID}.reader.conflict.save"
    if not is_blind:
        assert said(at.warning, "Karl** said unclear")
        with open_store(home) as store:
            assert store.corrections.of_run(ID) == [theirs]
        at.button(key=key).click().run()
    at.run()
    assert not at.exception
    assert not at.warning
    assert browser[-1]["statements"][0] == {"id": "0", "label": "supported"}
    with open_store(home) as store:
        saved = store.corrections.of_run(ID)
    assert [one.author for one in saved] == ["Karl", "Mira"]


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


def test_a_run_under_way_reads_each_event_once(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(home, [*begun(), *STEPS[:4]], owner="somebody")
    at = app(RUN, run=ID)
    assert "The source says 412 m." not in drawn(at)
    with open_store(home) as store, store.writing():
        seen = store.runs.last_seq(ID)
        store.runs.append(ID, "somebody", STEPS[4:5])
    reads: list[int] = []
    read_events = Runs.events

    def watch(runs: Runs, run_id: str, after: int = 0) -> list[tuple[int, Event]]:
        reads.append(after)
        return read_events(runs, run_id, after)

    monkeypatch.setattr(Runs, "events", watch)
    at.run()
    assert reads == [0, seen], "the page reads the run, and then follows it"
    assert "The source says 412 m." in drawn(at)


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
        store.projects.save_note("person", "Mira")
    assert app().selectbox(key="new.protocol").value == "audit"
