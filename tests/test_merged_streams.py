"""Streams that run side by side on threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.runtime.concurrency import merge_streams
from tests.waiting import PATIENCE_SECONDS

ENDLESS = """
import threading
from core.runtime.concurrency import merge_streams
begun = threading.Semaphore(0)
def endless():
    begun.release()
    threading.Event().wait()
    yield
def consume():
    list(merge_streams([endless, endless]))
threading.Thread(target=consume, daemon=True).start()
begun.acquire(), begun.acquire()
"""


@pytest.mark.timing
def test_process_ends_while_streams_still_wait() -> None:
    root = Path(__file__).resolve().parent.parent
    subprocess.run([sys.executable, "-c", ENDLESS], cwd=root, check=True, timeout=PATIENCE_SECONDS)


def test_first_error_is_raised_after_all_streams_have_ended() -> None:
    may_end, ended = threading.Event(), list[bool]()

    def failing() -> Iterator[int]:
        yield 1
        may_end.set()
        raise ValueError("broken")

    def waiting() -> Iterator[int]:
        may_end.wait()
        yield 2
        ended.append(True)

    found: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        found.extend(merge_streams([failing, waiting]))
    assert (sorted(found), ended) == ([1, 2], [True])
