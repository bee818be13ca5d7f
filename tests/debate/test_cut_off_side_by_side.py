"""Turns that are taken side by side and cut off there: Resume pays for none twice, and none lacks.

The program is killed, or a budget is reached, while some calls of a phase are answered and others
are not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import pytest

from core.runtime.config import PROJECT_ROOT
from core.schema.events import Event
from core.schema.records import Plan, Run
from core.schema.rosters import AgentConfig, DebateOptions, RosterConfig
from core.schema.run_state import can_resume
from core.store import open_store
from tests.debate.scripts import prompt_of, reply_to
from tests.llm.loopback import Asked, Reply, loopback
from tests.test_with_models import Bench, bench_in, load_litellm
from tests.waiting import wait_for

pytestmark = [pytest.mark.timing, pytest.mark.slow]

NAMES = ("Ada", "Ben", "Cleo")
# Of three debaters and one round: the phase that is cut off, how many calls it has, all turns.
PHASES = {"ensemble": ("answer", 3, 3), "sc_maks": ("advise", 6, 3 + 6 + 6 + 3)}
ONE_ROUND = {"ensemble": DebateOptions(), "sc_maks": DebateOptions(rounds=1)}


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    load_litellm()


@pytest.fixture
def bench(home: Path) -> Bench:
    return bench_in(home)


def plan_of(protocol: str, base: str) -> Plan:
    """Three debaters and their writer behind that server, under a model's name for the protocol."""
    seat, sheet = AgentConfig(f"openai/{protocol}", base, seconds=60), RosterConfig("ours")
    for role in (*(f"debater {name}" for name in NAMES), "context writer"):
        sheet = sheet.with_seat(role, seat)
    return Plan(protocol, sheet.name, sheet=sheet, options=ONE_ROUND[protocol])


def scripted(asked: Asked) -> Reply:
    """The script over the wire, for three."""
    debater = next((name for name in NAMES if f"You are {name}" in asked.prompt), "")
    return Reply(reply_to(prompt_of(asked), debater, ""))


@dataclass
class HalfOfAPhase:
    """Answers every other call of the phase; the rest hang until `is_over`."""

    is_over: bool = False
    seen: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, asked: Asked) -> Reply:
        protocol = asked.body["model"]
        if prompt_of(asked) != PHASES[protocol][0] or self.is_over:
            return scripted(asked)
        with self.lock:
            self.seen[protocol] += 1
            hangs = self.seen[protocol] % 2 == 0
        return Reply(fault="hang_before") if hangs else scripted(asked)

    def are_waited_for(self) -> bool:
        return all(self.seen[name] == calls for name, (_, calls, _) in PHASES.items())


KILLED = """
import sys, time
from pathlib import Path
from core.pipeline.jobs import JobRunner
from core.llm.keys import Keys
from core.store import open_store
from tests.debate.test_cut_off_side_by_side import PHASES, plan_of
from tests.test_with_models import load_litellm
load_litellm()  # so that nobody waits for it whose patience ends
home, case_id, base = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with open_store(home) as store:
    case = store.cases.get(case_id)
    store.projects.save_setting("lease_seconds", 3)
jobs = JobRunner(home, keys=Keys({}))
print(*(jobs.start(case, plan_of(name, base)) for name in PHASES), flush=True)
time.sleep(60)
"""


def bodies(asked: Sequence[Asked]) -> Counter[str]:
    """What was asked, and how often."""
    return Counter(str(sorted(one.body.items())) for one in asked)


def answered(home: Path) -> Counter[str]:
    """How many calls of each protocol's model are paid for."""
    with open_store(home) as store:
        rows = store.db.query("SELECT model FROM calls WHERE status = 'done'")
        return Counter(row["model"].removeprefix("openai/") for row in rows)


def is_whole(run: Run, events: Sequence[Event]) -> None:
    """Every turn is there once, every call is told of, and the run came to its verdict."""
    protocol = run.plan.protocol
    assert (run.status, run.cause) == ("finished", None), protocol
    numbers = [e.turn.number for e in events if e.kind == "turn_finished"]
    assert sorted(numbers) == list(range(1, PHASES[protocol][2] + 1)), protocol
    started = {e.number for e in events if e.kind == "turn_started"}
    assert started == set(numbers)
    told = {e.call.slot for e in events if e.kind == "model_called" and not e.call.problem}
    assert {f"turn {number}" for number in numbers} <= told
    kinds = Counter(e.kind for e in events)
    for once in ("run_started", "judgement_reached", "run_finished", "run_resumed"):
        assert kinds[once] == 1 or (once == "run_finished" and kinds[once] == 2), once


def test_a_process_killed_among_turns_side_by_side_is_paid_for_nothing_twice(bench: Bench) -> None:
    half = HalfOfAPhase()
    with loopback(half) as server:
        command = [sys.executable, "-c", KILLED, str(bench.home), bench.case.id, server.base]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=PROJECT_ROOT
        ) as process:
            assert process.stdout
            run_ids = process.stdout.readline().split()
            wait_for(half.are_waited_for)
            wait_for(lambda: answered(bench.home) == {"ensemble": 2, "sc_maks": 3 + 3})
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        half.is_over = True
        before = list(server.asked)
        paid = answered(bench.home)
        for run_id in run_ids:
            wait_for(lambda run_id=run_id: bench.jobs.resume(run_id, "Mira"))  # type: ignore[misc]
        for run_id in run_ids:
            bench.ended(run_id)
            is_whole(*bench.stored(run_id))
        again = bodies(server.asked[len(before) :])
    lost = sum((bodies(before) & again).values())
    assert lost == len(before) - paid.total(), "only what was not answered is asked again"
    assert set((bodies(before) + again).values()) <= {1, 2}


def capped(home: Path, tokens: int) -> None:
    with open_store(home) as store:
        store.projects.save_setting("run_tokens", tokens)


@pytest.mark.parametrize("protocol", PHASES)
def test_a_budget_reached_among_turns_side_by_side_is_said_and_more_of_it_goes_on(
    bench: Bench, protocol: str
) -> None:
    """The cap has room for some of the phase's calls alone: they are sent together."""
    with loopback(lambda asked: slowly(scripted(asked))) as server:
        capped(bench.home, PHASES[protocol][1] * 700)
        run_id = bench.jobs.start(bench.case, plan_of(protocol, server.base))
        run, progress = bench.ended(run_id)
        assert (run.label, run.cause) == ("unclear", "budget_reached")
        assert run.p_hallucinated is None
        assert can_resume(run)
        sent, whole = len(server.asked), PHASES[protocol][2]
        assert 0 < len(progress.turns) < whole, "it was reached in the middle"
        assert len(progress.turns) == sent, "what was under way is kept"
        capped(bench.home, 10**6)
        assert bench.jobs.resume(run_id, "Mira")
        bench.ended(run_id)
        run, events = bench.stored(run_id)
    is_whole(run, events)
    assert set(bodies(server.asked).values()) == {1}, "nothing is asked twice"


def slowly(reply: Reply) -> Reply:
    """The reply once everybody who speaks at the same time has asked."""
    return Reply(reply.text, pause=0.3)
