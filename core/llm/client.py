"""The one boundary to litellm: any provider it knows, any OpenAI-compatible address.

Calls are streamed on a loop of their own; errors become our tree, without a trace of litellm's,
whose texts may repeat a key. Its clients stay where they were sent: they would follow a redirect
anywhere, with the whole prompt, and leave out only a key that travels as `Authorization`:
Anthropic's, Azure's and Gemini's travel under names of their own.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any

from core.llm.call import Call, Completion, Message, Speak, provider_of, wire_name
from core.llm.failures import Fault, Faults, Patience, first_answer
from core.llm.keys import NO_KEY, Keys, headers_for, take_out
from core.llm.limits import estimated_tokens, price_of, window_of
from core.llm.stream import Tap, streamed_from
from core.runtime.concurrency import Stop
from core.runtime.config import shown_safely
from core.runtime.errors import ModelError, ModelRefused, ReplyError
from core.schema.rosters import Seat


def follow_none(litellm: Any) -> None:
    """Have every client that litellm makes from now on take a redirect for the answer it is."""
    http = litellm.llms.custom_httpx.http_handler
    for handler in (http.AsyncHTTPHandler, http.HTTPHandler):
        handler.create_client = _staying(handler.create_client)
    openai = litellm.llms.openai.common_utils.BaseOpenAILLM
    for name in ("_get_async_http_client", "_get_sync_http_client"):
        setattr(openai, name, staticmethod(_staying(getattr(openai, name))))


def _staying(make: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(make)
    def made(*given: Any, **named: Any) -> Any:
        client = make(*given, **named)
        if client is not None:
            client.follow_redirects = False
        return client

    return made


Put = Callable[[str], None]
Vector = Sequence[float]

CHATTY = "LiteLLM,LiteLLM Router,LiteLLM Proxy,openai,httpx,httpcore,aiohttp,botocore,boto3"
ANSWERS = ("Message", "Delta", "ModelResponse", "ModelResponseStream", "EmbeddingResponse")
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


class LiteLlm:
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
        _litellm()
        return first_answer(attempt, call.seat, stop, self._patience)

    def embed(self, seat: Seat, texts: Sequence[str], stop: Stop) -> Embedded:
        """A vector for each text, in order.

        Raises ReviewError: as `complete` does; ReplyError when a vector is missing.
        """
        request: dict[str, Any] = {**addressed(seat, self._keys), "input": list(texts)}
        request |= {"encoding_format": "float", "drop_params": True}
        faults = self._faults(seat, request)

        def attempt(relaxed: frozenset[str]) -> Embedded | Fault:
            work = _Embedding(seat, request, faults)
            return streamed_from(work.embedded, _unheard, stop)

        stop.check()
        _litellm()
        return first_answer(attempt, seat, stop, self._patience)

    def _faults(self, seat: Seat, request: Mapping[str, Any]) -> Faults:
        def hide(text: str) -> str:
            for key in keys_sent(request):
                text = text.replace(key, "…")
            return self._keys.scrubbed(text)

        return Faults(seat, self._keys, hide)


class _TooLong(Exception):
    """A stream has gone on beyond what any seat asks for."""


@dataclass(frozen=True)
class _Answer:
    call: Call
    request: dict[str, Any]
    faults: Faults
    longest: float

    async def streamed(self, put: Put) -> Completion | Fault:
        """Hand on the pieces and return the whole; what fails is returned, never raised."""
        started = time.monotonic()
        said: list[str] = []
        tap = Tap()
        try:
            async with asyncio.timeout(self.longest):
                finish = await self._read(tap, said, put)
        except TimeoutError as late:
            silent = bool(late.args)
            seconds = self.call.seat.seconds if silent else self.longest
            error = self.faults.silent(seconds) if silent else self.faults.endless(seconds)
            return Fault(error)
        except _TooLong:
            return Fault(self.faults.too_long(LONGEST_ANSWER, joined(said)))
        except Exception as error:  # noqa: BLE001 - litellm raises whatever its providers' code does
            return self.faults.of(error, self.request, has_begun=bool(said))
        text = without_keys(joined(said), self.request)
        seconds = time.monotonic() - started
        return self._fault_in(text, finish, tap) or self._whole(text, finish, tap.counts, seconds)

    async def _read(self, tap: Tap, said: list[str], put: Put) -> str | None:
        wrapper = await self._within(_litellm().acompletion(**self.request))
        length = 0
        try:
            tap.onto(wrapper)
            while (piece := await self._within(tap.words())) is not None:
                if tap.has_said_all:
                    piece += await tap.rest(min(LATEST_COUNT, self.call.seat.seconds))
                if piece:
                    said.append(piece)
                    put(without_keys(shown_safely(piece), self.request))
                length += len(piece)
                if length > LONGEST_ANSWER:
                    raise _TooLong
                if tap.has_said_all:
                    break
        finally:
            # Also when the task was cancelled: Stop promises a closed connection.
            await wrapper.aclose()
        return tap.finish or wrapper.received_finish_reason

    async def _within(self, step: Any) -> Any:
        try:
            async with asyncio.timeout(self.call.seat.seconds):
                return await step
        except TimeoutError:
            raise TimeoutError("silence") from None

    def _fault_in(self, text: str, finish: str | None, tap: Tap) -> Fault | None:
        who = self.faults.who
        if tap.refusal or finish == FILTERED:
            by = "declined to answer" if tap.refusal else "was cut off by its content filter"
            reply = without_keys(joined([tap.refusal]), self.request) or text
            words = f": {self.faults.quoted(ValueError(reply))}" if reply else ""
            return Fault(ModelRefused(f"{who} {by}{words}.", reply=reply))
        if not tap.events and not text:
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

    def _whole(
        self, text: str, finish: str | None, counts: tuple[int, int] | None, seconds: float
    ) -> Completion:
        if counts is not None:
            tokens_in, tokens_out = counts
        else:
            tokens_in = sum(estimated_tokens(message.text) for message in self.call.messages)
            tokens_out = estimated_tokens(text)
        price = price_of(self.call.seat)
        return Completion(
            text=text,
            finish="length" if finish == "length" else "stop",
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            is_counted=counts is not None,
            cost=price.of(tokens_in, tokens_out) if price else None,
            seconds=seconds,
        )


@dataclass(frozen=True)
class _Embedding:
    seat: Seat
    request: dict[str, Any]
    faults: Faults

    async def embedded(self, put: Put) -> Embedded | Fault:
        """The vectors; what fails is returned, never raised."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.seat.seconds):
                reply = await _litellm().aembedding(**self.request)
            rows = sorted(reply.data, key=lambda row: row["index"])
            vectors = tuple(tuple(map(float, row["embedding"])) for row in rows)
        except TimeoutError:
            return Fault(self.faults.silent(self.seat.seconds))
        except Exception as error:  # noqa: BLE001 - litellm raises whatever its providers' code does
            return self.faults.of(error, self.request, has_begun=False)
        expected = len(self.request["input"])
        if len(vectors) != expected or len({len(row) for row in vectors}) != 1:
            found = f"expected {expected} vectors of one length, found {len(vectors)}"
            return Fault(ModelError(f"{self.faults.who} answered with the wrong vectors: {found}."))
        return self._counted(vectors, reply.usage, time.monotonic() - started)

    def _counted(self, vectors: tuple[Vector, ...], usage: Any, seconds: float) -> Embedded:
        counted = int(getattr(usage, "prompt_tokens", 0) or 0)
        tokens = counted or sum(estimated_tokens(text) for text in self.request["input"])
        price = price_of(self.seat)
        cost = price.of(tokens, 0) if price else None
        return Embedded(vectors, tokens, counted > 0, cost, seconds)


