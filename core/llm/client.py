"""The one boundary to language models: any OpenAI-compatible address, any provider of litellm's.

Calls are streamed on a loop of their own; errors become our tree, without a trace of the
libraries', whose texts may repeat a key.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from core.llm.call import (
    Call,
    Completion,
    Message,
    Speak,
    bound_schema,
    decodes_by_grammar,
    is_on_own_server,
    provider_of,
    strip_bounds,
    wire_name,
)
from core.llm.failures import CallFault, FaultReader, RetryPolicy, answer_with_retries
from core.llm.keys import NO_KEY, Keys, headers_for
from core.llm.limits import estimate_tokens, price_of, window_of, worst_case
from core.llm.providers import (
    StreamPiece,
    call_when_written,
    embed_texts,
    import_client,
    own_address,
    stream_pieces,
)
from core.llm.rate_limit import await_turn
from core.llm.servers import turn_at
from core.llm.stream import run_streamed
from core.runtime.concurrency import StopSignal
from core.runtime.config import replace_invalid_bytes
from core.runtime.errors import ModelError, ModelRefused, ReplyError
from core.schema.rosters import MAX_CONCURRENCY, AgentConfig

Put = Callable[[str], None]
Turn = Callable[[], Awaitable[Callable[[], None]]]
Vector = Sequence[float]

FILTERED = "content_filter"
CUT_OFF = ("length", "model_length", "max_tokens")  # reasons to end of OpenAI, Mistral, Anthropic
LATEST_COUNT = 5.0  # seconds after an answer's end, which is not lost with its count
READING_TIME = 60  # seconds in which a laptop without a graphics card reads so many tokens:
READ_IN_TIME = 1200
LONGEST_ANSWER = 1_000_000  # characters, far beyond any token limit that a server keeps to


@dataclass(frozen=True)
class Embeddings:
    """A vector for each text, with the cost; fields as in `Completion`."""

    vectors: tuple[Vector, ...]
    tokens: int
    is_counted: bool
    cost: float | None
    seconds: float


class ModelClient:
    """Calls language models; every word of a model in this program comes from here."""

    def __init__(
        self, keys: Keys, retry_policy: RetryPolicy | None = None, requests_per_second: int = 0
    ) -> None:
        """Create a client; so many requests a second go to a provider without a rate of its own."""
        self._keys = keys
        self._requests_per_second = requests_per_second
        self._retry_policy = retry_policy or RetryPolicy()

    def complete(self, call: Call, speak: Speak, stop: StopSignal) -> Completion:
        """Return the whole answer; call `speak` in the caller's thread with pieces as they arrive.

        Raises:
            KeyMissing: a key is needed that is not at hand; nothing was sent.
            ConfigError: the key, the model's name or the address is wrong.
            ModelError: the service failed, after retries (ModelTimeout when it was silent).
            ModelRefused: the model or a filter declined.
            ReplyError: the answer is empty, or longer than any.
            Stopped: `stop` was set; the connection is closed by then.
        """
        turn = partial(await_turn, call.agent, worst_case(call).tokens, self._requests_per_second)

        def attempt(relaxed: frozenset[str]) -> Completion | CallFault:
            request = chat_request(call, self._keys, relaxed)
            faults = self._faults(call.agent, request)
            longest = self._retry_policy.longest(call.agent.seconds) + reading_seconds(call)
            answer = _Answer(call, request, faults, longest, turn)
            return run_streamed(answer.streamed, speak, stop)

        stop.check()
        base_request(call.agent, self._keys)  # a missing key is said before the long import
        import_client(call.agent)
        own = own_address(call.agent, stop)
        usual = 1 if provider_of(call.agent) in OLLAMA else MAX_CONCURRENCY  # Ollama's own default
        with turn_at(own, stop, usual, call.agent.concurrency) if own else nullcontext():
            return answer_with_retries(attempt, call.agent, stop, self._retry_policy)

    def embed(self, agent: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
        """Return a vector for each text, in order.

        Raises:
            ReviewError: as `complete` does.
            ReplyError: a vector is missing.
        """
        request: dict[str, Any] = {**base_request(agent, self._keys), "input": list(texts)}
        request |= {"encoding_format": "float", "drop_params": True}
        faults = self._faults(agent, request)
        tokens = sum(map(estimate_tokens, texts))
        turn = partial(await_turn, agent, tokens, self._requests_per_second)

        def attempt(relaxed: frozenset[str]) -> Embeddings | CallFault:
            work = _Embedding(agent, request, faults, turn)
            return run_streamed(work.embedded, _unheard, stop)

        stop.check()
        import_client(agent)
        return answer_with_retries(attempt, agent, stop, self._retry_policy)

    def _faults(self, agent: AgentConfig, request: Mapping[str, Any]) -> FaultReader:
        def hide(text: str) -> str:
            for key in secrets_in(request):
                text = text.replace(key, "…")
            return self._keys.scrubbed(text)

        return FaultReader(agent, self._keys, hide)


class _TooLong(Exception):
    """Raised when a stream goes on beyond any token limit."""


@dataclass
class _StreamBuffer:
    """What a stream has delivered so far."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    events: int = 0
    refusal: str = ""
    finish: str | None = None
    counts: tuple[int, int] | None = None

    def add(self, piece: StreamPiece) -> None:
        """Add one event."""
        self.events += 1
        if piece.words:
            self.pieces.append(piece.words)
            self.length += len(piece.words)
        self.refusal += piece.refusal
        self.finish = self.finish or ("length" if piece.finish in CUT_OFF else piece.finish)
        self.counts = piece.counts or self.counts

    @property
    def text(self) -> str:
        """The text so far."""
        return join_pieces(self.pieces)


