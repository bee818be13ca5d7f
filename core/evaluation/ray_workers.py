"""Row workers as actors on a Ray cluster, an optional extra (`requirements-ray.txt`).

Each actor loads its readers once and has a home of its own, with the configuration that its engines
use. No names and no answers of people travel, but for examples that a plan shows to a language
model. An actor writes nothing elsewhere: what its models' calls cost comes back with each row, and
this process enters it in the home's ledger. Rates, and what the day's caps leave, are divided among
the actors. Every node has the same version of this program at the same path and reads keys from its
own environment, so none travels. The row of an actor that dies goes to another.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.baseline.entailment import choose_reader
from core.evaluation.engine_runs import (
    Engine,
    RowTask,
    WorkerSetup,
    compute_engine_digest,
    open_engine_runs,
)
from core.evaluation.outcomes import FAILED_CAUSE, Prediction
from core.llm.keys import Keys, load_keys
from core.llm.limits import NANO_PER_CENT
from core.llm.rate_limit import RateLimits, get_rates, set_rates
from core.pipeline.jobs import warm_up
from core.pipeline.temporary_home import TEMPORARY_AUTHOR, make_private_folder
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ConfigError
from core.schema.records import Plan
from core.store import Store, open_store
from core.store.ledger import LedgerRow

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when ray is imported

import ray
import ray.exceptions

CONNECT_SECONDS = 5.0
LEAVE_SECONDS = 5.0
MAX_DEATHS = 3  # of actors that had one row; then it is the row that kills them
MAX_FAILED_STARTS = 3  # one after another; then the cluster cannot run workers
ROWS_AHEAD = 2  # rows that an actor holds, so that none waits for this process
MODEL_FOLDERS = ("models", "readers")  # of classifiers and imported readers


@dataclass(frozen=True)
class ActorSetup:
    """What an actor is made of: the engines, and the files of a home with its configuration."""

    workers: WorkerSetup
    files: dict[str, bytes]
    rates: RateLimits
    share: float
    caps: dict[str, int]


def pack_actor_setup(setup: WorkerSetup, count: int) -> ActorSetup:
    """Return the setup with the configuration and models that its engines use, without keys.

    Only language models are shown examples of people's answers.
    """
    home, folders = setup.engines[0].home, set()
    for engine in setup.engines:
        names = (engine.plan.classifier, engine.plan.reader)
        folders |= {f"{kind}/{name}" for kind, name in zip(MODEL_FOLDERS, names, strict=True)}
    paths = [path for name in folders for path in (home / name).rglob("*") if path.is_file()]
    files = {str(path.relative_to(home)): path.read_bytes() for path in paths}
    engines = tuple(
        replace(engine, keys=Keys({}), plan=_hide_examples(engine.plan)) for engine in setup.engines
    )
    with tempfile.TemporaryDirectory() as folder, open_store(home) as store:
        copied = store.copy_configuration(
            Path(folder),
            [engine.project_id for engine in engines],
            [engine.plan for engine in engines],
        )
        files |= {path.name: path.read_bytes() for path in copied}
        caps = _divide_caps(store, setup.person, count)
    workers = replace(setup, engines=engines, person=TEMPORARY_AUTHOR)
    return ActorSetup(workers, files, get_rates(), 1 / count, caps)


def _hide_examples(plan: Plan) -> Plan:
    return plan if plan.sheet else replace(plan, span_examples=0)


def _hide_answers(task: RowTask) -> RowTask:
    """Return the task without what people, or other systems, answered on its row."""
    row = replace(
        task.row, label=None, group="", spans=None, soft=(), recorded=None, recorded_by="",
        category="",
    )  # fmt: skip
    return replace(task, row=row)


def _divide_caps(store: Store, person: str, count: int) -> dict[str, int]:
    """Return each actor's share of what is left of the day's caps, which its own ledger counts."""
    settings = store.projects.settings()
    spent = store.ledger.spent("", person, time.time())
    shares: dict[str, int] = {}
    for span, used in (("day", spent.day), ("person_day", spent.person_day)):
        cents, tokens = (getattr(settings, f"{span}_{unit}") for unit in ("cents", "tokens"))
        left = (cents - math.ceil(used.nano / NANO_PER_CENT), tokens - used.tokens)
        pairs = zip(("cents", "tokens"), left, strict=True)
        shares |= {f"{span}_{unit}": max(0, amount) // count for unit, amount in pairs}
    return shares


class RowActor:
    """Checks rows on some node of the cluster."""

    def __init__(self, setup: ActorSetup) -> None:
        self._stack = contextlib.ExitStack()
        folder = make_private_folder(Path(tempfile.gettempdir()))
        self._home = self._stack.enter_context(folder)
        for name, data in setup.files.items():
            path = self._home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        set_rates(setup.rates, setup.share)
        keys = load_keys(os.environ, PROJECT_ROOT)
        engines = tuple(
            Engine(self._home, engine.plan, keys, engine.project_id)
            for engine in setup.workers.engines
        )
        with open_store(self._home) as store:
            choose_reader(store, self._home, engines[0].plan.reader)  # the one to warm up
        warm_up(self._home)
        self._runs = self._stack.enter_context(
            open_engine_runs(replace(setup.workers, engines=engines))
        )
        with self._runs.store.writing():
            for name, amount in setup.caps.items():
                self._runs.store.projects.save_setting(name, amount)
        self._stop = StopSignal()

    def get_code_digest(self) -> str:
        """Return the digest of the program that this node has; the actor is ready by then."""
        return compute_engine_digest()

    def leave(self) -> None:
        """Remove this actor's home."""
        self._stack.close()

    def check(self, task: RowTask, paid: Sequence[LedgerRow]) -> tuple[Prediction, list[LedgerRow]]:
        """Return the row's prediction, and its calls; those `paid` before answer again."""
        ledger = self._runs.store.ledger
        with self._runs.store.noting():
            for call in paid:
                ledger.put(call)
        said = self._runs.predict_row(task, self._stop)
        return said, ledger.of_run(self._runs.setup.get_run_id(task))


