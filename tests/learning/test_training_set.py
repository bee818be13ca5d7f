"""What is learned from, counted, and a hold-out that no order of corrections can leak into."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from core.learning import training_set as sets
from core.learning.metrics import (
    compare_balanced_accuracy,
    compute_classifier_figures,
    compute_reliability,
)
from core.learning.training_set import (
    MIN_CORRECTIONS_PER_LABEL,
    TrainingRow,
    attribute_rows,
    choose_sides,
    count_disputed,
    grow_holdout,
    load_training_set,
    summarize_corrections,
)
from core.review.adjudication import record_correction, record_gold
from core.runtime.errors import NotEnoughLabels
from core.schema.events import Event, JudgementReached, RunStarted
from core.schema.records import Judgement, Label, Plan, Project, Run
from core.schema.reviews import Correction, GoldAnswer, QueueItem
from core.store import Store
from core.store.versions import HoldoutSide
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
    assert len(load_training_set(full).fresh) == 24
    data = grow_holdout(full, 1.0)
    assert data.fresh == ()
    add_corrected(full, 24, "supported")
    later = load_training_set(full)
    assert [row.run_id for row in later.fresh] == ["r24"]
    assert later.counts() == {"hallucinated": 12, "supported": 13}
    assert later.settled.rows == data.rows


def test_others_can_write_while_rows_are_read_for_the_hold_out(
    full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process even chooses sides meanwhile: a case keeps the side that it was given."""
    collect = sets._collect_rows

    def collect_beside_others(store: Store) -> tuple[list[TrainingRow], int]:
        assert not store.db.conn.in_transaction
        rows, unusable = collect(store)
        store.versions.assign_sides({row.group: "train" for row in rows}, 0.5)
        return rows, unusable

    monkeypatch.setattr(sets, "_collect_rows", collect_beside_others)
    data = grow_holdout(full, 1.0)
    assert (len(data.train), len(data.held)) == (24, 0)


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
    data = load_training_set(full)
    assert data.unusable == 2
    assert len(data.rows) == 24


def test_what_most_people_say_of_a_case_counts_for_all_its_runs(full: Store) -> None:
    """And for all who said it; the newest answer of one person more would change nothing."""
    case = full.cases.get("c0")
    assert case
    full.runs.add(Run("again", "c0", "project", Plan(), "queued", 2.0), "me", 2.0)
    judgement = Judgement("Judge", "supported", "Another text.", p=0.2)
    with full.writing():
        events: list[Event] = [RunStarted(2.0, case, Plan(), ())]
        full.runs.append("again", "me", [*events, JudgementReached(3.0, judgement, 0.1)])
        for at, run_id, author, label in ((99.0, "r0", "Karl", LABELS[1]),
                                          (100.0, "again", "Ada", LABELS[1]),
                                          (101.0, "r0", "Lee", LABELS[0]),
                                          (102.0, "r0", "Zoe", LABELS[1])):  # fmt: skip
            said = Correction(f"k{at}", run_id, "c0", author, at, label, reason="x")
            full.corrections.add(said, case.response)
    rows = [row for row in load_training_set(full).rows if row.case_id == "c0"]
    assert {(row.run_id, row.label, row.people, row.text, row.p) for row in rows} == {
        ("r0", "supported", ("Karl", "Ada", "Zoe"), "Verdict text 0.", 0.0),
        ("again", "supported", ("Karl", "Ada", "Zoe"), "Another text.", 0.2),
    }


def test_too_few_labels_say_how_many_more(store: Store) -> None:
    store.projects.save(Project("project", "Ours", 1.0))
    for number in range(11):
        add_corrected(store, number, "hallucinated" if number < 9 else "supported")
    with pytest.raises(NotEnoughLabels, match="6 more supported") as caught:
        load_training_set(store).require_enough()
    assert caught.value.counts == {"hallucinated": 9, "supported": 2}
    assert load_training_set(store).missing() == {"supported": MIN_CORRECTIONS_PER_LABEL - 2}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("correct"), st.integers(0, 400), st.sampled_from(LABELS)),
        st.tuples(st.just("many"), st.integers(0, 400), st.sampled_from(LABELS)),
        st.tuples(st.just("withdraw"), st.integers(0, 400), st.none()),
        st.tuples(st.just("train"), st.none(), st.none()),
    ),
    min_size=1,
    max_size=40,
)


