"""The search tool: the sources first, the web where they do not speak, who answered, from when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.runtime.errors import ModelError
from core.schema.events import ToolUse
from core.schema.records import Statement
from core.tools.registry import Found, read_input, use
from core.tools.web_search import TOOL, Search
from tests.fakes import make_case
from tests.tools.benches import bench, library_of

SPEAKS = library_of("The Orrin bridge is 412 m long.", "It carries a tramway.")
SILENT = library_of("Beat two eggs with the sugar.")
PAGE = Found("Orrin", "https://a.org/orrin", "The bridge spans 412 m.", "Wikipedia")
QUERY = "The Orrin bridge is 512 m long."


class Web:
    """A web that finds what it is given, and keeps what it was asked."""

    def __init__(self, *found: Found, problem: ModelError | None = None) -> None:
        self.found, self.problem = found, problem
        self.asked: list[str] = []

    def __call__(self, query: str, most: int) -> Sequence[Found]:
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
    used = use(TOOL, Search(QUERY), bench(library=SPEAKS, web=web))
    assert web.asked == []
    assert (used.label, used.p, used.outcome) == ("unclear", None, "found")
    assert gave(used)["by"] == "the project's sources"
    assert [s["title"] for s in gave(used)["sources"]] == ["s0.txt", "s1.txt"]


def test_the_web_is_asked_where_the_sources_hardly_speak() -> None:
    web = Web(PAGE)
    used = use(TOOL, Search(QUERY), bench(library=SILENT, web=web))
    assert web.asked == [QUERY]
    assert gave(used)["by"] == "the project's sources and Wikipedia"
    assert gave(used)["sources"][-1] == {
        "by": "Wikipedia",
        "title": "Orrin",
        "address": "https://a.org/orrin",
        "text": "The bridge spans 412 m.",
    }


def test_without_a_provider_it_says_that_the_web_was_not_searched() -> None:
    used = use(TOOL, Search(QUERY), bench(library=SILENT))
    assert "no provider is chosen" in used.words
    assert used.outcome == "found"


def test_where_it_looks_can_be_said() -> None:
    web = Web(PAGE)
    only_web = use(TOOL, Search(QUERY, "web"), bench(library=SPEAKS, web=web))
    assert [s["by"] for s in gave(only_web)["sources"]] == ["Wikipedia"]
    only_here = use(TOOL, Search(QUERY, "library"), bench(library=SILENT, web=web))
    assert [s["by"] for s in gave(only_here)["sources"]] == ["the project's sources"]
    assert len(web.asked) == 1


def test_kept_results_say_from_when_they_are() -> None:
    kept = replace(PAGE, seen_at=1_700_000_000.0)
    used = use(TOOL, Search(QUERY), bench(web=Web(kept)))
    assert "Wikipedia (as found on 2023-11-14)" in used.words
    assert gave(used)["sources"][0]["seen"] == "2023-11-14"


def test_a_web_that_fails_takes_nothing_from_the_sources() -> None:
    web = Web(problem=ModelError("The 2 web searches that Settings allow a run are used up."))
    used = use(TOOL, Search(QUERY), bench(library=SILENT, web=web))
    assert used.outcome == "found"
    assert "The web could not be searched: The 2 web searches" in used.words


@pytest.mark.parametrize("library", [None, library_of()])
def test_a_web_that_fails_alone_is_a_failure(library: Any) -> None:
    used = use(TOOL, Search(QUERY), bench(library=library, web=Web(problem=ModelError("Away."))))
    assert (used.outcome, used.label, used.words) == ("failed", "unclear", "Away.")


def test_nothing_found_is_said_and_no_label() -> None:
    used = use(TOOL, Search(QUERY), bench(library=library_of(), web=Web()))
    assert (used.outcome, used.label, used.words) == ("nothing", "unclear", "Nothing was found.")


def test_no_more_than_five_of_each() -> None:
    many = library_of(*(f"Orrin bridge is 512 m long, {n}." for n in range(9)))
    assert len(gave(use(TOOL, Search(QUERY), bench(library=many)))["sources"]) == 5
    web = Web(*[PAGE] * 9)
    assert len(gave(use(TOOL, Search(QUERY), bench(web=web)))["sources"]) == 5


def test_it_is_off_where_there_is_nothing_to_search() -> None:
    used = use(TOOL, Search(QUERY), bench())
    assert used.outcome == "off"
    assert "no provider" in used.words


@pytest.mark.parametrize("where", ["web", "library"])
def test_a_place_that_is_not_there_is_said(where: str) -> None:
    given = read_input(TOOL, json.dumps({"query": QUERY, "where": where}))
    there = bench(library=SPEAKS) if where == "web" else bench(web=Web(PAGE))
    used = use(TOOL, given, there)
    assert used.outcome == "failed"
    assert "no provider is chosen" in used.words or "no sources" in used.words


def test_no_words_are_refused() -> None:
    assert use(TOOL, Search("  "), bench(library=SPEAKS)).outcome == "failed"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Lena Moor.", "Who built it? Lena Moor."),
        ("The Orrin bridge was opened in 1931.", "The Orrin bridge was opened in 1931."),
    ],
)
def test_a_short_answer_is_looked_for_with_its_question(text: str, query: str) -> None:
    case = make_case(text, question="Who built it?")
    assert TOOL.reads is not None
    assert TOOL.reads(Statement(0, 0, len(text), text, text), case) == Search(query)
    assert TOOL.reads(None, case) is None