@dataclass
class _RowUnderWay:
    actor: Any
    task: RowTask
    deaths: int = 0


@dataclass
class RayWorkers:
    """Actors, each with up to `ROWS_AHEAD` rows; a dead one is replaced."""

    store: Store
    actor_setup: Any
    count: int
    stop: StopSignal
    setup: WorkerSetup
    _failed_starts: int = 0
    _starting: dict[Any, Any] = field(default_factory=dict)
    _free: list[Any] = field(default_factory=list)
    _waiting: list[tuple[RowTask, int]] = field(default_factory=list)
    _under_way: dict[Any, _RowUnderWay] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.capacity = self.count * ROWS_AHEAD
        for _ in range(self.count):
            self._start_actor()

    def submit(self, task: RowTask) -> None:
        """Hand a row to the next actor with room."""
        self._waiting.append((task, 0))

    def take(self, seconds: float) -> tuple[RowTask, Prediction] | None:
        """Return the next result, or None. Raises ConfigError: a node has another program."""
        if self.stop.is_set:
            return self._cut_off()
        while self._waiting and self._free:
            task, deaths = self._waiting.pop(0)
            actor = self._free.pop(0)
            calls = self.store.ledger.of_run(self.setup.get_run_id(task))
            paid = [replace(call, person=TEMPORARY_AUTHOR) for call in calls]
            ref = actor.check.remote(_hide_answers(task), paid)
            self._under_way[ref] = _RowUnderWay(actor, task, deaths)
        refs = [*self._under_way, *self._starting]
        ready, _ = ray.wait(refs, timeout=seconds)
        for ref in ready:
            if ref in self._starting:
                self._register_actor(self._starting.pop(ref), ref)
            else:
                return self._finish(self._under_way.pop(ref), ref)
        return None

    def close(self) -> None:
        """End the actors; those without a row remove their homes, the next ones those of others."""
        idle = set(self._free) - {row.actor for row in self._under_way.values()}
        if left := [actor.leave.remote() for actor in idle]:
            ray.wait(left, num_returns=len(left), timeout=LEAVE_SECONDS)
        for actor in {*self._starting.values(), *self._free, *idle}:
            ray.kill(actor)
        for row in self._under_way.values():
            ray.kill(row.actor)

    def _start_actor(self) -> None:
        actor: Any = ray.remote(num_cpus=1)(RowActor)
        actor = actor.remote(self.actor_setup)
        self._starting[actor.get_code_digest.remote()] = actor

    def _register_actor(self, actor: Any, ref: Any) -> None:
        """Give a new actor rows, or start another if it died; unless its node's program differs."""
        try:
            digest = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise ConfigError(
                    f"A worker could not be started on the cluster: {error}"
                ) from error
            ray.kill(actor)
            self._start_actor()
            return
        self._failed_starts = 0
        if digest != compute_engine_digest():
            raise ConfigError(
                "Expected the same version of Counterpoint on every node of the cluster, found "
                "another on one of them; install this version there."
            )
        self._free += [actor] * ROWS_AHEAD

    def _finish(self, row: _RowUnderWay, ref: Any) -> tuple[RowTask, Prediction] | None:
        try:
            said, calls = ray.get(ref)
        except ray.exceptions.RayTaskError:
            raise  # the worker lives: the error is the program's
        except ray.exceptions.RayError:  # it, its node or its memory is gone
            return self._replace_actor(row)
        if calls:
            with self.store.noting():
                for call in calls:
                    self.store.ledger.put(replace(call, person=self.setup.person))
        if row.actor is not None:  # else it was replaced meanwhile
            self._free.append(row.actor)
        return row.task, said

    def _replace_actor(self, row: _RowUnderWay) -> tuple[RowTask, Prediction] | None:
        """Replace a dead actor once, and give its row to another."""
        if row.actor is not None:
            for other in self._under_way.values():
                if other.actor is row.actor:
                    other.actor = None
            self._free = [actor for actor in self._free if actor is not row.actor]
            ray.kill(row.actor)  # it may live, where the reply alone was lost
            self._start_actor()
        if row.deaths + 1 >= MAX_DEATHS:
            why = f"{FAILED_CAUSE}: {MAX_DEATHS} workers died on this row"
            return row.task, Prediction("unclear", cause=why)
        self._waiting.insert(0, (row.task, row.deaths + 1))
        return None

    def _cut_off(self) -> tuple[RowTask, Prediction] | None:
        rows = [row.task for row in self._under_way.values()] + [task for task, _ in self._waiting]
        if not rows:
            return None
        self.close()
        self._under_way.clear()
        self._starting.clear()
        self._free.clear()
        self._waiting = [(task, 0) for task in rows[1:]]
        return rows[0], Prediction("unclear", cause=f"{FAILED_CAUSE}: stopped")


