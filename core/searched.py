"""Evidence for every statement, and a case as its agents see it by now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from core.concurrency import Stop
from core.documents.retrieval import Retriever, described_passages, described_texts
from core.events import Event, PassagesFound, ProgressMade
from core.models.encoder import Embedder
from core.progress import Progress
from core.records import Case, Source
from core.roles import CaseView, Evidence
from core.store import Store


@dataclass(frozen=True)
class Search:
    """What a run's search works with; `ocr` names the agent whose texts of images are not read.

    `count` is how many passages a statement gets; `is_remote` says that the embedder is a
    provider's, which wants all queries in one call.
    """

    store: Store
    embedder: Embedder
    sources: Sequence[Source]
    count: int
    ocr: str
    is_remote: bool
    stop: Stop
    now: Callable[[], float]


def searched(search: Search, case: Case, progress: Progress) -> Iterator[Event]:
    """Passages for every statement that has none yet."""
    waiting = [s for i, s in sorted(progress.statements.items()) if i not in progress.passages]
    if not waiting:
        return
    seen = described_passages(progress.images.values(), case.language, search.ocr)
    retriever = Retriever(search.store, search.embedder, search.sources)
    queries = [f"{case.question} {statement.rewrite}".strip() for statement in waiting]
    if search.is_remote:
        retriever.prepare(queries, search.stop)
    for count, (statement, query) in enumerate(zip(waiting, queries, strict=True)):
        search.stop.check()
        note = "Searching the sources"
        yield ProgressMade(search.now(), "searching", note, count, len(waiting))
        found = retriever.retrieve(query, case.language, search.count)
        reason = "" if search.sources else "There is no source that could be searched."
        yield PassagesFound(search.now(), statement.index, (*found, *seen), reason)


def view_of(case: Case, progress: Progress, sources: Sequence[Source]) -> CaseView:
    """The case with what was found for it; of the sources those that hold any of it."""
    evidence = Evidence(
        progress.evidence,
        {index: tuple(p.id for p in found) for index, found in progress.passages.items()},
    )
    used = {passage.source_id for passage in evidence.passages.values()}
    texts = {s.id: s.text for s in sources} | described_texts(progress.images)
    return CaseView(
        case=case,
        statements=tuple(s for _, s in sorted(progress.statements.items())),
        evidence=evidence,
        sources={i: text for i, text in texts.items() if i in used},
        unreadable_images=progress.unreadable_images,
    )
