"""The tool `search`: the project's sources first, then the web, if a provider is chosen.

Earlier results are reused; new searches are counted before they are sent, and capped per run.
Source: HaluAgent 2.2 (`make_web_search`, the five best results).
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from core.documents.segmentation import (
    UNKNOWN_LANGUAGE,
    detect_language,
    extract_query_terms,
    extract_terms,
)
from core.llm.keys import SEARCH_KEY, Keys
from core.runtime.concurrency import StopSignal
from core.runtime.errors import (
    BudgetReached,
    ConfigError,
    InputError,
    KeyMissing,
    ModelError,
    ReviewError,
)
from core.schema.records import Case, Passage, Statement
from core.store import Store, open_store
from core.store.ledger import DAY_SECONDS, StoredSearch, WebQuery
from core.tools.registry import SearchResult, Tool, ToolAnswer, ToolContext, load_examples
from core.tools.vocabulary import load_words
from core.tools.web_fetch import (
    MAX_RESULTS,
    AddressGate,
    FetchFunction,
    GoogleSearch,
    GuardedFetch,
    SearchProvider,
    SearXngSearch,
    WikipediaSearch,
    parse_origin,
    shorten_query,
)

CHOICE_NOTE = "web search"
NO_PROVIDER_MESSAGE = (
    "No provider of web searches is chosen; choose one under Settings, Web search."
)
PROVIDERS = {
    "": "none: nothing is ever searched on the web",
    "google": "Google Programmable Search",
    "searxng": "SearXNG, a server of your own choice",
    "wikipedia": "Wikipedia, in the statement's language",
}
PROVIDER_RECIPIENTS = {
    "google": "www.googleapis.com, with your key: Google knows whose search it is",
    "searxng": "the address above, which passes them on to the search engines that it is set to",
    "wikipedia": "wikipedia.org",
}
MAX_SERVER_URL_CHARS = 300
SearchWeb = Callable[[str, int], Sequence[SearchResult]]
LIBRARY_SOURCE = "the project's sources"
NO_WEB_MESSAGE = "The web was not searched: no provider is chosen under Settings, Web search."
NO_SOURCES_MESSAGE = (
    "There are no sources to search here, and no provider of web searches is chosen under "
    "Settings, Web search."
)
# If the sources hold at least this share of a query's words, the web is not searched.
MIN_COVERED_SHARE = 0.5
MIN_STATEMENT_TERMS = 4


@dataclass(frozen=True)
class WebSearchChoice:
    """A key of `PROVIDERS`, a SearXNG server's address, and a Google engine's cx."""

    provider: str = ""
    address: str = ""
    cx: str = ""


def load_web_choice(store: Store) -> WebSearchChoice:
    """Load the choice; by default no provider is chosen.

    Raises ConfigError if the stored choice is invalid.
    """
    stored = store.projects.note(CHOICE_NOTE)
    try:
        choice = (
            msgspec.json.decode(stored.encode(), type=WebSearchChoice)
            if stored
            else WebSearchChoice()
        )
        return _validate_choice(choice)
    except (msgspec.MsgspecError, ValueError, InputError) as error:
        raise ConfigError(
            f"Expected a choice of web search in the settings, found something else ({error}); "
            "choose again under Settings, Web search."
        ) from error


def save_web_choice(store: Store, choice: WebSearchChoice) -> None:
    """Save a choice; call inside `Store.writing()`.

    Raises InputError if the provider's address or engine is missing or invalid.
    """
    validated = _validate_choice(
        WebSearchChoice(choice.provider, choice.address.strip(), choice.cx.strip())
    )
    store.projects.save_note(CHOICE_NOTE, msgspec.json.encode(validated).decode())


def _validate_choice(choice: WebSearchChoice) -> WebSearchChoice:
    address = choice.address
    if choice.provider not in PROVIDERS:
        names = ", ".join(name for name in PROVIDERS if name)
        raise InputError(f"Expected one of {names}, found “{choice.provider[:40]}”; choose again.")
    if choice.provider == "google" and not re.fullmatch(r"[\w:.-]{1,100}", choice.cx):
        raise InputError(
            "Expected the engine's cx, as its control panel shows it, found "
            f"“{choice.cx[:40]}”; copy it from there."
        )
    if choice.provider == "searxng":
        if not address or len(address) > MAX_SERVER_URL_CHARS or any(c in address for c in "?# \\"):
            raise InputError(
                "Expected the SearXNG server's address, such as https://search.example.org, found "
                f"“{address[:80]}”; give it without what follows a “?”."
            )
        try:
            parse_origin(address)
        except ConfigError as error:
            raise InputError(str(error)) from error
    return choice


def make_provider(choice: WebSearchChoice, keys: Keys) -> SearchProvider:
    """Return the chosen provider, ready to use.

    Raises:
        ConfigError: none is chosen.
        KeyMissing: its key is missing.
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
        return GoogleSearch(choice.cx, key)
    if choice.provider == "searxng":
        return SearXngSearch(choice.address)
    if choice.provider == "wikipedia":
        return WikipediaSearch()
    raise ConfigError(NO_PROVIDER_MESSAGE)


