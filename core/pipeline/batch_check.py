"""Batch check of a table of claims: read from CSV, TSV or JSONL, checked by row, returned as CSV.

One column holds the claims; others may hold a question, names of library files, or the source's
text itself. A row that cannot be checked says why, before anything runs; the others are checked.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath

from core.baseline.wording import cite_quote
from core.documents.library import store_file
from core.documents.readers import decode_text, detect_kind
from core.documents.tables import CLAIM_NAMES, QUESTION_NAMES, detect_delimiter, safe_cell
from core.pipeline.jobs import NO_TYPED_KEYS, JobRunner
from core.pipeline.single_check import CaseDraft, require_response, store_case
from core.runtime.errors import InputError
from core.schema.events import ProblemMet
from core.schema.records import Case, LibraryEntry, Plan, Project, Quote, Run, new_id
from core.schema.run_state import can_resume, fold_events
from core.store import Store
from core.store.cases import Batch, BatchRow
from core.store.queries import load_events

MAX_HEADER_CHARACTERS = 200  # characters of a header quoted in a message
MAX_CITED_QUOTES = 3
SOURCE_NAMES = ("documents", "document", "sources", "source", "files", "file", "images", "image")
TEXT_NAMES = ("context", "contexts", "evidence", "knowledge", "passage", "passages")
MAX_FILE_NAME_CHARACTERS = 120  # a longer cell of SOURCE_NAMES is the source's text
RESULT_COLUMNS = (
    "row", "claim", "question", "sources", "label", "p_hallucinated", "confidence", "cause",
    "marked_words", "source_says", "reason", "status", "problem", "run_id", "link",
)  # fmt: skip
FINDING_KINDS = (
    "turn_finished", "judgement_reached", "label_predicted", "soft_labelled", "span_adjudicated",
    "run_finished",
)  # fmt: skip
ZIP_START = b"PK\x03\x04"


@dataclass(frozen=True)
class ClaimRow:
    """A row of the table, numbered from 1; `others` are further columns, as (header, cell).

    `texts` are sources that the table holds itself, as (header, text). A row with a `problem` is
    not checked; if its cells cannot be told apart, `claim` is its line.
    """

    number: int
    claim: str
    question: str = ""
    sources: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    texts: tuple[tuple[str, str], ...] = ()


def read_claims(name: str, data: bytes, most: int) -> list[ClaimRow]:
    """Read the rows of a CSV or TSV file with a header, or of JSONL.

    Raises InputError: it cannot be read.
    """
    if data.startswith(ZIP_START):
        raise InputError(f"{name} is a workbook, not plain text; save its sheet as CSV (UTF-8).")
    text = decode_text(name, data)
    is_jsonl = text.lstrip().startswith("{")
    table = _read_json_lines(text) if is_jsonl else _read_rows(name, text)
    header = [field.strip() for field in next(table, ([], ""))[0]]
    fields = [field.casefold() for field in header]
    claim_name = next((known for known in CLAIM_NAMES if known in fields), "")
    if fields.count(claim_name) != 1:
        shown = ", ".join(fields)[:MAX_HEADER_CHARACTERS] or "none"
        wanted, kind = "a header with one column", "column"
        if is_jsonl:
            wanted, kind = "objects with one field", "field"
        raise InputError(
            f"{name}: expected {wanted} called claim, found {shown}; name the {kind} of claims "
            "“claim”."
        )
    rows = [
        _make_row(number, header, claim_name, cells, problem)
        for number, (cells, problem) in enumerate(islice(table, most + 1), start=1)
    ]
    if not rows:
        raise InputError(f"{name}: expected rows below the header, found none.")
    if len(rows) > most:
        raise InputError(
            f"{name}: expected at most {most} claims, found more; cut the table, or raise "
            "the limit on Settings."
        )
    return rows


def _make_row(
    number: int, header: Sequence[str], claim_name: str, cells: Sequence[str], problem: str
) -> ClaimRow:
    """Return a row by what its cells are called."""
    if not problem and any(cells[len(header) :]):
        problem = (
            "It has more cells than the header; put texts that hold a comma (or whatever "
            "parts the cells) into double quotes."
        )
    if problem:
        return ClaimRow(number, " ".join(cells), problem=problem)
    fields = [title.casefold() for title in header]
    row = dict(zip(fields, cells, strict=False))
    question = next((known for known in QUESTION_NAMES if known in fields), "")
    sources: list[str] = []
    texts: list[tuple[str, str]] = []
    for known in SOURCE_NAMES:
        # Semicolons separate several files in one cell.
        parts = [part.strip() for part in re.split("[;\n]", row.get(known, "")) if part.strip()]
        if any(len(part) > MAX_FILE_NAME_CHARACTERS for part in parts):
            texts.append((known, row[known]))
        else:
            sources += parts
    texts += [(known, row[known]) for known in TEXT_NAMES if row.get(known, "").strip()]
    used = {claim_name, question, *SOURCE_NAMES, *TEXT_NAMES}
    titled = zip(header, fields, cells, strict=False)
    return ClaimRow(
        number,
        row.get(claim_name, ""),
        row.get(question, ""),
        tuple(dict.fromkeys(sources)),
        tuple((title, cell) for title, field, cell in titled if field not in used),
        texts=tuple(texts),
    )


def list_other_columns(rows: Iterable[ClaimRow | BatchRow]) -> list[str]:
    """Return the titles of the columns that no check uses."""
    return [title for title, _ in max((row.others for row in rows), key=len, default=())]


def _read_json_lines(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the fields of all objects, then (values, problem) of each line that is not empty."""
    items: list[tuple[dict[str, object] | None, str]] = []
    for line in filter(str.strip, text.split("\n")):
        try:
            value = json.loads(line)
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair fails
        except ValueError:
            value = None
        items.append((value if isinstance(value, dict) else None, line))
    fields = list(dict.fromkeys(field for item, _ in items for field in item or ()))
    yield fields, ""
    for item, line in items:
        if item is None:
            yield [line.strip()], "It is not a JSON object; write one object on each line."
        else:
            yield [_format_value(item.get(field)) for field in fields], ""


