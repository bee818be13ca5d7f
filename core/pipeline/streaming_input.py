"""Checks a response while it is still arriving, and stores the run in the end like any other.

Each statement is checked once it is whole, and what is cut once stays cut so. When all is there,
the run is stored with what was found and goes on from it, as if it had been interrupted: reflection
over the whole confirms or changes what was said before, and what is contested is debated.
Source: CEDA 6, HaluAgent 2.3.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, cast

from core.baseline.audit_agents import BuiltInSegmenter, Cutter
from core.concurrency import Stop
from core.config import MEGABYTE
from core.documents.language import language_of
from core.errors import InputError
from core.events import AUDIT, ENDINGS, TRANSIENT, Event, Remembered
from core.llm.keys import Keys
from core.pipeline.audit_steps import decoded, no_longer, whole_so_far
from core.pipeline.checking import Draft, Request, case_of, ended, planned, store_case, submitted
from core.pipeline.jobs import Jobs
from core.pipeline.run_factory import Staff, as_learned, staffed
from core.progress import RESUMABLE
from core.records import Case, Plan, Project, Run, Statement, new_id
from core.seats import Seat
from core.store import open_store

MOST_MEGABYTES = 16
Tell = Callable[[Statement, Remembered], None]
BESIDE = 50  # statements before, which a conclusion may follow from
READING = frozenset({"run_started", "document_read", "image_described"})
BY_RULE = (
    "The built-in segmenter cuts a response that is still arriving: a model would be asked anew "
    "with every sentence, and might cut otherwise what is checked already."
)


class GrowingSegmenter(BuiltInSegmenter):
    """The built-in segmenter of one response that grows: each statement is given out once."""

    def __init__(self) -> None:
        self._cutter = Cutter()

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """The statements after those given out before, in order."""
        return self._cutter.take(case.response, case.language)


@dataclass
class Arriving:
    """A response of which the beginning is there; `events` are what was found so far.

    `read` are those about its sources, `near` those about each of the newest statements: what the
    next ones are checked beside, however long the response has grown.
    """

    case: Case
    plan: Plan
    staff: Staff
    stop: Stop
    tell: Tell
    events: list[Event] = field(default_factory=list)
    read: list[Event] = field(default_factory=list)
    near: dict[int, list[Event]] = field(default_factory=dict)

    def take(self, response: str) -> None:
        """Check the statements of the response so far that are not checked yet."""
        case = replace(self.case, response=response)
        past = [*self.read, *chain.from_iterable(self.near.values())]
        found = self.staff.review(
            case, self.plan, self.stop, past=past, earlier=None, is_arriving=True
        )
        for event in chain.from_iterable(found):
            if event.kind not in TRANSIENT and not _is_end(event):
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
            about = self.near[event.entry.statement]
            self.tell(next(e.statement for e in about if e.kind == "statement_found"), event.entry)


def _is_end(event: Event) -> bool:
    """True for what a service that failed leaves: the run goes on, and asks it again."""
    if event.kind == "problem_met":
        return event.cause in RESUMABLE
    return event.kind in ENDINGS


def check_stream(
    home: Path, request: Request, keys: Keys, stream: TextIO | None, say: Callable[[str], None]
) -> tuple[dict[str, Any], list[str]]:
    """Check what comes on a stream as it comes, and say a line for each statement.

    Raises:
        InputError: the stream is closed, or as `check_arriving` says.
    """
    if stream is None:
        raise InputError("Expected the claim on standard input, found it closed.")
    source = cast("io.BufferedReader", stream.buffer)
    pieces = decoded(lambda: source.read1(MEGABYTE), MOST_MEGABYTES * MEGABYTE, say)

    def tell(statement: Statement, entry: Remembered) -> None:
        say(line_of(statement, entry))

    return check_arriving(home, request, pieces, tell, time.time, keys)


def check_arriving(
    home: Path,
    request: Request,
    pieces: Iterable[str],
    tell: Tell,
    clock: Callable[[], float],
    keys: Keys,
) -> tuple[dict[str, Any], list[str]]:
    """Check the response of which `pieces` arrive; (the outcome, complaints about files left out).

    `tell` hears of each statement as soon as it is checked.

    Raises:
        InputError: another protocol than the audit, nothing to check, too much of it, or no file
            could be used.
        KeyMissing: the roster needs a key that is not at hand; nothing was read or stored.
    """
    plan, notices = planned(home, request, keys)
    if plan.protocol != AUDIT:
        raise InputError(
            f"Expected --protocol {AUDIT} for a response that is still arriving, found "
            f"“{plan.protocol}”: only an audit checks statement by statement."
        )
    jobs = Jobs(home, keys=keys)
    with open_store(home) as store:
        given = submitted(store, home, request, clock)
        person, draft = given.person, replace(given.draft, id=new_id())
        settings = store.projects.settings()
        plan = replace(plan, max_turns=settings.max_turns, passages=settings.passages)
        if plan.sheet is not None and not plan.sheet.segmenter.is_built_in:
            plan = replace(plan, sheet=replace(plan.sheet, segmenter=Seat()))
            notices = [*notices, BY_RULE]
        plan = as_learned(store, given.project.id, plan)
        run = Run(new_id(), draft.id, given.project.id, plan, "queued", clock())
        staff = staffed(store, home, run, jobs.payer(person), None)
        bounded = no_longer(pieces, settings.response_characters)
        text, events = _arrived(draft, given.project, plan, staff, bounded, tell)
        case = store_case(store, given.project, replace(draft, response=text), person, clock())
        with store.writing():
            store.runs.add(run, jobs.owner, clock())
            store.runs.append(run.id, jobs.owner, _of_whole(events, case))
        jobs.submit(store, [run.id], jobs.payer(person))
    return ended(home, jobs, run.id, person, clock), [*notices, *given.complaints]


def line_of(statement: Statement, entry: Remembered) -> str:
    """A statement's finding in one line."""
    if not entry.is_checkable:
        return f"{statement.index + 1}. not checked: “{statement.text}” {entry.evidence}"
    p = "" if entry.p is None else f" (p {entry.p:.2f})"
    return f"{statement.index + 1}. {entry.label}{p}: “{statement.text}” {entry.evidence}"


def _arrived(
    draft: Draft, project: Project, plan: Plan, staff: Staff, pieces: Iterable[str], tell: Tell
) -> tuple[str, list[Event]]:
    """All that came, and what was found while it came."""
    cut = replace(staff, roster=replace(staff.roster, segmenter=GrowingSegmenter()))
    arriving: Arriving | None = None
    text = ""
    for text in whole_so_far(pieces, language_of(draft.question)):
        if not text.strip():
            continue
        if arriving is None:
            case = case_of(draft, project, text, "", 0.0)
            arriving = Arriving(case, plan, cut, Stop(), tell)
        arriving.take(text)
    if arriving is None:
        raise InputError("Expected a claim to check, found an empty text; give one.")
    return text, arriving.events


def _of_whole(events: Sequence[Event], case: Case) -> list[Event]:
    """The events as those of the whole case."""
    return [replace(event, case=case) if event.kind == "run_started" else event for event in events]


def _statement_of(event: Event) -> int | None:
    """Which statement the event is about."""
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
