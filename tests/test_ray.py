"""Rows on a Ray cluster of two nodes on this computer, one of whose workers is killed."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from core.evaluation.benchmarks import load_outcomes, run_benchmark
from core.evaluation.engine_runs import RowTask, WorkerSetup, build_engine
from core.evaluation.outcomes import Prediction, compute_row_digest
from core.evaluation.runner import RunnerOptions
from core.pipeline.single_check import CheckRequest, plan_check
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.store import open_store
from tests.debate.test_all_protocols_served import sensible
from tests.evaluation.test_benchmarks import NO_KEYS, created, facts, labels
from tests.llm.loopback import loopback

pytestmark = [pytest.mark.timing, pytest.mark.slow]

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
NODE = {
    "num_cpus": 1,
    "object_store_memory": 80 * 2**20,
    "include_dashboard": False,
    "node_ip_address": "127.0.0.1",
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of two nodes on 127.0.0.1, which lend a processor each."""
    from ray.cluster_utils import Cluster

    # Else Ray would look for 127.0.0.1 at this computer's address in its network.
    monkeypatch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    cluster = Cluster()
    try:
        cluster.add_node(**NODE)
        cluster.add_node(**NODE)
        yield cluster
    finally:
        cluster.shutdown()


def find_actors(cluster: Any) -> list[psutil.Process]:
    """Return the processes of row actors by the nodes of our cluster alone."""
    raylets = [
        psutil.Process(info.process.pid)
        for node in cluster.list_all_nodes()
        for info in node.all_processes["raylet"]
    ]
    children = [child for raylet in raylets for child in raylet.children(recursive=True)]
    return [child for child in children if "RowActor" in " ".join(child.cmdline())]


def test_two_nodes_give_the_result_of_one_thread_though_a_worker_is_killed(
    cluster: Any, home: Path
) -> None:
    results: Counter[tuple[int, int]] = Counter()
    killed: list[int] = []

    def kill_once(task: RowTask, _: Prediction) -> None:
        results[task.cell, task.position] += 1
        end = time.monotonic() + 30
        while not killed and time.monotonic() < end:
            if len(actors := find_actors(cluster)) == 2:
                killed.append(actors[0].pid)
                os.kill(actors[0].pid, signal.SIGKILL)
            time.sleep(0.1)

    with open_store(home) as store:
        on_ray, on_a_thread = (created(store, home, facts(12), "ceda") for _ in range(2))
        options = RunnerOptions(2, "ray", cluster.address)
        ended = run_benchmark(home, on_ray, "Ida", NO_KEYS, options, kill_once)
        assert (ended.status, ended.message, ended.card["executor"]) == ("finished", "", "ray")
        assert killed
        assert set(results.values()) == {1}
        run_benchmark(home, on_a_thread, "Ida", NO_KEYS)
        one, other = (load_outcomes(store, i)[0] for i in (on_ray, on_a_thread))
        assert labels(one) == labels(other)
        assert len(one.rows) == 24


def test_a_cluster_that_is_not_there_is_told_at_once(home: Path) -> None:
    with open_store(home) as store:
        benchmark_id = created(store, home, facts(1), "ceda")
        ended = run_benchmark(
            home, benchmark_id, "Ida", NO_KEYS, RunnerOptions(1, "ray", "127.0.0.1:1")
        )
    assert ended.status == "failed"
    assert "Expected a Ray cluster at 127.0.0.1:1, found none" in ended.message


