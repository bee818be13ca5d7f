"""What we add to the time of calls that go out side by side: a panel's, and those of an audit.

The critical path is the longest chain of calls that wait for each other, at the seconds that each
of them takes; the server's own work and all of ours come on top of it. In a panel of four it is two
calls (four members mark, then of every member's marks the three others vote: 16 in all), from the
verdict to the end of the run. In an audit of ten statements with a model as tool picker it is two
(each statement: a search, a conclusion; the response as a whole: a conclusion; 21 in all), from the
last passage found before it to the judgement: the searches and the built-in reflector's look over
all statements are ours. What is built in and lies before or after is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.documents.library import ensure_read, store_file
from core.llm.keys import Keys
from core.pipeline.jobs import ActiveRun, JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.events import AUDIT, Event
from core.schema.records import Case, Plan
from core.schema.rosters import AgentConfig, RosterConfig
from core.store import Store, open_store
from tests.bench.with_models import models

IN_A_ROW = 2
MEMBERS = ("one", "two", "three", "four")
CLAIM, FACT = "The tower is 512 m tall.", "The tower is 412 m tall."
TOWNS = "Ardo Belin Corva Dunmor Elst Fara Gorin Hald Ister Jurm".split()
RESPONSE = " ".join(f"The tower of {town} is {500 + n} m tall." for n, town in enumerate(TOWNS))
FACTS = " ".join(f"The tower of {town} is {400 + n} m tall." for n, town in enumerate(TOWNS))


@dataclass(frozen=True)
class Measured:
    """Of each run: wall time over critical path, and milliseconds of processor time a call."""

    ratios: list[float]
    processor: list[float]


@dataclass(frozen=True)
class _Kind:
    """A kind of run: whom it seats at an address, how many calls it makes, and where in the run.

    From the last event of kind `since` before the first call to the first event of kind `until`.
    """

    protocol: str
    seated: Callable[[str], RosterConfig]
    calls: int
    since: str
    until: str


def of_a_panel(folder: Path, repeats: int, seconds: float) -> Measured:
    """Four models over a claim of one statement; every call takes so many seconds."""

    def seated(base: str) -> RosterConfig:
        return RosterConfig("four", span_panel=tuple(_seat(name, base) for name in MEMBERS))

    kind = _Kind("ceda", seated, len(MEMBERS) ** 2, "label_predicted", "run_finished")
    home = folder / f"panel{seconds}"
    return _measured(home, case_in(home, CLAIM, FACT), kind, repeats, seconds)


def of_an_audit(folder: Path, repeats: int, seconds: float) -> Measured:
    """A tool picker over ten statements; every call takes so many seconds."""

    def seated(base: str) -> RosterConfig:
        return RosterConfig("picker", tool_picker=_seat("picker", base))

    kind = _Kind(AUDIT, seated, 2 * len(TOWNS) + 1, "passages_found", "judgement_reached")
    home = folder / f"audit{seconds}"
    return _measured(home, case_in(home, RESPONSE, FACTS), kind, repeats, seconds)


class Watched(JobRunner):
    """Notes the processor time of this process at every event that is stored."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, keys=Keys({}))
        self.noted: list[tuple[Event, float]] = []

    def _append(self, store: Store, active: ActiveRun, *events: Event) -> None:
        super()._append(store, active, *events)
        self.noted += [(event, time.process_time()) for event in events]


def _measured(home: Path, case: Case, kind: _Kind, repeats: int, seconds: float) -> Measured:
    """The stretch in question of so many runs; the first one, which loads everything, is left out.

    The built-in engine's part is done anew each time, the models' calls too.
    """
    found = Measured([], [])
    with models(seconds) as base:
        for _ in range(repeats + 1):
            jobs, sheet = Watched(home), kind.seated(base)
            run_id = jobs.start(case, Plan(kind.protocol, sheet.name, sheet=sheet))
            assert jobs.wait(run_id, 120), "the run did not end"
            events = [event for event, _ in jobs.noted]
            assert not [e.message for e in events if e.kind == "problem_met"]
            called = [n for n, e in enumerate(events) if e.kind == "model_called"]
            assert len(called) == kind.calls
            begun = max(n for n in range(called[0]) if events[n].kind == kind.since)
            ended = next(n for n, e in enumerate(events) if e.kind == kind.until)
            assert begun < called[0]
            assert called[-1] < ended
            wall = events[ended].at - events[begun].at
            found.ratios.append(wall / (IN_A_ROW * seconds))
            spent = jobs.noted[ended][1] - jobs.noted[begun][1]
            found.processor.append(1000 * spent / kind.calls)
    return Measured(found.ratios[1:], found.processor[1:])


def _seat(name: str, base: str) -> AgentConfig:
    """Its calls are made anew: at temperature 0 an equal one would come from the ledger."""
    return AgentConfig(f"openai/{name}", base, temperature=0.3)


def case_in(home: Path, response: str, facts: str) -> Case:
    """A stored case over one document that is read and indexed."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        given = (store, home, project.id, "facts.txt", facts.encode(), "Mira", 1.0, Settings())
        entry = store_file(*given)
        ensure_read(
            store, home, entry.id, entry.name, Settings(), StopSignal(), lambda *_: None, time.time
        )
        return store_case(store, project, CaseDraft(response, "", (entry.id,), ()), "Mira", 1.0)
