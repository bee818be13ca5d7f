"""The end of a stream: what comes after it, and an answer that is not lost with its count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from core.llm import client, providers
from core.llm.call import Call, Completion, Message, ignore_piece
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.providers import StreamPiece
from core.runtime.concurrency import StopSignal
from core.schema.rosters import AgentConfig
from tests.llm.loopback import Reply, loopback

pytestmark = pytest.mark.timing


def answered(
    monkeypatch: pytest.MonkeyPatch,
    *events: StreamPiece,
    error: Exception | None = None,
    hang: float = 0,
) -> Completion:
    """What a call comes to whose stream has these events, then this error or silence."""

    async def pieces(seat: AgentConfig, request: dict[str, Any]) -> AsyncGenerator[StreamPiece]:
        for event in events:
            yield event
        await asyncio.sleep(hang)
        if error is not None:
            raise error

    monkeypatch.setattr(client, "stream_pieces", pieces)
    monkeypatch.setattr(client, "LATEST_COUNT", 0.05)
    call = Call(AgentConfig("openai/tiny", "http://127.0.0.1:9/v1"), (Message("user", "Say it."),))
    return ModelClient(Keys({})).complete(call, ignore_piece, StopSignal())


def test_what_comes_after_the_end_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    late = (StreamPiece(" And more."), StreamPiece(counts=(3, 2)))
    found = answered(monkeypatch, StreamPiece("Yes."), StreamPiece(finish="stop"), *late)
    assert (found.text, found.tokens_in, found.tokens_out) == ("Yes. And more.", 3, 2)
    assert found.is_counted


@pytest.mark.parametrize("after", [{"error": OSError("reset")}, {"hang": 60.0}])
def test_a_stream_that_breaks_or_stays_open_after_its_end_has_said_all(
    after: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answered(monkeypatch, StreamPiece("Yes."), StreamPiece(finish="length"), **after)
    assert (found.text, found.finish, found.is_counted) == ("Yes.", "length", False)


def test_an_answer_is_not_lost_with_its_count() -> None:
    with loopback(Reply("All of it.", fault="hang_after")) as server:
        call = Call(
            AgentConfig("openai/tiny", server.base, seconds=1), (Message("user", "Say it."),)
        )
        found = ModelClient(Keys({})).complete(call, ignore_piece, StopSignal())
        assert len(server.asked) == 1
    assert (found.text, found.finish, found.is_counted) == ("All of it.", "stop", False)


def test_an_openai_compatible_address_is_asked_without_litellm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(providers, "_litellm", lambda: pytest.fail("litellm was loaded"))
    with loopback(Reply("Yes.")) as server:
        call = Call(AgentConfig("openai/tiny", server.base), (Message("user", "Say it."),))
        assert ModelClient(Keys({})).complete(call, ignore_piece, StopSignal()).text == "Yes."
