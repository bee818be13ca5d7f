"""The one way in which tests wait: for a condition, with one generous limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.01
Found = TypeVar("Found")


def wait_for(find: Callable[[], Found], what: str = "the condition") -> Found:
    """Return what `find` returns as soon as that is true; fail after the limit."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := find()):
        assert time.monotonic() < end, f"waited {PATIENCE_SECONDS:.0f} s for {what}"
        time.sleep(PAUSE_SECONDS)
    return found
