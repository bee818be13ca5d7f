"""Searches of one run: kept, counted, capped; the tool asks the sources first, then the web."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from core.llm.keys import SEARCH_KEY, Keys
from core.runtime.concurrency import StopSignal
from core.runtime.errors import BudgetReached, ConfigError, InputError, KeyMissing, ModelError
from core.schema.events import ToolUse
from core.schema.records import Plan, Project, Run, Statement
from core.store import Store, open_store
from core.store.ledger import DAY_SECONDS, WebQuery
from core.tools.registry import SearchResult, ToolContext, read_input, use_tool
from core.tools.web_fetch import FetchFunction, HttpResponse
from core.tools.web_search import (
    CHOICE_NOTE,
    TOOL,
    SearchAllowance,
    SearchInput,
    WebSearch,
    WebSearchChoice,
    load_web_choice,
    make_gate,
    make_provider,
    make_web_search,
    save_web_choice,
    try_search,
)
from tests.fakes import make_case
from tests.tools.benches import bench, library_of
from tests.tools.corpus import table
from tests.tools.web.server import as_json, serving

FOUND = SearchResult("Orrin bridge", "https://a.org/orrin", "It is 412 m long.", "Ours")


@dataclass
class Ours:
    """A provider that says how often it was asked."""

    service: str = "ours"
    problem: Exception | None = None
    asked: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    name = "Ours"

    def search(
        self, query: str, language: str, fetch: FetchFunction, stop: StopSignal
    ) -> tuple[SearchResult, ...]:
        self.asked.append(query)
        self.languages.append(language)
        if self.problem:
            raise self.problem
        return (FOUND, replace(FOUND, title="Second"))


def no_fetch(
    url: str, params: Mapping[str, str], stop: StopSignal, headers: Mapping[str, str]
) -> HttpResponse:
    raise AssertionError("nothing is fetched here")


@pytest.fixture
def make(home: Path) -> Callable[..., WebSearch]:
    def made(
        provider: Ours, at: float = 1000.0, language: str = "en", **account: object
    ) -> WebSearch:
        own = SearchAllowance(**({"run_id": "run", "most": 3, "days": 7} | account))  # type: ignore[arg-type]
        return WebSearch(provider, no_fetch, home, own, language, StopSignal(), lambda: at)

    return made


Make = Callable[..., WebSearch]


def test_the_same_search_is_answered_again_and_says_from_when(make: Make) -> None:
    ours = Ours()
    first = make(ours)("How long?", 5)
    again = make(ours, 2000.0, run_id="other")("  How\nlong? ", 5)
    assert [one.seen_at for one in first] == [None, None]
    assert [one.seen_at for one in again] == [1000.0, 1000.0]
    assert [replace(one, seen_at=None) for one in again] == list(first)
    assert ours.asked == ["How long?"]


def test_results_are_not_reused_in_another_project(make: Make, home: Path) -> None:
    with open_store(home) as store, store.writing():
        for project in ("ours", "theirs"):
            store.projects.save(Project(project, project, 1.0))
            store.cases.add(make_case("It is 412 m long.", id=project, project_id=project), [])
            for number in (1, 2):
                run = Run(f"{project} {number}", project, project, Plan(), "queued", 1.0)
                store.runs.add(run, "me", 1.0)
    ours = Ours()
    seen_at = [
        make(ours, run_id=run)("How long?", 1)[0].seen_at
        for run in ("ours 1", "theirs 1", "ours 2", "theirs 2")
    ]
    assert seen_at == [None, None, 1000.0, 1000.0]
    assert len(ours.asked) == 2


def test_only_as_many_as_were_wanted_are_given(make: Make) -> None:
    assert [one.title for one in make(Ours())("How long?", 1)] == ["Orrin bridge"]


@pytest.mark.parametrize(
    "changed",
    [{"at": 1000.0 + 7 * DAY_SECONDS + 1}, {"language": "de"}, {"days": 0}, {"service": "else"}],
)
def test_another_question_or_an_old_answer_is_asked_anew(
    make: Make, changed: dict[str, object]
) -> None:
    ours = Ours()
    make(ours)("How long?", 5)
    ours.service = str(changed.pop("service", "ours"))
    make(ours, **changed)("How long?", 5)
    assert len(ours.asked) == 2


def test_a_case_of_no_known_language_is_searched_for_in_the_querys_own(make: Make) -> None:
    ours = Ours()
    search = make(ours, language="und")
    search("Die Brücke wurde im Jahr 1931 von der Stadt eröffnet.", 5)
    search("云溪桥建于1931年。", 5)
    assert ours.languages == ["de", "zh"]


def test_the_cap_is_said_and_nothing_is_sent(make: Make) -> None:
    ours = Ours()
    search = make(ours, most=2)
    for words in ("one", "two"):
        search(words, 5)
    with pytest.raises(BudgetReached, match="2 web searches"):
        search("three", 5)
    assert search("one", 5)[0].seen_at == 1000.0, "what was found costs nothing again"
    assert ours.asked == ["one", "two"]


def test_the_cap_outlives_an_interruption_and_counts_each_run_apart(make: Make) -> None:
    ours = Ours()
    make(ours, most=1)("one", 5)
    with pytest.raises(BudgetReached):
        make(ours, most=1)("two", 5)
    make(ours, most=1, run_id="other")("two", 5)


def test_a_search_that_failed_counts_and_is_not_kept(make: Make) -> None:
    ours = Ours(problem=ModelError("It is away."))
    with pytest.raises(ModelError, match="away"):
        make(ours, most=2)("one", 5)
    ours.problem = None
    assert make(ours, most=2)("one", 5)[0].seen_at is None
    with pytest.raises(BudgetReached):
        make(ours, most=2)("two", 5)


def test_what_is_set_up_wrongly_fails_the_tool_and_not_the_run(make: Make) -> None:
    with pytest.raises(ModelError, match="refused the key"):
        make(Ours(problem=ConfigError("It refused the key.")))("one", 5)


def test_many_threads_together_pass_no_cap(make: Make) -> None:
    ours, ready, refused = Ours(), threading.Barrier(12), list[str]()
    search = make(ours, most=5)

    def work(number: int) -> None:
        ready.wait()
        try:
            search(f"question {number}", 5)
        except BudgetReached:
            refused.append("refused")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ours.asked), len(refused)) == (5, 7)


def test_nothing_is_searched_for_without_words(make: Make) -> None:
    with pytest.raises(ModelError, match="no words"):
        make(Ours())(" \n ", 5)


def test_old_searches_are_dropped(store: Store) -> None:
    query = WebQuery("s", "en", "q")
    number = store.web_searches.begin("run", query, 0.0)
    store.web_searches.finish(number, "[]")
    store.web_searches.begin("run", query, 31.0 * DAY_SECONDS)
    assert store.web_searches.sent("run") == 1
    assert store.web_searches.kept(query, 0.0, "run") is None


def test_nothing_is_chosen_at_first(store: Store, home: Path) -> None:
    choice = load_web_choice(store)
    assert choice == WebSearchChoice()
    assert (
        make_web_search(choice, Keys({}), home, SearchAllowance("r", 1, 1), "en", StopSignal())
        is None
    )
    with pytest.raises(ConfigError, match="No provider of web searches is chosen"):
        make_provider(choice, Keys({}))


@pytest.mark.parametrize(
    "choice",
    [
        WebSearchChoice("wikipedia"),
        WebSearchChoice("google", cx="0123:abc-d_e"),
        WebSearchChoice("searxng", "http://192.168.1.9:8888/searx"),
    ],
)
def test_a_choice_is_kept_as_it_was_made(store: Store, choice: WebSearchChoice) -> None:
    save_web_choice(store, choice)
    assert load_web_choice(store) == choice
    assert make_provider(choice, Keys({SEARCH_KEY: "k"})).service


@pytest.mark.parametrize(
    "choice",
    [
        WebSearchChoice("bing"),
        WebSearchChoice("google"),
        WebSearchChoice("google", cx="a b"),
        WebSearchChoice("google", cx="x&key=1"),
        WebSearchChoice("searxng"),
        WebSearchChoice("searxng", "search.example.org"),
        WebSearchChoice("searxng", "file:///etc/passwd"),
        WebSearchChoice("searxng", "https://u:p@search.example.org"),
        WebSearchChoice("searxng", "https://search.example.org/?q=1"),
        WebSearchChoice("searxng", "https://" + "a" * 400),
    ],
)
def test_a_choice_that_cannot_be_one_is_refused(store: Store, choice: WebSearchChoice) -> None:
    with pytest.raises(InputError):
        save_web_choice(store, choice)
    assert load_web_choice(store) == WebSearchChoice()


@pytest.mark.parametrize("stored", ["{", '{"provider": "bing"}', "[1]", '{"provider": 3}'])
def test_a_stored_choice_of_another_making_is_said(store: Store, stored: str) -> None:
    store.projects.save_note(CHOICE_NOTE, stored)
    with pytest.raises(ConfigError, match="choose again"):
        load_web_choice(store)


def test_google_without_its_key_names_it() -> None:
    with pytest.raises(KeyMissing) as raised:
        make_provider(WebSearchChoice("google", cx="c"), Keys({}))
    assert raised.value.names == (SEARCH_KEY,)


def test_a_search_without_its_key_fails_saying_so_and_sends_nothing(home: Path) -> None:
    choice = WebSearchChoice("google", cx="c")
    search = make_web_search(choice, Keys({}), home, SearchAllowance("r", 1, 1), "en", StopSignal())
    assert search is not None
    with pytest.raises(ModelError, match=SEARCH_KEY):
        search("How long?", 5)
    assert not (home / "counterpoint.db").exists()


def test_only_the_named_server_may_be_inside() -> None:
    assert make_gate(WebSearchChoice("searxng", "http://10.0.0.5/searx")).named == {
        "http://10.0.0.5:80"
    }
    left_over = WebSearchChoice("wikipedia", "http://10.0.0.5/searx")
    assert make_gate(left_over).named == frozenset()


def test_the_test_button_says_what_came_or_what_is_wrong(home: Path) -> None:
    result = {"title": "Wikipedia", "url": "https://a.org", "content": "An encyclopedia."}
    with serving(as_json({"results": [result]})) as server:
        works, words = try_search(WebSearchChoice("searxng", server.origin), Keys({}), StopSignal())
        assert (works, words) == (True, "SearXNG found 1 for “Wikipedia”; first “Wikipedia”.")
        assert server.got[0].params["q"] == "Wikipedia"
    works, words = try_search(WebSearchChoice("searxng", server.origin), Keys({}), StopSignal())
    assert not works
    assert "could not be asked" in words
    assert try_search(WebSearchChoice("google", cx="c"), Keys({}), StopSignal())[0] is False
    assert not (home / "counterpoint.db").exists()


def test_a_search_is_written_down_in_the_home(home: Path) -> None:
    result = {"title": "Orrin", "url": "https://a.org", "content": "It is 412 m long."}
    with serving(as_json({"results": [result]})) as server:
        choice = WebSearchChoice("searxng", server.origin)
        search = make_web_search(
            choice, Keys({}), home, SearchAllowance("run", 5, 7), "en", StopSignal()
        )
        assert search is not None
        search("How long?", 5)
        search("How long?", 5)
        assert len(server.got) == 1
    with open_store(home) as store:
        assert store.web_searches.sent("run") == 1


SPEAKS = library_of("The Orrin bridge is 412 m long.", "It carries a tramway.")
SILENT = library_of("Beat two eggs with the sugar.")
PAGE = SearchResult("Orrin", "https://a.org/orrin", "The bridge spans 412 m.", "Wikipedia")
QUERY = "The Orrin bridge is 512 m long."


class Web:
    """A web that finds what it is given, and keeps what it was asked."""

    def __init__(self, *found: SearchResult, problem: ModelError | None = None) -> None:
        self.found, self.problem = found, problem
        self.asked: list[str] = []

    def __call__(self, query: str, most: int) -> Sequence[SearchResult]:
        self.asked.append(query)
        if self.problem:
            raise self.problem
        return self.found


def gave(used: ToolUse) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(used.gave)
    return found


def test_sources_that_speak_of_it_answer_alone() -> None:
    """Nothing leaves this computer for what the project's own documents say."""
    web = Web(PAGE)
    used = use_tool(TOOL, SearchInput(QUERY), bench(library=SPEAKS, web=web))
    assert web.asked == []
    assert (used.label, used.p, used.outcome) == ("unclear", None, "found")
    assert gave(used)["by"] == "the project's sources"
    assert [s["title"] for s in gave(used)["sources"]] == ["s0.txt", "s1.txt"]


