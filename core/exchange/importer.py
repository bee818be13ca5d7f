"""Import the rows of a file as cases of a project, without storing anything twice.

Each row is stored completely or not at all; one that fails is listed with its reason. A record is
appended only if it is new, so importing the same file again changes nothing: a record without an id
gets one derived from its content. A time in the future is lowered to now, because it would override
everything that people answer until then.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

from core.baseline.wording import format_count
from core.documents.library import store_file
from core.documents.readers import guess_file_type
from core.exchange.exporter import build_row
from core.exchange.rows import (
    IMPORTED_SUFFIX,
    ExchangeDocument,
    ExchangeRow,
    MachineVerdict,
    ParsedFile,
    RecordedRun,
    RowProblem,
    exclude_withdrawn,
    get_copy_suffix,
    mark_name_imported,
    mark_row_imported,
)
from core.pipeline.batch_check import TEXT_NAMES
from core.pipeline.single_check import CaseDraft, store_case
from core.review.adjudication import rate_difference
from core.review.queue_ranking import build_imported_item
from core.runtime.errors import InputError, ReviewError
from core.schema.events import Event, RunFinished, RunStarted
from core.schema.records import Case, Label, Plan, Project, Run, Span, WordScore
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Suggestion
from core.store import Store
from core.store.ground_truth import GroundTruth, choose_counting_gold
from core.store.sqlite import to_json

LabelUse = Literal["gold", "suggestions", "cases"]
RecordKey = tuple[object, ...]
R = TypeVar("R", GoldAnswer, Correction, Suggestion)
ROWS_PER_TRANSACTION = 200  # rows per transaction, so that other writers do not wait longer
MAX_FILE_NAME_CHARS = 120
# Names that our formats make up, and that sets of rows give the text of every row.
GENERIC_NAME = re.compile(rf"(source|{'|'.join(TEXT_NAMES)})( \d+)?\.txt")
MAX_NOTICES_TOLD = 5  # in the one line for a person
MAX_CASE_WORDS = 48  # characters
RANDOM_ID = re.compile(r"[0-9a-f]{32}")  # of a row without an id
DEFAULT_FILE_NAME = "source.txt"


@dataclass
class ImportOutcome:
    """The result of an import. `known` cases existed before; `problems` are rows left out.

    `notices` name the rows that give one case different labels and the one that counts, and what
    was changed while reading a row.
    """

    unit: str = "line"
    rows: int = 0
    new: int = 0
    known: int = 0
    golds: int = 0
    corrections: int = 0
    suggestions: int = 0
    documents: int = 0
    runs: int = 0
    missing: int = 0
    problems: list[RowProblem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The outcome in one line for a person."""
        parts = [
            f"{format_count(self.new, 'new case')}, {self.known} known",
            format_count(self.golds, "gold answer"),
            f"{format_count(self.corrections, 'answer')} of people",
            format_count(self.suggestions, "suggestion"),
            format_count(self.documents, "document"),
        ]
        parts += [format_count(self.runs, "recorded debate")] if self.runs else []
        left_out = len(self.problems)
        left_out_words = f"; {format_count(left_out, 'row')} left out" if left_out else ""
        missing_words = (
            f"; {format_count(self.missing, 'document')} not here" if self.missing else ""
        )
        more = len(self.notices) - MAX_NOTICES_TOLD
        notices = self.notices[:MAX_NOTICES_TOLD] + ([f"… and {more} more"] if more > 0 else [])
        return "; ".join([f"{', '.join(parts)}{left_out_words}{missing_words}", *notices])

    def as_dict(self) -> dict[str, object]:
        """Return the outcome for a program; `missing` counts documents not in this home."""
        counts = {name: count for name, count in vars(self).items() if isinstance(count, int)}
        problems = [{"line": one.place, "reason": one.reason} for one in self.problems]
        return {**counts, "unit": self.unit, "problems": problems, "notices": self.notices}


@dataclass(frozen=True)
class ImportRequest:
    """An import: the target project, who imports when, from which file, and how labels are used."""

    project: Project
    by: str
    now: float
    file: str
    labels: LabelUse = "gold"
    agent: str = ""