def _format_value(value: object) -> str:
    """Return a JSON value as a cell; several texts stand below one another."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _read_rows(name: str, text: str) -> Iterator[tuple[list[str], str]]:
    """Yield (cells, problem) of the rows that are not empty.

    A row whose quotes do not match is its first line as one cell; reading goes on in the next line.
    """
    # Without strict, an unclosed quote would swallow the rows after it into its own cell.
    lines = list(io.StringIO(text, newline=""))
    delimiter = detect_delimiter(text, name)
    first = 0
    while first < len(lines):
        reader = csv.reader(islice(lines, first, None), delimiter=delimiter, strict=True)
        read = 0
        try:
            for cells in reader:
                read = reader.line_num
                if cells:
                    yield cells, ""
            return
        except csv.Error as error:
            first += read + 1
            problem = (
                f"The double quotes in line {first} do not match ({error}); put the text into "
                "double quotes, and write a quote inside it twice."
            )
            yield [lines[first - 1].strip()], problem


def find_problems(store: Store, project_id: str, rows: Sequence[ClaimRow]) -> list[ClaimRow]:
    """Return the rows with whatever prevents a check: no text, or files missing or unreadable."""
    limit = store.projects.settings().response_characters
    by_name = store.library.by_name(project_id)
    return [replace(row, problem=_find_problem(row, by_name, limit)) for row in rows]


def list_missing_files(
    rows: Iterable[ClaimRow], by_name: Mapping[str, LibraryEntry]
) -> dict[str, list[int]]:
    """Return the files that the library does not have, each with the rows that name it."""
    missing: dict[str, list[int]] = {}
    for row in rows:
        for name in row.sources:
            if name not in by_name:
                missing.setdefault(name, []).append(row.number)
    return missing


def _find_problem(row: ClaimRow, by_name: Mapping[str, LibraryEntry], limit: int) -> str:
    if row.problem or not row.claim.strip():
        return row.problem or "It has no text to check."
    try:
        require_response(row.claim, limit)
        for title, text in row.texts:
            detect_kind(f"{title}.txt", text.encode())
    except InputError as error:
        return str(error)
    missing = [name for name in row.sources if name not in by_name]
    named = [by_name[name] for name in row.sources if name in by_name]
    problems = [f"The library has no file called {', '.join(missing)}."] if missing else []
    return " ".join([*problems, *(e.problem for e in named if e.status == "refused")])


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
    unread: Sequence[ProblemMet] = (),
    typed: Mapping[str, str] = NO_TYPED_KEYS,
) -> str:
    """Store the batch, queue a run for every row that can be checked, and return the batch's id.

    `common` are the sources of all rows, `unread` the files left out of them, for the runs' record.
    """
    payer = jobs.payer(author, typed)
    jobs.require(plan, payer)
    batch = Batch(new_id(), project.id, name, author, time.time(), plan)
    by_name = store.library.by_name(project.id)
    shared = [entry for i in common if (entry := store.library.get(project.id, i))]
    store.projects.require(project.id, author, "annotator", "check a table")
    texts = _store_texts(store, jobs, batch, find_problems(store, project.id, rows))
    with store.writing():  # no case without its batch
        store.projects.require(project.id, author, "annotator", "check a table")
        prepared = [
            _prepare_row(store, project, batch, row, by_name, [*shared, *texts.get(row.number, ())])
            for row in find_problems(store, project.id, rows)
        ]
        queued = [_queue_run(store, jobs, row, plan, unread) for row in prepared]
        store.batches.add(batch, queued)
    jobs.submit(store, [row.run_id for row in queued if row.run_id], payer)
    return batch.id


def _store_texts(
    store: Store, jobs: JobRunner, batch: Batch, rows: Sequence[ClaimRow]
) -> dict[int, list[LibraryEntry]]:
    """Add the sources that the table holds itself to the library; return them by row."""
    settings, stem = store.projects.settings(), PurePath(batch.name).stem[:60]
    stored: dict[str, LibraryEntry] = {}
    by_row: dict[int, list[LibraryEntry]] = {}
    for row in rows:
        for title, text in () if row.problem else row.texts:
            if text not in stored:
                name, data = f"{stem}, {title} {len(stored) + 1}.txt", text.encode()
                known = store.library.get(batch.project_id, hashlib.sha256(data).hexdigest())
                stored[text] = known or store_file(
                    store, jobs.home, batch.project_id, name, data, batch.author,
                    batch.created_at, settings,
                )  # fmt: skip
            by_row.setdefault(row.number, []).append(stored[text])
    return by_row


def start_case_batch(
    store: Store,
    jobs: JobRunner,
    project: Project,
    cases: Sequence[Case],
    *,
    author: str,
    name: str,
    plan: Plan,
    typed: Mapping[str, str] = NO_TYPED_KEYS,
) -> str:
    """Queue a run for each of these cases, which are stored already; return the batch's id."""
    payer = jobs.payer(author, typed)
    jobs.require(plan, payer)
    batch = Batch(new_id(), project.id, name, author, time.time(), plan)
    names = {entry.id: entry.name for entry in store.library.all(project.id)}
    with store.writing():
        store.projects.require(project.id, author, "annotator", "check a table")
        queued = []
        for number, case in enumerate(cases, start=1):
            sources = tuple(names[i] for i in (*case.documents, *case.images) if i in names)
            row = BatchRow(
                batch.id, number, case.response, sources, case.id, None, "", case.question
            )
            queued.append(_queue_run(store, jobs, row, plan))
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
    """Store the row's case unless it has a problem; call inside `Store.writing()`."""
    case_id, names = None, row.sources
    if not row.problem:
        chosen = {entry.id: entry for entry in (*shared, *(by_name[n] for n in row.sources))}
        names = tuple(dict.fromkeys(entry.name for entry in chosen.values()))
        images = tuple(i for i, entry in chosen.items() if entry.kind == "image")
        documents = tuple(i for i in chosen if i not in images)
        draft = CaseDraft(row.claim, row.question, documents, images)
        case_id = store_case(store, project, draft, batch.author, batch.created_at).id
    return BatchRow(
        batch.id, row.number, row.claim, names, case_id, None, row.problem, row.question, row.others
    )


