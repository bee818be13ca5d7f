"""The loop on which calls run side by side, and the provider's raw stream beneath litellm.

The raw stream is read here because litellm drops or invents some of it.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import queue
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, TypeVarTuple, cast

from core.runtime.concurrency import Stop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Put = Callable[[str], None]

UNWINDING = 0.4  # seconds that a stopped call gets to close its connection


@dataclass(frozen=True)
class _End(Generic[T]):
    result: T | None = None
    error: BaseException | None = None


class _TidyLoop(asyncio.SelectorEventLoop):
    """Closes what a thread made for a task that was cancelled meanwhile.

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
    """The loop and its thread; it ends with the process, leaving no task behind."""

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
    """One piece of work on the loop, as its caller's thread sees it."""

    def __init__(self, work: Callable[[Put], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._arrivals: queue.SimpleQueue[str | _End[T]] = queue.SimpleQueue()
        self._task: asyncio.Task[T] | None = None
        with _STARTING:
            self._loop = _shared()
        self._loop.soon(self._start)

    def cancel(self) -> None:
        """Ask the work to end; callable from any thread, harmless when it is over."""
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


def streamed_from(
    work: Callable[[Put], Coroutine[Any, Any, T]], speak: Callable[[str], None], stop: Stop
) -> T:
    """Run the work on the loop; what it puts is spoken in the caller's thread as it comes.

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
    """Libraries leave tasks of their own behind; what failed in them is nobody's answer."""


CHAT = "ChatCompletionChunk"  # what the library makes of an event; text completions have others
# Gemini's own words for an end, outside of any text, whose quotation marks are escaped.
ENDED = re.compile(r'"(?:finishReason|blockReason)"\s*:\s*"')


class Tap:
    """What went by in a stream: how many events, a refusal, an end, a count of tokens.

    litellm drops the `refusal` field, ends a stream that broke off with a reason of its own, and
    reports tokens that nobody counted. The API's own stream is read here without litellm, which
    makes five objects of every event to hand on the one string in it: half of its work a call.
    """

    def __init__(self) -> None:
        self.events = 0
        self.refusal = ""
        self.finish: str | None = None
        self.usage: Any = None
        self.told: Any = None  # by litellm, which sums up what some providers count in parts
        self._wrapper: Any = None
        self._events: AsyncIterator[Any] | None = None
        self._is_plain = False
        self._may_end = True

    def onto(self, wrapper: Any) -> None:
        """Put the tap between litellm's wrapper and the stream it reads."""
        self._wrapper, stream = wrapper, wrapper.completion_stream
        is_openais = type(stream).__module__.partition(".")[0] == "openai"
        made_into = getattr(stream, "_cast_to", None)
        self._is_plain = is_openais and getattr(made_into, "__name__", "") == CHAT
        if self._is_plain:
            stream._cast_to = object  # the library's own word for: events as they come, unparsed
        if hasattr(stream, "__aiter__"):
            wrapper.completion_stream = self._events = _Tapped(stream, self)
        elif make := getattr(wrapper, "make_call", None):

            async def made(**named: Any) -> _Tapped:
                return self._opened(await make(**named))

            wrapper.make_call = made

    def _opened(self, stream: Any) -> _Tapped:
        """A stream that litellm opens with its first event, tapped.

        Of Gemini's it says of every event that it was the last: here what the lines say counts.
        """
        if "gemini" in type(stream).__module__ and hasattr(stream, "streaming_response"):
            self._may_end = False
            stream.streaming_response = self._lines(stream.streaming_response)
        return _Tapped(stream, self)

    async def _lines(self, lines: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for line in lines:
            self._may_end = self._may_end or ENDED.search(str(line)) is not None
            yield line

    async def words(self) -> str | None:
        """The next words, empty where an event has none; None at the end of the stream."""
        if not self._is_plain or self._events is None:
            return await self._words_by_litellm()
        try:
            return _words_in(await anext(self._events))
        except StopAsyncIteration:
            return None
        except Exception as error:
            self._wrapper._handle_stream_fallback_error(error)  # raises it, as litellm tells it
            raise

    async def _words_by_litellm(self) -> str | None:
        chunk = await anext(self._wrapper, None)
        if chunk is None:
            return None
        self.told = getattr(chunk, "usage", None) or self.told
        return (chunk.choices and chunk.choices[0].delta.content) or ""

    @property
    def counts(self) -> tuple[int, int] | None:
        """Tokens read and written, as litellm sums them up; None where the provider named none."""
        if not self.is_counted:
            return None
        usage = self.told or self.usage
        return int(_of(usage, "prompt_tokens")), int(_of(usage, "completion_tokens"))

    @property
    def is_counted(self) -> bool:
        """True when the provider itself said how many tokens there were."""
        return self.usage is not None

    @property
    def has_said_all(self) -> bool:
        """True when nothing but a count can follow, in the API's own stream, which says so."""
        return self._is_plain and self.finish is not None

    async def rest(self, seconds: float) -> str:
        """Hear out what is left of the stream, so that its connection can be used again.

        Returns words that came after the end, which there should be none of. A stream that breaks
        now, or goes on for more than so many seconds, has said all: only its count may be missing.
        """
        late: list[str] = []
        if self._events is not None:
            with suppress(Exception):
                async with asyncio.timeout(seconds):
                    async for event in self._events:
                        late.append(_words_in(event))
        return "".join(late)

    def hear(self, event: Any) -> None:
        """Take note of one event, whichever shape the provider's code gave it."""
        self.events += 1
        usage = _of(event, "usage")
        if usage is not None and _are_counts(usage):
            self.usage = usage
        elif usage is not None:
            _leave_out(event, "usage")  # litellm would lose the whole answer over it
        for choice in _of(event, "choices") or ():
            delta = _of(choice, "delta")
            self.refusal += str(_of(delta, "refusal") or "")
            if self._may_end:
                self.finish = _of(choice, "finish_reason") or self.finish


class _Tapped:
    def __init__(self, stream: Any, tap: Tap) -> None:
        self._stream = stream
        self._events: AsyncIterator[Any] = aiter(stream)
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Tapped:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        self._tap.hear(event)
        return event


def _words_in(event: Any) -> str:
    """What an event adds to the answer: the first choice's words."""
    for choice in _of(event, "choices") or ():
        words = _of(_of(choice, "delta"), "content")
        return words if isinstance(words, str) else ""
    return ""


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _are_counts(usage: Any) -> bool:
    figures = (_of(usage, "prompt_tokens"), _of(usage, "completion_tokens"))
    return all(isinstance(figure, int) for figure in figures)


def _leave_out(event: Any, name: str) -> None:
    if isinstance(event, dict):
        event[name] = None
    else:
        setattr(event, name, None)
