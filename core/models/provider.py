"""Which provider a seat's model name means, as litellm reads such names, without importing it."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.seats import Seat

PRICE_LIST = "model_prices_and_context_window_backup.json"
PROVIDER_LIST = "provider_endpoints_support_backup.json"
# They run where their user does: no key, and a price that a list cannot know.
LOCAL = frozenset(
    "ollama ollama_chat lm_studio hosted_vllm vllm llamafile xinference docker_model_runner "
    "lemonade oobabooga petals".split()
)
AMAZON = frozenset({"bedrock", "bedrock_mantle", "sagemaker", "sagemaker_chat"})
OPENAI_COMPATIBLE = "openai"
# Addresses that belong to a provider although a seat names them itself.
OWN_HOSTS: dict[str, tuple[str, ...]] = {
    "openai": (".api.openai.com",),
    "anthropic": (".api.anthropic.com",),
    "mistral": (".api.mistral.ai",),
    "azure": (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    "azure_ai": (".services.ai.azure.com", ".models.ai.azure.com"),
}
_PLAIN_ADDRESS = re.compile(r"https://([a-z0-9.-]+)(?::443)?(?:/[\w./-]*)?", re.IGNORECASE)
_ALIASES = {"bedrock_converse": "bedrock", "text-completion-openai": "openai"}


@lru_cache(maxsize=2)
def bundled(name: str) -> dict[str, Any]:
    """A list that comes with litellm, read as plain JSON; empty when it is not installed."""
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    path = Path(next(iter(spec.submodule_search_locations))) / name
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


@lru_cache(maxsize=1)
def known_providers() -> frozenset[str]:
    """The words that may stand before the first slash of a model's name."""
    priced = (str(entry.get("litellm_provider", "")) for entry in bundled(PRICE_LIST).values())
    plain = {word for word in priced if re.fullmatch(r"[\w-]+", word)}
    return frozenset(plain | set(bundled(PROVIDER_LIST).get("providers", {})) | LOCAL)


def provider_of(seat: Seat) -> str | None:
    """The provider that the seat's model belongs to, None where the name does not tell.

    A name without a known provider, at an address of its own, is an OpenAI-compatible server's.
    """
    first, slash, _ = seat.model.partition("/")
    if slash and first in known_providers():
        return first
    if seat.api_base:
        return OPENAI_COMPATIBLE
    listed = str(bundled(PRICE_LIST).get(seat.model, {}).get("litellm_provider", ""))
    return (_ALIASES.get(listed) or listed.split("-")[0]) or None


def wire_name(seat: Seat) -> str:
    """The model's name as litellm takes it: `provider/model`.

    Servers name models after their authors (`meta-llama/Llama-3-8B`), so a first word counts as a
    provider only when litellm knows it.
    """
    first, slash, _ = seat.model.partition("/")
    if not seat.api_base or (slash and first in known_providers()):
        return seat.model
    return f"{OPENAI_COMPATIBLE}/{seat.model}"


def is_elsewhere(seat: Seat) -> bool:
    """True when the seat's address is not its provider's own: no provider's key may go there."""
    if not seat.api_base:
        return False
    # Nothing but a plain address is read: a host that two parsers read differently is nobody's.
    plain = _PLAIN_ADDRESS.fullmatch(seat.api_base)
    own = OWN_HOSTS.get(provider_of(seat) or "", ())
    return plain is None or not f".{plain.group(1).lower()}".endswith(own)


def shown_address(seat: Seat) -> str:
    """The seat's address as people may see it: without a name or password inside it."""
    if not seat.api_base:
        return provider_of(seat) or "its provider"
    parts = urlsplit(seat.api_base)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
