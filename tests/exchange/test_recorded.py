"""Recorded debates become runs of their cases: once each, whole, and replayable elsewhere."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from components.run.run_view import is_timed
from core.exchange.importer import ImportOutcome
from core.exchange.mad import read_mad as read
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.traces import export_trace, import_trace
from tests.exchange.stores import NOW, imported, project_of
from tests.formats.recorded_debates import BETTER, archive, debate
from tests.needs import need
from tests.test_architecture import ROOT

RECORDED = ROOT.parent / "shared" / "data" / "mad_debates" / "MAD_Debate_Process.tar.gz"
FILES = {"1.json": debate(), "2.json": debate(), "3.json": debate(source="另一句。")}


def brought(store: Store, data: bytes) -> ImportOutcome:
    outcome = imported(store, read("debates.tar.gz", data), "cases")
    assert not outcome.problems
    return outcome


def test_each_debate_is_a_run_and_the_same_file_again_changes_nothing() -> None:
    with open_store(None) as store:
        first = brought(store, archive(FILES))
        assert (first.new, first.runs) == (3, 3)
        assert "3 recorded debates" in first.words
        again = brought(store, archive(FILES))
        assert (again.new, again.known, again.runs) == (0, 3, 0)
        assert "recorded" not in again.words
        runs = [
            store.runs.of_case(case.id, NOW, 6) for case in store.cases.all(project_of(store).id)
        ]
        assert [len(own) for own in runs] == [1, 1, 1], "two alike are two cases"


def test_a_run_says_that_it_comes_from_elsewhere_and_gives_no_label() -> None:
    with open_store(None) as store:
        brought(store, archive({"1.json": debate()}))
        (case,) = store.cases.all(project_of(store).id)
        (run,) = store.runs.of_case(case.id, NOW, 6)
        assert (run.status, run.origin, run.label, run.cause) == (
            "finished", "imported", "unclear", "not_settled",
        )  # fmt: skip
        assert (run.plan.protocol, run.plan.roster) == ("mad", "recorded: tiny-1")
        progress = fold_events(event for _, event in store.runs.events(run.id))
        assert not is_timed(progress)
        assert progress.began_at == NOW, "the time at which it came in"
        assert [turn.number for turn in progress.turns] == [1, 2, 3, 4]
        assert progress.revised is not None
        assert progress.revised.text == BETTER


def test_it_leaves_as_a_trace_and_plays_elsewhere() -> None:
    with open_store(None) as store, open_store(None) as other:
        brought(store, archive({"1.json": debate()}))
        (case,) = store.cases.all(project_of(store).id)
        (run,) = store.runs.of_case(case.id, NOW, 6)
        trace = export_trace(store, run.id, time.time(), 6)
        there = import_trace(other, trace, project_of(other).id, lambda text, _: text.split())
        kinds = [[event.kind for _, event in s.runs.events(i)] for s, i in
                 ((store, run.id), (other, there))]  # fmt: skip
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("labels", ["gold", "suggestions"])
def test_no_answer_is_made_of_a_debate(labels: str, tmp_path: Path) -> None:
    with open_store(None) as store:
        rows = read("debates.tar.gz", archive(FILES))
        outcome = imported(store, rows, "gold" if labels == "gold" else "suggestions")
        assert (outcome.golds, outcome.corrections, outcome.suggestions) == (0, 0, 0)


def test_all_that_were_recorded_come_in() -> None:
    need(RECORDED.is_file(), "mad_debates")
    with open_store(None) as store:
        outcome = brought(store, RECORDED.read_bytes())
        assert (outcome.rows, outcome.new, outcome.runs) == (200, 200, 200)