def test_the_web_is_asked_where_the_sources_hardly_speak() -> None:
    web = Web(PAGE)
    used = use_tool(TOOL, SearchInput(QUERY), bench(library=SILENT, web=web))
    assert web.asked == [QUERY]
    assert gave(used)["by"] == "the project's sources and Wikipedia"
    assert gave(used)["sources"][-1] == {
        "by": "Wikipedia",
        "title": "Orrin",
        "address": "https://a.org/orrin",
        "text": "The bridge spans 412 m.",
    }


def test_without_a_provider_it_says_that_the_web_was_not_searched() -> None:
    used = use_tool(TOOL, SearchInput(QUERY), bench(library=SILENT))
    assert "no provider is chosen" in used.words
    assert used.outcome == "found"


def test_where_it_looks_can_be_said() -> None:
    web = Web(PAGE)
    only_web = use_tool(TOOL, SearchInput(QUERY, "web"), bench(library=SPEAKS, web=web))
    assert [s["by"] for s in gave(only_web)["sources"]] == ["Wikipedia"]
    only_here = use_tool(TOOL, SearchInput(QUERY, "library"), bench(library=SILENT, web=web))
    assert [s["by"] for s in gave(only_here)["sources"]] == ["the project's sources"]
    assert len(web.asked) == 1


