"""A grid over a server that allows so many requests a second, and fails at every fifth."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from core.evaluation.benchmark_rows import RowSource
from core.evaluation.benchmarks import (
    BenchmarkCell,
    BenchmarkSpec,
    create_benchmark,
    load_outcomes,
    load_progress,
    run_benchmark,
)
from core.evaluation.engine_runs import build_engine
from core.evaluation.runner import RunnerOptions
from core.llm import rate_limit
from core.llm.keys import Keys
from core.llm.rate_limit import parse_rates, set_rates
from core.pipeline.single_check import CheckRequest, plan_check
from core.review.people import ensure_project
from core.store import Store, open_store
from tests.evaluation.test_benchmarks import facts
from tests.llm.cast import Cast, judged, role_of
from tests.llm.loopback import Asked, Fault, Reply, loopback

pytestmark = pytest.mark.timing

KEYS = Keys({"COUNTERPOINT_API_KEY": "test-key-0123456789"})
RATE = 50
FAULTS: tuple[Fault, ...] = ("hang_up", "cut_off", "malformed", "no_finish", "empty_body")


class FaultyCast:
    """A cast that breaks off, or is overloaded, in a fifth of all calls."""

    def __init__(self) -> None:
        self._cast = Cast({"judge": judged(1)})
        self._chance = random.Random(7)
        self.faults = 0

    def __call__(self, asked: Asked) -> Reply:
        reply = self._cast(asked)
        if self._chance.random() >= 0.2:
            return reply
        self.faults += 1
        if self._chance.random() < 0.5:
            return Reply(status=503, headers={"Retry-After": "0"})
        return Reply(reply.text, fault=self._chance.choice(FAULTS))


@pytest.fixture(autouse=True)
def _rates() -> Iterator[None]:
    yield
    set_rates({})


def create_grid(store: Store, home: Path, base: str, ways: Sequence[str], count: int) -> str:
    """Store a benchmark of so many facts by the model at the address."""
    cells = []
    for protocol in ways:
        request = CheckRequest(
            "", protocol=protocol, model="openai/loopback", api_base=base,
            token_cap=900_000, concurrency=16,
        )  # fmt: skip
        plan = build_engine(home, plan_check(home, request, KEYS)[0], KEYS).plan
        cells.append(BenchmarkCell("loopback", protocol, plan))
    project = ensure_project(store, "Ida", 0.0)
    spec = BenchmarkSpec(RowSource("file", "facts"), tuple(cells))
    return create_benchmark(store, project.id, spec, facts(count), name="Grid", author="Ida")


@pytest.mark.slow
def test_every_row_ends_and_the_rate_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[float] = []
    add = rate_limit.RateWindow.add

    def noted(self: rate_limit.RateWindow, now: float, tokens: int) -> object:
        sent.append(now)
        return add(self, now, tokens)

    monkeypatch.setattr(rate_limit.RateWindow, "add", noted)
    cast = FaultyCast()
    with loopback(cast) as server, open_store(home) as store:
        set_rates(parse_rates([f"127.0.0.1={RATE}/s"]))
        benchmark_id = create_grid(store, home, server.base, ("single", "ceda"), 15)
        ended = run_benchmark(home, benchmark_id, "Ida", KEYS, RunnerOptions(workers=16))
        progress = load_progress(store, ended, time.time())
        said = [s for one in load_outcomes(store, benchmark_id) for s in one.said]
    assert (ended.status, progress.done) == ("finished", 60), ended.message
    assert cast.faults > 10
    for one in said:
        assert one.label != "unclear" or one.cause
        assert not one.is_failure or one.cause.startswith("failed: ")
    assert any(one.label != "unclear" for one in said), {one.cause for one in said}
    assert len(server.asked) == len(sent), "retries count too"
    assert progress.calls >= 60
    assert max(sum(start <= at < start + 1 for at in sent) for start in sent) <= RATE


def test_calls_of_an_earlier_try_count_once(home: Path) -> None:
    cast, is_broken = Cast({"judge": judged(1)}), True

    def answer(asked: Asked) -> Reply:
        fails = is_broken and role_of(asked) == "judge"
        return Reply(status=400) if fails else cast(asked)

    with loopback(answer) as server, open_store(home) as store:
        benchmark_id = create_grid(store, home, server.base, ("ceda",), 1)
        for message in ("Failed answers: 2.", ""):
            ended = run_benchmark(home, benchmark_id, "Ida", KEYS)
            progress = load_progress(store, ended, time.time())
            calls = [c for n in range(2) for c in store.ledger.of_run(f"{benchmark_id}-0-{n}")]
            assert (ended.status, ended.message) == ("finished", message)
            assert progress.calls == len(calls)
            assert progress.tokens == sum(call.tokens_in + call.tokens_out for call in calls)
            is_broken = False
