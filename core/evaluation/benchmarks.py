"""Benchmarks: rosters and ways to argue measured on the same labelled rows, kept as records.

A benchmark has rows and cells; a cell is one roster with one way to argue. `create_benchmark`
stores both, `run_benchmark` checks what is missing, and may be paused, cancelled, killed and
resumed: each cell has one result for each row, whatever happened. What could make two benchmarks
differ (code, engines, prompts, what was learned, seeds, machine) is kept on the benchmark's card.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from core.evaluation.benchmark_rows import RowSource
from core.evaluation.dataset_files import GoldRow
from core.evaluation.engine_runs import (
    Engine,
    RowTask,
    WorkerSetup,
    build_engine,
    compute_engine_digest,
    describe_machine,
)
from core.evaluation.evaluate import MeasuredWay, get_way
from core.evaluation.outcomes import (
    Outcomes,
    Prediction,
    compute_dataset_digest,
    compute_row_digest,
    compute_text_digest,
    decode_prediction,
    encode_prediction,
)
from core.evaluation.runner import (
    DEFAULT_RUNNER,
    RunnerOptions,
    get_failure,
    open_workers,
    run_tasks,
    sort_by_documents,
)
from core.llm.keys import Keys
from core.llm.limits import format_dollars
from core.llm.metering import model_call
from core.llm.prompting import LANGUAGES, NAMES, PromptBook
from core.pipeline.run_factory import apply_learned, require_keys
from core.pipeline.single_check import CheckRequest, plan_check
from core.runtime.concurrency import StopSignal, repeat_meanwhile
from core.runtime.errors import ConflictError, InputError, KeyMissing, ReviewError
from core.schema.records import LEARNED_FIELDS, Plan, new_id
from core.schema.run_state import sum_costs
from core.store import Store, open_store
from core.store.benchmarks import (
    Benchmark,
    BenchmarkResult,
    BenchmarkStatus,
    BenchmarkWish,
    CellTotals,
)
from core.store.ledger import LedgerRow

MAX_FAILURES_IN_A_ROW = 25  # then the service is down, and trying all other rows helps nobody
HEARTBEAT_SECONDS = 1.0
VERSION_FIELDS = (  # of a card: with others results may differ
    "code", "engines", "prompts", "role", "instruction",
)  # fmt: skip
RUN_WORDS = "run benchmarks"  # what takes the role
LOGGER = logging.getLogger(__name__)
ROW_DECODER = msgspec.json.Decoder(GoldRow, dec_hook=lambda kind, value: kind(value))


@dataclass(frozen=True)
class BenchmarkCell:
    """A roster with a way to argue, and the plan by which each row is checked."""

    roster: str
    way: str
    plan: Plan

    @property
    def name(self) -> str:
        """The cell's name in tables."""
        return f"{self.roster}, {self.way}"


@dataclass(frozen=True)
class BenchmarkSpec:
    """What to measure. `cent_cap` and `token_cap` bound the whole benchmark; 0 is no cap.

    Tokens are capped for models of no known price. No row is begun that could pass a cap if it
    costs as much as the dearest so far.
    """

    source: RowSource
    cells: tuple[BenchmarkCell, ...]
    seed: int = 0
    cent_cap: int = 0
    token_cap: int = 0


SPEC_DECODER = msgspec.json.Decoder(BenchmarkSpec)


@dataclass(frozen=True)
class UnmeasurableCell:
    """A roster that cannot argue this way, and why."""

    roster: str
    way: str
    why: str


def plan_cells(
    home: Path,
    project_id: str,
    rosters: Sequence[str],
    ways: Sequence[MeasuredWay],
    keys: Keys,
) -> tuple[list[BenchmarkCell], list[UnmeasurableCell]]:
    """Return a cell for each roster and way, and those that cannot be measured.

    Each is planned as a check in that project would be now. Raises ConfigError if what the project
    learned cannot be loaded.
    """
    cells: list[BenchmarkCell] = []
    refused: list[UnmeasurableCell] = []
    for roster in dict.fromkeys(rosters):
        for way in ways:
            request = CheckRequest("", protocol=way.protocol, options=way.options, roster=roster)
            try:
                plan, _ = plan_check(home, request, keys)
            except (InputError, KeyMissing) as error:
                refused.append(UnmeasurableCell(roster, way.name, str(error)))
                continue
            with open_store(home) as store:
                plan = apply_learned(store, project_id, build_engine(home, plan, keys).plan)
            cells.append(BenchmarkCell(roster, way.name, plan))
    return cells, refused


