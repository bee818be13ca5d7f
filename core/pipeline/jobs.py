"""Runs in the background: start, follow, speak into, stop, resume. Never in a page's script.

A worker thread drives the engine and stores each durable event before anybody draws it; what is
for the eye only (words of the turn under way, progress) stays in memory. A run belongs to this
process as long as its heartbeat is fresh; another process may take it over when it is not. People
may speak while the agents argue (SC-MAKS 5.4). New library files are read in the background too.
The engine is imported where a run needs it: a page that starts none opens sooner.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.llm.keys import Keys
from core.pipeline.run_factory import (
    Payer,
    as_learned,
    earlier_of,
    require_keys,
    staffed,
)
from core.review.queue_ranking import offer
from core.runtime.concurrency import Stop
from core.runtime.errors import NOT_STORED, UNEXPECTED, ConflictError, InputError, ReviewError
from core.schema.events import (
    AUDIT,
    ENDINGS,
    LONGEST_REMARK,
    Event,
    PersonSpoke,
    ProblemMet,
    ProgressMade,
    RunFailed,
    RunResumed,
    RunStopped,
)
from core.schema.progress import Progress, folded
from core.schema.records import Case, Plan, Run, new_id
from core.store import Store, open_store

if TYPE_CHECKING:
    from core.schema.roles import Roster

LOGGER = logging.getLogger(__name__)
READING_FAILED = (
    "The file could not be read: an unexpected error, of which the server's log has the details. "
    "Choose Read again."
)


class Prereading:
    """One reader for the whole process; each file is queued once at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prereading")
        self._notes: dict[str, str] = {}
        self._anew: set[str] = set()
        self._lock = threading.Lock()

    def submit(self, source_id: str, name: str, *, anew: bool = False) -> None:
        """Queue a file once; `anew` forgets what was read in it, also what is being read."""
        with self._lock:
            if anew:
                self._anew.add(source_id)
            if source_id in self._notes:
                return
            self._notes[source_id] = "waiting"
        self._pool.submit(self._work, source_id, name)

    def note(self, source_id: str) -> str:
        """What is being done with the file; empty when nothing is."""
        with self._lock:
            return self._notes.get(source_id, "")

    def _work(self, source_id: str, name: str) -> None:
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
                self._refuse(source_id, str(error))
            except Exception:
                LOGGER.exception("%s could not be prepared", name)
                self._refuse(source_id, READING_FAILED)
            with self._lock:
                if source_id not in self._anew:
                    del self._notes[source_id]
                    return

    def _read(self, source_id: str, name: str, *, anew: bool) -> None:
        from core.baseline.export import load_multilingual_encoder
        from core.documents.library import ensure_read, reindex
        from core.documents.retrieval import ensure_index

        def say(done: int, total: int, note: str = "indexing") -> None:
            share = f" {done} of {total}" if total else ""
            with self._lock:
                self._notes[source_id] = f"{note}{share}"

        with open_store(self._home) as store:
            if anew:
                reindex(store, source_id)
            settings = store.projects.settings()
            source, _, _ = ensure_read(
                store, self._home, source_id, name, settings, Stop(), say, time.time
            )
            ensure_index(store, source, load_multilingual_encoder(), Stop(), say)

    def _refuse(self, source_id: str, problem: str) -> None:
        """A file that stayed waiting would be tried again at every look at the library."""
        from core.documents.readers import READER_VERSION

        try:
            with open_store(self._home) as store, store.writing():
                if store.readings.get(source_id, "", reader=READER_VERSION) is None:
                    store.library.set_status(source_id, "refused", problem)
        except Exception:
            LOGGER.exception("%s could not even be refused", source_id)


CONCLUDING = frozenset({"judgement_reached", "run_finished"})  # nobody listens after these


@dataclass
class Live:
    """What is under way in a run of this process and not stored: for the eye only."""

    words: dict[int, str] = field(default_factory=dict)
    progress: ProgressMade | None = None


