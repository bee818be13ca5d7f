"""What corrections are worth: labels that look wrong, and what more cases would add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.learning.data_quality import (
    LearningCurve,
    LearningCurvePoint,
    advise_on_cases,
    evaluate_law,
    find_doubtful_labels,
    fit_learning_curve,
    get_vector_cache_path,
    load_vectors,
    measure_learning_curve,
)
from core.learning.metrics import BoolArray, FloatArray
from core.learning.training_set import AttributedRow, TrainingRow
from core.llm.encoder import Matrix
from core.runtime.concurrency import StopSignal
from core.runtime.errors import NotEnoughLabels
from core.schema.records import Label
from tests.fakes import FakeEmbedder

SAYS: dict[Label, str] = {
    "hallucinated": "the evidence contradicts this",
    "supported": "each word stands in the source",
}


class Counting(FakeEmbedder):
    """Counts the texts that it was asked for."""

    asked = 0

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
        self.asked += len(texts)
        return super().encode(texts, stop)


def material(many: int, wrong: Sequence[int] = ()) -> list[AttributedRow]:
    """Cases whose texts say their label plainly; people are wrong about some."""
    found = []
    for number in range(many):
        true: Label = "hallucinated" if number % 2 else "supported"
        other: Label = "supported" if number % 2 else "hallucinated"
        text = f"{SAYS[true]}, says number {number}"
        label = other if number in wrong else true
        row = TrainingRow(text, label, f"g{number}", f"k{number}", f"r{number}", f"Claim {number}.")
        found.append(AttributedRow(row, f"c{number}", "project", ("Mira",), "en", "single"))
    return found


def test_the_labels_that_were_turned_round_are_found_first(home: Path) -> None:
    found = find_doubtful_labels(material(80, wrong=(6, 33, 57)), FakeEmbedder(), home)
    assert {doubt.taught.case_id for doubt in found.found[:3]} == {"c6", "c33", "c57"}
    for doubt in found.found[:3]:
        assert doubt.p_label < 0.5
        assert doubt.thinks != doubt.taught.row.label
    assert (found.looked_at, found.all) == (80, 80)


def test_where_all_labels_fit_none_looks_wrong_and_a_case_is_named_once(home: Path) -> None:
    assert find_doubtful_labels(material(60), FakeEmbedder(), home).found == ()
    given = material(60, wrong=(6,))
    assert len(find_doubtful_labels([*given, given[6]], FakeEmbedder(), home).found) == 1


def test_too_few_are_refused_in_words(home: Path) -> None:
    with pytest.raises(NotEnoughLabels, match="at least 15 cases of each label, found 6 hall"):
        find_doubtful_labels(material(12), FakeEmbedder(), home)
    with pytest.raises(NotEnoughLabels, match="Too few to say"):
        measure_learning_curve([one.row for one in material(20)], FakeEmbedder(), home)


def test_a_text_is_embedded_once_and_kept_by_what_it_says(home: Path) -> None:
    encoder = Counting()
    first = load_vectors(["a b", "c d", "a b"], encoder, home)
    assert (load_vectors(["c d", "a b"], encoder, home) == first[[1, 0]]).all()
    assert encoder.asked == 2
    get_vector_cache_path(home, encoder).write_bytes(b"torn")
    load_vectors(["a b"], encoder, home)
    assert encoder.asked == 3, "what cannot be read is made again"


def test_what_was_embedded_before_somebody_left_is_kept(home: Path) -> None:
    encoder = Counting()

    def leave(done: int, _all: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_vectors(["a", "b", "c"], encoder, home, leave)
    load_vectors(["a", "b", "c"], encoder, home)
    assert encoder.asked == 3


POINTS = (LearningCurvePoint(8, 0.6, 0.5, 0.7, 0.6), LearningCurvePoint(90, 0.8, 0.76, 0.84, 0.9))
RISING = LearningCurve(POINTS, 120, (0.95, 0.9, 0.4), 0.032, 0.02, 0.04)


def drawn(many: int, apart: float) -> tuple[FloatArray, BoolArray]:
    """Points in 24 dimensions whose two labels lie that far apart in one of them."""
    random = np.random.default_rng(1)
    truth = random.random(many) < 0.5
    inputs = random.normal(size=(many, 24))
    inputs[:, 0] += np.where(truth, apart, -apart)
    return inputs, truth


def test_the_curve_rises_towards_what_can_be_learned() -> None:
    inputs, truth = drawn(160, 1.2)
    curve = fit_learning_curve(inputs, truth, [str(n) for n in range(160)])
    assert [point.cases for point in curve.points] == sorted({p.cases for p in curve.points})
    assert curve.points[-1].balanced > curve.points[0].balanced + 0.05
    assert all(p.balanced_low <= p.balanced <= p.balanced_high for p in curve.points)
    assert curve.law is not None
    assert curve.gain == pytest.approx(evaluate_law(curve.law, 320) - evaluate_law(curve.law, 160))
    assert curve == fit_learning_curve(inputs, truth, [str(n) for n in range(160)])


def test_where_nothing_can_be_learned_it_stays_at_a_coins() -> None:
    inputs, truth = drawn(160, 0.0)
    last = fit_learning_curve(inputs, truth, [str(n) for n in range(160)]).points[-1]
    assert last.balanced_low <= 0.5 <= last.balanced_high


def test_what_would_help_is_one_plain_sentence() -> None:
    assert advise_on_cases({"supported": 12}, None) == (
        "12 more supported cases are needed before training can start."
    )
    assert advise_on_cases({"supported": 1}, None).startswith("1 more supported case is needed")
    assert advise_on_cases({}, RISING) == (
        "Twice as many cases would add about 3.2 points of balanced accuracy (2.0 to 4.0)."
    )
    assert "hardly add anything" in advise_on_cases({}, replace(RISING, gain=0.001))
    wide = replace(POINTS[1], balanced_low=0.6)
    assert "between 0.60 and 0.84" in advise_on_cases({}, replace(RISING, points=(POINTS[0], wide)))
    assert advise_on_cases({}, replace(RISING, gain=None)).startswith("Too few cases to say")
