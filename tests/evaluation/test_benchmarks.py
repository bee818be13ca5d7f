"""Benchmarks as records: one result for each row and cell, whatever stops the process meanwhile."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from PIL import Image

from core.__main__ import main
from core.documents.library import store_file
from core.evaluation import benchmarks
from core.evaluation.benchmark_results import (
    MeasuredBenchmark,
    MeasuredSystem,
    break_down,
    compare_benchmarks,
    measure_benchmark,
    sort_answers,
)
from core.evaluation.benchmark_review import send_rows_to_review
from core.evaluation.benchmark_rows import (
    LibraryFiles,
    RowSource,
    load_decided_rows,
    map_labelled_rows,
)
from core.evaluation.benchmarks import (
    BenchmarkSpec,
    change_caps,
    count_versions,
    create_benchmark,
    list_conditions,
    load_outcomes,
    load_progress,
    load_rows,
    match_outcomes,
    plan_cells,
    read_spec,
    repeat_benchmark,
    request_wish,
    require_benchmark,
    run_benchmark,
    start_benchmark,
)
from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.engine_runs import EngineRuns, RowTask, open_engine_runs
from core.evaluation.evaluate import parse_ways
from core.evaluation.outcomes import Outcomes, Prediction, compute_dataset_digest
from core.evaluation.runner import RunnerOptions
from core.evaluation.system_comparison import SAME_ROWS_RIGHT, compare_systems
from core.exchange.column_mapping import ColumnMapping, read_file_table
from core.learning.track_record import WilsonShare
from core.llm.keys import Keys
from core.llm.limits import to_nano_dollars
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.errors import InputError, NotAllowed
from core.schema.records import Case, Member, Source, Span, new_id
from core.schema.reviews import GoldAnswer
from core.store import Store, open_store
from core.store.benchmarks import Benchmark
from core.store.ledger import LedgerRow
from core.store.review_queue import build_queue_rules
from tests.evaluation.tiny_sets import FACTS
from tests.fakes import make_case
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

ROOT = Path(__file__).resolve().parent.parent.parent
NO_KEYS = Keys({})
TWO = RunnerOptions(workers=2)


def facts(count: int = len(FACTS)) -> list[GoldRow]:
    """Two rows for each fact, which the first claim states and the second contradicts."""
    rows = []
    for n in range(count):
        evidence, right, wrong = FACTS[n % len(FACTS)]
        row = GoldRow(f"{n} right", f"fact {n}", right, "supported", str(n), documents=(evidence,))
        rows += [row, replace(row, id=f"{n} wrong", response=wrong, label="hallucinated")]
    return rows


@pytest.fixture
def opened(home: Path) -> Iterator[Store]:
    with open_store(home) as store:
        yield store


def created(
    store: Store, home: Path, rows: list[GoldRow], ways: str = "single,ceda", **caps: int
) -> str:
    project = ensure_project(store, "Ida", 0.0)
    cells, refused = plan_cells(home, project.id, ["builtin"], parse_ways(ways), NO_KEYS)
    assert not refused
    spec = BenchmarkSpec(RowSource("file", "facts.csv"), tuple(cells), seed=3, **caps)
    return create_benchmark(store, project.id, spec, rows, name="Facts", author="Ida")


def answer_each_row(monkeypatch: pytest.MonkeyPatch, said: Prediction) -> None:
    """Make each row's answer this one, with its calls in the ledger."""

    def predict(self: EngineRuns, task: RowTask, _: StopSignal) -> Prediction:
        call = LedgerRow(
            id="", run_id=self.setup.get_run_id(task), slot="", digest="", project_id="", person="",
            role="", model="", prompt="", prompt_hash="", cut="", at=0.0, reserved_nano=0,
            reserved_tokens=0, counts_nano=0, counts_tokens=0, status="done",
        )  # fmt: skip
        with open_store(self.setup.engines[0].home) as store, store.writing():
            for n in range(said.calls):
                tokens, cost = (0, 0.0) if n else (said.tokens, said.cost or 0.0)
                nano = to_nano_dollars(cost)
                store.ledger.put(replace(call, id=new_id(), tokens_in=tokens, cost_nano=nano))
        return said

    monkeypatch.setattr(EngineRuns, "predict_row", predict)


def labels(outcomes: Outcomes) -> list[tuple[str, str, float | None]]:
    pairs = zip(outcomes.rows, outcomes.said, strict=True)
    return [(row.id, said.label, said.p) for row, said in pairs]