@dataclass(frozen=True)
class _Answer:
    call: Call
    request: dict[str, Any]
    faults: FaultReader
    longest: float
    turn: Turn

    async def streamed(self, put: Put) -> Completion | CallFault:
        """Pass pieces on and return the whole answer; failures are returned, not raised."""
        call_when_written(await self.turn())
        started = time.monotonic()
        buffer = _StreamBuffer()
        try:
            async with asyncio.timeout(self.longest):
                await self._read(buffer, put)
        except TimeoutError as late:
            if late.args:
                return CallFault(self.faults.silent(round(late.args[1])))
            return CallFault(self.faults.endless(self.longest))
        except _TooLong:
            return CallFault(self.faults.too_long(LONGEST_ANSWER, buffer.text))
        except Exception as error:  # noqa: BLE001 - whatever the providers' code raises
            return self.faults.of(error, self.request, has_begun=bool(buffer.pieces))
        text = without_keys(buffer.text, self.request)
        seconds = time.monotonic() - started
        return self._fault_in(text, buffer) or self._whole(text, buffer, seconds)

    async def _read(self, buffer: _StreamBuffer, put: Put) -> None:
        """Read to the end; only a token count follows the finish reason, and may be lost."""
        async with aclosing(stream_pieces(self.call.agent, self.request)) as stream:
            allowed = self.call.agent.seconds + reading_seconds(self.call)
            while (piece := await self._within(anext(stream, None), allowed)) is not None:
                allowed = self.call.agent.seconds
                buffer.add(piece)
                if piece.words:
                    put(without_keys(replace_invalid_bytes(piece.words), self.request))
                if buffer.length > LONGEST_ANSWER:
                    raise _TooLong
                if buffer.finish is not None:
                    break
            with suppress(Exception):
                async with asyncio.timeout(min(LATEST_COUNT, self.call.agent.seconds)):
                    async for piece in stream:
                        buffer.add(piece)

    async def _within(self, step: Any, seconds: float) -> Any:
        """Take one step of the stream within the allowed silence."""
        try:
            async with asyncio.timeout(seconds):
                return await step
        except TimeoutError:
            raise TimeoutError("silence", seconds) from None

    def _fault_in(self, text: str, buffer: _StreamBuffer) -> CallFault | None:
        who, finish = self.faults.who, buffer.finish
        if buffer.refusal or finish == FILTERED:
            by = "declined to answer" if buffer.refusal else "was cut off by its content filter"
            reply = without_keys(join_pieces([buffer.refusal]), self.request) or text
            words = f": {self.faults.quoted(ValueError(reply))}" if reply else ""
            return CallFault(ModelRefused(f"{who} {by}{words}.", reply=reply))
        if not buffer.events and not text:
            return self.faults.not_a_stream()
        if finish == "error":
            return self.faults.broken_off("an error", has_begun=bool(text))
        if finish is None:
            return self.faults.broken_off("an end without a reason", has_begun=bool(text))
        if not text.strip():
            limit = self.call.agent.max_tokens
            why = f"its {limit} tokens went by without a word" if finish == "length" else "no words"
            return CallFault(
                ReplyError(
                    f"Expected an answer from {who}, found an empty one: {why}. Ask again, or give "
                    "the agent more tokens.",
                    reply=text,
                )
            )
        return None

    def _whole(self, text: str, buffer: _StreamBuffer, seconds: float) -> Completion:
        asked = sum(estimate_tokens(message.text) for message in self.call.messages)
        tokens = buffer.counts or (asked, estimate_tokens(text))
        price = price_of(self.call.agent)
        cost = price.of(*tokens) if price else None
        end: Literal["length", "stop"] = "length" if buffer.finish == "length" else "stop"
        return Completion(text, end, *tokens, buffer.counts is not None, cost, seconds)


