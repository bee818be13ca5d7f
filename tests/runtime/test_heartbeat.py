"""Heartbeats survive a failed beat and end with a lost lease."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from core.runtime.concurrency import repeat_meanwhile
from core.runtime.errors import ConflictError
from tests.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.timing
NO_PAUSE = 0.0  # seconds


def test_failed_beat_is_logged_and_repeated(caplog: pytest.LogCaptureFixture) -> None:
    beats: list[int] = []
    has_recovered = threading.Event()

    def beat() -> None:
        beats.append(len(beats))
        if len(beats) == 1:
            raise sqlite3.OperationalError("database is locked")
        has_recovered.set()

    with repeat_meanwhile(beat, NO_PAUSE):
        assert has_recovered.wait(PATIENCE_SECONDS)
    assert "database is locked" in caplog.text


def test_lost_lease_ends_the_beats() -> None:
    beats: list[int] = []

    def beat() -> None:
        beats.append(len(beats))
        raise ConflictError("the lease is lost")

    with repeat_meanwhile(beat, NO_PAUSE):
        wait_for(lambda: beats, "the first beat")
        wait_for(lambda: "heartbeat" not in {one.name for one in threading.enumerate()})
    assert beats == [0]
