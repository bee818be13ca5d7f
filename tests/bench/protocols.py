"""Every way to argue among four models: its time over that of its longest chain of calls.

The stretch is that of the protocol alone: from the last passages that were found to the judgement.
The chain is the most that `calls` counts, for the replies never settle anything; where a run makes
fewer calls than that, the ratio speaks for it, and the number of calls that it made stands beside.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from core.debate.protocols import PROTOCOLS
from core.events import Event
from core.jobs import Jobs
from core.manners import DebateOptions
from core.models.keys import Keys
from core.records import Case, Plan
from core.seats import DebaterSeat, RosterSheet, Seat
from core.store import open_store
from tests.bench.arguing_server import NAMES
from tests.bench.side_by_side import CLAIM, FACT, case_in
from tests.bench.with_models import models

SERVER = "tests.bench.arguing_server"
ROUNDS = {"sc_maks": 3}  # the most that the paper has; others as they are without a choice


@dataclass
class Argued:
    """A protocol's calls and chain as counted, and what its runs took."""

    chain: int
    calls: int = 0
    ratios: list[float] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)


def all_protocols(folder: Path, repeats: int, seconds: float) -> dict[str, Argued]:
    """By name; the first run of all, which loads everything, is left out."""
    home = folder / f"protocols{seconds}"
    case = case_in(home, CLAIM, FACT)
    with models(seconds, SERVER) as base:
        jobs, sheet = Jobs(home, keys=Keys({})), _four(base)
        _walled(jobs, case, _plan("single", sheet))
        return {name: _of(jobs, case, _plan(name, sheet), repeats, seconds) for name in PROTOCOLS}


def _of(jobs: Jobs, case: Case, plan: Plan, repeats: int, seconds: float) -> Argued:
    asked = PROTOCOLS[plan.protocol].calls(len(NAMES), plan)
    found, made = Argued(asked.chain), []
    for _ in range(repeats):
        wall, calls = _walled(jobs, case, plan)
        found.walls.append(wall)
        found.ratios.append(wall / (asked.chain * seconds))
        made.append(calls)
    found.calls = int(statistics.median(made))
    return found


def _walled(jobs: Jobs, case: Case, plan: Plan) -> tuple[float, int]:
    """(seconds of the protocol, the calls that it made)."""
    run_id = jobs.start(case, plan)
    assert jobs.wait(run_id, 120), "the run did not end"
    with open_store(jobs.home) as store:
        events: list[Event] = [event for _, event in store.runs.events(run_id)]
    begun = max(event.at for event in events if event.kind == "passages_found")
    judged = [event.at for event in events if event.kind == "judgement_reached"]
    assert judged, [event.message for event in events if event.kind == "problem_met"]
    return judged[-1] - begun, sum(event.kind == "model_called" for event in events)


def _plan(name: str, sheet: RosterSheet) -> Plan:
    options = DebateOptions(rounds=ROUNDS.get(name, 0))
    return Plan(name, sheet.name, sheet=sheet, options=options)


def _four(base: str) -> RosterSheet:
    """Four debaters, a writer and a judge at that address; their calls are made anew each time."""
    seat = Seat("openai/loopback", base, temperature=0.3)
    debaters = tuple(DebaterSeat(name, seat) for name in NAMES)
    return RosterSheet("four", context_writer=seat, debaters=debaters, judge=seat)
