"""Searches the web for one run: what was found before is given again, new searches are capped."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from core.concurrency import Stop
from core.errors import BudgetReached, ConfigError, ModelError, ReviewError
from core.intake.language import UNKNOWN, language_of
from core.models.keys import Keys
from core.store import open_store
from core.store.web_searches import DAY, KeptSearch, WebQuery
from core.tools.toolbox import Found
from core.tools.web.chosen import WebChoice, gate_for, provider_for
from core.tools.web.fetch import Fetch, GuardedFetch
from core.tools.web.provider import Provider, query_of

TRIAL = "Wikipedia"
Search = Callable[[str, int], Sequence[Found]]


@dataclass(frozen=True)
class Account:
    """On whose account searches go: the run, and how many may be sent for it."""

    run_id: str
    most: int
    days: int  # for so long an answer is given again


@dataclass(frozen=True)
class WebSearch:
    """What `Bench.web` is; used from several threads at once.

    `language` is the case's as a BCP 47 tag; where it is `und` the query's own words tell it.
    """

    provider: Provider
    fetch: Fetch
    home: Path
    account: Account
    language: str
    stop: Stop
    now: Callable[[], float] = field(default=time.time)

    def __call__(self, query: str, most: int) -> Sequence[Found]:
        """What was found, best first; with `seen_at` where it is an earlier search's.

        Raises:
            BudgetReached: as many searches as allowed were sent; this one was not.
            ModelError: the provider failed, or is not set up rightly.
            Stopped: the person stopped the check.
        """
        self.stop.check()
        words = query_of(query)
        if not words:
            raise ModelError("There are no words to search for.")
        language = language_of(words) if self.language == UNKNOWN else self.language
        asked = WebQuery(self.provider.service, language, words)
        begun = self._begun(asked)
        found = _read(begun) if isinstance(begun, KeptSearch) else self._sent(asked, begun)
        return found[:most]

    def _begun(self, asked: WebQuery) -> int | KeptSearch:
        """An earlier answer, or the number of the search that may now be sent."""
        now, account = self.now(), self.account
        try:
            with open_store(self.home) as store, store.writing():
                since = now - account.days * DAY
                kept = store.web_searches.kept(asked, since) if account.days else None
                if kept is not None:
                    return kept
                if store.web_searches.sent(account.run_id) >= account.most:
                    raise BudgetReached(
                        f"{self.provider.name} was not asked: the {account.most} web searches that "
                        "Settings allow a run are used up."
                    )
                return store.web_searches.begin(account.run_id, asked, now)
        except sqlite3.Error as error:
            raise ModelError(
                f"{self.provider.name} was not asked: the search could not be written down "
                f"({error})."
            ) from error

    def _sent(self, asked: WebQuery, number: int) -> tuple[Found, ...]:
        try:
            found = self.provider.search(asked.words, asked.language, self.fetch, self.stop)
        except ConfigError as error:  # an agent's tool fails; the run goes on without it
            raise ModelError(str(error)) from error
        with open_store(self.home) as store:
            store.web_searches.finish(number, msgspec.json.encode(found).decode())
        return found


def web_search(
    choice: WebChoice,
    keys: Keys,
    home: Path,
    account: Account,
    language: str,
    stop: Stop,
) -> Search | None:
    """The search that was chosen; None where none is.

    Where its key or address is not right each search fails saying so, and nothing is sent.
    """
    if not choice.provider:
        return None
    try:
        fetch, provider = GuardedFetch(gate_for(choice)), provider_for(choice, keys)
    except ConfigError as error:
        return _failing(str(error))
    return WebSearch(provider, fetch, home, account, language, stop)


def _failing(why: str) -> Search:
    def search(query: str, most: int) -> Sequence[Found]:
        raise ModelError(why)

    return search


def tried(
    choice: WebChoice, keys: Keys, stop: Stop, fetch: Fetch | None = None
) -> tuple[bool, str]:
    """(whether it works, what came of one tiny search in words); nothing is kept of it.

    Raises:
        Stopped: `stop` was set.
    """
    try:
        provider = provider_for(choice, keys)
        get = fetch or GuardedFetch(gate_for(choice))
        found = provider.search(TRIAL, "en", get, stop)
    except ReviewError as error:
        stop.check()
        return False, keys.scrubbed(str(error))
    if not found:
        return False, f"{provider.name} answered, but found nothing for “{TRIAL}”."
    return True, f"{provider.name} found {len(found)} for “{TRIAL}”; first “{found[0].title}”."


def _read(kept: KeptSearch) -> tuple[Found, ...]:
    found = msgspec.json.decode(kept.results.encode(), type=tuple[Found, ...])
    return tuple(replace(one, seen_at=kept.at) for one in found)
