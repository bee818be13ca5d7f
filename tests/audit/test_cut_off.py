"""An audit that is killed or stopped in its middle goes on to the end that another comes to."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.agents.rosters import make_built_in_roster
from core.pipeline.jobs import JobRunner
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT
from core.schema.events import Event
from core.schema.records import Case, Plan
from core.schema.roles import AuditView, Roster, ToolPicker, ToolStep
from core.schema.run_state import RunState, fold_events
from core.store import open_store
from core.store.database import DATABASE_FILE
from tests.fakes import case_of
from tests.readers import word_assessor
from tests.store.test_released import RELEASED
from tests.test_jobs import look
from tests.waiting import wait_for

pytestmark = [pytest.mark.timing, pytest.mark.slow]

FACTS = b"The Orrin tower is 412 m tall. It was opened in 1932."
CLAIM = "The Orrin tower is 512 m tall. 3 + 4 = 7. 2 + 2 = 5. So 5 * 2 = 10. It was opened in 1932."
PATIENCE = 60.0


class SlowPicker:
    """The picker, a while later; so that there is a middle to be cut off in."""

    built_in = True
    rule = "picks slowly"

    def __init__(self, inner: ToolPicker, pause: float) -> None:
        self._inner = inner
        self._pause = pause
        self.name = inner.name

    def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
        index = view.statement.index if view.statement else 0
        stop.wait(self._pause * (1 + index))
        return self._inner.next_step(view, stop)


def slowly(pause: float) -> Callable[[str], Roster]:
    def make(name: str) -> Roster:
        roster = make_built_in_roster(name, assessor=word_assessor())
        return replace(roster, tool_picker=SlowPicker(roster.tool_picker, pause))

    return make


def events_of(home: Path, run_id: str) -> list[Event]:
    with open_store(home) as store:
        return [event for _, event in store.runs.events(run_id)]


def steps_of(events: list[Event]) -> list[tuple[int, str, str, str]]:
    uses = [event.use for event in events if event.kind == "tool_called"]
    return sorted(
        (-1 if u.statement is None else u.statement, u.tool, u.given, u.label) for u in uses
    )


def come_to(state: RunState) -> tuple[object, ...]:
    """All that the audit holds in the end."""
    held = [(i, m.label, m.p, m.evidence) for i, m in sorted(state.memory.items())]
    verdict = state.verdict
    return held, verdict and (verdict.label, verdict.p_hallucinated), state.spans


def middle_of(home: Path, run_id: str) -> None:
    """Waits until some statement has its conclusion and others have not."""
    wait_for(lambda: "memory_updated" in [event.kind for event in events_of(home, run_id)])


def go_on(home: Path, run_id: str, case: Case) -> None:
    """The rest of the run, beside a run that nothing cut off."""
    jobs = JobRunner(home, slowly(0.0))
    before = fold_events(events_of(home, run_id))
    assert 0 < len(before.memory) < len(before.statements), "it was not in its middle"
    wait_for(lambda: jobs.resume(run_id, "Mira"))
    whole_id = jobs.start(case, Plan("audit"))
    assert jobs.wait(run_id, PATIENCE)
    assert jobs.wait(whole_id, PATIENCE)
    found, whole = events_of(home, run_id), events_of(home, whole_id)
    assert look(home, run_id).status == "finished"
    assert steps_of(found) == steps_of(whole), "nothing is done twice, nothing is left out"
    assert come_to(fold_events(found)) == come_to(fold_events(whole))
    kinds = [event.kind for event in found]
    for once in ("run_started", "document_read", "judgement_reached", "run_finished"):
        assert kinds.count(once) == 1, once
    assert kinds.count("statement_found") == len(before.statements)


def test_a_stopped_audit_goes_on_to_the_same_end(home: Path) -> None:
    case = case_of(home, CLAIM, ("facts.txt", FACTS))
    jobs = JobRunner(home, slowly(0.1))
    run_id = jobs.start(case, Plan("audit"))
    middle_of(home, run_id)
    jobs.stop(run_id, "Mira")
    wait_for(lambda: look(home, run_id).status == "stopped")
    assert jobs.wait(run_id, PATIENCE)
    go_on(home, run_id, case)


KILLED = """
import sys, time
from pathlib import Path
from core.pipeline.jobs import JobRunner
from core.schema.records import Plan
from core.store import open_store
from tests.audit.test_cut_off import slowly
home, case_id = Path(sys.argv[1]), sys.argv[2]
with open_store(home) as store:
    case = store.cases.get(case_id)
    store.projects.save_setting("lease_seconds", 3)
print(JobRunner(home, slowly(0.3)).start(case, Plan("audit")), flush=True)
time.sleep(60)
"""


def test_a_killed_audit_goes_on_to_the_same_end(home: Path) -> None:
    case = case_of(home, CLAIM, ("facts.txt", FACTS))
    command = [sys.executable, "-c", KILLED, str(home), case.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT_ROOT) as process:
        assert process.stdout
        run_id = process.stdout.readline().strip()
        middle_of(home, run_id)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: look(home, run_id).status == "interrupted")
    go_on(home, run_id, case)


@pytest.mark.parametrize("released", [RELEASED[0], RELEASED[-2]], ids=lambda path: path.name)
def test_a_home_of_an_earlier_schema_audits(released: Path, home: Path) -> None:
    """Its finished run stays as it was, and its own case and library are audited."""
    home.mkdir()
    (home / DATABASE_FILE).write_bytes(gzip.decompress(released.read_bytes()))
    with open_store(home) as store:
        row = next(store.db.query("SELECT id, case_id FROM runs"))
        case = store.cases.get(row["case_id"])
    assert case
    before = events_of(home, row["id"])
    jobs = JobRunner(home)
    run_id = jobs.start(case, Plan("audit"))
    assert jobs.wait(run_id, PATIENCE)
    state = fold_events(events_of(home, run_id))
    assert look(home, run_id).status == "finished"
    assert sorted(state.memory) == sorted(state.statements)
    assert state.statements
    assert events_of(home, row["id"]) == before