@contextlib.contextmanager
def open_ray_workers(
    setup: WorkerSetup, count: int, address: str, stop: StopSignal
) -> Iterator[RayWorkers]:
    """Start actors on the cluster at the address; without one, on this computer's processors.

    Raises ConfigError if there is no such cluster.
    """
    count = count if address else min(count, os.cpu_count() or 1)
    is_ours = not ray.is_initialized()
    if is_ours:
        _join_cluster(address, count)
    with open_store(setup.engines[0].home) as store:
        packed = ray.put(pack_actor_setup(setup, count))
        workers = RayWorkers(store, packed, count, stop, setup)
        try:
            yield workers
        finally:
            workers.close()
            if is_ours:
                ray.shutdown()


def _join_cluster(address: str, count: int) -> None:
    environment = {"env_vars": {"PYTHONPATH": str(PROJECT_ROOT), "RAY_USAGE_STATS_ENABLED": "0"}}
    options: dict[str, Any] = {"runtime_env": environment, "log_to_driver": False}
    if not address:
        options |= {"num_cpus": count, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if port.isdecimal():  # else Ray would wait two minutes for nobody
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address=address or "local", **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"Expected a Ray cluster at {address or 'this computer'}, found none: {error}. Start "
            "one with `ray start --head`."
        ) from error