@dataclass
class Active:
    """A run of this process."""

    run_id: str
    payer: Payer
    stop: Stop = field(default_factory=Stop)
    stopped_by: str = ""
    live: Live = field(default_factory=Live)
    said: queue.SimpleQueue[PersonSpoke] = field(default_factory=queue.SimpleQueue)

    def heard(self) -> tuple[PersonSpoke, ...]:
        """What people said since this was last asked, once each, in their order."""
        found: list[PersonSpoke] = []
        while not self.said.empty():
            found.append(self.said.get())
        return tuple(found)

    def taken(self, events: Sequence[Event]) -> list[Event]:
        """Those that are to be stored; what is for the eye only is shown.

        People's words are stored as they are said; those that nobody heard before the judgement
        are said to have come too late.
        """
        durable: list[Event] = []
        for event in events:
            for said in self.heard() if event.kind in CONCLUDING else ():
                who = said.by or "somebody"
                words = f"What {who} said last came too late: the verdict was being given already."
                durable.append(ProblemMet(said.at, "judging", words))
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
        """Turns that are stored, or lost, are under way no more."""
        for event in events:
            if event.kind == "turn_finished":
                self.live.words.pop(event.turn.number, None)
            elif event.kind == "problem_met" and event.turn:
                self.live.words.pop(event.turn, None)


def is_debated(plan: Plan) -> bool:
    """True where debaters speak, so that a person can speak to them; an audit hears nobody."""
    from core.debate.protocols import PROTOCOLS

    protocol = PROTOCOLS.get(plan.protocol)
    return plan.protocol != AUDIT and protocol is not None and bool(protocol.manners)


def require_debate(progress: Progress) -> None:
    """Refuse (InputError) words that nobody would hear."""
    if progress.plan is not None and not is_debated(progress.plan):
        raise InputError("Expected a debate to speak in, found a check in which nobody debates.")
    if progress.ending is not None or progress.judgement is not None:
        raise InputError(
            "Expected a debate under way, found one that is over; say it in your judgement below."
        )


SAMPLE = "The tower is 412 m tall and was opened on 14 May 1932 by about two hundred people."


def warm_up(home: Path) -> None:
    """Load what a first check would wait for.

    Languages first: a case is stored with its own, so the click itself waits for them. Raises
    ConfigError: something cannot be loaded.
    """
    from core.documents.segmentation import language_of

    language_of(SAMPLE)
    import core.pipeline.review  # noqa: F401 - the first run would wait for it
    from core.baseline.entailment import assessor_of, reader_in_use
    from core.baseline.export import load_multilingual_encoder
    from core.verdict.classifier import load_classifier

    load_multilingual_encoder().encode([SAMPLE])
    with open_store(home) as store:
        load_classifier(home, store.versions.active())
        reader = reader_in_use(store)
    assessor_of(home, reader).reader.read([(SAMPLE, SAMPLE)])


BEAT_SECONDS = 0.25
NOTHING_TYPED: Mapping[str, str] = {}