def _queue_run(
    store: Store, jobs: JobRunner, row: BatchRow, plan: Plan, unread: Sequence[ProblemMet] = ()
) -> BatchRow:
    """Queue a run for the row if it has a case; call inside `Store.writing()`."""
    case = store.cases.get(row.case_id) if row.case_id else None
    return replace(row, run_id=jobs.queue(store, case, plan, unread=unread)) if case else row


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


@dataclass(frozen=True)
class RunFindings:
    """The result of a run in words: marked words, what the sources say instead, and the reason."""

    marked_words: str = ""
    source_says: str = ""
    reason: str = ""


def summarize_run(store: Store, run: Run | None) -> RunFindings:
    """Return the findings of a run that has a verdict; empty ones for others."""
    progress = fold_events(load_events(store, run.id, FINDING_KINDS) if run and run.label else ())
    if progress.verdict is None:
        return RunFindings()
    spans, points = progress.spans, progress.judgement.points if progress.judgement else ()
    instead = [span.instead for span in spans if span.instead and span.in_evidence]
    groups: list[list[Quote | None]] = [
        [span.quote for span in spans],
        [point.quote for point in points],
        [quote for turn in progress.turns for quote in turn.quotes],
    ]
    cited = ([cite_quote(q) for q in group if q and q.status != "not_found"] for group in groups)
    quotes = next(filter(None, cited), [])
    words = list(dict.fromkeys([*instead, *quotes]))[: len(instead) + MAX_CITED_QUOTES]
    reason = progress.verdict.cause_words or progress.verdict.rationale
    return RunFindings("; ".join(span.text for span in spans), "; ".join(words), reason)


