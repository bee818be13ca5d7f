"""The command `benchmark`: list those of the app's Benchmarks page, and run or resume one."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.evaluation.benchmarks import (
    load_progress,
    read_spec,
    require_benchmark,
    run_benchmark,
)
from core.evaluation.command_line import KeyLoader, MessageWriter, OutputWriter
from core.evaluation.engine_runs import RowTask, add_runner_options
from core.evaluation.outcomes import Prediction
from core.evaluation.runner import PROGRESS_SECONDS, take_runner_options
from core.llm.rate_limit import require_used_rates
from core.pipeline.single_check import CheckRequest
from core.review.people import find_operator
from core.schema.rosters import BUILT_IN_ROSTER
from core.store import Store, open_store
from core.store.benchmarks import Benchmark

DESCRIPTION = """\
Benchmarks that were made on the app's Benchmarks page. `run` checks the rows that have no answer
yet, on threads or on a Ray cluster; pause the benchmark on its page first. A run that was stopped
or killed goes on with the same command, or on the page, where the results are."""


def add_commands(commands: Any, add_home: Any, whole: Callable[[str, int, int], int]) -> None:
    """Add the command `benchmark` with its actions."""
    parser = commands.add_parser(
        "benchmark", help="run the app's benchmarks", description=DESCRIPTION
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=type(parser))
    listed = actions.add_parser("list", help="all benchmarks, the newest first")
    run = actions.add_parser("run", help="run or resume one")
    run.add_argument("id", metavar="ID")
    run.add_argument(
        "--by", metavar="NAME", help="who does it (default: the project's first admin)"
    )
    add_runner_options(run, whole)
    for action in (listed, run):
        add_home(action)


def run_benchmarks(
    given: argparse.Namespace,
    home: Path,
    keys_of: KeyLoader,
    say: MessageWriter,
    out: OutputWriter,
) -> int:
    """Run the chosen action; return 1 if a benchmark did not finish."""
    with open_store(home) as store:
        if given.action == "list":
            lease = store.projects.settings().lease_seconds
            for project in store.projects.all():
                for one in store.benchmarks.of_project(project.id, time.time(), lease):
                    out(f"{one.id}  {_describe(store, one)} · {project.name}\n")
            return 0
        benchmark = require_benchmark(store, given.id)
        cells = read_spec(benchmark).cells
        options = take_runner_options(given)
        require_used_rates(*(cell.plan.sheet for cell in cells))
        roster = next((cell.roster for cell in cells if cell.plan.sheet), BUILT_IN_ROSTER)
        person = find_operator(store, store.projects.get(benchmark.project_id))
        told_at = time.monotonic()

        def tell(_task: RowTask, _said: Prediction) -> None:
            nonlocal told_at
            if time.monotonic() - told_at >= PROGRESS_SECONDS:
                told_at = time.monotonic()
                say(_describe(store, require_benchmark(store, given.id)))

        keys = keys_of(CheckRequest("", roster=roster))  # all keys, or none
        try:
            ended = run_benchmark(home, given.id, given.by or person, keys, options, tell)
        except KeyboardInterrupt:
            say("Stopped. What is done is kept; the same command goes on from there.")
            return 1
        out(f"{_describe(store, ended)}\n")
        return 0 if ended.status == "finished" else 1


def _describe(store: Store, benchmark: Benchmark) -> str:
    """Return name and status, how far the benchmark is and what it took."""
    progress = load_progress(store, benchmark, time.time())
    status = f"{benchmark.status} {benchmark.message}".strip()
    return f"{benchmark.name} · {status} · {progress.words}"
