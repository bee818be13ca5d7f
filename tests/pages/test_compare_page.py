"""The Compare page: several ways over one case, what they came to, links that outlive reloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.app import state
from core.pipeline.comparison import load_compared_cases
from core.schema.rosters import DebateOptions
from core.schema.run_state import fold_events
from core.store import open_store
from tests.pages.conftest import OpenApp, kept
from tests.pages.driving import told as texts
from tests.pages.test_reliability_page import table_with

PAGE = "pages/check/compare.py"


def test_a_checked_case_is_compared_in_further_ways(app: OpenApp, home: Path, run_id: str) -> None:
    _, case = kept(home, run_id)
    at = app(PAGE, case=case.id)
    assert list(table_with(at, "Verdict")["Verdict"]) == ["✗ Hallucinated"]
    at.multiselect(key="compare.protocols").set_value(["single"]).run()
    assert list(table_with(at, "Expected")["Expected"]) == ["no cost"]
    at.button(key="compare.start").click().run()
    assert not at.exception
    with open_store(home) as store:
        runs = store.runs.of_case(case.id, 1.0, 6.0)
        assert load_compared_cases(store, case.project_id) == [case.id]
    assert [own.plan.protocol for own in runs] == ["ceda", "single"]
    assert state.get_jobs().wait(runs[1].id, 60)
    at = app(PAGE, case=case.id)
    table = table_with(at, "Verdict")
    assert list(table["Protocol"]) == ["Debate in turn (CEDA)", "Single judge"]
    assert list(table[""]) == ["A", "B"]
    assert "Where they differ" in [own.value for own in at.subheader]
    assert 'data-n="A"' in "".join(own.proto.body for own in at.get("html"))


def test_nothing_is_started_without_a_text(app: OpenApp, home: Path) -> None:
    at = app(PAGE)
    at.button(key="compare.start").click().run()
    assert "Enter a text to check" in at.error[0].value
    at.multiselect(key="compare.protocols").set_value([]).run()
    assert "Choose at least one protocol" in texts(at)
    assert at.button(key="compare.start").disabled
    at.multiselect(key="compare.protocols").set_value(["ceda", "single"])
    at.text_area(key="compare.response").set_value("The tower is 512 m tall.").run()
    assert list(table_with(at, "Expected")["Protocol"]) == ["Debate in turn (CEDA)", "Single judge"]
    at.button(key="compare.start").click().run()
    assert not at.exception
    with open_store(home) as store:
        project = store.projects.first()
        assert project is not None
        ids = load_compared_cases(store, project.id)
        assert len(ids) == 1
        runs = store.runs.of_case(ids[0], 1.0, 6.0)
    assert all(state.get_jobs().wait(run.id, 60) for run in runs)


def test_a_comparisons_runs_say_which_file_they_did_without(app: OpenApp, home: Path) -> None:
    at = app(PAGE)
    at.file_uploader(key="compare.upload").set_value([("empty.txt", b"", "text/plain")])
    at.text_area(key="compare.response").set_value("The tower is 512 m tall.")
    at.button(key="compare.start").click().run()  # with the text, as from a field that is left
    assert not at.exception
    with open_store(home) as store:
        project = store.projects.first()
        assert project is not None
        (case_id,) = load_compared_cases(store, project.id)
        runs = store.runs.of_case(case_id, 1.0, 6.0)
        assert all(state.get_jobs().wait(run.id, 60) for run in runs)
        for run in runs:
            progress = fold_events(event for _, event in store.runs.events(run.id))
            assert [problem.source for problem in progress.problems] == ["empty.txt"]
    assert len(runs) == 2


def test_rosters_that_need_the_same_keys_ask_for_each_once_and_are_left_out(
    app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        state, "warm_up_models", lambda *_: None
    )  # a thread that would outlive the test
    at = app(PAGE)
    at.text_area(key="compare.response").set_value("The tower is 512 m tall.").run()
    at.multiselect(key="compare.protocols").set_value(["single"])
    at.multiselect(key="compare.rosters").set_value(["ceda", "msa", "builtin"]).run()
    assert not at.exception
    fields = [str(own.key) for own in at.text_input if str(own.key).startswith("compare.key.")]
    assert fields
    assert len(fields) == len(set(fields))
    table = table_with(at, "At most")
    assert list(table["At most"]) == ["not started", "not started", "–"]
    assert len([own for own in at.warning if "Cannot be started" in own.value]) == 2
    at.number_input(key="compare.cents").set_value(1).run()
    assert not at.exception


def test_a_link_to_no_case_says_so(app: OpenApp) -> None:
    assert "There is no case at this link here" in app(PAGE, case="none").info[0].value


def test_what_is_chosen_of_each_protocol_reaches_its_own_run_and_is_told(
    app: OpenApp, home: Path, scripted: str
) -> None:
    at = app(PAGE)
    at.text_area(key="compare.response").set_value("The tower is 512 m tall.").run()
    at.multiselect(key="compare.rosters").set_value([scripted]).run()
    at.multiselect(key="compare.protocols").set_value(["society", "single", "mamm_refine"]).run()
    at.number_input(key="compare.society.rounds").set_value(1)
    at.selectbox(key="compare.single.style").set_value("thought").run()
    told = ["Society of minds, 1 round", "Single judge, thinking aloud"]
    assert list(table_with(at, "Expected")["Protocol"]) == [*told, "Corrected text (MAMM-REFINE)"]
    at.multiselect(key="compare.protocols").set_value(["society", "single"]).run()
    at.button(key="compare.start").click().run()
    assert not at.exception
    with open_store(home) as store:
        project = store.projects.first()
        assert project is not None
        (case_id,) = load_compared_cases(store, project.id)
        runs = store.runs.of_case(case_id, 1.0, 6.0)
    chosen = {run.plan.protocol: run.plan.options for run in runs}
    assert chosen == {"society": DebateOptions(rounds=1), "single": DebateOptions(style="thought")}
    assert all(state.get_jobs().wait(run.id, 60) for run in runs)
    assert set(table_with(app(PAGE, case=case_id), "Verdict")["Protocol"]) == set(told)
