"""The one boundary to language models: any OpenAI-compatible address, any provider of litellm's.

Calls are streamed on a loop of their own; errors become our tree, without a trace of the
libraries', whose texts may repeat a key.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from core.llm.call import (
    Call,
    Completion,
    Message,
    Speak,
    bounded,
    is_on_own_server,
    provider_of,
    wire_name,
)
from core.llm.failures import Fault, Faults, Patience, first_answer
from core.llm.keys import NO_KEY, Keys, headers_for
from core.llm.limits import estimated_tokens, price_of, window_of
from core.llm.providers import StreamPiece, load, pieces, vectors
from core.llm.stream import streamed_from
from core.runtime.concurrency import Stop
from core.runtime.config import shown_safely
from core.runtime.errors import ModelError, ModelRefused, ReplyError
from core.schema.rosters import Seat

Put = Callable[[str], None]
Vector = Sequence[float]

FILTERED = "content_filter"
LATEST_COUNT = 5.0  # seconds after an answer's end, which is not lost with its count
LONGEST_ANSWER = 1_000_000  # characters, far beyond any token limit that a server keeps to


@dataclass(frozen=True)
class Embedded:
    """A vector for each text, with what they cost; fields as in `Completion`."""

    vectors: tuple[Vector, ...]
    tokens: int
    is_counted: bool
    cost: float | None
    seconds: float


class ModelClient:
    """Asks language models through litellm. Source of every word that a model says here."""

    def __init__(self, keys: Keys, patience: Patience | None = None) -> None:
        self._keys = keys
        self._patience = patience or Patience()

    def complete(self, call: Call, speak: Speak, stop: Stop) -> Completion:
        """The whole answer; `speak` is called in the caller's thread with pieces as they come.

        Raises:
            KeyMissing: a key is needed that is not at hand; nothing was sent.
            ConfigError: the key, the model's name or the address is wrong.
            ModelError: the service failed, after retries (ModelTimeout when it was silent).
            ModelRefused: the model or a filter declined.
            ReplyError: the answer is empty, or longer than any.
            Stopped: `stop` was set; the connection is closed by then.
        """

        def attempt(relaxed: frozenset[str]) -> Completion | Fault:
            request = chat_request(call, self._keys, relaxed)
            faults = self._faults(call.seat, request)
            answer = _Answer(call, request, faults, self._patience.longest(call.seat.seconds))
            return streamed_from(answer.streamed, speak, stop)

        stop.check()
        addressed(call.seat, self._keys)  # a missing key is said before the long import
        load(call.seat)
        return first_answer(attempt, call.seat, stop, self._patience)

    def embed(self, seat: Seat, texts: Sequence[str], stop: Stop) -> Embedded:
        """A vector for each text, in order.

        Raises:
            ReviewError: as `complete` does.
            ReplyError: a vector is missing.
        """
        request: dict[str, Any] = {**addressed(seat, self._keys), "input": list(texts)}
        request |= {"encoding_format": "float", "drop_params": True}
        faults = self._faults(seat, request)

        def attempt(relaxed: frozenset[str]) -> Embedded | Fault:
            work = _Embedding(seat, request, faults)
            return streamed_from(work.embedded, _unheard, stop)

        stop.check()
        load(seat)
        return first_answer(attempt, seat, stop, self._patience)

    def _faults(self, seat: Seat, request: Mapping[str, Any]) -> Faults:
        def hide(text: str) -> str:
            for key in keys_sent(request):
                text = text.replace(key, "…")
            return self._keys.scrubbed(text)

        return Faults(seat, self._keys, hide)


class _TooLong(Exception):
    """A stream has gone on beyond what any seat asks for."""


@dataclass
class _Heard:
    """What came of a stream so far."""

    said: list[str] = field(default_factory=list)
    length: int = 0
    events: int = 0
    refusal: str = ""
    finish: str | None = None
    counts: tuple[int, int] | None = None

    def hear(self, piece: StreamPiece) -> None:
        """Add one event's part."""
        self.events += 1
        if piece.words:
            self.said.append(piece.words)
            self.length += len(piece.words)
        self.refusal += piece.refusal
        self.finish = self.finish or piece.finish
        self.counts = piece.counts or self.counts

    @property
    def text(self) -> str:
        """All words that were said so far."""
        return joined(self.said)


