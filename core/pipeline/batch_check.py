"""Batch check of a table of claims: read from CSV or TSV, checked by row, returned as a table.

One column holds the claims; others may hold a question and the names of library files. A row that
cannot be checked says why; the others are checked.
"""

from __future__ import annotations

import csv
import io
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.documents.readers import decode_text
from core.documents.tables import CLAIM_NAMES, QUESTION_NAMES, detect_delimiter, safe_cell
from core.pipeline.jobs import NO_TYPED_KEYS, JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.runtime.errors import InputError, ReviewError
from core.schema.records import LibraryEntry, Plan, Project, Run, new_id
from core.schema.run_state import can_resume
from core.store import Store
from core.store.cases import Batch, BatchRow

MAX_HEADER_CHARACTERS = 200  # characters of a header quoted in a message
SOURCE_NAMES = ("documents", "document", "sources", "source", "files", "file", "images", "image")
RESULT_COLUMNS = (
    "row", "claim", "question", "sources", "label", "p_hallucinated", "confidence", "cause",
    "status", "problem", "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class ClaimRow:
    """A row of the table, numbered from 1; `others` are further columns, as (header, cell)."""

    number: int
    claim: str
    question: str
    sources: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()


def read_claims(name: str, data: bytes, most: int) -> list[ClaimRow]:
    """Read the rows of a CSV or TSV file with a header. Raises InputError: it cannot be read."""
    text = decode_text(name, data)
    table = _read_rows(name, text)
    header = [field.strip() for field in next(table, [])]
    fields = [field.casefold() for field in header]
    claim_names = [known for known in CLAIM_NAMES if known in fields]
    if not claim_names or fields.count(claim_names[0]) > 1:
        shown = ", ".join(fields)[:MAX_HEADER_CHARACTERS] or "none"
        raise InputError(
            f"{name}: expected a header with one column called claim, found {shown}; "
            "name the column of claims “claim”."
        )
    question = next((known for known in QUESTION_NAMES if known in fields), "")
    used = {claim_names[0], question, *SOURCE_NAMES}
    rows: list[ClaimRow] = []
    for number, cells in enumerate(itertools.islice(table, most + 1), start=1):
        if len(cells) > len(fields):
            raise InputError(
                f"{name}: row {number} has more cells than the header; put texts that hold a "
                "comma (or whatever parts the cells) into double quotes."
            )
        row = dict(zip(fields, cells, strict=False))
        # Semicolons separate several files in one cell.
        parts = (part.strip() for known in SOURCE_NAMES for part in row.get(known, "").split(";"))
        sources = tuple(dict.fromkeys(part for part in parts if part))
        titled = zip(header, fields, cells, strict=False)
        others = tuple((title, cell) for title, field, cell in titled if field not in used)
        rows.append(
            ClaimRow(number, row.get(claim_names[0], ""), row.get(question, ""), sources, others)
        )
    if not rows:
        raise InputError(f"{name}: expected rows below the header, found none.")
    if len(rows) > most:
        raise InputError(
            f"{name}: expected at most {most} claims, found more; cut the table, or raise "
            "the limit on Settings."
        )
    return rows


def _read_rows(name: str, text: str) -> Iterator[list[str]]:
    """Yield the rows that are not empty. Raises InputError: quotes do not match, with the line."""
    # Without strict, an unclosed quote would swallow the rows after it into its own cell.
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=detect_delimiter(text, name), strict=True)
    line = 1
    try:
        for cells in reader:
            line = reader.line_num + 1
            if cells:
                yield cells
    except csv.Error as error:
        raise InputError(
            f"{name}: the double quotes of the row that begins in line {line} do not match "
            f"({error}); put the text into double quotes, and write a quote inside it twice."
        ) from error


def start_batch(
    store: Store,
    jobs: JobRunner,
    project: Project,
    rows: Sequence[ClaimRow],
    *,
    author: str,
    name: str,
    plan: Plan,
    common: Sequence[str] = (),
    typed: Mapping[str, str] = NO_TYPED_KEYS,
) -> str:
    """Store the batch, queue a run for every row that can be checked, and return the batch's id."""
    payer = jobs.payer(author, typed)
    jobs.require(plan, payer)
    batch = Batch(new_id(), project.id, name, author, time.time(), plan)
    entries = store.library.all(project.id)
    by_id = {entry.id: entry for entry in entries}
    by_name = {entry.name: entry for entry in reversed(entries)}  # the newest of a name counts
    shared_entries = [by_id[i] for i in common if i in by_id]
    with store.writing():  # no case without its batch
        store.projects.require(project.id, author, "annotator", "check a table")
        prepared = [
            _prepare_row(store, project, batch, row, by_name, shared_entries) for row in rows
        ]
        queued = [_queue_run(store, jobs, row, plan) for row in prepared]
        store.batches.add(batch, queued)
    jobs.submit(store, [row.run_id for row in queued if row.run_id], payer)
    return batch.id


