"""A project's cases as rows to write: each with what people and machines said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.documents.library import file_bytes
from core.errors import InputError
from core.exchange.rows import Document, ExchangeRow, MachineVerdict
from core.records import Case, Project, SourceKind
from core.store import Store
from core.store.verdicts import Judged, newest_verdicts

PLAIN: tuple[SourceKind, ...] = ("text", "markdown", "html", "table")


def rows_of(store: Store, home: Path, project: Project, which: str = "all") -> list[ExchangeRow]:
    """The project's cases in the order in which they were stored.

    `reviewed` leaves out those that nobody answered and that have no gold.
    """
    shelf = Shelf(store, home, project)
    with store.reading():
        verdicts = newest_verdicts(store, project.id)
        rows = (
            stored_row(store, case, shelf, verdicts.get(case.id))
            for case in store.cases.all(project.id)
        )
        return [row for row in rows if which == "all" or row.answer is not None]


class Shelf:
    """The files of a project's library by id; each text is read once."""

    def __init__(self, store: Store, home: Path, project: Project) -> None:
        self._home = home
        self._names = {
            entry.id: (entry.name, entry.kind) for entry in store.library.all(project.id)
        }
        self._texts: dict[str, str | None] = {}

    def documents(self, ids: tuple[str, ...]) -> Iterator[Document]:
        """The files of these ids, with their text where they are plain."""
        for source in ids:
            name, kind = self._names.get(source, ("removed file", "pdf"))
            yield Document(name, self._text(source) if kind in PLAIN else None, source)

    def _text(self, source: str) -> str | None:
        if source not in self._texts:
            try:
                self._texts[source] = file_bytes(self._home, source).decode("utf-8")
            except (InputError, UnicodeDecodeError):  # gone, or in another encoding
                self._texts[source] = None
        return self._texts[source]


def stored_row(
    store: Store, case: Case, shelf: Shelf | None = None, judged: Judged | None = None
) -> ExchangeRow:
    """A case with everything that was said of it; without a shelf its files are left out."""
    return ExchangeRow(
        id=case.id,
        response=case.response,
        question=case.question,
        language=case.language,
        role=case.role,
        instruction=case.instruction,
        documents=tuple(shelf.documents(case.documents)) if shelf else (),
        images=tuple(shelf.documents(case.images)) if shelf else (),
        golds=tuple(store.golds.of_case(case.id)),
        corrections=tuple(store.corrections.history(case.id)),
        suggestions=tuple(store.golds.suggested(case.id)),
        handlings=tuple(store.handlings.of_case(case.id)),
        verdict=_machine(judged) if judged else None,
        others=case.others,
    )


def _machine(judged: Judged) -> MachineVerdict:
    verdict = judged.verdict
    return MachineVerdict(
        judged.run_id,
        verdict.label,
        verdict.p_hallucinated,
        verdict.confidence,
        verdict.rationale,
        verdict.cause,
        judged.finished_at,
    )
