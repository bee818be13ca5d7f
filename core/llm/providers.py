"""The two ways to a provider: the openai client for addresses that speak its API, litellm else.

Both give the same pieces. Neither follows a redirect, so that prompts and keys go only where an
agent says; but litellm's `cohere_chat` takes no client of ours, and does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping
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
        async with await asked as stream:
            async for event in stream:
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
        reply = await client.embeddings.create(**_openais(agent, request))
        rows = {row.index: row.embedding for row in reply.data}
    else:
        reply = await _litellm().aembedding(**_litellms(agent, request))
        rows = {row["index"]: row["embedding"] for row in reply.data}
    found = tuple(tuple(map(float, rows[index])) for index in sorted(rows))
    return EmbeddingRows(found, int(getattr(reply.usage, "prompt_tokens", 0) or 0))


def _piece(event: Any) -> StreamPiece:
    """Read one event, whatever it holds: the first choice's text, and numeric counts."""
    usage, choices = _of(event, "usage"), _of(event, "choices")
    read, written = (_of(usage, f"{name}_tokens") for name in ("prompt", "completion"))
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = _of(choice, "delta")
    words, refusal = (_of(delta, name) for name in ("content", "refusal"))
    return StreamPiece(
        words if isinstance(words, str) else "",
        refusal if isinstance(refusal, str) else "",
        _of(choice, "finish_reason"),
        (read, written) if isinstance(read, int) and isinstance(written, int) else None,
    )


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
