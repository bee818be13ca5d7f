"""A finished check comes to the review queue, and says how much an answer would teach."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.agent_answers import collect_agent_answers
from core.llm.encoder import Matrix
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.review.queue_ranking import (
    CHECK_INTERVAL_SECONDS,
    MIN_WAITING,
    QueueRanker,
    build_item,
    collect_stances,
    enqueue_run,
    fill_queue,
    measure_disagreement,
    try_enqueue,
)
from core.runtime.concurrency import StopSignal
from core.schema.events import LabelPredicted
from core.schema.records import Judgement, Plan, Project, ReaderStance, Run, Stance, Turn, Verdict
from core.schema.reviews import QueueItem
from core.schema.run_state import RunState
from core.store import Store, open_store
from core.store.queue_order import (
    CRITERION_SHARES,
    PRIORITY_BONUS,
    RANDOM_REASON,
    compute_unsureness,
    compute_worth,
    explain_item,
)
from core.store.review_queue import NO_ITEM_FILTER, QueueRules
from tests.fakes import FakeEmbedder, make_case
from tests.soak import often

pytestmark = [pytest.mark.timing, pytest.mark.usefixtures("without_weights")]


def said(*stances: Stance) -> list[Turn]:
    return [
        Turn(f"D{n}", f"D{n}", n, 1, "agree", stance, "Words.") for n, stance in enumerate(stances)
    ]


def judged(*readers: tuple[int, Stance]) -> Judgement:
    views = tuple(ReaderStance(f"R{n}", index, stance) for n, (index, stance) in enumerate(readers))
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
    progress = RunState(turns=said(*turns), judgement=judged(*readers))
    assert measure_disagreement(progress) == pytest.approx(apart, abs=1e-3)


def test_a_debaters_last_word_counts() -> None:
    first, second = said("supported", "hallucinated")
    changed = Turn("D0", "D0", 3, 2, "agree", "hallucinated", "Words.")
    assert measure_disagreement(RunState(turns=[first, second, changed])) == 0.0


def test_a_side_that_was_assigned_is_nobodys_opinion() -> None:
    """CopMAD has two debaters call a claim right and wrong because they were told to."""
    assigned = [replace(turn, assigned=turn.stance) for turn in said("supported", "hallucinated")]
    progress = RunState(turns=assigned, judgement=judged())
    assert measure_disagreement(progress) == 0.0
    assert collect_stances(progress) == (("Judge", "unclear"),)
    heard, opening, opener = collect_agent_answers(progress)
    assert ([agent.name for agent in heard], opening, opener) == (["Judge"], {}, None)


@pytest.mark.parametrize(
    ("p", "unsure"), [(0.5, 1.0), (1.0, 0.0), (0.0, 0.0), (0.25, 0.5), (None, 0.25)]
)
def test_the_unsure_teaches_most(p: float | None, unsure: float) -> None:
    run = Run("r", "case", "project", Plan(), "finished", 1.0, p_hallucinated=p, finished_at=2.0)
    item = build_item(run, make_case("A claim."), RunState())
    assert item.teaches == pytest.approx(CRITERION_SHARES.unsure * unsure)
    assert CRITERION_SHARES.unsure > 0.0
    assert (item.added_at, item.language, item.label) == (2.0, "en", "")


def checked(store: Store, jobs: JobRunner, claim: str) -> str:
    project = ensure_project(store, "Mira", 1.0)
    with store.writing():
        case = store_case(store, project, CaseDraft(claim), "Mira", 1.0)
        run_id = jobs.queue(store, case, Plan())
    jobs.submit(store, [run_id], jobs.payer("Mira", {}))
    assert jobs.wait(run_id, 60)
    return run_id


def test_a_run_that_finishes_is_in_the_queue(home: Path) -> None:
    jobs = JobRunner(home)
    with open_store(home) as store:
        run_id = checked(store, jobs, "Cats are mammals.")
        (item,), _ = store.queue.page(
            ensure_project(store, "Mira", 1.0).id,
            NO_ITEM_FILTER,
            ["open"],
            limit=5,
            offset=0,
            now=9.0,
        )
        assert (item.run_id, item.label) == (run_id, "unclear")


def test_what_the_queue_missed_is_filled_in_with_each_cases_newest_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("core.pipeline.jobs.try_enqueue", lambda *_: None)
        jobs = JobRunner(home)
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
        project = ensure_project(store, "Mira", 1.0)
        assert fill_queue(store, project.id, 9.0, most=1) == 1
        assert fill_queue(store, project.id, 9.0) == 1
        assert fill_queue(store, project.id, 9.0) == 0
        items, total = store.queue.page(
            project.id, NO_ITEM_FILTER, ["open"], limit=5, offset=0, now=9.0
        )
        assert total == 2
        assert {item.run_id for item in items} == {again, runs[1]}


def test_a_later_run_that_decides_nothing_leaves_the_verdict_in_the_queue(home: Path) -> None:
    jobs = JobRunner(home)
    with open_store(home) as store:
        first = checked(store, jobs, "Cats are mammals.")
        run = store.runs.get(first, 2.0, 60.0)
        assert run is not None
        decided = LabelPredicted(3.0, Verdict("hallucinated", 0.8, 0.8, "So."))
        store.runs.append(first, None, [decided])
        assert enqueue_run(store, first, 3.0)
        case = store.cases.get(run.case_id)
        assert case is not None
        with store.writing():
            again = jobs.queue(store, case, Plan())
        jobs.submit(store, [again], jobs.payer("Mira", {}))
        assert jobs.wait(again, 60)
        item = store.queue.get(case.id)
        assert item is not None
        assert (item.run_id, item.label) == (first, "hallucinated")
        assert fill_queue(store, run.project_id, 9.0) == 0


def test_a_queue_that_cannot_be_written_does_not_undo_a_verdict(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("core.review.queue_ranking.enqueue_run", locked)
    jobs = JobRunner(home)
    with open_store(home) as store:
        run_id = checked(store, jobs, "Cats are mammals.")
        run = store.runs.get(run_id, 9.0, 60.0)
        assert run is not None
        assert run.status == "finished"
        try_enqueue(store, run_id, 9.0)


PROJECT = "p" * 32
ONE = QueueRules(people=1, seconds=1000.0)
SIZE = MIN_WAITING + 4
COPIES = SIZE - 4  # then four that are unlike them and each other
MORE = " and still it is said to be very tall by all who have seen it" * 3
OTHERS = ("Rivers flow north.", "Bees make honey.", "Iron rusts slowly.", "Songs were sung.")


class Clock:
    """A time that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Counting(FakeEmbedder):
    """Counts the texts that it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
        assert self.gate.wait(20)
        self.texts += texts
        return super().encode(texts, stop)


def put(store: Store, n: int, text: str, p: float, apart: float = 0.0) -> None:
    case = replace(make_case(text), id=f"case{n:03}", project_id=PROJECT)
    store.cases.add(case, ())
    told = compute_worth(compute_unsureness(p), apart)
    item = QueueItem(case.id, PROJECT, None, float(n), "hallucinated", p, apart, "en", told)
    store.queue.add(item, lot=((n * 7919) % 1000) / 1000)


def filled(store: Store) -> Store:
    """Near copies of which each is a little less sure than the next, then four other texts."""
    with store.writing():
        store.projects.save(Project(PROJECT, "House", 1.0))
        for n in range(COPIES):
            put(store, n, f"The tower is {n} m tall{MORE}.", 0.5 + n / 1000)
        for n, text in enumerate(OTHERS, COPIES):
            put(store, n, text, 0.55)
    return store


@pytest.fixture
def store() -> Store:
    return filled(open_store(None))


def order(store: Store) -> list[str]:
    items, _ = store.queue.page(PROJECT, NO_ITEM_FILTER, ["open"], limit=99, offset=0, now=0.0)
    return [item.case_id for item in items]


def reordering(home: Path = Path("nowhere")) -> tuple[QueueRanker, Counting, Clock]:
    encoder, clock = Counting(), Clock()
    return QueueRanker(home, lambda: encoder, clock), encoder, clock


def test_near_copies_no_longer_come_one_after_the_other(store: Store) -> None:
    others = {f"case{n:03}" for n in range(COPIES, SIZE)}
    assert not others & set(order(store)[:COPIES])
    assert reordering()[0].refresh(store, PROJECT, 1) == SIZE
    assert order(store)[0] == "case000", "the least sure still comes first"
    assert others <= set(order(store)[:6])
    copy = store.queue.get(order(store)[-1])
    assert copy is not None
    assert explain_item(copy).endswith(", much like another")
    item = store.queue.get(order(store)[1])
    assert item is not None
    assert explain_item(item).endswith(", unlike any answered")


def test_a_claim_follows_the_order_and_a_random_draw_does_not(store: Store) -> None:
    reordering()[0].refresh(store, PROJECT, 1)
    with store.writing():
        best = store.queue.claim(PROJECT, "Mira", ONE, 0.0)
        drawn = store.queue.claim(PROJECT, "Karl", ONE, 0.0, is_random=True)
    assert best is not None
    assert drawn is not None
    assert best.case_id == order(store)[0]
    lots = {n: (n * 7919) % 1000 for n in range(1, SIZE)}
    assert drawn.case_id == f"case{min(lots, key=lambda n: lots[n]):03}"
    assert drawn.why == RANDOM_REASON


def answer(store: Store, case_id: str) -> None:
    with store.writing():
        store.queue.take(case_id, "Mira", ONE, 0.0)
        store.queue.end(case_id, "Mira", "submitted", 1.0)


def test_what_is_like_an_answer_moves_down(store: Store) -> None:
    ours = reordering()[0]
    ours.refresh(store, PROJECT, 1)
    answer(store, "case000")
    with store.writing():
        put(store, 90, "Bees make honey.", 0.55)
    answer(store, "case090")
    ours.refresh(store, PROJECT, 1)
    bees = f"case{COPIES + 1:03}"
    assert set(order(store)[:3]) == {f"case{n:03}" for n in (COPIES, COPIES + 2, COPIES + 3)}
    item = store.queue.get(bees)
    assert item is not None
    assert item.teaches == pytest.approx(0.0, abs=1e-5)
    assert "much like another" in explain_item(item)


def test_a_text_is_read_once(store: Store) -> None:
    ours, encoder, _ = reordering()
    ours.refresh(store, PROJECT, 1)
    answer(store, "case000")
    ours.refresh(store, PROJECT, 1)
    assert len(encoder.texts) == SIZE


def test_what_a_rule_puts_first_stays_first(store: Store) -> None:
    item = store.queue.get("case005")
    assert item is not None
    with store.writing():
        store.queue.add(
            replace(
                item, p=0.99, teaches=PRIORITY_BONUS + compute_worth(compute_unsureness(0.99), 0.0)
            )
        )
    reordering()[0].refresh(store, PROJECT, 1)
    assert order(store)[0] == "case005"
    ruled = store.queue.get("case005")
    assert ruled is not None
    assert PRIORITY_BONUS <= ruled.teaches <= PRIORITY_BONUS + 1.0


def test_only_the_items_that_teach_most_are_read_and_what_was_moved_up_goes_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reordering()[0].refresh(store, PROJECT, 1)
    monkeypatch.setattr("core.review.queue_ranking.MAX_RANKED", MIN_WAITING)
    monkeypatch.setattr("core.review.queue_ranking.RESET_BATCH", 2)
    ours, encoder, _ = reordering()
    assert ours.refresh(store, PROJECT, 1) == MIN_WAITING
    assert all(text.startswith("The tower") for text in encoder.texts)
    for n in range(COPIES, SIZE):
        item = store.queue.get(f"case{n:03}")
        assert item is not None
        assert item.teaches == pytest.approx(compute_worth(compute_unsureness(0.55), 0.0), abs=1e-5)


def test_a_short_queue_needs_no_encoder(store: Store) -> None:
    for n in range(SIZE - MIN_WAITING + 1):
        answer(store, f"case{n:03}")
    ours, encoder, _ = reordering()
    assert not ours.ask(store, PROJECT, 1)
    assert ours.refresh(store, PROJECT, 1) == 0
    assert not encoder.texts


def test_nobody_waits_for_the_order_and_it_is_looked_at_only_when_something_changed(
    home: Path,
) -> None:
    with filled(open_store(home)) as store:
        ours, encoder, clock = reordering(home)
        encoder.gate.clear()
        assert ours.ask(store, PROJECT, 1)
        assert not ours.ask(store, PROJECT, 1), "just begun"
        clock.now += CHECK_INTERVAL_SECONDS
        assert not ours.ask(store, PROJECT, 2), "still under way"
        encoder.gate.set()
        assert ours.wait(20)
        assert order(store)[1] in {f"case{n:03}" for n in range(COPIES, SIZE)}
        clock.now += CHECK_INTERVAL_SECONDS
        assert not ours.ask(store, PROJECT, 1), "nothing has changed"
        clock.now += CHECK_INTERVAL_SECONDS
        assert ours.ask(store, PROJECT, 2), "more people are to answer each item"
        assert ours.wait(20)
        assert len(encoder.texts) == SIZE


def test_an_order_that_cannot_be_worked_out_is_tried_again(home: Path) -> None:
    with filled(open_store(home)) as store:
        ours, encoder, _ = reordering(home / "gone")
        (home / "gone").write_text("no folder")
        assert ours.ask(store, PROJECT, 1)
        assert ours.wait(20)
        assert ours.ask(store, PROJECT, 1)
        assert ours.wait(20)
        assert not encoder.texts


def test_looking_for_what_teaches_most_reads_no_other_projects_items(store: Store) -> None:
    asked: list[str] = []
    store.db.conn.set_trace_callback(asked.append)
    reordering()[0].refresh(store, PROJECT, 1)
    store.queue_order.has(PROJECT, 1, MIN_WAITING)
    store.db.conn.set_trace_callback(None)
    looked = [one for one in asked if " items " in one and one.lstrip().startswith(("SEL", "UPD"))]
    assert len(looked) >= 4
    for statement in set(looked):
        for *_, step in store.db.conn.execute(f"EXPLAIN QUERY PLAN {statement}"):
            assert not step.startswith(("SCAN items", "SCAN cases")), statement


WORK = st.lists(
    st.tuples(
        st.sampled_from(("Mira", "Karl", "Ida")),
        st.sampled_from(("claim", "submitted", "skipped", "flagged", "settled", "order")),
    ),
    max_size=30,
)


@given(WORK)
@settings(max_examples=often(20, 500), deadline=None)
def test_a_new_order_changes_nobodys_work_and_loses_no_item(work: list[tuple[str, str]]) -> None:
    store = filled(open_store(None))
    ours, now = reordering()[0], 0.0
    for person, what in work:
        now += 1.0
        held = store.queue.in_hand(PROJECT, person, now)
        with store.writing():
            if what == "claim":
                store.queue.claim(PROJECT, person, ONE, now)
            elif what == "settled" and held:
                store.queue.set_state(held.case_id, "adjudicated")
            elif what not in ("order", "settled") and held:
                store.queue.end(held.case_id, person, what, now)  # type: ignore[arg-type]
        if what == "order":
            before = snapshot(store)
            ours.refresh(store, PROJECT, 1)
            assert snapshot(store) == before
    store.close()


def snapshot(store: Store) -> list[object]:
    """Everything about the queue but what its items teach."""
    items = [store.queue.get(f"case{n:03}") for n in range(SIZE)]
    people = [store.queue.people_of(f"case{n:03}") for n in range(SIZE)]
    assert all(item is not None and 0.0 <= item.teaches <= 1.0 for item in items)
    return [[replace(item, teaches=0.0) for item in items if item], people, CRITERION_SHARES]
