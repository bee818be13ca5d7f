"""Rows of a file become cases of a project: known ones are found again, nothing comes in twice.

Each row is stored whole or not at all, and one that cannot be is listed with its reason. What a row
says is appended only where it says something new, so the same file again changes nothing: a record
without an id gets one from what it says. A time that is yet to come is brought down to now: it
would outdo all that people say until then.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

from core.baseline.wording import counted
from core.documents.library import store_file
from core.documents.readers import type_of_name
from core.exchange.outgoing import stored_row
from core.exchange.rows import (
    IMPORTED,
    Document,
    ExchangeRow,
    MachineVerdict,
    Problem,
    Read,
    RecordedRun,
    imported_name,
    imported_row,
    standing,
)
from core.pipeline.streaming_input import CaseDraft, store_case
from core.review.adjudication import differ
from core.review.queue_ranking import imported_item
from core.runtime.errors import InputError, ReviewError
from core.schema.events import Event, RunFinished, RunStarted
from core.schema.records import Case, Plan, Project, Run, Span, WordScore
from core.schema.reviews import Correction, Gold, Handling, Suggestion
from core.store import Store
from core.store.corrections import counting
from core.store.sqlite import to_json

As = Literal["gold", "suggestions", "cases"]


@dataclass
class Outcome:
    """What came of a file. `known` cases were there before; `problems` are rows left out."""

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
    problems: list[Problem] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The outcome for a person, in one line."""
        parts = [
            f"{counted(self.new, 'new case')}, {self.known} known",
            counted(self.golds, "gold answer"),
            f"{counted(self.corrections, 'answer')} of people",
            counted(self.suggestions, "suggestion"),
            counted(self.documents, "document"),
        ]
        parts += [counted(self.runs, "recorded debate")] if self.runs else []
        bad = len(self.problems)
        left = f"; {counted(bad, 'row')} left out" if bad else ""
        gone = f"; {counted(self.missing, 'document')} not here" if self.missing else ""
        return f"{', '.join(parts)}{left}{gone}"

    def as_dict(self) -> dict[str, object]:
        """The outcome for a program; `missing` counts documents that are not here."""
        numbers = {name: own for name, own in vars(self).items() if isinstance(own, int)}
        problems = [{"line": one.place, "reason": one.reason} for one in self.problems]
        return {**numbers, "unit": self.unit, "problems": problems}


@dataclass(frozen=True)
class ImportOrder:
    """Into which project, by whom, when, from which file, and what its labels are taken as."""

    project: Project
    by: str
    now: float
    file: str
    labels: As = "gold"
    agent: str = ""


Key = tuple[object, ...]
R = TypeVar("R", Gold, Correction, Suggestion)


def new_golds(golds: Sequence[Gold], before: ExchangeRow, by: str, now: float) -> list[Gold]:
    """Golds that say something new of the case."""
    ids, keys = {one.id for one in before.golds}, {_key(one) for one in before.golds}
    found = []
    for gold in golds:
        is_idle = not gold.id and _adds_nothing(gold, before.answer)
        if gold.id in ids or _key(gold) in keys or is_idle:
            continue
        keys.add(_key(gold))
        found.append(_of_case(replace(gold, author=gold.author or by), gold, before, now, "gold"))
    return found


def _adds_nothing(gold: Gold, answer: Gold | Correction | None) -> bool:
    if answer is None or _marks(gold.spans) != _marks(answer.spans) or gold.label != answer.label:
        return False
    texts = (gold.reason, answer.reason), (gold.corrected_answer, answer.corrected_answer)
    is_softer = isinstance(answer, Gold) and gold.soft not in ((), answer.soft)
    return all(own in ("", there) for own, there in texts) and not is_softer


def new_corrections(
    corrections: Sequence[Correction], before: ExchangeRow, now: float
) -> list[Correction]:
    """Answers of people that the case does not have, under names that no member has."""
    ids = {one.id for one in before.corrections}
    keys = {_key(one) for one in standing(before.corrections)}
    found = []
    for one in corrections:
        if one.id not in ids and (one.id or _key(one) not in keys):
            keys.add(_key(one))
            named = replace(one, author=imported_name(one.author))
            found.append(_of_case(named, one, before, now, "correction", named.author))
    return found


