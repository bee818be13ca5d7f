"""A grid of eight ways to argue over a loopback server with a rate and 20 % injected faults."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.evaluation.benchmark_rows import RowSource
from core.evaluation.benchmarks import (
    BenchmarkCell,
    BenchmarkSpec,
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
from core.runtime.config import PROJECT_ROOT
from core.store import open_store
from tests.evaluation.test_benchmarks import facts

RATE = 50
WORKERS = 40
WAYS = (
    "single,single:samples=3,single:style=thought,ceda,colmad:rounds=1,copmad:rounds=1,society,"
    "mad:rounds=1"
)


@dataclass(frozen=True)
class GridFigures:
    """Share of the rate that was used, most requests in any second, how rows ended, and faults."""

    used: float
    most: int
    ends: Counter[str]
    faults: int
    calls: int


@dataclass
class FaultyModels:
    """Where they are served; once they have ended, their faults and when requests arrived."""

    base: str
    faults: int = 0
    times: list[float] = field(default_factory=list)


@contextlib.contextmanager
def faulty_models() -> Iterator[FaultyModels]:
    """Models in a process of their own: in ours, arrivals would wait for our interpreter."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.faulty_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT_ROOT,
    )
    assert process.stdout
    models = FaultyModels(process.stdout.readline().strip())
    try:
        yield models
    finally:
        ended, _ = process.communicate(timeout=10)
        models.faults, models.times = (found := json.loads(ended))["faults"], found["times"]


def run_grid(home: Path, rows: int) -> GridFigures:
    """Run the grid; the first and the last twentieth of the requests are left out of the share."""
    keys = Keys({"COUNTERPOINT_API_KEY": "test-key-0123456789"})
    with faulty_models() as server, open_store(home) as store:
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
    set_rates({})
    ends = Counter(
        "failed" if one.is_failure else "unclear" if one.label == "unclear" else "scored"
        for one in said
    )
    times = server.times
    middle = times[len(times) // 20 : -len(times) // 20]
    used = (len(middle) - 1) / (middle[-1] - middle[0]) / RATE
    most = max(bisect_left(times, start + 1) - n for n, start in enumerate(times))
    return GridFigures(used, most, ends, server.faults, len(times))
