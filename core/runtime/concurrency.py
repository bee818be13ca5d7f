"""A stop that long work can wait on, event streams merged as they come, and imports left out."""

from __future__ import annotations

import contextlib
import functools
import queue
import sys
import threading
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from core.runtime.errors import Stopped


@contextlib.contextmanager
def without(package: str) -> Iterator[None]:
    """Inside, importing the package fails as if it were not installed; one loaded before stays.

    `None` in `sys.modules` is Python's own way to say so. Only for imports of libraries that
    allow for the package's absence.
    """
    if package in sys.modules:
        yield
        return
    modules = cast("dict[str, object]", sys.modules)
    modules[package] = None
    try:
        yield
    finally:
        if modules.get(package) is None:
            modules.pop(package, None)


Loaded = TypeVar("Loaded")


def loaded_once(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """The function, carried out once per process for an argument, by one thread at a time."""
    lock, kept = threading.Lock(), functools.lru_cache(maxsize=1)(load)

    @functools.wraps(load)
    def locked(*args: Hashable) -> Loaded:
        with lock:
            return kept(*args)

    return locked


Item = TypeVar("Item")
Result = TypeVar("Result")


class Stop:
    """Set once, from any thread; checked by everything that takes longer than a blink."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def set(self) -> None:
        """Ask for the stop and run what was registered, e.g. closing a stream."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def is_set(self) -> bool:
        """True once somebody has asked for the stop."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Stopped` if the stop was asked for."""
        if self._event.is_set():
            raise Stopped("The run was stopped.")

    def wait(self, seconds: float) -> None:
        """Sleep that a stop cuts short; raises `Stopped` then."""
        self._event.wait(seconds)
        self.check()

    def on_stop(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the stop comes (at once if it already has).

        What is returned takes the callback back: a run makes many calls, each with its own.
        """

        def take_back() -> None:
            with self._lock:
                self._callbacks = [kept for kept in self._callbacks if kept is not callback]

        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return take_back
        callback()
        return take_back


@dataclass(frozen=True)
class _Done:
    """Marks the end of a stream, with what it returned or what ended it."""

    result: Any = None
    error: BaseException | None = None


Report = Callable[[Item], None]


def _carry_out(
    call: Callable[[Report[Item]], object], arrivals: queue.SimpleQueue[Item | _Done]
) -> None:
    """Run a call in this thread; what it reports and how it ends go on the queue."""
    try:
        end = _Done(call(arrivals.put))
    except BaseException as error:  # noqa: BLE001 - carried over to the reader's thread
        end = _Done(error=error)
    arrivals.put(end)


def merged(streams: Sequence[Callable[[], Iterator[Item]]], *, workers: int = 4) -> Iterator[Item]:
    """Run the streams on threads and yield their items as they arrive.

    The first error is raised after all streams have ended, so that none is left running.
    """
    if len(streams) == 1:
        yield from streams[0]()
        return

    def report_all(stream: Callable[[], Iterator[Item]], report: Report[Item]) -> None:
        for item in stream():
            report(item)

    arrivals: queue.SimpleQueue[Item | _Done] = queue.SimpleQueue()
    failure: BaseException | None = None
    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(streams)))) as pool:
        for stream in streams:
            pool.submit(_carry_out, functools.partial(report_all, stream), arrivals)
        for _ in range(len(streams)):
            while not isinstance(item := arrivals.get(), _Done):
                yield item
            failure = failure or item.error
    if failure is not None:
        raise failure


def streamed(call: Callable[[Report[Item]], Result]) -> Generator[Item, None, Result]:
    """Run `call(report)` on a thread, yield what it reports as it does, return what it returns.

    Leaving the generator early does not stop the call: it must watch a `Stop` for that.
    """
    arrivals: queue.SimpleQueue[Item | _Done] = queue.SimpleQueue()
    thread = threading.Thread(target=_carry_out, args=(call, arrivals), daemon=True)
    thread.start()
    while not isinstance(item := arrivals.get(), _Done):
        yield item
    thread.join()
    if item.error is not None:
        raise item.error
    return cast(Result, item.result)
