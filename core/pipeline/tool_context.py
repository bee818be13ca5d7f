"""What an audit's tools can use beside the case's sources: library, web search, a language model.

Web search and model are off unless the operator has chosen a provider under Settings, or a model in
the tool picker's seat. `core tools` runs a tool outside a run with the same context. Everything is
loaded when a tool first asks for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from core.documents.segmentation import UNKNOWN, language_of
from core.llm.keys import Keys
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.schema.records import Case, Passage, new_id
from core.schema.rosters import Seat
from core.store import Store, open_store
from core.store.database import DATABASE
from core.tools.registry import Answer, Asker, Bench
from core.tools.web_search import Account, web_choice, web_search

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext
    from core.baseline.judge import BuiltInJudge
    from core.schema.rosters import Seat

log = logging.getLogger(__name__)
Library = Callable[[str, int], Sequence[Passage]]


@dataclass(frozen=True)
class Place:
    """Where and for whom tools are used.

    `project_id` is the project whose library is searched; empty: the home's oldest. `seat` is a
    language model's, or a built-in one where none may be asked. `run_id` names the account on which
    calls and searches go.
    """

    home: Path
    keys: Keys
    stop: Stop
    by: str = ""
    project_id: str = ""
    language: str = UNKNOWN
    question: str = ""
    seat: Seat = field(default_factory=Seat)
    token_cap: int = 0
    run_id: str = field(default_factory=new_id)


def bench_of(place: Place) -> Bench:
    """A bench in a home; one that is not there yet is made only for a model's calls.

    Raises:
        ConfigError: the home cannot be opened, or its settings cannot be read.
    """

    def match(statement: str, passages: Sequence[Passage]) -> Answer:
        return _matched(place, statement, passages)

    if place.seat.is_built_in and not (place.home / DATABASE).is_file():
        return Bench(place.stop, match=match)
    with open_store(place.home) as store:
        settings, choice = store.projects.settings(), web_choice(store)
        project = (
            store.projects.get(place.project_id) if place.project_id else store.projects.first()
        )
        project_id = project.id if project else ""
        ids = tuple(entry.id for entry in store.library.all(project_id))
        ask = None if place.seat.is_built_in else _asker(place, store, settings, project_id)
    account = Account(place.run_id, settings.web_searches, settings.web_days)
    case = Case(
        place.run_id, project_id, "", place.question, documents=ids, language=place.language
    )
    return Bench(
        place.stop,
        _library(place, settings, case) if ids else None,
        web_search(choice, place.keys, place.home, account, place.language, place.stop),
        ask,
        match,
    )


def bench_where(place: Place) -> Bench:
    """As `bench_of`; a home that is not there is not made: nothing is searched then.

    Raises:
        ConfigError: the home cannot be opened, or its settings cannot be read.
    """
    if (place.home / DATABASE).is_file():
        return bench_of(place)
    return Bench(place.stop, match=lambda statement, passages: _matched(place, statement, passages))


def _library(place: Place, settings: Settings, case: Case) -> Library:
    """Searches all that can be read of the project's library; what is new is read first."""

    def search(query: str, most: int) -> Sequence[Passage]:
        from core.baseline.debaters import OcrImageReader
        from core.baseline.export import load_multilingual_encoder
        from core.documents.library import Gathering, gather_sources, sources_of
        from core.documents.retrieval import Retriever

        encoder, reader = load_multilingual_encoder(), OcrImageReader()
        job = Gathering(case, place.home, settings, encoder, reader, reader, place.stop, time.time)
        read: list[str] = []
        for event in gather_sources(job, ()):
            if event.kind == "problem_met":
                log.warning("%s", event.message)
            if event.kind in ("document_read", "image_described"):
                read.append(event.source_id)
        language = language_of(query) if case.language == UNKNOWN else case.language
        with open_store(place.home) as store, store.reading():
            retriever = Retriever(store, encoder, sources_of(store, case, read))
            return retriever.retrieve(query, language, most)

    return search


def _asker(place: Place, store: Store, settings: Settings, project_id: str) -> Asker:
    """A language model on the home's ledger, within its caps."""
    from core.agents.agent_runner import AgentContext, SeatAsker
    from core.llm.client import LiteLlm
    from core.llm.limits import Caps
    from core.llm.metering import Account, LedgerDesk
    from core.llm.prompting import Fence, PromptBook

    account = Account(place.run_id, place.by, project_id)
    caps = Caps.of(settings, place.token_cap)
    table = LedgerDesk(LiteLlm(place.keys), place.home, account, caps, time.time)
    book = PromptBook(store.prompt_edits.of_project(project_id))
    work = AgentContext(table, book, Fence.of_run(place.run_id), place.home)
    return SeatAsker(place.seat, work, place.language, place.stop)


def _matched(place: Place, statement: str, passages: Sequence[Passage]) -> Answer:
    """What the built-in readers say."""
    from core.baseline.judge import BuiltInMatcher

    language = language_of(statement) if place.language == UNKNOWN else place.language
    match = BuiltInMatcher(_judge(place.home), language, place.stop, place.question)
    return match(statement, passages)


def _judge(home: Path) -> BuiltInJudge:
    """The built-in judge with the reader that the home's settings chose."""
    from core.baseline.entailment import assessor_of, reader_in_use, shared_assessor
    from core.baseline.judge import BuiltInJudge

    if not (home / DATABASE).is_file():
        return BuiltInJudge(shared_assessor())
    with open_store(home) as store:
        return BuiltInJudge(assessor_of(home, reader_in_use(store)))


MakeBench = Callable[[Case, Stop], Bench]
MakeAsker = Callable[[Case, Stop], Asker]


def bench_maker(
    store: Store, home: Path, run_id: str, keys: Keys, ask: MakeAsker | None, *, has_web: bool
) -> MakeBench:
    """Makes the bench of a run; its searches of the web go on the run's account."""
    choice, settings = web_choice(store), store.projects.settings()
    account = Account(run_id, settings.web_searches, settings.web_days)

    def make(case: Case, stop: Stop) -> Bench:
        web = web_search(choice, keys, home, account, case.language, stop) if has_web else None
        return Bench(stop, web=web, ask=ask(case, stop) if ask else None)

    return make


def asker_of(seat: Seat, work: AgentContext) -> MakeAsker | None:
    """Lets tools ask the model in that seat; None where it is a built-in agent's."""
    if seat.is_built_in:
        return None
    from core.agents.agent_runner import SeatAsker

    return lambda case, stop: SeatAsker(seat, work, case.language, stop)