class Jobs:
    """The runs that this process carries out, over one home."""

    def __init__(
        self,
        home: Path,
        make_roster: Callable[[str], Roster] | None = None,
        *,
        keys: Keys | None = None,
    ) -> None:
        """`keys` are those of the environment and the secrets file; typed ones come with a run."""
        self.home = home
        self.keys = keys or Keys({})
        self.owner = f"{os.getpid()}-{new_id()[:8]}"
        self._make_roster = make_roster
        self._waiting: queue.SimpleQueue[Active] = queue.SimpleQueue()
        self._active: dict[str, Active] = {}
        self._lock = threading.Lock()
        self._workers: list[threading.Thread] = []
        self._heart: threading.Thread | None = None

    def start(
        self,
        case: Case,
        plan: Plan,
        *,
        parent_id: str | None = None,
        by: str = "",
        typed: Mapping[str, str] = NOTHING_TYPED,
    ) -> str:
        """Queue a run over a stored case and return its id.

        `by` pays for it (the case's author if empty); `typed` are keys that live in their session.
        Raises InputError and KeyMissing as `require` does.
        """
        payer = self.payer(by or case.author, typed)
        self.require(plan, payer)
        with open_store(self.home) as store:
            with store.writing():
                run_id = self.queue(store, case, plan, parent_id=parent_id)
            self.submit(store, [run_id], payer)
        return run_id

    def payer(self, by: str, typed: Mapping[str, str] = NOTHING_TYPED) -> Payer:
        """Who pays for a run, with this process's keys and those they typed."""
        return Payer(by, replace(self.keys, typed=dict(typed)))

    def require(self, plan: Plan, payer: Payer) -> None:
        """Refuse (InputError, KeyMissing) a plan that cannot be carried out; nothing is stored."""
        from core.debate.protocols import require_protocol

        require_protocol(plan)
        require_keys(plan, payer.keys)

    def queue(self, store: Store, case: Case, plan: Plan, *, parent_id: str | None = None) -> str:
        """Store a run of ours and return its id; call inside `Store.writing()`, then `submit`."""
        now = time.time()
        plan = as_learned(store, case.project_id, plan)
        run = Run(new_id(), case.id, case.project_id, plan, "queued", now, parent_id=parent_id)
        store.runs.add(run, self.owner, now)
        return run.id

    def submit(self, store: Store, run_ids: Sequence[str], payer: Payer) -> None:
        """Carry queued runs of ours out as soon as a worker is free."""
        workers = store.projects.settings().workers
        for run_id in run_ids:
            self._submit(run_id, payer, workers)

    def resume(self, run_id: str, by: str, typed: Mapping[str, str] = NOTHING_TYPED) -> bool:
        """Go on with a run that ended without its verdict; False when somebody has it.

        Not even this process may have it: a run whose lease lapsed while the machine slept goes on
        with the worker that had it. One whose end is stored is free, also while that tidies up.
        What `require` refuses stays as it is.
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
        """Stop a run: at once when it is ours, else by asking its process."""
        active = self._of(run_id)
        if active is not None:  # first: the database may be busy for longer than a person waits
            active.stopped_by = by
            active.stop.set()
        with open_store(self.home) as store:
            store.runs.request_stop(run_id, by)

    def say(self, run_id: str, by: str, text: str) -> None:
        """Store words that the next turns hear.

        Raises InputError: there are none or too many, or there is no debate.
        """
        words = text.strip()
        if not words:
            raise InputError(
                "Expected something to say to the debaters, found nothing; type it first."
            )
        if len(words) > LONGEST_REMARK:
            raise InputError(
                f"Expected at most {LONGEST_REMARK:,} characters, found {len(words):,}; say what "
                "matters most."
            )
        active = self._of(run_id)
        if active is None:
            raise InputError(
                "Expected a debate of this server under way, found one that has ended or belongs "
                "to another process; reload the page."
            )
        with open_store(self.home) as store, store.writing():
            require_debate(folded(event for _, event in store.runs.events(run_id)))
            said = PersonSpoke(time.time(), by, words)
            store.runs.append(run_id, self.owner, [said])
        active.said.put(said)

    def live(self, run_id: str) -> Live | None:
        """What is under way in a run of this process; None when it is not ours."""
        active = self._of(run_id)
        return active.live if active else None

    def _of(self, run_id: str) -> Active | None:
        with self._lock:
            return self._active.get(run_id)

    def wait(self, run_id: str, seconds: float | None = None) -> bool:
        """Wait until a run of this process has ended; False when the time is up first."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.live(run_id) is not None:
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def _submit(self, run_id: str, payer: Payer, workers: int) -> None:
        active = Active(run_id, payer)
        with self._lock:
            self._active[run_id] = active
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat, daemon=True, name="heartbeat")
                self._heart.start()
            self._workers = [worker for worker in self._workers if worker.is_alive()]
            if len(self._workers) < workers:
                worker = threading.Thread(target=self._work, daemon=True, name="run worker")
                self._workers.append(worker)
                worker.start()
        self._waiting.put(active)

    def _work(self) -> None:
        while True:
            active = self._waiting.get()
            try:
                self._carry_out(active)
            except ConflictError:
                active.stop.set()  # what it still reads is of no use any more
                LOGGER.warning("run %s was taken over by another process", active.run_id)
            except sqlite3.OperationalError as error:
                LOGGER.error("run %s: %s Found: %s", active.run_id, NOT_STORED, error)
                self._end_badly(active, NOT_STORED)
            except Exception:
                LOGGER.exception("run %s failed in an unexpected way", active.run_id)
                self._end_badly(active, UNEXPECTED)
            finally:
                with self._lock:
                    if self._active.get(active.run_id) is active:
                        del self._active[active.run_id]

    def _carry_out(self, active: Active) -> None:
        with open_store(self.home) as store:
            with store.writing():
                began = store.runs.begin(active.run_id, self.owner, time.time())
            if not began:
                self._append(store, active, RunStopped(time.time(), active.stopped_by))
                return
            try:
                for events in self._events(store, active):
                    if durable := active.taken(events):
                        self._append(store, active, *durable)
                        active.stored(durable)
            except ConflictError:
                raise
            except ReviewError as error:
                self._append(store, active, RunFailed(time.time(), "reading", str(error)))
                return
            offer(store, active.run_id, time.time())

    def _events(self, store: Store, active: Active) -> Iterator[tuple[Event, ...]]:
        """The engine's events over what is stored of the run; a tuple is one transaction."""
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(active.run_id, time.time(), lease)
        case = store.cases.get(run.case_id) if run else None
        if run is None or case is None:
            raise LookupError(f"run {active.run_id} or its case is not stored")
        note = "Loading the agents" if run.plan.sheet else "Loading the built-in engine"
        active.live.progress = ProgressMade(time.time(), "reading", note)
        roster = self._make_roster(run.plan.roster) if self._make_roster else None
        past = [event for _, event in store.runs.events(run.id)]
        earlier = earlier_of(store, run, lease)
        staff = staffed(store, self.home, run, active.payer, roster)
        return staff.review(
            case, run.plan, active.stop, past=past, earlier=earlier, heard=active.heard
        )

    def _append(self, store: Store, active: Active, *events: Event) -> None:
        """Steps can be done again after a power cut; whoever has read a run's end relies on it."""
        is_end = any(event.kind in ENDINGS for event in events)
        with store.writing() if is_end else store.noting():
            store.runs.append(active.run_id, self.owner, events)

    def _end_badly(self, active: Active, message: str) -> None:
        """Say so in the run; where not even that can be stored, its lease runs out."""
        active.stop.set()
        try:
            with open_store(self.home) as store:
                stage = folded(event for _, event in store.runs.events(active.run_id)).stage
                self._append(store, active, RunFailed(time.time(), stage, message))
        except Exception as error:  # noqa: BLE001 - a thread that ends would take its worker along
            LOGGER.error("run %s could not even be marked as failed: %r", active.run_id, error)

    def _beat(self) -> None:
        """Keep this process's leases fresh and hear of stops asked for elsewhere."""
        while True:
            time.sleep(BEAT_SECONDS)
            with self._lock:
                mine = dict(self._active)
            if not mine:
                continue
            try:
                with open_store(self.home) as store, store.noting():
                    asked = store.runs.beat(self.owner, list(mine), time.time())
            except Exception as error:  # noqa: BLE001 - the heart goes on whatever was in its way
                LOGGER.error("the heartbeat missed a beat: %r", error)
                continue
            for run_id, by in asked.items():
                mine[run_id].stopped_by = mine[run_id].stopped_by or by
                mine[run_id].stop.set()
