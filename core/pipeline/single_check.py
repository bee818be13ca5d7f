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

from core.agents.rosters import SHIPPED_ROSTERS, load_chosen_roster
from core.baseline.entailment import get_calibration_notice, import_if_new
from core.baseline.segmenter import BuiltInSegmenter, StatementSplitter
from core.debate import PROTOCOL_NAMES
from core.debate.protocols import require_options, require_protocol
from core.documents.library import ensure_read, store_file
from core.documents.segmentation import detect_language, extract_terms
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.pipeline.audit_steps import accumulate_statements, decode_stream, limit_characters
from core.pipeline.jobs import JobRunner
from core.pipeline.run_factory import RunAgents, apply_learned, build_run_agents, require_keys
from core.review.people import ensure_project, find_operator
from core.review.queue_ranking import load_policy
from core.runtime.concurrency import StopSignal
from core.runtime.config import MEGABYTE, replace_invalid_bytes
from core.runtime.errors import NOT_STORED_MESSAGE, InputError
from core.schema.events import AUDIT, ENDING_KINDS, TRANSIENT_KINDS, Event, MemoryEntry, ProblemMet
from core.schema.records import Case, ModelCall, Passage, Plan, Project, Run, Statement, new_id
from core.schema.rosters import BUILT_IN_ROSTER, DEFAULT_OPTIONS, AgentConfig, DebateOptions
from core.schema.run_state import RESUMABLE_CAUSES, RunState, fold_events, sum_costs
from core.store import Store, open_store

SPAN_FIELDS = "start end text p category source instead in_evidence"
TURN_FIELDS = (
    "number debater agent round manner about assigned reply stance confidence doubt cut text"
)
QUOTE_FIELDS = "text status score source page start end"
NANO_DIGITS = 9  # decimals of a US dollar, as in the ledger
CLI_PROTOCOLS = (*PROTOCOL_NAMES, AUDIT)
NO_KEYS = Keys({})
MAX_STREAM_MEGABYTES = 16
DROPPED_KINDS = TRANSIENT_KINDS | ENDING_KINDS
NEARBY_STATEMENTS = 50  # previous statements, from which a conclusion may follow
SOURCE_KINDS = frozenset({"run_started", "document_read", "image_described"})
SEGMENTER_NOTICE = (
    "The built-in segmenter cuts a response that is still arriving: a model would be asked anew "
    "with every sentence, and might cut otherwise what is checked already."
)
PROGRESS_SECONDS = 5.0  # between two lines about long reading or indexing
POLL_SECONDS = 1.0
StatementCallback = Callable[[Statement, MemoryEntry], None]


def build_outcome(run: Run, progress: RunState) -> dict[str, Any]:
    """Return the object of `python -m core check --json`.

    Offsets of statements and spans count code points of the response, those of evidence and quotes
    of the source's text. A run that did not finish has `label: null`. `cost` is in US dollars, null
    where part of it is not known; built-in agents call nothing and cost nothing. A turn that is
    `cut` reached its token limit. A span's `instead` was read in a source if `in_evidence` is true,
    else computed. `options` are the chosen options of the protocol. `models` has an entry for each
    language model that was called.
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
        "spans": [_select_fields(span, SPAN_FIELDS) for span in progress.spans],
        "evidence": [_describe_passage(passage) for passage in progress.evidence.values()],
        "turns": [
            _select_fields(turn, TURN_FIELDS)
            | {"quotes": [_select_fields(quote, QUOTE_FIELDS) for quote in turn.quotes]}
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


def _summarise_models(progress: RunState) -> dict[str, dict[str, Any]]:
    """Total each model's calls for this run; replies reused from other runs were paid for there."""
    by_model: dict[str, list[ModelCall]] = {}
    for call in progress.calls.values():
        by_model.setdefault(call.model, []).append(call)
    return {model: sum_calls(calls) for model, calls in sorted(by_model.items())}


