"""A grid of eight ways to argue over a loopback server with a rate and 20 % injected faults."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from core.evaluation.benchmarks import (
    BenchmarkCell,
    BenchmarkSpec,
    RowSource,
    create_benchmark,
    load_outcomes,
    run_benchmark,
)
from core.evaluation.engine_runs import build_engine
from core.evaluation.evaluate import parse_ways
from core.evaluation.runner import RunnerOptions
from core.llm.keys import Keys
from core.llm.rate_limit import parse_rates, set_rates
from core.pipeline.single_check import CheckRequest, plan_check
from core.review.people import ensure_project
from core.store import open_store
from tests.debate.test_all_protocols_served import sensible
from tests.evaluation.test_benchmarks import facts
from tests.llm.loopback import Asked, Fault, Reply, loopback

RATE = 50
WORKERS = 24
WAYS = (
    "single,single:samples=3,single:style=thought,ceda,colmad:rounds=1,copmad:rounds=1,society,"
    "mad:rounds=1"
)
FAULTS: tuple[Fault, ...] = ("hang_up", "cut_off", "malformed", "no_finish", "empty_body")


@dataclass(frozen=True)
class GridFigures:
    """Share of the rate that was used, most requests in any second, how rows ended, and faults."""

    used: float
    most: int
    ends: Counter[str]
    faults: int
    calls: int


def run_grid(home: Path, rows: int) -> GridFigures:
    """Run the grid; the first and the last twentieth of the requests are left out of the share."""
    chance, faults = random.Random(7), Counter[str]()

    def answer(asked: Asked) -> Reply:
        if chance.random() >= 0.2:
            return sensible(asked)
        fault = chance.choice((*FAULTS, *["overloaded"] * len(FAULTS)))
        faults[fault] += 1
        if fault == "overloaded":
            return Reply(status=503, headers={"Retry-After": "0"})
        return Reply(sensible(asked).text, fault=fault)  # type: ignore[arg-type]

    keys = Keys({"COUNTERPOINT_API_KEY": "test-key-0123456789"})
    with loopback(answer) as server, open_store(home) as store:
        with store.writing():
            store.projects.save_setting("day_tokens", 1_000_000_000)
            store.projects.save_setting("person_day_tokens", 1_000_000_000)
        set_rates(parse_rates([f"127.0.0.1={RATE}/s"]))
        cells = []
        for way in parse_ways(WAYS):
            request = CheckRequest(
                "", protocol=way.protocol, options=way.options, model="openai/loopback",
                api_base=server.base, token_cap=900_000, concurrency=16,
            )  # fmt: skip
            plan = build_engine(home, plan_check(home, request, keys)[0], keys).plan
            cells.append(BenchmarkCell("loopback", way.name, plan))
        project = ensure_project(store, "bench", 0.0)
        spec = BenchmarkSpec(RowSource("file", "facts"), tuple(cells))
        benchmark_id = create_benchmark(
            store, project.id, spec, facts(rows // 2), name="Grid", author="bench"
        )
        run_benchmark(home, benchmark_id, "bench", keys, RunnerOptions(workers=WORKERS))
        said = [s for one in load_outcomes(store, benchmark_id) for s in one.said]
        times = sorted(asked.at for asked in server.asked)
    set_rates({})
    ends = Counter(
        "failed" if one.is_failure else "unclear" if one.label == "unclear" else "scored"
        for one in said
    )
    middle = times[len(times) // 20 : -len(times) // 20]
    used = (len(middle) - 1) / (middle[-1] - middle[0]) / RATE
    most = max(sum(start <= at < start + 1 for at in times) for start in times)
    return GridFigures(used, most, ends, sum(faults.values()), len(times))
