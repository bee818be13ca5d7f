"""The keys at hand: where each comes from, whom it may be sent to, never what it is.

Streamlit would put every secret into the environment, and libraries beneath litellm would send
settings of OpenAI and watsonx from there to any address: these are taken out of it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from core.llm.call import (
    AMAZON,
    LOCAL,
    OPENAI_COMPATIBLE,
    is_elsewhere,
    known_providers,
    provider_of,
    shown_address,
)
from core.runtime.errors import ConfigError, KeyMissing
from core.schema.rosters import AgentConfig

Place = Literal["typed", "secrets", "environment"]

SECRETS = Path(".streamlit") / "secrets.toml"
TABLE = "keys"  # in that file
MOST_KEYS_BYTES = 1_000_000
ADDRESS_KEY = "COUNTERPOINT_API_KEY"
SEARCH_KEY = "GOOGLE_SEARCH_API_KEY"  # Google Programmable Search; sent to Google alone
NO_KEY = "no-key"  # litellm looks into the environment when it is given none
SHORTEST_SCRUBBED = 6
# Providers for which litellm begins a sign-in of its own where it finds no credentials.
SIGN_IN = frozenset({"github_copilot", "chatgpt"})
# litellm's words for servers that anybody may run.
ANYBODY = frozenset({"custom", "custom_openai", "openai_like", "litellm_proxy"})
# What providers call their keys where it is not PROVIDER_API_KEY.
NAMES = {
    "text-completion-openai": "OPENAI_API_KEY",
    "azure_text": "AZURE_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "fireworks_ai": "FIREWORKS_API_KEY",
    "huggingface": "HF_TOKEN",
    "jina_ai": "JINA_AI_API_KEY",
    "meta_llama": "LLAMA_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "watsonx": "WATSONX_APIKEY",
}
AMAZON_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME")
AMAZON_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 - a name
AMAZON_SESSION = "AWS_SESSION_TOKEN"
# Other names under which the same thing is commonly kept.
ALSO: dict[str, tuple[str, ...]] = {
    "AWS_REGION_NAME": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "GEMINI_API_KEY": ("GOOGLE_API_KEY",),
    "HF_TOKEN": ("HUGGINGFACE_API_KEY",),
    "PERPLEXITYAI_API_KEY": ("PERPLEXITY_API_KEY",),
    "TOGETHERAI_API_KEY": ("TOGETHER_API_KEY",),
}
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Keys:
    """API keys by name: typed ones first, then the secrets file, then the environment."""

    environment: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "Keys(…)"

    def get(self, name: str) -> str | None:
        """Return the key of that name; a blank one counts as none."""
        found = self._found(name)
        return found[1] if found else None

    def where(self, name: str) -> Place | None:
        """Return which of the three places holds the key of that name."""
        found = self._found(name)
        return found[0] if found else None

    def missing_for(self, agent: AgentConfig) -> tuple[str, ...]:
        """Return the names of keys that the agent lacks; empty when none is missing."""
        names = key_names(agent)
        if provider_of(agent) in AMAZON and self.get(AMAZON_TOKEN):
            names = tuple(name for name in names if name == "AWS_REGION_NAME")
        return tuple(name for name in names if self._any_of(name) is None)

    def credentials(self, agent: AgentConfig) -> dict[str, str]:
        """Return the credentials for the agent's provider, under litellm's names.

        A provider's own key never goes to another address; there only the key that the agent names
        or `COUNTERPOINT_API_KEY` does.

        Raises:
            KeyMissing: a key is needed that is not at hand.
            ConfigError: the key belongs to somebody else, or cannot be one.
        """
        _check_owner(agent)
        missing = self.missing_for(agent)
        if missing:
            names = " and ".join(missing)
            raise KeyMissing(
                f"{agent.model} needs a key: expected {names}, found none. Set it in the "
                "environment or in .streamlit/secrets.toml, or type it under Settings.",
                names=missing,
            )
        if provider_of(agent) in AMAZON:
            return self._amazon(agent)
        name = self.name_for(agent)
        key = self._any_of(name) if name else None
        if provider_of(agent) == "vertex_ai" and key and not agent.api_base:
            return {"vertex_credentials": key}
        return {"api_key": _checked(name, key) if key else NO_KEY}

    def name_for(self, agent: AgentConfig) -> str:
        """Return the name of the key that the agent's calls carry; empty when none."""
        if agent.key_name:
            return agent.key_name
        names = key_names(agent)
        if names:
            return names[0]
        return ADDRESS_KEY if agent.api_base and self.get(ADDRESS_KEY) else ""

    def scrubbed(self, text: str) -> str:
        """Return the text with every key in it replaced."""
        for value in sorted(set(self._values()), key=len, reverse=True):
            text = text.replace(value, "…")
        return text

    def _amazon(self, agent: AgentConfig) -> dict[str, str]:
        """Return Amazon's credentials; dummies where the address is not Amazon's."""
        region = {"aws_region_name": self._any_of("AWS_REGION_NAME") or "us-east-1"}
        if is_elsewhere(agent):
            name = self.name_for(agent)
            key = self.get(name) if name else None
            unsigned = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), NO_KEY)
            return {"api_key": _checked(name, key) if key else NO_KEY, **region, **unsigned}
        if token := self.get(agent.key_name or AMAZON_TOKEN):
            return {"api_key": _checked(AMAZON_TOKEN, token), **region}
        names = (*AMAZON_NAMES[:2], AMAZON_SESSION)
        sent = {name.lower(): value for name in names if (value := self.get(name))}
        return sent | region

    def _any_of(self, name: str) -> str | None:
        found = (self.get(each) for each in (name, *ALSO.get(name, ())))
        return next((value for value in found if value), None)

    def _found(self, name: str) -> tuple[Place, str] | None:
        places: dict[Place, Mapping[str, str]] = {
            "typed": self.typed,
            "secrets": self.secrets,
            "environment": self.environment,
        }
        for place, keys in places.items():
            value = keys.get(name)
            # secrets.toml may hold a table or a number under any name
            if isinstance(value, str) and value.strip():
                return place, value.strip()
        return None

    def _values(self) -> Iterator[str]:
        named = (value for name, value in self.environment.items() if _SECRET_NAME.search(name))
        for value in (*self.typed.values(), *self.secrets.values(), *named):
            if isinstance(value, str) and len(value.strip()) >= SHORTEST_SCRUBBED:
                yield value.strip()


