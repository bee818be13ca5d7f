"""The boundary to litellm against a server that speaks the real stream, with every fault."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import re
import threading
import time
import warnings
from typing import Any

import pytest

from core.llm import client as llm
from core.llm import keys
from core.llm.call import Call, Completion, Message, Picture, bound_schema, ignore_piece
from core.llm.client import ModelClient
from core.llm.failures import RetryPolicy
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.runtime.errors import (
    ConfigError,
    KeyMissing,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ReplyError,
    ReviewError,
    Stopped,
)
from core.schema.rosters import AgentConfig
from tests.llm.loopback import Answer, Asked, Loopback, Reply, loopback
from tests.waiting import PATIENCE_SECONDS, wait_for

KEY = "sk-of-this-address-93417"
OTHER_KEY = "sk-of-a-provider-55512"
TEXT = "The bridge opened in 1932, so the claim of 1935 does not hold."
QUICK = RetryPolicy(backoff=0.01)
SILENCE = 40.0  # seconds that a call would wait if nobody stopped it
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def seat_at(server: Loopback, **changes: Any) -> AgentConfig:
    return dataclasses.replace(
        AgentConfig(model="tiny", api_base=server.base, seconds=5), **changes
    )


def call_to(seat: AgentConfig, text: str = "Is it so?", **more: Any) -> Call:
    return Call(seat, (Message("system", "You judge."), Message("user", text)), **more)


def asked_of(
    answer: Answer | Reply,
    *,
    patience: RetryPolicy = QUICK,
    keys: Keys | None = None,
    schema: dict[str, Any] | None = None,
    **seat: Any,
) -> tuple[Completion | ReviewError, Loopback, list[str]]:
    """What one call came to, with what the server saw and the pieces that were spoken."""
    spoken: list[str] = []
    model = ModelClient(keys or Keys({"COUNTERPOINT_API_KEY": KEY}), patience)
    with loopback(answer) as server:
        call = call_to(seat_at(server, **seat), schema=schema)
        try:
            return model.complete(call, spoken.append, StopSignal()), server, spoken
        except ReviewError as error:
            return error, server, spoken


def in_turn(*replies: Reply) -> Answer:
    """Answers one after the other, the last one for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


# What is sent and what comes back


def test_a_whole_answer_comes_with_the_tokens_the_provider_counted() -> None:
    found, server, spoken = asked_of(Reply(TEXT), price_in=1.0, price_out=10.0)
    assert isinstance(found, Completion)
    assert (found.text, found.finish) == (TEXT, "stop")
    assert "".join(spoken) == TEXT
    assert len(spoken) > 3
    assert (found.tokens_in, found.tokens_out, found.is_counted) == (100, 20, True)
    assert found.cost == pytest.approx(100 * 1e-6 + 20 * 1e-5)
    assert 0 < found.seconds < 5
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body["model"] == "tiny"
    assert [m["role"] for m in asked.body["messages"]] == ["system", "user"]
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.0, 800)
    assert asked.bearer == KEY


def test_tokens_that_nobody_counted_are_an_estimate_and_a_price_that_nobody_knows_is_none() -> None:
    found, _, _ = asked_of(Reply(TEXT, usage=None))
    assert isinstance(found, Completion)
    assert not found.is_counted
    assert found.tokens_in > 2
    assert found.tokens_out > 5
    assert found.cost is None


def test_our_own_token_limit_is_a_normal_end() -> None:
    found, _, _ = asked_of(Reply(TEXT, finish="length"))
    assert isinstance(found, Completion)
    assert found.finish == "length"


def test_pieces_are_spoken_in_the_callers_thread_before_the_last_is_sent() -> None:
    heard: list[tuple[float, int]] = []
    with loopback(Reply(TEXT)) as server:  # the first call of a process loads parts of litellm
        ModelClient(Keys({})).complete(call_to(seat_at(server)), ignore_piece, StopSignal())
    with loopback(Reply(TEXT, gap=0.05)) as server:
        ModelClient(Keys({})).complete(
            call_to(seat_at(server)),
            lambda _: heard.append((time.monotonic(), threading.get_ident())),
            StopSignal(),
        )
        sent = server.asked[0].sent_at
    assert len(heard) == len(sent) > 3
    assert heard[0][0] < sent[-1]
    assert {thread for _, thread in heard} == {threading.get_ident()}