def test_each_row_has_one_result_in_each_cell_and_the_card_says_how(
    opened: Store, home: Path
) -> None:
    rows = [replace(facts()[0], spans=(GoldSpan(0, 2, 1.0),)), *facts()[1:]]
    benchmark_id = created(opened, home, rows)
    ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS, TWO)
    assert (ended.status, ended.message) == ("finished", "")
    assert load_rows(opened, benchmark_id) == rows
    for cell in (0, 1):
        outcomes = load_outcomes(opened, benchmark_id)[cell]
        assert [row.id for row in outcomes.rows] == [row.id for row in rows]
        assert sum(outcomes.right) >= 12, "plain claims over plain facts"
    progress = load_progress(opened, ended, time.time())
    assert (progress.done, progress.failed, progress.total) == (32, 0, 32)
    assert set(ended.card) == {
        "rows", "dataset_sha256", "code", "engines", "prompts", "role", "instruction", "learned",
        "web_search", "seed", "workers", "executor", "machine",
    }  # fmt: skip
    assert (ended.card["rows"], ended.card["seed"]) == (16, 3)
    assert ended.card["prompts"]["judge.en"]
    with pytest.raises(InputError, match="finished or under way"):
        run_benchmark(home, benchmark_id, "Ida", NO_KEYS)


def test_a_paused_benchmark_goes_on_and_checks_no_row_twice(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: Counter[tuple[int, int]] = Counter()
    predict = EngineRuns.predict_row

    def counted(self: EngineRuns, task: RowTask, stop: StopSignal) -> Prediction:
        checked[task.cell, task.position] += 1
        if len(checked) == 5:
            with open_store(home) as store:
                request_wish(store, require_benchmark(store, benchmark_id), "Ida", "pause")
        return predict(self, task, stop)

    monkeypatch.setattr(EngineRuns, "predict_row", counted)
    benchmark_id = created(opened, home, facts())
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "paused"
    done = load_progress(opened, require_benchmark(opened, benchmark_id), time.time()).done
    assert 5 <= done < 32
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "finished"
    assert set(checked.values()) == {1}
    assert len(checked) == 32


def test_a_failed_row_says_why_and_is_tried_again(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.pipeline import temporary_home

    store_case = temporary_home.TemporaryHome.store_case

    def faulty(self: temporary_home.TemporaryHome, material: temporary_home.CheckMaterial) -> Case:
        if material.response.startswith("The school has seven"):
            raise RuntimeError("a fault of ours")
        return store_case(self, material)

    benchmark_id = created(opened, home, facts(), "ceda")
    with monkeypatch.context() as patched:
        patched.setattr(temporary_home.TemporaryHome, "store_case", faulty)
        ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS, TWO)
    assert (ended.status, ended.message) == ("finished", "Failed answers: 1.")
    (failed,) = [s for s in load_outcomes(opened, benchmark_id)[0].said if s.is_failure]
    assert failed.cause == "failed: an unexpected error: RuntimeError('a fault of ours')"
    again: list[RowTask] = []
    ended = run_benchmark(
        home, benchmark_id, "Ida", NO_KEYS, TWO, lambda task, _: again.append(task)
    )
    assert (ended.message, len(again)) == ("", 1)


@pytest.mark.slow
def test_a_benchmark_killed_three_times_has_the_result_of_one_that_was_not(
    opened: Store, home: Path
) -> None:
    with opened.writing():
        opened.projects.save_setting("lease_seconds", 3)
    benchmark_id, whole_id = (created(opened, home, facts(20)) for _ in range(2))
    run_benchmark(home, whole_id, "Ida", NO_KEYS, TWO)
    seen = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.evaluation.benchmark_process", home, benchmark_id],
            cwd=ROOT,
            env=os.environ | {"PAUSE": "0.1"},
        )
        try:
            seen = wait_for_results(opened, benchmark_id, seen + 3)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert require_benchmark(opened, benchmark_id).status in ("running", "interrupted")
        wait_for(
            lambda: require_benchmark(opened, benchmark_id).status == "interrupted",
            "the end of its lease",
        )
    assert seen < 80
    again: list[RowTask] = []
    ended = run_benchmark(
        home, benchmark_id, "Ida", NO_KEYS, TWO, lambda task, _: again.append(task)
    )
    assert ended.status == "finished"
    assert len(again) <= 80 - seen
    for cell in (0, 1):
        one, other = (load_outcomes(opened, i)[cell] for i in (benchmark_id, whole_id))
        assert labels(one) == labels(other)
        assert len(one.rows) == 40


