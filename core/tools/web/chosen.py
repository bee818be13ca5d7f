"""Which provider of web searches the operator chose, and whether what it needs is at hand.

The choice is kept with the home's settings; the key never is. Off until somebody chooses one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from core.errors import ConfigError, InputError, KeyMissing
from core.models.keys import SEARCH_KEY, Keys
from core.store import Store
from core.tools.web.gate import Gate, origin_of
from core.tools.web.google import Google
from core.tools.web.provider import Provider
from core.tools.web.searxng import SearXng
from core.tools.web.wikipedia import Wikipedia

NOTE = "web search"
OFF = "No provider of web searches is chosen; choose one under Settings, Web search."
PROVIDERS = {
    "": "none: nothing is ever searched on the web",
    "google": "Google Programmable Search",
    "searxng": "SearXNG, a server of your own choice",
    "wikipedia": "Wikipedia, in the statement's language",
}
WHO_IS_TOLD = {
    "google": "www.googleapis.com, with your key: Google knows whose search it is",
    "searxng": "the address above, which passes them on to the search engines that it is set to",
    "wikipedia": "wikipedia.org",
}
_CX = re.compile(r"[\w:.-]{1,100}")
LONGEST_ADDRESS = 300


@dataclass(frozen=True)
class WebChoice:
    """A key of `PROVIDERS`, the SearXNG server's address, the Google engine's cx."""

    provider: str = ""
    address: str = ""
    cx: str = ""


def web_choice(store: Store) -> WebChoice:
    """What was chosen; nothing at first.

    Raises:
        ConfigError: what is stored is no such choice.
    """
    stored = store.projects.note(NOTE)
    if not stored:
        return WebChoice()
    try:
        found = msgspec.json.decode(stored.encode(), type=WebChoice)
        return _checked(found)
    except (msgspec.MsgspecError, ValueError, InputError) as error:
        raise ConfigError(
            f"Expected a choice of web search in the settings, found something else ({error}); "
            "choose again under Settings, Web search."
        ) from error


def save_web_choice(store: Store, choice: WebChoice) -> None:
    """Keep a choice; call inside `Store.writing()`.

    Raises:
        InputError: the provider's address or engine is missing or cannot be one.
    """
    whole = _checked(WebChoice(choice.provider, choice.address.strip(), choice.cx.strip()))
    store.projects.save_note(NOTE, msgspec.json.encode(whole).decode())


def provider_for(choice: WebChoice, keys: Keys) -> Provider:
    """The chosen provider, ready to be asked.

    Raises:
        ConfigError: none is chosen.
        KeyMissing: its key is not at hand.
    """
    if choice.provider == "google":
        key = keys.get(SEARCH_KEY)
        if key is None:
            raise KeyMissing(
                f"Google Programmable Search needs a key that is not at hand: expected "
                f"{SEARCH_KEY}, found none. Set it in the environment or in "
                ".streamlit/secrets.toml, or type it under Settings.",
                names=(SEARCH_KEY,),
            )
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise ConfigError(f"{SEARCH_KEY} holds a letter that no key has; copy it again.")
        return Google(choice.cx, key)
    if choice.provider == "searxng":
        return SearXng(choice.address)
    if choice.provider == "wikipedia":
        return Wikipedia()
    raise ConfigError(OFF)


def gate_for(choice: WebChoice) -> Gate:
    """Public addresses alone; a SearXNG server may be inside, at the origin that was named."""
    if choice.provider != "searxng":
        return Gate()
    return Gate(frozenset({origin_of(choice.address)}))


def _checked(choice: WebChoice) -> WebChoice:
    if choice.provider not in PROVIDERS:
        names = ", ".join(name for name in PROVIDERS if name)
        raise InputError(f"Expected one of {names}, found “{choice.provider[:40]}”; choose again.")
    if choice.provider == "google" and not _CX.fullmatch(choice.cx):
        raise InputError(
            "Expected the engine's cx, as its control panel shows it, found "
            f"“{choice.cx[:40]}”; copy it from there."
        )
    if choice.provider == "searxng":
        _check_address(choice.address)
    return choice


def _check_address(address: str) -> None:
    if not address or len(address) > LONGEST_ADDRESS or any(c in address for c in "?# \\"):
        raise InputError(
            "Expected the SearXNG server's address, such as https://search.example.org, found "
            f"“{address[:80]}”; give it without what follows a “?”."
        )
    try:
        origin_of(address)
    except ConfigError as error:
        raise InputError(str(error)) from error
