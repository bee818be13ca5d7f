"""The expected time grows with the text, and comes from what was measured on this computer."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from core.estimate import PER_IMAGE_SECONDS, PER_MEGABYTE_SECONDS, expected_seconds
from core.events import DocumentRead, Event, RunFinished, RunResumed, RunStarted, StepsReused
from core.records import LibraryEntry, Plan, Project, Run, Verdict
from core.store import Store
from tests.fakes import make_case

VERDICT = Verdict("supported", 0.1, 0.9, "It is right.")


@pytest.fixture
def shelf(store: Store) -> Store:
    """A store with a project."""
    store.projects.save(Project("project", "Ours", 1.0))
    return store


def add_run(
    store: Store,
    number: int,
    characters: int,
    seconds: float,
    *,
    reading: float = 0.0,
    extra: Event | None = None,
    origin: str = "here",
    roster: str = "builtin",
) -> None:
    """A finished run over a text of that length; it waited and read before it began to search."""
    case = make_case("x" * characters, id=f"c{number}")
    store.cases.add(case, [])
    plan = Plan(roster=roster)
    at = 100.0 * number
    run = Run(f"r{number}", case.id, "project", plan, "queued", at, origin=origin)  # type: ignore[arg-type]
    store.runs.add(run, "me", at)
    began = at + 10.0
    end = began + reading + seconds
    events: list[Event] = [
        RunStarted(began, case, plan, ()),
        DocumentRead(began + reading, "d", "facts.txt", (), 24, reading, False),
        *([extra] if extra else []),
        RunFinished(end, VERDICT, reading + seconds),
    ]
    with store.writing():
        store.runs.append(run.id, "me", events)


def entry(kind: str = "pdf", size: int = 2_000_000, status: str = "waiting") -> LibraryEntry:
    return LibraryEntry("d", "project", "d.pdf", kind, size, status, "Mira", 1.0)  # type: ignore[arg-type]


def test_a_longer_text_takes_longer(shelf: Store) -> None:
    short, long = (expected_seconds(shelf, [], count) for count in (70, 60_000))
    assert short < 1.0
    assert 30.0 < long < 120.0


@pytest.mark.parametrize("pace", [0.25, 1.0, 4.0])
def test_the_pace_is_that_of_the_newest_runs_here(shelf: Store, pace: float) -> None:
    lengths = [70, 700, 7_000]
    before = [expected_seconds(shelf, [], count) for count in lengths]
    for number, (count, usual) in enumerate(zip(lengths, before, strict=True), start=1):
        add_run(shelf, number, count, pace * usual)
    after = [expected_seconds(shelf, [], count) for count in lengths]
    assert after == pytest.approx([pace * usual for usual in before])


def test_waiting_and_reading_are_not_the_texts_time(shelf: Store) -> None:
    usual = expected_seconds(shelf, [], 700)
    add_run(shelf, 1, 700, usual, reading=60.0)
    assert expected_seconds(shelf, [], 700) == pytest.approx(usual)


@pytest.mark.parametrize("extra", [StepsReused(1.0, "r0", "judgement"), RunResumed(1.0, "Mira")])
def test_runs_that_were_no_whole_checks_say_nothing(shelf: Store, extra: Event) -> None:
    usual = expected_seconds(shelf, [], 700)
    add_run(shelf, 1, 700, 50.0, extra=extra)
    assert expected_seconds(shelf, [], 700) == usual


def test_runs_of_elsewhere_or_of_another_roster_say_nothing(shelf: Store) -> None:
    usual = expected_seconds(shelf, [], 700)
    add_run(shelf, 1, 700, 50.0, origin="imported")
    add_run(shelf, 2, 700, 50.0, roster="other")
    assert expected_seconds(shelf, [], 700) == usual
    assert expected_seconds(shelf, [], 700, "other") == pytest.approx(50.0)


def test_only_what_is_not_read_yet_is_added(shelf: Store) -> None:
    base = expected_seconds(shelf, [], 70)
    assert expected_seconds(shelf, [entry(status="ready")], 70) == base
    document = expected_seconds(shelf, [entry()], 70) - base
    assert document == pytest.approx(2 * PER_MEGABYTE_SECONDS)
    image = expected_seconds(shelf, [entry("image", status="reading")], 70) - base
    assert image == pytest.approx(PER_IMAGE_SECONDS)


def steps_of(store: Store, work: Callable[[], object]) -> int:
    """How many hundreds of steps the database takes for that work."""
    count = itertools.count()
    store.db.conn.set_progress_handler(lambda: next(count) and None, 100)
    work()
    store.db.conn.set_progress_handler(None, 0)
    return next(count)


def test_it_stays_quick_with_many_runs(shelf: Store) -> None:
    """New check says it at every redraw: of a hundred times as many, few are looked into."""
    steps = {}
    for number in range(2_000):
        add_run(shelf, number, 70, 0.5)
        if number + 1 in (20, 2_000):
            steps[number + 1] = steps_of(shelf, lambda: expected_seconds(shelf, [], 70))
    assert steps[2_000] < 50 * steps[20]
