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
from core.schema.records import Case, Plan
from core.schema.rosters import AgentConfig, DebateOptions, DebaterConfig, RosterConfig
from tests.bench.arguing_server import NAMES
from tests.bench.side_by_side import CLAIM, FACT, Watched, case_in
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
    processor: list[float] = field(default_factory=list)  # milliseconds a call, of this process


def all_protocols(folder: Path, repeats: int, seconds: float) -> dict[str, Argued]:
    """By name; the first run of all, which loads everything, is left out."""
    home = folder / f"protocols{seconds}"
    case = case_in(home, CLAIM, FACT)
    with models(seconds, SERVER) as base:
        jobs, sheet = Watched(home), _four(base)
        _walled(jobs, case, _plan("single", sheet))
        return {name: _of(jobs, case, _plan(name, sheet), repeats, seconds) for name in PROTOCOLS}


def _of(jobs: Watched, case: Case, plan: Plan, repeats: int, seconds: float) -> Argued:
    asked = PROTOCOLS[plan.protocol].calls(len(NAMES), plan)
    found, made = Argued(asked.chain), []
    for _ in range(repeats):
        wall, calls, spent = _walled(jobs, case, plan)
        found.walls.append(wall)
        found.ratios.append(wall / (asked.chain * seconds))
        found.processor.append(spent / calls)
        made.append(calls)
    found.calls = int(statistics.median(made))
    return found


def _walled(jobs: Watched, case: Case, plan: Plan) -> tuple[float, int, float]:
    """(seconds of the protocol, the calls that it made, its processor time in milliseconds)."""
    jobs.noted.clear()
    run_id = jobs.start(case, plan)
    assert jobs.wait(run_id, 120), "the run did not end"
    begun = [(e.at, spent) for e, spent in jobs.noted if e.kind == "passages_found"][-1]
    judged = [(e.at, spent) for e, spent in jobs.noted if e.kind == "judgement_reached"]
    assert judged, [event.message for event, _ in jobs.noted if event.kind == "problem_met"]
    calls = sum(event.kind == "model_called" for event, _ in jobs.noted)
    return judged[-1][0] - begun[0], calls, 1000 * (judged[-1][1] - begun[1])


def _plan(name: str, sheet: RosterConfig) -> Plan:
    options = DebateOptions(rounds=ROUNDS.get(name, 0))
    return Plan(name, sheet.name, sheet=sheet, options=options)


def _four(base: str) -> RosterConfig:
    """Four debaters, a writer and a judge at that address; their calls are made anew each time."""
    seat = AgentConfig("openai/loopback", base, temperature=0.3)
    debaters = tuple(DebaterConfig(name, seat) for name in NAMES)
    return RosterConfig("four", context_writer=seat, debaters=debaters, judge=seat)
