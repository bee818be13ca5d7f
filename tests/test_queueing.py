"""A finished check comes to the review queue, and says how much an answer would teach."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from core.learning.reasoning import said_in
from core.pipeline.jobs import Jobs
from core.pipeline.streaming_input import Draft, store_case
from core.review.people import first_project
from core.review.queue_ranking import disagreement, fill, item_of, offer, stances
from core.schema.progress import Progress
from core.schema.records import Judgement, Plan, ReaderView, Run, Stance, Turn
from core.store import Store, open_store
from core.store.queue import EVERYTHING, SHARES
from tests.fakes import make_case

pytestmark = pytest.mark.usefixtures("without_weights")


def said(*stances: Stance) -> list[Turn]:
    return [
        Turn(f"D{n}", f"D{n}", n, 1, "agree", stance, "Words.") for n, stance in enumerate(stances)
    ]


def judged(*readers: tuple[int, Stance]) -> Judgement:
    views = tuple(ReaderView(f"R{n}", index, stance) for n, (index, stance) in enumerate(readers))
    return Judgement("Judge", "unclear", "Words.", readers=views)


@pytest.mark.parametrize(
    ("turns", "readers", "apart"),
    [
        ((), (), 0.0),
        (("supported",), (), 0.0),
        (("supported", "supported"), (), 0.0),
        (("supported", "hallucinated"), (), 1.0),
        (("supported", "supported", "unclear"), (), 0.579),  # entropy of a third and two thirds
        ((), ((0, "supported"), (0, "hallucinated"), (1, "unclear"), (1, "unclear")), 0.5),
        (("supported", "supported"), ((0, "supported"), (0, "unclear")), 1.0),
    ],
)
def test_how_far_agents_are_apart(
    turns: tuple[Stance, ...], readers: tuple[tuple[int, Stance], ...], apart: float
) -> None:
    progress = Progress(turns=said(*turns), judgement=judged(*readers))
    assert disagreement(progress) == pytest.approx(apart, abs=1e-3)


def test_a_debaters_last_word_counts() -> None:
    first, second = said("supported", "hallucinated")
    changed = Turn("D0", "D0", 3, 2, "agree", "hallucinated", "Words.")
    assert disagreement(Progress(turns=[first, second, changed])) == 0.0


def test_a_side_that_was_assigned_is_nobodys_opinion() -> None:
    """CopMAD has two debaters call a claim right and wrong because they were told to."""
    assigned = [replace(turn, assigned=turn.stance) for turn in said("supported", "hallucinated")]
    progress = Progress(turns=assigned, judgement=judged())
    assert disagreement(progress) == 0.0
    assert stances(progress) == (("Judge", "unclear"),)
    heard, opening, opener = said_in(progress)
    assert ([agent.name for agent in heard], opening, opener) == (["Judge"], {}, None)


@pytest.mark.parametrize(
    ("p", "unsure"), [(0.5, 1.0), (1.0, 0.0), (0.0, 0.0), (0.25, 0.5), (None, 0.25)]
)
def test_the_unsure_teaches_most(p: float | None, unsure: float) -> None:
    run = Run("r", "case", "project", Plan(), "finished", 1.0, p_hallucinated=p, finished_at=2.0)
    item = item_of(run, make_case("A claim."), Progress())
    assert item.teaches == pytest.approx(SHARES.unsure * unsure)
    assert SHARES.unsure > 0.0
    assert (item.added_at, item.language, item.label) == (2.0, "en", "")


def checked(store: Store, jobs: Jobs, claim: str) -> str:
    project = first_project(store, "Mira", 1.0)
    with store.writing():
        case = store_case(store, project, Draft(claim), "Mira", 1.0)
        run_id = jobs.queue(store, case, Plan())
    jobs.submit(store, [run_id], jobs.payer("Mira", {}))
    assert jobs.wait(run_id, 60)
    return run_id


def test_a_run_that_finishes_is_in_the_queue(home: Path) -> None:
    jobs = Jobs(home)
    with open_store(home) as store:
        run_id = checked(store, jobs, "Cats are mammals.")
        (item,), _ = store.queue.page(
            first_project(store, "Mira", 1.0).id, EVERYTHING, ["open"], limit=5, offset=0, now=9.0
        )
        assert (item.run_id, item.label) == (run_id, "unclear")


def test_what_the_queue_missed_is_filled_in_with_each_cases_newest_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("core.pipeline.jobs.offer", lambda *_: None)
        jobs = Jobs(home)
        with open_store(home) as store:
            runs = [checked(store, jobs, claim) for claim in ("One is one.", "Two is two.")]
            first = store.runs.get(runs[0], 2.0, 60.0)
            assert first is not None
            case = store.cases.get(first.case_id)
            assert case is not None
            with store.writing():
                again = jobs.queue(store, case, Plan())
            jobs.submit(store, [again], jobs.payer("Mira", {}))
            assert jobs.wait(again, 60)
    with open_store(home) as store:
        project = first_project(store, "Mira", 1.0)
        assert fill(store, project.id, 9.0, most=1) == 1
        assert fill(store, project.id, 9.0) == 1
        assert fill(store, project.id, 9.0) == 0
        items, total = store.queue.page(
            project.id, EVERYTHING, ["open"], limit=5, offset=0, now=9.0
        )
        assert total == 2
        assert {item.run_id for item in items} == {again, runs[1]}


def test_a_queue_that_cannot_be_written_does_not_undo_a_verdict(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("core.review.queue_ranking.enqueue", locked)
    jobs = Jobs(home)
    with open_store(home) as store:
        run_id = checked(store, jobs, "Cats are mammals.")
        run = store.runs.get(run_id, 9.0, 60.0)
        assert run is not None
        assert run.status == "finished"
        offer(store, run_id, 9.0)
