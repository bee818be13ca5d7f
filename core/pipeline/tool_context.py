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

from core.baseline.entailment import SHIPPED, assessor_of, reader_in_use
from core.documents.segmentation import UNKNOWN, language_of
from core.llm.keys import Keys
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.schema.records import Case, Passage, new_id
from core.schema.rosters import Seat
from core.store import Store, open_store
from core.store.database import DATABASE
from core.tools.registry import Answer, Asker, Bench
from core.tools.web_search import SearchAccount, web_choice, web_search

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext

log = logging.getLogger(__name__)
MakeAsker = Callable[[Case, Stop], Asker]


def bench_of(home: Path, keys: Keys, stop: Stop) -> Bench:
    """Return the tool context outside a run: the library of the home's oldest project, and the web.

    A home that does not exist is not created: nothing is searched then.
    """
    reader, library, web = SHIPPED, None, None
    if (home / DATABASE).is_file():
        run_id = new_id()
        with open_store(home) as store:
            settings, project = store.projects.settings(), store.projects.first()
            choice, reader = web_choice(store), reader_in_use(store)
            project_id = project.id if project else ""
            ids = tuple(entry.id for entry in store.library.all(project_id))
        case = Case(run_id, project_id, "", documents=ids)
        account = SearchAccount(run_id, settings.web_searches, settings.web_days)
        web = web_search(choice, keys, home, account, UNKNOWN, stop)
        library = _make_library_search(home, stop, settings, case) if ids else None

    def match(statement: str, passages: Sequence[Passage]) -> Answer:
        from core.baseline.judge import BuiltInJudge, BuiltInMatcher

        judge = BuiltInJudge(assessor_of(home, reader))
        return BuiltInMatcher(judge, language_of(statement), stop)(statement, passages)

    return Bench(stop, library, web, match=match)


def _make_library_search(
    home: Path, stop: Stop, settings: Settings, case: Case
) -> Callable[[str, int], Sequence[Passage]]:
    """Return a search of the project's readable library files, which reads new ones first."""

    def search(query: str, most: int) -> Sequence[Passage]:
        from core.baseline.debaters import OcrImageReader
        from core.baseline.export import load_multilingual_encoder
        from core.documents.library import Gathering, gather_sources, sources_of
        from core.documents.retrieval import Retriever

        encoder, reader = load_multilingual_encoder(), OcrImageReader()
        gathering = Gathering(case, home, settings, encoder, reader, reader, stop, time.time)
        read_ids: list[str] = []
        for event in gather_sources(gathering, ()):
            if event.kind == "problem_met":
                log.warning("%s", event.message)
            if event.kind in ("document_read", "image_described"):
                read_ids.append(event.source_id)
        with open_store(home) as store, store.reading():
            retriever = Retriever(store, encoder, sources_of(store, case, read_ids))
            return retriever.retrieve(query, language_of(query), most)

    return search


def bench_maker(
    store: Store, home: Path, run_id: str, keys: Keys, ask: MakeAsker | None, *, has_web: bool
) -> Callable[[Case, Stop], Bench]:
    """Return a factory of a run's tool context, whose web searches count for the run."""
    choice, settings = web_choice(store), store.projects.settings()
    account = SearchAccount(run_id, settings.web_searches, settings.web_days)

    def make(case: Case, stop: Stop) -> Bench:
        web = web_search(choice, keys, home, account, case.language, stop) if has_web else None
        return Bench(stop, web=web, ask=ask(case, stop) if ask else None)

    return make


def asker_of(seat: Seat, work: AgentContext) -> MakeAsker | None:
    """Let tools ask the model of that role; None for a built-in agent."""
    if seat.is_built_in:
        return None
    from core.agents.agent_runner import SeatAsker

    return lambda case, stop: SeatAsker(seat, work, case.language, stop)
