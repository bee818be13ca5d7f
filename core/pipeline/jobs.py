"""Runs in the background: start, follow, speak into, stop, resume; outside any page's script.

A worker thread drives the review and stores each durable event before anybody draws it; events only
for the screen (text of the current turn, progress) stay in memory. A run belongs to this process as
long as its heartbeat is fresh; then another process may take it over. People may speak while the
agents argue (SC-MAKS 5.4). New library files are read in the background too. The engine is imported
where a run needs it: pages that start no run open sooner.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.llm.keys import Keys
from core.pipeline.run_factory import (
    RunPayer,
    apply_learned,
    build_run_agents,
    load_earlier_run,
    require_keys,
)
from core.review.queue_ranking import try_enqueue
from core.runtime.concurrency import StopSignal
from core.runtime.errors import (
    NOT_STORED_MESSAGE,
    UNEXPECTED_ERROR_MESSAGE,
    ConflictError,
    InputError,
    ReviewError,
)
from core.schema.events import (
    AUDIT,
    ENDING_KINDS,
    MAX_REMARK_CHARACTERS,
    Event,
    PersonSpoke,
    ProblemMet,
    ProgressMade,
    RunFailed,
    RunResumed,
    RunStopped,
)
from core.schema.records import Case, Plan, Run, new_id
from core.schema.run_state import RunState, fold_events
from core.store import Store, open_store

if TYPE_CHECKING:
    from core.llm.call import CallUnderWay
    from core.schema.roles import Roster

LOGGER = logging.getLogger(__name__)
READING_FAILED = (
    "The file could not be read: an unexpected error, of which the server's log has the details. "
    "Choose Read again."
)
CONCLUDING_KINDS = frozenset({"judgement_reached", "run_finished"})  # later remarks are too late
WARM_UP_SENTENCE = (
    "The tower is 412 m tall and was opened on 14 May 1932 by about two hundred people."
)
HEARTBEAT_SECONDS = 0.25
CLOSING_SECONDS = 10.0
NO_TYPED_KEYS: Mapping[str, str] = {}


class BackgroundReader:
    """One background reader for the whole process; each file is queued once at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._waiting: deque[tuple[str, str]] = deque()
        self._is_reading = False
        self._notes: dict[str, str] = {}
        self._anew: set[str] = set()
        self._lock = threading.Lock()

    def submit(self, source_id: str, name: str, *, anew: bool = False) -> None:
        """Queue a file once; `anew` discards its reading, even one in progress."""
        with self._lock:
            if anew:
                self._anew.add(source_id)
            if source_id in self._notes:
                return
            self._notes[source_id] = "waiting"
            self._waiting.append((source_id, name))
            if not self._is_reading:
                threading.Thread(target=self._read_all, daemon=True, name="prereading").start()
                self._is_reading = True

    def note(self, source_id: str) -> str:
        """Return what is being done with the file; empty if nothing is."""
        with self._lock:
            return self._notes.get(source_id, "")

    def _read_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_reading = False
                    return
                waiting = self._waiting.popleft()
            self._read_queued(*waiting)

    def _read_queued(self, source_id: str, name: str) -> None:
        """Read the file, and again as long as that was asked for meanwhile."""
        while True:
            with self._lock:
                self._notes[source_id] = "reading"
                anew = source_id in self._anew
                self._anew.discard(source_id)
            try:
                self._read(source_id, name, anew=anew)
            except InputError as error:
                LOGGER.info("%s was refused: %s", name, error)  # the library entry says it too
            except ReviewError as error:
                LOGGER.warning("%s could not be prepared: %s", name, error)
                self._mark_refused(source_id, str(error))
            except Exception:
                LOGGER.exception("%s could not be prepared", name)
                self._mark_refused(source_id, READING_FAILED)
            with self._lock:
                if source_id not in self._anew:
                    del self._notes[source_id]
                    return

    def _read(self, source_id: str, name: str, *, anew: bool) -> None:
        from core.baseline.encoder import load_multilingual_encoder
        from core.documents.library import discard_reading, ensure_read
        from core.documents.retrieval import ensure_index

        def say(done: int, total: int, note: str = "indexing") -> None:
            share = f" {done} of {total}" if total else ""
            with self._lock:
                self._notes[source_id] = f"{note}{share}"

        with open_store(self._home) as store:
            if anew:
                discard_reading(store, source_id)
            settings = store.projects.settings()
            source, _, _ = ensure_read(
                store, self._home, source_id, name, settings, StopSignal(), say, time.time
            )
            ensure_index(store, source, load_multilingual_encoder(), StopSignal(), say)

    def _mark_refused(self, source_id: str, problem: str) -> None:
        """Mark the file refused: one left waiting would be retried at every look at the library."""
        from core.documents.readers import READER_VERSION

        try:
            with open_store(self._home) as store, store.writing():
                if store.readings.get(source_id, "", reader=READER_VERSION) is None:
                    store.library.set_status(source_id, "refused", problem)
        except Exception:
            LOGGER.exception("%s could not even be refused", source_id)


