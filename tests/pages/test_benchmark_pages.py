"""Benchmarks: what a lead starts, sees while it runs and afterwards, and what becomes of errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from core.documents.library import store_file
from core.evaluation.benchmark_results import MeasuredBenchmark
from core.evaluation.benchmark_rows import RowSource
from core.evaluation.benchmarks import BenchmarkSpec, create_benchmark, plan_cells, run_benchmark
from core.evaluation.dataset_files import GoldRow
from core.evaluation.evaluate import parse_ways
from core.evaluation.grids import GridRun, MeasuredCell, get_grid, plan_grid_cells
from core.llm.keys import Keys
from core.runtime.errors import ModelError
from core.schema.records import Member, Source
from core.schema.reviews import GoldAnswer
from core.store import open_store
from core.store.benchmarks import Benchmark, BenchmarkStatus
from tests.evaluation.test_grids import result
from tests.evaluation.tiny_sets import FACTS, write_sets
from tests.fakes import make_case
from tests.pages.conftest import OpenApp, finish, query, said
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

LIST, ONE = "pages/measure/benchmarks.py", "pages/measure/benchmark.py"
ODD = "Antwort;Beleg;Urteil;Art\n" + "".join(
    f"{claim};{evidence};{mark};{'number' if any(c.isdigit() for c in claim) else 'other'}\n"
    for evidence, right, wrong in FACTS
    for claim, mark in ((right, "1"), (wrong, "0"))
)


def rows(count: int = len(FACTS)) -> list[GoldRow]:
    """Two rows for each fact; the last one's labels are exchanged, so that one answer is wrong."""
    made = []
    for n, (evidence, right, wrong) in enumerate(FACTS[:count]):
        for name, claim in (("supported", right), ("hallucinated", wrong)):
            made.append(GoldRow(
                f"{n} {name}", f"fact {n}", claim, name, str(n), documents=(evidence,),  # type: ignore[arg-type]
                category="number" if n % 2 else "other",
            ))  # fmt: skip
    return made


def stored(home: Path, project_id: str, ways: str = "single,ceda", **spec: Any) -> str:
    """A benchmark that waits."""
    cells, refused = plan_cells(home, project_id, ["builtin"], parse_ways(ways), Keys({}))
    assert not refused
    with open_store(home) as store:
        source = RowSource("file", "facts.csv", sampled_from=16)
        made = BenchmarkSpec(source, tuple(cells), 3, **spec)
        return create_benchmark(store, project_id, made, rows(), name="Facts", author="Mira")


@pytest.fixture
def finished(home: Path, project_id: str) -> str:
    benchmark_id = stored(home, project_id)
    assert run_benchmark(home, benchmark_id, "Mira", Keys({})).status == "finished"
    return benchmark_id


def set_status(home: Path, benchmark_id: str, status: BenchmarkStatus, message: str = "") -> None:
    with open_store(home) as store, store.writing():
        store.db.execute(
            "UPDATE benchmarks SET status = ?, message = ? WHERE id = ?",
            [status, message, benchmark_id],
        )


def load(home: Path, benchmark_id: str) -> Benchmark:
    with open_store(home) as store:
        found = store.benchmarks.get(benchmark_id, time.time(), 60.0)
    assert found is not None
    return found


def wait(home: Path, benchmark_id: str, status: BenchmarkStatus) -> Benchmark:
    wait_for(lambda: load(home, benchmark_id).status == status, f"status {status}")
    return load(home, benchmark_id)


def texts(at: AppTest) -> str:
    parts = (*at.markdown, *at.caption, *at.info, *at.warning, *at.error, *at.success)
    return "\n".join(str(one.value) for one in parts).replace("\\", "")


def table(at: AppTest, column: str) -> Any:
    return next(one.value for one in at.dataframe if column in one.value.columns)


