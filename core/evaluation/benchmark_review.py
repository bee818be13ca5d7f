"""Rows of a benchmark as cases of its project: to be opened as a run, or to be reviewed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from core.documents.library import store_file
from core.evaluation.dataset_files import GoldRow
from core.evaluation.outcomes import compute_row_digest
from core.exchange.importer import ImportRequest, compute_digest, import_rows
from core.exchange.rows import ExchangeDocument, ExchangeRow, ParsedFile
from core.review.adjudication import request_new_answers
from core.review.queue_ranking import build_imported_item
from core.runtime.errors import InputError
from core.schema.records import Case, Project
from core.store import Store
from core.store.review_queue import QueueRules


def store_rows_as_cases(
    store: Store, home: Path, project: Project, rows: Sequence[GoldRow], by: str, now: float
) -> list[Case]:
    """Return the rows' cases; new ones go to the queue without the row's label.

    Raises NotAllowed if the person is no lead, and InputError if a row cannot be stored.
    """
    ids = [_find_case_id(store, project, row) for row in rows]
    new = [(case_id, row) for case_id, row in zip(ids, rows, strict=True) if case_id != row.id]
    read = [
        ExchangeRow(
            case_id,
            row.response,
            row.question,
            row.language,
            documents=tuple(
                ExchangeDocument(f"source {n}.txt", text) for n, text in enumerate(row.documents, 1)
            ),
            images=_store_images(store, home, project, row, by, now),
        )
        for case_id, row in new
    ]
    order = ImportRequest(project, by, now, "benchmark", "cases")
    outcome = import_rows(store, home, ParsedFile(tuple(read), ()), order)
    if outcome.problems:
        raise InputError(f"A row could not be stored: {outcome.problems[0].reason}")
    return store.cases.several(ids)


def _find_case_id(store: Store, project: Project, row: GoldRow) -> str:
    """Return the id of the case that the row was made of, else one of the row's own."""
    case = store.cases.get(row.id)
    if case and (case.project_id, case.response) == (project.id, row.response):
        return case.id
    return compute_digest(project.id, compute_row_digest(row))


def _store_images(
    store: Store, home: Path, project: Project, row: GoldRow, by: str, now: float
) -> tuple[ExchangeDocument, ...]:
    """Return the row's images as files of the library; those that are there keep their names."""
    settings, images = store.projects.settings(), []
    for path in row.images:
        data = path.read_bytes()
        known = store.library.get(project.id, hashlib.sha256(data).hexdigest())
        stored = known or store_file(store, home, project.id, path.name, data, by, now, settings)
        images.append(ExchangeDocument(stored.name, None, stored.id))
    return tuple(images)


def send_rows_to_review(
    store: Store,
    home: Path,
    project: Project,
    rows: Sequence[GoldRow],
    by: str,
    now: float,
    rules: QueueRules,
    why_again: str,
) -> list[Case]:
    """Put the rows into the project's queue; those answered before come anew, with the reason.

    Raises what `store_rows_as_cases` does.
    """
    cases = store_rows_as_cases(store, home, project, rows, by, now)
    with store.writing():
        store.projects.require(project.id, by, "lead", "send rows to review")
        for case in cases:
            item = store.queue.get(case.id)
            if item is None:
                store.queue.add(build_imported_item(case, now, None, None))
            elif item.given or item.state != "open":
                request_new_answers(store, case.id, by, rules, now, why=why_again)
    return cases