def new_suggestions(
    suggestions: Sequence[Suggestion], before: ExchangeRow, now: float
) -> list[Suggestion]:
    """Suggestions that the case does not have."""
    ids, keys = {one.id for one in before.suggestions}, {_key(one) for one in before.suggestions}
    found = []
    for one in suggestions:
        if one.id not in ids and (one.id or _key(one) not in keys):
            keys.add(_key(one))
            found.append(_of_case(one, one, before, now, "suggestion"))
    return found


def _of_case(kept: R, told: R, before: ExchangeRow, now: float, *what: str) -> R:
    """A record of this case; without an id it gets one from what was told, whenever that was."""
    number = told.id or digest(before.id, *what, to_json(replace(told, at=0.0)))
    return replace(kept, id=number, case_id=before.id, at=min(told.at or now, now))


def is_said(row: ExchangeRow, agent: str) -> list[Suggestion]:
    """A row's labels as suggestions: its golds by the agent, each person's answer by the person."""
    gold = counting(row.golds)
    said = [(one.author, one.label, one.spans) for one in row.people]
    if gold:  # each span is as likely as the people who marked it were many
        spans = tuple(replace(span, p=_share(span, gold.soft)) for span in gold.spans)
        said.insert(0, (agent, gold.label, spans))
    return [Suggestion("", "", who, 0.0, label, None, spans) for who, label, spans in said]


def judged_elsewhere(verdict: MachineVerdict) -> list[Suggestion]:
    """What a run of another home said: here it is a suggestion, for the run itself is not here."""
    p = verdict.p_hallucinated
    agent = f"Counterpoint (run {verdict.run_id[:8]})"
    return [Suggestion("", "", agent, verdict.finished_at or 0.0, verdict.label, p)]


def _share(span: Span, soft: Sequence[WordScore]) -> float:
    """The mean over the span's characters; what the soft labels say nothing of keeps its own."""
    inside = [
        (min(one.end, span.end) - max(one.start, span.start), one.p)
        for one in soft
        if one.start < span.end and span.start < one.end
    ]
    if not inside:
        return span.p
    return min(1.0, sum(width * p for width, p in inside) / (span.end - span.start))


def digest(*parts: str) -> str:
    """An id of what is said: the same for the same."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _marks(spans: Sequence[Span]) -> Key:
    return tuple((span.start, span.end, span.category) for span in spans)


def _key(one: Gold | Correction | Suggestion) -> Key:
    """What one says, whoever brought it here."""
    if isinstance(one, Suggestion):
        return one.agent, one.label, one.p, _marks(one.spans)
    own = one.soft if isinstance(one, Gold) else one.author.removesuffix(IMPORTED)
    return own, one.label, _marks(one.spans), one.reason, one.corrected_answer


def store_recorded(store: Store, recorded: RecordedRun, case: Case, order: ImportOrder) -> bool:
    """Store the run where the case does not have it yet; whether it is new.

    It happened at a time that nobody wrote down: it stands under the time at which it came in.
    """
    told = [to_json(event) for event in recorded.events]
    run_id = digest(case.id, "recorded run", recorded.roster, *told)
    if store.runs.get(run_id, 0.0, 0.0) is not None:
        return False
    plan, now = Plan(recorded.protocol, recorded.roster), order.now
    run = Run(run_id, case.id, case.project_id, plan, "queued", now, origin="imported")
    store.runs.add(run, "", 0.0)
    last = max((event.at for event in recorded.events), default=0.0)
    events: list[Event] = [
        RunStarted(now, case, plan, recorded.roles),
        *(replace(event, at=now + event.at) for event in recorded.events),
        RunFinished(now + last, recorded.verdict, last, None),
    ]
    store.runs.append(run_id, None, events)
    return True


AT_ONCE = 200  # rows a transaction: others who write wait for no more
LONGEST_NAME = 120
NO_NAME = "source.txt"


def take_in(
    store: Store,
    home: Path,
    read: Read,
    order: ImportOrder,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Store a file's rows; `on_progress` is told how many are done, of how many.

    Raises NotAllowed: who brings them in is no lead of the project, or none any more.
    """
    outcome = Outcome(read.unit, len(read.rows) + len(read.problems))
    outcome.problems += read.problems
    rows = iter(_with_ids(read.rows, order.project))
    done = 0
    while part := list(islice(rows, AT_ONCE)):
        _require_lead(store, order)
        placed = [_with_files(store, home, row, order, outcome) for row in part]
        with store.writing():
            _require_lead(store, order)  # their role may have gone while files were stored
            for row in placed:
                if row is not None:
                    _take(store, row, order, outcome)
        done += len(part)
        on_progress(done, len(read.rows))
    outcome.problems.sort(key=lambda one: one.place)
    return outcome