def test_a_file_with_odd_columns_is_mapped_measured_and_read(
    app: OpenApp, home: Path, project_id: str
) -> None:
    at = app(LIST)
    assert said(at.markdown, "choose labelled cases")
    at.file_uploader(key="benchmark.file").set_value([("odd.csv", ODD.encode(), "text/csv")]).run()
    fields = {one.label: one for one in at.selectbox}
    for label, column in (("Response", "Antwort"), ("Sources", "Beleg"), ("Label", "Urteil")):
        fields[label].set_value(column)
    at.run()
    for one in at.segmented_control:
        if "means" in one.label:
            one.set_value("supported" if "1" in one.label else "hallucinated")
    at.run()
    next(one for one in at.selectbox if one.label.startswith("Category")).set_value("Art").run()
    assert "16 labelled rows**: 8 supported, 8 hallucinated" in texts(at)
    assert said(at.markdown, "Expected: no language model · no cost")
    at.button(key="benchmark.start").click().run()
    assert not at.exception
    benchmark_id = query(at, "benchmark")
    wait(home, benchmark_id, "finished")
    at = app(ONE, benchmark=benchmark_id)
    systems = table(at, "Balanced accuracy")
    assert list(systems["System"])[-2:] == ["Always hallucinated", "Always supported"]
    assert "Single judge" in systems["System"][0]
    assert systems["Balanced accuracy"][len(systems) - 1] == "0.50 (0.50 to 0.50)"
    assert said(at.caption, "On 16 rows in 8 groups that all systems answered")
    assert "Marked words (IoU)" not in systems, "nobody marked a word in that file"
    kinds = table(at, "Kind")
    assert {"number", "other"} <= set(kinds["Kind"])
    assert said(at.caption, "Finished")


def test_models_are_told_with_calls_and_price_before_and_after(
    app: OpenApp, home: Path, project_id: str, scripted: str
) -> None:
    at = app(LIST)
    text = "response,document,label\n" + "".join(
        f"{claim},{evidence},{label}\n"
        for evidence, right, wrong in FACTS[:3]
        for claim, label in ((right, "supported"), (wrong, "hallucinated"))
    )
    at.file_uploader(key="benchmark.file").set_value([("a.csv", text.encode(), "text/csv")]).run()
    at.multiselect(key="benchmark.rosters").set_value([scripted]).run()
    at.multiselect(key="benchmark.protocols").set_value(["single", "colmad"]).run()
    assert not at.exception
    assert "calls of language models" in texts(at)
    at.number_input(key="benchmark.cents").set_value(500).run()
    at.number_input(key="benchmark.tokens").set_value(100_000).run()
    at.button(key="benchmark.start").click().run()
    assert not at.exception
    benchmark_id = query(at, "benchmark")
    wait(home, benchmark_id, "finished")
    at = app(ONE, benchmark=benchmark_id)
    assert " calls, " in texts(at)
    systems = table(at, "Calls a row")
    single, colmad, *_ = map(float, systems["Calls a row"][:2])
    assert 0 < single < colmad
    spec = load(home, benchmark_id).spec
    assert '"cent_cap":500,"token_cap":100000' in spec


def test_without_a_label_column_or_a_folder_one_sentence_says_what_is_missing(
    app: OpenApp, project_id: str, tmp_path: Path
) -> None:
    at = app(LIST)
    given = [("odd.csv", b"response,x\nA claim.,1\n", "text/csv")]
    at.file_uploader(key="benchmark.file").set_value(given).run()
    assert said(at.info, "Choose the column that holds the labels")
    at.segmented_control(key="benchmark.source").set_value("set").run()
    at.text_input(key="benchmark.folder").set_value(str(tmp_path / "none")).run()
    assert [one.value for one in at.error]
    assert said(at.error, "Expected a folder with public sets")
    at.segmented_control(key="benchmark.source").set_value("project").run()
    assert said(at.info, "No case of this project is decided yet")


def test_cases_whose_sources_are_not_read_are_left_out_and_told(
    app: OpenApp, home: Path, project_id: str
) -> None:
    with open_store(home) as store:
        settings = store.projects.settings()
        named = [
            store_file(store, home, project_id, name, text.encode(), "Mira", 1.0, settings)
            for name, text in (("read.txt", "It is 4 m."), ("later.txt", "It is 5 m."))
        ]
        with store.writing():
            source = Source(named[0].id, "read.txt", "text", "It is 4 m.")
            store.readings.save(source, reader="text", seconds=0.1, now=1.0)
            for entry in named:
                case = make_case("It is 3 m.", id=entry.name, project_id=project_id,
                                 documents=(entry.id,))  # fmt: skip
                store.cases.add(case, [])
                gold = GoldAnswer(entry.name, case.id, "Mira", 1.0, "adjudicated", "hallucinated")
                store.golds.add(gold, case.response)
    at = app(LIST)
    at.segmented_control(key="benchmark.source").set_value("project").run()
    assert "1 labelled row**: 1 hallucinated" in texts(at)
    assert said(at.caption, "1 decided case left out: a source is not read, or gone.")
    at.button(key="benchmark.start").click().run()
    assert not at.exception
    benchmark_id = query(at, "benchmark")
    wait(home, benchmark_id, "finished")
    assert "1 row, 1 more left out" in texts(app(ONE, benchmark=benchmark_id))
    at = app(LIST)
    table = b"response,document,label\nA.,read.txt,supported\nB.,later.txt,supported\n"
    at.file_uploader(key="benchmark.file").set_value([("a.csv", table, "text/csv")]).run()
    assert "1 labelled row**" in texts(at)
    assert said(at.caption, "Row 3 is left out: its source “later.txt” is not read yet")


