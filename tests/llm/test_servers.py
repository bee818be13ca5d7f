"""Servers of language models on this computer are found by their lists of models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from core.llm import servers
from core.llm.call import Call, Message
from core.llm.client import chat_request
from core.llm.keys import Keys
from core.llm.servers import (
    FoundServer,
    ServedModel,
    find_servers,
    find_slots,
    find_window,
    turn_at,
)
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError, Stopped
from core.schema.rosters import MAX_CONCURRENCY, AgentConfig

pytestmark = pytest.mark.timing

# As the servers answer; shortened to what is read.
VLLM = {"data": [{"id": "Qwen/Qwen2.5-7B-Instruct", "max_model_len": 32768}]}
LLAMA_CPP = {"data": [{"id": "gemma.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}]}
OLLAMA = {"data": [{"id": "llama3.1:latest", "owned_by": "library"}, {"id": "mistral:latest"}]}


@contextmanager
def serving(body: bytes, status: int = 200) -> Iterator[int]:
    """A server on loopback that answers everything alike; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("listed", "models"),
    [
        (VLLM, [ServedModel("Qwen/Qwen2.5-7B-Instruct", 32768)]),
        (LLAMA_CPP, [ServedModel("gemma.gguf", 4096)]),
        (OLLAMA, [ServedModel("llama3.1:latest"), ServedModel("mistral:latest")]),
    ],
)
def test_a_server_is_found_with_its_models_and_windows(
    listed: object, models: list[ServedModel]
) -> None:
    with serving(json.dumps(listed).encode()) as port:
        address = f"http://127.0.0.1:{port}/v1"
        assert find_servers({"Mine": port}) == (FoundServer("Mine", address, tuple(models)),)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", 200),
        (b"[]", 200),
        (b'{"data": []}', 200),
        (b'{"data": [{"id": 7}, "x", {"id": "a\\u0007"}]}', 200),
        (b'{"data": [{"id": "m"}]}', 404),
        (b'{"data": [{"id": "m"}]}' + b" " * 2_000_000, 200),
    ],
)
def test_whoever_else_listens_there_is_no_server_of_models(body: bytes, status: int) -> None:
    with serving(body, status) as port:
        assert find_servers({"Mine": port, "Nobody": 9}) == ()


def test_a_long_prompt_is_waited_for_at_an_own_server_alone() -> None:
    def timeout(api_base: str, words: int) -> float:
        seat = AgentConfig("openai/tiny", api_base, seconds=10)
        call = Call(seat, (Message("user", "word " * words),))
        return float(chat_request(call, Keys({"OPENAI_API_KEY": "k"}), frozenset())["timeout"])

    own = "http://127.0.0.1:9/v1"
    assert timeout(own, 4800) > 25 + timeout(own, 10), "as many seconds again for each 1,200"
    assert timeout("", 4800) == timeout("", 10)


def test_ollama_at_its_openai_address_answers_one_prompt_at_a_time() -> None:
    with serving(b'{"version": "0.12.3"}') as port:
        assert find_slots(f"http://127.0.0.1:{port}/v1") == 1
    with serving(b'{"total_slots": 4}') as port:
        assert find_slots(f"http://127.0.0.1:{port}/v1") == 4


def test_a_window_too_small_for_any_prompt_is_not_believed() -> None:
    with serving(b'{"data": [{"id": "m", "max_model_len": 8}]}') as port:
        assert find_window(f"http://127.0.0.1:{port}/v1", "m") == 0


def test_slots_are_asked_again_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(address: str) -> int:
        asked.append(address)
        return 1

    monkeypatch.setattr(servers, "find_slots", answer)
    with pytest.raises(ModelError), turn_at("http://mine/v1", StopSignal()):
        raise ModelError("gone")
    for _ in range(2):
        with turn_at("http://mine/v1", StopSignal()):
            pass
    assert len(asked) == 2


def test_a_server_too_busy_to_tell_keeps_the_slots_that_it_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = iter([1, 0])  # 0 is no answer in time
    monkeypatch.setattr(servers, "find_slots", lambda _: next(told))
    with pytest.raises(ModelError), turn_at("http://busy/v1", StopSignal()):
        raise ModelError("silent")
    with turn_at("http://busy/v1", StopSignal()):
        stop = StopSignal()
        stop.set()
        with pytest.raises(Stopped), turn_at("http://busy/v1", stop):
            pass


def test_a_person_says_how_many_calls_a_server_answers_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(servers, "find_slots", lambda _: 4)
    with turn_at("http://stated/v1", StopSignal(), stated=1):
        stop = StopSignal()
        stop.set()
        with pytest.raises(Stopped), turn_at("http://stated/v1", stop, stated=1):
            pass
    with turn_at("http://told/v1", StopSignal()), turn_at("http://told/v1", StopSignal()):
        pass


def count_free_slots(address: str, stated: int = 0) -> int:
    """Return how many more calls the server takes now."""
    stop = StopSignal()
    stop.set()
    with ExitStack() as held:
        for free in range(MAX_CONCURRENCY):
            try:
                held.enter_context(turn_at(address, stop, stated=stated))
            except Stopped:
                return free
    raise AssertionError("every call found a slot")


@pytest.mark.parametrize(("later", "free"), [(6, 3), (4, 1), (2, 0)])
def test_changed_slot_count_includes_calls_under_way(
    monkeypatch: pytest.MonkeyPatch, later: int, free: int
) -> None:
    address = f"http://changing-to-{later}/v1"
    counts = iter([4, later])
    monkeypatch.setattr(servers, "find_slots", lambda _: next(counts))
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(turn_at(address, StopSignal()))
        with pytest.raises(ModelError), turn_at(address, StopSignal()):
            raise ModelError("restarted")
        assert count_free_slots(address) == free
    assert count_free_slots(address) == later


def test_stated_slot_count_includes_calls_under_another_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = "http://stated-twice/v1"
    monkeypatch.setattr(servers, "find_slots", lambda _: 3)
    with turn_at(address, StopSignal(), stated=4), turn_at(address, StopSignal()):
        assert count_free_slots(address, stated=4) == 2
        assert count_free_slots(address, stated=1) == 0
        assert count_free_slots(address) == 1


@pytest.mark.parametrize(
    ("model", "address", "is_bound"),
    [
        ("tiny", "http://127.0.0.1:8080/v1", True),
        ("tiny", "http://[::1]:8080/v1", True),
        ("tiny", "http://192.168.1.20:8000/v1", True),
        ("tiny", "http://vllm:8000/v1", True),
        ("tiny", "https://models.lan/v1", True),
        ("hosted_vllm/tiny", "https://models.example.org/v1", True),
        ("ollama_chat/tiny", "", True),
        ("tiny", "https://models.example.org/v1", False),
        ("tiny", "http://8.8.8.8/v1", False),
        ("gpt-4.1-mini", "", False),
    ],
)
def test_only_a_server_of_ones_own_gets_the_schema_of_a_grammar(
    model: str, address: str, is_bound: bool
) -> None:
    """A hosted service may refuse a hundred choices where a bound of a number would do."""
    probability = {"type": "number", "minimum": 0, "maximum": 1}
    schema = {"type": "object", "properties": {"p": probability}, "required": ["p"]}
    call = Call(AgentConfig(model, address), (Message("user", "x"),), schema)
    request = chat_request(call, Keys({"OPENAI_API_KEY": "k"}), frozenset())
    sent = request["response_format"]["json_schema"]["schema"]
    assert ("enum" in sent["properties"]["p"]) == is_bound
