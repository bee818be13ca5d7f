"""Agreement equals the reference libraries' on published worked examples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.agreement import (
    ItemAnswers,
    ItemMarks,
    character_f1,
    count_answers,
    count_marked_characters,
    fleiss_kappa,
    krippendorff_alpha,
    measure_cohen_kappa,
    measure_counts,
    measure_marking_f1,
    measure_raw_agreement,
    measure_span_alpha,
    pair_labels,
)
from core.learning.track_record import MIN_CASES, WilsonShare

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
    assert measure_counts(
        count_answers(krippendorffs()), krippendorff_alpha
    ).value == pytest.approx(0.743, abs=0.0005)


def test_fleiss_example() -> None:
    assert measure_counts(FLEISS, fleiss_kappa).value == pytest.approx(0.210, abs=0.0005)
    assert measure_counts(FLEISS, measure_raw_agreement).value == pytest.approx(0.378, abs=0.0005)


def test_cohens_example() -> None:
    counts = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}
    assert measure_cohen_kappa(Counter(counts)).value == pytest.approx(0.4)


LABELS = st.sampled_from(("supported", "hallucinated", "unclear"))


@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), LABELS, min_size=2), min_size=2, max_size=30)
)
@settings(max_examples=60, deadline=None)
def test_alpha_is_that_of_nltk(rows: list[dict[str, str]]) -> None:
    from nltk.metrics.agreement import AnnotationTask  # type: ignore[import-untyped]

    answers = {str(n): own for n, own in enumerate(rows)}
    ours = measure_counts(count_answers(answers), krippendorff_alpha).value
    told = [(who, item, label) for item, own in answers.items() for who, label in own.items()]
    if ours is None:
        assert len({label for _, _, label in told}) == 1
    else:
        assert ours == pytest.approx(AnnotationTask(told).alpha())


@given(st.lists(st.dictionaries(st.sampled_from("abcde"), LABELS), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_alpha_with_missing_answers_is_that_of_krippendorffs_package(
    rows: list[dict[str, str]],
) -> None:
    import krippendorff

    ours = measure_counts(
        count_answers({str(n): own for n, own in enumerate(rows)}), krippendorff_alpha
    ).value
    names = ("supported", "hallucinated", "unclear")
    data = np.full((5, len(rows)), np.nan)
    for place, own in enumerate(rows):
        for who, label in own.items():
            data["abcde".index(who), place] = names.index(label)
    pairable = {label for own in rows if len(own) > 1 for label in own.values()}
    if len(pairable) < 2:
        assert ours is None
    else:
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
        assert ours == pytest.approx(theirs)


@given(st.lists(st.lists(LABELS, min_size=3, max_size=3), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_fleiss_kappa_is_that_of_statsmodels(rows: list[list[str]]) -> None:
    from statsmodels.stats.inter_rater import (  # type: ignore[import-untyped]
        fleiss_kappa as oracle,
    )

    answers = {str(n): dict(zip("abc", own, strict=True)) for n, own in enumerate(rows)}
    counts = count_answers(answers)
    ours = measure_counts(counts, fleiss_kappa).value
    if ours is None:
        assert len({label for own in rows for label in own}) == 1
    else:
        assert ours == pytest.approx(oracle(counts))


@given(n=st.integers(1, 500), share=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_shares_interval_is_wilsons_by_statsmodels(n: int, share: float) -> None:
    from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
        proportion_confint,
    )

    right = round(n * share)
    found = WilsonShare(right, n).interval
    assert found == pytest.approx(proportion_confint(right, n, method="wilson"), abs=1e-6)
    two, many = WilsonShare(2, 2).interval, WilsonShare(right, n).interval
    assert n <= 6 or two[1] - two[0] > many[1] - many[0], "two cases are never the surer ones"


def test_the_least_cases_bound_the_width_of_every_interval() -> None:
    def widest(n: int) -> float:
        return max(high - low for low, high in (WilsonShare(k, n).interval for k in range(n + 1)))

    assert widest(MIN_CASES) < 0.35 < widest(MIN_CASES - 3)
    assert widest(14) > 0.45, "nearly all of an axis of confidences"


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_cohens_kappa_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    answers = {str(n): {"a": a, "b": b} for n, (a, b) in enumerate(pairs)}
    ours = measure_cohen_kappa(pair_labels(answers, "a", "b")).value
    if ours is None:
        assert len({*one, *other}) == 1
    else:
        assert ours == pytest.approx(cohen_kappa_score(one, other))


def test_unlike_numbers_of_answers_have_no_fleiss_kappa_and_one_label_no_chance() -> None:
    answers: ItemAnswers = {"1": {"a": "x", "b": "x"}, "2": {"a": "x", "b": "x", "c": "x"}}
    assert measure_counts(count_answers(answers), fleiss_kappa).value is None
    assert measure_counts(count_answers(answers), krippendorff_alpha).value is None
    assert measure_counts(count_answers(answers), measure_raw_agreement).value == 1.0
    assert measure_counts(count_answers({"1": {"a": "x"}}), measure_raw_agreement).value is None


def test_figures_stand_with_their_intervals_and_say_when_there_are_too_few() -> None:
    answers = {
        str(n): {"a": "xy"[n % 2], "b": "xy"[n % 2] if n % 5 else "x", "machine": "x"}
        for n in range(50)
    }
    found = measure_cohen_kappa(pair_labels(answers, "a", "b"))
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    assert (found.n, found.is_thin) == (50, False)
    few = measure_counts(count_answers(krippendorffs()), krippendorff_alpha)
    assert few.n == 11
    assert few.is_thin
    assert few.n < MIN_CASES
    assert measure_cohen_kappa(pair_labels(answers, "a", "nobody")).value is None


def test_marks_are_compared_by_character() -> None:
    marks: ItemMarks = {
        "1": {"a": [(0, 4)], "b": [(2, 6)]},
        "2": {"a": [], "b": []},
        "3": {"a": [(0, 1)]},
    }
    lengths = {"1": 10, "2": 5, "3": 5}
    assert character_f1([(0, 4)], [(2, 6)]) == pytest.approx(0.5)
    assert character_f1([], []) == 1.0
    assert character_f1([(0, 2), (1, 3)], [(0, 3)]) == 1.0
    assert measure_marking_f1(marks, "a", "b").value == pytest.approx(0.5), "one item has marks"
    items = count_marked_characters(marks, lengths)
    assert [item.tolist() for item in items] == [[4, 4, 2], [5, 0, 0]]
    found = measure_span_alpha(items)
    assert found.value is not None
    assert found.value < 0.75
    assert measure_span_alpha([]).value is None