def make_gate(choice: WebSearchChoice) -> AddressGate:
    """Return a gate for public addresses, and for the named origin of a SearXNG server."""
    is_named = choice.provider == "searxng"
    return AddressGate(frozenset({parse_origin(choice.address)} if is_named else ()))


def try_search(
    choice: WebSearchChoice, keys: Keys, stop: StopSignal, fetch: FetchFunction | None = None
) -> tuple[bool, str]:
    """Try one small search; return whether it works and a sentence about it. Nothing is stored.

    Raises Stopped if `stop` was set.
    """
    query = "Wikipedia"
    try:
        provider = make_provider(choice, keys)
        results = provider.search(query, "en", fetch or GuardedFetch(make_gate(choice)), stop)
    except ReviewError as error:
        stop.check()
        return False, keys.scrubbed(str(error))
    if not results:
        return False, f"{provider.name} answered, but found nothing for “{query}”."
    return True, f"{provider.name} found {len(results)} for “{query}”; first “{results[0].title}”."


@dataclass(frozen=True)
class SearchAllowance:
    """The run that searches are counted for, and how many it may send."""

    run_id: str
    most: int
    days: int  # how long a cached answer is reused


@dataclass(frozen=True)
class WebSearch:
    """The `ToolContext.web` function; safe to use from several threads at once.

    `language` is the case's BCP 47 tag; if it is `und` the query's own language is detected.
    """

    provider: SearchProvider
    fetch: FetchFunction
    home: Path
    account: SearchAllowance
    language: str
    stop: StopSignal
    now: Callable[[], float] = field(default=time.time)

    def __call__(self, query: str, most: int) -> Sequence[SearchResult]:
        """Return the results, best first, with `seen_at` set if they are an earlier search's.

        Raises:
            BudgetReached: the run's searches are used up; this one was not sent.
            ModelError: the provider failed, or is not set up correctly.
            Stopped: the person stopped the check.
        """
        self.stop.check()
        words = shorten_query(query)
        if not words:
            raise ModelError("There are no words to search for.")
        language = detect_language(words) if self.language == UNKNOWN_LANGUAGE else self.language
        request = WebQuery(self.provider.service, language, words)
        entry = self._begin(request)
        if not isinstance(entry, StoredSearch):
            return self._send(request, entry)[:most]
        results = msgspec.json.decode(entry.results.encode(), type=tuple[SearchResult, ...])
        return tuple(replace(one, seen_at=entry.at) for one in results)[:most]

    def _begin(self, request: WebQuery) -> int | StoredSearch:
        """Return an earlier answer, or the number of a new search that may be sent."""
        now, account = self.now(), self.account
        try:
            with open_store(self.home) as store, store.writing():
                since = now - account.days * DAY_SECONDS
                cached = store.web_searches.kept(request, since, account.run_id)
                if cached is not None and account.days:
                    return cached
                if store.web_searches.sent(account.run_id) >= account.most:
                    raise BudgetReached(
                        f"{self.provider.name} was not asked: the {account.most} web searches that "
                        "Settings allow a run are used up."
                    )
                return store.web_searches.begin(account.run_id, request, now)
        except sqlite3.Error as error:
            raise ModelError(
                f"{self.provider.name} was not asked: the search could not be written down "
                f"({error})."
            ) from error

    def _send(self, request: WebQuery, number: int) -> tuple[SearchResult, ...]:
        try:
            results = self.provider.search(request.words, request.language, self.fetch, self.stop)
        except ConfigError as error:  # only the tool fails; the run goes on
            raise ModelError(str(error)) from error
        with open_store(self.home) as store:
            store.web_searches.finish(number, msgspec.json.encode(results).decode())
        return results


