"""A question to a language model and its answer as plain values, and whose model a name means.

Agents make calls and hand them to a `Desk`; the desk keeps the ledger and the caps and hands them
to a `Model`. Neither knows which provider answers. Names are read as litellm does, without it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from core.concurrency import Stop
from core.records import ModelCall
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


Speak = Callable[[str], None]


@dataclass(frozen=True)
class Picture:
    """An image that goes with a message: its media type and the encoded bytes."""

    media_type: str
    data: bytes


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Call:
    """What is sent: who is asked (model, temperature, token limit), what, and in which form.

    `schema` is the JSON schema of the reply, None for plain text. `fence` is the random delimiter
    inside the messages; it differs from run to run and is left out of the digest.
    """

    seat: Seat
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    fence: str = ""

    @property
    def digest(self) -> str:
        """Names everything that decides about the answer: two equal calls have one digest."""
        seat = self.seat
        body = [seat.model, seat.api_base, seat.temperature, seat.max_tokens, self.schema]
        for message in self.messages:
            text = message.text.replace(self.fence, "FENCE") if self.fence else message.text
            pictures = [hashlib.sha256(p.data).hexdigest() for p in message.pictures]
            body.append([message.role, text, pictures])
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Completion:
    """A whole answer. `finish` is `length` when the token limit cut it.

    `is_counted` says that the provider counted the tokens; else they are our estimate. `cost` is in
    US dollars, None where the price is not known. `seconds` is the call's own time.
    """

    text: str
    finish: Literal["stop", "length"]
    tokens_in: int
    tokens_out: int
    is_counted: bool
    cost: float | None
    seconds: float


@dataclass(frozen=True)
class Asked:
    """A call with what the ledger and the trace say about it.

    `role` is the roster's name for the role, `slot` tells the calls of one run apart (“turn 3”,
    “image 5f2c prompt”); n samples of one prompt are n slots. `prompt` and `prompt_hash` name the
    prompt file and its text; `cut` says in words what did not fit the model's window.
    """

    role: str
    slot: str
    call: Call
    prompt: str = ""
    prompt_hash: str = ""
    cut: str = ""


class Model(Protocol):
    """Anything that answers calls."""

    def complete(self, call: Call, speak: Speak, stop: Stop) -> Completion:
        """The whole answer; `speak` is called with its pieces as they come.

        Raises:
            ModelError: the service failed, after retries (ModelTimeout when it was silent).
            ModelRefused: the model or a filter declined.
            ReplyError: the answer is empty, or longer than any.
            ConfigError: the key is wrong or missing, or the model is unknown.
            Stopped: `stop` was set; the connection is closed by then.
        """
        ...


class Desk(Protocol):
    """Where the agents of one run have their calls made."""

    def ask(self, asked: Asked, stop: Stop, speak: Speak = ...) -> Completion:
        """The answer from the ledger, or from the model within the caps.

        Raises:
            BudgetReached: a cap leaves no room; nothing was sent.
            ReviewError: whatever `Model.complete` raises.
        """
        ...

    def drain(self) -> tuple[ModelCall, ...]:
        """The calls made since this was last asked, each handed out once."""
        ...


def in_silence(piece: str) -> None:
    """For calls whose words nobody watches."""