def create_benchmark(
    store: Store,
    project_id: str,
    spec: BenchmarkSpec,
    rows: Sequence[GoldRow],
    *,
    name: str,
    author: str,
    repeats: str = "",
) -> str:
    """Store a queued benchmark with its rows, and return its id.

    Raises InputError if there are no cells, no rows or a row without a label, or an image cannot be
    read, and NotAllowed if the author is no lead.
    """
    if not spec.cells:
        raise InputError("Expected a roster that can argue in a chosen way, found none.")
    if not rows or any(row.label is None for row in rows):
        raise InputError("Expected rows that all have a label, found none or some without.")
    stored = [(compute_row_digest(row), _encode_row(row)) for row in rows]
    benchmark = Benchmark(
        new_id(),
        project_id,
        name,
        author,
        time.time(),
        msgspec.json.encode(spec).decode(),
        {},
        repeats=repeats,
    )
    with store.writing():
        store.projects.require(project_id, author, "lead", RUN_WORDS)
        store.benchmarks.add(benchmark, stored)
    return benchmark.id


def repeat_benchmark(
    store: Store, home: Path, benchmark: Benchmark, author: str, keys: Keys
) -> str:
    """Store the same benchmark, to be run again as models are set up now; return its id.

    Raises InputError if a roster cannot argue so any more, and what `create_benchmark` does.
    """
    spec, cells = read_spec(benchmark), []
    for cell in spec.cells:
        planned, refused = plan_cells(
            home, benchmark.project_id, [cell.roster], [get_way(cell.way)], keys
        )
        if refused:
            raise InputError(f"{cell.name} cannot be measured: {refused[0].why}")
        cells += planned
    return create_benchmark(
        store,
        benchmark.project_id,
        replace(spec, cells=tuple(cells)),
        load_rows(store, benchmark.id),
        name=benchmark.name,
        author=author,
        repeats=benchmark.id,
    )


def require_benchmark(store: Store, benchmark_id: str) -> Benchmark:
    """Return the benchmark with its status as of now. Raises InputError if there is none."""
    lease_seconds = store.projects.settings().lease_seconds
    benchmark = store.benchmarks.get(benchmark_id, time.time(), lease_seconds)
    if benchmark is None:
        raise InputError(f"Expected a stored benchmark, found none with the id {benchmark_id}.")
    return benchmark


def change_caps(
    store: Store, benchmark: Benchmark, person: str, *, cent_cap: int, token_cap: int
) -> None:
    """Store other caps, which count when the benchmark is resumed.

    Raises NotAllowed if the person is no lead.
    """
    spec = replace(read_spec(benchmark), cent_cap=cent_cap, token_cap=token_cap)
    with store.writing():
        store.projects.require(benchmark.project_id, person, "lead", RUN_WORDS)
        store.benchmarks.replace_spec(benchmark.id, msgspec.json.encode(spec).decode())


def request_wish(store: Store, benchmark: Benchmark, person: str, wish: BenchmarkWish) -> None:
    """Ask for a pause or an end of the benchmark. Raises NotAllowed if the person is no lead."""
    lease_seconds = store.projects.settings().lease_seconds
    with store.writing():
        store.projects.require(benchmark.project_id, person, "lead", RUN_WORDS)
        store.benchmarks.request(benchmark.id, wish, time.time(), lease_seconds)


def read_spec(benchmark: Benchmark) -> BenchmarkSpec:
    """Return what the benchmark measures."""
    return SPEC_DECODER.decode(benchmark.spec)


def _encode_row(row: GoldRow) -> str:
    return msgspec.json.encode(row, enc_hook=str).decode()


def load_rows(store: Store, benchmark_id: str) -> list[GoldRow]:
    """Return the benchmark's rows, in order."""
    return [ROW_DECODER.decode(payload) for _, payload in store.benchmarks.rows(benchmark_id)]


def load_outcomes(store: Store, benchmark_id: str) -> list[Outcomes]:
    """Return each cell's predictions on the rows that all cells have answered so far."""
    rows = load_rows(store, benchmark_id)
    cells = read_spec(require_benchmark(store, benchmark_id)).cells
    said: list[dict[int, Prediction]] = [{} for _ in cells]
    for one in store.benchmarks.results(benchmark_id):
        made = decode_prediction(json.loads(one.payload))
        said[one.cell][one.position] = replace(
            made, calls=one.calls, tokens=one.tokens, cost=one.cost
        )
    shared = [n for n in range(len(rows)) if all(n in own for own in said)]
    return [Outcomes([rows[n] for n in shared], [own[n] for n in shared]) for own in said]


