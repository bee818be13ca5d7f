"""Rates of providers: never more than is allowed, hardly less, and shared by all threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.rosters import make_single_model_roster
from core.llm.call import Call, Message, Picture
from core.llm.client import ModelClient
from core.llm.failures import RetryPolicy
from core.llm.keys import Keys
from core.llm.limits import worst_case
from core.llm.rate_limit import (
    RateLimit,
    RateLimiter,
    RateWindow,
    parse_rates,
    require_used_rates,
    set_rates,
)
from core.runtime.concurrency import StopSignal
from core.runtime.errors import InputError, Stopped
from core.schema.rosters import AgentConfig
from tests.llm.loopback import Reply, loopback

pytestmark = pytest.mark.timing


@dataclass
class Clock:
    """A clock that sleeping moves, and always a bit too far."""

    now: float = 0.0
    late: float = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late

    def limiter(self, *limits: RateLimit) -> RateLimiter:
        return RateLimiter(limits, lambda: self.now, self.sleep)


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run it on another thread: on this one a browser's loop may be running."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def most_in_a_window(times: list[float], seconds: float) -> int:
    return max(sum(start <= at < start + seconds for at in times) for start in times)


@given(
    amount=st.integers(1, 60),
    late=st.floats(1e-6, 0.004),
    busy=st.lists(st.floats(0, 0.3), max_size=5),
)
def test_no_window_holds_more_and_hardly_any_room_is_left(
    amount: int, late: float, busy: list[float]
) -> None:
    clock, times = Clock(late=late), list[float]()
    limiter = clock.limiter(RateLimit(amount, 1.0))

    async def send_all() -> None:
        for number in range(4 * amount + 1):
            if number < len(busy):
                clock.now += busy[number]
            await limiter.wait(1)
            times.append(clock.now)

    run_apart(send_all())
    assert most_in_a_window(times, 1.0) <= amount
    if not sum(busy):
        assert 4 * amount / (times[-1] - times[0]) >= 0.95 * amount


def test_tokens_are_limited_by_the_minute_and_one_too_long_goes_alone() -> None:
    clock, times = Clock(), list[float]()
    limiter = clock.limiter(*parse_rates(["x=1000tokens/min"])["x"])

    async def send_all() -> None:
        for tokens in (600, 300, 300, 5000, 10):
            await limiter.wait(tokens)
            times.append(clock.now)

    run_apart(send_all())
    assert times[:2] == [0.0, 0.0]
    assert all(60 < after - before < 63 for before, after in pairwise(times[1:]))


def test_a_request_counts_from_when_it_was_written() -> None:
    clock = Clock()
    limiter = clock.limiter(RateLimit(1, 1.0))

    async def send_late_and_again() -> None:
        mark_written = await limiter.wait(1)
        clock.now = 0.5
        mark_written()
        await limiter.wait(1)

    run_apart(send_late_and_again())
    assert 1.5 < clock.now < 1.6


def test_requests_written_in_another_order_are_held_no_longer_than_their_window() -> None:
    clock = Clock()
    limiter = clock.limiter(RateLimit(2, 1.0))

    async def send_first_late() -> None:
        mark_first = await limiter.wait(1)
        clock.now = 0.5
        (await limiter.wait(1))()
        clock.now = 1.0
        mark_first()
        await limiter.wait(1)

    run_apart(send_first_late())
    assert 1.5 < clock.now < 1.6


def test_a_request_written_after_its_window_counts_from_then() -> None:
    clock = Clock()
    limiter = clock.limiter(RateLimit(1, 1.0))

    async def send_first_very_late() -> None:
        mark_first = await limiter.wait(1)
        clock.now = 5.0
        (await limiter.wait(1))()
        clock.now = 5.5
        mark_first()
        await limiter.wait(1)

    run_apart(send_first_very_late())
    assert 6.5 < clock.now < 6.6


def test_calls_share_a_rate() -> None:
    limiter, times = RateLimiter([RateLimit(100, 1.0)]), []

    async def send() -> None:
        await limiter.wait(1)
        times.append(time.monotonic())

    async def send_all() -> None:
        await asyncio.gather(*(send() for _ in range(200)))

    run_apart(send_all())
    assert most_in_a_window(times, 1.0) <= 100


@pytest.fixture
def rates() -> Iterator[None]:
    yield
    set_rates({})


@pytest.mark.usefixtures("rates")
def test_each_attempt_at_a_server_counts_retries_too() -> None:
    replies = iter([Reply(status=500)] * 2 + [Reply("Yes.")] * 30)
    client = ModelClient(Keys({"COUNTERPOINT_API_KEY": "k"}), RetryPolicy(backoff=0.001))
    with loopback(lambda _: next(replies)) as server:
        host = server.base.split("/")[2]
        set_rates(parse_rates([f"{host}=10/s"]))
        agent = AgentConfig("openai/m", api_base=server.base)
        call = Call(agent, (Message("user", "Is it so?"),))
        with ThreadPoolExecutor(8) as pool:
            jobs = [
                pool.submit(client.complete, call, lambda _: None, StopSignal()) for _ in range(20)
            ]
            assert {job.result().text for job in jobs} == {"Yes."}
        times = [asked.at for asked in server.asked]
    assert len(times) == 22
    assert 1.5 < max(times) - min(times) < 3.5


@pytest.mark.usefixtures("rates")
@pytest.mark.parametrize("model", ["openai/m", "ollama_chat/m"])
def test_the_client_tells_when_a_request_was_written(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[float] = []

    async def turn(*_: object) -> Callable[[], None]:
        return lambda: written.append(time.monotonic())

    monkeypatch.setattr("core.llm.client.await_turn", turn)
    with loopback(lambda _: Reply("Yes.")) as server:
        base = server.base if model.startswith("openai") else server.base.removesuffix("/v1")
        call = Call(AgentConfig(model, base), (Message("user", "Is it so?"),))
        ModelClient(Keys({"COUNTERPOINT_API_KEY": "k"})).complete(
            call, lambda _: None, StopSignal()
        )
    assert abs(written[-1] - server.asked[-1].at) < 1


@pytest.mark.usefixtures("rates")
def test_who_waits_for_a_rate_can_be_stopped() -> None:
    client = ModelClient(Keys({"COUNTERPOINT_API_KEY": "k"}))
    with loopback(lambda _: Reply("Yes.")) as server:
        set_rates(parse_rates([f"{server.base.split('/')[2]}=1/min"]))
        agent, stop = AgentConfig("openai/m", api_base=server.base), StopSignal()
        call = Call(agent, (Message("user", "Is it so?"),))
        client.complete(call, lambda _: None, stop)
        threading.Timer(0.3, stop.set).start()
        started = time.monotonic()
        with pytest.raises(Stopped):
            client.complete(call, lambda _: None, stop)
        assert len(server.asked) == 1
    assert time.monotonic() - started < 5


@pytest.mark.usefixtures("rates")
def test_clients_of_other_usual_rates_share_the_one_that_was_set() -> None:
    keys = Keys({"COUNTERPOINT_API_KEY": "k"})
    with loopback(lambda _: Reply("Yes.")) as server:
        set_rates(parse_rates([f"{server.base.split('/')[2]}=2/s"]))
        call = Call(AgentConfig("openai/m", server.base), (Message("user", "Is it so?"),))
        for usual in (0, 1, 50, 0):
            client = ModelClient(keys, requests_per_second=usual)
            client.complete(call, lambda _: None, StopSignal())
        times = [asked.at for asked in server.asked]
    assert times[-1] - times[0] > 1


@pytest.mark.usefixtures("rates")
def test_pictures_and_the_form_of_the_reply_count_as_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[int] = []
    add = RateWindow.add

    def noted(self: RateWindow, now: float, tokens: int) -> object:
        counted.append(tokens)
        return add(self, now, tokens)

    monkeypatch.setattr(RateWindow, "add", noted)
    agent = AgentConfig("openai/m", max_tokens=50)
    form = {"type": "object", "properties": {"label": {"type": "string"}}}
    pictured = Message("user", "Is it so?", (Picture("image/png", b"no image"),))
    with loopback(lambda _: Reply("Yes.")) as server:
        agent = replace(agent, api_base=server.base)
        set_rates(parse_rates([f"{server.base.split('/')[2]}=1000000tokens/s"]))
        client = ModelClient(Keys({"COUNTERPOINT_API_KEY": "k"}))
        for call in (
            Call(agent, (Message("user", "Is it so?"),)),
            Call(agent, (Message("user", "Is it so?"),), form),
            Call(agent, (pictured,)),
        ):
            client.complete(call, lambda _: None, StopSignal())
            assert counted[-1] == worst_case(call).tokens
    assert counted[0] < min(counted[1:])


@pytest.mark.usefixtures("rates")
def test_a_rate_of_nothing_that_is_used_is_refused() -> None:
    base = "http://127.0.0.1:8080/v1"
    own = make_single_model_roster("openai/m", base)
    for roster, texts in (
        (own, ["127.0.0.1:8080=5/s", "127.0.0.1=9/min"]),
        (make_single_model_roster("openai/gpt-4o-mini", ""), ["openai=5/s"]),
        (None, []),
    ):
        set_rates(parse_rates(texts))
        require_used_rates(roster)
    set_rates(parse_rates(["opneai=5/s"]))
    with pytest.raises(InputError, match=r"\(127\.0\.0\.1:8080 or 127\.0\.0\.1\), found “opneai”"):
        require_used_rates(own)
    with pytest.raises(InputError, match="no model"):
        require_used_rates(None)


@pytest.mark.parametrize("text", ["openai", "openai=0/s", "openai=5/h", "=5/s", "openai=-5/s"])
def test_a_rate_that_cannot_be_read_is_shown(text: str) -> None:
    with pytest.raises(InputError, match="Expected a rate such as openai=50/s"):
        parse_rates([text])