@dataclass(frozen=True)
class _Embedding:
    agent: AgentConfig
    request: dict[str, Any]
    faults: FaultReader
    turn: Turn

    async def embedded(self, put: Put) -> Embeddings | CallFault:
        """Return the vectors; failures are returned, not raised."""
        call_when_written(await self.turn())
        started = time.monotonic()
        texts = self.request["input"]
        try:
            async with asyncio.timeout(self.agent.seconds):
                rows = await embed_texts(self.agent, self.request)
        except TimeoutError:
            return CallFault(self.faults.silent(self.agent.seconds))
        except Exception as error:  # noqa: BLE001 - whatever the providers' code raises
            return self.faults.of(error, self.request, has_begun=False)
        if len(rows.vectors) != len(texts) or len({len(row) for row in rows.vectors}) != 1:
            found = f"expected {len(texts)} vectors of one length, found {len(rows.vectors)}"
            return CallFault(
                ModelError(f"{self.faults.who} answered with the wrong vectors: {found}.")
            )
        tokens = rows.tokens or sum(estimate_tokens(text) for text in texts)
        price = price_of(self.agent)
        cost = price.of(tokens, 0) if price else None
        return Embeddings(rows.vectors, tokens, rows.tokens > 0, cost, time.monotonic() - started)


def _unheard(piece: str) -> None:
    """Ignore a piece; embeddings stream nothing."""


OLLAMA = ("ollama", "ollama_chat")
SECRETS = ("api_key", "aws_secret_access_key", "aws_session_token")
SHORTEST_SECRET = 12
SPARE_SECONDS = 30  # litellm's own time-out lies behind ours, which tells where it was silent


def base_request(agent: AgentConfig, keys: Keys) -> dict[str, Any]:
    """Return the part of a request that says which model is asked, where, and with which key.

    The key is always given: left out, litellm would take one from the environment, whose ever it
    is. Retries are our own.

    Raises:
        KeyMissing: a key is needed that is not at hand.
        ConfigError: the key belongs to somebody else, or cannot be one.
    """
    request: dict[str, Any] = {
        "model": wire_name(agent),
        "timeout": agent.seconds + SPARE_SECONDS,
        "max_retries": 0,
        "num_retries": 0,
        **keys.credentials(agent),
    }
    if agent.api_base:
        request["api_base"] = agent.api_base
    if headers := headers_for(agent, request.get("api_key", "")):
        request["extra_headers"] = headers
    return request


def reading_seconds(call: Call) -> float:
    """Return the seconds beyond the agent's own that its own server may read a long prompt."""
    if not is_on_own_server(call.agent):
        return 0.0
    tokens = sum(estimate_tokens(message.text) for message in call.messages)
    return min(call.agent.seconds, READING_TIME) * max(0, tokens / READ_IN_TIME - 1)


def chat_request(call: Call, keys: Keys, relaxed: frozenset[str]) -> dict[str, Any]:
    """Return the whole request, without the `relaxed` parts that this server refuses."""
    agent = call.agent
    limit = "max_completion_tokens" if "max_tokens" in relaxed else "max_tokens"
    messages = merge_system(call.messages) if "system" in relaxed else call.messages
    request = {
        **base_request(agent, keys),
        "messages": [_message(message) for message in messages],
        "temperature": agent.temperature,
        limit: agent.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "drop_params": True,
    }
    request["timeout"] += reading_seconds(call)
    for part in ("temperature", "stream_options"):
        if part in relaxed:
            del request[part]
    if call.schema is not None and "schema" not in relaxed:
        fit = bound_schema if decodes_by_grammar(agent) else strip_bounds
        schema = fit(dict(call.schema))
        form = {"name": "reply", "schema": schema, "strict": _is_closed(call.schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": form}
    if provider_of(agent) in OLLAMA:
        # Ollama cuts what is longer than its window without a word, and its usual one is short.
        request["num_ctx"] = window_of(agent)
    return request


def merge_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with the system's text before the user's first, for models without it."""
    texts = [message.text for message in messages if message.role == "system"]
    first, *rest = [message for message in messages if message.role != "system"]
    return (replace(first, text="\n\n".join([*texts, first.text])), *rest)


def without_keys(text: str, request: Mapping[str, Any]) -> str:
    """Return the answer without the request's keys, which a server may repeat.

    Short ones and plain words, as people give to servers of their own, are no secret.
    """
    for key in secrets_in(request):
        if len(key) >= SHORTEST_SECRET and any(char.isdigit() for char in key):
            text = text.replace(key, "…")
    return text


def secrets_in(request: Mapping[str, Any]) -> list[str]:
    """Return the secrets that the request carries."""
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
    """Return True if every object in the schema requires all its fields and allows no other.

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


def join_pieces(pieces: Sequence[str]) -> str:
    """Join pieces into storable text, reuniting surrogate halves that were split."""
    halves = "".join(pieces).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "replace")
