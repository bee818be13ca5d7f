"""Stored records come back from several threads at once, even the first time."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from core.runtime.concurrency import pause_collector
from tests.test_architecture import ROOT
from tests.waiting import PATIENCE_SECONDS

FIRST_USE = """
import sys, threading
sys.setswitchinterval(1e-6)
from core.store.sqlite import EVENT_TYPES, event_from_json, from_json, DECODERS
from core.runtime.errors import InputError
barrier = threading.Barrier(4)
def go():
    barrier.wait()
    for kind in EVENT_TYPES:
        try:
            event_from_json(kind, '{"at": 1.0}')
        except InputError:
            pass
    for kind in DECODERS:
        try:
            from_json(kind, "{}")
        except InputError:
            pass
threads = [threading.Thread(target=go) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("whole")
"""


def test_the_first_use_may_come_from_several_threads_at_once() -> None:
    """Found as pages that hung or a server that crashed when two tabs opened on a fresh server."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_USE],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, "whole"), done.stderr[-500:]


def test_the_collector_goes_on_after_a_pause_that_fails() -> None:
    with pytest.raises(ValueError, match="broken"), pause_collector(), pause_collector():
        assert not gc.isenabled()
        raise ValueError("broken")
    assert gc.isenabled()
