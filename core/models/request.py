"""A call as litellm's chat completion takes it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from core.models.call import Call, Message
from core.models.kept_settings import headers_for
from core.models.keys import NO_KEY, Keys
from core.models.prices import window_of
from core.models.provider import provider_of, wire_name
from core.seats import Seat

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
