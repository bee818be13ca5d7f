"""Settings of OpenAI and watsonx in the environment, kept from every other address.

The libraries beneath litellm send them as headers wherever they ask, whose server it may be, and
some are secrets. So they are taken out of the environment first, and given to their own calls.
"""

from __future__ import annotations

import os

from core.models.provider import OPENAI_COMPATIBLE, is_elsewhere, provider_of
from core.seats import Seat

# The first name of each that has a value counts.
OPENAI_HEADERS = {
    "OpenAI-Organization": ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID"),
    "OpenAI-Project": ("OPENAI_PROJECT_ID",),
}
ANY_HEADERS = "OPENAI_CUSTOM_HEADERS"  # a line each
WATSONX_SCHEMES = {"WATSONX_TOKEN": "Bearer", "WATSONX_ZENAPIKEY": "ZenApiKey"}
NAMES = (ANY_HEADERS, *sum(OPENAI_HEADERS.values(), ()), *WATSONX_SCHEMES)
_kept: dict[str, str] = {}


def take_out() -> None:
    """Keep the settings here instead of in the environment; the newest value counts."""
    for name in NAMES:
        value = os.environ.pop(name, "").strip()
        if value:
            _kept[name] = value


def headers_for(seat: Seat, key: str) -> dict[str, str]:
    """The headers of the seat's calls beside those that its `key` makes by itself.

    Another server that is asked as watsonx gets its key as it is: litellm would take it to IBM
    for a token.
    """
    provider = provider_of(seat)
    if provider == OPENAI_COMPATIBLE and not is_elsewhere(seat):
        return _of_openai()
    if provider == "watsonx":
        given = ((scheme, _kept.get(name)) for name, scheme in WATSONX_SCHEMES.items())
        own = next((f"{scheme} {value}" for scheme, value in given if value), "")
        sent = f"Bearer {key}" if is_elsewhere(seat) else own
        return {"Authorization": sent} if sent else {}
    return {}


def _of_openai() -> dict[str, str]:
    lines = (line.partition(":") for line in _kept.get(ANY_HEADERS, "").splitlines())
    found = {name.strip(): value.strip() for name, colon, value in lines if colon}
    for header, names in OPENAI_HEADERS.items():
        value = next((_kept[name] for name in names if name in _kept), "")
        if value:
            found.setdefault(header, value)
    return found