def test_a_public_set_is_offered_with_what_is_in_it(
    app: OpenApp, project_id: str, tmp_path: Path
) -> None:
    write_sets(tmp_path)
    at = app(LIST)
    at.segmented_control(key="benchmark.source").set_value("set").run()
    at.text_input(key="benchmark.folder").set_value(str(tmp_path)).run()
    assert "fever_symmetric" in at.selectbox(key="benchmark.set").options
    at.selectbox(key="benchmark.set").set_value("fever_symmetric").run()
    assert said(at.markdown, "24 labelled rows")
    assert not at.exception


def test_a_benchmark_under_way_shows_progress_and_takes_a_wish(
    app: OpenApp, home: Path, project_id: str
) -> None:
    benchmark_id = stored(home, project_id)
    with open_store(home) as store, store.writing():
        store.projects.save_setting("lease_seconds", 120)
        store.benchmarks.take(benchmark_id, "another process", time.time(), 60.0)
    at = app(ONE, benchmark=benchmark_id)
    assert "goes on when you leave" in texts(at)
    assert not at.dataframe
    at.button(key="benchmark.pause").click().run()
    assert "rows under way are finished first" in texts(at)
    assert app(ONE, benchmark=benchmark_id).button(key="benchmark.pause").disabled
    with open_store(home) as store, store.writing():
        assert store.benchmarks.beat(benchmark_id, "another process", time.time()) == "pause"
    at.button(key="benchmark.cancel").click().run()
    assert "Cancelling" in texts(at), "rows under way may wait for long"


def test_a_benchmark_whose_server_was_killed_stands_as_paused_and_goes_on(
    app: OpenApp, home: Path, project_id: str
) -> None:
    benchmark_id = stored(home, project_id)
    with open_store(home) as store, store.writing():
        store.benchmarks.take(benchmark_id, "a dead process", time.time() - 900, 60.0)
    at = app(ONE, benchmark=benchmark_id)
    assert said(at.info, "Paused: the server was stopped meanwhile")
    assert not at.dataframe
    at.button(key="benchmark.resume").click().run()
    assert not at.exception
    wait(home, benchmark_id, "finished")
    assert said(app(ONE, benchmark=benchmark_id).caption, "32 of 32 answers")


def test_one_created_without_starting_waits_for_a_start_here_or_elsewhere(
    app: OpenApp, home: Path, project_id: str
) -> None:
    at = app(LIST)
    table = "response,document,label\n" + "".join(f"{r},{e},supported\n" for e, r, _ in FACTS[:2])
    at.file_uploader(key="benchmark.file").set_value([("a.csv", table.encode(), "text/csv")]).run()
    at.button(key="benchmark.create").click().run()
    assert not at.exception
    benchmark_id = query(at, "benchmark")
    assert load(home, benchmark_id).status == "queued"
    assert any("Not started" in one.proto.label for one in app(LIST).get("page_link"))
    at = app(ONE, benchmark=benchmark_id)
    assert said(at.info, "Not started yet")
    assert f"python -m core benchmark run {benchmark_id}" in texts(at)
    assert not [one for one in at.button if one.label == "Run again"]
    assert at.button(key="benchmark.resume").label == "Start (4 to go)"
    at.button(key="benchmark.resume").click().run()
    assert not said(at.info, "Not started")
    wait(home, benchmark_id, "finished")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("paused", "Paused. Its cap is reached"),
        ("cancelled", "Cancelled. What was measured is kept"),
        ("failed", "Failed: Its cap is reached"),
    ],
)
def test_each_end_is_told_and_can_be_resumed(
    app: OpenApp, home: Path, project_id: str, status: BenchmarkStatus, words: str
) -> None:
    benchmark_id = stored(home, project_id, cent_cap=50)
    set_status(home, benchmark_id, status, "Its cap is reached; raise it and resume.")
    at = app(ONE, benchmark=benchmark_id)
    assert words in texts(at)
    at.number_input(key=f"benchmark.{benchmark_id}.cents").set_value(200).run()
    at.number_input(key=f"benchmark.{benchmark_id}.tokens").set_value(9_000).run()
    at.button(key="benchmark.resume").click().run()
    wait(home, benchmark_id, "finished")
    assert '"cent_cap":200,"token_cap":9000' in load(home, benchmark_id).spec


