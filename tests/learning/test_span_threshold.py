"""The threshold that people's marks speak for: found where it is known, and only where it helps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.span_threshold import (
    MIN_SCORED_CASES,
    PRIOR_CASES,
    THRESHOLD_GRID,
    ScoredCase,
    choose_threshold,
    compute_iou_curve,
    compute_mean_figures,
    fit_thresholds,
    propose_thresholds,
    shrink_threshold,
)

SHIPPED = 0.38


def case(number: int, wrong_from: float, language: str = "en", group: str = "") -> ScoredCase:
    """Ten words with p from 0.1 to 0.95; people marked those with p of `wrong_from` or more."""
    random = np.random.default_rng(number)
    scores = np.round(random.uniform(0.1, 0.95, size=10), 3)
    pieces = tuple((float(p), 5, 5 if p >= wrong_from else 0) for p in scores)
    gold = sum(both for _, _, both in pieces)
    return ScoredCase(f"c{number}", group or f"g{number}", language, pieces, gold, 60)


def cases(count: int, wrong_from: float, language: str = "en", first: int = 0) -> list[ScoredCase]:
    return [case(first + n, wrong_from, language) for n in range(count)]


def slow_iou(one: ScoredCase, tau: float) -> float:
    marked = [(size, both) for p, size, both in one.pieces if p >= tau]
    shared = sum(both for _, both in marked)
    either = sum(size for size, _ in marked) + one.gold - shared
    return shared / either if either else 1.0


@given(
    st.lists(st.tuples(st.floats(0.05, 1.0), st.integers(1, 9), st.integers(0, 9)), max_size=6),
    st.integers(0, 20),
)
def test_iou_at_every_threshold_is_that_of_counting(
    parts: list[tuple[float, int, int]], missed: int
) -> None:
    pieces = tuple((p, size, min(size, both)) for p, size, both in parts)
    one = ScoredCase("c", "g", "en", pieces, sum(b for _, _, b in pieces) + missed, 100)
    assert compute_iou_curve(one) == pytest.approx([slow_iou(one, tau) for tau in THRESHOLD_GRID])


def test_nothing_marked_by_anybody_is_a_perfect_match() -> None:
    assert compute_iou_curve(ScoredCase("c", "g", "en", (), 0, 10)).tolist() == [1.0] * len(
        THRESHOLD_GRID
    )


@pytest.mark.parametrize("true", [0.2, 0.55, 0.7])
def test_the_known_threshold_is_found(true: float) -> None:
    curve = np.mean([compute_iou_curve(one) for one in cases(200, true)], axis=0)
    assert choose_threshold(curve, SHIPPED) == pytest.approx(true, abs=0.03)


def test_of_equally_good_thresholds_the_nearest_is_taken() -> None:
    assert choose_threshold(np.ones(len(THRESHOLD_GRID)), 0.38) == 0.38


def test_few_cases_are_drawn_to_the_other_threshold() -> None:
    assert shrink_threshold(0.8, 0, 0.4) == 0.4
    assert shrink_threshold(0.8, PRIOR_CASES, 0.4) == 0.6
    assert shrink_threshold(0.8, 100_000, 0.4) == 0.8


def test_a_language_is_drawn_to_all_and_all_to_what_ships() -> None:
    many, few = cases(180, 0.6), cases(12, 0.25, "de", 500)
    curves = np.array([compute_iou_curve(one) for one in many + few])
    pooled, own = fit_thresholds(curves, ["en"] * 180 + ["de"] * 12, SHIPPED)
    assert 0.5 < pooled < 0.61
    alone = choose_threshold(curves[180:].mean(axis=0), SHIPPED)
    assert alone < own["de"] < pooled
    assert own["en"] == pytest.approx(0.6, abs=0.04)


def test_each_language_gets_what_its_people_mean() -> None:
    found = propose_thresholds("reader", cases(120, 0.6) + cases(120, 0.25, "de", 500), SHIPPED)
    assert found
    assert found.is_better
    english, german = found.levels.at("en"), found.levels.at("de-AT")
    assert english
    assert german
    assert 0.48 <= english <= 0.62
    assert 0.23 <= german <= 0.33
    assert found.whole.after.value > found.whole.before.value
    assert found.whole.gain.low > 0
    by_name = {fit.language: fit for fit in found.languages}
    assert by_name["en"].n == by_name["de"].n == 120
    assert by_name["en"].mark_all == pytest.approx(
        np.mean([one.gold / one.length for one in cases(120, 0.6)])
    )
    assert by_name["en"].gain.low <= by_name["en"].gain.value <= by_name["en"].gain.high


def test_where_the_shipped_one_is_right_no_language_does_worse() -> None:
    for seed in range(5):
        found = propose_thresholds("reader", cases(40, SHIPPED, first=1000 * seed), SHIPPED)
        assert found
        for fit in (found.whole, *found.languages):
            assert fit.after.value >= fit.before.value
            if not fit.is_better:
                assert fit.gain.value == 0.0


def test_marks_at_random_propose_nothing_that_is_worse_out_of_fold() -> None:
    random = np.random.default_rng(7)
    noise = []
    for n in range(60):
        pieces = tuple((float(p), 5, int(5 * random.integers(0, 2))) for p in random.random(10))
        noise.append(ScoredCase(f"c{n}", f"g{n}", "en", pieces, sum(b for *_, b in pieces), 60))
    found = propose_thresholds("reader", noise, SHIPPED)
    assert found
    assert found.whole.after.value >= found.whole.before.value


def test_too_few_cases_propose_nothing() -> None:
    assert propose_thresholds("reader", cases(MIN_SCORED_CASES - 1, 0.6), SHIPPED) is None
    assert propose_thresholds("reader", cases(MIN_SCORED_CASES, 0.6), SHIPPED)


@pytest.mark.parametrize(("others", "own", "kept"), [(0.6, 0.6, ()), (0.7, 0.2, ("fi",))])
def test_a_language_with_few_cases_has_none_of_its_own(
    others: float, own: float, kept: tuple[str, ...]
) -> None:
    """It keeps what ships where its few cases speak against what all others mean."""
    found = propose_thresholds("reader", cases(100, others) + cases(6, own, "fi", 500), SHIPPED)
    assert found
    assert [name for name, _ in found.levels.by_language] == ["en", *kept]
    assert found.levels.otherwise != SHIPPED
    assert found.levels.at("fi") == (SHIPPED if kept else found.levels.otherwise)
    assert {fit.language for fit in found.languages} == {"en", "fi"}
    assert all(fit.gain.value >= 0 for fit in found.languages)


def test_a_language_that_nobody_told_has_none_of_its_own() -> None:
    found = propose_thresholds("reader", cases(100, 0.6, "und"), SHIPPED)
    assert found
    assert found.levels.by_language == ()


def test_equal_cases_lie_in_one_fold_and_are_drawn_together() -> None:
    values = np.array([0.0, 1.0] * 50)
    alone = compute_mean_figures({"x": values}, [f"g{n}" for n in range(100)])["x"]
    tied = compute_mean_figures({"x": values}, [f"g{n % 4}" for n in range(100)])["x"]
    assert alone.value == tied.value == 0.5
    assert tied.high - tied.low > alone.high - alone.low


def test_what_is_kept_tells_what_it_rests_on() -> None:
    found = propose_thresholds("reader", cases(120, 0.6), SHIPPED)
    assert found
    body = found.body
    assert body["n"] == 120
    assert body["shipped"] == SHIPPED
    assert len(body["cases"]) == 120
    assert body["figures"][0]["iou_after"][0] > body["figures"][0]["iou_before"][0]
