"""Context for an audit's tools beside the sources: library, web search, a language model.

Web search and model are off unless the operator has chosen a provider under Settings, or a model
for the tool picker. `core tools` runs a tool outside a run. Everything is loaded when a tool first
needs it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.baseline.entailment import SHIPPED_READER, load_assessor, load_reader_choice
from core.documents.segmentation import UNKNOWN_LANGUAGE, detect_language
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.records import Case, Passage, new_id
from core.schema.rosters import AgentConfig
from core.store import Store, open_store
from core.store.database import DATABASE_FILE
from core.tools.registry import PromptRunner, ToolAnswer, ToolContext
from core.tools.web_search import SearchAllowance, load_web_choice, make_web_search

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext

LOGGER = logging.getLogger(__name__)
AskerFactory = Callable[[Case, StopSignal], PromptRunner]


def build_tool_context(home: Path, keys: Keys, stop: StopSignal) -> ToolContext:
    """Return the tool context outside a run: the library of the home's oldest project, and the web.

    A home that does not exist is not created: nothing is searched then.
    """
    reader, library, web = SHIPPED_READER, None, None
    if (home / DATABASE_FILE).is_file():
        run_id = new_id()
        with open_store(home) as store:
            settings, project = store.projects.settings(), store.projects.first()
            choice, reader = load_web_choice(store), load_reader_choice(store)
            project_id = project.id if project else ""
            ids = tuple(entry.id for entry in store.library.all(project_id))
        case = Case(run_id, project_id, "", documents=ids)
        account = SearchAllowance(run_id, settings.web_searches, settings.web_days)
        web = make_web_search(choice, keys, home, account, UNKNOWN_LANGUAGE, stop)
        library = _make_library_search(home, stop, settings, case) if ids else None

    def match(statement: str, passages: Sequence[Passage]) -> ToolAnswer:
        from core.baseline.judge import BuiltInJudge, BuiltInMatcher

        judge = BuiltInJudge(load_assessor(home, reader))
        return BuiltInMatcher(judge, detect_language(statement), stop)(statement, passages)

    return ToolContext(stop, library, web, match=match)


def _make_library_search(
    home: Path, stop: StopSignal, settings: Settings, case: Case
) -> Callable[[str, int], Sequence[Passage]]:
    """Return a search of the project's readable library files, which reads new ones first."""

    def search(query: str, most: int) -> Sequence[Passage]:
        from core.baseline.debaters import OcrImageReader
        from core.baseline.encoder import load_multilingual_encoder
        from core.documents.library import GatherJob, gather_sources, load_sources
        from core.documents.retrieval import Retriever

        encoder, reader = load_multilingual_encoder(), OcrImageReader()
        gathering = GatherJob(case, home, settings, encoder, reader, reader, stop, time.time)
        read_ids: list[str] = []
        for event in gather_sources(gathering, ()):
            if event.kind == "problem_met":
                LOGGER.warning("%s", event.message)
            if event.kind in ("document_read", "image_described"):
                read_ids.append(event.source_id)
        with open_store(home) as store, store.reading():
            retriever = Retriever(store, encoder, load_sources(store, case, read_ids))
        return retriever.retrieve(query, detect_language(query), most)

    return search


def make_context_factory(
    store: Store, home: Path, run_id: str, keys: Keys, ask: AskerFactory | None, *, has_web: bool
) -> Callable[[Case, StopSignal], ToolContext]:
    """Return a factory of a run's tool context, whose web searches count for the run."""
    choice, settings = load_web_choice(store), store.projects.settings()
    account = SearchAllowance(run_id, settings.web_searches, settings.web_days)

    def make(case: Case, stop: StopSignal) -> ToolContext:
        web = make_web_search(choice, keys, home, account, case.language, stop) if has_web else None
        return ToolContext(stop, web=web, ask=ask(case, stop) if ask else None)

    return make


def make_asker_factory(agent: AgentConfig, context: AgentContext) -> AskerFactory | None:
    """Let tools ask the model of that role; None for a built-in agent."""
    if agent.is_built_in:
        return None
    from core.agents.agent_runner import ToolPromptRunner

    return lambda case, stop: ToolPromptRunner(agent, context, case.language, stop)
