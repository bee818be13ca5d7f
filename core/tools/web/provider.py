"""What a web provider is, and what all of them do alike with an answer.

To add one: a file beside this one with a class like those, and a line in `chosen.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from core.concurrency import Stop
from core.errors import ConfigError, ModelError
from core.tools.toolbox import Found
from core.tools.web.fetch import Answered, Fetch

Given = TypeVar("Given")
MOST_RESULTS = 5  # HaluAgent 2.2
LONGEST_TITLE = 300
LONGEST_TEXT = 2_000
LONGEST_QUERY = 300  # characters; Wikipedia takes no more
LONGEST_ADDRESS = 2_000
NO_HEADERS: Mapping[str, str] = {}
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class Provider(Protocol):
    """A search service. `name` is for people, `service` tells its cached answers from others'."""

    @property
    def name(self) -> str:
        """As people know it."""
        ...

    @property
    def service(self) -> str:
        """Names whom the answers come from: provider, address and engine, never a key."""
        ...

    def search(self, query: str, language: str, fetch: Fetch, stop: Stop) -> tuple[Found, ...]:
        """At most `MOST_RESULTS`, best first; none where it knows of nothing.

        Raises:
            ConfigError: key, engine or address are not right; the message says what to do.
            ModelError: it failed.
        """
        ...


@dataclass(frozen=True)
class Refusal:
    """Words for a status that means something particular to one provider."""

    status: int
    words: str


def body_of(
    answered: Answered, name: str, shape: type[Given], refusals: Sequence[Refusal] = ()
) -> Given:
    """The answer in that shape.

    Raises:
        ConfigError: the provider refuses for a reason that the operator can mend.
        ModelError: it failed, sends elsewhere, or answers in another form.
    """
    status = answered.status
    for refusal in refusals:
        if refusal.status == status:
            raise ConfigError(f"{name}: {refusal.words}")
    if 300 <= status < 400:
        raise ModelError(f"{name} sends to another address ({status}); that is never followed.")
    if status == 429:
        raise ModelError(f"{name} takes no more searches for now (429); try again later.")
    if status != 200:
        raise ModelError(f"{name} answered with status {status} instead of results.")
    try:
        return msgspec.json.decode(answered.body, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{name} answered in a form that is not its API's; is it the right address?"
        ) from error


def found_of(title: str, address: str, text: str, name: str) -> Found | None:
    """A result as it is shown; None for one without words or a web address."""
    words = _plain(text, LONGEST_TEXT)
    try:
        is_web = urlsplit(address).scheme in ("http", "https") and bool(urlsplit(address).hostname)
    except ValueError:
        is_web = False
    if not words or not is_web or len(address) > LONGEST_ADDRESS:
        return None
    return Found(_plain(title, LONGEST_TITLE), address, words, by=name)


def query_of(text: str) -> str:
    """The words that are sent: on one line, cut at a word where they are too many."""
    line = _plain(text, LONGEST_QUERY + 1)
    if len(line) <= LONGEST_QUERY:
        return line
    cut = line[:LONGEST_QUERY]
    return cut.rsplit(" ", 1)[0] if " " in cut else cut


def _plain(text: str, most: int) -> str:
    """On one line, without controls."""
    return _BLANKS.sub(" ", text).strip()[:most]
