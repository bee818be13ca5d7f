"""The loop on which calls run: it keeps nobody waiting, neither at a stop nor at the end."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from core.llm.stream import Put, streamed_from
from core.runtime.concurrency import Stop
from core.runtime.errors import Stopped
from tests.llm.loopback import Reply, loopback

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