@dataclass
class LiveState:
    """The unstored state of a run of this process, for the screen only."""

    words: dict[int, str] = field(default_factory=dict)
    progress: ProgressMade | None = None
    under_way: list[CallUnderWay] = field(default_factory=list)


@dataclass
class ActiveRun:
    """A run of this process."""

    run_id: str
    payer: RunPayer
    stop: StopSignal = field(default_factory=StopSignal)
    stopped_by: str = ""
    live: LiveState = field(default_factory=LiveState)
    said: queue.SimpleQueue[PersonSpoke] = field(default_factory=queue.SimpleQueue)

    def heard(self) -> tuple[PersonSpoke, ...]:
        """Return what people said since the last call, once each, in order."""
        remarks: list[PersonSpoke] = []
        while not self.said.empty():
            remarks.append(self.said.get())
        return tuple(remarks)

    def taken(self, events: Sequence[Event]) -> list[Event]:
        """Return the events to store; show the transient ones.

        People's remarks are stored when they are made; remarks that were not passed on before the
        judgement are reported as too late.
        """
        durable: list[Event] = []
        for event in events:
            late_remarks = self.heard() if event.kind in CONCLUDING_KINDS else ()
            for remark in late_remarks:
                who = remark.by or "somebody"
                words = f"What {who} said last came too late: the verdict was being given already."
                durable.append(ProblemMet(remark.at, "judging", words))
            if event.kind == "turn_delta":
                self.live.words[event.number] = self.live.words.get(event.number, "") + event.text
            elif event.kind == "progress_made":
                self.live.progress = event
            elif event.kind == "run_stopped":
                durable.append(replace(event, by=self.stopped_by))
            elif event.kind != "person_spoke":
                durable.append(event)
        return durable

    def stored(self, events: Sequence[Event]) -> None:
        """Drop the live text of turns that are stored or lost."""
        for event in events:
            if event.kind == "turn_finished":
                self.live.words.pop(event.turn.number, None)
            elif event.kind == "problem_met" and event.turn:
                self.live.words.pop(event.turn, None)


def is_debated(plan: Plan) -> bool:
    """Return True if debaters argue, so that a person can speak to them; not in an audit."""
    from core.debate.protocols import PROTOCOLS

    protocol = PROTOCOLS.get(plan.protocol)
    return plan.protocol != AUDIT and protocol is not None and bool(protocol.turn_modes)


def require_debate(progress: RunState) -> None:
    """Raise InputError for a remark that no debater would see."""
    if progress.plan is not None and not is_debated(progress.plan):
        raise InputError("Expected a debate to speak in, found a check in which nobody debates.")
    if progress.ending is not None or progress.judgement is not None:
        raise InputError(
            "Expected a debate under way, found one that is over; say it in your judgement below."
        )


