"""What we add to the time of a run on language models, over a server that takes its time.

The goal is that a run takes hardly longer than the calls that must wait for each other.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from core.agents.rosters import make_single_model_roster
from core.documents.library import ensure_read, store_file
from core.llm.call import Call, Message
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT, Settings
from core.runtime.errors import Stopped
from core.schema.records import Case, Plan
from core.schema.rosters import AgentConfig, RosterConfig
from core.schema.run_state import fold_events
from core.store import open_store
from tests.bench.model_server import SPANS
from tests.documents.builders import bar_chart, png
from tests.llm.loopback import Reply, loopback

TURNS = 5
IMAGES = 4
# Two calls an image, all images at once; agent C; the turns; the judge; spans; their votes at once.
IN_A_ROW = 2 + 1 + TURNS + 1 + 1 + 1
CLAIM = "The tower is 512 m tall and was opened in 1931."
FACTS = b"The tower is 412 m tall. It was opened in 1932."


def wall_over_critical_path(folder: Path, repeats: int, seconds: float) -> list[float]:
    """Seconds of a five-turn debate with four images over those of its longest chain of calls.

    Every call takes so many seconds.
    """
    home = folder / f"models{seconds}"
    case = _case(home)
    ratios = []
    with models(seconds) as base:
        jobs = JobRunner(home, keys=Keys({}))
        sheet = _never_of_one_mind(make_single_model_roster("openai/loopback", base))
        for _ in range(repeats + 1):
            plan = Plan(roster=sheet.name, sheet=sheet, max_turns=TURNS)
            run_id = jobs.start(case, plan)
            assert jobs.wait(run_id, 60), "the run did not end"
            with open_store(home) as store:
                state = fold_events(event for _, event in store.runs.events(run_id))
            assert len(state.turns) == TURNS, state.problems
            assert len(state.calls) == 2 * IMAGES + 1 + TURNS + 1 + 1 + len(SPANS)
            ratios.append(state.seconds() / (IN_A_ROW * seconds))
    return ratios[1:]  # the first one loads litellm


@contextlib.contextmanager
def models(seconds: float, script: str = "tests.bench.model_server") -> Iterator[str]:
    """The address of models in a process of their own: they must not share our one interpreter."""
    process = subprocess.Popen(
        [sys.executable, "-m", script, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT_ROOT,
    )
    assert process.stdin
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def stop_to_closed(repeats: int) -> list[float]:
    """Seconds from Stop until the server sees the connection gone, in the middle of a stream."""
    found = []
    for _ in range(repeats):
        with loopback(Reply("word " * 2000, gap=0.05)) as server:
            stop = StopSignal()
            seat = AgentConfig("openai/loopback", server.base)
            stopped: list[float] = []

            def end_it(piece: str, stop: StopSignal = stop, stopped: list[float] = stopped) -> None:
                if not stopped:
                    stopped.append(time.monotonic())
                    stop.set()

            call = Call(seat, (Message("user", "Speak."),))
            with contextlib.suppress(Stopped):
                ModelClient(Keys({})).complete(call, end_it, stop)
            found.append(server.wait_closed() - stopped[0])
    return found


def _never_of_one_mind(sheet: RosterConfig) -> RosterConfig:
    """Every call is made anew: at temperature 0 an equal one would come from the ledger."""
    for role, seat in list(sheet.agents_by_role()):
        if not seat.is_built_in:
            sheet = sheet.with_seat(role, replace(seat, temperature=0.3))
    return sheet


def _case(home: Path) -> Case:
    """A stored case whose sources are read and indexed, as those of the library are."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        files = [("facts.txt", FACTS)]
        files += [(f"chart{n}.png", png(bar_chart(900 + n, 600, 24))) for n in range(IMAGES)]
        entries = [
            store_file(store, home, project.id, name, data, "Mira", 1.0, Settings())
            for name, data in files
        ]
        for entry in entries:
            ensure_read(
                store,
                home,
                entry.id,
                entry.name,
                Settings(),
                StopSignal(),
                lambda *_: None,
                time.time,
            )
        documents = tuple(e.id for e in entries if e.kind != "image")
        images = tuple(e.id for e in entries if e.kind == "image")
        return store_case(store, project, CaseDraft(CLAIM, "", documents, images), "Mira", 1.0)
