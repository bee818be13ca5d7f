"""A stop signal for long work, streams of events from threads, and blocked or cached imports."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from core.runtime.errors import ConflictError, Stopped

Loaded = TypeVar("Loaded")
Item = TypeVar("Item")
Result = TypeVar("Result")
ItemReporter = Callable[[Item], None]
LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def block_import(package: str) -> Iterator[None]:
    """Make importing the package fail inside the block, unless it is already loaded.

    `None` in `sys.modules` is Python's own way to do this. Use it only around imports of libraries
    that work without the package.
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


def cache_load(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Cache the last result of a function, which then runs in one thread at a time."""
    lock = threading.Lock()
    cached = functools.lru_cache(maxsize=1)(load)

    @functools.wraps(load)
    def locked(*args: Hashable) -> Loaded:
        with lock:
            return cached(*args)

    return locked


def count_threads(most: int) -> int:
    """Return how many threads one reader or encoder uses: at most one for each processor.

    OMP_NUM_THREADS sets fewer, as for other libraries; Ray sets it to what a worker was lent.
    """
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(most, int(stated) if stated.isdecimal() else os.cpu_count() or 1))


@functools.cache
def choose_product_precision(processor: Path = Path("/proc/cpuinfo")) -> str:
    """Return onnxruntime's `session.x64quantprecision`: "1" if sums of 8-bit products may saturate.

    They do on processors without VNNI, and verdicts would differ there. With VNNI they are exact,
    and the exact way for other processors gives the same figures at half the speed.
    """
    try:
        return "0" if "vnni" in processor.read_text(encoding="utf-8") else "1"
    except OSError:  # not Linux
        return "1"


class StopSignal:
    """A stop signal: set once, from any thread, and checked by all long work."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def set(self) -> None:
        """Request the stop and run the registered callbacks, such as closing a stream."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def is_set(self) -> bool:
        """True once a stop was requested."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Stopped` if a stop was requested."""
        if self._event.is_set():
            raise Stopped("The run was stopped.")

    def wait(self, seconds: float) -> None:
        """Sleep for so many seconds; raise `Stopped` as soon as a stop is requested."""
        self._event.wait(seconds)
        self.check()

    def on_stop(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call the callback on a stop (at once if it was already requested).

        Return a function that unregisters it: a run makes many calls, each with its own callback.
        """

        def unregister() -> None:
            with self._lock:
                self._callbacks = [
                    registered for registered in self._callbacks if registered is not callback
                ]

        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return unregister
        callback()
        return unregister


@dataclass(frozen=True)
class _StreamEnd:
    """The end of a stream, with the returned value or the error that ended it."""

    result: Any = None
    error: BaseException | None = None


def _run_call(
    call: Callable[[ItemReporter[Item]], object], arrivals: queue.SimpleQueue[Item | _StreamEnd]
) -> None:
    """Run a call in this thread; put its items and then its end on the queue."""
    try:
        end = _StreamEnd(call(arrivals.put))
    except BaseException as error:  # noqa: BLE001 - carried over to the reader's thread
        end = _StreamEnd(error=error)
    arrivals.put(end)


def _report_items(stream: Callable[[], Iterator[Item]], report: ItemReporter[Item]) -> None:
    for item in stream():
        report(item)


def merge_streams(
    streams: Sequence[Callable[[], Iterator[Item]]], *, workers: int = 4
) -> Iterator[Item]:
    """Run the streams on threads and yield their items as they arrive.

    The first error is raised after all streams have ended, so that none is left running. The
    threads do not keep the process from ending, as those of a pool would.
    """
    if len(streams) == 1:
        yield from streams[0]()
        return

    waiting = collections.deque(streams)
    arrivals: queue.SimpleQueue[Item | _StreamEnd] = queue.SimpleQueue()
    failure: BaseException | None = None

    def work() -> None:
        with contextlib.suppress(IndexError):  # none waits any more
            while True:
                _run_call(functools.partial(_report_items, waiting.popleft()), arrivals)

    count = max(1, min(workers, len(streams)))
    threads = [threading.Thread(target=work, daemon=True, name="stream") for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(len(streams)):
            while not isinstance(item := arrivals.get(), _StreamEnd):
                yield item
            failure = failure or item.error
    finally:
        waiting.clear()
        for thread in threads:
            thread.join()
    if failure is not None:
        raise failure


def stream_call(call: Callable[[ItemReporter[Item]], Result]) -> Generator[Item, None, Result]:
    """Run `call(report)` on a thread, yield what it reports, and return its result.

    Leaving the generator early does not stop the call: it must watch a `StopSignal` for that.
    """
    arrivals: queue.SimpleQueue[Item | _StreamEnd] = queue.SimpleQueue()
    thread = threading.Thread(target=_run_call, args=(call, arrivals), daemon=True)
    thread.start()
    while not isinstance(item := arrivals.get(), _StreamEnd):
        yield item
    thread.join()
    if item.error is not None:
        raise item.error
    return cast(Result, item.result)


@contextlib.contextmanager
def repeat_meanwhile(call: Callable[[], None], seconds: float) -> Iterator[None]:
    """Make the call every so many seconds, on a thread, until the block ends.

    A call that fails is logged and made again: one busy moment of the database must not end a
    lease. ConflictError ends the calls: the lease is lost.
    """
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            try:
                call()
            except ConflictError as error:
                LOGGER.warning("the heartbeat ended: %s", error)
                return
            except Exception as error:  # noqa: BLE001 - the next call may succeed
                LOGGER.error("the heartbeat missed a beat: %r", error)

    thread = threading.Thread(target=repeat, daemon=True, name="heartbeat")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def pause_collector() -> Iterator[None]:
    """Keep Python from looking for garbage while very many records are made.

    It would look through all of them again and again: a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