def _require_lead(store: Store, order: ImportOrder) -> None:
    store.projects.require(order.project.id, order.by, "lead", "import cases")


def foreseen(store: Store, read: Read, project: Project) -> tuple[int, int, list[Problem]]:
    """(new cases, known ones, rows whose id names another case) before anything is stored."""
    known = 0
    problems: list[Problem] = []
    for row in _with_ids(read.rows, project):
        try:
            known += _known_case(store, row, project) is not None
        except InputError as error:
            problems.append(Problem(row.place, str(error)))
    return len(read.rows) - known - len(problems), known, problems


def _with_ids(rows: Sequence[ExchangeRow], project: Project) -> list[ExchangeRow]:
    seen: Counter[str] = Counter()
    found = []
    for row in rows:
        if not row.id:
            texts = "\n".join(d.text or d.id for d in row.documents)
            key = "\n".join((project.id, row.question, row.response, texts))
            seen[key] += 1
            row = replace(row, id=digest(str(seen[key]), key))
        found.append(row)
    return found


def _with_files(
    store: Store, home: Path, row: ExchangeRow, order: ImportOrder, outcome: Outcome
) -> ExchangeRow | None:
    """The row with the ids of its files, which are in the library then; None for a bad row."""
    try:
        _known_case(store, row, order.project)
        most = store.projects.settings().response_characters
        if len(row.response) > most:
            raise InputError(
                f"expected at most {most:,} characters in a response, found {len(row.response):,}; "
                "shorten it, or raise the limit on Settings."
            )
        documents = [_file(store, home, one, row, order, outcome) for one in row.documents]
        images = [_file(store, home, one, row, order, outcome) for one in row.images]
    except ReviewError as error:
        outcome.problems.append(Problem(row.place, str(error)))
        return None
    outcome.missing += sum(not one for one in (*documents, *images))
    return replace(
        row,
        documents=tuple(Document("", None, one) for one in documents if one),
        images=tuple(Document("", None, one) for one in images if one),
    )


def _file(
    store: Store,
    home: Path,
    document: Document,
    row: ExchangeRow,
    order: ImportOrder,
    outcome: Outcome,
) -> str:
    """The library's id of a document, which is added where it is new; "" where it is not here."""
    project = order.project
    if document.text is None:
        return document.id if store.library.get(project.id, document.id) else ""
    data = document.text.encode()
    source = hashlib.sha256(data).hexdigest()
    if source in outcome.sources:
        return source
    if (
        not document.name and len(document.text) <= LONGEST_NAME
    ):  # a table's cell may be the name of a file that is there already
        named = [e for e in store.library.all(project.id) if e.name == document.text.strip()]
        if named:
            return named[0].id
    known = store.library.get(project.id, source)
    if known is None:
        name = _file_name(document.name or f"{row.id[:60]}.txt")
        settings = store.projects.settings()
        store_file(store, home, project.id, name, data, order.by, order.now, settings)
        outcome.documents += 1
    outcome.sources[source] = known.name if known else document.name
    return source


def _file_name(name: str) -> str:
    """A name under which a text is read as what it is, not as the PDF that it was taken from."""
    printed = "".join(c for c in name if c.isprintable() and c not in "/\\")
    bare = printed[:LONGEST_NAME].strip() or NO_NAME
    own = type_of_name(bare)
    return bare if own and own.is_text else bare + ".txt"


