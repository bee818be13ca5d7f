"""Answers and errors in the forms that OpenAI-compatible servers send with status 200."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.llm.call import Call, Completion, Message, ignore_piece
from core.llm.client import ModelClient
from core.llm.failures import RetryPolicy
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError, ModelError, ModelRefused, ReviewError
from core.schema.rosters import AgentConfig
from tests.llm.loopback import Answer, Asked, Reply, chunk, loopback

pytestmark = pytest.mark.timing
TOO_LONG = "the request exceeds the available context size"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def ask(answer: Answer | Reply) -> tuple[Completion | ReviewError, list[Asked]]:
    """Return the outcome of one call, and the requests that the server received."""
    with loopback(answer) as server:
        agent = AgentConfig("tiny", server.base, seconds=5)
        call = Call(agent, (Message("system", "You judge."), Message("user", "Is it so?")))
        try:
            return (
                ModelClient(Keys({}), RetryPolicy(backoff=0.0)).complete(
                    call, ignore_piece, StopSignal()
                ),
                server.asked,
            )
        except ReviewError as error:
            return error, server.asked


def stream(*events: Any, prefix: str = "data: ", end: str = "\n\n") -> Reply:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return Reply(body="".join(f"{prefix}{line}{end}" for line in lines).encode())


def as_json(value: Any, media_type: str = "application/json") -> Reply:
    return Reply(body=json.dumps(value).encode(), media_type=media_type)


def whole_answer(content: Any, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}}
    return {"choices": [{**choice, "finish_reason": "stop", **more}], "usage": USAGE}


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "Is it 1926?"}]}
AT_THE_END = {"delta": {}, "message": {"content": "It is so."}, "finish_reason": "stop"}
PARTS = [THINKING, {"type": "text", "text": "It is "}, {"type": "text", "text": "so."}]


@pytest.mark.parametrize(
    "reply",
    [
        stream(chunk({"content": PARTS}), chunk({}, "stop"), "[DONE]"),
        stream(chunk({"content": PARTS[:2]}), chunk({"content": PARTS[2:]}), chunk({}, "stop")),
        stream(chunk({"content": "It is "}), chunk({"content": "so."}), chunk({}, "stop")),
        stream(chunk({"content": "It is so."}, "stop"), end="\r\n\r\n"),
        stream(
            json.dumps(chunk({"content": "It is so."}, "stop"), indent=1).replace("\n", "\ndata: ")
        ),
        stream(chunk({"content": "It is so."}, "stop"), prefix=": a comment\nid: 1\ndata:"),
        stream(
            chunk({"content": "It is so."}),
            whole_answer("It is so.") | {"choices": [AT_THE_END]},
        ),
        as_json(whole_answer("It is so.")),
        as_json(whole_answer(PARTS)),
        as_json(whole_answer("It is so."), "text/event-stream"),
        as_json(whole_answer("It is so."), "text/plain"),
        stream(whole_answer("It is so."), "[DONE]"),
    ],
)
def test_answer_is_read(reply: Reply) -> None:
    found, asked = ask(reply)
    assert isinstance(found, Completion), found
    assert (found.text, found.finish) == ("It is so.", "stop")
    assert found.is_counted == (b"usage" in reply.body)
    assert len(asked) == 1


@pytest.mark.parametrize("reason", ["length", "model_length", "max_tokens"])
def test_answer_that_was_cut_off_says_so(reason: str) -> None:
    found, _ = ask(as_json(whole_answer("It is", finish_reason=reason)))
    assert isinstance(found, Completion)
    assert found.finish == "length"


def error(message: str = "the server says so", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("reply", "kind", "words", "hits"),
    [
        (as_json(error()), ModelError, "“the server says so”", 3),
        (as_json(error(), "text/event-stream"), ModelError, "“the server says so”", 3),
        (as_json({"error": "model is loading"}), ModelError, "“model is loading”", 3),
        (as_json({"object": "error", "message": "out of memory"}), ModelError, "out of memory", 3),
        (stream(error(code=503), prefix="error: "), ModelError, "“the server says so”", 3),
        (stream(error()["error"], prefix="error: "), ModelError, "“the server says so”", 3),
        (stream("out of memory", prefix="error: "), ModelError, "“out of memory”", 3),
        (stream(error()["error"], prefix="event: error\ndata: "), ModelError, "server says so", 3),
        (stream(error(TOO_LONG, code=400)), ModelError, "longer than the window", 1),
        (stream(error(TOO_LONG, code=400), prefix="error: "), ModelError, "true window", 1),
        (stream(error(TOO_LONG, code="context_length_exceeded")), ModelError, "true window", 1),
        (stream(error(TOO_LONG, type="invalid_request_error")), ModelError, "true window", 1),
        (stream(chunk({"content": "It"}), error(TOO_LONG, code=400)), ModelError, "window", 1),
        (as_json(error(TOO_LONG, code="400")), ModelError, "longer than the window", 1),
        (stream(error("bad field", code=400)), ModelError, "failed (400): “bad field”", 1),
        (stream(error("no such model", code=404)), ConfigError, "does not know that model", 1),
        (stream(error("wrong key", code=401)), ConfigError, "refused the key", 1),
        (stream(error("slow down", type="rate_limit_error")), ModelError, "“slow down”", 3),
        (stream(error("content policy", code=400)), ModelRefused, "content filter", 1),
        (stream(chunk({"content": "It"}), error(code=500)), ModelError, "broke off", 1),
        (stream(chunk({"content": "It"}, "error")), ModelError, "broke off", 1),
        (Reply(body=b"It works!", media_type="text/plain"), ModelError, "ends in /v1", 1),
        (Reply(body=b"data: [DONE]\n\n"), ModelError, "ends in /v1", 1),
        (as_json(["no", "answer"]), ModelError, "ends in /v1", 1),
    ],
)
def test_error_with_status_200_ends_as_its_code_says(
    reply: Reply, kind: type[ReviewError], words: str, hits: int
) -> None:
    found, asked = ask(reply)
    assert type(found) is kind, found
    assert words in str(found)
    assert len(asked) == hits


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
    ],
)
def test_system_text_moves_into_user_message(message: str, status: int) -> None:
    def answer(asked: Asked) -> Reply:
        has_system = asked.body["messages"][0]["role"] == "system"
        return Reply(status=status, message=message) if has_system else Reply("It is so.")

    found, asked = ask(answer)
    assert isinstance(found, Completion), found
    assert [each.body["messages"] for each in asked][1:] == [
        [{"role": "user", "content": "You judge.\n\nIs it so?"}]
    ]


@pytest.mark.parametrize(
    "body",
    [error(code=400), {"object": "error", "message": "the server says so", "code": 400}],
)
def test_error_in_place_of_embeddings_is_quoted(body: dict[str, Any]) -> None:
    with loopback(as_json(body)) as server:
        agent = AgentConfig("tiny", server.base, seconds=5)
        with pytest.raises(ModelError, match="“the server says so”"):
            ModelClient(Keys({})).embed(agent, ["one"], StopSignal())
        assert len(server.asked) == 1
