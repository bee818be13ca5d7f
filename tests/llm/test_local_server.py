"""The small model in the box: its server starts when it is asked for, and never outlives us."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from core.llm import local_server
from core.llm.local_server import MODEL, WINDOW, LocalServer, find_weights
from core.llm.servers import ServedModel, find_servers
from core.runtime.errors import ModelError
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

needs_model = pytest.mark.skipif(find_weights() is None, reason="`make local-model` was not run")


@pytest.fixture
def server() -> Iterator[LocalServer]:
    """A server that has not started."""
    server = LocalServer()
    yield server
    server.close()


def answers(address: str) -> bool:
    """Whether a server of models is there."""
    return bool(find_servers({"It": urlsplit(address).port or 0}))


@needs_model
def test_it_starts_once_and_speaks(server: LocalServer) -> None:
    address = server.address()
    assert server.address() == address
    (found,) = find_servers({"It": urlsplit(address).port or 0})
    assert found.models == (ServedModel(MODEL, WINDOW),)
    asked = {"model": MODEL, "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}
    reply = httpx.post(f"{address}/chat/completions", json=asked, timeout=60).json()
    assert reply["choices"][0]["message"]["content"]
    assert 0 < reply["usage"]["completion_tokens"] <= 8


@needs_model
def test_one_that_was_killed_is_started_again(server: LocalServer) -> None:
    first = server.address()
    server.close()
    assert not answers(first)
    assert answers(server.address())


@needs_model
def test_it_ends_with_a_program_that_is_killed() -> None:
    code = (
        "import time; from core.llm.local_server import SERVER\n"
        "print(SERVER.address(), flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        address = program.stdout.readline().decode().strip()
        assert answers(address)
        program.send_signal(signal.SIGKILL)
    wait_for(lambda: not answers(address), "the server's end")


def test_without_its_packages_it_says_how_to_get_them(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="make local-model"):
        server.address()
