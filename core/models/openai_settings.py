"""OpenAI's own settings in the environment, kept from every other address.

The library beneath litellm sends them as headers wherever it asks, and a gateway's headers may hold
a secret. So they are taken out of the environment before it looks, and given to OpenAI's calls.
"""

from __future__ import annotations

import os

from core.models.provider import OPENAI_COMPATIBLE, is_elsewhere, provider_of
from core.seats import Seat

# The first name of each that has a value counts.
HEADERS = {
    "OpenAI-Organization": ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID"),
    "OpenAI-Project": ("OPENAI_PROJECT_ID",),
}
ANY_HEADERS = "OPENAI_CUSTOM_HEADERS"  # a line each
_kept: dict[str, str] = {}


def take_out() -> None:
    """Keep the settings here instead of in the environment; the newest value counts."""
    for name in (ANY_HEADERS, *(name for names in HEADERS.values() for name in names)):
        value = os.environ.pop(name, "").strip()
        if value:
            _kept[name] = value


def headers_for(seat: Seat) -> dict[str, str]:
    """The headers of the seat's calls: empty for all but OpenAI at its own address."""
    if provider_of(seat) != OPENAI_COMPATIBLE or is_elsewhere(seat):
        return {}
    lines = (line.partition(":") for line in _kept.get(ANY_HEADERS, "").splitlines())
    found = {name.strip(): value.strip() for name, colon, value in lines if colon}
    for header, names in HEADERS.items():
        value = next((_kept[name] for name in names if name in _kept), "")
        if value:
            found.setdefault(header, value)
    return found
