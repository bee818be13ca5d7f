"""The loop on which calls to language models run side by side."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, TypeVarTuple, cast

from core.runtime.concurrency import StopSignal

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Put = Callable[[str], None]

UNWINDING = 0.4  # seconds that a stopped call gets to close its connection


@dataclass(frozen=True)
class _End(Generic[T]):
    result: T | None = None
    error: BaseException | None = None


class _TidyLoop(asyncio.SelectorEventLoop):
    """A loop that closes coroutines made for a task that was cancelled meanwhile.

    litellm prepares each request in a thread, which hands back a coroutine that is to send it. At
    a Stop in between nobody would await that coroutine, or close it.
    """

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As the base's; a coroutine that comes of it and is not begun at once is closed."""
        made: list[Coroutine[Any, Any, Any]] = []

        def close_unbegun() -> None:
            for each in made:
                if inspect.getcoroutinestate(each) == inspect.CORO_CREATED:
                    each.close()

        def close_unwanted() -> None:
            if future.cancelled():
                close_unbegun()

        def make() -> T:
            result = func(*args)
            if inspect.iscoroutine(result):
                made.append(result)
                try:
                    self.call_soon_threadsafe(close_unwanted)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    close_unbegun()
            return result

        future = super().run_in_executor(executor, make)
        # Whoever awaits the future is told right after this callback, so begins it before the next.
        future.add_done_callback(lambda _: self.call_soon(close_unbegun))
        return future


class _Loop:
    """An event loop on its own thread; it ends with the process."""

    def __init__(self) -> None:
        self._loop = _TidyLoop()
        self._thread = threading.Thread(target=self._serve, name="model calls", daemon=True)
        self._thread.start()
        # A daemon thread is frozen where it stands: its tasks would complain as they are collected.
        # Plain atexit comes only after the threads of pools have ended, which wait for us.
        getattr(threading, "_register_atexit", atexit.register)(self.close)

    def soon(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # closed
            self._loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        """Cancel what runs and end the thread."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(_in_silence)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=1.0))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


@lru_cache(maxsize=1)
def _shared() -> _Loop:
    return _Loop()


_STARTING = threading.Lock()


class _Work(Generic[T]):
    """One task on the loop, as its caller's thread sees it."""

    def __init__(self, work: Callable[[Put], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._arrivals: queue.SimpleQueue[str | _End[T]] = queue.SimpleQueue()
        self._task: asyncio.Task[T] | None = None
        with _STARTING:
            self._loop = _shared()
        self._loop.soon(self._start)

    def cancel(self) -> None:
        """Ask the work to end; callable from any thread, harmless after its end."""
        self._loop.soon(self._cancel)

    def next(self) -> str | _End[T]:
        return self._arrivals.get()

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work(self._arrivals.put))
        self._task.add_done_callback(self._ended)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        # What cannot be cancelled (a provider's own threads) must not hold up who pressed Stop.
        end: _End[T] = _End(error=asyncio.CancelledError())
        asyncio.get_running_loop().call_later(UNWINDING, self._arrivals.put, end)

    def _ended(self, task: asyncio.Task[T]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._arrivals.put(_End(error=error) if error else _End(task.result()))


def run_streamed(
    work: Callable[[Put], Coroutine[Any, Any, T]], speak: Callable[[str], None], stop: StopSignal
) -> T:
    """Run the work on the loop; call `speak` in the caller's thread with what it puts.

    Raises Stopped: `stop` was set; the work has been cancelled and has unwound by then; SystemExit:
    the program is ending.
    """
    stop.check()
    running = _Work(work)
    take_back = stop.on_stop(running.cancel)
    try:
        while not isinstance(item := running.next(), _End):
            if not stop.is_set:
                speak(item)
    except BaseException:
        running.cancel()  # whoever listens has failed: nobody wants the rest
        raise
    finally:
        take_back()
    stop.check()
    if isinstance(item.error, asyncio.CancelledError):
        # Nobody pressed Stop: a run that is cut off so counts as interrupted and can go on later.
        raise SystemExit("The program is ending.")
    if item.error is not None:
        raise item.error
    return cast(T, item.result)


def _in_silence(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore the failures of tasks that libraries leave behind."""