def select_new_golds(
    golds: Sequence[GoldAnswer], before: ExchangeRow, by: str, now: float
) -> list[GoldAnswer]:
    """Return the golds that add something to the case."""
    ids = {one.id for one in before.golds}
    copies = {(_make_key(one), one.origin, one.at) for one in before.golds}
    keys = {(_make_key(one), name) for one in before.golds for name in (one.origin, "imported")}
    new = []
    for gold in golds:
        key = _make_key(gold)
        if gold.id:  # the same answer may have been given again, after another one
            is_known = gold.id in ids or (key, gold.origin, gold.at) in copies
        else:
            is_known = (key, gold.origin) in keys or _is_redundant_gold(gold, before.answer)
        if is_known:
            continue
        keys.add((key, gold.origin))
        authored = replace(gold, author=gold.author or by)
        new.append(_assign_to_case(authored, gold, before, now, "gold"))
    return new


def _is_redundant_gold(gold: GoldAnswer, answer: GroundTruth | None) -> bool:
    if answer is None or gold.label != answer.label or gold.origin != "imported":
        return False
    if _list_marks(gold.spans) != _list_marks(answer.spans):
        return False
    texts = (gold.reason, answer.reason), (gold.corrected_answer, answer.corrected_answer)
    known = answer.records[0]
    has_new_shares = isinstance(known, GoldAnswer) and gold.soft not in ((), known.soft)
    return all(text in ("", known_text) for text, known_text in texts) and not has_new_shares


def select_new_corrections(
    corrections: Sequence[Correction], before: ExchangeRow, now: float
) -> list[Correction]:
    """Return the people's answers that the case does not have, under names that no member has."""
    ids = {one.id for one in before.corrections}
    standing = exclude_withdrawn(before.corrections)
    keys = {_make_key(one) for one in standing}
    # Another project's copy of an answer has an id of its own.
    copies = {(_make_key(one), one.at) for one in standing}
    new = []
    for one in corrections:
        is_copy = (_make_key(one), one.at) in copies
        if one.id not in ids and not is_copy and (one.id or _make_key(one) not in keys):
            keys.add(_make_key(one))
            renamed = replace(one, author=mark_name_imported(one.author))
            new.append(_assign_to_case(renamed, one, before, now, "correction", renamed.author))
    return new


def select_new_suggestions(
    suggestions: Sequence[Suggestion], before: ExchangeRow, now: float
) -> list[Suggestion]:
    """Return the suggestions that the case does not have."""
    ids = {one.id for one in before.suggestions}
    keys = {_make_key(one) for one in before.suggestions}
    copies = {(_make_key(one), one.at) for one in before.suggestions}
    new = []
    for one in suggestions:
        is_copy = (_make_key(one), one.at) in copies
        if one.id not in ids and not is_copy and (one.id or _make_key(one) not in keys):
            keys.add(_make_key(one))
            new.append(_assign_to_case(one, one, before, now, "suggestion"))
    return new


def _assign_to_case(record: R, source: R, before: ExchangeRow, now: float, *what: str) -> R:
    """Return the record for this case.

    Without an id it gets one derived from `source`, the record as the file has it, less its time.
    """
    record_id = source.id or compute_digest(before.id, *what, to_json(replace(source, at=0.0)))
    return replace(record, id=record_id, case_id=before.id, at=min(source.at or now, now))


def convert_labels_to_suggestions(row: ExchangeRow, agent: str) -> list[Suggestion]:
    """Return a row's labels as suggestions: its gold by the agent, each answer by its person."""
    gold = choose_counting_gold(row.golds, row.reopened_at)
    answers = [(one.author, one.label, one.spans) for one in row.people]
    if gold:  # a span's probability is the share of people who marked it
        spans = tuple(replace(span, p=_compute_mean_share(span, gold.soft)) for span in gold.spans)
        answers.insert(0, (agent, gold.label, spans))
    return [Suggestion("", "", person, 0.0, label, None, spans) for person, label, spans in answers]