@dataclass(frozen=True)
class _Answer:
    call: Call
    request: dict[str, Any]
    faults: Faults
    longest: float

    async def streamed(self, put: Put) -> Completion | Fault:
        """Hand on the pieces and return the whole; what fails is returned, never raised."""
        started = time.monotonic()
        heard = _Heard()
        try:
            async with asyncio.timeout(self.longest):
                await self._read(heard, put)
        except TimeoutError as late:
            silent = bool(late.args)
            seconds = self.call.seat.seconds if silent else self.longest
            error = self.faults.silent(seconds) if silent else self.faults.endless(seconds)
            return Fault(error)
        except _TooLong:
            return Fault(self.faults.too_long(LONGEST_ANSWER, heard.text))
        except Exception as error:  # noqa: BLE001 - whatever the providers' code raises
            return self.faults.of(error, self.request, has_begun=bool(heard.said))
        text = without_keys(heard.text, self.request)
        seconds = time.monotonic() - started
        return self._fault_in(text, heard) or self._whole(text, heard, seconds)

    async def _read(self, heard: _Heard, put: Put) -> None:
        """Read to the end. Once the end was said only a count can follow, which may be lost."""
        async with aclosing(pieces(self.call.seat, self.request)) as stream:
            while (piece := await self._within(anext(stream, None))) is not None:
                heard.hear(piece)
                if piece.words:
                    put(without_keys(shown_safely(piece.words), self.request))
                if heard.length > LONGEST_ANSWER:
                    raise _TooLong
                if heard.finish is not None:
                    break
            with suppress(Exception):
                async with asyncio.timeout(min(LATEST_COUNT, self.call.seat.seconds)):
                    async for piece in stream:
                        heard.hear(piece)

    async def _within(self, step: Any) -> Any:
        """One step of the stream, within the silence that the seat allows."""
        try:
            async with asyncio.timeout(self.call.seat.seconds):
                return await step
        except TimeoutError:
            raise TimeoutError("silence") from None

    def _fault_in(self, text: str, heard: _Heard) -> Fault | None:
        who, finish = self.faults.who, heard.finish
        if heard.refusal or finish == FILTERED:
            by = "declined to answer" if heard.refusal else "was cut off by its content filter"
            reply = without_keys(joined([heard.refusal]), self.request) or text
            words = f": {self.faults.quoted(ValueError(reply))}" if reply else ""
            return Fault(ModelRefused(f"{who} {by}{words}.", reply=reply))
        if not heard.events and not text:
            return self.faults.not_a_stream()
        if finish is None:
            return self.faults.broken_off("an end without a reason", has_begun=bool(text))
        if not text.strip():
            limit = self.call.seat.max_tokens
            why = f"its {limit} tokens went by without a word" if finish == "length" else "no words"
            return Fault(
                ReplyError(
                    f"Expected an answer from {who}, found an empty one: {why}. Ask again, or give "
                    "the seat more tokens.",
                    reply=text,
                )
            )
        return None

    def _whole(self, text: str, heard: _Heard, seconds: float) -> Completion:
        asked = sum(estimated_tokens(message.text) for message in self.call.messages)
        tokens = heard.counts or (asked, estimated_tokens(text))
        price = price_of(self.call.seat)
        cost = price.of(*tokens) if price else None
        end: Literal["length", "stop"] = "length" if heard.finish == "length" else "stop"
        return Completion(text, end, *tokens, heard.counts is not None, cost, seconds)


