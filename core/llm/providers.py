"""The two ways to a provider: the openai client for addresses that speak its API, litellm else.

Both give the same pieces. Neither follows a redirect, so that prompts and keys go only where an
agent says; but litellm's `cohere_chat` takes no client of ours, and does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from core.llm import local_server
from core.llm.call import OPENAI_COMPATIBLE, is_on_own_server, provider_of
from core.llm.keys import hide_settings
from core.runtime.concurrency import StopSignal
from core.schema.rosters import AgentConfig

# Known without litellm's import, which takes seconds.
SPEAK_OPENAI = frozenset(
    {OPENAI_COMPATIBLE, local_server.PROVIDER, "hosted_vllm", "lm_studio", "llamafile"}
)
SPEAK_OTHERWISE = frozenset({"azure", "azure_ai", "anthropic", "bedrock", "gemini", "ollama_chat"})
# Of these litellm hands on each event's own end; of others it invents one where a stream broke off.
GOOGLE = frozenset({"gemini", "vertex_ai", "vertex_ai_beta"})
CHATTY = "LiteLLM,LiteLLM Router,LiteLLM Proxy,openai,httpx,httpcore,aiohttp,botocore,boto3"
ANSWERS = ("Message", "Delta", "ModelResponse", "ModelResponseStream", "EmbeddingResponse")
OPENAI_ADDRESS = "https://api.openai.com/v1"
TEXT_PARTS = (None, "text", "output_text")
LONGEST_EVENT = 8 * 2**20  # bytes
# Statuses by the codes and types of errors that name none.
STATUS_WORDS = {
    429: re.compile(r"rate.?limit|quota"),
    401: re.compile(r"authentication|api.?key|unauthorized", re.IGNORECASE),
    404: re.compile(r"not.?found", re.IGNORECASE),
    400: re.compile(r"invalid.?request|bad.?request|context", re.IGNORECASE),
}
# What of a request litellm alone takes; its other fields are the API's own.
LITELLMS = ("drop_params", "num_retries", "max_retries", "api_key", "api_base", "num_ctx")


@dataclass(frozen=True)
class StreamPiece:
    """What one event of a stream adds; `counts` are tokens (read, written) as the provider says."""

    words: str = ""
    refusal: str = ""
    finish: str | None = None
    counts: tuple[int, int] | None = None


@dataclass(frozen=True)
class EmbeddingRows:
    """A vector for each text, in order, and the tokens that the provider counted, 0 where none."""

    vectors: tuple[tuple[float, ...], ...]
    tokens: int


def speaks_openai(agent: AgentConfig) -> bool:
    """Return True if the provider speaks OpenAI's API, so the openai client calls it."""
    provider = provider_of(agent)
    if provider in SPEAK_OPENAI or provider in SPEAK_OTHERWISE or provider is None:
        return provider in SPEAK_OPENAI
    return provider in _litellm().openai_compatible_providers


def import_client(agent: AgentConfig | None = None) -> None:
    """Import the client that the agent needs, or both; takes seconds, in the caller's thread."""
    if agent is None or speaks_openai(agent):
        _openai()
    if agent is None or not speaks_openai(agent):
        _litellm()


async def stream_pieces(agent: AgentConfig, request: dict[str, Any]) -> AsyncGenerator[StreamPiece]:
    """Yield the answer as it arrives. Raises whatever the client does."""
    if speaks_openai(agent):
        client = await _openai_client(agent, request)
        # Events as they come: the client's own objects cost twice as much as the rest of a call.
        body = _openais(agent, request)
        beside = {"timeout": body.pop("timeout"), "headers": body.pop("extra_headers", {})}
        asked = client.post(
            "/chat/completions",
            body=body,
            cast_to=object,
            stream=True,
            stream_cls=_openai().AsyncStream[object],
            options=beside,
        )
        async with (
            await asked as stream,
            aclosing(read_events(stream.response.aiter_bytes())) as events,
        ):
            async for event in events:
                yield _piece(event)
        return
    stream = await _litellm().acompletion(**_litellms(agent, request))
    tells_each = provider_of(agent) in GOOGLE
    try:
        async for event in stream:
            piece = _piece(event)
            yield piece if tells_each else replace(piece, finish=None)
        yield StreamPiece(finish=stream.received_finish_reason)
    finally:
        await stream.aclose()


