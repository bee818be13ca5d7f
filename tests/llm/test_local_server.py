"""The small model in the box: its server starts when it is asked for, and never outlives us."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from core.llm import local_server
from core.llm.local_server import MODEL, WINDOW, LocalServer, find_weights
from core.llm.servers import ServedModel, find_servers
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError, ModelTimeout, Stopped
from tests.waiting import PATIENCE_SECONDS, wait_for

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


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's process starts and never listens."""
    command = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
    monkeypatch.setattr(local_server, "_find_command", lambda: command)


@pytest.mark.usefixtures("hanging")
def test_a_start_that_takes_too_long_is_given_up() -> None:
    server = LocalServer(seconds=0.0)
    for _ in range(2):  # the second call starts it again
        with pytest.raises(ModelTimeout, match="to start within 0 seconds"):
            server.address()
    server.close()


@pytest.mark.usefixtures("hanging")
def test_stop_ends_the_wait_for_a_start(server: LocalServer) -> None:
    stop = StopSignal()
    with ThreadPoolExecutor(1) as pool:
        address = pool.submit(server.address, stop)
        wait_for(lambda: server._child, "the process")
        stop.set()
        assert isinstance(address.exception(PATIENCE_SECONDS), Stopped)


@pytest.mark.usefixtures("hanging")
def test_close_ends_a_start(server: LocalServer) -> None:
    with ThreadPoolExecutor(1) as pool:
        address = pool.submit(server.address)
        wait_for(lambda: server._child, "the process")
        server.close()
        assert isinstance(address.exception(PATIENCE_SECONDS), ModelError)


def test_without_its_packages_it_says_how_to_get_them(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="make local-model"):
        server.address()