def _prepare_row(
    store: Store,
    project: Project,
    batch: Batch,
    row: ClaimRow,
    by_name: Mapping[str, LibraryEntry],
    shared: Sequence[LibraryEntry],
) -> BatchRow:
    """Store the row's case, or set the row's problem; call inside `Store.writing()`."""
    case_id, problem, names = None, "", row.sources
    if unknown := [name for name in row.sources if name not in by_name]:
        problem = f"The library has no file called {', '.join(unknown)}."
    else:
        chosen = {entry.id: entry for entry in (*shared, *(by_name[n] for n in row.sources))}
        names = tuple(dict.fromkeys(entry.name for entry in chosen.values()))
        images = tuple(i for i, entry in chosen.items() if entry.kind == "image")
        documents = tuple(i for i in chosen if i not in images)
        draft = CaseDraft(row.claim, row.question, documents, images)
        try:
            case_id = store_case(store, project, draft, batch.author, batch.created_at).id
        except ReviewError as error:
            problem = str(error)
    return BatchRow(
        batch.id, row.number, row.claim, names, case_id, None, problem, row.question, row.others
    )


def _queue_run(store: Store, jobs: JobRunner, row: BatchRow, plan: Plan) -> BatchRow:
    """Queue a run for the row if it has a case; call inside `Store.writing()`."""
    case = store.cases.get(row.case_id) if row.case_id else None
    return replace(row, run_id=jobs.queue(store, case, plan)) if case else row


def resume_batch(
    store: Store, jobs: JobRunner, batch_id: str, by: str, typed: Mapping[str, str] = NO_TYPED_KEYS
) -> int:
    """Resume every row whose run ended without its verdict or never started; return how many.

    Rows that never started get their run in one transaction: two people may ask at once.
    """
    payer = jobs.payer(by, typed)
    queued: list[str] = []
    halted: list[str] = []
    with store.writing():
        batch = store.batches.get(batch_id)
        if batch is None:
            return 0
        store.projects.require(batch.project_id, by, "annotator", "check a table")
        jobs.require(batch.plan, payer)
        for row, run in load_batch_results(store, batch_id):
            if run is not None and can_resume(run):
                halted.append(run.id)
            elif run is None:
                updated = _queue_run(store, jobs, row, batch.plan)
                if updated.run_id and updated.run_id != row.run_id:
                    store.batches.set_run(batch_id, row.row, updated.run_id)
                    queued.append(updated.run_id)
    jobs.submit(store, queued, payer)
    return len(queued) + sum(jobs.resume(run_id, by, typed) for run_id in halted)


def load_batch_results(store: Store, batch_id: str) -> list[tuple[BatchRow, Run | None]]:
    """Return every row with its run as of now."""
    lease, now = store.projects.settings().lease_seconds, time.time()
    return [
        (row, store.runs.get(row.run_id, now, lease) if row.run_id else None)
        for row in store.batches.rows(batch_id)
    ]


def format_results_csv(rows: Sequence[tuple[BatchRow, Run | None]]) -> bytes:
    """Return the results as CSV (UTF-8 with BOM, for spreadsheets); formulas are neutralised.

    The table's further columns follow under their own names; one that is named like a result column
    is called “NAME (table)”.
    """
    titles = [title for title, _ in max((row.others for row, _ in rows), key=len, default=())]
    columns = [f"{title} (table)" if title in RESULT_COLUMNS else title for title in titles]
    table: list[list[object]] = [[*RESULT_COLUMNS, *columns]]
    for row, run in rows:
        values: list[object] = [row.row, row.claim, row.question, "; ".join(row.sources)]
        if run is not None:
            values += [run.label, run.p_hallucinated, run.confidence, run.cause, run.status]
        else:
            values += ["", "", "", "", "not checked"]
        table.append([*values, row.problem, row.run_id, *(cell for _, cell in row.others)])
    return format_csv(table)


def format_csv(rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as CSV (UTF-8 with BOM, for spreadsheets); formulas are neutralised."""
    out = io.StringIO()
    csv.writer(out).writerows([safe_cell(value) for value in row] for row in rows)
    return b"\xef\xbb\xbf" + out.getvalue().encode()
