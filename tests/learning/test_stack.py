"""The stack: cross-fitted scores become a probability that means something."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.learning.weights import cross_fitted, fit_stack, grouped_folds


def drawn(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """(scores of two informed and one idle scorer, labels that follow the first two)."""
    chance = np.random.default_rng(seed)
    scores = chance.normal(size=(n, 3))
    p = 1 / (1 + np.exp(-(1.5 * scores[:, 0] + 0.7 * scores[:, 1] - 0.4)))
    return scores * [1.0, 20.0, 3.0], chance.random(n) < p


def test_probabilities_come_true_and_an_idle_score_counts_for_little() -> None:
    scores, is_wrong = drawn(1)
    stack = fit_stack(scores, is_wrong)
    fresh, came_true = drawn(2)
    p = stack.p(fresh)
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (p >= low) & (p < low + 0.2)
        assert p[inside].mean() == pytest.approx(came_true[inside].mean(), abs=0.08)
    first, second, idle = stack.weights
    assert first > second > 4 * idle


def test_a_score_is_never_turned_round() -> None:
    scores, is_wrong = drawn(3)
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

    scores = cross_fitted([scorer], cases, is_wrong, own, seed)
    assert scores.shape == (len(cases), 1)
    group_of = dict(zip(cases.tolist(), own.tolist(), strict=True))
    assert sorted(case for _, test in seen for case in test) == sorted(cases.tolist())
    for fit, test in seen:
        assert not {group_of[c] for c in fit} & {group_of[c] for c in test}


def test_folds_are_the_same_for_the_same_seed() -> None:
    is_wrong, groups = np.arange(40) % 2 == 0, np.arange(40) // 2
    first = [test.tolist() for _, test in grouped_folds(is_wrong, groups, 5)]
    again = [test.tolist() for _, test in grouped_folds(is_wrong, groups, 5)]
    assert first == again
