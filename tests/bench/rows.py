"""Rows a second of the built-in engine, on one and two workers, by threads and on Ray, with kills.

Each run is `python -m core benchmark run` over rows that its home has never read, with one thread a
worker (OMP_NUM_THREADS=1). Runs that are to be killed are, at even distances, and started again.
`python -m tests.bench --only rows --path SETS --rows 10000` takes three hours on two cores; a part:
`python -m tests.bench.rows SETS 10000 threads:2:0 ray:2:3` (executor, workers, kills).
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from core.evaluation.benchmark_rows import RowSource
from core.evaluation.benchmarks import BenchmarkSpec, create_benchmark, plan_cells
from core.evaluation.dataset_files import GoldRow
from core.evaluation.datasets import load_dataset_rows
from core.evaluation.evaluate import parse_ways, sample_rows
from core.llm.keys import Keys
from core.review.people import ensure_project
from core.runtime.config import PROJECT_ROOT
from core.store import open_store
from core.store.benchmarks import BenchmarkResult

SETS = (
    "entailment_fm2",
    "entailment_healthver",
    "entailment_scifact_rte",
    "fever_symmetric",
    "halueval",
)
LEFT_OUT = 4  # first results of a process, in which workers still start
POLL_SECONDS = 0.5
LEASE_SECONDS = 3


@dataclass(frozen=True)
class RowRun:
    """A run over the rows, which is killed so many times."""

    executor: str
    workers: int
    kills: int = 0

    def __str__(self) -> str:
        """Return its name in tables."""
        killed = f", killed {self.kills} times" if self.kills else ""
        return f"{self.executor}, {self.workers} workers{killed}"


RUNS = (RowRun("threads", 1), RowRun("threads", 2), RowRun("ray", 1), RowRun("ray", 2, 3))


@dataclass(frozen=True)
class RowFigures:
    """Rows a second while rows were checked, how often it was killed, and each row's result.

    `different` is how many results differ from the first run's.
    """

    rate: float
    killed: int
    results: tuple[str, ...]
    different: int = 0


def measure_rows(path: Path, count: int, run: RowRun) -> RowFigures:
    """Check the rows in a new home until they are finished; the killed are started again."""
    rows = sample_rows(load_rows(path), count, 0)
    with (
        tempfile.TemporaryFile("w+") as log,
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder)) as store,
    ):
        home = Path(folder)
        project = ensure_project(store, "bench", 0.0)
        cells, _ = plan_cells(home, project.id, ["builtin"], parse_ways("ceda"), Keys({}))
        spec = BenchmarkSpec(RowSource("set", " ".join(SETS)), tuple(cells))
        benchmark_id = create_benchmark(store, project.id, spec, rows, name="rows", author="bench")
        step = len(rows) // (run.kills + 1)
        how = ("--home", folder, "--workers", str(run.workers), "--executor", run.executor)
        command = (sys.executable, "-m", "core", "benchmark", "run", benchmark_id, *how)
        starts: list[float] = []
        with store.writing():
            store.projects.save_setting("lease_seconds", LEASE_SECONDS)
        while True:
            starts.append(time.time())
            process = subprocess.Popen(
                command,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                cwd=PROJECT_ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            while process.poll() is None:
                time.sleep(POLL_SECONDS)
                done = len(store.benchmarks.answered(benchmark_id))
                if len(starts) <= run.kills and done >= step * len(starts):
                    process.kill()
                    process.wait()
            if process.returncode == 0:
                break
            if process.returncode != -signal.SIGKILL:
                log.seek(0)
                raise RuntimeError(log.read())
            time.sleep(LEASE_SECONDS + 1)  # then it may be taken over
        found = list(store.benchmarks.results(benchmark_id))
    assert len(found) == len(rows)
    at = [one.at for one in found]
    return RowFigures(_find_rate(at, starts), len(starts) - 1, tuple(map(_read_result, found)))


def _find_rate(at: Sequence[float], starts: Sequence[float]) -> float:
    """Return the rows a second without the times in which processes started."""
    count, seconds = 0, 0.0
    for start, end in pairwise([*starts, math.inf]):
        own = sorted(one for one in at if start <= one < end)[LEFT_OUT:]
        count, seconds = count + len(own) - 1, seconds + own[-1] - own[0]
    return count / seconds


def _read_result(result: BenchmarkResult) -> str:
    """Return what must be the same however often a run was killed, and on how many workers."""
    said = json.loads(result.payload)
    return json.dumps([result.position, {k: v for k, v in said.items() if k != "seconds"}])


def load_rows(path: Path) -> list[GoldRow]:
    """Return the labelled rows with sources of the sets."""
    return [
        row for name in SETS for row in load_dataset_rows(name, path) if row.label and row.documents
    ]


def measure_runs(
    path: Path, count: int, runs: Iterable[RowRun] = RUNS
) -> Iterator[tuple[RowRun, RowFigures]]:
    """Yield each run with its figures."""
    first: tuple[str, ...] = ()
    for run in runs:
        found = measure_rows(path, count, run)
        first = first or found.results
        different = sum(a != b for a, b in zip(first, found.results, strict=True))
        yield run, replace(found, different=different)


def main(path: str, count: str, *texts: str) -> None:
    """Print the figures of each run, given as EXECUTOR:WORKERS:KILLS."""
    parts = [text.split(":") for text in texts]
    runs = [RowRun(executor, int(workers), int(kills)) for executor, workers, kills in parts]
    for run, found in measure_runs(Path(path), int(count), runs):
        sys.stdout.write(
            f"{run}: {len(found.results):,} rows, {found.rate:.3f} a second, killed "
            f"{found.killed} times, {found.different:,} results differ\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
