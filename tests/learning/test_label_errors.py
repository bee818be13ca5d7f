"""Labels that look wrong are found, with the right words; vectors are made once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.concurrency import Stop
from core.errors import NotEnoughLabels
from core.learning.heads import kept_at, vectors_of
from core.learning.label_errors import doubts
from core.learning.overview import Taught
from core.learning.training_set import Row
from core.llm.encoder import Matrix
from core.records import Label
from tests.fakes import FakeEmbedder

SAYS: dict[Label, str] = {
    "hallucinated": "the evidence contradicts this",
    "supported": "each word stands in the source",
}


class Counting(FakeEmbedder):
    """Counts the texts that it was asked for."""

    asked = 0

    def encode(self, texts: Sequence[str], stop: Stop | None = None) -> Matrix:
        self.asked += len(texts)
        return super().encode(texts, stop)


def material(many: int, wrong: Sequence[int] = ()) -> list[Taught]:
    """Cases whose texts say their label plainly; people are wrong about some."""
    found = []
    for number in range(many):
        true: Label = "hallucinated" if number % 2 else "supported"
        other: Label = "supported" if number % 2 else "hallucinated"
        text = f"{SAYS[true]}, says number {number}"
        label = other if number in wrong else true
        row = Row(text, label, f"g{number}", f"k{number}", f"r{number}", f"Claim {number}.")
        found.append(Taught(row, f"c{number}", "project", "Mira", "en", "answered"))
    return found


def test_the_labels_that_were_turned_round_are_found_first(home: Path) -> None:
    found = doubts(material(80, wrong=(6, 33, 57)), FakeEmbedder(), home)
    assert {doubt.taught.case_id for doubt in found.found[:3]} == {"c6", "c33", "c57"}
    for doubt in found.found[:3]:
        assert doubt.p_label < 0.5
        assert doubt.thinks != doubt.taught.row.label
    assert (found.looked_at, found.all) == (80, 80)


def test_where_all_labels_fit_none_looks_wrong(home: Path) -> None:
    assert doubts(material(60), FakeEmbedder(), home).found == ()


def test_a_case_that_was_checked_twice_is_named_once(home: Path) -> None:
    given = material(60, wrong=(6,))
    assert len(doubts([*given, given[6]], FakeEmbedder(), home).found) == 1


def test_too_few_are_refused_in_words(home: Path) -> None:
    with pytest.raises(NotEnoughLabels, match="at least 15 cases of each label, found 6 hall"):
        doubts(material(12), FakeEmbedder(), home)


def test_a_text_is_embedded_once_and_kept_by_what_it_says(home: Path) -> None:
    encoder = Counting()
    first = vectors_of(["a b", "c d", "a b"], encoder, home)
    assert encoder.asked == 2
    assert (vectors_of(["c d", "a b"], encoder, home) == first[[1, 0]]).all()
    assert encoder.asked == 2


def test_vectors_that_cannot_be_read_are_made_again(home: Path) -> None:
    encoder = Counting()
    vectors_of(["a b"], encoder, home)
    kept_at(home, encoder).write_bytes(b"torn")
    vectors_of(["a b"], encoder, home)
    assert encoder.asked == 2


def test_what_was_embedded_before_somebody_left_is_kept(home: Path) -> None:
    encoder = Counting()

    def leave(done: int, _all: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vectors_of(["a", "b", "c"], encoder, home, leave)
    vectors_of(["a", "b", "c"], encoder, home)
    assert encoder.asked == 3