def test_kept_results_say_from_when_they_are() -> None:
    kept = replace(PAGE, seen_at=1_700_000_000.0)
    used = use_tool(TOOL, SearchInput(QUERY), bench(web=Web(kept)))
    assert "Wikipedia (as found on 2023-11-14)" in used.words
    assert gave(used)["sources"][0]["seen"] == "2023-11-14"


def test_a_web_that_fails_takes_nothing_from_the_sources() -> None:
    web = Web(problem=ModelError("The 2 web searches that Settings allow a run are used up."))
    used = use_tool(TOOL, SearchInput(QUERY), bench(library=SILENT, web=web))
    assert used.outcome == "found"
    assert "The web could not be searched: The 2 web searches" in used.words


@pytest.mark.parametrize("library", [None, library_of()])
def test_a_web_that_fails_alone_is_a_failure(library: Any) -> None:
    used = use_tool(
        TOOL, SearchInput(QUERY), bench(library=library, web=Web(problem=ModelError("Away.")))
    )
    assert (used.outcome, used.label, used.words) == ("failed", "unclear", "Away.")


def test_no_more_than_five_of_each() -> None:
    many = library_of(*(f"Orrin bridge is 512 m long, {n}." for n in range(9)))
    assert len(gave(use_tool(TOOL, SearchInput(QUERY), bench(library=many)))["sources"]) == 5
    web = Web(*[PAGE] * 9)
    assert len(gave(use_tool(TOOL, SearchInput(QUERY), bench(web=web)))["sources"]) == 5