@given(STEPS)
def test_under_any_order_no_case_is_on_two_sides_and_none_ever_changes_side(steps: Any) -> None:
    """However answers come, change and are taken back, a case's first side is its side for ever."""
    sides: dict[str, HoldoutSide] = {}
    said: dict[str, Label] = {}
    for kind, number, label in steps:
        if kind == "correct":
            said[f"g{number}"] = label
        elif kind == "many":
            said |= {f"g{n}": label for n in range(number, number + 150)}
        elif kind == "withdraw":
            said.pop(f"g{number}", None)
        else:
            before = dict(sides)
            rows = [TrainingRow("t", own, group, "k", "r", "c") for group, own in said.items()]
            fresh = choose_sides(rows, sides)
            assert not set(fresh) & set(sides)
            sides |= fresh
            assert before.items() <= sides.items()
            assert set(said) <= set(sides), "a training leaves no case without a side"


def test_the_calibration_split_begins_where_it_can_say_something() -> None:
    def sides_of(each: int, known: dict[str, HoldoutSide]) -> dict[str, HoldoutSide]:
        rows = [
            TrainingRow("t", label, f"{label} {n}", "k", "r", "c")
            for label in LABELS
            for n in range(each)
        ]
        return known | choose_sides(rows, known)

    small = sides_of(100, {})
    assert set(small.values()) == {"holdout", "train"}
    grown = sides_of(200, small)
    assert small.items() <= grown.items()
    for label in LABELS:
        own = [side for group, side in grown.items() if group.startswith(label)]
        assert own.count("holdout") == 50
        assert own.count("calibration") == round(0.15 * 150)
    whole = sides_of(200, {})
    assert Counter(whole.values()) == {"holdout": 100, "calibration": 44, "train": 256}


def test_the_store_keeps_the_three_sides_apart_through_settlements_and_withdrawals(
    full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "MIN_CASES_TO_SPLIT", 6)
    first = grow_holdout(full, 1.0)
    assert len(first.calibration) == 2
    before = full.versions.sides()
    with full.writing():
        gold = GoldAnswer("gold", "c0", "Nora", 50.0, "adjudicated", "supported")
        full.golds.add(gold, "Claim number 0.")
        undo = Correction("undo", "r1", "c1", "Mira", 60.0, "supported", withdraws="k1")
        full.corrections.add(undo, "Claim number 1.")
    for number in range(24, 34):
        add_corrected(full, number, "hallucinated")
    data = grow_holdout(full, 2.0)
    groups = [{row.group for row in part} for part in (data.train, data.calibration, data.held)]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 33
    assert before.items() <= full.versions.sides().items()
    assert {row.label for row in data.rows if row.run_id == "r0"} == {"supported"}
    assert {row.people for row in data.rows} == {("Mira",), ("Nora",)}
    assert "r1" not in {row.run_id for row in data.rows}


def test_scores_of_one_class_are_not_invented() -> None:
    found = compute_classifier_figures(["supported"], [0.1])
    assert found["balanced_accuracy"] is None
    assert found["f1"] is None
    assert compute_classifier_figures([], [])["accuracy"] is None


def test_reliability_bands_hold_every_verdict_once() -> None:
    labels: list[Label] = ["hallucinated"] * 6
    bands = compute_reliability(labels, [0.5, 0.6, 0.75, 0.99, 1.0, 0.05])
    assert sum(band["n"] for band in bands) == 6
    assert [band["right"] for band in bands] == [1, 1, 1, 0, 2]


def test_figures_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(3)
    p = np.round(random.random(60), 1)
    truth = random.random(60) < p
    found = compute_classifier_figures(
        [LABELS[0] if wrong else LABELS[1] for wrong in truth], list(p)
    )
    said = (p >= 0.5).astype(int)
    wanted = {
        "n": 60,
        "accuracy": metrics.accuracy_score(truth, said),
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, said),
        "f1": metrics.f1_score(truth, said),
        "auroc": metrics.roc_auc_score(truth, p),
        "log_loss": metrics.log_loss(truth, np.clip(p, 1e-6, 1 - 1e-6)),
        "brier": metrics.brier_score_loss(truth, p),
        "always_hallucinated": truth.mean(),
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_ece_stands_beside_what_a_calibrated_classifier_shows_by_chance() -> None:
    random = np.random.default_rng(5)
    p = random.random(400)
    fair = [LABELS[0] if x < q else LABELS[1] for x, q in zip(random.random(400), p, strict=True)]
    found = compute_classifier_figures(fair, list(p))
    assert found["ece_null"]["low"] < found["ece"] < found["ece_null"]["high"]
    boastful = compute_classifier_figures(fair, list(np.where(p > 0.5, 0.99, 0.01)))
    assert boastful["ece"] > boastful["ece_null"]["high"]
    assert compute_classifier_figures([LABELS[0]] * 2, [0.9, 0.7])["ece"] == pytest.approx(0.2)


