"""What litellm is spared changes nothing of what is sent, and nothing of what it costs."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from core.concurrency import Stop
from core.llm.call import Call, Message, Picture, in_silence
from core.llm.client import BODIES, LiteLlm
from core.llm.keys import Keys
from core.seats import Seat
from tests.llm.loopback import USAGE, Loopback, Reply, loopback

SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}
CALL = (
    Message("system", "You judge."),
    Message("assistant", "Yes."),
    Message("user", "Look: é 😀 </s>", (Picture("image/png", b"\x89PNG"),)),
)


def sent(model: str, server: Loopback) -> Any:
    seat = Seat(model, server.base, temperature=0.3, price_in=1.0, price_out=2.0)
    return LiteLlm(Keys({})).complete(Call(seat, CALL, SCHEMA), in_silence, Stop())


@pytest.mark.parametrize("model", ["openai/tiny", "openai/gpt-5-mini"])
def test_what_is_sent_is_what_the_library_itself_would_send(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openai._utils import async_maybe_transform

    transformed: list[Any] = []

    async def its_own(body: Any, expected_type: Any) -> Any:
        transformed.append(body)
        return await async_maybe_transform(body, expected_type)

    with loopback(Reply("Yes.")) as server:
        sent(model, server)
        library = importlib.import_module(BODIES)
        assert library.async_maybe_transform is not async_maybe_transform
        monkeypatch.setattr(library, "async_maybe_transform", its_own)
        sent(model, server)
    spared, whole = (asked.body for asked in server.asked)
    assert transformed, "the library does not look there any more: nothing is spared"
    assert spared == whole
    assert len(spared["messages"]) == len(CALL)
    assert {"model", "stream", "stream_options", "response_format"} <= set(spared)


def test_what_was_left_out_is_not_sent() -> None:
    from openai import NotGiven, Omit

    body = {"model": "tiny", "temperature": 0, "seed": Omit(), "stop": NotGiven(), "user": None}
    spared = importlib.import_module(BODIES).async_maybe_transform
    with ThreadPoolExecutor(1) as alone:  # a browser test may have left a loop in this thread
        found = alone.submit(asyncio.run, spared(body, dict)).result()
    assert found == {"model": "tiny", "temperature": 0, "user": None}


def test_litellm_prices_nothing_and_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads its price: to look for it took as long as to send the call."""
    import litellm

    priced: list[Any] = []
    monkeypatch.setattr(litellm.cost_calculator, "completion_cost", lambda **_: priced.append(1))
    with loopback(Reply("Yes.")) as server:
        found = sent("openai/tiny", server)
    assert not priced
    assert found.cost == (USAGE["prompt_tokens"] * 1.0 + USAGE["completion_tokens"] * 2.0) / 1e6


def test_the_apis_own_stream_is_read_without_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm

    def taken_apart(*_: Any, **__: Any) -> None:
        raise AssertionError("taken apart by litellm")

    monkeypatch.setattr(litellm.CustomStreamWrapper, "chunk_creator", taken_apart)
    with loopback(Reply("a < b </s> and c", piece=1)) as server:
        assert sent("openai/tiny", server).text == "a < b </s> and c"
