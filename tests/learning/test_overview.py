"""What there is to learn from, counted by who said it, in which language, and why not."""

from __future__ import annotations

import pytest

from core.learning.overview import conflicts, overview, taught
from core.records import Label, Project
from core.review.adjudication import settle
from core.reviews import Correction, Gold, Item
from core.store import Store
from tests.fakes import make_case
from tests.learning.test_training_set import add_corrected


@pytest.fixture
def mixed(store: Store) -> Store:
    """Two hallucinated, one supported and one unclear by Mira; one imported, one settled."""
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
        store.queue.add(Item("c0", "project", "r0", 1.0, "hallucinated", 0.5, 0.0, "und", 0.5))
        settle(store, Gold("g0", "c0", "Lea", 8.0, "adjudicated", "supported"), case)
    return store


def test_labels_are_counted_by_person_and_source(mixed: Store) -> None:
    found = overview(mixed)
    assert found.labels == {"hallucinated": 2, "supported": 2}
    assert found.counts.by_person == {
        ("project", "Mira"): {"hallucinated": 1, "supported": 1},
        ("project", "Lea"): {"supported": 1},
        ("project", "Zoe (imported)"): {"hallucinated": 1},
    }
    assert found.counts.by_origin == {
        "answered": {"hallucinated": 1, "supported": 1},
        "settled": {"supported": 1},
        "imported": {"hallucinated": 1},
    }
    assert sum(sum(own.values()) for own in found.counts.by_language.values()) == 4


def test_what_cannot_be_used_is_counted_with_why(mixed: Store) -> None:
    add_corrected(mixed, 5, "supported", judge="unclear")
    mixed.cases.add(make_case("Nobody checked this.", id="c6"), [])
    with mixed.writing():
        said = Correction("k6", None, "c6", "Mira", 1.0, "supported")
        mixed.corrections.add(said, "Nobody checked this.")
    assert overview(mixed).unusable == {"unclear": 1, "no_verdict": 1, "no_run": 1}


def test_the_newest_answers_come_last(mixed: Store) -> None:
    assert [one.row.correction_id for one in taught(mixed)] == ["k1", "k2", "g0", "i4"]
    assert {one.case_id: one.project_id for one in taught(mixed)}["c1"] == "project"


def test_open_cases_on_which_people_differ_are_counted_by_project(mixed: Store) -> None:
    assert conflicts(mixed, "project", 10.0) == 0
    with mixed.writing():
        mixed.queue.add(Item("c1", "project", "r1", 1.0, "hallucinated", 0.5, 0.0, "und", 0.5))
        mixed.queue.set_differ("c1", 2)
    assert conflicts(mixed, "project", 10.0) == 1
    assert conflicts(mixed, "another", 10.0) == 0