def sum_calls(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """Return the totals of calls; those that another run had paid for cost nothing."""
    sent = [call for call in calls if call.origin != "reused"]
    cost = sum_costs(sent)
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
class CheckRequest:
    """One claim with its files, as the command line takes it.

    `roster` is a name or a file; `model` takes precedence over it and gets every speaking role,
    with `api_base`, `window` (tokens), `seconds` (the longest silence) and `concurrency` (calls at
    once); 0 is the default.
    `reader` is the name of a reader, or a model to import as one; empty is the one chosen in
    Settings.
    """

    response: str
    question: str = ""
    documents: Sequence[Path] = ()
    images: Sequence[Path] = ()
    role: str | None = None
    instruction: str | None = None
    roster: str = BUILT_IN_ROSTER
    protocol: str = "ceda"
    model: str = ""
    api_base: str = ""
    window: int = 0
    seconds: int = 0
    concurrency: int = 0
    token_cap: int = 0
    options: DebateOptions = DEFAULT_OPTIONS
    reader: str = ""


@dataclass
class ProgressLines:
    """Reports reading and indexing that takes long: a line every few seconds, none at first."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    next_at: float = 0.0
    last_line: str = ""

    def report(self, note: str, done: int, total: int) -> None:
        """Say how much is done, unless a line was printed a moment ago or nothing has changed."""
        now = self.clock()
        self.next_at = self.next_at or now + PROGRESS_SECONDS
        line = f"{note} ({done / max(1, total):.0%})"
        if now >= self.next_at and 0 < done < total and line != self.last_line:
            self.say(line)
            self.next_at, self.last_line = now + PROGRESS_SECONDS, line


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
    Raises InputError as `require_response` does.
    """
    require_response(draft.response, store.projects.settings().response_characters)
    case = build_case(draft, project, draft.response, author, now)
    with store.writing():
        known = None if draft.id else store.cases.like(case)
        if known is None:
            words = extract_terms(f"{case.question} {case.response}", case.language)
            store.cases.add(case, list(words))
    return known or case


def require_response(response: str, limit: int) -> None:
    """Raise InputError: there is no text, or more than `limit` characters."""
    if not response.strip():
        raise InputError("Enter a text to check.")
    if len(response) > limit:
        raise InputError(
            f"Expected at most {limit:,} characters to check, found {len(response):,}; "
            "check a part of it, or raise the limit on Settings."
        )


def build_case(draft: CaseDraft, project: Project, response: str, author: str, now: float) -> Case:
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
        language=draft.language or detect_language(f"{draft.question} {response}"),
        author=author,
        created_at=now,
        others=draft.others,
    )


def submit_files(
    store: Store, home: Path, request: CheckRequest, lines: ProgressLines
) -> tuple[str, Project, CaseDraft, list[ProblemMet]]:
    """Add the files to the library; return (person, project, draft, the unreadable files).

    Raises InputError: none could be used, or one does not exist, which is a mistake in the command.
    """
    person, clock = find_operator(store), lines.clock
    project = ensure_project(store, person, clock())
    settings = store.projects.settings()
    entries: dict[str, str] = {}
    unread: list[ProblemMet] = []
    for path in (*request.documents, *request.images):
        data = read_file_bytes(path, settings.file_megabytes)
        name = replace_invalid_bytes(path.name)
        try:
            entry = store_file(store, home, project.id, name, data, person, clock(), settings)

            def report(done: int, total: int, note: str, name: str = name) -> None:
                lines.report(f"Reading {name}: {note}", done, total)

            ensure_read(store, home, entry.id, entry.name, settings, StopSignal(), report, clock)
        except InputError as error:
            unread.append(ProblemMet(clock(), "reading", str(error), name))
        else:
            entries[entry.id] = entry.kind
    if unread and not entries:
        raise InputError(" ".join(problem.message for problem in unread))
    draft = CaseDraft(
        request.response,
        request.question,
        tuple(i for i, kind in entries.items() if kind != "image"),
        tuple(i for i, kind in entries.items() if kind == "image"),
        request.role,
        request.instruction,
    )
    return person, project, draft, unread


def read_file_bytes(path: Path, most_megabytes: int) -> bytes:
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
    home: Path,
    request: CheckRequest,
    clock: Callable[[], float],
    keys: Keys = NO_KEYS,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Any], list[str]]:
    """Check one claim here and now; return (the outcome, complaints about files left out).

    `say` gets a line every few seconds while large files are read and indexed.
    """
    lines = ProgressLines(say, clock)
    plan, notices = plan_check(home, request, keys)
    if not request.response.strip():
        raise InputError("Expected a claim to check, found an empty text; give one.")
    with open_store(home) as store:
        person, project, draft, unread = submit_files(store, home, request, lines)
        case = store_case(store, project, draft, person, clock())
        settings = store.projects.settings()
    plan = replace(plan, max_turns=settings.max_turns, passages=settings.passages)
    jobs = JobRunner(home, keys=keys)
    run_id = jobs.start(case, plan, unread=unread, by=person)
    notices += [problem.message for problem in unread]
    return await_outcome(home, jobs, run_id, person, clock, lines), notices


