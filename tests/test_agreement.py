"""Agreement equals the reference libraries' on published worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.review.agreement import (
    MIN_ITEMS,
    ItemAnswers,
    ItemMarks,
    character_f1,
    cohen_kappa,
    count_answers,
    count_marked_characters,
    fleiss_kappa,
    krippendorff_alpha,
    measure_cohen_kappa,
    measure_counts,
    measure_marking_f1,
    measure_raw_agreement,
    measure_span_alpha,
)

# Krippendorff 2011, example C: four observers, twelve units, some answers missing.
OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
# Fleiss 1971 as it is worked out in textbooks: ten subjects, fourteen raters, five categories.
FLEISS = np.array(
    [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
     [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]],
    dtype=float,
)  # fmt: skip


def krippendorffs() -> dict[str, dict[str, str]]:
    rows = [line.split() for line in OBSERVERS]
    return {
        str(unit): {str(who): row[unit] for who, row in enumerate(rows) if row[unit] != "."}
        for unit in range(12)
    }


def test_krippendorffs_own_example() -> None:
    assert krippendorff_alpha(count_answers(krippendorffs())) == pytest.approx(0.743, abs=0.0005)


def test_fleiss_example() -> None:
    assert fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=0.0005)
    assert measure_raw_agreement(FLEISS) == pytest.approx(0.378, abs=0.0005)


def test_cohens_example() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no
    assert cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]])) == pytest.approx(0.4)


LABELS = st.sampled_from(("supported", "hallucinated", "unclear"))


@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), LABELS, min_size=2), min_size=2, max_size=30)
)
@settings(max_examples=60, deadline=None)
def test_alpha_is_that_of_nltk(rows: list[dict[str, str]]) -> None:
    from nltk.metrics.agreement import AnnotationTask  # type: ignore[import-untyped]

    answers = {str(n): own for n, own in enumerate(rows)}
    ours = krippendorff_alpha(count_answers(answers))
    told = [(who, item, label) for item, own in answers.items() for who, label in own.items()]
    if ours is None:
        assert len({label for _, _, label in told}) == 1
    else:
        assert ours == pytest.approx(AnnotationTask(told).alpha())


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_cohens_kappa_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    answers = {str(n): {"a": a, "b": b} for n, (a, b) in enumerate(pairs)}
    ours = measure_cohen_kappa(answers, "a", "b").value
    if ours is None:
        assert len({*one, *other}) == 1
    else:
        assert ours == pytest.approx(cohen_kappa_score(one, other))


def test_unlike_numbers_of_answers_have_no_fleiss_kappa_and_one_label_no_chance() -> None:
    answers: ItemAnswers = {"1": {"a": "x", "b": "x"}, "2": {"a": "x", "b": "x", "c": "x"}}
    assert fleiss_kappa(count_answers(answers)) is None
    assert krippendorff_alpha(count_answers(answers)) is None
    assert measure_raw_agreement(count_answers(answers)) == 1.0
    assert measure_raw_agreement(count_answers({"1": {"a": "x"}})) is None


def test_figures_stand_with_their_intervals_and_say_when_there_are_too_few() -> None:
    answers = {
        str(n): {"a": "xy"[n % 2], "b": "xy"[n % 2] if n % 5 else "x", "machine": "x"}
        for n in range(50)
    }
    found = measure_cohen_kappa(answers, "a", "b")
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    assert (found.n, found.is_thin) == (50, False)
    few = measure_counts(count_answers(krippendorffs()), krippendorff_alpha)
    assert few.n == 11
    assert few.is_thin
    assert few.n < MIN_ITEMS
    assert measure_cohen_kappa(answers, "a", "nobody").value is None


def test_marks_are_compared_by_character() -> None:
    marks: ItemMarks = {
        "1": {"a": [(0, 4)], "b": [(2, 6)]},
        "2": {"a": [], "b": []},
        "3": {"a": [(0, 1)]},
    }
    lengths = {"1": 10, "2": 5, "3": 5}
    assert character_f1([(0, 4)], [(2, 6)], 10) == pytest.approx(0.5)
    assert character_f1([], [], 10) == 1.0
    assert character_f1([(0, 2), (1, 3)], [(0, 3)], 10) == 1.0
    assert measure_marking_f1(marks, lengths, "a", "b").value == pytest.approx(0.5), (
        "one item has marks"
    )
    items = count_marked_characters(marks, lengths)
    assert [len(item) for item in items] == [10, 5]
    assert items[0][:, 1].tolist() == [1, 1, 2, 2, 1, 1, 0, 0, 0, 0]
    found = measure_span_alpha(items)
    assert found.value is not None
    assert found.value < 0.75
    assert measure_span_alpha([]).value is None
