"""Spares litellm work of which we read nothing: a third of what a call costs the processor.

Calls that go out side by side share one interpreter, so what each of them computes the others wait
for.
"""

from __future__ import annotations

import importlib
from typing import Any

# Where the openai library writes the body of a chat completion.
BODIES = "openai.resources.chat.completions.completions"


def spare(litellm: Any) -> None:
    """Leave out what is never looked at, of every call from now on."""
    litellm.response_cost_calculator = _no_price
    library: Any = importlib.import_module(BODIES)
    library.async_maybe_transform = _as_given


def _no_price(**_: Any) -> None:
    """Litellm prices every answer, once before its first word; our prices are in `prices.py`."""


async def _as_given(body: Any, expected_type: Any) -> Any:
    """The body without what was left out of it, and not looked through for names to translate.

    There are none: litellm hands on the names that are sent. The library compares every part of
    every message with every kind of message that it knows.
    """
    from openai import NotGiven, Omit

    if not isinstance(body, dict):
        return body
    left_out = Omit, NotGiven
    return {name: value for name, value in body.items() if not isinstance(value, left_out)}