@dataclass(frozen=True)
class _Embedding:
    seat: Seat
    request: dict[str, Any]
    faults: Faults

    async def embedded(self, put: Put) -> Embedded | Fault:
        """The vectors; what fails is returned, never raised."""
        started = time.monotonic()
        texts = self.request["input"]
        try:
            async with asyncio.timeout(self.seat.seconds):
                rows = await vectors(self.seat, self.request)
        except TimeoutError:
            return Fault(self.faults.silent(self.seat.seconds))
        except Exception as error:  # noqa: BLE001 - whatever the providers' code raises
            return self.faults.of(error, self.request, has_begun=False)
        if len(rows.vectors) != len(texts) or len({len(row) for row in rows.vectors}) != 1:
            found = f"expected {len(texts)} vectors of one length, found {len(rows.vectors)}"
            return Fault(ModelError(f"{self.faults.who} answered with the wrong vectors: {found}."))
        tokens = rows.tokens or sum(estimated_tokens(text) for text in texts)
        price = price_of(self.seat)
        cost = price.of(tokens, 0) if price else None
        return Embedded(rows.vectors, tokens, rows.tokens > 0, cost, time.monotonic() - started)


def _unheard(piece: str) -> None:
    """Do nothing with a piece, for embeddings say nothing."""


OLLAMA = ("ollama", "ollama_chat")
SECRETS = ("api_key", "aws_secret_access_key", "aws_session_token")
SHORTEST_SECRET = 12
SPARE_SECONDS = 30  # litellm's own time-out lies behind ours, which tells where it was silent


def addressed(seat: Seat, keys: Keys) -> dict[str, Any]:
    """Who is asked, with which key, as every request of the seat says it.

    The key is always given: left out, litellm would take one from the environment, whose ever it
    is. Retries are our own.

    Raises:
        KeyMissing: a key is needed that is not at hand.
        ConfigError: the key belongs to somebody else, or cannot be one.
    """
    request: dict[str, Any] = {
        "model": wire_name(seat),
        "timeout": seat.seconds + SPARE_SECONDS,
        "max_retries": 0,
        "num_retries": 0,
        **keys.credentials(seat),
    }
    if seat.api_base:
        request["api_base"] = seat.api_base
    if headers := headers_for(seat, request.get("api_key", "")):
        request["extra_headers"] = headers
    return request


def chat_request(call: Call, keys: Keys, relaxed: frozenset[str]) -> dict[str, Any]:
    """The whole request; `relaxed` names the parts that this server is known to refuse."""
    seat = call.seat
    limit = "max_completion_tokens" if "max_tokens" in relaxed else "max_tokens"
    request = {
        **addressed(seat, keys),
        "messages": [_message(message) for message in call.messages],
        "temperature": seat.temperature,
        limit: seat.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "drop_params": True,
    }
    for part in ("temperature", "stream_options"):
        if part in relaxed:
            del request[part]
    if call.schema is not None and "schema" not in relaxed:
        schema = bounded(dict(call.schema)) if is_on_own_server(seat) else dict(call.schema)
        form = {"name": "reply", "schema": schema, "strict": _is_closed(call.schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": form}
    if provider_of(seat) in OLLAMA:
        # Ollama cuts what is longer than its window without a word, and its usual one is short.
        request["num_ctx"] = window_of(seat)
    return request


def without_keys(text: str, request: Mapping[str, Any]) -> str:
    """An answer without the keys of its request, which a server may well repeat.

    Short ones and plain words, as people give to servers of their own, are no secret.
    """
    for key in keys_sent(request):
        if len(key) >= SHORTEST_SECRET and any(char.isdigit() for char in key):
            text = text.replace(key, "…")
    return text


def keys_sent(request: Mapping[str, Any]) -> list[str]:
    """The secrets that the request carries."""
    found = [request.get(name) for name in SECRETS]
    return [key for key in found if key and key != NO_KEY]


def _message(message: Message) -> dict[str, Any]:
    if not message.pictures:
        return {"role": message.role, "content": message.text}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}]
    for picture in message.pictures:
        url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": message.role, "content": parts}


def _is_closed(schema: object) -> bool:
    """True when every object in the schema needs all its fields and allows no other.

    Only such a schema may be asked for strictly.
    """
    if isinstance(schema, list | tuple):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    is_open = schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False
        or set(schema.get("required", ())) != set(schema.get("properties", {}))
    )
    return not is_open and all(map(_is_closed, schema.values()))


def joined(pieces: Sequence[str]) -> str:
    """One text that can be stored: halves of a character that came apart are put together."""
    halves = "".join(pieces).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "replace")
