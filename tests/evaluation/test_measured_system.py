"""What is measured is the system that a check in the project would be, called anew."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from core.documents.library import ensure_read
from core.evaluation.benchmark_rows import RowSource, load_decided_rows
from core.evaluation.benchmarks import (
    BenchmarkSpec,
    create_benchmark,
    load_outcomes,
    load_progress,
    plan_cells,
    repeat_benchmark,
    require_benchmark,
    run_benchmark,
)
from core.evaluation.dataset_files import GoldRow
from core.evaluation.evaluate import parse_ways
from core.llm.keys import Keys
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.records import EXAMPLES_KIND, THRESHOLD_KIND
from core.schema.reviews import GoldAnswer
from core.schema.rosters import BUILT_IN_ROSTER, RosterConfig
from core.store import Store, open_store
from tests.agents.test_qualification import acting, is_test, knowing, qualified, waive
from tests.evaluation.test_benchmarks import facts
from tests.evaluation.test_evaluate import evaluated, write_claims
from tests.evaluation.tiny_sets import FACTS
from tests.fakes import case_of
from tests.llm.cast import Cast, as_json, judged, role_of
from tests.llm.loopback import Asked, Reply, loopback
from tests.test_learned_marks import example_body, teach
from tests.test_with_models import SPAN, sheet_at

KEYS = Keys({})


def store_benchmark(
    store: Store, home: Path, rows: list[GoldRow], ways: str, sheet: RosterConfig | None = None
) -> str:
    """Store a benchmark of Ida's first project, by the roster or the built-in agents."""
    project = ensure_project(store, "Ida", 0.0)
    if sheet is not None:
        with store.writing():
            store.rosters.save(replace(sheet, name="loopback"), "Ida", 0.0)
    roster = BUILT_IN_ROSTER if sheet is None else "loopback"
    cells, refused = plan_cells(home, project.id, [roster], parse_ways(ways), KEYS)
    assert not refused, refused
    spec = BenchmarkSpec(RowSource("file", "facts"), tuple(cells), token_cap=900_000)
    return create_benchmark(store, project.id, spec, rows, name="Facts", author="Ida")


def count_calls(store: Store, home: Path, benchmark_id: str) -> list[int]:
    """Run the benchmark, and return the calls of each cell."""
    ended = run_benchmark(home, benchmark_id, "Ida", KEYS)
    assert (ended.status, ended.message) == ("finished", "")
    return [cell.calls for _, cell in sorted(load_progress(store, ended, 0.0).cells.items())]


def test_each_system_and_each_time_pays_for_its_own_calls(home: Path) -> None:
    """At temperature 0, where runs otherwise take each other's replies."""
    with loopback(Cast({"judge": judged(1)})) as server, open_store(home) as store:
        ways = "single,adaptive"
        first = store_benchmark(store, home, facts(1), ways, sheet_at(server))
        calls = count_calls(store, home, first)
        assert all(calls)
        assert len(server.asked) == sum(calls)
        again = repeat_benchmark(store, home, require_benchmark(store, first), "Ida", KEYS)
        assert count_calls(store, home, again) == calls
        assert len(server.asked) == 2 * sum(calls)


def test_a_row_that_is_tried_again_takes_its_own_replies(home: Path) -> None:
    is_broken, cast = True, Cast({"judge": judged(1)})

    def answer(asked: Asked) -> Reply:
        return Reply(status=400) if is_broken and role_of(asked) == "judge" else cast(asked)

    with loopback(answer) as server, open_store(home) as store:
        benchmark_id = store_benchmark(store, home, facts(1)[:1], "ceda", sheet_at(server))
        run_benchmark(home, benchmark_id, "Ida", KEYS)
        assert "debate" in {role_of(asked) for asked in server.asked}
        is_broken = False
        server.asked.clear()
        assert run_benchmark(home, benchmark_id, "Ida", KEYS).message == ""
        assert {role_of(asked) for asked in server.asked} == {"judge"}


