"""Sums that the evidence only implies, beside totals that it states itself."""

from __future__ import annotations

import pytest

from core.builtin.arithmetic import check_sums
from core.builtin.reading import read
from tests.fakes import make_passage

SITES = "Ulm has 3,000 visitors, Jena has 1,800 visitors, a total of 4,800 visitors."
STATIONS = "甲站有3000人，乙站有1800人，合计4800人。"
CATS = "Anna has 2 cats, Ben has 3 cats and Cleo has 5 cats."


@pytest.mark.parametrize(
    ("language", "evidence", "claim", "words", "is_right"),
    [
        ("en", SITES, "Both sites together have 9,600 visitors.", "3,000 + 1,800 = 4,800", False),
        ("zh", STATIONS, "两站共有9600人。", "3000 + 1800 = 4,800", False),
        ("zh", STATIONS, "两站合计5000人。", "3000 + 1800 = 4,800", False),
        ("zh", "甲站有3000人，乙站有1800人。", "两站合计4800人。", "3000 + 1800 = 4,800", True),
    ],
)  # fmt: skip
def test_a_stated_total_is_not_added_to_its_parts(
    language: str, evidence: str, claim: str, words: str, is_right: bool
) -> None:
    found = check_sums(read(claim, language), [make_passage(evidence)], {})
    assert found is not None
    assert found.words == words
    assert (found.contrast is None) is is_right


def test_a_value_that_happens_to_be_the_sum_of_the_others_leaves_it_open() -> None:
    claim = read("Together they have 10 cats.", "en")
    assert check_sums(claim, [make_passage(CATS)], {}) is None
    more = CATS.replace("5 cats", "6 cats")
    found = check_sums(read("Together they have 11 cats.", "en"), [make_passage(more)], {})
    assert found is not None
    assert found.contrast is None