def wait_for_results(store: Store, benchmark_id: str, wanted: int) -> int:
    wait_for(lambda: len(store.benchmarks.answered(benchmark_id)) >= wanted, "rows")
    return len(store.benchmarks.answered(benchmark_id))


def test_a_benchmark_is_run_again_and_compared_on_the_same_rows(opened: Store, home: Path) -> None:
    first = created(opened, home, facts(), "ceda")
    run_benchmark(home, first, "Ida", NO_KEYS)
    again = repeat_benchmark(opened, home, require_benchmark(opened, first), "Ida", NO_KEYS)
    ended = run_benchmark(home, again, "Ida", NO_KEYS)
    assert (ended.repeats, ended.name) == (first, "Facts")
    assert ended.card["dataset_sha256"] == require_benchmark(opened, first).card["dataset_sha256"]
    shorter = created(opened, home, facts()[4:], "ceda")
    run_benchmark(home, shorter, "Ida", NO_KEYS)
    one, other = match_outcomes(*(load_outcomes(opened, i)[0] for i in (first, shorter)))
    assert [row.id for row in one.rows] == [row.id for row in facts()[4:]]
    (compared,) = compare_systems({"one": one, "other": other}, "accuracy")
    assert compared.statistics["McNemar"].why == SAME_ROWS_RIGHT


