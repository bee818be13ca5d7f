"""Listens to a provider's raw stream beneath litellm, which drops or invents some of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

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
    """The stream itself, as far as litellm can tell."""

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
    """True when both figures are whole numbers; what they say is looked at elsewhere."""
    figures = (_of(usage, "prompt_tokens"), _of(usage, "completion_tokens"))
    return all(isinstance(figure, int) for figure in figures)


def _leave_out(event: Any, name: str) -> None:
    if isinstance(event, dict):
        event[name] = None
    else:
        setattr(event, name, None)


def joined(pieces: Sequence[str]) -> str:
    """One text that can be stored: halves of a character that came apart are put together."""
    halves = "".join(pieces).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "replace")