def test_a_worker_that_was_replaced_gets_no_more_rows(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    import ray.exceptions

    from core.evaluation.ray_workers import RayWorkers

    answers = iter([ray.exceptions.OutOfMemoryError("full"), (Prediction("supported"), [])])

    def get(_: object) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(RayWorkers, "_start_actor", Mock())
    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(ray, "kill", Mock())
    monkeypatch.setattr(ray, "wait", lambda refs, timeout: (refs[:1], refs[1:]))
    store = Mock()
    store.ledger.of_run.return_value = []
    workers = RayWorkers(store, None, 1, StopSignal(), Mock())
    actor = Mock()
    actor.check.remote.side_effect = lambda task, paid: f"row {task.position}"
    workers._free = [actor, actor]
    for position, row in enumerate(facts(2)[:3]):
        workers.submit(RowTask(0, position, "", row))
    assert workers.take(0.0) is None, "its reply is lost, so it is replaced"
    answered = workers.take(0.0)
    assert answered is not None
    assert answered[0].position == 1, "it had answered its other row"
    assert workers.take(0.0) is None
    assert actor.check.remote.call_count == 2
    copied = [call.args[0].row for call in actor.check.remote.call_args_list]
    assert [row.label for row in copied] == [None, None], "no answer of a person is copied"
    assert answered[0].row.label is not None


def test_this_computer_gets_no_more_workers_than_processors(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    from core.evaluation import ray_workers

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "put", Mock())
    made = Mock()
    monkeypatch.setattr(ray_workers, "pack_actor_setup", Mock())
    monkeypatch.setattr(ray_workers, "RayWorkers", made)
    for address, count in (("", os.cpu_count()), ("10.0.0.1:6379", 256)):
        setup, stop = Mock(engines=[Mock(home=home)]), StopSignal()
        with ray_workers.open_ray_workers(setup, 256, address, stop):
            assert made.call_args.args[1:4] == (ray.put(), count, stop)


def test_workers_that_die_while_they_start_are_replaced_until_it_is_hopeless(
    cluster: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    import ray.exceptions

    from core.evaluation import ray_workers

    started, get = tmp_path / "started", ray.get
    lost: list[object] = []

    class DyingActor(ray_workers.RowActor):
        def __init__(self, setup: ray_workers.ActorSetup) -> None:
            with started.open("a") as file:
                file.write("x")
            if len(started.read_text()) <= deaths:
                os._exit(1)
            super().__init__(setup)

    def lose_one_reply(ref: Any) -> Any:
        found = get(ref)
        if isinstance(found, tuple) and not lost:
            lost.append(found)
            raise ray.exceptions.OutOfMemoryError("full")
        return found

    monkeypatch.setattr(ray_workers, "RowActor", DyingActor)
    monkeypatch.setattr(ray, "get", lose_one_reply)
    options = RunnerOptions(1, "ray", cluster.address)
    with open_store(home) as store:
        benchmark_id = created(store, home, facts(2), "ceda")
        deaths = 2
        ended = run_benchmark(home, benchmark_id, "Ida", NO_KEYS, options)
        assert (ended.status, ended.message, len(lost)) == ("finished", "", 1)
        hopeless = created(store, home, facts(2), "ceda")
        started.unlink()
        deaths = 99
        ended = run_benchmark(home, hopeless, "Ida", NO_KEYS, options)
        assert ended.status == "failed"
        assert "A worker could not be started on the cluster" in ended.message
        assert len(started.read_text()) == 3


def test_a_worker_has_its_share_of_the_days_caps_and_the_replies_that_were_paid(
    home: Path,
) -> None:
    from core.evaluation.ray_workers import RowActor, pack_actor_setup

    with loopback(sensible) as server, open_store(home) as store:
        with store.writing():
            store.projects.save_setting("day_tokens", 90_000)
        project = ensure_project(store, "Ida", 0.0)
        request = CheckRequest(
            "", protocol="single", model="openai/loopback", api_base=server.base, token_cap=9_000
        )
        engine = build_engine(home, plan_check(home, request, NO_KEYS)[0], NO_KEYS)
        engine = replace(engine, project_id=project.id)
        setup = WorkerSetup((engine,), "Ida", "b")
        (row, *_) = facts(1)
        task = RowTask(0, 0, compute_row_digest(row), row)
        packed = pack_actor_setup(setup, 3)
        assert b"Ida" not in pickle.dumps(packed)
        first = RowActor(packed)
        said, calls = first.check(task, [])
        assert first._runs.store.projects.settings().day_tokens == 30_000
        first.leave()
        (asked,) = server.asked
        with store.writing():
            for call in calls:
                store.ledger.put(call)
        second = RowActor(pack_actor_setup(setup, 3))
        again, _ = second.check(task, calls)
        left = 90_000 - calls[0].tokens_in - calls[0].tokens_out
        assert second._runs.store.projects.settings().day_tokens == left // 3
        second.leave()
    assert again.label == said.label != "unclear"
    assert server.asked == [asked]
