"""Asks again where that may help: after a while, or without what a server does not know."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from core.concurrency import Stop
from core.errors import ModelError, ReviewError
from core.models.faults import AGAIN, Fault
from core.seats import Seat

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How often and how long: `backoff` and `longest_wait` in seconds.

    `overall` says how many times its seat's longest silence a whole call may take.
    """

    tries: int = 3
    backoff: float = 1.0
    longest_wait: float = 30.0
    overall: float = 10.0

    def longest(self, silence: float) -> float:
        """The seconds that a call may take in all."""
        return silence * self.overall


class _Relaxed:
    """Which parts of a request each server was found to refuse, while this process lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, seat: Seat) -> frozenset[str]:
        with self._lock:
            return self._parts.get((seat.model, seat.api_base), frozenset())

    def keep(self, seat: Seat, parts: frozenset[str]) -> None:
        with self._lock:
            known = self._parts.get((seat.model, seat.api_base), frozenset())
            self._parts[seat.model, seat.api_base] = known | parts


_RELAXED = _Relaxed()


def first_answer(
    attempt: Callable[[frozenset[str]], T | Fault], seat: Seat, stop: Stop, patience: Patience
) -> T:
    """What the first attempt with an answer gave.

    `attempt` is told which parts of the request to leave out. Only what failed before its first
    word is tried again, and only where the fault says that this may help.

    Raises:
        ReviewError: the last attempt's.
        Stopped: `stop` was set, also while waiting.
    """
    relaxed = _RELAXED.of(seat)
    tries = 0
    is_unbilled = True
    while isinstance(found := attempt(relaxed), Fault):
        stop.check()
        is_unbilled = is_unbilled and found.is_unbilled
        if found.relax and found.relax not in relaxed:
            relaxed |= {found.relax}
            continue
        tries += 1
        error, pause = _after(found, tries, patience)
        if isinstance(error, ModelError):
            error.is_unbilled = is_unbilled
        if pause is None:
            raise error
        stop.wait(pause)
    if relaxed:
        # Only now: the refusal may have had another cause, which an answer rules out.
        _RELAXED.keep(seat, relaxed)
    return found


def _after(fault: Fault, tries: int, patience: Patience) -> tuple[ReviewError, float | None]:
    """What to raise if this was the last attempt, and the seconds until another, None for none."""
    error = fault.error
    words = str(error).removesuffix(AGAIN)
    if not fault.is_passing:
        return error, None
    if fault.wait is not None and fault.wait > patience.longest_wait:
        asks = f"It asks to be left alone for {fault.wait:.0f} seconds"
        most = f"longer than the {patience.longest_wait:g} that a run waits"
        return ModelError(f"{words} {asks}, {most}. Check again then."), None
    if tries >= patience.tries:
        return ModelError(f"{words} That was attempt {tries}.{AGAIN}"), None
    wait = patience.backoff * 2.0 ** (tries - 1) if fault.wait is None else fault.wait
    return error, min(wait, patience.longest_wait)