def test_one_that_was_stopped_after_its_last_row_can_be_ended(
    app: OpenApp, home: Path, finished: str
) -> None:
    set_status(home, finished, "paused")
    app(ONE, benchmark=finished).button(key="benchmark.resume").click().run()
    wait(home, finished, "finished")


@pytest.mark.parametrize("status", ["finished", "paused", "cancelled", "failed"])
def test_nothing_is_chosen_by_a_part_of_the_rows(
    app: OpenApp, home: Path, finished: str, status: BenchmarkStatus, monkeypatch: Any
) -> None:
    monkeypatch.setattr(MeasuredBenchmark, "best", property(lambda self: self.systems[0]))
    set_status(home, finished, status)
    shown = texts(app(ONE, benchmark=finished))
    assert ("choose it on Project" in shown) is (status == "finished")
    assert ("not finished" in shown) is (status != "finished")


def test_errors_are_read_sent_to_review_and_opened_as_a_run(
    app: OpenApp, home: Path, project_id: str, finished: str, pick: Callable[..., None]
) -> None:
    at = app(ONE, benchmark=finished)
    at.segmented_control(key="benchmark.kind").set_value("right").run()
    pick(at, 0, 1)
    assert "Right answer:" in texts(at)
    at.button(key="benchmark.send").click().run()
    assert said(at.success, "2 rows in the review queue")
    with open_store(home) as store:
        cases = store.cases.all(project_id)
        assert len(cases) == 2
        assert all(store.queue.get(case.id) for case in cases)
        assert not any(truth.records for truth in store.truths.of_project(project_id).values())
        with store.writing():
            store.queue.set_state(cases[0].id, "adjudicated")
    at.button(key="benchmark.send").click().run()
    with open_store(home) as store:
        assert len(store.cases.all(project_id)) == 2, "the same rows are the same cases"
        (again,) = [e for e in store.queue_events.of_case(cases[0].id) if e.did == "reopened"]
        assert again.words == "a benchmark found the same label"
    at.button(key="benchmark.open").click().run()
    assert not at.exception
    run_id = finish(at)
    with open_store(home) as store:
        run = store.runs.get(run_id, time.time(), 60.0)
    assert run is not None
    assert run.plan.protocol == "single"
    assert run.label == "supported"


def test_the_same_rows_measured_again_stand_beside_the_first_result(
    app: OpenApp, home: Path, finished: str
) -> None:
    at = app(ONE, benchmark=finished)
    at.button(key="benchmark.again").click().run()
    assert not at.exception
    again = query(at, "benchmark")
    assert again != finished
    assert wait(home, again, "finished").repeats == finished
    assert load(home, again).spec == load(home, finished).spec, "rows, cells, seed and caps"
    at = app(ONE, benchmark=again)
    (beside,) = (t.value for t in at.dataframe if "the other result" in t.value.to_string())
    assert list(beside["Rows"]) == [16, 16]
    assert all(words.startswith("+0.000") for words in beside["Difference (95%)"])
    assert said(at.caption, "Code, engines, prompts and rows are the same in both")


