"""Marks of the store change with what they are of, and with nothing else."""

from __future__ import annotations

from core.schema.events import RunFinished, RunStopped
from core.schema.records import Plan, Project, Run, Verdict
from core.schema.reviews import Correction, QueueEvent
from core.store import Store
from tests.fakes import make_case

UNREAD = Verdict("unclear", None, None, "", cause="agent_failed")


def begun(store: Store, run_id: str, at: float) -> None:
    store.runs.add(Run(run_id, "case", "project", Plan(), "queued", at), "owner", at)


def filled(store: Store) -> None:
    with store.writing():
        store.projects.save(Project("project", "House", 1.0))
        store.cases.add(make_case("A claim."), ())
        begun(store, "one", 1.0)
        begun(store, "two", 2.0)
        store.runs.append("one", "owner", [RunFinished(50.0, UNREAD, 1.0)])


def test_runs_have_another_mark_when_one_ends_or_goes_on(store: Store) -> None:
    filled(store)
    marks = [store.changes.of_runs()]
    begun(store, "three", 3.0)
    assert store.changes.of_runs() == marks[0], "a run that has not ended changes nothing"
    store.runs.append("two", "owner", [RunStopped(40.0)])  # before the newest end
    marks.append(store.changes.of_runs())
    assert store.runs.take("one", "owner", 100.0, 6.0)
    marks.append(store.changes.of_runs())
    store.runs.append("three", "owner", [RunStopped(7.0)])  # one away, one more
    marks.append(store.changes.of_runs())
    store.runs.append("one", "owner", [RunFinished(90.0, UNREAD, 1.0)])
    marks.append(store.changes.of_runs())
    assert len(set(marks)) == 5


def test_corrections_and_sides_have_marks_of_their_own(store: Store) -> None:
    filled(store)
    before = store.changes.of_corrections(), store.changes.of_holdout(), store.changes.of_runs()
    with store.writing():
        said = Correction("c", "one", "case", "Mira", 1.0, "supported")
        store.corrections.add(said, "A claim.")
    added = store.changes.of_corrections()
    assert added != before[0]
    undo = Correction("u", "one", "case", "Mira", 2.0, "supported", withdraws="c")
    store.corrections.add(undo, "A claim.")
    assert store.changes.of_corrections() not in (added, before[0])
    taken_back = store.changes.of_corrections()
    store.queue_events.add(QueueEvent("case", "Mira", 2.0, "skipped"))
    assert store.changes.of_corrections() == taken_back
    store.queue_events.add(QueueEvent("case", "Mira", 2.0, "reopened"))
    assert store.changes.of_corrections() != taken_back, "what was settled counts no more"
    assert (store.changes.of_holdout(), store.changes.of_runs()) == before[1:]
    store.versions.assign_sides({"group": "holdout"}, 3.0)
    assert store.changes.of_holdout() != before[1]
