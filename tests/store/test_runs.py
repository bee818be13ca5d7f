"""Runs: ownership, leases, events in order, what History shows."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from core.runtime.errors import ConflictError, InputError
from core.schema.events import (
    EVENT_TYPES,
    TRANSIENT_KINDS,
    Event,
    RunFinished,
    RunResumed,
    RunStarted,
    RunStopped,
    TurnDelta,
)
from core.schema.records import Case, LibraryEntry, Plan, Project, Run, Span, Verdict
from core.schema.reviews import Correction
from core.schema.run_state import can_resume, fold_events
from core.store import Store
from core.store.runs import RunFilter, RunRow
from core.store.sqlite import event_from_json, to_json
from tests.fakes import make_case

pytestmark = pytest.mark.timing

LEASE = 6.0


@pytest.fixture
def case(store: Store) -> Case:
    """A stored case."""
    store.projects.save(Project("project", "Ours", 1.0))
    case = make_case("The tower is 512 m tall.")
    store.cases.add(case, ["tower", "512", "tall"])
    return case


def add_run(store: Store, run_id: str, owner: str = "me", at: float = 100.0) -> Run:
    run = Run(run_id, "case", "project", Plan(), "queued", at)
    store.runs.add(run, owner, at)
    return run


def finished(at: float = 105.0, label: str = "hallucinated") -> RunFinished:
    return RunFinished(at, Verdict(label, 0.9, 0.9, "because"), 5.0)  # type: ignore[arg-type]


def test_events_come_back_as_they_were_and_settle_the_run(store: Store, case: Case) -> None:
    add_run(store, "r")
    events: list[Event] = [RunStarted(100.0, case, Plan(), ()), finished()]
    with store.writing():
        store.runs.begin("r", "me", 100.0)
        assert store.runs.append("r", "me", [events[0], TurnDelta(101.0, 1, "AG"), events[1]]) == 2
    assert store.runs.events("r") == [(1, events[0]), (2, events[1])]
    assert store.runs.events("r", after=1) == [(2, events[1])]
    run = store.runs.get("r", 200.0, LEASE)
    assert run
    assert (run.status, run.label, run.confidence) == ("finished", "hallucinated", 0.9)


def test_every_durable_kind_is_known_by_its_tag() -> None:
    for kind, cls in EVENT_TYPES.items():
        assert cls.__dataclass_fields__["kind"].default == kind
        assert dataclasses.is_dataclass(cls)
    assert set(EVENT_TYPES) >= TRANSIENT_KINDS


def test_an_unknown_or_misshapen_event_is_refused() -> None:
    with pytest.raises(InputError, match="known kind of event, found “lunch_eaten”"):
        event_from_json("lunch_eaten", "{}")
    with pytest.raises(InputError, match="missing required field"):
        event_from_json("run_finished", "{}")
    good = to_json(finished())
    with pytest.raises(InputError, match="Invalid enum value"):
        event_from_json("run_finished", good.replace("hallucinated", "probably"))


def test_a_silent_process_loses_its_run_only_after_the_lease(store: Store, case: Case) -> None:
    add_run(store, "r", "dead", at=100.0)
    store.runs.begin("r", "dead", 100.0)
    store.runs.beat("dead", ["r"], 103.0)
    assert store.runs.get("r", 108.9, LEASE).status == "running"  # type: ignore[union-attr]
    with store.writing():
        assert not store.runs.take("r", "heir", 108.9, LEASE)
    assert store.runs.get("r", 109.1, LEASE).status == "interrupted"  # type: ignore[union-attr]
    with store.writing():
        assert store.runs.take("r", "heir", 109.1, LEASE)
    with pytest.raises(ConflictError, match="taken this run over"), store.writing():
        store.runs.append("r", "dead", [finished()])
    assert store.runs.events("r") == []


def test_a_finished_run_cannot_be_taken_up_again(store: Store, case: Case) -> None:
    add_run(store, "r")
    with store.writing():
        store.runs.begin("r", "me", 100.0)
        store.runs.append("r", "me", [finished()])
        assert not store.runs.take("r", "me", 200.0, LEASE)


def test_a_run_that_is_resumed_and_stopped_is_stopped_not_unclear(store: Store, case: Case) -> None:
    """The “unclear” of a service that failed was no finding: it goes as soon as the run goes on."""
    add_run(store, "r")
    verdict = Verdict("unclear", None, None, "No verdict.", "agent_failed", "It was away.")
    events: list[Event] = [RunFinished(105.0, verdict, 5.0)]
    unclear = RunFilter(label="unclear")
    with store.writing():
        store.runs.begin("r", "me", 100.0)
        store.runs.append("r", "me", events)
    assert store.runs.page("project", unclear, limit=9, offset=0, now=106.0, lease=LEASE)[1] == 1
    for ending, status in ((RunStopped(112.0, by="Mira"), "stopped"), (events[0], "finished")):
        resumed = RunResumed(110.0, "Mira")
        with store.writing():
            assert store.runs.take("r", "me", 110.0, LEASE)
            store.runs.append("r", "me", [resumed])
        run = store.runs.get("r", 110.5, LEASE)
        assert run
        assert (run.status, run.label, run.cause, run.finished_at) == ("queued", None, None, None)
        found = store.runs.page("project", unclear, limit=9, offset=0, now=110.5, lease=LEASE)
        assert found == ([], 0)
        with store.writing():
            store.runs.begin("r", "me", 111.0)
            store.runs.append("r", "me", [ending])
        events += [resumed, ending]
        run = store.runs.get("r", 113.0, LEASE)
        assert run
        assert (run.status, can_resume(run)) == (status, True)
        assert run.label == (fold_events(events).verdict.label if status == "finished" else None)  # type: ignore[union-attr]
    assert fold_events(events[:3]).verdict is None


def test_the_owner_hears_of_a_stop_asked_for_elsewhere(store: Store, case: Case) -> None:
    add_run(store, "r")
    store.runs.begin("r", "me", 100.0)
    assert store.runs.beat("me", ["r"], 101.0) == {}
    store.runs.request_stop("r", "Mira")
    assert store.runs.beat("me", ["r"], 102.0) == {"r": "Mira"}
    assert store.runs.beat("someone else", ["r"], 102.0) == {}


def test_a_run_stopped_while_queued_does_not_begin(store: Store, case: Case) -> None:
    add_run(store, "r")
    store.runs.request_stop("r", "Mira")
    assert not store.runs.begin("r", "me", 101.0)


def test_history_filters_and_counts(store: Store, case: Case) -> None:
    other = make_case("北京是中国的首都", id="other")
    store.cases.add(other, ["北京", "京是", "首都"])
    for number in range(30):
        add_run(store, f"r{number:02}", at=100.0 + number)
        with store.writing():
            store.runs.begin(f"r{number:02}", "me", 100.0)
            label = "hallucinated" if number % 3 else "supported"
            store.runs.append(f"r{number:02}", "me", [finished(200.0, label)])
    store.runs.add(Run("z", "other", "project", Plan("mad"), "queued", 500.0), "me", 500.0)

    def page(wanted: RunFilter, offset: int = 0) -> tuple[list[str], int]:
        rows, total = store.runs.page(
            "project", wanted, limit=25, offset=offset, now=501.0, lease=LEASE
        )
        return [row.run.id for row in rows], total

    ids, total = page(RunFilter())
    assert total == 31
    assert ids[:2] == ["z", "r29"]
    assert len(page(RunFilter(), offset=25)[0]) == 6
    assert page(RunFilter(label="supported"))[1] == 10
    assert page(RunFilter(protocol="mad"))[0] == ["z"]
    assert page(RunFilter(protocol="mad", label="supported"))[1] == 0
    assert page(RunFilter(protocol="ceda"))[1] == 30
    assert page(RunFilter(terms=("tow",)))[1] == 30
    assert page(RunFilter(terms=("首都",)))[0] == ["z"]
    assert page(RunFilter(status="queued"))[0] == ["z"]
    assert page(RunFilter(status="interrupted"))[1] == 0
    with store.writing():
        store.corrections.add(
            Correction("k", "r05", "case", "Mira", 300.0, "supported", reason="p. 3"), ""
        )
    assert page(RunFilter(corrected=True))[0] == ["r05"]
    assert page(RunFilter(corrected=False))[1] == 30
    assert page(RunFilter(person="Mira"))[0] == ["r05"]
    assert store.runs.people("project") == sorted({case.author, "Mira"} - {""})
    assert page(RunFilter(since=129.0, until=500.0))[0] == ["r29"]


def test_history_finds_runs_by_document_and_by_the_name_they_were_given(store: Store) -> None:
    store.projects.save(Project("project", "Ours", 1.0))
    for number, sources in enumerate(((), ("a",), ("b",))):
        case = replace(make_case("The tower", id=f"c{number}"), documents=sources[:1])
        store.cases.add(replace(case, images=("picture",) if sources == ("b",) else ()), ["tower"])
        store.runs.add(
            Run(f"r{number}", case.id, "project", Plan(), "queued", number), "me", number
        )
    store.library.add(LibraryEntry("a", "project", "a, b.pdf", "pdf", 1, "ready", "Mira", 1.0))
    with store.writing():
        store.runs.rename("r2", "Board meeting, 3rd draft")

    def page(wanted: RunFilter) -> list[RunRow]:
        return store.runs.page("project", wanted, limit=5, offset=0, now=9.0, lease=LEASE)[0]

    (found,) = page(RunFilter(document="a"))
    assert (found.run.id, found.sources) == ("r1", ("a, b.pdf",))
    assert [row.run.id for row in page(RunFilter(document="picture"))] == ["r2"]
    (named,) = page(RunFilter(terms=("board",), search="board MEETING"))
    assert (named.run.id, named.run.name) == ("r2", "Board meeting, 3rd draft")
    assert len(page(RunFilter(terms=("tow",), search="tow"))) == 3


def test_quotes_in_a_search_are_only_words(store: Store, case: Case) -> None:
    add_run(store, "r")
    wanted = RunFilter(terms=('tow"er', "OR", "NEAR("))
    rows, _ = store.runs.page("project", wanted, limit=5, offset=0, now=100.0, lease=LEASE)
    assert rows == []


def test_spans_survive_storage_in_any_script(store: Store) -> None:
    text = "👨‍👩‍👧 e\u0301tudes 北京 \U0001d4b3 العربية \r\n"
    span = Span(0, 5, text[0:5], 0.5, "contradicted", "Ada")
    event = event_from_json(
        "span_proposed",
        to_json(EVENT_TYPES["span_proposed"](1.0, span)),  # type: ignore[call-arg,arg-type]
    )
    assert event.span == span  # type: ignore[union-attr]
