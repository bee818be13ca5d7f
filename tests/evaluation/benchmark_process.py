"""Run a stored benchmark in a process of its own, slowly enough to be killed in the middle."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import core.baseline.entailment
from core.evaluation.benchmarks import run_benchmark
from core.evaluation.runner import RunnerOptions
from core.llm.keys import Keys
from tests.readers import paw_assessor


def main(home: str, benchmark_id: str) -> None:
    core.baseline.entailment.load_shared_assessor = paw_assessor
    pause = float(os.environ.get("PAUSE", "0"))
    run_benchmark(
        Path(home),
        benchmark_id,
        "Ida",
        Keys({}),
        RunnerOptions(workers=2),
        lambda _task, _said: time.sleep(pause),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