def plan_check(home: Path, request: CheckRequest, keys: Keys) -> tuple[Plan, list[str]]:
    """Return the plan of the check, and notices about it.

    Raises InputError or KeyMissing, before anything else is done, if it cannot be carried out.
    """
    if request.protocol not in CLI_PROTOCOLS:
        raise InputError(
            f"Expected a protocol of {', '.join(CLI_PROTOCOLS)}; found “{request.protocol}”."
        )
    chosen = load_chosen_roster(
        home,
        request.roster,
        request.model,
        request.api_base,
        PromptBook().digest(),
        window=request.window,
        seconds=request.seconds,
        concurrency=request.concurrency,
    )
    plan = Plan(
        request.protocol,
        chosen.sheet.name,
        sheet=None if chosen.sheet == SHIPPED_ROSTERS[BUILT_IN_ROSTER] else chosen.sheet,
        token_cap=request.token_cap,
        options=request.options,
        reader=import_if_new(home, request.reader),
    )
    require_protocol(plan)
    require_options(plan)
    require_keys(plan, keys)
    messages = (chosen.notice, get_calibration_notice(home, plan.reader))
    return plan, [notice for notice in messages if notice]


def await_outcome(
    home: Path,
    jobs: JobRunner,
    run_id: str,
    person: str,
    clock: Callable[[], float],
    lines: ProgressLines | None = None,
) -> dict[str, Any]:
    """Wait for a run of this process and return its outcome; Ctrl-C stops the run.

    `for_people` is added: whether the verdict is below what its project answers by itself; null if
    the project has set no limit, or there is no probability.
    """
    try:
        wait_for_run(jobs, run_id, lines or ProgressLines(lambda _: None, clock))
    except KeyboardInterrupt:
        jobs.stop(run_id, person)
        jobs.wait(run_id)
    with open_store(home) as store:
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(run_id, clock(), lease)
        if run is None:
            raise InputError(f"Run {run_id} is not stored any more.")
        progress = fold_events(event for _, event in store.runs.events(run_id))
        policy = load_policy(store, store.projects.get(run.project_id))
    result = build_outcome(run, progress)
    has_confidence = run.status == "finished" and run.confidence is not None
    result["for_people"] = policy.is_for_people(run) if policy and has_confidence else None
    if run.status in ("queued", "running"):  # no process carries it out any more
        result |= {"status": "interrupted", "cause_words": NOT_STORED_MESSAGE}
    return result


def wait_for_run(jobs: JobRunner, run_id: str, lines: ProgressLines) -> None:
    """Wait for a run of this process, and report how far reading and indexing are."""
    while not jobs.wait(run_id, POLL_SECONDS):
        live = jobs.live(run_id)
        step = live.progress if live else None
        if step and step.stage in ("reading", "searching"):
            lines.report(step.note, step.done, step.total)


class GrowingSegmenter(BuiltInSegmenter):
    """The built-in segmenter of one growing response: it returns each statement once."""

    def __init__(self) -> None:
        self._cutter = StatementSplitter()

    def segment(self, case: Case, stop: StopSignal) -> tuple[Statement, ...]:
        """Return the statements after those returned before, in order."""
        return self._cutter.take(case.response, case.language)


@dataclass
class ArrivingResponse:
    """A response that has arrived in part; `events` are the run's events so far.

    `read` are the events about its sources, `near` those about each of the latest statements: the
    next ones are checked beside these, however long the response has grown.
    """

    case: Case
    plan: Plan
    staff: RunAgents
    tell: StatementCallback
    events: list[Event] = field(default_factory=list)
    read: list[Event] = field(default_factory=list)
    near: dict[int, list[Event]] = field(default_factory=dict)

    def take(self, response: str) -> None:
        """Check the statements of the response so far that are not checked yet."""
        case = replace(self.case, response=response)
        past = [*self.read, *chain.from_iterable(self.near.values())]
        batches = self.staff.review(
            case, self.plan, StopSignal(), past=past, earlier=None, is_arriving=True
        )
        for event in chain.from_iterable(batches):
            # After a failed service call the run goes on, and calls it again.
            is_failure = event.kind == "problem_met" and event.cause in RESUMABLE_CAUSES
            if event.kind not in DROPPED_KINDS and not is_failure:
                self._keep(event)
        while len(self.near) > NEARBY_STATEMENTS:
            del self.near[next(iter(self.near))]

    def _keep(self, event: Event) -> None:
        self.events.append(event)
        index = _statement_of(event)
        if index is not None:
            self.near.setdefault(index, []).append(event)
        elif event.kind in SOURCE_KINDS or (event.kind == "problem_met" and event.source_id):
            self.read.append(event)
        if event.kind == "memory_updated":
            statement_events = self.near[event.entry.statement]
            self.tell(
                next(e.statement for e in statement_events if e.kind == "statement_found"),
                event.entry,
            )


