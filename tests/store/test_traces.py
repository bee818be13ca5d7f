"""Trace files: out, in again elsewhere, and never trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.runtime.errors import InputError
from core.schema.events import (
    DebateNoted,
    Event,
    LabelRevision,
    MemoryEntry,
    MemoryUpdated,
    PersonSpoke,
    ReflectionChanged,
    ResponseRevised,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    RunStopped,
    SoftLabel,
    SoftLabelled,
    SpanVoted,
    StatementFound,
    ToolCalled,
    ToolUse,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import (
    Plan,
    Project,
    Run,
    Span,
    Statement,
    Turn,
    Verdict,
)
from core.store import Store, open_store
from core.store.runs import RunFilter
from core.store.sqlite import to_plain
from core.store.traces import MAX_TEXT_CHARACTERS, export_trace, import_trace
from tests.fakes import make_case

CASE = make_case("The tower is 512 m tall. 👩‍👩‍👧 <script>alert(1)</script>")
TURN = Turn("Ada", "Rule checker", 1, 1, "deny", "hallucinated", "DENY. <b>It is 412 m.</b>")
EVENTS: list[Event] = [
    RunStarted(100.0, CASE, Plan(), ()),
    TurnStarted(101.0, "Ada", "Rule checker", 1, 1),
    TurnFinished(103.0, TURN, 2.0),
    RunFinished(104.0, Verdict("hallucinated", 0.9, 0.9, "because"), 4.0),
]


@pytest.fixture
def trace(store: Store) -> bytes:
    """A finished run as a file."""
    store.projects.save(Project("project", "Ours", 1.0))
    store.cases.add(CASE, [])
    store.runs.add(Run("r", "case", "project", Plan(), "queued", 100.0), "me", 100.0)
    with store.writing():
        store.runs.append("r", "me", EVENTS)
    return export_trace(store, "r", 200.0, 6.0)


def words(text: str, _language: str) -> list[str]:
    return text.casefold().split()


def elsewhere() -> Store:
    other = open_store(None)
    other.projects.save(Project("theirs", "Theirs", 1.0))
    return other


def test_a_trace_plays_on_another_machine(trace: bytes) -> None:
    with elsewhere() as other:
        run_id = import_trace(other, trace, "theirs", words)
        run = other.runs.get(run_id, 1e9, 6.0)
        assert run
        assert (run.status, run.label, run.origin) == ("finished", "hallucinated", "imported")
        assert [event for _, event in other.runs.events(run_id)] == EVENTS
        case = other.cases.get(run.case_id)
        assert case
        assert case.response == CASE.response
        assert case.project_id == "theirs"
        found = RunFilter(terms=("tower",))
        _, total = other.runs.page("theirs", found, limit=9, offset=0, now=1e9, lease=6)
        assert total == 1, "History finds it by its words"


def test_the_same_trace_twice_is_one_run(trace: bytes) -> None:
    with elsewhere() as other:
        assert import_trace(other, trace, "theirs", words) == import_trace(
            other, trace, "theirs", words
        )


def test_a_trace_of_an_unfinished_run_counts_as_stopped(trace: bytes) -> None:
    body = json.loads(trace)
    body["events"] = body["events"][:3]
    with elsewhere() as other:
        run_id = import_trace(other, json.dumps(body).encode(), "theirs", words)
        run = other.runs.get(run_id, 1e9, 6.0)
        assert run
        assert run.status == "stopped"


STOPPED, RESUMED = RunStopped(90.0, "Mira"), RunResumed(95.0, "Mira")
FAILED = RunFailed(90.0, "reading", "There is no classifier v9.")


def exported(store: Store, *events: Event) -> bytes:
    store.projects.save(Project("project", "Ours", 1.0))
    store.cases.add(CASE, [])
    store.runs.add(Run("r", "case", "project", Plan(), "queued", 80.0), "me", 80.0)
    with store.writing():
        store.runs.append("r", "me", events)
    return export_trace(store, "r", 200.0, 6.0)


def imported(trace: bytes) -> tuple[str, list[Event]]:
    """(the run's status, its events) elsewhere."""
    with elsewhere() as other:
        run_id = import_trace(other, trace, "theirs", words)
        run = other.runs.get(run_id, 1e9, 6.0)
        assert run
        return run.status, [event for _, event in other.runs.events(run_id)]


@pytest.mark.parametrize("before", [[RESUMED], [STOPPED, RESUMED], [FAILED, RESUMED]])
def test_what_came_before_the_start_does_not_go_along(store: Store, before: list[Event]) -> None:
    """A run that waited when its process died, or was stopped meanwhile, and was resumed."""
    assert imported(exported(store, *before, *EVENTS)) == ("finished", EVENTS)


def test_a_trace_that_begins_before_the_start_is_taken_from_there(trace: bytes) -> None:
    body = json.loads(trace)
    body["events"].insert(0, {"kind": "run_resumed", "payload": to_plain(RESUMED)})
    assert imported(json.dumps(body).encode()) == ("finished", EVENTS)


@pytest.mark.parametrize(
    ("event", "status"), [(STOPPED, "stopped"), (FAILED, "failed"), (RESUMED, "stopped")]
)
def test_a_run_that_ended_before_it_began_plays_elsewhere_too(
    store: Store, event: Event, status: str
) -> None:
    found, events = imported(exported(store, event))
    assert (found, events[0]) == (status, event)


def test_a_run_that_still_waits_has_nothing_to_take_along(store: Store) -> None:
    with pytest.raises(InputError, match="has not begun yet: there is nothing to export"):
        exported(store)


STARTED = {"kind": "run_started", "payload": to_plain(EVENTS[0])}

TOO_LONG: list[Event] = [
    TurnFinished(103.0, replace(TURN, text="x" * (MAX_TEXT_CHARACTERS + 1)), 2.0),
    TurnFinished(103.0, replace(TURN, agent="x" * 5_000_000), 2.0),
    ResponseRevised(103.0, "Writer", "x" * 5_000_000),
    DebateNoted(101.0, "x" * 5_000_000),
    PersonSpoke(103.0, "Mira", "x" * 10**6),
]


def as_row(event: Event) -> dict[str, Any]:
    return {"kind": event.kind, "payload": to_plain(event)}


def changed(trace: bytes, **fields: Any) -> bytes:
    return json.dumps(json.loads(trace) | fields).encode()


USE = ToolUse(
    "calculator", 0, '{"text":"1 + 1 = 3"}', '{"sums":[]}', "found", "hallucinated", "It is 2.", 0.1
)
ENTRY = MemoryEntry(0, "hallucinated", 0.9, "1 + 1 is 2.", ("calculator",), ("p",))
CHANGE = LabelRevision(0, "local", "unclear", "hallucinated", "The sum is wrong.")
AUDIT: list[Event] = [
    StatementFound(101.0, Statement(0, 0, 9, "The tower", "The tower")),
    ToolCalled(101.1, USE),
    MemoryUpdated(101.2, ENTRY),
    ReflectionChanged(101.3, CHANGE),
]


def audited(event: Event) -> list[dict[str, Any]]:
    """A trace's start with one statement, and an event that tells of its audit."""
    return [STARTED, as_row(AUDIT[0]), as_row(event)]


def called(**fields: Any) -> list[dict[str, Any]]:
    return audited(ToolCalled(102.0, replace(USE, **fields)))


def test_an_audit_plays_on_another_machine(store: Store) -> None:
    events = [EVENTS[0], *AUDIT, EVENTS[-1]]
    assert imported(exported(store, *events)) == ("finished", events)


def test_what_a_panel_said_comes_along(trace: bytes) -> None:
    body = json.loads(trace)
    tower = Span(4, 9, "tower", 0.9, "wrong_entity", "one")
    votes = [SpanVoted(104.5, "one", "other", tower, p, "") for p in (0.8, None)]
    soft = SoftLabelled(104.5, (SoftLabel(4, 9, 0.4, 0.8),), 0.7, ("one", "other"))
    said = [*map(as_row, votes), as_row(soft)]
    body["events"][1:1] = said
    with elsewhere() as other:
        run_id = import_trace(other, json.dumps(body).encode(), "theirs", words)
        kinds = [event.kind for _, event in other.runs.events(run_id)]
    assert kinds[1:4] == ["span_voted", "span_voted", "soft_labelled"]


DAMAGED = json.loads((Path(__file__).parent / "damaged_traces.json").read_text(encoding="utf-8"))


def assert_refused(data: bytes, message: str) -> None:
    with elsewhere() as other:
        with pytest.raises(InputError, match=message) as caught:
            import_trace(other, data, "theirs", words)
        assert "\n" not in str(caught.value)
        for table in ("runs", "cases"):
            assert next(other.db.query(f"SELECT count(*) AS n FROM {table}"))["n"] == 0


@pytest.mark.parametrize("case", DAMAGED, ids=[case["says"] for case in DAMAGED])
def test_a_damaged_trace_is_refused_and_leaves_nothing(trace: bytes, case: dict[str, Any]) -> None:
    change = case["change"]
    if isinstance(change.get("events"), list):
        rows = [STARTED if row == "started" else row for row in change["events"]]
        change = change | {"events": rows}
    assert_refused(changed(trace, **change), case["says"])


@pytest.mark.parametrize("event", TOO_LONG, ids=[event.kind for event in TOO_LONG])
def test_a_text_that_no_page_could_draw_is_refused(trace: bytes, event: Event) -> None:
    data = changed(trace, events=[STARTED, as_row(event)])
    assert_refused(data, "texts of at most 1,000,000|remarks of 1 to 2,000 .* one of 1,000,000")


def test_a_case_of_no_length_and_json_of_no_depth_are_refused(trace: bytes) -> None:
    long = changed(trace, case=to_plain(make_case("x" * 5_000_000)))
    assert_refused(long, "found one of 5,000,000")
    deep = called(gave='{"a":' * 5000 + "1" + "}" * 5000)
    assert_refused(changed(trace, events=deep), "input and output as JSON objects")


@pytest.mark.parametrize("data", [b"", b"not json", b"[]", b"\xff\xfe", b'{"a": 1}'])
def test_other_files_are_refused(data: bytes) -> None:
    with elsewhere() as other, pytest.raises(InputError, match="Expected a trace"):
        import_trace(other, data, "theirs", words)


def test_a_run_that_is_not_there_cannot_go_out(store: Store) -> None:
    with pytest.raises(InputError, match="no such run"):
        export_trace(store, "none", 1.0, 6.0)


ODD: list[Any] = [None, True, -1, 10**30, 10**400, 1e308, "x", "\x00", [], [[]], {"a": 1}]
PLACES = ("statement", "given", "gave", "outcome", "label", "words", "seconds", "p", "start", "end",
          "thought", "is_over_cap")  # fmt: skip


def refusal_of(other: Store, data: bytes) -> str:
    """Why the trace is not taken; empty where it is."""
    try:
        import_trace(other, data, "theirs", words)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("place", PLACES)
def test_a_twisted_tool_use_is_taken_or_refused_in_one_sentence(trace: bytes, place: str) -> None:
    said: list[str] = []
    for odd in ODD:
        events = called(start=4, end=9)
        events[-1]["payload"]["use"][place] = odd
        with elsewhere() as other:
            said.append(refusal_of(other, changed(trace, events=events)))
    assert len(said) == len(ODD)
    assert any(said), "none of them was refused"
    assert not any("\n" in words for words in said)


def test_what_is_remembered_before_its_statement_is_refused(trace: bytes) -> None:
    start, found, entry = audited(MemoryUpdated(1.0, ENTRY))
    with elsewhere() as other, pytest.raises(InputError, match="known statements"):
        import_trace(other, changed(trace, events=[start, entry, found]), "theirs", words)