def test_pictures_travel_as_data_urls_beside_their_text() -> None:
    picture = Picture("image/png", b"\x89PNG rest")
    with loopback(Reply(TEXT)) as server:
        call = Call(seat_at(server), (Message("user", "What is this?", (picture,)),))
        ModelClient(Keys({})).complete(call, ignore_piece, StopSignal())
        asked = server.asked[0]
    assert asked.images == [f"data:image/png;base64,{base64.b64encode(picture.data).decode()}"]
    assert asked.prompt == "What is this?"


@pytest.mark.parametrize(
    ("model", "path", "name"),
    [
        ("meta-llama/Llama-3-8B", "/v1/chat/completions", "meta-llama/Llama-3-8B"),
        ("openai/gpt-4o-mini", "/v1/chat/completions", "gpt-4o-mini"),
        ("gpt-4o-mini", "/v1/chat/completions", "gpt-4o-mini"),
        ("openai/openai/gpt-oss-20b", "/v1/chat/completions", "openai/gpt-oss-20b"),
        ("hosted_vllm/meta-llama/Llama-3-8B", "/v1/chat/completions", "meta-llama/Llama-3-8B"),
        ("lm_studio/qwen3-4b", "/v1/chat/completions", "qwen3-4b"),
        ("ollama_chat/llama3.2", "/v1/api/chat", "llama3.2"),
    ],
)
def test_a_models_name_reaches_its_server(model: str, path: str, name: str) -> None:
    found, server, _ = asked_of(Reply(TEXT), model=model)
    assert isinstance(found, Completion), found
    assert found.text == TEXT
    assert found.is_counted
    assert found.seconds < 5  # nobody fetched a tokenizer for it
    assert (server.asked[0].path, server.asked[0].body["model"]) == (path, name)


def test_ollama_is_told_its_window_and_its_broken_stream_is_seen() -> None:
    found, server, _ = asked_of(Reply(TEXT), model="ollama_chat/llama3.2", window=16_000)
    assert isinstance(found, Completion)
    assert (found.tokens_in, found.tokens_out) == (100, 20)
    assert server.asked[0].body["options"]["num_ctx"] == 16_000
    found, _, _ = asked_of(Reply(TEXT, fault="no_finish"), model="ollama_chat/llama3.2")
    assert type(found) is ModelError


def test_a_stream_that_is_opened_with_its_first_event_comes_to_its_end() -> None:
    """As Gemini's is: what ended it is known all the same."""
    found, server, _ = asked_of(Reply(TEXT, finish="STOP"), model="gemini/tiny")
    assert isinstance(found, Completion), found
    assert (found.text, found.finish) == (TEXT, "stop")
    assert (found.tokens_in, found.tokens_out, found.is_counted) == (100, 20, True)
    assert len(server.asked) == 1
    found, _, _ = asked_of(Reply(TEXT, finish="MAX_TOKENS"), model="gemini/tiny")
    assert isinstance(found, Completion)
    assert found.finish == "length"
    found, _, _ = asked_of(Reply(TEXT, finish="SAFETY"), model="gemini/tiny")
    assert type(found) is ModelRefused