def convert_verdict_to_suggestions(verdict: MachineVerdict) -> list[Suggestion]:
    """Return the verdict of another home's run as a suggestion: the run itself is not here."""
    p = verdict.p_hallucinated
    agent = f"Counterpoint (run {verdict.run_id[:8]})"
    return [Suggestion("", "", agent, verdict.finished_at or 0.0, verdict.label, p)]


def _compute_mean_share(span: Span, soft: Sequence[WordScore]) -> float:
    """Return the mean share over the span's characters; the span's own p if none has a share."""
    overlaps = [
        (min(one.end, span.end) - max(one.start, span.start), one.p)
        for one in soft
        if one.start < span.end and span.start < one.end
    ]
    if not overlaps:
        return span.p
    return min(1.0, sum(width * p for width, p in overlaps) / (span.end - span.start))


def compute_digest(*parts: str) -> str:
    """Return an id derived from the parts; equal parts give the same id."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _list_marks(spans: Sequence[Span]) -> RecordKey:
    return tuple((span.start, span.end, span.category) for span in spans)


def _make_key(record: GoldAnswer | Correction | Suggestion) -> RecordKey:
    """Return the record's content for comparison, without who imported it."""
    if isinstance(record, Suggestion):
        return record.agent, record.label, record.p, _list_marks(record.spans)
    origin = (
        record.soft
        if isinstance(record, GoldAnswer)
        else record.author.removesuffix(IMPORTED_SUFFIX)
    )
    return (origin, record.label, _list_marks(record.spans), record.reason, record.corrected_answer)


def store_recorded_run(
    store: Store, recorded: RecordedRun, case: Case, order: ImportRequest
) -> bool:
    """Store the run unless the case has it already; return True if it is new.

    The record does not say when the debate took place, so the run gets the time of the import.
    """
    event_texts = [to_json(event) for event in recorded.events]
    run_id = compute_digest(case.id, "recorded run", recorded.roster, *event_texts)
    if store.runs.get(run_id, 0.0, 0.0) is not None:
        return False
    plan, now = Plan(recorded.protocol, recorded.roster), order.now
    run = Run(run_id, case.id, case.project_id, plan, "queued", now, origin="imported")
    store.runs.add(run, "", 0.0)
    duration = max((event.at for event in recorded.events), default=0.0)
    events: list[Event] = [
        RunStarted(now, case, plan, recorded.roles),
        *(replace(event, at=now + event.at) for event in recorded.events),
        RunFinished(now + duration, recorded.verdict, duration, None),
    ]
    store.runs.append(run_id, None, events)
    return True


