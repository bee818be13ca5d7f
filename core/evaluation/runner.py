"""Runs rows through engines on several workers; `evaluate` and benchmarks share it.

Workers are threads of this process, or actors on a Ray cluster. They check rows and write nothing:
only the caller's thread, which takes their results, stores them. A row that fails is no answer; it
is tried again when the same rows are run again.
"""

from __future__ import annotations

import argparse
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from core.evaluation.dataset_files import GoldRow
from core.evaluation.engine_runs import (
    Engine,
    ProgressWriter,
    RowTask,
    WorkerSetup,
    open_engine_runs,
)
from core.evaluation.outcomes import (
    FAILED_CAUSE,
    Prediction,
    PredictionCache,
    compute_row_digest,
)
from core.llm.rate_limit import parse_rates, set_rates
from core.pipeline.jobs import warm_up
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError, InputError, ModelError
from core.store.sqlite import to_json

ExecutorName = Literal["threads", "ray"]
MAX_WORKERS = 256
POLL_SECONDS = 0.2
PROGRESS_SECONDS = 5.0
MAX_CONSECUTIVE_FAILURES = 3  # of each worker
RowResult = tuple[RowTask, Prediction]


@dataclass(frozen=True)
class RunnerOptions:
    """How rows are run: on how many workers, and where. `address` is that of a Ray cluster."""

    workers: int = 1
    executor: ExecutorName = "threads"
    address: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MAX_WORKERS:
            raise InputError(f"Expected 1 to {MAX_WORKERS} workers, found {self.workers}.")
        if self.address and self.executor != "ray":
            raise InputError("Expected --address beside --executor ray; give both, or neither.")


DEFAULT_RUNNER = RunnerOptions()


def take_runner_options(given: argparse.Namespace) -> RunnerOptions:
    """Return what `add_runner_options` parsed; the rates count in this process from now on.

    Raises InputError if a rate cannot be read, or two options do not go together.
    """
    options = RunnerOptions(given.workers, given.executor, given.address)
    set_rates(parse_rates(given.rate))
    return options


class Workers(Protocol):
    """Workers that check rows side by side; `capacity` is how many rows they hold at once."""

    capacity: int

    def submit(self, task: RowTask) -> None:
        """Hand a row to the next free worker."""
        ...

    def take(self, seconds: float) -> RowResult | None:
        """Return the next result, or None if none came in time. Raises what ended a worker."""
        ...


class ThreadWorkers:
    """Threads of this process, each with runs of its own."""

    def __init__(self, setup: WorkerSetup, count: int, stop: StopSignal) -> None:
        self.capacity = count
        self._setup = setup
        self._stop = stop
        self._tasks: queue.SimpleQueue[RowTask | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[RowResult | BaseException] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, daemon=True, name="row worker")
            for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: RowTask) -> None:
        """Hand a row to the next free thread."""
        self._tasks.put(task)

    def take(self, seconds: float) -> RowResult | None:
        """Return the next result, or None. Raises what ended a thread."""
        try:
            found = self._done.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End the threads once their rows are checked."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        task = self._tasks.get()  # there may be fewer rows than threads
        try:
            with open_engine_runs(self._setup) if task else contextlib.nullcontext() as runs:
                while runs and task:
                    self._done.put((task, runs.predict_row(task, self._stop)))
                    task = self._tasks.get()
        except BaseException as error:  # noqa: BLE001 - raised where results are taken
            self._done.put(error)


@contextlib.contextmanager
def open_workers(setup: WorkerSetup, options: RunnerOptions, stop: StopSignal) -> Iterator[Workers]:
    """Start the workers and end them afterwards; an error stops the rows under way.

    Raises ConfigError if Ray is asked for and is not installed, or there is no such cluster.
    """
    if options.executor == "ray":
        try:
            from core.evaluation.ray_workers import open_ray_workers
        except ImportError as error:
            raise ConfigError(
                "Expected the optional extra Ray, found it missing; install it with "
                "pip install -r requirements-ray.txt, or leave --executor out."
            ) from error
        with open_ray_workers(setup, options.workers, options.address, stop) as actors:
            yield actors
        return
    for home in {engine.home for engine in setup.engines}:
        warm_up(home)  # loading does not count as a row's time
    threads = ThreadWorkers(setup, options.workers, stop)
    try:
        yield threads
    except BaseException:
        stop.set()
        raise
    finally:
        threads.close()


