"""Store a case from a person's input, check it once, or check a response while it arrives.

Each statement of an arriving response is checked once it is complete, and its boundaries are final.
When all of it has arrived, the run is stored with its events so far and continues from them as if
it had been interrupted: reflection over the whole confirms or changes earlier labels, and contested
statements are debated. Source: CEDA 6, HaluAgent 2.3.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, cast

from core.agents.rosters import SHIPPED, chosen_roster
from core.baseline.audit_agents import BuiltInSegmenter, Cutter
from core.baseline.entailment import brought, calibration_notice
from core.debate import NAMES
from core.debate.protocols import require_options, require_protocol
from core.documents.library import ensure_read, store_file
from core.documents.segmentation import language_of, terms
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.pipeline.audit_steps import decoded, no_longer, whole_so_far
from core.pipeline.jobs import Jobs
from core.pipeline.run_factory import Staff, as_learned, require_keys, staffed
from core.review.people import first_project, person_here
from core.review.queue_ranking import policy_of
from core.runtime.concurrency import Stop
from core.runtime.config import MEGABYTE, shown_safely
from core.runtime.errors import NOT_STORED, InputError
from core.schema.events import AUDIT, ENDINGS, TRANSIENT, Event, Remembered
from core.schema.progress import RESUMABLE, Progress, folded, total_cost
from core.schema.records import Case, ModelCall, Passage, Plan, Project, Run, Statement, new_id
from core.schema.rosters import AS_IS, BUILT_IN, DebateOptions, Seat
from core.store import Store, open_store

SPAN = "start end text p category source instead in_evidence"
TURN = "number debater agent round manner about assigned reply stance confidence doubt text"
QUOTE = "text status score source page start end"
NANO_DIGITS = 9  # decimals of a US dollar, as in the ledger
PROTOCOLS = (*NAMES, AUDIT)
NO_KEYS = Keys({})
MOST_MEGABYTES = 16
NOT_KEPT = TRANSIENT | ENDINGS
BESIDE = 50  # previous statements, from which a conclusion may follow
READING = frozenset({"run_started", "document_read", "image_described"})
BY_RULE = (
    "The built-in segmenter cuts a response that is still arriving: a model would be asked anew "
    "with every sentence, and might cut otherwise what is checked already."
)
Tell = Callable[[Statement, Remembered], None]


def outcome(run: Run, progress: Progress) -> dict[str, Any]:
    """Return the object of `python -m core check --json`.

    Offsets of statements and spans count code points of the response, those of evidence and quotes
    of the source's text. A run that did not finish has `label: null`. `cost` is in US dollars, null
    where part of it is not known; built-in agents call nothing and cost nothing. A span's `instead`
    was read in a source if `in_evidence` is true, else computed. `options` are the chosen options
    of the protocol. `models` has an entry for each language model that was called.
    """
    verdict = progress.verdict if run.status == "finished" else None
    ending, decided, weighed = progress.ending, progress.decided, progress.weighed
    failure = ending.message if ending is not None and ending.kind == "run_failed" else ""
    labels = progress.judgement.statement_labels if progress.judgement else ()
    return {
        "run_id": run.id,
        "status": run.status,
        "label": verdict.label if verdict else None,
        "cause": verdict.cause if verdict else None,
        "cause_words": verdict.cause_words if verdict else failure,
        "p_hallucinated": verdict.p_hallucinated if verdict else None,
        "confidence": verdict.confidence if verdict else None,
        "rationale": verdict.rationale if verdict else "",
        "statements": [
            _select_fields(item, "start end text rewrite")
            | {"label": labels[index] if index < len(labels) else None}
            for index, item in sorted(progress.statements.items())
        ],
        "spans": [_select_fields(span, SPAN) for span in progress.spans],
        "evidence": [_describe_passage(passage) for passage in progress.evidence.values()],
        "turns": [
            _select_fields(turn, TURN)
            | {"quotes": [_select_fields(quote, QUOTE) for quote in turn.quotes]}
            for turn in sorted(progress.turns, key=lambda turn: turn.number)
        ],
        "remarks": [_select_fields(said, "by text") for said in progress.remarks],
        "corrected": progress.revised.text if progress.revised else None,
        "notes": list(progress.notes),
        "problems": [problem.message for problem in progress.problems],
        "classifier": verdict.classifier if verdict else run.plan.classifier,
        "roster": run.plan.roster,
        "protocol": run.plan.protocol,
        "options": run.plan.options.chosen,
        "debate": decided
        and {"is_held": decided.is_needed, "then": decided.then, "why": decided.why},
        "consensus": weighed
        and {"method": weighed.method, "weights": dict(weighed.weights), "p": weighed.p},
        "seconds": round(progress.seconds(), 3),
        "cost": None if progress.cost is None else round(progress.cost, NANO_DIGITS),
        "models": _summarise_models(progress),
    }


def _summarise_models(progress: Progress) -> dict[str, dict[str, Any]]:
    """Total each model's calls for this run; replies reused from other runs were paid for there."""
    by_model: dict[str, list[ModelCall]] = {}
    for call in progress.calls.values():
        by_model.setdefault(call.model, []).append(call)
    return {model: calls_used(calls) for model, calls in sorted(by_model.items())}