async def embed_texts(agent: AgentConfig, request: dict[str, Any]) -> EmbeddingRows:
    """Return vectors for the request's texts. Raises whatever the client does."""
    if speaks_openai(agent):
        client = await _openai_client(agent, request)
        reply = _check_event(await client.embeddings.create(**_openais(agent, request)))
        rows = {row.index: row.embedding for row in reply.data}
    else:
        reply = await _litellm().aembedding(**_litellms(agent, request))
        rows = {row["index"]: row["embedding"] for row in reply.data}
    found = tuple(tuple(map(float, rows[index])) for index in sorted(rows))
    return EmbeddingRows(found, int(getattr(reply.usage, "prompt_tokens", 0) or 0))


class ServerError(Exception):
    """An error that a server sent with status 200; attributes as of the openai client's errors.

    `status_code` is the status that the error names, None if it names none.
    """

    def __init__(self, body: Any) -> None:
        super().__init__(body if isinstance(body, str) else json.dumps(body))
        self.body = body
        codes = [str(_of(body, name) or "") for name in ("code", "status", "type")]
        named = (int(code) for code in codes if re.fullmatch(r"[45]\d\d", code))
        words = (
            status for status, pattern in STATUS_WORDS.items() if pattern.search(" ".join(codes))
        )
        self.status_code: int | None = next(iter((*named, *words)), None)


async def read_events(body: AsyncIterator[bytes]) -> AsyncGenerator[Any]:
    """Yield the events of a server's stream, or the one object that it sent instead of a stream.

    The openai client skips lines that are no events: an `error:` line, or a whole answer. Raises
    ServerError for an error.
    """
    name, data, other, has_begun = b"", bytearray(), bytearray(), False
    async for line in _split_lines(body):
        field, _, value = line.partition(b":")
        if field == b"data":
            data += value.strip() + b"\n"
            if len(data) > LONGEST_EVENT:
                raise ServerError(f"an event of more than {LONGEST_EVENT:,} bytes")
        elif field == b"event":
            name = value.strip()
        elif field == b"error":
            _check_event(_load_or_decode(value.strip()), is_error=True)
        elif field and field not in (b"id", b"retry"):
            other += line if len(other) < LONGEST_EVENT else b""
        elif not line and data.startswith(b"[DONE]"):
            return
        elif not line and data:
            yield _check_event(json.loads(data), is_error=name == b"error")
            name, data, has_begun = b"", bytearray(), True
    if not has_begun and isinstance(event := _load_or_decode(other), dict):
        yield _check_event(event)