_LOADING = threading.Lock()


def load() -> None:
    """Load litellm now, so that the first call need not wait for it: seconds."""
    _litellm()


def _litellm() -> Any:
    take_out()
    with _LOADING:
        return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Any:
    """The library, imported once: quiet, offline, keeping to itself."""
    # Else the import fetches a price list, and reads a .env file into the environment.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the insides of its own types
        import litellm

        for name in ANSWERS:  # else built within the first call, with the same complaints
            getattr(litellm.types.utils, name).model_rebuild()

    follow_none(litellm)
    # It would price every answer, once before its first word: half of a call's work here.
    litellm.response_cost_calculator = lambda **_: None  # type: ignore[assignment]
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.turn_off_message_logging = True
    # Else a name such as Llama-3 sends it to a model hub for a tokenizer, for up to a minute.
    litellm.disable_hf_tokenizer_download = True
    for name in CHATTY.split(","):
        # At DEBUG they write whole requests, keys and all, whatever the root logger says.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _unheard(piece: str) -> None:
    """Embeddings say nothing."""


OLLAMA = ("ollama", "ollama_chat")


SECRETS = ("api_key", "aws_secret_access_key", "aws_session_token")


SHORTEST_SECRET = 12


SPARE_SECONDS = 30  # litellm's own time-out lies behind ours, which tells where it was silent


def addressed(seat: Seat, keys: Keys) -> dict[str, Any]:
    """Who is asked, with which key, as every request of the seat says it.

    The key is always given: left out, litellm would take one from the environment, whose ever it
    is. Retries are our own. Raises KeyMissing: a key is needed that is not at hand; ConfigError:
    the key belongs to somebody else, or cannot be one.
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
        form = {"name": "reply", "schema": dict(call.schema), "strict": _is_closed(call.schema)}
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
        return all(_is_closed(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(fields):
            return False
    return all(_is_closed(part) for part in schema.values())


def joined(pieces: Sequence[str]) -> str:
    """One text that can be stored: halves of a character that came apart are put together."""
    halves = "".join(pieces).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "replace")