def import_rows(
    store: Store,
    home: Path,
    read: ParsedFile,
    order: ImportRequest,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ImportOutcome:
    """Store a file's rows; `on_progress` receives the number of rows done and of all rows.

    Raises NotAllowed if the importing person is not, or no longer, a lead of the project.
    """
    outcome = ImportOutcome(read.unit, len(read.rows) + len(read.problems))
    outcome.problems += read.problems
    identified = _assign_ids(store, read.rows, order.project)
    rows = iter(identified)
    done = 0
    while batch := list(islice(rows, ROWS_PER_TRANSACTION)):
        _require_lead(store, order)
        prepared = [_store_files(store, home, row, order, outcome) for row in batch]
        with store.writing():
            _require_lead(store, order)  # their role may have gone while files were stored
            for row in prepared:
                if row is not None:
                    _import_row(store, row, order, outcome)
        done += len(batch)
        on_progress(done, len(read.rows))
    outcome.problems.sort(key=lambda one: one.place)
    if order.labels == "gold":
        outcome.notices += _describe_conflicting_golds(store, identified, outcome)
    return outcome


def _describe_conflicting_golds(
    store: Store, rows: Sequence[ExchangeRow], outcome: ImportOutcome
) -> Iterator[str]:
    """Yield a notice for each case to which several rows give golds with different labels."""
    left_out = {one.place for one in outcome.problems}
    given: dict[str, dict[int, Label]] = defaultdict(dict)
    for row in rows:
        if row.place not in left_out and (gold := choose_counting_gold(row.golds, row.reopened_at)):
            given[row.id][row.place] = gold.label
    conflicts = {name: one for name, one in given.items() if len(set(one.values())) > 1}
    for case_id, truth in store.truths.of_cases(list(conflicts)).items():
        labels = conflicts[case_id]
        last = max(labels)
        other = max(place for place, label in labels.items() if label != labels[last])
        counting = f"that of {outcome.unit} {last}"
        if truth.basis == "settled" or truth.label != labels[last]:  # by a lead, or another file
            counting = f"the {truth.basis} answer, {truth.label},"
        yield (
            f"{outcome.unit}s {other} and {last} give “{case_id[:60]}” different labels: "
            f"{counting} counts"
        )


def _require_lead(store: Store, order: ImportRequest) -> None:
    store.projects.require(order.project.id, order.by, "lead", "import cases")


def preview_import(
    store: Store, read: ParsedFile, project: Project
) -> tuple[int, int, list[RowProblem]]:
    """Return (new cases, known cases, rows that cannot be imported); nothing is stored.

    A row whose id and texts an earlier row of the file has as well is a known case.
    """
    known = 0
    problems: list[RowProblem] = []
    earlier: dict[str, ExchangeRow] = {}
    limit = store.projects.settings().response_characters
    for row in _assign_ids(store, read.rows, project):
        try:
            _require_length(row, limit)
            if row.id in earlier:
                _require_same_texts(row, earlier[row.id])
                known += 1
            else:
                known += _find_known_case(store, row, project) is not None
                earlier[row.id] = row
        except InputError as error:
            problems.append(RowProblem(row.place, str(error)))
    return len(read.rows) - known - len(problems), known, problems


def _require_length(row: ExchangeRow, limit: int) -> None:
    if len(row.response) > limit:
        raise InputError(
            f"expected at most {limit:,} characters in a response, found "
            f"{len(row.response):,}; shorten it, or raise the limit on Settings."
        )


def _assign_ids(store: Store, rows: Sequence[ExchangeRow], project: Project) -> list[ExchangeRow]:
    """Return the rows with ids; one that another project's case has gets this project's mark."""
    occurrences: Counter[str] = Counter()
    identified = []
    for row in rows:
        if not row.id:
            document_texts = "\n".join(d.text or d.id for d in row.documents)
            key = "\n".join((project.id, row.question, row.response, document_texts))
            occurrences[key] += 1
            row = replace(row, id=compute_digest(str(occurrences[key]), key))
        elif _is_copy(store, row, project):
            row = _copy_for_project(row, project)
        identified.append(row)
    return identified


def _is_copy(store: Store, row: ExchangeRow, project: Project) -> bool:
    """Return True if the plain id is that of another project's case, or was when this came in."""
    case = store.cases.get(row.id)
    if case is not None:
        return case.project_id != project.id
    return store.cases.get(row.id + get_copy_suffix(project)) is not None


def _copy_for_project(row: ExchangeRow, project: Project) -> ExchangeRow:
    """Return the row as a case of its own, whose records get ids of their own."""
    return _derive_record_ids(replace(row, id=row.id + get_copy_suffix(project)))


def _derive_record_ids(row: ExchangeRow) -> ExchangeRow:
    """Return the row with other ids for its records; those that say the same stay apart."""

    def derive(record_id: str) -> str:
        return record_id and compute_digest(row.id, record_id)

    return replace(
        row,
        golds=tuple(replace(one, id=derive(one.id), took=()) for one in row.golds),
        corrections=tuple(
            replace(one, id=derive(one.id)) for one in exclude_withdrawn(row.corrections)
        ),
        suggestions=tuple(replace(one, id=derive(one.id)) for one in row.suggestions),
    )


def _store_files(
    store: Store, home: Path, row: ExchangeRow, order: ImportRequest, outcome: ImportOutcome
) -> ExchangeRow | None:
    """Add the row's files to the library and return the row with their ids; None for a bad row."""
    try:
        _find_known_case(store, row, order.project)
        _require_length(row, store.projects.settings().response_characters)
        documents = [
            _store_document(store, home, one, row, order, outcome) for one in row.documents
        ]
        images = [_store_document(store, home, one, row, order, outcome) for one in row.images]
    except ReviewError as error:
        outcome.problems.append(RowProblem(row.place, str(error)))
        return None
    outcome.missing += sum(not one for one in (*documents, *images))
    return replace(
        row,
        documents=tuple(ExchangeDocument("", None, one) for one in documents if one),
        images=tuple(ExchangeDocument("", None, one) for one in images if one),
    )


def _store_document(
    store: Store,
    home: Path,
    document: ExchangeDocument,
    row: ExchangeRow,
    order: ImportRequest,
    outcome: ImportOutcome,
) -> str:
    """Return the library's id of a document, adding it if it is new; "" if it is not here."""
    project = order.project
    if document.text is None:
        return document.id if store.library.get(project.id, document.id) else ""
    data = document.text.encode()
    sha = hashlib.sha256(data).hexdigest()
    if sha in outcome.sources:
        return sha
    name = get_named_file(document)
    if name and (same_name := store.library.by_name(project.id).get(name)):
        return same_name.id
    entry = store.library.get(project.id, sha)
    if entry is None:
        name = _choose_file_name(_name_document(document, row))
        settings = store.projects.settings()
        store_file(store, home, project.id, name, data, order.by, order.now, settings)
        outcome.documents += 1
    outcome.sources[sha] = entry.name if entry else name
    return sha


def get_named_file(document: ExchangeDocument) -> str:
    """Return the cell of a table as the name of a file, which it may be, or ""."""
    text = document.text or ""
    return text.strip() if not document.name and len(text) <= MAX_FILE_NAME_CHARS else ""


def _name_document(document: ExchangeDocument, row: ExchangeRow) -> str:
    """Return the document's own name; one that our formats make up begins with its case's words.

    People read the name beside the response, and choose by it in the library.
    """
    if not document.name and not RANDOM_ID.fullmatch(row.id):
        return f"{row.id[:60]}.txt"
    if document.name and not GENERIC_NAME.fullmatch(document.name):
        return document.name
    words = " ".join((row.question or row.response).split())
    case = words if len(words) <= MAX_CASE_WORDS else words[: MAX_CASE_WORDS - 1] + "…"
    return f"{case}, {document.name or 'source.txt'}"


def _choose_file_name(name: str) -> str:
    """Return a name under which the text is read as text, not as the PDF it was taken from."""
    printable = "".join(c for c in name if c.isprintable() and c not in "/\\")
    base = printable[:MAX_FILE_NAME_CHARS].strip() or DEFAULT_FILE_NAME
    file_type = guess_file_type(base)
    return base if file_type and file_type.is_text else base + ".txt"


def _find_known_case(store: Store, row: ExchangeRow, project: Project) -> Case | None:
    """Return the case that the row's id names, if any."""
    case = store.cases.get(row.id)
    if case is not None and case.project_id != project.id:
        raise _make_id_error(row, "case of another project")
    if case is not None:
        _require_same_texts(row, case)
    return case


def _require_same_texts(row: ExchangeRow, known: Case | ExchangeRow) -> None:
    if (known.response, known.question) != (row.response, row.question):
        differing_field = "response" if known.response != row.response else "question"
        raise _make_id_error(row, f"case with another {differing_field}")


def _make_id_error(row: ExchangeRow, conflict: str) -> InputError:
    return InputError(
        f"expected an id that is free or names the same case, found “{row.id[:60]}”, which names a "
        f"{conflict}; give the row another id."
    )


def _import_row(
    store: Store, row: ExchangeRow, order: ImportRequest, outcome: ImportOutcome
) -> None:
    """Store one row completely, or list why it cannot be."""
    try:
        try:
            with store.part():
                new_records, is_new = _store_row(store, row, order, outcome)
        except sqlite3.IntegrityError:
            projects = store.projects.all()
            if not any(store.cases.get(row.id + get_copy_suffix(one)) for one in projects):
                raise
            with store.part():  # the file of a project that has a copy of this case
                derived = _derive_record_ids(row)
                new_records, is_new = _store_row(store, derived, order, outcome)
    except ReviewError as error:
        outcome.problems.append(RowProblem(row.place, str(error)))
    except sqlite3.IntegrityError:
        reason = "expected records of this case alone, found ids of another case’s; remove them."
        outcome.problems.append(RowProblem(row.place, reason))
    else:
        outcome.notices += (f"{outcome.unit} {row.place}: {notice}" for notice in row.notices)
        outcome.new += is_new
        outcome.known += not is_new
        outcome.golds += len(new_records.golds)
        outcome.corrections += len(new_records.corrections)
        outcome.suggestions += len(new_records.suggestions)


def _store_row(
    store: Store, row: ExchangeRow, order: ImportRequest, outcome: ImportOutcome
) -> tuple[ExchangeRow, bool]:
    """Store one row; return its new records and whether its case is new."""
    known = _find_known_case(store, row, order.project)
    case = known or _create_case(store, row, order)
    if known is not None:  # the log by which others count no more comes with a new case alone
        row = replace(row, golds=row.standing_golds)
    if row.run is not None:
        outcome.runs += store_recorded_run(store, row.run, case, order)
    before = build_row(store, case, order.project)
    new_records = _select_new_records(store, row, before, order)
    for gold in new_records.golds:
        store.golds.add(gold, case.response)
    for correction in new_records.corrections:
        store.corrections.add(correction, case.response)
    for suggestion in new_records.suggestions:
        store.golds.suggest(suggestion, case)
    if known is None:
        for one in row.handlings:
            person = mark_name_imported(one.person)
            at = min(one.at, order.now)
            store.queue_events.add(replace(one, case_id=case.id, person=person, at=at))
        store.queue_events.add(
            QueueEvent(case.id, order.by, order.now, "imported", order.file[:200])
        )
    if store.queue.get(case.id) is None:
        first = next(iter(new_records.suggestions), None)
        label, p = (first.label, first.p) if first else (None, None)
        store.queue.add(build_imported_item(case, order.now, label, p))
    if new_records.corrections:
        said = store.corrections.newest_of_case(case.id)
        store.queue.update_answers(case.id, rate_difference(said))
    return new_records, known is None


def _create_case(store: Store, row: ExchangeRow, order: ImportRequest) -> Case:
    documents, images = (
        tuple(dict.fromkeys(one.id for one in files)) for files in (row.documents, row.images)
    )
    draft = CaseDraft(
        row.response,
        row.question,
        documents,
        images,
        row.role,
        row.instruction,
        row.id,
        row.language,
        row.others,
    )
    return store_case(store, order.project, draft, order.by, order.now)


def _select_new_records(
    store: Store, row: ExchangeRow, before: ExchangeRow, order: ImportRequest
) -> ExchangeRow:
    """Return the row with only those records that the case does not have yet."""
    renamed = mark_row_imported(row)
    verdict = row.verdict
    is_elsewhere = verdict is not None and not _has_ended_run(store, verdict.run_id, before.id)
    machine_suggestions = (
        convert_verdict_to_suggestions(verdict) if verdict and is_elsewhere else []
    )
    suggestions = select_new_suggestions(
        (*renamed.suggestions, *machine_suggestions), before, order.now
    )
    if order.labels == "suggestions":
        label_suggestions = convert_labels_to_suggestions(row, order.agent or order.file)
        suggestions += select_new_suggestions(label_suggestions, before, order.now)
    new_records = replace(row, golds=(), corrections=(), suggestions=tuple(suggestions))
    if order.labels != "gold":
        return new_records
    corrections = [
        one if _has_ended_run(store, one.run_id, before.id) else replace(one, run_id=None)
        for one in select_new_corrections(row.corrections, before, order.now)
    ]
    golds = select_new_golds(renamed.golds, before, order.by, order.now)
    return replace(new_records, golds=tuple(golds), corrections=tuple(corrections))


def _has_ended_run(store: Store, run_id: str | None, case_id: str) -> bool:
    """Return True if a run over that case has ended here; a row may name a run of another case."""
    run = store.runs.get(run_id, 0.0, 0.0) if run_id else None
    return run is not None and run.case_id == case_id and store.runs.has_ended(run.id)