def warm_up(home: Path) -> None:
    """Load what a first check would wait for.

    Languages first: a case is stored with its language, so the click itself waits for them. Raises
    ConfigError: something cannot be loaded.
    """
    from core.documents.segmentation import detect_language

    detect_language(WARM_UP_SENTENCE)
    import core.pipeline.review  # noqa: F401 - the first run would wait for it
    from core.baseline.encoder import load_multilingual_encoder
    from core.baseline.entailment import load_assessor, load_reader_choice
    from core.verdict.classifier import load_classifier

    load_multilingual_encoder().encode([WARM_UP_SENTENCE])
    with open_store(home) as store:
        load_classifier(home, store.versions.active())
        reader = load_reader_choice(store)
    load_assessor(home, reader).reader.read([(WARM_UP_SENTENCE, WARM_UP_SENTENCE)])


class JobRunner:
    """The runs that this process carries out, over one home."""

    def __init__(
        self,
        home: Path,
        make_roster: Callable[[str], Roster] | None = None,
        *,
        keys: Keys | None = None,
    ) -> None:
        """Create the jobs; `keys` are from the environment and the secrets file, not typed ones."""
        self.home = home
        self.keys = keys or Keys({})
        self.owner = f"{os.getpid()}-{new_id()[:8]}"
        self._make_roster = make_roster
        self._changed = threading.Condition()  # guards the fields below
        self._waiting: deque[ActiveRun] = deque()
        self._active: dict[str, ActiveRun] = {}
        self._workers: set[threading.Thread] = set()
        self._max_workers = 0
        self._has_heartbeat = False

    def start(
        self,
        case: Case,
        plan: Plan,
        *,
        parent_id: str | None = None,
        unread: Sequence[ProblemMet] = (),
        by: str = "",
        typed: Mapping[str, str] = NO_TYPED_KEYS,
        is_measured: bool = False,
    ) -> str:
        """Queue a run over a stored case and return its id.

        `by` pays for it (the case's author if empty); `typed` are keys that live in their session.
        Raises InputError and KeyMissing as `require` does.
        """
        payer = self.payer(by or case.author, typed)
        self.require(plan, payer)
        with open_store(self.home) as store:
            with store.writing():
                run_id = self.queue(
                    store, case, plan, parent_id=parent_id, unread=unread, is_measured=is_measured
                )
            self.submit(store, [run_id], payer)
        return run_id

    def payer(self, by: str, typed: Mapping[str, str] = NO_TYPED_KEYS) -> RunPayer:
        """Return who pays for a run, with this process's keys and those they typed."""
        return RunPayer(by, replace(self.keys, typed=dict(typed)))

    def require(self, plan: Plan, payer: RunPayer) -> None:
        """Raise InputError or KeyMissing for a plan that cannot be carried out; store nothing."""
        from core.debate.protocols import require_protocol

        require_protocol(plan)
        require_keys(plan, payer.keys)

    def queue(
        self,
        store: Store,
        case: Case,
        plan: Plan,
        *,
        parent_id: str | None = None,
        unread: Sequence[ProblemMet] = (),
        is_measured: bool = False,
    ) -> str:
        """Store a queued run and return its id; call inside `Store.writing()`, then `submit`.

        Its record begins with the files that a person added and that could not be read: `unread`.
        It keeps the name of the run that it checks again. A plan that `is_measured` names what was
        learned; others go by what is in use now.
        """
        now = time.time()
        plan = plan if is_measured else apply_learned(store, case.project_id, plan)
        parent = store.runs.get(parent_id, now, 0.0) if parent_id else None
        run = Run(
            new_id(), case.id, case.project_id, plan, "queued", now,
            parent_id=parent_id, name=parent.name if parent else "",
        )  # fmt: skip
        store.runs.add(run, self.owner, now)
        store.runs.append(run.id, self.owner, unread)
        return run.id

    def submit(self, store: Store, run_ids: Sequence[str], payer: RunPayer) -> None:
        """Carry out queued runs of this process as soon as a worker is free."""
        workers = store.projects.settings().workers
        for run_id in run_ids:
            self._submit(run_id, payer, workers)

    def resume(self, run_id: str, by: str, typed: Mapping[str, str] = NO_TYPED_KEYS) -> bool:
        """Resume a run that ended without its verdict; return False if a process has it.

        That may even be this process: a run whose lease lapsed while the machine slept goes on with
        the worker that had it. A run whose end is stored is free, even while its worker tidies up.
        A run that `require` refuses stays as it is.
        """
        payer = self.payer(by, typed)
        with open_store(self.home) as store:
            settings = store.projects.settings()
            run = store.runs.get(run_id, time.time(), settings.lease_seconds)
            if run is not None:
                self.require(run.plan, payer)
            with store.writing():
                now = time.time()
                if self.live(run_id) is not None and not store.runs.has_ended(run_id):
                    return False
                if not store.runs.take(run_id, self.owner, now, settings.lease_seconds):
                    return False
                store.runs.append(run_id, self.owner, [RunResumed(now, by)])
        self._submit(run_id, payer, settings.workers)
        return True

    def stop(self, run_id: str, by: str) -> None:
        """Stop a run: at once if it is of this process, else by asking its process."""
        active = self._find_active(run_id)
        if active is not None:  # first, as the database may be busy for longer than a person waits
            active.stopped_by = by
            active.stop.set()
        with open_store(self.home) as store:
            store.runs.request_stop(run_id, by)

    def say(self, run_id: str, by: str, text: str) -> None:
        """Store a remark that the next turns are shown.

        Raises InputError: it is empty or too long, or there is no debate.
        """
        words = text.strip()
        if not words:
            raise InputError(
                "Expected something to say to the debaters, found nothing; type it first."
            )
        if len(words) > MAX_REMARK_CHARACTERS:
            raise InputError(
                f"Expected at most {MAX_REMARK_CHARACTERS:,} characters, found {len(words):,}; "
                f"say what "
                "matters most."
            )
        active = self._find_active(run_id)
        if active is None:
            raise InputError(
                "Expected a debate of this server under way, found one that has ended or belongs "
                "to another process; reload the page."
            )
        with open_store(self.home) as store, store.writing():
            require_debate(fold_events(event for _, event in store.runs.events(run_id)))
            remark = PersonSpoke(time.time(), by, words)
            store.runs.append(run_id, self.owner, [remark])
        active.said.put(remark)

    def live(self, run_id: str) -> LiveState | None:
        """Return the live state of a run of this process; None for other runs."""
        active = self._find_active(run_id)
        return active.live if active else None

    def _find_active(self, run_id: str) -> ActiveRun | None:
        with self._changed:
            return self._active.get(run_id)

    def wait(self, run_id: str, seconds: float | None = None) -> bool:
        """Wait until a run of this process has ended; return False on timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: run_id not in self._active, seconds)

    def close(self) -> bool:
        """Stop all runs and end the threads; return False if some are still busy after a while."""
        with self._changed:
            runs = list(self._active.values())
        for active in runs:
            active.stop.set()
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._workers or self._has_heartbeat), CLOSING_SECONDS
            )

    def _submit(self, run_id: str, payer: RunPayer, workers: int) -> None:
        active = ActiveRun(run_id, payer)
        with self._changed:
            self._active[run_id] = active
            self._waiting.append(active)
            self._start_workers(workers)
            if not self._has_heartbeat:
                threading.Thread(target=self._renew_leases, daemon=True, name="heartbeat").start()
                self._has_heartbeat = True

    def _start_workers(self, limit: int) -> None:
        """Start workers for the runs that wait, up to the limit; call it with the lock held."""
        self._max_workers = limit
        for _ in range(min(len(self._waiting), limit - len(self._workers))):
            worker = threading.Thread(target=self._run_jobs, daemon=True, name="run worker")
            worker.start()
            self._workers.add(worker)

    def _run_jobs(self) -> None:
        """Carry out what waits; the thread ends when nothing does or the limit was lowered."""
        while True:
            with self._changed:
                if not self._waiting or len(self._workers) > self._max_workers:
                    self._workers.discard(threading.current_thread())
                    self._changed.notify_all()
                    return
                active = self._waiting.popleft()
            try:
                self._carry_out(active)
            except ConflictError:
                active.stop.set()  # its remaining work is useless
                LOGGER.warning("run %s was taken over by another process", active.run_id)
            except sqlite3.OperationalError as error:
                LOGGER.error("run %s: %s Found: %s", active.run_id, NOT_STORED_MESSAGE, error)
                self._fail_run(active, NOT_STORED_MESSAGE)
            except Exception:
                LOGGER.exception("run %s failed in an unexpected way", active.run_id)
                self._fail_run(active, UNEXPECTED_ERROR_MESSAGE)
            except BaseException:  # the process ends, and this thread with it
                with self._changed:
                    self._workers.discard(threading.current_thread())
                raise
            finally:
                with self._changed:
                    if self._active.get(active.run_id) is active:
                        del self._active[active.run_id]
                    self._changed.notify_all()

    def _carry_out(self, active: ActiveRun) -> None:
        with open_store(self.home) as store:
            with store.writing():
                began = not active.stop.is_set and store.runs.begin(
                    active.run_id, self.owner, time.time()
                )
            if not began:
                self._append(store, active, RunStopped(time.time(), active.stopped_by))
                return
            try:
                for events in self._start_review(store, active):
                    if durable := active.taken(events):
                        self._append(store, active, *durable)
                        active.stored(durable)
            except ConflictError:
                raise
            except ReviewError as error:
                self._append(store, active, RunFailed(time.time(), "reading", str(error)))
                return
            try_enqueue(store, active.run_id, time.time())

    def _start_review(self, store: Store, active: ActiveRun) -> Iterator[tuple[Event, ...]]:
        """Return the review's events from what is stored of the run; a tuple is one transaction."""
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(active.run_id, time.time(), lease)
        case = store.cases.get(run.case_id) if run else None
        if run is None or case is None:
            raise LookupError(f"run {active.run_id} or its case is not stored")
        note = "Loading the agents" if run.plan.sheet else "Loading the built-in engine"
        active.live.progress = ProgressMade(time.time(), "reading", note)
        roster = self._make_roster(run.plan.roster) if self._make_roster else None
        past_events = [event for _, event in store.runs.events(run.id)]
        earlier = load_earlier_run(store, run, lease)
        staff = build_run_agents(
            store, self.home, run, active.payer, roster, case=case, under_way=active.live.under_way
        )
        active.live.progress = None  # they are loaded: what a resumed run repeats is none of that
        return staff.review(
            case, run.plan, active.stop, past=past_events, earlier=earlier, heard=active.heard
        )

    def _append(self, store: Store, active: ActiveRun, *events: Event) -> None:
        """Store events; only an end must survive a power cut, as steps can be repeated."""
        is_end = any(event.kind in ENDING_KINDS for event in events)
        with store.writing() if is_end else store.noting():
            store.runs.append(active.run_id, self.owner, events)

    def _fail_run(self, active: ActiveRun, message: str) -> None:
        """Mark the run as failed; if even that cannot be stored, its lease runs out."""
        active.stop.set()
        try:
            with open_store(self.home) as store:
                stage = fold_events(event for _, event in store.runs.events(active.run_id)).stage
                self._append(store, active, RunFailed(time.time(), stage, message))
        except Exception as error:  # noqa: BLE001 - an error would end the worker thread
            LOGGER.error("run %s could not even be marked as failed: %r", active.run_id, error)

    def _renew_leases(self) -> None:
        """Keep leases fresh, pass on other processes' stops, and follow the setting of workers."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: not self._active, HEARTBEAT_SECONDS):
                    self._has_heartbeat = False
                    self._changed.notify_all()
                    return
                active = dict(self._active)
            try:
                with open_store(self.home) as store, store.noting():
                    stops = store.runs.beat(self.owner, list(active), time.time())
                    workers = store.projects.settings().workers
                with self._changed:
                    self._start_workers(workers)
            except Exception as error:  # noqa: BLE001 - the heartbeat must go on
                LOGGER.error("the heartbeat missed a beat: %r", error)
                continue
            for run_id, by in stops.items():
                active[run_id].stopped_by = active[run_id].stopped_by or by
                active[run_id].stop.set()
