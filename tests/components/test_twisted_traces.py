"""A valid trace of every protocol with one thing twisted is refused, or every page can draw it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.report import build_report
from components.report_formats import write_html, write_markdown
from components.run.debate import describe_stored_steps, format_cost
from components.run.replay import find_landmarks, replay_until, schedule_events
from components.run.run_view import current_stage, find_open_turns
from components.run.transcript import collect_asides, split_rounds, summarize_round
from core.debate import PROTOCOL_NAMES
from core.debate.protocols import DEBATES
from core.debate.signals import find_signals
from core.pipeline.single_check import build_outcome
from core.runtime.errors import InputError
from core.schema.events import (
    TRANSIENT_KINDS,
    Event,
    LabelPredicted,
    PassagesFound,
    RunFinished,
    RunStarted,
    StatementFound,
)
from core.schema.records import Case, Project, Run, Verdict, hash_rule
from core.schema.rosters import DEBATE_PROTOCOL_NAMES, DebateOptions
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.sqlite import to_plain
from core.store.traces import import_trace
from tests.components.speaking import debate_html
from tests.debate.scripts import USUAL
from tests.debate.test_all_protocols import VIEW, argued, plan_of, reply
from tests.debates import desk_roster
from tests.fakes import FakeDesk

VERDICT = Verdict("hallucinated", 0.9, 0.9, "because")
WAYS = {name: (name, USUAL.get(name, DebateOptions())) for name in PROTOCOL_NAMES} | {
    "copmad swapped": ("copmad", DebateOptions(is_swapped=True))
}
# JSON numbers may be as large as they like; 1e999 is infinite to whoever reads it as a float.
NUMBERS = [-1, 0, 7, 10**9, 10**30, -0.5, 1.5, 1e308]
ODD: list[Any] = [None, True, *NUMBERS, "", "x", "\x00<b>", "y" * 9000, [], {}]
RAW = {"not a number": "NaN", "infinite": "1e999"}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Store]:
    """Another machine's store; every trace is a run of its own there."""
    with open_store(None) as store:
        store.projects.save(Project("theirs", "Theirs", 1.0))
        yield store


@cache
def trace_of(way: str) -> str:
    """A whole run of three debaters as a file."""
    chosen, desk = WAYS[way], FakeDesk(reply)
    plan, roles = plan_of(chosen), desk_roster(desk, debaters=3).roles_used(hash_rule)
    events = argued(chosen, desk, debaters=3)
    end = max(event.at for event in events)
    told: list[Event] = [
        RunStarted(1.0, VIEW.case, plan, roles),
        *(StatementFound(1.0, statement) for statement in VIEW.statements),
        PassagesFound(1.0, 0, tuple(VIEW.evidence.passages.values())),
        *(event for event in events if event.kind not in TRANSIENT_KINDS),
        LabelPredicted(end, VERDICT),
        RunFinished(end, VERDICT, end),
    ]
    body = {
        "format": "counterpoint-trace",
        "version": 1,
        "case": to_plain(VIEW.case),
        "plan": to_plain(plan),
        "started_at": 1.0,
        "events": [{"kind": event.kind, "payload": to_plain(event)} for event in told],
    }
    return json.dumps(body)


def imported(store: Store, data: str) -> tuple[Run, Case, list[Event]]:
    """The run there, its case and its events."""
    run_id = import_trace(store, data.encode(), "theirs", lambda text, _: text.split())
    run = store.runs.get(run_id, 1e9, 6.0)
    assert run
    case = store.cases.get(run.case_id)
    assert case
    return run, case, [event for _, event in store.runs.events(run_id)]


def draw(run: Run, case: Case, events: list[Event]) -> None:
    """What Run, the live view, Replay, reports and the command line make of it."""
    progress = fold_events(events)
    assert write_html(build_report(run, case, progress, [], None))
    assert write_markdown(build_report(run, case, progress, [], None))
    assert json.dumps(build_outcome(run, progress))
    assert describe_stored_steps(progress)
    assert format_cost(progress.cost)
    assert current_stage(progress, None)
    debate_html(progress.turns, find_open_turns(events, None), placed=collect_asides(progress))
    rounds = split_rounds(progress.turns)
    assert sum(len(one.turns) for one in rounds) == len(progress.turns)
    for one in rounds:
        assert summarize_round(one.heading, one.turns)
    for pace in ("recorded", "reading"):
        placed = schedule_events(events, pace)
        for share in (0.0, 0.4, 1.0):
            then, speaking = replay_until(placed, share * placed[-1].at)
            assert all(at <= placed[-1].at for at in find_landmarks(placed).values())
            debate_html(then.turns, speaking, find_signals(then), collect_asides(then))


@pytest.mark.parametrize("way", WAYS)
def test_what_a_run_of_three_debaters_left_is_taken_and_drawn(elsewhere: Store, way: str) -> None:
    run, case, events = imported(elsewhere, trace_of(way))
    assert run.status == "finished"
    draw(run, case, events)


def test_the_debates_that_can_be_gone_on_to_are_those_that_there_are() -> None:
    assert set(DEBATE_PROTOCOL_NAMES) == set(DEBATES)


def test_a_run_of_a_protocol_that_is_not_known_here_is_taken_and_drawn(elsewhere: Store) -> None:
    data = trace_of("sc_maks").replace('"protocol": "sc_maks"', '"protocol": "tribunal"')
    run, case, events = imported(elsewhere, data)
    assert run.plan.protocol == "tribunal"
    draw(run, case, events)
    assert "tribunal" in write_html(build_report(run, case, fold_events(events), [], None))


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in plain values, itself left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        yield (*at, key)
        if isinstance(part, dict | list):
            yield from places(part, (*at, key))


def put(value: Any, at: tuple[str | int, ...], odd: object) -> None:
    for key in at[:-1]:
        value = value[key]
    value[at[-1]] = odd


@st.composite
def twisted(draw_from: st.DrawFn) -> str:
    """A trace with one value replaced, or one event lost, told twice, or told at another time."""
    body = copy.deepcopy(json.loads(trace_of(draw_from(st.sampled_from(sorted(WAYS))))))
    events = body["events"]
    number = draw_from(st.integers(0, len(events) - 1))
    other = draw_from(st.integers(0, len(events) - 1))
    how = draw_from(st.sampled_from(["put", "put", "put", "raw", "lost", "twice", "moved"]))
    if how in ("put", "raw"):
        at = draw_from(st.sampled_from(list(places(events[number]["payload"]))))
        odd = draw_from(st.sampled_from(ODD if how == "put" else sorted(RAW)))
        put(events[number]["payload"], at, odd)
        text = json.dumps(body)
        return text.replace(f'"{odd}"', RAW[str(odd)]) if how == "raw" else text
    event = events[number] if how == "twice" else events.pop(number)
    if how != "lost":
        events.insert(other, event)
    return json.dumps(body)


@settings(max_examples=150, deadline=None)
@given(data=twisted())
def test_a_twisted_trace_is_refused_in_one_sentence_or_drawn(elsewhere: Store, data: str) -> None:
    words = ""
    try:
        taken = imported(elsewhere, data)
    except InputError as error:
        words = str(error)
    if words:
        assert words.endswith(".")
        assert "\n" not in words
    else:
        draw(*taken)