def test_a_difference_says_how_sure_it_is_and_cases_count_once() -> None:
    labels = [*LABELS] * 40
    good = [0.9 if label == "hallucinated" else 0.1 for label in labels]
    bad = [p if n % 4 else 1 - p for n, p in enumerate(good)]
    cases = [f"c{n}" for n in range(80)]
    found = compare_balanced_accuracy(labels, cases, bad, good)
    assert found is not None
    assert found["value"] == pytest.approx(0.25)
    assert 0 < found["low"] < 0.25 < found["high"]
    same = compare_balanced_accuracy(labels, cases, good, good)
    assert same == {"value": 0.0, "low": 0.0, "high": 0.0}
    together = compare_balanced_accuracy(labels, [f"c{n // 8}" for n in range(80)], bad, good)
    assert together is not None
    assert together["high"] - together["low"] != found["high"] - found["low"]
    assert compare_balanced_accuracy(["supported"], ["c"], [0.1], [0.2]) is None


@pytest.fixture
def mixed(store: Store) -> Store:
    """Two hallucinated, one supported and one unclear by Mira; one in dispute, one settled."""
    store.projects.save(Project("project", "Ours", 1.0))
    labels: tuple[Label, ...] = ("hallucinated", "hallucinated", "supported", "unclear")
    for number, label in enumerate(labels):
        add_corrected(store, number, label)
    add_corrected(store, 4, "supported")
    with store.writing():
        said = Correction("i4", "r4", "c4", "Zoe (imported)", 9.0, "hallucinated", reason="x")
        store.corrections.add(said, "Claim number 4.")
        case = store.cases.get("c0")
        assert case is not None
        store.queue.add(QueueItem("c0", "project", "r0", 1.0, "hallucinated", 0.5, 0.0, "und", 0.5))
        record_gold(store, GoldAnswer("g0", "c0", "Lea", 8.0, "adjudicated", "supported"), case)
    return store


def test_labels_are_counted_by_person_and_source(mixed: Store) -> None:
    found = summarize_corrections(mixed)
    assert found.labels == {"hallucinated": 1, "supported": 2}
    assert found.counts.by_person == {
        ("project", "Mira"): {"hallucinated": 1, "supported": 1},
        ("project", "Lea"): {"supported": 1},
    }
    assert found.counts.by_basis == {
        "single": {"hallucinated": 1, "supported": 1},
        "settled": {"supported": 1},
    }
    assert sum(sum(own.values()) for own in found.counts.by_language.values()) == 3


def test_who_agrees_is_credited_and_who_does_not_is_not(mixed: Store) -> None:
    with mixed.writing():
        said = Correction("j4", "r4", "c4", "Jon", 10.0, "supported", reason="x")
        mixed.corrections.add(said, "Claim number 4.")
    found = summarize_corrections(mixed).counts
    assert found.by_person["project", "Mira"] == {"hallucinated": 1, "supported": 2}
    assert found.by_person["project", "Jon"] == {"supported": 1}
    assert ("project", "Zoe (imported)") not in found.by_person
    assert found.by_basis["agreed"] == {"supported": 1}


def test_what_cannot_be_used_is_counted_with_why(mixed: Store) -> None:
    add_corrected(mixed, 5, "supported", judge="unclear")
    mixed.cases.add(make_case("Nobody checked this.", id="c6"), [])
    with mixed.writing():
        said = Correction("k6", None, "c6", "Mira", 1.0, "supported")
        mixed.corrections.add(said, "Nobody checked this.")
    reasons = {"unclear": 1, "no_verdict": 1, "no_run": 1, "disputed": 1}
    assert summarize_corrections(mixed).unusable == reasons


def test_the_newest_answers_come_last(mixed: Store) -> None:
    assert [one.row.correction_id for one in attribute_rows(mixed)] == ["k1", "k2", "g0"]
    assert {one.case_id: one.project_id for one in attribute_rows(mixed)}["c1"] == "project"


def test_cases_in_dispute_are_counted_by_project_and_its_rule(mixed: Store) -> None:
    assert count_disputed(mixed, "project", 10.0) == 0
    with mixed.writing():
        mixed.queue.add(QueueItem("c4", "project", "r4", 1.0, "hallucinated", 0.5, 0.0, "und", 0.5))
        case = mixed.cases.get("c4")
        assert case is not None
        record_correction(mixed, Correction("j4", "r4", "c4", "Zoe", 10.0, "supported"), case)
    assert mixed.truths.of_case("c4").basis == "agreed", "two against one"
    assert count_disputed(mixed, "project", 10.0) == 0
    with mixed.writing():
        mixed.projects.save(Project("project", "Ours", 1.0, truth_rule="unanimity"))
    assert mixed.truths.of_case("c4").state == "disputed"
    assert count_disputed(mixed, "project", 10.0) == 1
    assert count_disputed(mixed, "another", 10.0) == 0
    with mixed.writing():
        record_gold(mixed, GoldAnswer("g4", "c4", "Lea", 11.0, "adjudicated", "supported"), case)
    assert count_disputed(mixed, "project", 10.0) == 0
