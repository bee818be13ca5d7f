"""A stop signal calls back who asked for it, and nobody who has taken that back."""

from __future__ import annotations

from core.runtime.concurrency import Stop


def test_a_callback_that_was_taken_back_is_not_called() -> None:
    stop = Stop()
    called: list[str] = []
    stop.on_stop(lambda: called.append("first"))
    take_back = stop.on_stop(lambda: called.append("second"))
    take_back()
    take_back()
    stop.set()
    assert called == ["first"]


def test_a_late_callback_is_called_at_once_and_taking_it_back_is_harmless() -> None:
    stop = Stop()
    stop.set()
    called: list[str] = []
    take_back = stop.on_stop(lambda: called.append("late"))
    take_back()
    stop.set()
    assert called == ["late"]