def run_tasks(
    tasks: Iterable[RowTask], workers: Workers, is_open: Callable[[int], bool] = lambda _: True
) -> Iterator[RowResult]:
    """Yield the results as they come.

    `is_open` is asked before each row, with the number of rows under way, whether to hand it out.
    """
    waiting, under_way = iter(tasks), 0
    while True:
        while under_way < workers.capacity and is_open(under_way):
            task = next(waiting, None)
            if task is None:
                break
            workers.submit(task)
            under_way += 1
        if not under_way:
            return
        if (result := workers.take(POLL_SECONDS)) is not None:
            under_way -= 1
            yield result


@dataclass
class RowRunner:
    """Runs one engine over rows and keeps its predictions in the home."""

    workers: Workers
    kept: PredictionCache
    tell: ProgressWriter
    _in_a_row: int = field(default=0)

    def predictions(self, rows: Sequence[GoldRow], what: str) -> list[Prediction]:
        """Return a prediction for each row, in order; `what` names the rows in progress messages.

        Raises ModelError if a budget is spent, or several rows in a row failed; the rest is kept.
        """
        digests = [compute_row_digest(row) for row in rows]
        found = {d: known for d in digests if (known := self.kept.get(d)) is not None}
        unknown = {d: row for d, row in zip(digests, rows, strict=True) if d not in found}
        tasks = sort_by_documents([RowTask(0, n, d, row) for n, (d, row) in
                                   enumerate(unknown.items())])  # fmt: skip
        if found:
            known_count = sum(digest in found for digest in digests)
            self.tell(f"{what}: {known_count} of {len(rows)} rows are known already")
        started = last_told = time.monotonic()
        for done, (task, said) in enumerate(run_tasks(tasks, self.workers), start=1):
            found[task.digest] = said
            self._record(task, said)
            now = time.monotonic()
            if now - last_told >= PROGRESS_SECONDS or done == len(tasks):
                last_told = now
                rate = done / max(now - started, 1e-9)
                self.tell(f"{what}: {done} of {len(tasks)} rows, {rate:.1f} a second")
        return [found[digest] for digest in digests]

    def _record(self, task: RowTask, said: Prediction) -> None:
        """Keep a prediction; failures are not kept, and tried again by the next call."""
        why = get_failure(said)
        if not why:
            self._in_a_row = 0
            if said.cause != "model_not_fit":  # the model may be tested again
                self.kept.add(task.digest, said)
            return
        self._in_a_row += 1
        most = MAX_CONSECUTIVE_FAILURES * self.workers.capacity
        if why.startswith("budget_reached") or self._in_a_row >= most:
            raise ModelError(
                f"The evaluation stopped at {task.row.place}: {why} What is done is kept; the same "
                "command goes on from there."
            )
        self.tell(f"{task.row.place}: {why}")


def get_failure(said: Prediction) -> str:
    """Return why a row failed, or an empty text if it has an answer or was refused."""
    cause, _, why = said.cause.partition(": ")
    return (why or cause) if cause == FAILED_CAUSE else ""


@contextlib.contextmanager
def open_row_runner(
    engine: Engine, name: str, tell: ProgressWriter, options: RunnerOptions
) -> Iterator[RowRunner]:
    """Open the runner of one engine on the set of that name."""
    identity = (name, engine.id, to_json(engine.plan))
    stop = StopSignal()
    with open_workers(WorkerSetup((engine,)), options, stop) as workers:
        kept = PredictionCache(engine.home, name, identity, tell)
        try:
            yield RowRunner(workers, kept, tell)
        finally:
            kept.close()


def sort_by_documents(tasks: Sequence[RowTask]) -> list[RowTask]:
    """Return the tasks with those over the same sources one after another, which reuse them."""
    first_positions: dict[tuple[object, ...], int] = {}
    for position, task in enumerate(tasks):
        first_positions.setdefault((task.row.documents, task.row.images), position)
    return sorted(tasks, key=lambda t: first_positions[t.row.documents, t.row.images])