def _known_case(store: Store, row: ExchangeRow, project: Project) -> Case | None:
    """The case that the row's id names, if any."""
    case = store.cases.get(row.id)
    if case is None:
        return None
    what = "case of another project"
    if case.project_id == project.id:
        other = "response" if case.response != row.response else "question"
        what = f"case with another {other}"
        if (case.response, case.question) == (row.response, row.question):
            return case
    raise InputError(
        f"expected an id that is free or names the same case, found “{row.id[:60]}”, which names a "
        f"{what}; give the row another id."
    )


def _take(store: Store, row: ExchangeRow, order: ImportOrder, outcome: Outcome) -> None:
    """Store one row whole, or list why it is not."""
    try:
        with store.part():
            says, is_new = _stored(store, row, order, outcome)
    except ReviewError as error:
        outcome.problems.append(Problem(row.place, str(error)))
    except sqlite3.IntegrityError:
        why = "expected records of this case alone, found ids of another case’s; remove them."
        outcome.problems.append(Problem(row.place, why))
    else:
        outcome.new += is_new
        outcome.known += not is_new
        outcome.golds += len(says.golds)
        outcome.corrections += len(says.corrections)
        outcome.suggestions += len(says.suggestions)


def _stored(
    store: Store, row: ExchangeRow, order: ImportOrder, outcome: Outcome
) -> tuple[ExchangeRow, bool]:
    """What the row said that was new, and whether its case is."""
    known = _known_case(store, row, order.project)
    case = known or _new_case(store, row, order)
    if row.run is not None:
        outcome.runs += store_recorded(store, row.run, case, order)
    before = stored_row(store, case)
    says = _says(store, row, before, order)
    for gold in says.golds:
        store.golds.add(gold, case.response)
    for correction in says.corrections:
        store.corrections.add(correction, case.response)
    for suggestion in says.suggestions:
        store.golds.suggest(suggestion, case)
    if known is None:
        for one in row.handlings:
            person = imported_name(one.person)
            at = min(one.at, order.now)
            store.handlings.add(replace(one, case_id=case.id, person=person, at=at))
        store.handlings.add(Handling(case.id, order.by, order.now, "imported", order.file[:200]))
    if store.queue.get(case.id) is None:
        first = next(iter(says.suggestions), None)
        label, p = (first.label, first.p) if first else (None, None)
        store.queue.add(imported_item(case, order.now, label, p))
    if says.corrections:
        store.queue.set_differ(case.id, differ(store.corrections.newest_of_case(case.id)))
    return says, known is None


def _new_case(store: Store, row: ExchangeRow, order: ImportOrder) -> Case:
    documents, images = (
        tuple(dict.fromkeys(one.id for one in files)) for files in (row.documents, row.images)
    )
    said = (row.role, row.instruction, row.id, row.language, row.others)
    draft = CaseDraft(row.response, row.question, documents, images, *said)
    return store_case(store, order.project, draft, order.by, order.now)


def _says(store: Store, row: ExchangeRow, before: ExchangeRow, order: ImportOrder) -> ExchangeRow:
    """The row with only those records that the case does not have yet."""
    named = imported_row(row)
    verdict = row.verdict
    is_elsewhere = verdict is not None and not _is_of_case(store, verdict.run_id, before.id)
    machine = judged_elsewhere(verdict) if verdict and is_elsewhere else []
    suggested = new_suggestions((*named.suggestions, *machine), before, order.now)
    if order.labels == "suggestions":
        told = is_said(row, order.agent or order.file)
        suggested += new_suggestions(told, before, order.now)
    found = replace(row, golds=(), corrections=(), suggestions=tuple(suggested))
    if order.labels != "gold":
        return found
    corrections = [
        one if _is_of_case(store, one.run_id, before.id) else replace(one, run_id=None)
        for one in new_corrections(row.corrections, before, order.now)
    ]
    golds = new_golds(named.golds, before, order.by, order.now)
    return replace(found, golds=tuple(golds), corrections=tuple(corrections))


def _is_of_case(store: Store, run_id: str | None, case_id: str) -> bool:
    """Whether a run over that case has ended here: a row may name any run, also another's."""
    run = store.runs.get(run_id, 0.0, 0.0) if run_id else None
    return run is not None and run.case_id == case_id and store.runs.has_ended(run.id)