def calls_used(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """Return the totals of calls; those that another run had paid for cost nothing."""
    sent = [call for call in calls if call.origin != "reused"]
    cost = total_cost(sent)
    return {
        "calls": len(sent),
        "reused": len(calls) - len(sent),
        "tokens_in": sum(call.tokens_in for call in sent),
        "tokens_out": sum(call.tokens_out for call in sent),
        "cost": None if cost is None else round(cost, NANO_DIGITS),
    }


def _select_fields(record: object, names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names.split()}


def _describe_passage(passage: Passage) -> dict[str, Any]:
    similarity = None if passage.similarity is None else round(passage.similarity, 4)
    score = {"score": round(passage.score, 5), "similarity": similarity}
    return _select_fields(passage, "source page start end text") | score


@dataclass(frozen=True)
class Request:
    """One claim with its files, as the command line takes it.

    `roster` is a name or a file; `model` takes precedence over it and gets every speaking role,
    with `api_base`, `window` (tokens) and `seconds` (the longest silence); 0 is the default.
    `reader` is the name of a reader, or a model to import as one; empty is the one chosen in
    Settings.
    """

    response: str
    question: str = ""
    documents: Sequence[Path] = ()
    images: Sequence[Path] = ()
    role: str | None = None
    instruction: str | None = None
    roster: str = BUILT_IN
    protocol: str = "ceda"
    model: str = ""
    api_base: str = ""
    window: int = 0
    seconds: int = 0
    token_cap: int = 0
    options: DebateOptions = AS_IS
    reader: str = ""


@dataclass(frozen=True)
class CaseDraft:
    """A case before it is stored; None takes the project's role or instruction.

    Without an `id` it gets a new one; without a `language` it is detected.
    """

    response: str
    question: str = ""
    documents: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    role: str | None = None
    instruction: str | None = None
    id: str = ""
    language: str = ""
    others: tuple[tuple[str, str], ...] = ()


def store_case(store: Store, project: Project, draft: CaseDraft, author: str, now: float) -> Case:
    """Store a case, or return an existing one with exactly the same content.

    So a text checked in several ways is one case with several runs, and people judge it once.
    Raises InputError: there is no text.
    """
    limit = store.projects.settings().response_characters
    if not draft.response.strip():
        raise InputError("Enter a text to check.")
    if len(draft.response) > limit:
        raise InputError(
            f"Expected at most {limit:,} characters to check, found {len(draft.response):,}; "
            "check a part of it, or raise the limit on Settings."
        )
    case = case_of(draft, project, draft.response, author, now)
    with store.writing():
        known = None if draft.id else store.cases.like(case)
        if known is None:
            words = terms(f"{case.question} {case.response}", case.language)
            store.cases.add(case, list(words))
    return known or case


def case_of(draft: CaseDraft, project: Project, response: str, author: str, now: float) -> Case:
    """Return the draft as a case of that response; nothing is stored."""
    return Case(
        id=draft.id or new_id(),
        project_id=project.id,
        response=response,
        question=draft.question,
        documents=draft.documents,
        images=draft.images,
        role=project.role if draft.role is None else draft.role,
        instruction=project.instruction if draft.instruction is None else draft.instruction,
        language=draft.language or language_of(f"{draft.question} {response}"),
        author=author,
        created_at=now,
        others=draft.others,
    )


def submitted(
    store: Store, home: Path, request: Request, clock: Callable[[], float]
) -> tuple[str, Project, CaseDraft, list[str]]:
    """Add the files to the library; return (person, project, draft, complaints about files).

    Raises InputError: none could be used, or one does not exist, which is a mistake in the command.
    """
    person = person_here(store)
    project = first_project(store, person, clock())
    settings = store.projects.settings()
    entries: dict[str, str] = {}
    complaints: list[str] = []
    for path in (*request.documents, *request.images):
        data = read_whole(path, settings.file_megabytes)
        name = shown_safely(path.name)
        try:
            entry = store_file(store, home, project.id, name, data, person, clock(), settings)
            ensure_read(store, home, entry.id, entry.name, settings, Stop(), lambda *_: None, clock)
        except InputError as error:
            complaints.append(str(error))
        else:
            entries[entry.id] = entry.kind
    if complaints and not entries:
        raise InputError(" ".join(complaints))
    draft = CaseDraft(
        request.response,
        request.question,
        tuple(i for i, kind in entries.items() if kind != "image"),
        tuple(i for i, kind in entries.items() if kind == "image"),
        request.role,
        request.instruction,
    )
    return person, project, draft, complaints


def read_whole(path: Path, most_megabytes: int) -> bytes:
    """Read the file, at most one byte more than allowed. Raises InputError: there is no file."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"Expected a file at {path}, found a folder or a device.")
        with path.open("rb") as stream:
            return stream.read(most_megabytes * MEGABYTE + 1)
    except OSError as error:
        raise InputError(f"Expected a file at {path}, found: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"Expected a file's path, found something else: {error}.") from error


def check_once(
    home: Path, request: Request, clock: Callable[[], float], keys: Keys = NO_KEYS
) -> tuple[dict[str, Any], list[str]]:
    """Check one claim here and now; return (the outcome, complaints about files left out)."""
    plan, notices = planned(home, request, keys)
    if not request.response.strip():
        raise InputError("Expected a claim to check, found an empty text; give one.")
    with open_store(home) as store:
        person, project, draft, complaints = submitted(store, home, request, clock)
        case = store_case(store, project, draft, person, clock())
        settings = store.projects.settings()
    plan = replace(plan, max_turns=settings.max_turns, passages=settings.passages)
    jobs = Jobs(home, keys=keys)
    run_id = jobs.start(case, plan, by=person)
    return ended(home, jobs, run_id, person, clock), [*notices, *complaints]


def planned(home: Path, request: Request, keys: Keys) -> tuple[Plan, list[str]]:
    """Return the plan of the check, and notices about it.

    Raises InputError or KeyMissing, before anything else is done, if it cannot be carried out.
    """
    if request.protocol not in PROTOCOLS:
        raise InputError(
            f"Expected a protocol of {', '.join(PROTOCOLS)}; found “{request.protocol}”."
        )
    chosen = chosen_roster(
        home,
        request.roster,
        request.model,
        request.api_base,
        PromptBook().digest(),
        request.window,
        request.seconds,
    )
    plan = Plan(
        request.protocol,
        chosen.sheet.name,
        sheet=None if chosen.sheet == SHIPPED[BUILT_IN] else chosen.sheet,
        token_cap=request.token_cap,
        options=request.options,
        reader=brought(home, request.reader),
    )
    require_protocol(plan)
    require_options(plan)
    require_keys(plan, keys)
    messages = (chosen.notice, calibration_notice(home, plan.reader))
    return plan, [notice for notice in messages if notice]


def ended(
    home: Path, jobs: Jobs, run_id: str, person: str, clock: Callable[[], float]
) -> dict[str, Any]:
    """Wait for a run of this process and return its outcome; Ctrl-C stops the run.

    `for_people` is added: whether the verdict is below what its project answers by itself; null if
    the project has set no limit, or there is no probability.
    """
    try:
        jobs.wait(run_id)
    except KeyboardInterrupt:
        jobs.stop(run_id, person)
        jobs.wait(run_id)
    with open_store(home) as store:
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(run_id, clock(), lease)
        if run is None:
            raise InputError(f"Run {run_id} is not stored any more.")
        progress = folded(event for _, event in store.runs.events(run_id))
        policy = policy_of(store, store.projects.get(run.project_id))
    result = outcome(run, progress)
    has_confidence = run.status == "finished" and run.confidence is not None
    result["for_people"] = policy.is_for_people(run) if policy and has_confidence else None
    if run.status in ("queued", "running"):  # no process carries it out any more
        result |= {"status": "interrupted", "cause_words": NOT_STORED}
    return result


class GrowingSegmenter(BuiltInSegmenter):
    """The built-in segmenter of one growing response: it returns each statement once."""

    def __init__(self) -> None:
        self._cutter = Cutter()

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """Return the statements after those returned before, in order."""
        return self._cutter.take(case.response, case.language)


@dataclass
class Arriving:
    """A response that has arrived in part; `events` are the run's events so far.

    `read` are the events about its sources, `near` those about each of the latest statements: the
    next ones are checked beside these, however long the response has grown.
    """

    case: Case
    plan: Plan
    staff: Staff
    tell: Tell
    events: list[Event] = field(default_factory=list)
    read: list[Event] = field(default_factory=list)
    near: dict[int, list[Event]] = field(default_factory=dict)

    def take(self, response: str) -> None:
        """Check the statements of the response so far that are not checked yet."""
        case = replace(self.case, response=response)
        past = [*self.read, *chain.from_iterable(self.near.values())]
        batches = self.staff.review(
            case, self.plan, Stop(), past=past, earlier=None, is_arriving=True
        )
        for event in chain.from_iterable(batches):
            # After a failed service call the run goes on, and calls it again.
            is_failure = event.kind == "problem_met" and event.cause in RESUMABLE
            if event.kind not in NOT_KEPT and not is_failure:
                self._keep(event)
        while len(self.near) > BESIDE:
            del self.near[next(iter(self.near))]

    def _keep(self, event: Event) -> None:
        self.events.append(event)
        index = _statement_of(event)
        if index is not None:
            self.near.setdefault(index, []).append(event)
        elif event.kind in READING or (event.kind == "problem_met" and event.source_id):
            self.read.append(event)
        if event.kind == "memory_updated":
            statement_events = self.near[event.entry.statement]
            self.tell(
                next(e.statement for e in statement_events if e.kind == "statement_found"),
                event.entry,
            )


def check_stream(
    home: Path, request: Request, keys: Keys, stream: TextIO | None, say: Callable[[str], None]
) -> tuple[dict[str, Any], list[str]]:
    """Check a stream while it arrives, and report a line for each statement."""
    if stream is None:
        raise InputError("Expected the claim on standard input, found it closed.")
    source = cast("io.BufferedReader", stream.buffer)
    pieces = decoded(lambda: source.read1(MEGABYTE), MOST_MEGABYTES * MEGABYTE, say)

    def tell(statement: Statement, entry: Remembered) -> None:
        p = "" if entry.p is None else f" (p {entry.p:.2f})"
        found = f"{entry.label}{p}" if entry.is_checkable else "not checked"
        say(f"{statement.index + 1}. {found}: “{statement.text}” {entry.evidence}")

    return check_arriving(home, request, pieces, tell, time.time, keys)


def check_arriving(
    home: Path,
    request: Request,
    pieces: Iterable[str],
    tell: Tell,
    clock: Callable[[], float],
    keys: Keys,
) -> tuple[dict[str, Any], list[str]]:
    """Check a response as an audit while its `pieces` arrive; `tell` is called for each statement.

    Returns (the outcome, complaints about files left out). Raises InputError and KeyMissing as
    `check_once` does.
    """
    plan, notices = planned(home, request, keys)
    if plan.protocol != AUDIT:
        raise InputError(
            f"Expected --protocol {AUDIT} for a response that is still arriving, found "
            f"“{plan.protocol}”: only an audit checks statement by statement."
        )
    jobs = Jobs(home, keys=keys)
    with open_store(home) as store:
        person, project, draft, complaints = submitted(store, home, request, clock)
        payer, draft = jobs.payer(person), replace(draft, id=new_id())
        settings = store.projects.settings()
        plan = replace(plan, max_turns=settings.max_turns, passages=settings.passages)
        if plan.sheet is not None and not plan.sheet.segmenter.is_built_in:
            plan = replace(plan, sheet=replace(plan.sheet, segmenter=Seat()))
            notices = [*notices, BY_RULE]
        plan = as_learned(store, project.id, plan)
        run = Run(new_id(), draft.id, project.id, plan, "queued", clock())
        staff = staffed(store, home, run, payer, None)
        limited_pieces = no_longer(pieces, settings.response_characters)
        text, events = _check_pieces(draft, project, plan, staff, limited_pieces, tell)
        case = store_case(store, project, replace(draft, response=text), person, clock())
        events_with_case = [replace(e, case=case) if e.kind == "run_started" else e for e in events]
        with store.writing():
            store.runs.add(run, jobs.owner, clock())
            store.runs.append(run.id, jobs.owner, events_with_case)
        jobs.submit(store, [run.id], payer)
    return ended(home, jobs, run.id, person, clock), [*notices, *complaints]


def _check_pieces(
    draft: CaseDraft, project: Project, plan: Plan, staff: Staff, pieces: Iterable[str], tell: Tell
) -> tuple[str, list[Event]]:
    """Check the pieces as they arrive; return the whole text and the events."""
    cut = replace(staff, roster=replace(staff.roster, segmenter=GrowingSegmenter()))
    arriving: Arriving | None = None
    text = ""
    for text in whole_so_far(pieces, language_of(draft.question)):
        if not text.strip():
            continue
        if arriving is None:
            case = case_of(draft, project, text, "", 0.0)
            arriving = Arriving(case, plan, cut, tell)
        arriving.take(text)
    if arriving is None:
        raise InputError("Expected a claim to check, found an empty text; give one.")
    return text, arriving.events


def _statement_of(event: Event) -> int | None:
    match event.kind:
        case "tool_called":
            return event.use.statement
        case "memory_updated":
            return event.entry.statement
        case "passages_found":
            return event.statement
        case "statement_found":
            return event.statement.index
    return None
