"""What is learned from, and a hold-out that no order of corrections can leak into training."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotEnoughLabels
from core.events import Event, JudgementReached, RunStarted
from core.learning.scores import reliability, scores
from core.learning.training_set import (
    FEWEST_PER_LABEL,
    Row,
    grow_holdout,
    new_sides,
    training_set,
)
from core.records import Judgement, Label, Plan, Project, Run
from core.reviews import Correction
from core.store import Store
from tests.fakes import make_case

LABELS: tuple[Label, ...] = ("hallucinated", "supported")


def add_corrected(
    store: Store, number: int, label: Label, *, claim: str = "", judge: Label = "hallucinated"
) -> None:
    """A finished run with one correction."""
    case = make_case(claim or f"Claim number {number}.", id=f"c{number}")
    store.cases.add(case, [])
    run_id = f"r{number}"
    store.runs.add(Run(run_id, case.id, "project", Plan(), "queued", 1.0), "me", 1.0)
    judgement = Judgement("Judge", judge, f"Verdict text {number}.", p=number / 100)
    with store.writing():
        started = RunStarted(1.0, case, Plan(), ())
        events: list[Event] = [started, JudgementReached(2.0, judgement, 0.1)]
        store.runs.append(run_id, "me", events)
        store.corrections.add(
            Correction(f"k{number}", run_id, case.id, "Mira", float(number), label, reason="x"),
            case.response,
        )


@pytest.fixture
def full(store: Store) -> Store:
    """Twelve corrections of each label."""
    store.projects.save(Project("project", "Ours", 1.0))
    for number in range(24):
        add_corrected(store, number, LABELS[number % 2])
    return store


def test_a_quarter_of_each_label_is_held_out_for_good(full: Store) -> None:
    data = grow_holdout(full, 1.0)
    assert data.counts() == {"hallucinated": 12, "supported": 12}
    assert len(data.held) == 6
    assert {row.label for row in data.held} == set(LABELS)
    held = {row.group for row in data.held}
    for number in range(24, 40):
        add_corrected(full, number, LABELS[number % 2])
    grown = grow_holdout(full, 2.0)
    assert held <= {row.group for row in grown.held}
    assert len(grown.held) == 10
    assert not {row.group for row in grown.held} & {row.group for row in grown.train}


def test_what_has_no_side_yet_is_counted_but_not_learned_from(full: Store) -> None:
    """Corrected after the hold-out grew: the next training may hold it out."""
    assert len(training_set(full).fresh) == 24
    data = grow_holdout(full, 1.0)
    assert data.fresh == ()
    add_corrected(full, 24, "supported")
    later = training_set(full)
    assert [row.run_id for row in later.fresh] == ["r24"]
    assert later.counts() == {"hallucinated": 12, "supported": 13}
    assert later.settled.rows == data.rows


def test_the_hold_out_grows_over_what_its_own_transaction_reads(
    full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = full.corrections.newest_by_run
    seen: list[bool] = []

    def watched() -> list[Correction]:
        seen.append(full.db.conn.in_transaction)
        return newest()

    monkeypatch.setattr(full.corrections, "newest_by_run", watched)
    grow_holdout(full, 1.0)
    assert seen == [True]


def test_runs_of_one_case_lie_on_one_side(full: Store) -> None:
    for number in range(24, 30):
        add_corrected(full, number, "supported", claim="The same   CLAIM.")
    data = grow_holdout(full, 1.0)
    sides = [row in data.held for row in data.rows if row.claim == "The same   CLAIM."]
    assert len(sides) == 6
    assert len(set(sides)) == 1


def test_unclear_is_never_learned_from(full: Store) -> None:
    add_corrected(full, 50, "unclear")
    add_corrected(full, 51, "supported", judge="unclear")
    data = training_set(full)
    assert data.unusable == 2
    assert len(data.rows) == 24


def test_the_judges_own_probability_comes_with_its_text(full: Store) -> None:
    assert {row.run_id: row.p for row in training_set(full).rows}["r7"] == 0.07


def test_the_newest_correction_of_a_run_counts(full: Store) -> None:
    with full.writing():
        full.corrections.add(
            Correction("later", "r0", "c0", "Karl", 99.0, "supported", reason="y"), ""
        )
    labels = {row.run_id: row.label for row in training_set(full).rows}
    assert labels["r0"] == "supported"


def test_too_few_labels_say_how_many_more(store: Store) -> None:
    store.projects.save(Project("project", "Ours", 1.0))
    for number in range(11):
        add_corrected(store, number, "hallucinated" if number < 9 else "supported")
    with pytest.raises(NotEnoughLabels, match="6 more supported") as caught:
        training_set(store).require_enough()
    assert caught.value.counts == {"hallucinated": 9, "supported": 2}
    assert training_set(store).missing() == {"supported": FEWEST_PER_LABEL - 2}


groups = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(LABELS)), min_size=1, max_size=80)


@given(groups, st.integers(1, 10))
def test_under_any_order_hold_out_and_training_share_no_case(
    arrivals: list[tuple[int, Label]], step: int
) -> None:
    """However corrections arrive, a case's first side is its side for ever."""
    sides: dict[str, bool] = {}
    seen: list[Row] = []
    for batch in itertools.batched(arrivals, step) if hasattr(itertools, "batched") else [arrivals]:
        seen += [Row("t", label, f"g{group}", "k", "r", "c") for group, label in batch]
        fresh = new_sides(seen, sides)
        assert not set(fresh) & set(sides)
        sides |= fresh
    assert set(sides) == {row.group for row in seen}
    train = {row.group for row in seen if not sides[row.group]}
    held = {row.group for row in seen if sides[row.group]}
    assert not train & held


def test_scores_count_as_the_textbook_does() -> None:
    labels: list[Label] = ["hallucinated", "hallucinated", "supported", "supported", "supported"]
    found = scores(labels, [0.9, 0.4, 0.6, 0.1, 0.2])
    assert found["n"] == 5
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["balanced_accuracy"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found["f1"] == pytest.approx(2 * 1 / (2 * 1 + 1 + 1))
    assert found["always_hallucinated"] == pytest.approx(2 / 5)
    assert found["brier"] == pytest.approx((0.01 + 0.36 + 0.36 + 0.01 + 0.04) / 5)


def test_scores_of_one_class_are_not_invented() -> None:
    found = scores(["supported"], [0.1])
    assert found["balanced_accuracy"] is None
    assert found["f1"] is None
    assert scores([], [])["accuracy"] is None


def test_reliability_bands_hold_every_verdict_once() -> None:
    labels: list[Label] = ["hallucinated"] * 6
    bands = reliability(labels, [0.5, 0.6, 0.75, 0.99, 1.0, 0.05])
    assert sum(band["n"] for band in bands) == 6
    assert [band["right"] for band in bands] == [1, 1, 1, 0, 2]
