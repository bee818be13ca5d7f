"""Lengths and dates in five languages, drawn from seeds that no threshold was chosen on."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.tools.generated_rows import (
    LANGUAGES,
    SEED,
    date_rows,
    grey_rows,
    length_rows,
    wrongly_told,
)


@pytest.mark.parametrize("make", [length_rows, date_rows])
def test_rows_are_of_every_language_and_half_of_them_wrong(make: object) -> None:
    rows = list(length_rows() if make is length_rows else date_rows())
    assert len(rows) >= 200
    assert Counter(row.label for row in rows) == {
        "supported": len(rows) // 2,
        "hallucinated": len(rows) // 2,
    }
    assert set(Counter(row.language for row in rows).values()) == {len(rows) // len(LANGUAGES)}


@pytest.mark.parametrize("seed", [SEED, 7])
def test_every_length_is_told_rightly(seed: int) -> None:
    rows = list(length_rows(seed))
    assert all(not 0.05 < abs(row.off) < 0.1 for row in rows if row.kind == "point")
    assert wrongly_told(rows) == []


@pytest.mark.parametrize("seed", [SEED, 7])
def test_every_date_is_told_rightly(seed: int) -> None:
    assert wrongly_told(list(date_rows(seed))) == []


def test_between_five_and_ten_per_cent_the_stated_edge_decides() -> None:
    rows = list(grey_rows())
    assert {row.label for row in rows} == {"supported", "hallucinated"}
    assert wrongly_told(rows) == []
