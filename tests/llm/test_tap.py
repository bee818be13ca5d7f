"""The tap on a provider's stream: what it hears after the end, and when nothing more can come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from core.llm.call import Call, Message, in_silence
from core.llm.client import LiteLlm
from core.llm.keys import Keys
from core.llm.stream import Tap
from core.runtime.concurrency import Stop
from core.schema.rosters import Seat
from tests.llm.loopback import USAGE, Reply, chunk, loopback

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