def test_learned_marks_are_measured_and_named(home: Path, without_weights: None) -> None:
    row = GoldRow(
        "1", "line 1", "Female cats tend to be left pawed.", "hallucinated", "cats",
        documents=("Female cats tend to be right pawed.",),
    )  # fmt: skip
    with open_store(home) as store:
        project_id = ensure_project(store, "Ida", 0.0).id
        marked = []
        for threshold in (0.0, 1.0):
            levels = {"by_language": {}, "otherwise": threshold}
            body: dict[str, object] = {"reader": levels, "corrections": []}
            number = teach(home, THRESHOLD_KIND, project_id, body)
            benchmark_id = store_benchmark(store, home, [row], "ceda")
            ended = run_benchmark(home, benchmark_id, "Ida", KEYS)
            assert ended.card["learned"] == [
                {"span_threshold": number, "span_examples": 0, "span_member": 0,
                 "agent_weights": 0}
            ]  # fmt: skip
            ((said,),) = [one.said for one in load_outcomes(store, benchmark_id)]
            marked.append(sum(span.end - span.start for span in said.spans))
    assert marked[0] > marked[1]


def test_prompts_carry_what_the_project_and_its_people_wrote(home: Path) -> None:
    """Examples without the case's own, and the role and instruction of project or case."""
    with loopback(Cast({"spans": as_json({"spans": [SPAN]})})) as server, open_store(home) as store:
        project = ensure_project(store, "Ida", 0.0)
        own = case_of(
            home, "The tower is 512 m tall.", ("f.txt", b"The tower is 412 m tall."),
            role="Guide", instruction="Be brief",
        )  # fmt: skip
        ensure_read(
            store, home, own.documents[0], "f.txt", Settings(), StopSignal(), print, time.time
        )
        answer = GoldAnswer("g", own.id, "Ida", 1.0, "adjudicated", "hallucinated", ())
        with store.writing():
            store.projects.save(replace(project, role="Curator", instruction="Use metres"))
            store.golds.add(answer, own.response)
        ids = ("case-ship", "Old ships sink slowly."), ("case-own", own.response)
        teach(home, EXAMPLES_KIND, project.id, {"examples": [example_body(*one) for one in ids]})
        decided, _ = load_decided_rows(store, home, project.id)
        uploaded = replace(decided[0], id="up", role=None, instruction=None)
        for row, words in ((decided[0], ("Guide", "Be brief")), (uploaded, ("Curator", "metres"))):
            server.asked.clear()
            run_benchmark(
                home, store_benchmark(store, home, [row], "ceda", sheet_at(server)), "Ida", KEYS
            )
            (spans,) = [asked for asked in server.asked if role_of(asked) == "spans"]
            assert "Old ships sink slowly." in spans.prompt
            assert spans.prompt.count(own.response) == 1, "never its own example"
            sent = " ".join(str(asked.body) for asked in server.asked)
            assert all(word in sent for word in words)


def test_an_evaluation_goes_by_how_the_model_stands_now(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It failed, a lead waived that and took it back, it passed, and it failed again."""
    write_claims(tmp_path / "data", FACTS[:1])
    knows = False

    def answer(asked: Asked) -> Reply:
        return knowing(asked) if knows and is_test(asked) else acting(asked)

    with loopback(answer) as server:
        given = ("--model", "openai/loopback", "--api-base", server.base, "--home", str(home),
                 "--trivial-limit", "1")  # fmt: skip

        def count_answered() -> int:
            _, found, _ = evaluated(capsys, tmp_path / "data", "fever_symmetric", *given)
            assert set(found["causes"]) <= {"model_not_fit"}
            return int(found["answered"])

        qualified(home, server)
        assert count_answered() == 0
        waive(home, server, "Mira: it is only a trial")
        assert count_answered() == 2
        waive(home, server, "")
        assert count_answered() == 0
        knows = True
        qualified(home, server)
        assert count_answered() == 2
        knows = False
        qualified(home, server)
        assert count_answered() == 0