def match_outcomes(one: Outcomes, other: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Return both on the rows that they share, in the same order; rows are known by their text."""
    places: dict[str, list[int]] = defaultdict(list)
    for n in reversed(range(len(other.rows))):
        places[compute_text_digest(other.rows[n])].append(n)
    pairs = [
        (n, same.pop())
        for n, row in enumerate(one.rows)
        if (same := places.get(compute_text_digest(row)))
    ]
    return (
        Outcomes([one.rows[n] for n, _ in pairs], [one.said[n] for n, _ in pairs]),
        Outcomes([other.rows[m] for _, m in pairs], [other.said[m] for _, m in pairs]),
    )


@dataclass(frozen=True)
class BenchmarkProgress:
    """How far a benchmark is; `seconds_left` is None until something is done.

    While it runs, failed rows that it has yet to try again are not done.
    """

    done: int
    failed: int
    total: int
    cells: Mapping[int, CellTotals]
    rows_per_second: float | None
    seconds_left: float | None

    @property
    def cost(self) -> float:
        """US dollars spent, as far as prices are known."""
        return sum(cell.cost for cell in self.cells.values())

    @property
    def calls(self) -> int:
        """Calls of language models so far."""
        return sum(cell.calls for cell in self.cells.values())

    @property
    def tokens(self) -> int:
        """Tokens of language models so far."""
        return sum(cell.tokens for cell in self.cells.values())

    @property
    def words(self) -> str:
        """How far it is, how fast, and what it took."""
        words = [f"{self.done:,} of {self.total:,} answers"]
        if self.failed:
            words.append(f"{self.failed:,} failed")
        if self.rows_per_second:
            words.append(f"{self.rows_per_second:.1f} a second")
        if self.calls:
            unpriced = any(cell.unpriced for cell in self.cells.values())
            words.append(f"{self.calls:,} calls, {self.tokens:,} tokens")
            words.append(format_dollars(self.cost) + (" of known prices" if unpriced else ""))
        return " · ".join(words)


def load_progress(store: Store, benchmark: Benchmark, now: float) -> BenchmarkProgress:
    """Return how far the benchmark is; a result is one row in one cell."""
    totals = store.benchmarks.totals(benchmark.id)
    rows = store.benchmarks.count_rows(benchmark.id)
    total = rows * len(read_spec(benchmark).cells)
    done, failed = (sum(getattr(t, n) for t in totals.values()) for n in ("done", "failed"))
    pace = None
    if benchmark.status == "running":
        began = benchmark.started_at or 0.0
        waiting = store.benchmarks.count_failed_before(benchmark.id, began)
        done, failed = done - waiting, failed - waiting
        pace = store.benchmarks.count_since(benchmark.id, began) / max(now - began, 0.1)
    left = (total - done) / pace if pace else None
    return BenchmarkProgress(done, failed, total, totals, pace, left)


@dataclass
class _Spending:
    """What the rows took so far, and the most that one row did, in dollars and in tokens."""

    spec: BenchmarkSpec
    cost: float = 0.0
    tokens: int = 0
    dearest: float = 0.0
    longest: int = 0
    is_known: bool = False
    _failed: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)

    def add(self, result: BenchmarkResult) -> None:
        """Add what a row took; tokens count where the price is not known."""
        key, cost = (result.cell, result.position), result.cost or 0.0
        tokens = result.tokens if result.cost is None else 0
        earlier = self._failed.pop(key, (0.0, 0))
        self.cost += cost - earlier[0]
        self.tokens += tokens - earlier[1]
        self.dearest, self.longest = max(self.dearest, cost), max(self.longest, tokens)
        self.is_known = self.is_known or result.calls > 0
        if result.is_failed:
            self._failed[key] = (cost, tokens)

    def has_room(self, under_way: int) -> bool:
        """Return True if another row fits the caps; until one has called a model, one at a time."""
        if under_way and not self.is_known and (self.spec.cent_cap or self.spec.token_cap):
            return False
        cents = 100 * (self.cost + (under_way + 1) * self.dearest)
        tokens = self.tokens + (under_way + 1) * self.longest
        return (not self.spec.cent_cap or cents <= self.spec.cent_cap) and (
            not self.spec.token_cap or tokens <= self.spec.token_cap
        )


@dataclass
class _BenchmarkLease:
    """Renews a benchmark's lease; `wish` is what people asked for meanwhile."""

    home: Path
    benchmark_id: str
    owner: str
    stop: StopSignal
    wish: str = ""

    def renew(self) -> None:
        """Renew it once. Raises ConflictError: it is lost, which counts as a wish to cancel."""
        try:
            with open_store(self.home) as store, store.noting():
                self.wish = store.benchmarks.beat(self.benchmark_id, self.owner, time.time())
        except ConflictError:
            self.wish = "cancel"
            raise
        finally:
            if self.wish == "cancel":
                self.stop.set()


def run_benchmark(
    home: Path,
    benchmark_id: str,
    person: str,
    keys: Keys,
    options: RunnerOptions = DEFAULT_RUNNER,
    on_result: Callable[[RowTask, Prediction], None] = lambda _task, _said: None,
) -> Benchmark:
    """Check what is missing of a benchmark, and return it as it ended; failed rows are tried again.

    Raises NotAllowed if the person is no lead, InputError if it is finished, or a process runs it
    already, and KeyMissing before anything is sent. It ends `paused` or `cancelled` as people wish,
    `paused` too if the next row could pass a cap, and `failed` with a message if rows fail one
    after another.
    """
    owner = f"{os.getpid()}-{new_id()[:8]}"
    with open_store(home) as store:
        lease_seconds = store.projects.settings().lease_seconds
        benchmark = require_benchmark(store, benchmark_id)
        store.projects.require(benchmark.project_id, person, "lead", RUN_WORDS)
        spec = read_spec(benchmark)
        for cell in spec.cells:
            require_keys(cell.plan, keys)
        engines = tuple(Engine(home, cell.plan, keys, benchmark.project_id) for cell in spec.cells)
        with store.writing():
            if not store.benchmarks.take(benchmark_id, owner, time.time(), lease_seconds):
                raise InputError("Expected a benchmark to run, found it finished or under way.")
        stop = StopSignal()
        lease = _BenchmarkLease(home, benchmark_id, owner, stop)
        status: BenchmarkStatus = "failed"
        message = "The program ended in an unexpected way; resume it."
        try:
            with repeat_meanwhile(lease.renew, HEARTBEAT_SECONDS):
                rows = load_rows(store, benchmark_id)
                card = describe_conditions(store, benchmark, rows, engines, options)
                with store.writing():
                    store.benchmarks.put_card(benchmark_id, card, time.time())
                status, message = _run_missing(
                    store,
                    _list_missing(store, benchmark_id, rows, len(engines), spec.seed),
                    _sum_spending(store, benchmark_id, spec),
                    WorkerSetup(engines, benchmark.author, benchmark_id),
                    lease,
                    options=options,
                    on_result=on_result,
                )
        except ReviewError as error:
            message = str(error)
        except (OSError, sqlite3.Error) as error:
            message = f"The home could not be read or written: {error}."
        except KeyboardInterrupt:
            status, message = "paused", ""
            raise
        finally:
            with store.writing():
                store.benchmarks.end(benchmark_id, owner, status, time.time(), message)
        return require_benchmark(store, benchmark_id)


def _run_missing(
    store: Store,
    tasks: Sequence[RowTask],
    spending: _Spending,
    setup: WorkerSetup,
    lease: _BenchmarkLease,
    *,
    options: RunnerOptions,
    on_result: Callable[[RowTask, Prediction], None],
) -> tuple[BenchmarkStatus, str]:
    """Run and store the rows without an answer; return how it ended, with a message."""
    failures = failures_in_a_row = 0
    last_failure = ""

    def is_open(under_way: int) -> bool:
        return (
            not lease.wish
            and failures_in_a_row < MAX_FAILURES_IN_A_ROW
            and spending.has_room(under_way)
        )

    left = len(tasks)
    with open_workers(setup, options, lease.stop) as workers:
        for task, said in run_tasks(tasks, workers, is_open):
            if lease.stop.is_set:
                continue  # cut off: it is no result, and a resumed benchmark checks it again
            last_failure = get_failure(said)
            failures += bool(last_failure)
            failures_in_a_row = failures_in_a_row + 1 if last_failure else 0
            result = _build_result(task, said, store.ledger.of_run(setup.get_run_id(task)))
            lease.wish = _store_result(store, lease, result)
            spending.add(result)
            on_result(task, said)
            left -= 1
    if left and lease.wish:
        return ("cancelled" if lease.wish == "cancel" else "paused"), ""
    if failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
        return "failed", f"{failures_in_a_row} answers failed one after another: {last_failure}"
    if left:
        return "paused", "Its cap is reached; raise it and resume."
    return "finished", f"Failed answers: {failures:,}." if failures else ""


def _sum_spending(store: Store, benchmark_id: str, spec: BenchmarkSpec) -> _Spending:
    """Return what the results so far took."""
    spending = _Spending(spec)
    for result in store.benchmarks.results(benchmark_id):
        spending.add(result)
    return spending


def _list_missing(
    store: Store, benchmark_id: str, rows: Sequence[GoldRow], cells: int, seed: int
) -> list[RowTask]:
    """Return a task for each row and cell without an answer; a row's cells follow one another.

    Groups come in random order, so that the rows done first are a sample of all.
    """
    answered = store.benchmarks.answered(benchmark_id)
    digests = [digest for digest, _ in store.benchmarks.rows(benchmark_id)]
    groups = sorted({row.group_key for row in rows})
    random.Random(seed).shuffle(groups)
    places = {group: place for place, group in enumerate(groups)}
    tasks = sort_by_documents(
        [
            RowTask(cell, position, digest, row)
            for position, (digest, row) in enumerate(zip(digests, rows, strict=True))
            for cell in range(cells)
            if (cell, position) not in answered
        ]
    )
    return sorted(tasks, key=lambda task: places[task.row.group_key])


def _build_result(task: RowTask, said: Prediction, paid: Sequence[LedgerRow]) -> BenchmarkResult:
    """Return a row's result; of language models it took what the ledger has for all its tries."""
    calls = [model_call(call, "called") for call in paid if not call.reused_from]
    return BenchmarkResult(
        task.cell,
        task.position,
        time.time(),
        int(bool(get_failure(said))),
        len(calls),
        sum(call.tokens_in + call.tokens_out for call in calls),
        sum_costs(calls),
        said.seconds,
        json.dumps(encode_prediction(said), ensure_ascii=False),
    )


def _store_result(store: Store, lease: _BenchmarkLease, result: BenchmarkResult) -> BenchmarkWish:
    """Store a row's result, and return what people wish."""
    with store.noting():  # only the lease's holder may write
        wish = store.benchmarks.beat(lease.benchmark_id, lease.owner, result.at)
        store.benchmarks.put_result(lease.benchmark_id, result)
    return wish


def start_benchmark(
    home: Path, benchmark_id: str, person: str, keys: Keys, options: RunnerOptions = DEFAULT_RUNNER
) -> threading.Thread:
    """Run a benchmark on a thread of this process; how it ends is stored.

    Raises NotAllowed if the person is no lead.
    """
    with open_store(home) as store:
        project_id = require_benchmark(store, benchmark_id).project_id
        store.projects.require(project_id, person, "lead", RUN_WORDS)

    def run() -> None:
        try:
            run_benchmark(home, benchmark_id, person, keys, options)
        except ReviewError as error:
            LOGGER.warning("benchmark %s was not run: %s", benchmark_id, error)

    thread = threading.Thread(target=run, daemon=True, name=f"benchmark {benchmark_id}")
    thread.start()
    return thread


def describe_conditions(
    store: Store,
    benchmark: Benchmark,
    rows: Sequence[GoldRow],
    engines: Sequence[Engine],
    options: RunnerOptions,
) -> dict[str, Any]:
    """Return all that could make another run of the benchmark differ."""
    book = PromptBook(store.prompt_edits.of_project(benchmark.project_id))
    prompts = [book.prompt(name, language) for name in NAMES for language in LANGUAGES]
    project = store.projects.get(benchmark.project_id)
    plans = [engine.plan for engine in engines]
    return {
        "rows": len(rows),
        "dataset_sha256": benchmark.card.get("dataset_sha256") or compute_dataset_digest(rows),
        "code": compute_engine_digest()[:12],
        "engines": [engine.id for engine in engines],
        "prompts": {f"{one.name}.{one.language}": one.hash for one in prompts},
        "role": project.role if project else "",
        "instruction": project.instruction if project else "",
        "learned": [{name: getattr(plan, name) for name in LEARNED_FIELDS} for plan in plans],
        "web_search": False,
        "seed": read_spec(benchmark).seed,
        "workers": options.workers,
        "executor": options.executor,
        "machine": describe_machine(),
    }


def list_conditions(benchmark: Benchmark, names: Sequence[str]) -> list[list[Any]]:
    """Return the different values of these fields that it was measured under, the first first."""
    starts = [benchmark.card, *benchmark.card.get("resumed", [])]
    values = [[start.get(name) for name in names] for start in starts]
    return [value for n, value in enumerate(values) if value not in values[:n]]


def count_versions(benchmark: Benchmark) -> int:
    """Return under how many versions of code, engines and prompts the benchmark was measured."""
    return len(list_conditions(benchmark, VERSION_FIELDS))