def test_each_version_that_measured_a_part_is_on_the_card(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark_id = created(opened, home, facts(1), "ceda")

    def resume(code: str, workers: int) -> Benchmark:
        monkeypatch.setattr("core.evaluation.benchmarks.compute_engine_digest", lambda: code)
        monkeypatch.setattr(
            EngineRuns, "predict_row", lambda *_: Prediction("unclear", cause="failed: no")
        )
        return run_benchmark(home, benchmark_id, "Ida", NO_KEYS, RunnerOptions(workers))

    assert count_versions(resume("old", 1)) == 1
    once = resume("old", 1)
    assert "resumed" not in once.card
    assert count_versions(resume("old", 2)) == 1, "more workers are no other version"
    ended = resume("new", 2)
    assert count_versions(ended) == 2
    assert list_conditions(ended, ["code"]) == [["old"], ["new"]]
    assert [one["workers"] for one in ended.card["resumed"]] == [2, 2]
    assert all(one["at"] > ended.created_at for one in ended.card["resumed"])


def test_rows_of_a_file_are_the_same_under_another_name(opened: Store, home: Path) -> None:
    both = []
    for name in ("first.csv", "renamed.csv"):
        table = read_file_table(name, b"response,document,label\nA.,B.,ok\nA.,B.,ok\nC.,D.,ok\n")
        mapping = ColumnMapping(
            {name: name for name in ("response", "document", "label")}, {"ok": "supported"}
        )
        rows, _ = map_labelled_rows(table, mapping, name, LibraryFiles(opened, home, ""))
        both.append(Outcomes(rows, [Prediction("supported", n / 10) for n in range(3)]))
    assert compute_dataset_digest(both[0].rows) == compute_dataset_digest(both[1].rows)
    one, other = match_outcomes(both[0], both[1])
    assert [said.p for said in one.said] == [said.p for said in other.said] == [0.0, 0.1, 0.2]
    few = Outcomes(both[1].rows[1:], both[1].said[1:])
    one, other = match_outcomes(both[0], few)
    assert [row.response for row in one.rows] == ["A.", "C."]
    assert [said.p for said in other.said] == [0.1, 0.2], "each row once"


def test_systems_are_measured_on_the_rows_that_all_have_answered(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def predict(_: EngineRuns, task: RowTask, __: StopSignal) -> Prediction:
        if (task.cell, task.position) == (1, 12):
            with open_store(home) as store:
                request_wish(store, require_benchmark(store, benchmark_id), "Ida", "pause")
        label = task.row.label if task.cell == 0 else "hallucinated"
        return Prediction(label or "unclear", 0.5, seconds=1.0)

    monkeypatch.setattr(EngineRuns, "predict_row", predict)
    rows = [replace(row, category="even" if n % 4 < 2 else "odd") for n, row in enumerate(facts())]
    benchmark_id = created(opened, home, rows)
    assert measure_benchmark(opened, benchmark_id, lambda cell: cell.name) is None
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "paused"
    decode = Mock(wraps=benchmarks.ROW_DECODER.decode)
    monkeypatch.setattr(benchmarks, "ROW_DECODER", Mock(decode=decode))
    part = measure_benchmark(opened, benchmark_id, lambda cell: cell.name)
    assert part is not None
    assert 0 < len(part.rows) < 16
    assert decode.call_count == 16, "each row once, however many systems there are"
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "finished"
    whole = measure_benchmark(opened, benchmark_id, lambda cell: cell.name)
    assert whole is not None
    assert [row.id for row in whole.rows] == [row.id for row in rows]
    assert [one.name for one in whole.systems] == ["builtin, single", "builtin, ceda"]
    assert [one.name for one in whole.trivial] == ["Always hallucinated", "Always supported"]
    assert whole.systems[1].figures["balanced_accuracy"]["value"] == 0.5
    assert whole.best is whole.systems[0]
    kinds = {(one.dimension, one.kind): one for one in break_down(whole)}
    assert kinds.keys() >= {("Category", "odd"), ("Right answer", "supported")}
    assert kinds["Category", "even"].right["builtin, ceda"] == WilsonShare(4, 8)
    assert not [name for name, _ in kinds if name == "Sources"], "all rows have texts"
    assert sort_answers(whole.systems[1].outcomes)["wrong"] == [*range(0, 16, 2)]
    own, other = compare_benchmarks(whole, part)
    assert (own.rows, own.difference and own.difference.value) == (len(part.rows), 0.0)
    assert (own.winner, other.winner) == ("", "")


def test_rows_run_in_random_groups_so_that_a_part_is_a_sample(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[int] = []

    def predict(_: EngineRuns, task: RowTask, __: StopSignal) -> Prediction:
        order.append(task.position)
        return Prediction("supported", 0.5)

    monkeypatch.setattr(EngineRuns, "predict_row", predict)
    rows = sorted(facts(), key=lambda row: row.label or "")
    for seed in (3, 3, 4):
        benchmark_id = created(opened, home, rows, "single")
        benchmark = require_benchmark(opened, benchmark_id)
        with opened.writing():
            spec = replace(read_spec(benchmark), seed=seed)
            opened.benchmarks.replace_spec(benchmark_id, msgspec.json.encode(spec).decode())
        run_benchmark(home, benchmark_id, "Ida", NO_KEYS)
    first, again, other = order[:16], order[16:32], order[32:]
    assert first == again != other
    assert sorted(first) == list(range(16)) != first
    groups = [rows[place].group for place in first]
    assert groups[::2] == groups[1::2], "rows over one source follow one another"
    assert len({rows[place].label for place in first[:4]}) == 2


def test_kinds_of_rows_in_groups_have_intervals_of_groups() -> None:
    rows = [
        replace(facts()[0], id=str(n), group=str(n // 10), category="ab"[n // 100])
        for n in range(200)
    ]
    said = [Prediction("supported" if n // 10 % 2 else "hallucinated") for n in range(200)]
    own = MeasuredSystem("a", Outcomes(rows, said), {})
    first, _ = break_down(MeasuredBenchmark((own,), ()))
    share = first.right["a"]
    assert (share.right, share.n) == (50, 100)
    low, high = share.interval
    assert low < 0.26 < 0.74 < high, "as wide as ten groups are, not as a hundred rows"


def test_caps_hold_rows_back_until_they_are_raised(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_each_row(monkeypatch, Prediction("supported", 0.1, calls=2, tokens=100, cost=0.01))
    benchmark_id = created(opened, home, facts(), "ceda", cent_cap=5)
    ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS, TWO)
    progress = load_progress(opened, ended, time.time())
    assert (ended.status, progress.done) == ("paused", 5)
    assert progress.cost == pytest.approx(0.05)
    assert (progress.calls, progress.tokens) == (10, 500)
    assert "cap" in ended.message
    change_caps(opened, ended, "Ida", cent_cap=100, token_cap=0)
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS, TWO).status == "finished"
    begun_at_once = created(opened, home, facts(), "ceda", cent_cap=1)
    ended = run_benchmark(home, begun_at_once, "Ida", NO_KEYS, RunnerOptions(workers=8))
    assert load_progress(opened, ended, time.time()).done == 1


def test_what_failed_rows_took_counts_when_they_are_tried_again(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark_id = created(opened, home, facts(2), "ceda", cent_cap=200)
    failed = Prediction("unclear", cause="failed: no", calls=2, tokens=100, cost=0.25)
    answer_each_row(monkeypatch, failed)
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).message == "Failed answers: 4."
    answer_each_row(monkeypatch, Prediction("supported", 0.1, calls=3, tokens=50, cost=0.25))
    for _ in range(2):  # resumed, it knows all that was spent
        ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS)
        progress = load_progress(opened, ended, time.time())
        assert (ended.status, progress.failed) == ("paused", 1)
        assert progress.cost == pytest.approx(1.75)
        assert (progress.calls, progress.tokens) == (17, 550)
    said = load_outcomes(opened, benchmark_id)[0].said
    assert Counter((one.calls, one.tokens) for one in said) == {(5, 150): 3, (2, 100): 1}
    assert max(one.cost or 0.0 for one in said) == pytest.approx(0.5)


def test_failed_rows_that_are_tried_again_are_still_to_do(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = iter(["no"] * 4 + ["", "no", "", ""])
    monkeypatch.setattr(
        EngineRuns,
        "predict_row",
        lambda *_: Prediction("unclear", cause=f"failed: {why}" if (why := next(said)) else ""),
    )
    seen: list[tuple[int, int]] = []

    def look(_task: RowTask, _said: Prediction) -> None:
        progress = load_progress(opened, require_benchmark(opened, benchmark_id), time.time())
        seen.append((progress.done, progress.failed))
        assert bool(progress.seconds_left) == (0 < progress.done < progress.total)

    benchmark_id = created(opened, home, facts(2), "ceda")
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).message == "Failed answers: 4."
    run_benchmark(home, benchmark_id, "Ida", NO_KEYS, on_result=look)
    assert seen == [(1, 0), (2, 1), (3, 1), (4, 1)]


def test_no_more_workers_are_made_ready_than_there_are_rows(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_ready = Mock(wraps=open_engine_runs)
    monkeypatch.setattr("core.evaluation.runner.open_engine_runs", made_ready)
    benchmark_id = created(opened, home, facts(1), "ceda")
    ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS, RunnerOptions(workers=64))
    assert (ended.status, made_ready.call_count) == ("finished", 2)


def test_the_pace_of_slow_rows_is_known_and_that_of_few_is_not_too_high(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_each_row(monkeypatch, Prediction("supported", 0.1))
    benchmark_id = created(opened, home, facts(2), "ceda")
    run_benchmark(home, benchmark_id, "Ida", NO_KEYS)
    opened.db.execute("UPDATE benchmark_results SET at = 1000 + 100 * (position + 1)", [])
    opened.db.execute("DELETE FROM benchmark_results WHERE position >= 2", [])
    opened.db.execute("UPDATE benchmarks SET status = 'running', started_at = 1000", [])
    under_way = replace(
        require_benchmark(opened, benchmark_id), status="running", started_at=1000.0
    )
    progress = load_progress(opened, under_way, 1200.0)
    assert progress.rows_per_second == pytest.approx(0.01)
    assert progress.seconds_left == pytest.approx(200)


def test_a_refused_row_is_not_failed_and_is_not_tried_again(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_each_row(monkeypatch, Prediction("unclear", cause="refused: too long"))
    benchmark_id = created(opened, home, facts(1), "ceda")
    ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS)
    assert (ended.status, ended.message) == ("finished", "")
    kinds = sort_answers(load_outcomes(opened, benchmark_id)[0])
    assert {kind: len(places) for kind, places in kinds.items() if places} == {"refused": 2}
    with pytest.raises(InputError, match="finished"):
        run_benchmark(home, benchmark_id, "Ida", NO_KEYS)


def test_a_pause_before_the_first_row_counts(opened: Store, home: Path) -> None:
    benchmark_id = created(opened, home, facts(2), "ceda")
    request_wish(opened, require_benchmark(opened, benchmark_id), "Ida", "pause")
    paused = run_benchmark(home, benchmark_id, "Ida", NO_KEYS)
    assert paused.status == "paused"
    assert load_progress(opened, paused, time.time()).done <= 1
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "finished"


def test_a_pause_that_comes_with_the_last_row_leaves_nothing_to_resume(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_runs: EngineRuns, task: RowTask, _stop: StopSignal) -> Prediction:
        if task.position == 1:
            with open_store(home) as store:
                request_wish(store, require_benchmark(store, benchmark_id), "Ida", "pause")
        return Prediction("supported", 0.1)

    monkeypatch.setattr(EngineRuns, "predict_row", answer)
    benchmark_id = created(opened, home, facts(1), "ceda")
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "finished"


def test_an_interrupted_benchmark_is_cancelled_at_once(opened: Store, home: Path) -> None:
    benchmark_id = created(opened, home, facts(1), "ceda")
    with opened.writing():
        assert opened.benchmarks.take(benchmark_id, "gone", 1.0, 6.0)
    benchmark = require_benchmark(opened, benchmark_id)
    assert benchmark.status == "interrupted"
    in_the_future = time.time() + 3600  # before the clock was set back
    with opened.writing():
        assert opened.benchmarks.take(benchmark_id, "gone too", in_the_future, 6.0)
    benchmark = require_benchmark(opened, benchmark_id)
    assert benchmark.status == "interrupted"
    request_wish(opened, benchmark, "Ida", "cancel")
    assert require_benchmark(opened, benchmark_id).status == "cancelled"
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "finished"


def test_a_benchmark_is_listed_run_and_resumed_by_a_command(
    opened: Store,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["benchmark", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    monkeypatch.setattr("core.evaluation.benchmark_commands.PROGRESS_SECONDS", 0.0)
    benchmark_id = created(opened, home, facts(2), "ceda", cent_cap=1)
    code, listed, _ = run("list")
    assert (code, listed.split()[0]) == (0, benchmark_id)
    assert "Facts · queued · 0 of 4 answers" in listed
    answer_each_row(monkeypatch, Prediction("supported", 0.1, calls=1, tokens=10, cost=0.006))
    code, ended, progress = run("run", benchmark_id, "--workers", "2")
    assert (code, ended.split(" · ")[1].split()[0]) == (1, "paused")
    assert "running · 1 of 4 answers" in progress
    assert require_benchmark(opened, benchmark_id).card["workers"] == 2
    change_caps(opened, require_benchmark(opened, benchmark_id), "Ida", cent_cap=0, token_cap=0)
    code, ended, _ = run("run", benchmark_id)
    assert (code, "finished · 4 of 4 answers · 4 calls, 40 tokens · US$0.0240" in ended) == (
        0,
        True,
    )
    for words in (
        ("run", "nope"),
        ("run", benchmark_id),
        ("run", benchmark_id, "--rate", "openai=5/s"),
        ("run", benchmark_id, "--address", "10.0.0.1:6379"),
        ("run", benchmark_id, "--by", "Nobody"),
    ):
        code, _, why = run(*words)
        assert (code, why.count("\n")) == (2, 1), why


def test_a_source_that_is_gone_costs_its_row_alone_and_before_the_start_says_so(
    opened: Store, home: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "tower.png"
    picture.write_bytes(png())
    rows = [*facts(1), replace(facts(1)[0], id="pictured", images=(picture,))]
    paused, new = (created(opened, home, rows, "ceda") for _ in range(2))
    request_wish(opened, require_benchmark(opened, paused), "Ida", "pause")
    run_benchmark(home, paused, "Ida", NO_KEYS)
    picture.unlink()
    ended = run_benchmark(home, paused, "Ida", NO_KEYS)
    assert (ended.status, ended.message) == ("finished", "")
    causes = [one.cause.split(":")[0] for one in load_outcomes(opened, paused)[0].said]
    assert causes == ["", "", "refused"]
    start_benchmark(home, new, "Ida", NO_KEYS).join()
    ended = require_benchmark(opened, new)
    assert ended.status == "failed"
    assert f"expected an image at {picture}" in ended.message


def test_a_full_disk_ends_a_benchmark_with_its_cause(
    opened: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark_id = created(opened, home, facts(2), "ceda")
    full = Mock(side_effect=sqlite3.OperationalError("database or disk is full"))
    with monkeypatch.context() as patched:
        patched.setattr("core.store.benchmarks.Benchmarks.put_result", full)
        ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS)
    assert (ended.status, "database or disk is full" in ended.message) == ("failed", True)
    assert run_benchmark(home, benchmark_id, "Ida", NO_KEYS).status == "finished"


def test_only_leads_run_pause_cancel_and_change_benchmarks(opened: Store, home: Path) -> None:
    benchmark = require_benchmark(opened, created(opened, home, facts(1), "ceda"))
    with opened.writing():
        opened.projects.add_person("Ben", 0.0)
        opened.projects.add_member(Member(benchmark.project_id, "Ben", "annotator", 0.0))
    for do in (
        lambda: repeat_benchmark(opened, home, benchmark, "Ben", NO_KEYS),
        lambda: change_caps(opened, benchmark, "Ben", cent_cap=1, token_cap=0),
        lambda: request_wish(opened, benchmark, "Ben", "cancel"),
        lambda: run_benchmark(home, benchmark.id, "Ben", NO_KEYS),
        lambda: start_benchmark(home, benchmark.id, "Ben", NO_KEYS),
    ):
        with pytest.raises(NotAllowed, match="To run benchmarks takes the role lead; Ben has"):
            do()
    assert require_benchmark(opened, benchmark.id) == benchmark
    assert len(opened.benchmarks.of_project(benchmark.project_id, 0.0, 6.0)) == 1


def test_rows_come_from_a_file_with_odd_columns(opened: Store, home: Path) -> None:
    table = read_file_table(
        "odd.csv",
        b"Answer;Ctx;Verdict\nIt is 3 m.;It is 4 m.;bad\nIt is 4 m.;It is 4 m.;good\n?;;\n",
    )
    mapping = ColumnMapping(
        {"response": "Answer", "document": "Ctx", "label": "Verdict"},
        {"bad": "hallucinated", "good": "supported"},
    )
    rows, problems = map_labelled_rows(table, mapping, "odd.csv", LibraryFiles(opened, home, ""))
    assert [(row.response, row.label, row.documents) for row in rows] == [
        ("It is 3 m.", "hallucinated", ("It is 4 m.",)),
        ("It is 4 m.", "supported", ("It is 4 m.",)),
    ]
    assert rows[0].group == rows[1].group, "over the same source"
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        (["Sum up.;A.;Text 1", "sum up;B.;Text 1", "Sum up.;C.;Text 2"], [1, 1, 2]),
        (["Who?;A.;One text", "Where?;B.;One text", "When?;C.;One text"], [1, 1, 1]),
        (["Who?;A.;Text 1", "who;B.;Text 2", "Where?;C.;Text 2", "Why?;D.;Text 3"], [1, 1, 1, 2]),
        (["Who?;A.;", "Who?;B.;", "Who?;C.;"], [1, 1, 1]),
        ([";A.;", ";B.;", ";A!;"], [1, 2, 1]),
    ],
)
def test_rows_that_share_a_source_or_a_question_are_related(
    opened: Store, home: Path, lines: list[str], groups: list[int]
) -> None:
    """A question of all rows over several texts is an instruction, and relates none."""
    text = "\n".join(["question;response;document;label", *(f"{line};ok" for line in lines)])
    names = ("question", "response", "document", "label")
    mapping = ColumnMapping({name: name for name in names}, {"ok": "supported"})
    table = read_file_table("rows.csv", text.encode())
    rows, _ = map_labelled_rows(table, mapping, "rows.csv", LibraryFiles(opened, home, ""))
    first = [row.group for row in rows]
    assert [list(dict.fromkeys(first)).index(one) + 1 for one in first] == groups


def test_a_category_may_be_any_value(opened: Store, home: Path) -> None:
    given: list[object] = [3, " big ", ["a", 1], True, None]
    lines = [json.dumps({"response": "A.", "label": "ok", "cat": one}) for one in given]
    lines.append(json.dumps({"response": "A.", "label": "ok"}))
    table = read_file_table("rows.jsonl", "\n".join(lines).encode())
    mapping = ColumnMapping({"response": "response", "label": "label"}, {"ok": "supported"})
    rows, _ = map_labelled_rows(table, mapping, "rows.jsonl", LibraryFiles(opened, home, ""), "cat")
    assert [row.category for row in rows] == ["3", "big", '["a", 1]', "true", "", ""]


def png() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), "white").save(stream, "PNG")
    return stream.getvalue()


def keep(store: Store, home: Path, name: str, data: bytes, text: str | None = None) -> str:
    """Store a file in the library, with the text that was read in it if it was."""
    project = ensure_project(store, "Ida", 0.0)
    settings = store.projects.settings()
    entry = store_file(store, home, project.id, name, data, "Ida", 0.0, settings)
    if text is not None:
        with store.writing():
            source = Source(entry.id, name, "text", text)
            store.readings.save(source, reader="text", seconds=0.1, now=0.0)
    return entry.id


def decide(store: Store, case_id: str, **sources: tuple[str, ...]) -> None:
    project = ensure_project(store, "Ida", 0.0)
    with store.writing():
        case = make_case("It is 3 m.", id=case_id, project_id=project.id, **sources)
        store.cases.add(case, [])
        span = Span(6, 9, "3 m", 1.0, "number_or_date", "Ida")
        gold = GoldAnswer(
            f"g{case_id}", case_id, "Ida", 1.0, "adjudicated", "hallucinated", (span,)
        )
        store.golds.add(gold, "It is 3 m.")


def test_rows_are_the_cases_that_people_decided(opened: Store, home: Path) -> None:
    project = ensure_project(opened, "Ida", 0.0)
    facts_id = keep(opened, home, "facts.txt", b"It is 4 m high.", "It is 4 m high.")
    picture = keep(opened, home, "tower.png", png())
    decide(opened, "a", documents=(facts_id,))
    decide(opened, "pictured", documents=(facts_id,), images=(picture,))
    decide(opened, "unread", documents=(facts_id, keep(opened, home, "later.txt", b"Later.")))
    decide(opened, "gone", images=("0" * 64,))
    with opened.writing():
        opened.cases.add(make_case("It is 3 m.", id="open", project_id=project.id), [])
    (row, pictured), unread = load_decided_rows(opened, home, project.id)
    assert (row.id, row.label, row.documents) == ("a", "hallucinated", ("It is 4 m high.",))
    assert row.spans == (GoldSpan(6, 9),)
    assert (pictured.id, pictured.documents) == ("pictured", row.documents)
    assert [path.read_bytes() for path in pictured.images] == [png()]
    assert unread == 2
    send_rows_to_review(
        opened, home, project, [pictured], "Ida", 1.0, build_queue_rules(project), "why"
    )
    names = {entry.name for entry in opened.library.all(project.id)}
    assert names == {"facts.txt", "tower.png", "later.txt"}, "its files keep their names"


def test_a_cell_may_name_a_file_of_the_library(opened: Store, home: Path) -> None:
    project = ensure_project(opened, "Ida", 0.0)
    keep(opened, home, "the facts.txt", b"It is 4 m high.", "It is 4 m high.")
    keep(opened, home, "later.txt", b"Later.")
    keep(opened, home, "tower.png", png())
    cells = ("the facts.txt", " the facts.txt ", "later.txt", "none.pdf", "tower.png", "It is 4.5")
    lines = [f"It is 3 m.;{cell};bad" for cell in cells]
    table = read_file_table("odd.csv", "\n".join(["Answer;Ctx;Verdict", *lines]).encode())
    columns = {"response": "Answer", "document": "Ctx", "label": "Verdict"}
    mapping = ColumnMapping(columns, {"bad": "hallucinated"})
    files = LibraryFiles(opened, home, project.id)
    rows, problems = map_labelled_rows(table, mapping, "odd.csv", files)
    assert [row.documents for row in rows] == [
        ("It is 4 m high.",), ("It is 4 m high.",), (), ("It is 4.5",),
    ]  # fmt: skip
    assert [path.read_bytes() for path in rows[2].images] == [png()]
    (case,) = send_rows_to_review(
        opened, home, project, rows[2:3], "Ida", 1.0, build_queue_rules(project), "why"
    )
    assert [opened.library.name_of(project.id, i) for i in case.images] == ["tower.png"]
    assert [(one.place, one.reason) for one in problems] == [
        (4, "its source “later.txt” is not read yet; Library says why."),
        (5, "its source “none.pdf” is not in the project’s library; add it there."),
    ]


def test_a_roster_that_cannot_argue_so_is_named(home: Path, opened: Store) -> None:
    project = ensure_project(opened, "Ida", 0.0)
    ways, rosters = parse_ways("ceda,colmad"), ["builtin", "titans"]
    cells, refused = plan_cells(home, project.id, rosters, ways, NO_KEYS)
    assert [cell.name for cell in cells] == ["builtin, ceda"]
    assert [(one.roster, one.way) for one in refused] == [
        ("builtin", "colmad"), ("titans", "ceda"), ("titans", "colmad"),
    ]  # fmt: skip
    assert all(one.why for one in refused)
    spec = BenchmarkSpec(RowSource("file", "x"), tuple(cells))
    with pytest.raises(InputError, match="rows that all have a label"):
        create_benchmark(opened, project.id, spec, [], name="", author="Ida")
    benchmark_id = created(opened, home, facts(1), "ceda")
    assert read_spec(require_benchmark(opened, benchmark_id)).cells[0].way == "ceda"