def format_results_csv(
    rows: Sequence[tuple[BatchRow, Run | None]],
    findings: Sequence[RunFindings],
    make_link: Callable[[str], str],
) -> bytes:
    """Return the results as CSV (UTF-8 with BOM, for spreadsheets); formulas are neutralised.

    `findings` are those of each row's run, `make_link` makes a run's address of its id. The table's
    further columns follow under their own names; one that is named like a result column is called
    “NAME (table)”.
    """
    titles = list_other_columns(row for row, _ in rows)
    columns = [f"{title} (table)" if title in RESULT_COLUMNS else title for title in titles]
    table: list[list[object]] = [[*RESULT_COLUMNS, *columns]]
    for (row, run), found in zip(rows, findings, strict=True):
        values: list[object] = [row.row, row.claim, row.question, "; ".join(row.sources)]
        values += [run.label, run.p_hallucinated, run.confidence, run.cause] if run else [""] * 4
        values += [found.marked_words, found.source_says, found.reason]
        values += [run.status if run else "not checked", row.problem, row.run_id]
        link = make_link(row.run_id) if row.run_id else ""
        table.append([*values, link, *(cell for _, cell in row.others)])
    return format_csv(table)


def format_csv(rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as CSV (UTF-8 with BOM, for spreadsheets); formulas are neutralised."""
    out = io.StringIO()
    csv.writer(out).writerows([safe_cell(value) for value in row] for row in rows)
    return b"\xef\xbb\xbf" + out.getvalue().encode()