async def _split_lines(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the lines of the body, and an empty one at its end, which closes the last event."""
    rest = b""
    async for part in body:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
        if len(rest) > LONGEST_EVENT:
            raise ServerError(f"a line of more than {LONGEST_EVENT:,} bytes")
    yield rest
    yield b""


def _load_or_decode(data: bytes | bytearray) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")


def _check_event(event: Any, *, is_error: bool = False) -> Any:
    """Return the event. Raises ServerError if it is, or holds, an error."""
    if error := _of(event, "error"):
        raise ServerError(error)
    if is_error or _of(event, "object") == "error":
        raise ServerError(event.model_dump() if hasattr(event, "model_dump") else event)
    return event


def _piece(event: Any) -> StreamPiece:
    """Read one event, whatever it holds: the first choice's text, and numeric counts."""
    usage, choices = _of(event, "usage"), _of(event, "choices")
    read, written = (_of(usage, f"{name}_tokens") for name in ("prompt", "completion"))
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = _of(choice, "delta")
    delta = _of(choice, "message") if delta is None else delta
    refusal = _of(delta, "refusal")
    return StreamPiece(
        _text_of(_of(delta, "content")),
        refusal if isinstance(refusal, str) else "",
        _of(choice, "finish_reason"),
        (read, written) if isinstance(read, int) and isinstance(written, int) else None,
    )


def _text_of(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts, such as thoughts."""
    if isinstance(content, list):
        parts = (part for part in content if _of(part, "type") in TEXT_PARTS)
        return "".join(_text_of(_of(part, "text")) for part in parts)
    return content if isinstance(content, str) else ""


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _openais(agent: AgentConfig, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request in the API's own terms, with the model's name as the server knows it."""
    kept = {key: value for key, value in request.items() if key not in LITELLMS}
    return {**kept, "model": request["model"].removeprefix(f"{provider_of(agent)}/")}


def own_address(agent: AgentConfig, stop: StopSignal) -> str:
    """Return the address of a person's own server, starting the built-in one; else empty."""
    if provider_of(agent) == local_server.PROVIDER:
        return local_server.SERVER.address(stop)
    return agent.api_base if is_on_own_server(agent) else ""


async def _openai_client(agent: AgentConfig, request: dict[str, Any]) -> Any:
    base, provider = agent.api_base, provider_of(agent)
    if provider == local_server.PROVIDER:
        base = await asyncio.to_thread(local_server.SERVER.address)
    elif not base and provider != OPENAI_COMPATIBLE:
        base = _litellm().get_llm_provider(request["model"])[3]
    return _openai().AsyncOpenAI(
        api_key=request["api_key"],
        base_url=base or os.environ.get("OPENAI_BASE_URL") or OPENAI_ADDRESS,
        max_retries=0,
        http_client=_http(),
    )


_written: ContextVar[Callable[[], None] | None] = ContextVar("_written", default=None)


def call_when_written(callback: Callable[[], None]) -> None:
    """Let this task's requests call it as soon as they have been written to their connections."""
    _written.set(callback)


async def _trace_writing(request: Any) -> None:
    """Have httpx tell when it has written the request."""
    if (callback := _written.get()) is None:
        return

    async def trace(event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_body.complete"):
            callback()

    request.extensions["trace"] = trace


HOOKS: Mapping[str, list[Callable[..., object]]] = {"request": [_trace_writing]}


@lru_cache(maxsize=1)
def _http() -> Any:
    """Return the connection pool of all calls; it lives on the loop that calls run on."""
    return _openai().DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=HOOKS)


def _litellms(agent: AgentConfig, request: dict[str, Any]) -> dict[str, Any]:
    """Add a client that follows no redirects; Azure's is that of `aclient_session`."""
    return request if provider_of(agent) == "azure" else {**request, "client": _handler()}


@lru_cache(maxsize=1)
def _handler() -> Any:
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    return AsyncHTTPHandler(follow_redirects=False, event_hooks=HOOKS)


_LOADING = threading.RLock()


def _openai() -> Any:
    hide_settings()
    with _LOADING:
        import openai

        _quiet()
        return openai


def _litellm() -> Any:
    hide_settings()
    with _LOADING:
        return _loaded()


def _quiet() -> None:
    """Silence loggers that at DEBUG write whole requests, keys and all."""
    for name in CHATTY.split(","):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@lru_cache(maxsize=1)
def _loaded() -> Any:
    """Import litellm once, quiet and offline."""
    # Else the import fetches a price list, and reads a .env file into the environment.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the insides of its own types
        import litellm

        for name in ANSWERS:  # else built within the first call, with the same complaints
            getattr(litellm.types.utils, name).model_rebuild()
    litellm.aclient_session = _http()
    litellm.disable_aiohttp_transport = True  # its connections complain when the process ends
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.turn_off_message_logging = True
    # Else a name such as Llama-3 sends it to a model hub for a tokenizer, for up to a minute.
    litellm.disable_hf_tokenizer_download = True
    _quiet()
    return litellm
