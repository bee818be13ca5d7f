"""What is asked first: the unsure, the disagreed on, and what is unlike all that is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.store.queue_order import (
    PRIORITY_BONUS,
    CriterionShares,
    compute_unlikeness,
    compute_unsureness,
    compute_worth,
    rank_diverse_items,
    vote_entropy,
)

NOTHING = np.zeros((0, 2))


def at(*degrees: float) -> np.ndarray:
    return np.array([(math.cos(math.radians(d)), math.sin(math.radians(d))) for d in degrees])


@pytest.mark.parametrize(
    ("p", "unsure"), [(0.5, 1.0), (0.75, 0.5), (0.25, 0.5), (1.0, 0.0), (0.0, 0.0), (None, 0.25)]
)
def test_one_half_is_least_sure(p: float | None, unsure: float) -> None:
    assert compute_unsureness(p) == pytest.approx(unsure)


@pytest.mark.parametrize(
    ("votes", "entropy"),
    [
        ("", 0.0),
        ("s", 0.0),
        ("sss", 0.0),
        ("sh", 1.0),
        ("shu", 1.0),
        ("ssh", math.log(3 / 4 ** (1 / 3)) / math.log(3)),
        ("sshh", math.log(2) / math.log(3)),
    ],
)
def test_a_committee_is_apart_as_the_entropy_of_its_votes(votes: str, entropy: float) -> None:
    assert vote_entropy(votes) == pytest.approx(entropy)


def test_near_copies_are_spread_over_the_order() -> None:
    vectors = at(0, 1, 2, 60, 61, 120)  # three kinds, the first most often
    order, teaches = rank_diverse_items(np.full(6, 0.5), vectors, NOTHING, 0.1)
    kinds = [place // 3 + place // 5 for place in order]
    assert sorted(kinds[:3]) == [0, 1, 2]
    assert teaches[0] == pytest.approx(0.6)
    assert max(teaches[3:]) < 0.01, "a copy of what is asked anyway"


def test_what_is_like_an_answer_waits() -> None:
    order, teaches = rank_diverse_items(np.zeros(3), at(0, 45, 90), at(2), 1.0)
    assert order == [2, 1, 0]
    assert teaches[-1] == pytest.approx(1 - math.cos(math.radians(2)))


def test_what_is_worth_more_comes_first_unless_it_is_a_copy() -> None:
    worths, vectors = np.array([0.5, 0.49, 0.3]), at(0, 1, 90)
    assert rank_diverse_items(worths, vectors, NOTHING, 0.0, copies_wait=False)[0] == [0, 1, 2]
    assert rank_diverse_items(worths, vectors, NOTHING, 0.5, copies_wait=False)[0] == [0, 2, 1]
    assert rank_diverse_items(worths, vectors, NOTHING, 0.0)[0] == [0, 2, 1]


def test_a_text_that_cannot_be_read_is_unlike_nothing_and_takes_nobodys_place() -> None:
    vectors = np.concatenate([np.zeros((1, 2)), at(0, 90)])
    order, teaches = rank_diverse_items(np.array([0.9, 0.1, 0.1]), vectors, NOTHING, 0.3)
    assert (order[0], teaches[0]) == (0, 0.9)
    assert teaches[1:] == [pytest.approx(0.4), pytest.approx(0.4)]


def test_only_as_many_as_are_wanted_are_chosen() -> None:
    assert rank_diverse_items(np.array([0.1, 0.9, 0.5]), at(0, 90, 180), NOTHING, 0.3, most=2)[
        0
    ] == [1, 2]
    assert rank_diverse_items(np.zeros(0), NOTHING, NOTHING, 0.3) == ([], [])


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 360)), min_size=1, max_size=12),
    st.lists(st.floats(0, 360), max_size=4),
    st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_everything_is_asked_once_and_sorting_by_what_it_teaches_gives_the_order(
    items: list[tuple[float, float]], known: list[float], share: float
) -> None:
    worths = np.array([item[0] for item in items])
    before = at(*known) if known else NOTHING
    order, teaches = rank_diverse_items(worths, at(*(item[1] for item in items)), before, share)
    assert sorted(order) == list(range(len(items)))
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(teaches))


def test_how_unlike_an_item_was_is_read_from_what_it_teaches() -> None:
    shares = CriterionShares(0.5, 0.2, 0.3)
    told = compute_worth(0.6, 0.5, shares)
    assert told == pytest.approx(0.4)
    for ruled in (0.0, PRIORITY_BONUS):
        assert compute_unlikeness(ruled + told + 0.3 * 0.7, told, shares) == pytest.approx(0.7)
        assert compute_unlikeness(ruled + told, told, shares) == pytest.approx(0.0)
        assert compute_unlikeness(ruled + told / 2, told, shares) < 0.0, "nearly a copy"
