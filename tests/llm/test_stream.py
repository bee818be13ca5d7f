"""Calls side by side on their loop, and what goes by in their streams."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from core.llm.call import Call, Message, in_silence
from core.llm.client import LiteLlm
from core.llm.keys import Keys
from core.llm.stream import Put, Tap, streamed_from
from core.runtime.concurrency import Stop
from core.runtime.errors import Stopped
from core.schema.rosters import Seat
from tests.llm.loopback import USAGE, Reply, chunk, loopback

ENDING = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from core.runtime.concurrency import Stop
from core.llm.call import Call, Message
from core.llm.keys import Keys
from core.llm.client import LiteLlm
from core.schema.rosters import Seat

call = Call(Seat(model="tiny", api_base=sys.argv[1], seconds=60), (Message("user", "hi"),))
print(LiteLlm(Keys({})).complete(call, print, Stop()).finish)
work = lambda: LiteLlm(Keys({})).complete(call, print, Stop())
if sys.argv[2] == "thread":
    threading.Thread(target=work, daemon=True).start()
else:
    ThreadPoolExecutor(1).submit(work)
time.sleep(0.5)
"""


@pytest.mark.parametrize("caller", ["thread", "pool"])
def test_a_process_ends_at_once_and_in_silence_while_a_call_is_under_way(caller: str) -> None:
    replies = [Reply("hello"), Reply("hello you", fault="hang_within")]
    with loopback(lambda _: replies.pop(0)) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", ENDING, server.base, caller],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while len(server.asked) < 2:
                time.sleep(0.02)
                assert process.poll() is None
            asked = time.monotonic()
            out, problems = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert out.split()[:2] == ["hello", "stop"]
    assert problems == ""
    assert time.monotonic() - asked < 15  # taking the interpreter down; the call would take 60


def test_what_cannot_be_cancelled_does_not_hold_up_a_stop() -> None:
    stop = Stop()

    async def stubborn(put: Put) -> str:
        put("a word")
        try:
            await asyncio.sleep(5)
        finally:
            await asyncio.sleep(2)
        return "never"

    timer = threading.Timer(0.1, stop.set)
    timer.start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        streamed_from(stubborn, lambda _: None, stop)
    assert time.monotonic() - started < 0.7
    timer.join()


def test_an_error_of_the_work_is_raised_in_the_callers_thread() -> None:
    async def failing(put: Put) -> str:
        raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        streamed_from(failing, lambda _: None, Stop())


@pytest.mark.parametrize("pressed_after", [0.1, 0.3])
def test_what_a_thread_prepares_for_a_stopped_call_is_closed(pressed_after: float) -> None:
    """As litellm does it: a thread makes the coroutine that would send the request."""
    stop = Stop()
    made: list[Coroutine[Any, Any, str]] = []
    sent = threading.Event()

    async def send() -> str:
        sent.set()
        await asyncio.sleep(5)
        return "never"

    def prepare() -> Coroutine[Any, Any, str]:
        time.sleep(0.2)
        made.append(send())
        return made[0]

    async def call(put: Put) -> str:
        return await (await asyncio.get_running_loop().run_in_executor(None, prepare))

    timer = threading.Timer(pressed_after, stop.set)
    timer.start()
    with pytest.raises(Stopped):
        streamed_from(call, lambda _: None, stop)
    timer.join()
    end = time.monotonic() + 2
    while not made or inspect.getcoroutinestate(made[0]) != inspect.CORO_CLOSED:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert sent.is_set() == (pressed_after > 0.2)


COUNT = {"prompt_tokens": 3, "completion_tokens": 2}


class Stream:
    """Events one after the other, and an error behind them if there is one."""

    __module__ = "openai._streaming"
    _cast_to: type = type("ChatCompletionChunk", (), {})

    def __init__(self, *events: Any, error: Exception | None = None) -> None:
        self._events, self._error = events, error

    async def __aiter__(self) -> AsyncIterator[Any]:
        for event in self._events:
            yield event
        if self._error is not None:
            raise self._error


def heard(stream: Any, events: int, seconds: float = 5.0) -> tuple[Tap, str]:
    """The tap after so many events were read through it, and what the rest said."""

    async def read() -> tuple[Tap, str]:
        tap, wrapper = Tap(), SimpleNamespace(completion_stream=stream)
        tap.onto(wrapper)
        through = aiter(wrapper.completion_stream)
        for _ in range(events):
            await anext(through)
        return tap, await tap.rest(seconds)

    # In a thread of its own: a browser test of the same worker leaves a loop running in this one.
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(asyncio.run, read()).result()


def test_what_comes_after_the_end_is_heard() -> None:
    end, late = chunk({}, "stop"), chunk({"content": " And more."})
    tap, rest = heard(Stream(chunk({"content": "Yes."}), end, late, {"usage": COUNT}), 2)
    assert tap.has_said_all
    assert (rest, tap.finish, tap.usage) == (" And more.", "stop", COUNT)