def check_stream(
    home: Path, request: CheckRequest, keys: Keys, stream: TextIO | None, say: Callable[[str], None]
) -> tuple[dict[str, Any], list[str]]:
    """Check a stream while it arrives, and report a line for each statement."""
    if stream is None:
        raise InputError("Expected the claim on standard input, found it closed.")
    source = cast("io.BufferedReader", stream.buffer)
    pieces = decode_stream(lambda: source.read1(MEGABYTE), MAX_STREAM_MEGABYTES * MEGABYTE, say)

    def tell(statement: Statement, entry: MemoryEntry) -> None:
        p = "" if entry.p is None else f" (p {entry.p:.2f})"
        found = f"{entry.label}{p}" if entry.is_checkable else "not checked"
        say(f"{statement.index + 1}. {found}: “{statement.text}” {entry.evidence}")

    return check_arriving(home, request, pieces, tell, time.time, keys, say)


def check_arriving(
    home: Path,
    request: CheckRequest,
    pieces: Iterable[str],
    tell: StatementCallback,
    clock: Callable[[], float],
    keys: Keys,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Any], list[str]]:
    """Check a response as an audit while its `pieces` arrive; `tell` is called for each statement.

    Returns (the outcome, complaints about files left out). Raises InputError and KeyMissing as
    `check_once` does.
    """
    plan, notices = plan_check(home, request, keys)
    if plan.protocol != AUDIT:
        raise InputError(
            f"Expected --protocol {AUDIT} for a response that is still arriving, found "
            f"“{plan.protocol}”: only an audit checks statement by statement."
        )
    jobs = JobRunner(home, keys=keys)
    with open_store(home) as store:
        lines = ProgressLines(say, clock)
        person, project, draft, unread = submit_files(store, home, request, lines)
        payer, draft = jobs.payer(person), replace(draft, id=new_id())
        settings = store.projects.settings()
        plan = replace(plan, max_turns=settings.max_turns, passages=settings.passages)
        if plan.sheet is not None and not plan.sheet.segmenter.is_built_in:
            plan = replace(plan, sheet=replace(plan.sheet, segmenter=AgentConfig()))
            notices = [*notices, SEGMENTER_NOTICE]
        plan = apply_learned(store, project.id, plan)
        run = Run(new_id(), draft.id, project.id, plan, "queued", clock())
        staff = build_run_agents(store, home, run, payer, None)
        limited_pieces = limit_characters(pieces, settings.response_characters)
        text, events = _check_pieces(draft, project, plan, staff, limited_pieces, tell)
        case = store_case(store, project, replace(draft, response=text), person, clock())
        events_with_case = [replace(e, case=case) if e.kind == "run_started" else e for e in events]
        with store.writing():
            store.runs.add(run, jobs.owner, clock())
            store.runs.append(run.id, jobs.owner, [*unread, *events_with_case])
        jobs.submit(store, [run.id], payer)
    notices = [*notices, *(problem.message for problem in unread)]
    return await_outcome(home, jobs, run.id, person, clock), notices


def _check_pieces(
    draft: CaseDraft,
    project: Project,
    plan: Plan,
    staff: RunAgents,
    pieces: Iterable[str],
    tell: StatementCallback,
) -> tuple[str, list[Event]]:
    """Check the pieces as they arrive; return the whole text and the events."""
    cut = replace(staff, roster=replace(staff.roster, segmenter=GrowingSegmenter()))
    arriving: ArrivingResponse | None = None
    text = ""
    for text in accumulate_statements(pieces, detect_language(draft.question)):
        if not text.strip():
            continue
        if arriving is None:
            case = build_case(draft, project, text, "", 0.0)
            arriving = ArrivingResponse(case, plan, cut, tell)
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
