"""Curves and stacks make probabilities that mean something on cases not seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning import head_fit
from core.learning.head_fit import (
    MIN_ROWS_BY_CALIBRATOR,
    MIN_SPLIT_ROWS,
    TEXT_AND_WORDS_INPUT,
    TEXT_INPUT,
    CaseTexts,
    EncodedRows,
    FittedCalibrator,
    count_ngrams,
    cross_fit_scores,
    fit_calibration,
    fit_calibrator,
    fit_head,
    fit_ngram_model,
    fit_stack,
    select_head,
)
from core.learning.metrics import BoolArray, iter_grouped_folds
from core.learning.options import TrainingOptions
from core.verdict.classifier import (
    Calibrator,
    FloatArray,
    extract_ngrams,
    restore_head,
    restore_ngram_model,
    sigmoid,
)


def drawn(count: int, slope: float, shift: float, seed: int = 1) -> tuple[FloatArray, BoolArray]:
    """Log odds, and what is true when they must be taken times slope plus shift."""
    random = np.random.default_rng(seed)
    told = random.normal(0, 2, count)
    return told, random.random(count) < sigmoid(slope * told + shift)


def groups(count: int) -> list[str]:
    return [f"c{n}" for n in range(count)]


def test_what_needs_no_calibration_gets_none() -> None:
    told, truth = drawn(400, 1.0, 0.0, seed=2)
    found = fit_calibrator(told, truth, groups(400), may_sharpen=True)
    assert found.calibrator == Calibrator()
    assert found.n == 400


@pytest.mark.parametrize(
    ("slope", "shift", "kind"), [(0.3, 0.0, "temperature"), (1.0, -2.0, "platt")]
)
def test_the_simplest_curve_that_helps_is_chosen(slope: float, shift: float, kind: str) -> None:
    told, truth = drawn(500, slope, shift)
    found = fit_calibrator(told, truth, groups(500), may_sharpen=True)
    assert found.calibrator.kind == kind
    assert found.calibrator.slope[0] == pytest.approx(slope, abs=0.15)
    assert found.calibrator.shift[0] == pytest.approx(shift, abs=0.4)
    assert found.log_loss[kind] < found.log_loss["none"]


def test_a_step_that_no_line_follows_takes_isotonic_regression_and_stays_inside() -> None:
    random = np.random.default_rng(2)
    told = random.uniform(-3, 3, 1200)
    truth = random.random(1200) < np.where(np.abs(told) < 2, 0.5, np.where(told > 0, 1.0, 0.0))
    found = fit_calibrator(told, truth, groups(1200), may_sharpen=True)
    assert found.calibrator.kind == "isotonic"
    p = found.calibrator.probability(np.array([-1e9, -2.5, 0.0, 2.5, 1e9]))
    assert (np.diff(p) >= 0).all()
    assert 0.0 < p[0] < 0.02 < p[2] < 0.98 < p[4] < 1.0


@pytest.mark.parametrize(
    ("each", "kinds"),
    [
        (0, {"none"}),
        (9, {"none"}),
        (10, {"none", "temperature"}),
        (20, {"none", "temperature", "platt"}),
        (150, set(MIN_ROWS_BY_CALIBRATOR)),
    ],
)
def test_a_curve_is_tried_only_where_there_are_enough_rows(each: int, kinds: set[str]) -> None:
    told = np.linspace(-2, 2, 2 * each + 5)
    truth = np.arange(len(told)) >= each + 5
    found = fit_calibrator(told, truth, groups(len(told)), may_sharpen=True)
    assert set(found.log_loss) == kinds


def test_nothing_at_all_calibrates_nothing() -> None:
    none = np.zeros(0)
    found = fit_calibrator(none, none.astype(bool), [], may_sharpen=False)
    assert (found.calibrator.kind, found.n, found.log_loss) == ("none", 0, {})


def test_all_of_one_label_calibrate_nothing() -> None:
    told, _ = drawn(60, 1.0, 0.0)
    found = fit_calibrator(told, np.ones(60, dtype=bool), groups(60), may_sharpen=True)
    assert found.calibrator.kind == "none"


def test_leaking_predictions_may_cool_but_never_sharpen() -> None:
    told, truth = drawn(500, 5.0, 0.0)
    free = fit_calibrator(told, truth, groups(500), may_sharpen=True).calibrator
    bound = fit_calibrator(told, truth, groups(500), may_sharpen=False).calibrator
    assert free.slope[0] > 2
    assert bound.slope[0] <= 1.0


def numbers(count: int, seed: int, name: str) -> EncodedRows:
    random = np.random.default_rng(seed)
    truth = np.arange(count) % 2 == 0
    vectors = (random.normal(0, 1.0, (count, 4)) + truth[:, None]).astype(np.float32)
    names = tuple(f"{name}{n}" for n in range(count))
    return EncodedRows(names, vectors, (None,) * count, truth, names)


@pytest.mark.parametrize(
    ("split", "is_cross_fitted", "n"),
    [(2 * MIN_SPLIT_ROWS, False, 2 * MIN_SPLIT_ROWS), (2 * MIN_SPLIT_ROWS - 1, True, 60)],
)
def test_a_split_that_is_large_enough_calibrates_else_training_cases_do(
    split: int, is_cross_fitted: bool, n: int
) -> None:
    cases, seeds = numbers(60, 1, "c"), numbers(20, 2, "s")
    head = fit_head(cases.with_others(seeds), TrainingOptions())
    found, told = fit_calibration(head, cases, seeds, numbers(split, 3, "k"), TrainingOptions())
    assert (told, found.n) == (is_cross_fitted, n)
    assert found.card(is_cross_fitted=told)["cross_fitted"] is is_cross_fitted


def drawn_scores(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """(scores of two informed and one idle scorer, labels that follow the first two)."""
    chance = np.random.default_rng(seed)
    scores = chance.normal(size=(n, 3))
    p = 1 / (1 + np.exp(-(1.5 * scores[:, 0] + 0.7 * scores[:, 1] - 0.4)))
    return scores * [1.0, 20.0, 3.0], chance.random(n) < p


def test_probabilities_come_true_and_an_idle_score_counts_for_little() -> None:
    scores, is_wrong = drawn_scores(1)
    stack = fit_stack(scores, is_wrong)
    fresh, came_true = drawn_scores(2)
    p = stack.p(fresh)
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        assert p[inside].mean() == pytest.approx(came_true[inside].mean(), abs=0.08)
    first, second, idle = stack.weights
    assert first > second > 4 * idle


def test_a_score_is_never_turned_round() -> None:
    scores, is_wrong = drawn_scores(3)
    stack = fit_stack(np.column_stack([scores[:, 0], -scores[:, 0]]), is_wrong)
    assert (stack.weights >= 0).all()
    assert stack.weights[1] == pytest.approx(0.0, abs=1e-6)


def test_a_score_that_never_changes_leaves_the_share() -> None:
    is_wrong = np.array([True] * 3 + [False] * 7)
    p = fit_stack(np.ones((10, 1)), is_wrong).p(np.ones((2, 1)))
    assert p == pytest.approx([0.3, 0.3], abs=0.03)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(12, 40))
def test_no_case_is_scored_by_what_saw_its_group(seed: int, groups: int) -> None:
    chance = np.random.default_rng(seed)
    own = np.repeat(np.arange(groups), 2)
    is_wrong = np.arange(len(own)) % 2 == 0
    cases = chance.permutation(len(own) * 2)[: len(own)]
    seen: list[tuple[set[int], set[int]]] = []

    def scorer(fit: np.ndarray, test: np.ndarray) -> np.ndarray:
        seen.append((set(fit.tolist()), set(test.tolist())))
        return np.zeros(len(test))

    scores = cross_fit_scores([scorer], cases, is_wrong, own, seed)
    assert scores.shape == (len(cases), 1)
    group_of = dict(zip(cases.tolist(), own.tolist(), strict=True))
    assert sorted(case for _, test in seen for case in test) == sorted(cases.tolist())
    for fit, test in seen:
        assert not {group_of[c] for c in fit} & {group_of[c] for c in test}


def test_folds_are_the_same_for_the_same_seed() -> None:
    is_wrong, groups = np.arange(40) % 2 == 0, np.arange(40) // 2
    first = [test.tolist() for _, test in iter_grouped_folds(is_wrong, groups, 5)]
    again = [test.tolist() for _, test in iter_grouped_folds(is_wrong, groups, 5)]
    assert first == again


WRONG = ["the sum is wrong", "a wrong date", "this is wrong again", "wrong in part"]
RIGHT = ["the sum holds", "the date holds", "this holds as well", "it holds in full"]
IS_WRONG = np.array([True] * 4 + [False] * 4)


def of_one_view(texts: list[str], kinds: list[str] | None = None) -> list[CaseTexts]:
    return [
        CaseTexts(((text,),), kind)
        for text, kind in zip(texts, kinds or [""] * len(texts), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It IS 7.", ["it", "is", "7", "it is", "is 7"]),
        ("三艘船", ["三", "艘", "船", "三 艘", "艘 船"]),
        ("é́tude 5%", ["é́tude", "5", "%", "é́tude 5", "5 %"]),
        ("", []),
    ],
)
def test_words_and_pairs_in_any_script(text: str, expected: list[str]) -> None:
    assert list(extract_ngrams(text)) == expected


def test_words_that_part_the_labels_decide_on_texts_not_seen() -> None:
    found = count_ngrams(of_one_view([*WRONG, *RIGHT, "plainly wrong here", "that holds"]))
    model = fit_ngram_model(found, np.arange(8), IS_WRONG)
    wrong, right = model.scores(found, np.array([8, 9]))
    assert wrong > 0 > right


def test_the_same_word_may_mean_another_thing_of_another_kind() -> None:
    texts = ["it is exact", "it is vague"] * 8
    kinds = (["sum"] * 2 + ["poem"] * 2) * 4
    is_wrong = np.array([False, True, True, False] * 4)
    found = count_ngrams(of_one_view(texts, kinds))
    model = fit_ngram_model(found, np.arange(16), is_wrong)
    sum_exact, sum_vague, poem_exact, poem_vague = model.scores(found, np.arange(4))
    assert sum_exact < sum_vague
    assert poem_exact > poem_vague


def test_a_kind_that_was_not_seen_is_judged_by_what_all_kinds_share() -> None:
    found = count_ngrams(of_one_view([*WRONG, *RIGHT, "wrong"], [*["sum"] * 8, "new"]))
    model = fit_ngram_model(found, np.arange(8), IS_WRONG)
    assert model.scores(found, np.array([8]))[0] > 0


def test_a_text_of_unknown_words_leans_nowhere() -> None:
    found = count_ngrams(of_one_view([*WRONG, *RIGHT, "xyzzy plugh", ""]))
    model = fit_ngram_model(found, np.arange(8), IS_WRONG)
    unknown, empty = model.scores(found, np.array([8, 9]))
    assert unknown == empty == pytest.approx(model.intercept)


def test_what_is_scored_teaches_nothing() -> None:
    """Vocabulary and weights come from the cases that are fitted on alone."""
    texts = [*WRONG, *RIGHT]
    alone = count_ngrams(of_one_view(texts))
    beside = count_ngrams(of_one_view([*texts, "wrong wrong wrong", "unseen words galore"]))
    first = fit_ngram_model(alone, np.arange(8), IS_WRONG)
    second = fit_ngram_model(beside, np.arange(8), IS_WRONG)
    assert first.scores(alone, np.arange(8)) == pytest.approx(
        second.scores(beside, np.arange(8)), abs=1e-3
    )


def test_views_are_read_apart() -> None:
    readings = [CaseTexts(((text,), ("same words",)), "") for text in [*WRONG, *RIGHT]]
    found = count_ngrams(readings)
    of_text = fit_ngram_model(found.of_views([0]), np.arange(8), IS_WRONG)
    of_other = fit_ngram_model(found.of_views([1]), np.arange(8), IS_WRONG)
    assert np.ptp(of_text.scores(found.of_views([0]), np.arange(8))) > 1
    assert np.ptp(of_other.scores(found.of_views([1]), np.arange(8))) < 1e-6


def test_a_head_keeps_the_model_as_plain_numbers_that_say_the_same() -> None:
    texts = [*WRONG, *RIGHT, "plainly wrong", "三艘船 holds", "nothing known", ""]
    found = count_ngrams(of_one_view(texts))
    model = fit_ngram_model(found, np.arange(8), IS_WRONG)
    part = restore_ngram_model(model.part(found).arrays())
    assert part == model.part(found)
    assert part.scores(texts) == pytest.approx(model.scores(found, np.arange(12)))


@pytest.mark.parametrize("name", ["grams", "idf", "weights"])
def test_words_that_do_not_fit_their_weights_are_refused(name: str) -> None:
    found = count_ngrams(of_one_view([*WRONG, *RIGHT]))
    arrays = fit_ngram_model(found, np.arange(8), IS_WRONG).part(found).arrays()
    with pytest.raises(ValueError, match="different numbers"):
        restore_ngram_model({**arrays, name: arrays[name][:-30]})
    with pytest.raises(ValueError, match="no word part"):
        restore_ngram_model({key: value for key, value in arrays.items() if key != name})


WORDS = {True: "contradicts the source", False: "the source carries it"}


def cases(count: int, seed: int, told_by: str) -> EncodedRows:
    """Cases whose label shows in the words of their texts, or in their vectors."""
    random = np.random.default_rng(seed)
    truth = np.arange(count) % 2 == 0
    vectors = random.normal(size=(count, 4)).astype(np.float32)
    if told_by == "vectors":
        vectors += 2.0 * truth[:, None]
    texts = tuple(
        f"Case {n}: {WORDS[bool(wrong)] if told_by == 'words' else 'nothing to say'}"
        for n, wrong in enumerate(truth)
    )
    groups = tuple(f"{told_by}{seed}-{n}" for n in range(count))
    return EncodedRows(texts, vectors, (None,) * count, truth, groups)


@pytest.mark.parametrize(
    ("told_by", "read"), [("words", TEXT_AND_WORDS_INPUT), ("vectors", TEXT_INPUT)]
)
def test_the_head_reads_what_tells_more(told_by: str, read: str) -> None:
    learned, split, fresh = (cases(n, n, told_by) for n in (80, 60, 40))
    found = select_head(fit_head(learned, TrainingOptions()), learned, split)
    assert found.card()["read"] == read
    assert found.n == 60
    assert (found.log_loss[TEXT_AND_WORDS_INPUT] < found.log_loss[TEXT_INPUT]) == (
        read == TEXT_AND_WORDS_INPUT
    )
    p = np.array(found.head.probability(fresh.vectors, fresh.judged, fresh.texts))
    assert ((p >= 0.5) == fresh.truth).mean() > 0.9


def test_what_was_weighed_on_a_split_is_not_sharpened_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learned, split = cases(80, 80, "words"), cases(60, 60, "words")
    plain = fit_head(learned, TrainingOptions())
    told: list[bool] = []

    def looked(*given: object, may_sharpen: bool) -> FittedCalibrator:
        told.append(may_sharpen)
        return FittedCalibrator(Calibrator(), {}, 60)

    monkeypatch.setattr(head_fit, "fit_calibrator", looked)
    for head in (plain, select_head(plain, learned, split).head):
        head_fit.fit_calibration(head, learned, cases(20, 20, "words"), split, TrainingOptions())
    assert told == [True, False]


def test_too_small_a_split_decides_nothing() -> None:
    learned, split = cases(80, 80, "words"), cases(10, 10, "words")
    head = fit_head(learned, TrainingOptions())
    found = select_head(head, learned, split)
    assert (found.head, found.log_loss) == (head, {})


def test_a_head_with_words_is_stored_whole_and_nothing_turned_round_is_taken() -> None:
    learned, split = cases(80, 80, "words"), cases(60, 60, "words")
    head = select_head(fit_head(learned, TrainingOptions()), learned, split).head
    arrays = head.arrays()
    assert restore_head(arrays, "none") == head
    with pytest.raises(ValueError, match="turn the order"):
        restore_head(arrays | {"shares": np.array([1.0, -1.0, 0.0])}, "none")
    with pytest.raises(ValueError, match="another head"):
        restore_head({n: a for n, a in arrays.items() if not n.startswith("words.")}, "none")
