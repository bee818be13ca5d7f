"""Every way to argue over a real server: its faults are no labels, Stop is quick, traces replay.

All protocols run side by side at each fault, on one server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from components.run.replay import replay_until, schedule_events
from core.agents.rosters import make_single_model_roster
from core.debate import PROTOCOL_NAMES
from core.runtime.errors import KeyMissing
from core.schema.records import Plan, Run, UnclearCause
from core.schema.rosters import DebateOptions, RosterConfig
from core.schema.run_state import RunState, fold_events
from core.store import open_store
from core.store.traces import export_trace, import_trace
from tests.debate.scripts import USUAL, prompt_of, reply_to
from tests.llm.loopback import Asked, Reply, loopback
from tests.test_with_models import Bench, bench_in, sheet_at
from tests.waiting import wait_for

STOPPED_WITHIN = 0.5  # seconds


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One home with one case for all tests; what loads at the first call is loaded.

    Loading takes longer, with all protocols at it, than a silent server is waited for below.
    """
    made = bench_in(tmp_path_factory.mktemp("protocols") / "home")
    with loopback(sensible) as server:
        made.run(sheet_at(server, seconds=60), protocol="single")
    return made


def plan_of(name: str, sheet: RosterConfig | None, **fields: object) -> Plan:
    """A check by that protocol with a roster of models, or the built-in one."""
    values: dict[str, object] = {"max_turns": 3, "options": USUAL.get(name, DebateOptions())}
    roster = sheet.name if sheet else "builtin"
    return Plan(name, roster, sheet=sheet, **(values | fields))  # type: ignore[arg-type]


def side_by_side(
    bench: Bench, sheet: RosterConfig, **fields: object
) -> dict[str, tuple[Run, RunState]]:
    """What the check by each protocol came to."""
    started = {
        name: bench.jobs.start(bench.case, plan_of(name, sheet, **fields))
        for name in PROTOCOL_NAMES
    }
    return {name: bench.ended(run_id) for name, run_id in started.items()}


def sensible(asked: Asked) -> Reply:
    """The script over the wire: who is asked stands in the prompt."""
    debater = next((name for name in ("Ada", "Ben") if f"You are {name}" in asked.prompt), "")
    return Reply(reply_to(prompt_of(asked), debater, ""))


FAULTS: Mapping[str, tuple[Reply, set[UnclearCause]]] = {
    "refusal": (Reply("I cannot do this.", refusal=True), {"unreadable_reply"}),
    "content filter": (Reply("The ev", finish="content_filter"), {"unreadable_reply"}),
    "empty reply": (Reply(""), {"unreadable_reply"}),
    "no verdict": (Reply("It is hard to say."), {"unreadable_reply"}),
    "bad JSON": (Reply('{"facts": [{"claim'), {"unreadable_reply"}),
    "500": (Reply(status=500, headers={"Retry-After": "0"}), {"agent_failed"}),
    "silence": (Reply(fault="hang_before"), {"agent_failed"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_a_server_is_ever_a_label(bench: Bench, fault: str) -> None:
    reply, causes = FAULTS[fault]
    with loopback(reply) as server:
        patience = 1 if fault == "silence" else 10
        found = side_by_side(bench, sheet_at(server, seconds=patience))
    for name, (run, progress) in found.items():
        assert (run.status, run.label) == ("finished", "unclear"), name
        assert run.cause in causes, name
        assert run.p_hallucinated is None, name
        assert progress.problems, name


def test_a_budget_that_is_reached_is_no_label(bench: Bench) -> None:
    with loopback(sensible) as server:
        found = side_by_side(bench, sheet_at(server, seconds=10), token_cap=10)
    for name, (run, _) in found.items():
        assert (run.label, run.cause) == ("unclear", "budget_reached"), name


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_without_a_key_nothing_begins(bench: Bench, name: str) -> None:
    with pytest.raises(KeyMissing):
        bench.jobs.start(bench.case, plan_of(name, make_single_model_roster("openai/gpt-4o-mini")))


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_stop_in_the_middle_ends_within_half_a_second(bench: Bench, name: str) -> None:
    """One of the first calls never ends; then somebody stops the run."""
    with loopback(after(2, Reply("WRONG, it", fault="hang_within"))) as server:
        run_id = bench.jobs.start(bench.case, plan_of(name, sheet_at(server, seconds=30)))
        wait_for(lambda: len(server.asked) >= 2)
        began = time.monotonic()
        bench.jobs.stop(run_id, "Mira")
        wait_for(lambda: bench.stored(run_id)[0].status == "stopped")
        assert time.monotonic() - began < STOPPED_WITHIN
        asked = len(server.asked)
    run, events = bench.stored(run_id)
    assert run.label is None
    assert events[-1].kind == "run_stopped"
    assert len(server.asked) == asked, "nobody is asked any more"


def after(count: int, reply: Reply) -> Callable[[Asked], Reply]:
    """Sensible answers, but for that call and all after it."""
    seen: list[Asked] = []

    def answer(asked: Asked) -> Reply:
        seen.append(asked)
        return reply if len(seen) >= count else sensible(asked)

    return answer


def test_a_trace_of_each_exports_and_imports_and_plays_the_same(bench: Bench) -> None:
    with loopback(sensible) as server:
        found = side_by_side(bench, sheet_at(server, seconds=10))
    for name, (run, progress) in found.items():
        assert run.status == "finished", name
        assert not progress.problems, name
        with open_store(bench.home) as store:
            data = export_trace(store, run.id, time.time(), 6.0)
            imported = import_trace(store, data, run.project_id, lambda text, _: text.split())
        events = bench.stored(imported)[1]
        there = fold_events(events)
        assert there.judgement == progress.judgement, name
        assert (there.turns, there.samples) == (progress.turns, progress.samples), name
        assert (there.decided, there.weighed) == (progress.decided, progress.weighed), name
        assert there.verdict == progress.verdict, name
        placed = schedule_events(events, "reading")
        middle, end = (replay_until(placed, placed[-1].at * share)[0] for share in (0.5, 1.0))
        assert end.turns == progress.turns, name
        assert middle.verdict is None, name
        assert end.verdict == progress.verdict, name
