"""What tools reach where no case is checked: the command line's own bench."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.records import Passage, Source
from core.store import Store, open_store
from core.store.database import DATABASE
from core.tools.toolbox import Answer, Bench


def bench_here(home: Path) -> Bench:
    """A bench with the built-in readers, and the files of the home's first project to search.

    Models are loaded when a tool first asks for them. A home that is not there is not made.
    """
    has_files = False
    if (home / DATABASE).is_file():
        with open_store(home) as store:
            has_files = bool(_files(store))
    return Bench(Stop(), library=partial(_search, home) if has_files else None, match=_match)


def _files(store: Store) -> list[Source]:
    """What was read of the first project's library; an image without text says nothing."""
    projects = store.projects.all()
    entries = store.library.all(projects[0].id) if projects else []
    ready = [entry for entry in entries if entry.status == "ready"]
    read = [store.readings.get(entry.id, entry.name) for entry in ready]
    return [source for source in read if source is not None and source.text.strip()]


def _search(home: Path, query: str, count: int) -> Sequence[Passage]:
    """The passages of all files that are closest to the query, best first."""
    from core.evidence.index import ensure_index
    from core.evidence.retrieve import Retriever
    from core.intake.language import language_of
    from core.models.encoder import load_encoder

    encoder = load_encoder(ENCODER_DIR)
    with open_store(home) as store:
        sources = _files(store)
        for source in sources:
            ensure_index(store, source, encoder, Stop(), lambda done, total: None)
        return Retriever(store, encoder, sources).retrieve(query, language_of(query), count)


def _match(statement: str, passages: Sequence[Passage]) -> Answer:
    """What the built-in readers say of a statement beside passages."""
    from core.builtin.judge import BuiltInJudge
    from core.builtin.matching import BuiltInMatcher
    from core.intake.language import language_of
    from core.models.encoder import load_encoder
    from core.models.reader import load_reader

    judge = BuiltInJudge(load_encoder(ENCODER_DIR), load_reader())
    return BuiltInMatcher(judge, language_of(statement), Stop())(statement, passages)