def test_a_stream_that_breaks_after_its_end_has_said_all() -> None:
    tap, rest = heard(Stream(chunk({}, "length"), error=OSError("reset")), 1)
    assert (rest, tap.finish, bool(tap.counts)) == ("", "length", False)


def test_a_stream_that_does_not_end_after_its_end_has_said_all() -> None:
    """Its answer is whole and was paid for, and is not waited for as long as a silent model."""

    class Open(Stream):
        async def __aiter__(self) -> AsyncIterator[Any]:
            yield chunk({}, "stop")
            yield chunk({"content": " And more."})
            await asyncio.sleep(60)

    tap, rest = heard(Open(), 1, seconds=0.05)
    assert (rest, tap.finish, bool(tap.counts)) == (" And more.", "stop", False)


def test_an_answer_is_not_lost_with_its_count() -> None:
    with loopback(Reply("All of it.", fault="hang_after")) as server:
        call = Call(Seat("openai/tiny", server.base, seconds=1), (Message("user", "Say it."),))
        found = LiteLlm(Keys({})).complete(call, in_silence, Stop())
        assert len(server.asked) == 1
    assert (found.text, found.finish, found.is_counted) == ("All of it.", "stop", False)


def test_an_event_that_is_none_is_not_the_end() -> None:
    async def read() -> list[str | None]:
        tap = Tap()
        tap.onto(SimpleNamespace(completion_stream=Stream(None, chunk({"content": "Yes."}))))
        return [await tap.words() for _ in range(3)]

    with ThreadPoolExecutor(1) as alone:
        assert alone.submit(asyncio.run, read()).result() == ["", "Yes.", None]


def test_a_stream_of_another_kind_never_says_that_it_has_said_all() -> None:
    class Other(Stream):
        __module__ = "litellm.llms.other"

    tap, _ = heard(Other(chunk({}, "stop")), 1)
    assert tap.finish == "stop"
    assert not tap.has_said_all


def test_a_stream_of_text_completions_is_left_to_litellm() -> None:
    """Its words stand elsewhere in the event."""

    class Texts(Stream):
        _cast_to = type("Completion", (), {})

    class Wrapper:
        def __init__(self) -> None:
            self.completion_stream: Any = Texts({"choices": [{"text": "Yes."}]})

        async def __anext__(self) -> Any:
            event = await anext(self.completion_stream)
            delta = SimpleNamespace(content=event["choices"][0]["text"])
            return SimpleNamespace(choices=[SimpleNamespace(delta=delta)])

    async def read() -> tuple[str | None, str | None]:
        tap = Tap()
        tap.onto(Wrapper())
        return await tap.words(), await tap.words()

    with ThreadPoolExecutor(1) as alone:
        assert alone.submit(asyncio.run, read()).result() == ("Yes.", None)


def test_litellm_does_not_put_a_stream_together_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("put together again")

    monkeypatch.setattr(litellm, "stream_chunk_builder", again)
    monkeypatch.setattr(litellm.CustomStreamWrapper, "_finalize_completed_stream", again)
    with loopback(Reply("All of it.", usage=COUNT)) as server:
        call = Call(Seat("openai/tiny", server.base), (Message("user", "Say it."),))
        found = LiteLlm(Keys({})).complete(call, in_silence, Stop())
    assert (found.text, found.finish, found.is_counted) == ("All of it.", "stop", True)
    assert (found.tokens_in, found.tokens_out) == (3, 2)


def test_the_apis_own_stream_is_read_without_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm

    def taken_apart(*_: Any, **__: Any) -> None:
        raise AssertionError("taken apart by litellm")

    monkeypatch.setattr(litellm.CustomStreamWrapper, "chunk_creator", taken_apart)
    with loopback(Reply("a < b </s> and c", piece=1)) as server:
        call = Call(Seat("openai/tiny", server.base), (Message("user", "Say it."),))
        found = LiteLlm(Keys({})).complete(call, in_silence, Stop())
    assert found.text == "a < b </s> and c"


def test_litellm_prices_nothing_and_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm

    priced: list[Any] = []
    monkeypatch.setattr(litellm.cost_calculator, "completion_cost", lambda **_: priced.append(1))
    with loopback(Reply("Yes.")) as server:
        seat = Seat("openai/tiny", server.base, price_in=1.0, price_out=2.0)
        call = Call(seat, (Message("user", "Say it."),))
        found = LiteLlm(Keys({})).complete(call, in_silence, Stop())
    assert not priced
    assert found.cost == (USAGE["prompt_tokens"] * 1.0 + USAGE["completion_tokens"] * 2.0) / 1e6