def key_names(agent: AgentConfig) -> tuple[str, ...]:
    """Return the names of the keys that the agent needs."""
    provider = provider_of(agent)
    if agent.is_built_in:
        return ()
    if agent.key_name:
        return (agent.key_name,)
    if is_elsewhere(agent) or provider is None or provider in LOCAL:
        return ()
    return AMAZON_NAMES if provider in AMAZON else (_usual_name(provider),)


def _usual_name(provider: str) -> str:
    word = re.sub(r"\W", "_", provider).upper()
    return NAMES.get(provider, f"{word}_API_KEY")


def _check_owner(agent: AgentConfig) -> None:
    """Refuse a key for a provider it does not belong to: rosters may come from others."""
    name = agent.key_name
    provider = provider_of(agent) or ""
    if provider in SIGN_IN:
        raise ConfigError(
            f"{agent.model} cannot be seated: litellm would sign in to {provider} by itself, on "
            "whatever machine this is. Expected a model that is asked with a key of its own."
        )
    usual = (*AMAZON_NAMES, AMAZON_TOKEN) if provider in AMAZON else (_usual_name(provider),)
    own = {*usual, *(other for each in usual for other in ALSO.get(each, ()))}
    if not name or (name in own and not is_elsewhere(agent)):
        return
    if not name.endswith("_API_KEY") or name in _owned():
        raise ConfigError(
            f"{name} is not sent to {shown_address(agent)}: it belongs to another service, or is "
            "not called like a key. Keep the key of that address under a name of its own that ends "
            f"in _API_KEY, such as {ADDRESS_KEY}, and give the agent that name."
        )


@lru_cache(maxsize=1)
def _owned() -> frozenset[str]:
    hosted = known_providers() - LOCAL - ANYBODY
    usual = set(map(_usual_name, hosted))
    also = {name for names in ALSO.values() for name in names}
    return frozenset(usual | also | {*AMAZON_NAMES, AMAZON_TOKEN, AMAZON_SESSION, SEARCH_KEY})


def _checked(name: str, key: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise ConfigError(
            f"{name} holds a space, a line break or a letter that no key has. Copy it again and "
            "set it anew."
        )
    return key


def load_keys(environment: Mapping[str, str], root: Path) -> Keys:
    """Load the keys of the environment and of the secrets file under the project's root.

    Raises ConfigError: the file is there and cannot be read; the message shows nothing of it.
    """
    return Keys(dict(environment), _secrets(root / SECRETS))


def _secrets(path: Path) -> dict[str, str]:
    """Return the file's texts, top-level or under `[keys]`; the table goes first."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_KEYS_BYTES + 1)
        if len(data) > MOST_KEYS_BYTES:
            raise ConfigError(f"Expected a small file of keys at {SECRETS}, found a large one.")
        parsed = tomllib.loads(data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        why = error.strerror or os.strerror(error.errno or 0)
        raise ConfigError(f"Expected to read keys from {SECRETS}, found: {why}.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f'Expected TOML in {SECRETS}, such as OPENAI_API_KEY = "…"; found something else'
            f"{_place(error)}. Correct it there."
        ) from None  # the parser's own words may repeat a key
    table = parsed.get(TABLE)
    named = {**parsed, **(table if isinstance(table, dict) else {})}
    return {name: value for name, value in named.items() if isinstance(value, str)}


def _place(error: Exception) -> str:
    _, found, place = str(error).rpartition("(at ")
    return f" at {place.rstrip(')')}" if found and "line" in place else ""


# The first name of each that has a value counts.
OPENAI_HEADERS = {
    "OpenAI-Organization": ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID"),
    "OpenAI-Project": ("OPENAI_PROJECT_ID",),
}
ANY_HEADERS = "OPENAI_CUSTOM_HEADERS"  # a line each
WATSONX_SCHEMES = {"WATSONX_TOKEN": "Bearer", "WATSONX_ZENAPIKEY": "ZenApiKey"}
TAKEN_OUT = (ANY_HEADERS, *sum(OPENAI_HEADERS.values(), ()), *WATSONX_SCHEMES)
_kept: dict[str, str] = {}


def hide_settings() -> None:
    """Move provider settings out of the environment, where litellm would read them."""
    for name in TAKEN_OUT:
        value = os.environ.pop(name, "").strip()
        if value:
            _kept[name] = value


def headers_for(agent: AgentConfig, key: str) -> dict[str, str]:
    """Return the headers of the agent's calls beyond those that its `key` implies.

    Another server that is asked as watsonx gets its key as it is: litellm would take it to IBM
    for a token.
    """
    provider = provider_of(agent)
    if provider == OPENAI_COMPATIBLE and not is_elsewhere(agent):
        return _of_openai()
    if provider == "watsonx":
        given = ((scheme, _kept.get(name)) for name, scheme in WATSONX_SCHEMES.items())
        own = next((f"{scheme} {value}" for scheme, value in given if value), "")
        sent = f"Bearer {key}" if is_elsewhere(agent) else own
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