def test_calls_from_several_threads_overlap() -> None:
    together = threading.Barrier(4, timeout=PATIENCE_SECONDS)

    def answer(_: Asked) -> Reply:
        together.wait()  # none is answered before all have been asked
        return Reply(TEXT)

    with loopback(answer) as server:
        model = ModelClient(Keys({}))
        call = call_to(seat_at(server, seconds=PATIENCE_SECONDS))
        threads = [
            threading.Thread(target=model.complete, args=(call, ignore_piece, StopSignal()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.asked) == 4
        assert not together.broken


# Faults: each ends in its own error


FAULTS: list[tuple[str, Reply, type[ReviewError], str, int]] = [
    ("error 500", Reply(status=500), ModelError, "failed (500)", 3),
    ("error 503", Reply(status=503), ModelError, "failed (503)", 3),
    ("error 408", Reply(status=408), ModelError, "failed (408)", 3),
    ("error 409", Reply(status=409), ModelError, "failed (409)", 3),
    ("too many", Reply(status=429), ModelError, "failed (429)", 3),
    (
        "spent",
        Reply(status=429, message="You exceeded your current quota", code="insufficient_quota"),
        ModelError,
        "no credit left",
        1,
    ),
    ("wrong key", Reply(status=401, message=f"bad {KEY}"), ConfigError, "refused the key (401)", 1),
    ("forbidden", Reply(status=403), ConfigError, "refused the key (403)", 1),
    ("unknown", Reply(status=404, message="no model"), ConfigError, "does not know that model", 1),
    (
        "unknown, said with 400",
        Reply(status=400, message="The model `tiny` does not exist"),
        ConfigError,
        "does not know that model",
        1,
    ),
    ("bad request", Reply(status=400, message="no such field"), ModelError, "failed (400)", 1),
    (
        "too long",
        Reply(
            status=400,
            message="This model's maximum context length is 10 tokens",
            code="context_length_exceeded",
        ),
        ModelError,
        "longer than the window",
        1,
    ),
    (
        "filtered before",
        Reply(
            status=400,
            message="The prompt triggered the content management policy",
            code="content_policy_violation",
        ),
        ModelRefused,
        "content filter",
        1,
    ),
    ("filtered", Reply(TEXT, finish="content_filter"), ModelRefused, "content filter", 1),
    ("refused", Reply("I can't help", refusal=True), ModelRefused, "“I can't help”", 1),
    ("empty", Reply(""), ReplyError, "found an empty one: no words", 1),
    ("all thought", Reply("", finish="length"), ReplyError, "800 tokens went by", 1),
    (
        "cut off",
        Reply(TEXT, fault="cut_off"),
        ModelError,
        "found a closed connection. What came",
        1,
    ),
    ("hidden end", Reply(TEXT, fault="no_finish"), ModelError, "an end without a reason", 1),
    ("malformed", Reply(TEXT, fault="malformed"), ModelError, "broke off", 1),
    ("error within", Reply(TEXT, fault="error_within"), ModelError, "“the server says so”", 1),
    ("error first", Reply(TEXT, fault="error_before"), ModelError, "the server says so", 3),
    ("hung up", Reply(fault="hang_up"), ModelError, "closed the connection without an answer", 3),
    ("web page", Reply(fault="html"), ModelError, "usually ends in /v1", 1),
    ("no body", Reply(fault="empty_body"), ModelError, "usually ends in /v1", 1),
]


@pytest.mark.parametrize(
    ("reply", "kind", "words", "hits"),
    [case[1:] for case in FAULTS],
    ids=[case[0] for case in FAULTS],
)
def test_a_fault_ends_in_its_own_error(
    reply: Reply, kind: type[ReviewError], words: str, hits: int
) -> None:
    found, server, _ = asked_of(reply)
    assert type(found) is kind, found
    assert words in str(found)
    assert len(server.asked) == hits
    assert found.__cause__ is None  # the library's own errors may repeat a key
    assert found.__context__ is None
    assert KEY not in str(found)


def test_what_surely_costs_nothing_is_said() -> None:
    free = [Reply(status=500), Reply(status=400, message="no such field"), Reply(fault="hang_up")]
    owed = [Reply(TEXT, fault="cut_off"), Reply(fault="html"), Reply(fault="hang_before")]
    for reply in (*free, *owed):
        found, _, _ = asked_of(reply, seconds=1)
        assert isinstance(found, ModelError)
        assert found.is_unbilled == (reply in free), reply
    # The first attempt may have been billed, whatever came of the second.
    found, _, _ = asked_of(in_turn(Reply(fault="error_before"), Reply(status=500)))
    assert isinstance(found, ModelError)
    assert not found.is_unbilled


@pytest.mark.parametrize("model", ["openai/tiny", "ollama_chat/tiny", "anthropic/claude-tiny"])
def test_a_forwarder_that_hangs_up_is_said_without_a_status_that_nobody_sent(model: str) -> None:
    with loopback(Reply(fault="hang_up")) as server:
        base = server.base if model == "openai/tiny" else server.base.removesuffix("/v1")
        seat = AgentConfig(model, base, key_name="MY_API_KEY", seconds=5)
        client = ModelClient(Keys({"MY_API_KEY": KEY}), QUICK)
        with pytest.raises(ModelError, match="closed the connection without an answer") as it:
            client.complete(call_to(seat), ignore_piece, StopSignal())
    assert not re.search(r"500|litellm|Error|isconnected", str(it.value))
    assert it.value.is_unbilled


def test_silence_ends_after_the_seats_seconds() -> None:
    for fault in ("hang_before", "hang_within"):
        started = time.monotonic()
        found, server, _ = asked_of(Reply(TEXT, fault=fault), seconds=1)
        assert type(found) is ModelTimeout
        assert "was silent for 1 seconds" in str(found)
        assert time.monotonic() - started > 0.9
        assert len(server.asked) == 1


def test_a_stream_without_end_is_ended() -> None:
    patience = RetryPolicy(overall=1.5)
    found, _, spoken = asked_of(Reply(TEXT * 9, gap=0.1, piece=3), patience=patience, seconds=1)
    assert type(found) is ModelTimeout
    assert "had not finished after 1.5 seconds" in str(found)
    assert spoken


def test_a_refused_connection_is_tried_again_and_then_said() -> None:
    seat = AgentConfig(model="tiny", api_base="http://127.0.0.1:9/v1", seconds=5)
    with pytest.raises(ModelError, match=r"127.0.0.1:9/v1 cannot be reached.*attempt 3") as it:
        ModelClient(Keys({}), QUICK).complete(call_to(seat), ignore_piece, StopSignal())
    assert it.value.is_unbilled


def test_a_name_without_a_provider_and_without_an_address_says_how_names_look() -> None:
    with pytest.raises(ConfigError, match="provider/model"):
        ModelClient(Keys({}), QUICK).complete(
            call_to(AgentConfig(model="nonsense")), ignore_piece, StopSignal()
        )


def test_refusals_and_empty_replies_keep_what_came() -> None:
    refused, _, _ = asked_of(Reply("I can't help", refusal=True))
    assert isinstance(refused, ModelRefused)
    assert refused.reply == "I can't help"
    filtered, _, _ = asked_of(Reply(TEXT, finish="content_filter"))
    assert isinstance(filtered, ModelRefused)
    assert filtered.reply == TEXT
    empty, _, _ = asked_of(Reply("  \n "))
    assert isinstance(empty, ReplyError)


# Trying again


def test_halves_of_a_character_come_together_and_what_is_none_is_never_handed_on() -> None:
    found, _, spoken = asked_of(Reply("Yes \ud83d\ude00 and \ud800 no", piece=1))
    assert isinstance(found, Completion)
    assert found.text == "Yes 😀 and � no"
    assert "".join(spoken).encode()
    refused, _, _ = asked_of(Reply("No \ud800!", refusal=True))
    assert isinstance(refused, ModelRefused)
    assert f"{refused} {refused.reply}".encode()
    failed, _, _ = asked_of(Reply(status=400, message="bad \ud800 \x1b[31m \u202e word"))
    assert "“bad � �[31m � word”" in str(failed)


def test_an_answer_that_goes_on_and_on_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "LONGEST_ANSWER", 200)
    words = " ".join(f"word{number}" for number in range(100))
    found, server, spoken = asked_of(Reply(words, gap=0.01))
    assert isinstance(found, ReplyError), "the service works; its reply is of no use"
    assert "more than 200 characters" in str(found)
    assert words.startswith(found.reply)
    assert found.reply
    assert len("".join(spoken)) < 220
    assert server.wait_closed()
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "12", "completion_tokens": "x"},
        {"prompt_tokens": 1.5, "completion_tokens": 2.5},
        {"prompt_tokens": [1], "completion_tokens": {}},
        {"prompt_tokens": 100},
        {"prompt_tokens": 100, "completion_tokens": None},
    ],
)
def test_figures_that_are_none_lose_no_answer(usage: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _, _ = asked_of(Reply(TEXT, usage=usage))
    assert isinstance(found, Completion), found
    assert found.text == TEXT
    assert not found.is_counted
    assert found.tokens_out > 5


@pytest.mark.parametrize(
    "model",
    "tiny anthropic/a azure/b gemini/c hosted_vllm/d groq/e mistral/f azure_ai/g xai/h".split(),
)
@pytest.mark.parametrize("status", [302, 307, 308])
def test_neither_key_nor_prompt_follows_a_redirect(model: str, status: int) -> None:
    with loopback(Reply(TEXT)) as elsewhere:
        there = Reply(status=status, headers={"Location": f"{elsewhere.base}/chat/completions"})
        found, server, _ = asked_of(there, model=model)
        assert isinstance(found, ConfigError), found
        assert "another address" in str(found)
        assert len(server.asked) == 1
        assert KEY in server.asked[0].everything
        assert not elsewhere.asked


def test_a_passing_fault_is_asked_again_after_the_seconds_it_names() -> None:
    answer = in_turn(Reply(status=429, headers={"Retry-After": "1"}), Reply(TEXT))
    began = time.monotonic()
    found, server, spoken = asked_of(answer)
    took = time.monotonic() - began
    assert isinstance(found, Completion)
    first, second = server.asked
    assert second.at - first.at >= 1.0
    assert "".join(spoken) == TEXT
    assert found.seconds < took - 0.9  # the wait is not the call's own time


def test_a_wait_longer_than_a_run_waits_is_said_at_once() -> None:
    reply = Reply(status=429, headers={"Retry-After": "3600"})
    started = time.monotonic()
    found, server, _ = asked_of(reply)
    assert type(found) is ModelError
    assert "3600 seconds" in str(found)
    assert len(server.asked) == 1
    assert time.monotonic() - started < 2


def test_nothing_is_tried_again_once_words_were_spoken() -> None:
    found, server, spoken = asked_of(in_turn(Reply(TEXT, fault="cut_off"), Reply(TEXT)))
    assert type(found) is ModelError
    assert spoken
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model", "temperature"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("unknown field stream_options", "stream_options"),
        ("response_format of type json_schema is not supported", "response_format"),
        ("I was not built for this", "response_format"),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_what_a_server_does_not_know_is_left_out_and_remembered(
    message: str, part: str, status: int
) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(status=status, message=message) if part in asked.body else Reply(TEXT)

    with loopback(answer) as server:
        model = ModelClient(Keys({}), QUICK)
        call = call_to(seat_at(server), schema=SCHEMA)
        for _ in range(2):
            assert model.complete(call, ignore_piece, StopSignal()).text == TEXT
        sent = [part in asked.body for asked in server.asked]
    assert sent == [True, False, False]


def test_a_refusal_with_another_cause_is_not_held_against_the_schema() -> None:
    bad = Reply(status=400, message="no such field")
    with loopback(in_turn(bad, bad, Reply(TEXT))) as server:
        model = ModelClient(Keys({}), QUICK)
        call = call_to(seat_at(server), schema=SCHEMA)
        with pytest.raises(ModelError):
            model.complete(call, ignore_piece, StopSignal())
        model.complete(call, ignore_piece, StopSignal())
        sent = [asked.body.get("response_format") for asked in server.asked]
    assert [form is not None for form in sent] == [True, False, True]
    assert sent[0]
    assert sent[0]["json_schema"]["schema"] == bound_schema(SCHEMA)
    assert sent[0]["json_schema"]["strict"] is True


# Stop


def stopped_after(answer: Answer | Reply, patience: RetryPolicy = QUICK) -> float:
    """Seconds from Stop, once the server was asked, to `Stopped` and the closed connection."""
    stop = StopSignal()
    with loopback(answer) as server:
        model = ModelClient(Keys({}), patience)
        call = call_to(seat_at(server, seconds=SILENCE))
        moment: list[float] = []

        def press() -> None:
            wait_for(lambda: server.asked, "the request")
            moment.append(time.monotonic())
            stop.set()

        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(Stopped):
            model.complete(call, ignore_piece, stop)
        raised = time.monotonic()
        last = server.asked[-1]
        closed = server.wait_closed() if last.sent_at or patience is QUICK else raised
        thread.join()
    return max(raised, closed) - moment[0]


def test_stop_before_the_first_word_closes_the_connection() -> None:
    assert stopped_after(Reply(TEXT, fault="hang_before")) < SILENCE / 2


def test_stop_within_the_stream_closes_the_connection() -> None:
    assert stopped_after(Reply(TEXT, fault="hang_within")) < SILENCE / 2
    assert stopped_after(Reply(TEXT * 90, gap=0.05)) < SILENCE / 2


def test_stop_cuts_the_wait_between_two_attempts_short() -> None:
    reply = Reply(status=429, headers={"Retry-After": "20"})
    assert stopped_after(reply, RetryPolicy()) < 10


def test_a_stop_that_was_pressed_before_sends_nothing() -> None:
    stop = StopSignal()
    stop.set()
    with loopback(Reply(TEXT)) as server:
        with pytest.raises(Stopped):
            ModelClient(Keys({})).complete(call_to(seat_at(server)), ignore_piece, stop)
        assert not server.asked


def test_a_finished_call_leaves_nothing_behind_in_its_stop() -> None:
    stop = StopSignal()
    with loopback(Reply(TEXT)) as server:
        for _ in range(3):
            ModelClient(Keys({})).complete(call_to(seat_at(server)), ignore_piece, stop)
    called: list[str] = []
    stop.on_stop(lambda: called.append("later"))
    stop.set()
    assert called == ["later"]


def test_a_listener_that_fails_ends_the_call() -> None:
    def fail(piece: str) -> None:
        raise ValueError(piece)

    with loopback(Reply(TEXT * 20, gap=0.05)) as server:
        with pytest.raises(ValueError, match="The bridge"):
            ModelClient(Keys({})).complete(call_to(seat_at(server)), fail, StopSignal())
        server.wait_closed(seconds=1.0)


# Keys


def test_a_missing_key_is_said_before_anything_is_sent() -> None:
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY") as caught:
        ModelClient(Keys({})).complete(
            call_to(AgentConfig(model="openai/gpt-4o")), ignore_piece, StopSignal()
        )
    assert caught.value.names == ("OPENAI_API_KEY",)


PROVIDER_NAMES = (
    "OPENAI_API_KEY ANTHROPIC_API_KEY MISTRAL_API_KEY HOSTED_VLLM_API_KEY LM_STUDIO_API_KEY "
    "OLLAMA_API_KEY DEEPSEEK_API_KEY GROQ_API_KEY"
).split()


@pytest.mark.parametrize(
    "model",
    "tiny openai/gpt-4o mistral/small deepseek/chat groq/llama hosted_vllm/a lm_studio/b "
    "ollama_chat/llama3".split(),
)
def test_a_providers_key_never_travels_to_another_address(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROVIDER_NAMES:
        monkeypatch.setenv(name, OTHER_KEY)
    found, server, _ = asked_of(
        Reply(TEXT), model=model, keys=Keys(dict.fromkeys(PROVIDER_NAMES, OTHER_KEY))
    )
    assert isinstance(found, Completion), found
    assert OTHER_KEY not in server.asked[0].everything


KEPT_SETTINGS = {
    "OPENAI_ORGANIZATION": "org-of-ours-1",
    "OPENAI_ORG_ID": "org-of-ours-2",
    "OPENAI_PROJECT_ID": "project-of-ours-3",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway-Token: token-of-ours-4",
    "WATSONX_TOKEN": "token-of-ours-5",
    "WATSONX_ZENAPIKEY": "key-of-ours-6",
}


@pytest.fixture
def settings_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_kept", {})
    for name, value in {**KEPT_SETTINGS, "WATSONX_PROJECT_ID": "project"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("settings_set")
@pytest.mark.parametrize(
    "model", "tiny openai/gpt-4o lm_studio/b perplexity/sonar watsonx/w".split()
)
def test_a_providers_settings_never_travel_to_another_address(model: str) -> None:
    found, server, _ = asked_of(Reply(TEXT), model=model)
    assert isinstance(found, Completion), found
    assert "of-ours" not in server.asked[0].everything
    with loopback(Reply(TEXT)) as server, contextlib.suppress(ReviewError):
        ModelClient(Keys({})).embed(seat_at(server, model=model), ["a text"], StopSignal())
    assert all("of-ours" not in asked.everything for asked in server.asked)


@pytest.mark.usefixtures("settings_set")
def test_openais_settings_go_with_openais_own_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys({"OPENAI_API_KEY": KEY})
    with loopback(Reply(TEXT)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        seat = AgentConfig(model="openai/gpt-4o", seconds=5)
        ModelClient(keys).complete(call_to(seat), ignore_piece, StopSignal())
        with contextlib.suppress(ReviewError):
            ModelClient(keys).embed(
                dataclasses.replace(seat, model="openai/e"), ["a"], StopSignal()
            )
    assert len(server.asked) == 2
    for asked in server.asked:
        for sent in ("org-of-ours-1", "project-of-ours-3", "token-of-ours-4"):
            assert sent in asked.everything


@pytest.mark.usefixtures("settings_set")
def test_watsonxs_token_goes_with_its_own_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(Reply(TEXT)) as server:
        monkeypatch.setenv("WATSONX_API_BASE", server.base)
        call = call_to(AgentConfig(model="watsonx/w", seconds=5))
        ModelClient(Keys({"WATSONX_APIKEY": KEY})).complete(call, ignore_piece, StopSignal())
    assert "Bearer token-of-ours-5" in server.asked[0].everything
    assert "key-of-ours-6" not in server.asked[0].everything


def test_no_key_and_no_prompt_in_errors_logs_and_reprs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    keys = Keys({"COUNTERPOINT_API_KEY": KEY})
    replies = [
        Reply(TEXT),
        Reply(status=401, message=f"Incorrect API key provided: {KEY}."),
        Reply(status=500, message=f"cannot log in with {KEY}"),
        Reply(TEXT, fault="error_within", message=f"lost {KEY}"),
    ]
    for reply in replies:
        found, server, _ = asked_of(reply, keys=keys)
        assert KEY not in f"{found!s} {found!r}"
        assert server.asked[0].bearer == KEY
    assert KEY not in repr(keys) + repr(ModelClient(keys))
    logged = caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert KEY not in logged
    assert "Is it so?" not in logged


def test_an_answer_that_repeats_its_key_is_handed_on_without_it() -> None:
    for refusal in (False, True):
        words = f"Your key is {KEY}, so it is 1."
        found, _, spoken = asked_of(Reply(words, refusal=refusal, piece=100))
        said = found.text if isinstance(found, Completion) else getattr(found, "reply", "")
        assert said == "Your key is …, so it is 1."
        assert KEY not in f"{found!r} {found} {spoken}"
    word = Keys({"COUNTERPOINT_API_KEY": "ollama"})
    plain, _, _ = asked_of(Reply("It ran on ollama."), keys=word)
    assert isinstance(plain, Completion)
    assert plain.text == "It ran on ollama."


def test_a_wrong_key_is_named_with_where_it_came_from() -> None:
    reply = Reply(status=401, message="no")
    for own, words in [
        (Keys({"COUNTERPOINT_API_KEY": KEY}), "COUNTERPOINT_API_KEY, from the environment"),
        (Keys({}, {"COUNTERPOINT_API_KEY": KEY}), "from .streamlit/secrets.toml"),
        (Keys({}, {}, {"COUNTERPOINT_API_KEY": KEY}), "as typed in this session"),
        (Keys({}), "No key was sent"),
    ]:
        found, _, _ = asked_of(reply, keys=own)
        assert isinstance(found, ConfigError)
        assert words in str(found)


def test_a_providers_words_are_quoted_in_one_short_line() -> None:
    found, _, _ = asked_of(Reply(status=500, message="over\nhere " + "x" * 2000))
    assert "“over here xxx" in str(found)
    assert "\n" not in str(found)
    assert len(str(found)) < 500
    assert "litellm" not in str(found).lower()
    assert "OpenAIException" not in str(found)