@pytest.mark.parametrize("where", ["web", "library"])
def test_a_place_that_is_not_there_is_said(where: str) -> None:
    given = read_input(TOOL, json.dumps({"query": QUERY, "where": where}))
    there = bench(library=SPEAKS) if where == "web" else bench(web=Web(PAGE))
    used = use_tool(TOOL, given, there)
    assert used.outcome == "failed"
    assert "no provider is chosen" in used.words or "no sources" in used.words


@pytest.mark.parametrize(
    ("query", "at", "outcome", "said"),
    [
        (QUERY, bench(library=library_of(), web=Web()), "nothing", "Nothing was found."),
        (QUERY, bench(), "off", "no provider"),
        ("  ", bench(library=SPEAKS), "failed", "Expected words"),
    ],
)
def test_where_nothing_can_be_found_there_is_no_label(
    query: str, at: ToolContext, outcome: str, said: str
) -> None:
    used = use_tool(TOOL, SearchInput(query), at)
    assert (used.outcome, used.label) == (outcome, "unclear")
    assert said in used.words


@pytest.mark.parametrize(*table("search_tool: a short answer is looked for with its question"))
def test_a_short_answer_is_looked_for_with_its_question(text: str, query: str) -> None:
    case = make_case(text, question="Who built it?")
    assert TOOL.reads is not None
    assert TOOL.reads(Statement(0, 0, len(text), text, text), case) == SearchInput(query)
    assert TOOL.reads(None, case) is None
