"""A table of claims: read from CSV or TSV, checked row by row, given back as a table.

One column holds the claims; others may hold a question and the names of library files. A row that
cannot be checked says why; the others are checked.
"""

from __future__ import annotations

import csv
import io
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.checking import Draft, store_case
from core.errors import InputError, ReviewError
from core.intake.tables import delimiter_of
from core.intake.text import decoded
from core.jobs import Jobs, new_id
from core.records import LibraryEntry, Plan, Project, Run
from core.store import Store
from core.store.batches import Batch, BatchRow

LONGEST_HEADER = 200
CLAIM_NAMES = ("claim", "response", "statement", "answer", "text", "sentence")
QUESTION_NAMES = ("question", "prompt", "query")
SOURCE_NAMES = ("documents", "document", "sources", "source", "files", "file", "images", "image")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
RESULT_COLUMNS = (
    "row", "claim", "sources", "label", "p_hallucinated", "confidence", "cause", "status",
    "problem", "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class ClaimRow:
    """One row of the table as it was given; `number` counts data rows from 1."""

    number: int
    claim: str
    question: str
    sources: tuple[str, ...]


def read_claims(name: str, data: bytes, most: int) -> list[ClaimRow]:
    """The rows of a CSV or TSV file with a header.

    Raises:
        InputError: it is not UTF-8, has no column of claims, no row, or too many.
    """
    text = decoded(name, data)
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter_of(text, name))
    try:
        rows = _rows(name, reader, most)
    except csv.Error as error:
        raise InputError(
            f"{name}: the table is broken near line {reader.line_num}: {error}."
        ) from error
    if not rows:
        raise InputError(f"{name}: expected rows below the header, found none.")
    if len(rows) > most:
        raise InputError(
            f"{name}: expected at most {most} claims, found more; cut the table, or raise "
            "the limit on Settings."
        )
    return rows


def _rows(name: str, reader: csv.DictReader[str], most: int) -> list[ClaimRow]:
    """The rows of at most `most` claims and one more."""
    fields = [(field or "").strip().casefold() for field in reader.fieldnames or []]
    names = dict(zip(fields, reader.fieldnames or [], strict=True))
    found = [known for known in CLAIM_NAMES if known in names]
    if not found or fields.count(found[0]) > 1:
        shown = ", ".join(fields)[:LONGEST_HEADER] or "none"
        raise InputError(
            f"{name}: expected a header with one column called claim, found {shown}; "
            "name the column of claims “claim”."
        )
    question = next((names[known] for known in QUESTION_NAMES if known in names), "")
    sources = [names[known] for known in SOURCE_NAMES if known in names]
    rows: list[ClaimRow] = []
    for number, row in enumerate(itertools.islice(reader, most + 1), start=1):
        if None in row:  # DictReader's place for cells without a name
            raise InputError(
                f"{name}: row {number} has more cells than the header; put texts that hold a "
                "comma (or whatever parts the cells) into double quotes."
            )
        rows.append(
            ClaimRow(
                number,
                row.get(names[found[0]]) or "",
                (row.get(question) or "") if question else "",
                _names([row.get(column) or "" for column in sources]),
            )
        )
    return rows


def _names(cells: Sequence[str]) -> tuple[str, ...]:
    """File names of all source cells; several in one cell are parted by semicolons."""
    parts = [part.strip() for cell in cells for part in cell.split(";")]
    return tuple(dict.fromkeys(part for part in parts if part))


def start_batch(
    store: Store,
    jobs: Jobs,
    project: Project,
    author: str,
    name: str,
    rows: Sequence[ClaimRow],
    common: Sequence[str],
    plan: Plan,
) -> str:
    """Store the batch and queue a run for every row that can be checked; the batch's id.

    `common` are ids of sources that every row rests on, beside those it names itself.
    """
    entries = {entry.id: entry for entry in store.library.all(project.id)}
    by_name: dict[str, LibraryEntry] = {}
    for entry in entries.values():
        by_name.setdefault(entry.name, entry)
    now = time.time()
    batch = Batch(new_id(), project.id, name, author, now, plan)
    prepared: list[BatchRow] = []
    for row in rows:
        prepared.append(_prepared(store, project, author, batch.id, row, entries, by_name, common))
    with store.writing():
        store.batches.add(batch, prepared)
    for item in prepared:
        case = store.cases.get(item.case_id) if item.case_id else None
        if case is not None:
            store.batches.set_run(batch.id, item.row, jobs.start(case, plan))
    return batch.id


def _prepared(
    store: Store,
    project: Project,
    author: str,
    batch_id: str,
    row: ClaimRow,
    entries: Mapping[str, LibraryEntry],
    by_name: Mapping[str, LibraryEntry],
    common: Sequence[str],
) -> BatchRow:
    """The row as a stored case, or with the reason why there is none."""
    unknown = [name for name in row.sources if name not in by_name]
    problem, case_id = "", None
    if unknown:
        problem = f"The library has no file called {', '.join(unknown)}."
    else:
        ids = [*common, *(by_name[name].id for name in row.sources)]
        chosen = [entries[i] for i in dict.fromkeys(ids) if i in entries]
        draft = Draft(
            row.claim,
            row.question,
            tuple(e.id for e in chosen if e.kind != "image"),
            tuple(e.id for e in chosen if e.kind == "image"),
        )
        try:
            case_id = store_case(store, project, draft, author, time.time()).id
        except ReviewError as error:
            problem = str(error)
    return BatchRow(batch_id, row.number, row.claim, row.sources, case_id, None, problem)


def resume_batch(store: Store, jobs: Jobs, batch_id: str, by: str) -> int:
    """Take up every row whose run was interrupted, stopped or never started; how many."""
    lease = store.projects.settings().lease_seconds
    batch = store.batches.get(batch_id)
    taken = 0
    for row in store.batches.rows(batch_id):
        run = store.runs.get(row.run_id, time.time(), lease) if row.run_id else None
        case = store.cases.get(row.case_id) if row.case_id else None
        if run is None and case is not None and batch is not None:
            store.batches.set_run(batch_id, row.row, jobs.start(case, batch.plan))
            taken += 1
        elif run is not None and run.status in ("interrupted", "stopped", "failed"):
            taken += jobs.resume(run.id, by)
    return taken


def results(store: Store, batch_id: str) -> list[tuple[BatchRow, Run | None]]:
    """Every row with its run as of now."""
    lease = store.projects.settings().lease_seconds
    now = time.time()
    return [
        (row, store.runs.get(row.run_id, now, lease) if row.run_id else None)
        for row in store.batches.rows(batch_id)
    ]


def results_csv(rows: Sequence[tuple[BatchRow, Run | None]]) -> bytes:
    """The results as CSV (UTF-8 with BOM, for spreadsheets); formulas are neutralised."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(RESULT_COLUMNS)
    for row, run in rows:
        values: list[object] = [row.row, row.claim, "; ".join(row.sources)]
        if run is not None:
            values += [run.label, run.p_hallucinated, run.confidence, run.cause, run.status]
        else:
            values += ["", "", "", "", "not checked"]
        values += [row.problem, row.run_id]
        writer.writerow([safe_cell(value) for value in values])
    return b"\xef\xbb\xbf" + out.getvalue().encode()


def safe_cell(value: object) -> str:
    """The value as a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    text = str(value)
    is_formula = isinstance(value, str) and text.startswith(FORMULA_STARTS)
    return "'" + text if is_formula else text
