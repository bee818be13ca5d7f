"""Rows a second of the built-in engine, on one and two workers, by threads and on Ray.

Each figure is of a process of its own, with one thread a worker (OMP_NUM_THREADS=1), over rows that
none has read. `python -m tests.bench --only rows --path SETS --rows 10000`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from core.evaluation.benchmarks import (
    BenchmarkSpec,
    RowSource,
    create_benchmark,
    plan_cells,
    run_benchmark,
)
from core.evaluation.datasets import load_dataset_rows
from core.evaluation.evaluate import parse_ways, sample_rows
from core.evaluation.runner import RunnerOptions
from core.llm.keys import Keys
from core.review.people import ensure_project
from core.store import open_store

SETS = ("entailment_fm2", "entailment_healthver", "fever_symmetric", "halueval")
EXECUTORS = ("threads", "ray")
WORKERS = (1, 2)
LEFT_OUT = 4  # first results, in which workers still start


def rows_a_second(path: Path, rows: int) -> dict[str, float]:
    """Rows a second by executor and number of workers."""
    found = {}
    for executor in EXECUTORS:
        for workers in WORKERS:
            given = [str(path), str(rows), executor, str(workers)]
            ended = subprocess.run(
                [sys.executable, "-m", "tests.bench.rows", *given],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            found[f"{executor}, {workers} workers"] = float(ended.stdout.split()[-1])
    return found


def main(path: str, count: str, executor: str, workers: str) -> None:
    """Print the rows a second of one executor."""
    rows = [
        row
        for name in SETS
        for row in load_dataset_rows(name, Path(path))
        if row.label and row.documents
    ]
    at: list[float] = []
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder)) as store:
        home = Path(folder)
        cells, _ = plan_cells(home, ["builtin"], parse_ways("ceda"), Keys({}))
        project = ensure_project(store, "bench", 0.0)
        spec = BenchmarkSpec(RowSource("set", " ".join(SETS)), tuple(cells))
        sample = sample_rows(rows, int(count), 0)
        benchmark_id = create_benchmark(
            store, project.id, spec, sample, name="rows", author="bench"
        )
        run_benchmark(
            home,
            benchmark_id,
            "bench",
            Keys({}),
            RunnerOptions(int(workers), "ray" if executor == "ray" else "threads"),
            lambda _task, _said: at.append(time.perf_counter()),
        )
    rate = (len(at) - LEFT_OUT - 1) / (at[-1] - at[LEFT_OUT])
    sys.stdout.write(f"{len(at)} rows: {rate:.3f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
