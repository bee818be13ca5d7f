"""Keeps litellm's clients where they were sent: no answer moves a request to another address.

They would follow a redirect anywhere, with the whole prompt, and leave out only a key that travels
as `Authorization`: Anthropic's, Azure's and Gemini's travel under names of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


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