def make_web_search(
    choice: WebSearchChoice,
    keys: Keys,
    home: Path,
    account: SearchAllowance,
    language: str,
    stop: StopSignal,
) -> SearchWeb | None:
    """Return the chosen search; None if no provider is chosen.

    If its key or address is wrong, each search fails with the reason, and nothing is sent.
    """
    if not choice.provider:
        return None
    try:
        fetch, provider = GuardedFetch(make_gate(choice)), make_provider(choice, keys)
    except ConfigError as error:
        why = str(error)

        def fail(query: str, most: int) -> Sequence[SearchResult]:
            raise ModelError(why)

        return fail
    return WebSearch(provider, fetch, home, account, language, stop)


class SearchInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for, and where.

    query: the words to look for: a whole statement, or a question.
    where: library (the project's own sources), web, or both: the sources first, the web where
    they hardly speak of it.
    """

    query: str
    where: Literal["both", "library", "web"] = "both"


def _search(given: SearchInput, tool_context: ToolContext) -> ToolAnswer:
    if not given.query.strip():
        raise InputError("Expected words to search for, found none; give a statement's.")
    passages: Sequence[Passage] = ()
    if given.where != "web" and tool_context.library is not None:
        passages = tool_context.library(given.query, MAX_RESULTS)[:MAX_RESULTS]
    elif given.where == "library":
        raise InputError("There are no sources to search here; add a document to the check.")
    wanted = extract_query_terms(given.query)
    texts = (f"{p.heading} {p.before} {p.text} {p.after}" for p in passages)
    source_terms = {term for text in texts for term in extract_terms(text)}
    is_covered = sum(term in source_terms for term in wanted) >= MIN_COVERED_SHARE * len(wanted)
    if given.where == "library" or (passages and is_covered):
        return _make_answer(given, passages, (), "")
    if tool_context.web is None:
        if given.where == "web":
            raise InputError(NO_WEB_MESSAGE)
        return _make_answer(given, passages, (), NO_WEB_MESSAGE)
    try:
        results = tool_context.web(given.query, MAX_RESULTS)[:MAX_RESULTS]
    except ModelError as error:
        if not passages:
            raise
        return _make_answer(given, passages, (), f"The web could not be searched: {error}")
    return _make_answer(given, passages, results, "")


def _make_answer(
    given: SearchInput, passages: Sequence[Passage], found: Sequence[SearchResult], note: str
) -> ToolAnswer:
    """Describe the results with their providers and age; the label is always unclear."""
    sources = [
        {
            "by": LIBRARY_SOURCE,
            "title": p.source,
            "address": "" if p.page is None else f"page {p.page}",
            "text": f"{p.before} {p.text} {p.after}".strip(),
        }
        for p in passages
    ]
    for one in found:
        seen = {} if one.seen_at is None else {"seen": _format_day(one.seen_at)}
        sources.append(
            {"by": one.by, "title": one.title, "address": one.address, "text": one.text, **seen}
        )
    dates = [one.seen_at for one in found if one.seen_at is not None]
    as_of = f" (as found on {_format_day(min(dates))})" if dates else ""
    providers = [LIBRARY_SOURCE] if passages else []
    providers += [f"{name}{as_of}" for name in dict.fromkeys(one.by or "the web" for one in found)]
    by, count = (
        " and ".join(providers),
        "1 place" if len(sources) == 1 else f"{len(sources)} places",
    )
    words = f"Found {count} in {by}." if sources else "Nothing was found."
    gave = {"query": given.query, "by": by, "sources": sources}
    return ToolAnswer("unclear", f"{words} {note}".strip(), gave, has_something=bool(sources))


def _format_day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _read_statement(statement: Statement | None, case: Case) -> SearchInput | None:
    """Return the statement as the query; a short one together with its question."""
    if statement is None:
        return None
    is_short = len(extract_query_terms(statement.rewrite, case.language)) < MIN_STATEMENT_TERMS
    question = case.question.strip() if is_short else ""
    return SearchInput(f"{question} {statement.rewrite}" if question else statement.rewrite)


TOOL = Tool(
    name="search",
    description=load_words("descriptions")["search"],
    takes=SearchInput,
    work=_search,
    examples=load_examples("search", SearchInput),
    reads=_read_statement,
    why_off=lambda tool_context: (
        NO_SOURCES_MESSAGE if tool_context.library is None and tool_context.web is None else ""
    ),
)