def test_a_result_of_two_versions_says_so(
    app: OpenApp, home: Path, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark_id = stored(home, project_id, "ceda")
    with open_store(home) as store, store.writing():
        old = {"code": "old", "engines": [], "prompts": {}}
        assert store.benchmarks.take(benchmark_id, "earlier", 1.0, 60.0)
        store.benchmarks.put_card(benchmark_id, old, 1.0)
    run_benchmark(home, benchmark_id, "Mira", Keys({}))
    at = app(ONE, benchmark=benchmark_id)
    assert said(at.warning, "Measured under 2 versions")
    at.button(key="benchmark.again").click().run()
    again = query(at, "benchmark")
    wait(home, again, "finished")
    at = app(ONE, benchmark=again)
    assert not said(at.warning, "versions")
    assert said(at.caption, "Changed between them: code, engines, prompts")


def test_a_member_reads_and_cannot_run(
    app: OpenApp, home: Path, project_id: str, finished: str
) -> None:
    with open_store(home) as store, store.writing():
        store.projects.add_person("Nora", 1.0)
        store.projects.set_member(Member(project_id, "Nora", "annotator", 1.0))
        store.projects.save_note("person", "Nora")
    at = app(LIST)
    assert (
        said(at.caption, "Only leads")
        or said(at.caption, "Only people")
        or said(at.caption, "can run benchmarks")
    )
    assert not at.file_uploader
    at = app(ONE, benchmark=finished)
    assert "Balanced accuracy" in table(at, "Balanced accuracy").columns
    assert not [one for one in at.button if one.key in ("benchmark.again", "benchmark.resume")]


def test_a_papers_table_stands_beside_ours(
    app: OpenApp, home: Path, project_id: str, tmp_path: Path
) -> None:
    write_sets(tmp_path)
    at = app(LIST)
    at.selectbox(key="grid.name").set_value("ceda-2").run()
    assert "CEDA" in texts(at)
    assert "not run yet" in texts(at)
    assert at.button(key="grid.start").disabled
    at.text_input(key="grid.folder").set_value(str(tmp_path)).run()
    at.number_input(key="grid.limit").set_value(4).run()
    at.button(key="grid.start").click().run()
    wait_for((home / "evaluations" / "grid-ceda-2.json").exists, "the table")
    at.run()
    assert "not run yet" not in texts(at)


def test_a_kept_table_is_escaped_outlives_failures_and_may_be_broken(
    app: OpenApp,
    home: Path,
    project_id: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = plan_grid_cells(get_grid("ceda-2"), {"": "builtin"})[0]
    hostile = "no:\n\n## **Free** | [here](http://x.example)"
    (home / "evaluations").mkdir(parents=True)
    kept = home / "evaluations" / "grid-ceda-2.json"
    run = GridRun("ceda-2", {"": "builtin"}, (MeasuredCell(cell, None, hostile),))
    kept.write_bytes(msgspec.json.encode(run))
    at = app(LIST)
    at.selectbox(key="grid.name").set_value("ceda-2").run()
    drawn = "\n".join(str(one.value) for one in at.markdown)
    assert "**Free**" not in drawn
    assert "Free" in drawn
    assert "\n## " not in drawn
    kept.write_text('{"grid": "ced')
    at.run()
    assert not at.exception
    assert said(at.error, "Expected a run of the grid")
    kept.unlink()
    at.text_input(key="grid.folder").set_value(str(tmp_path)).run()

    def measure(outcome: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("core.evaluation.grid_commands.evaluate_engine", outcome)
            at.button(key="grid.start").click().run()
            wait_for(lambda: not said(at.run().info, "Measuring"), "the table")

    measure(Mock(return_value=result(cell, accuracy=0.5, f1=0.5)))
    measured = kept.read_bytes()
    measure(Mock(side_effect=ModelError("no *money*")))
    assert kept.read_bytes() == measured, "figures are not replaced by nothing"
    assert said(at.error, "Nothing could be measured: no *money*")
    measure(Mock(side_effect=ValueError("a fault")))
    assert said(at.error, "An unexpected error: ValueError('a fault')")


@pytest.fixture
def pick(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Chooses rows of a table, which AppTest cannot."""
    import streamlit as st

    real = st.dataframe
    chosen: dict[str, list[int]] = {}

    def dataframe(data: Any, **options: Any) -> Any:
        real(data, **options)
        wanted = chosen.get(str(options.get("key", "")).split(".errors")[0] + ".errors")
        picked = wanted if options.get("on_select") and wanted else []
        return {"selection": {"rows": picked, "cells": []}}

    monkeypatch.setattr(st, "dataframe", dataframe)

    def choose(at: AppTest, *rows: int) -> None:
        chosen["benchmark.errors"] = list(rows)
        at.run()

    return choose
