"""Tools used in a home outside of any run: its library, its web, its readers, a language model."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from core.agents.agent_runner import AgentContext
from core.documents.library import store_file
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.pipeline.jobs import JobRunner
from core.pipeline.tool_context import build_tool_context, make_asker_factory
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.events import ToolUse
from core.schema.records import Case, Plan
from core.schema.rosters import AgentConfig
from core.schema.run_state import fold_events
from core.store import open_store
from core.tools.registry import ToolContext, get_tool, read_input, use_tool
from core.tools.web_search import WebSearchChoice, save_web_choice
from tests.fakes import case_of
from tests.llm.loopback import Asked, Reply, loopback
from tests.tools.web.server import as_json, serving

pytestmark = pytest.mark.usefixtures("without_weights")

FACTS = b"The Orrin bridge is 412 m long. It was opened in 1931."


def bench(home: Path) -> ToolContext:
    return build_tool_context(home, Keys({}), StopSignal())


def with_model(home: Path, seat: AgentConfig) -> ToolContext:
    """What tools reach in the run “call” where a model is in the tool picker's seat."""
    with open_store(home):  # which makes the ledger
        account, caps = CallAccount("call", "Mira", ""), SpendingCaps.of(Settings(), 0)
    desk = MeteredClient(ModelClient(Keys({})), home, account, caps, time.time)
    ask = make_asker_factory(seat, AgentContext(desk, PromptBook(), Fence.of_run("call"), home))
    assert ask
    return ToolContext(StopSignal(), ask=ask(Case("call", "", "", language="en"), StopSignal()))


def used(tool: str, bench: ToolContext, **given: object) -> ToolUse:
    return use_tool(get_tool(tool), read_input(get_tool(tool), json.dumps(given)), bench)


@pytest.fixture
def library(home: Path) -> Path:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        for name, data in (("facts.txt", FACTS), ("broken.pdf", b"%PDF-1.4 nothing")):
            store_file(store, home, project.id, name, data, "Mira", 1.0, Settings())
    return home


def test_the_library_of_the_oldest_project_is_searched(library: Path) -> None:
    """A file that cannot be read costs only itself."""
    found = used("search", bench(library), query="How long is the Orrin bridge?")
    assert found.outcome == "found"
    sources = json.loads(found.gave)["sources"]
    assert {source["title"] for source in sources} == {"facts.txt"}
    assert "412 m" in sources[0]["text"]


def test_a_statement_is_compared_with_the_library_by_the_built_in_readers(library: Path) -> None:
    found = used("match", bench(library), statement="The Orrin bridge is 512 m long.")
    assert (found.label, found.instead) == ("hallucinated", "412 m")
    assert "512" in "The Orrin bridge is 512 m long."[found.start : found.end]


def test_an_empty_home_has_neither_library_nor_web_nor_model(home: Path) -> None:
    empty = bench(home)
    assert not home.exists()
    assert (empty.library, empty.web, empty.ask) == (None, None, None)
    assert used("search", empty, query="x").outcome == "off"
    given = {"text": "a", "claimed": "b", "source_language": "en", "target_language": "de"}
    assert used("translate", empty, **given).outcome == "off"


def test_the_web_that_was_chosen_is_asked_and_counted(home: Path) -> None:
    result = {"title": "Orrin", "url": "https://a.org/", "content": "It is 412 m long."}
    with serving(as_json({"results": [result]})) as server:
        with open_store(home) as store:
            save_web_choice(store, WebSearchChoice("searxng", server.origin))
            store.projects.save_setting("web_searches", 1)
        here = bench(home)
        asked = "How long is the bridge?"
        assert "SearXNG" in used("search", here, query=asked).words
        assert "SearXNG (as found on" in used("search", here, query=asked).words
        over = used("search", here, query="Who built the bridge?")
        assert over.outcome == "failed"
        assert "used up" in over.words
    assert len(server.got) == 1


def test_a_translation_is_checked_by_a_model_within_the_ledger(home: Path) -> None:
    """Two calls over the real stream, fenced, paid for and counted like any other."""

    def answer(asked: Asked) -> Reply:
        if "translate a text faithfully" in asked.prompt:
            return Reply(json.dumps({"translation": "It leaves after seven."}))
        wrong = {"reason": "“nach” is after.", "same_meaning": False, "words": "nach"}
        return Reply("```json\n" + json.dumps({**wrong, "instead": "vor", "p": 0.95}) + "\n```")

    given = {
        "text": "It leaves before seven.",
        "claimed": "Sie fährt nach sieben ab.",
        "source_language": "English",
        "target_language": "German",
    }
    with loopback(answer) as server:
        seat = AgentConfig("openai/loopback", server.base, window=8192)
        found = used("translate", with_model(home, seat), **given)
        again = used("translate", with_model(home, seat), **given)
    assert (found.label, found.p, found.instead) == ("hallucinated", 0.95, "vor")
    assert given["claimed"][found.start : found.end] == "nach"
    assert again.gave == found.gave
    assert len(server.asked) == 2, "the same again is taken from the ledger"
    assert given["text"] not in server.asked[0].prompt
    with open_store(home) as store:
        rows = store.ledger.of_run("call")
    assert {(row.role, row.prompt, row.status) for row in rows} == {
        ("tool", "en/back_translation", "done"),
        ("tool", "en/translation", "done"),
    }


@pytest.mark.parametrize("reply", [Reply("", status=500), Reply("I will not."), Reply("{}")])
def test_a_model_that_fails_is_no_label(home: Path, reply: Reply) -> None:
    with loopback(lambda _: reply) as server:
        seat = AgentConfig("openai/loopback", server.base, window=8192, seconds=2)
        asking = with_model(home, seat)
        found = used("match", asking, statement="It is 512 m long.", context="It is 412 m long.")
    assert (found.outcome, found.label, found.p) == ("failed", "unclear", None)
    assert found.words


@pytest.mark.parametrize(("choice", "searches"), [("searxng", 1), ("", 0)])
def test_an_audit_without_documents_rests_on_the_web_where_it_was_chosen(
    home: Path, choice: str, searches: int
) -> None:
    """From search to verdict by the built-in engine; nothing is sent where nothing was chosen."""
    result = {"url": "https://a.org/orrin", "content": "The Orrin bridge is 412 m long."}
    case = case_of(home, "The Orrin bridge is 512 m long.")
    with serving(as_json({"results": [{**result, "title": "Orrin"}]})) as server:
        with open_store(home) as store:
            save_web_choice(store, WebSearchChoice(choice, server.origin))
        jobs = JobRunner(home, keys=Keys({}))
        run_id = jobs.start(case, Plan("audit"))
        assert jobs.wait(run_id, 100)
    with open_store(home) as store:
        state = fold_events(event for _, event in store.runs.events(run_id))
        assert store.web_searches.sent(run_id) == searches == len(server.got)
    label = "hallucinated" if choice else "unclear"
    assert state.verdict
    assert state.verdict.label == label
    assert [state.memory[0].label] == [label]
    found = {use.tool: use for use in state.tool_uses}
    assert found["search"].outcome == ("found" if choice else "off")
    assert "SearXNG" in found["search"].words if choice else "no provider" in found["search"].words
