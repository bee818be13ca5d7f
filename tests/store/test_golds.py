"""Golds and suggestions are appended, of each the newest counts; undone answers are not lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.review.answer_versions import list_versions
from core.exchange.exporter import build_row
from core.exchange.importer import convert_labels_to_suggestions
from core.review.adjudication import load_decided_cases
from core.runtime.errors import ConflictError, InputError
from core.schema.records import Project, Span
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Ratings, Suggestion
from core.schema.run_state import RunState
from core.store import Store, open_store
from tests.fakes import make_case

RESPONSE = "The 👩‍👩‍👧 bridge is 512 m long."
PROJECT = "p" * 32
AT = RESPONSE.index("512")
SPAN = Span(AT, AT + 3, "512", 1.0, "number_or_date", "Mira")
CASE = replace(make_case(RESPONSE), id="case", project_id=PROJECT)


@pytest.fixture
def store() -> Store:
    store = open_store(None)
    with store.writing():
        store.projects.save(Project(PROJECT, "House", 1.0))
        store.cases.add(CASE, ())
    return store


def answer(number: int, author: str = "Mira", **changes: object) -> Correction:
    said = Correction(f"k{number}", None, "case", author, float(number), "hallucinated", (SPAN,))
    return replace(said, **changes)  # type: ignore[arg-type]


def test_the_newest_gold_counts_and_earlier_ones_stay(store: Store) -> None:
    first = GoldAnswer("g1", "case", "a public set", 1.0, "imported", "hallucinated", (SPAN,))
    second = replace(
        first, id="g2", author="Lena", origin="corrected", label="supported", spans=(), reason="512"
    )
    with store.writing():
        store.golds.add(first, RESPONSE)
        store.golds.add(second, RESPONSE)
    assert store.golds.of_case("case") == [first, second]
    assert store.golds.that_counts("case") == second
    assert store.golds.that_counts("another") is None


def test_what_comes_in_later_does_not_overrule_what_was_settled(store: Store) -> None:
    old = GoldAnswer("g1", "case", "a set", 1.0, "imported", "hallucinated")
    settled = replace(old, id="g2", author="Lena", origin="adjudicated", label="supported")
    new = replace(old, id="g3", at=9.0)
    with store.writing():
        store.golds.add(old, RESPONSE)
        store.golds.add(replace(old, id="g0"), RESPONSE)
    assert store.golds.that_counts("case") == replace(old, id="g0")
    with store.writing():
        store.golds.add(settled, RESPONSE)
        store.golds.add(new, RESPONSE)
    assert store.golds.that_counts("case") == settled
    (found,) = load_decided_cases(store, [CASE], "Mira", is_same=True)
    assert (found.truth.basis, found.truth.records) == ("settled", (settled,))
    assert list_versions(store, CASE, RunState())[-1].label == "supported"
    row = build_row(store, CASE, Project(PROJECT, "Ours", 1.0))
    assert row.truth.records == (settled,)
    assert [one.label for one in convert_labels_to_suggestions(row, "bot")] == ["supported"]


def test_a_gold_is_corrected_with_a_reason_and_with_words_that_stand_there(store: Store) -> None:
    gold = GoldAnswer("g", "case", "Lena", 1.0, "corrected", "supported")
    with store.writing(), pytest.raises(InputError, match="takes a reason"):
        store.golds.add(gold, RESPONSE)
    moved = replace(gold, origin="imported", spans=(replace(SPAN, start=AT + 1, end=AT + 4),))
    with store.writing(), pytest.raises(InputError, match="are not at characters"):
        store.golds.add(moved, RESPONSE)
    assert store.golds.of_case("case") == []


def test_of_each_agent_the_newest_suggestion_counts(store: Store) -> None:
    old = Suggestion("s1", "case", "B", 1.0, "supported", 0.2)
    new = replace(old, id="s2", label="hallucinated", p=0.9, spans=(SPAN,))
    other = replace(old, id="s3", agent="A")
    with store.writing():
        for suggestion in (old, new, other):
            store.golds.suggest(suggestion, CASE)
    assert store.golds.suggestions("case") == [other, new]


def test_what_is_taken_back_counts_no_more_and_shows_in_the_history(store: Store) -> None:
    first, second = answer(1), answer(2, label="supported", spans=())
    undo = answer(3, withdraws="k2", spans=())
    with store.writing():
        for said in (first, second, undo):
            store.corrections.add(said, RESPONSE)
    assert store.corrections.of_case("case") == [first]
    assert store.corrections.newest_of_case("case") == [first]
    assert store.corrections.newest_by_person(PROJECT) == [first]
    assert store.corrections.history("case") == [first, second, undo]
    assert (
        store.corrections.newest_id("case") == store.corrections.newest_id("case", "Mira") == "k3"
    )
    assert store.corrections.newest_id("case", "Karl") == ""


def test_nobody_takes_back_another_persons_answer_or_one_twice(store: Store) -> None:
    with store.writing():
        store.corrections.add(answer(1), RESPONSE)
    with store.writing(), pytest.raises(ConflictError, match="Only Mira"):
        store.corrections.add(answer(2, "Karl", withdraws="k1"), RESPONSE)
    with store.writing():
        store.corrections.add(answer(3, withdraws="k1"), RESPONSE)
    with store.writing(), pytest.raises(ConflictError, match="taken back before"):
        store.corrections.add(answer(4, withdraws="k1"), RESPONSE)
    assert len(store.corrections.history("case")) == 2


@pytest.mark.parametrize(
    "changes", [{"ratings": Ratings(accuracy=6)}, {"ratings": Ratings(coherence=0)}, {"sure": 1.5}]
)
def test_ratings_outside_of_their_range_are_refused(
    store: Store, changes: dict[str, object]
) -> None:
    with store.writing(), pytest.raises(InputError, match="Expected"):
        store.corrections.add(replace(answer(1), **changes), RESPONSE)  # type: ignore[arg-type]
    assert store.corrections.history("case") == []


def test_handlings_are_a_log(store: Store) -> None:
    first = QueueEvent("case", "Mira", 1.0, "flagged", "two readings")
    second = QueueEvent("case", "Lena", 2.0, "adjudicated")
    with store.writing():
        store.queue_events.add(first)
        store.queue_events.add(second)
    assert store.queue_events.of_case("case") == [first, second]


@pytest.mark.parametrize(
    "changes",
    [
        {"at": 1e300}, {"at": float("nan")}, {"at": -1.0}, {"author": ""},
        {"author": "a\u202eb"}, {"author": "x" * 201}, {"seconds": -1e9},
    ],
)  # fmt: skip
def test_what_nobody_said_at_no_time_is_refused(store: Store, changes: dict[str, object]) -> None:
    with store.writing(), pytest.raises(InputError, match="Expected"):
        store.corrections.add(replace(answer(1), **changes), RESPONSE)  # type: ignore[arg-type]
    assert store.corrections.history("case") == []
    if "seconds" not in changes:
        gold = GoldAnswer("g", "case", "Lena", 1.0, "imported", "supported")
        with store.writing(), pytest.raises(InputError, match="Expected"):
            store.golds.add(replace(gold, **changes), RESPONSE)  # type: ignore[arg-type]
