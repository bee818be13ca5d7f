"""Values of a statement beside those of the evidence: tables, totals, and prose with a colon."""

from __future__ import annotations

import pytest

from core.baseline.values import compare_values, is_row

TABLE = "\n".join(
    f"{name} (thousands), Visitors: {count}" for name, count in (("North", 412), ("South", 318),
                                                               ("West", 200))
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_table"),
    [
        ("Revenue (million EUR), 2024: 131.5; 2023: 120.1", True),
        ("Visitors, 2023, North: 412", True),
        ("来客数：412；来店数：30", True),
        ("The police chief said it plainly: 3 people died in the fire on Tuesday night.", False),
        ("The tower is 412 m tall.", False),
    ],
)
def test_a_figure_that_ends_its_cell_makes_a_table_row(text: str, is_table: bool) -> None:
    assert is_row(text) is is_table


def test_the_total_of_a_column_counts_each_cell_once_in_the_unit_of_its_header() -> None:
    (right,) = compare_values("There were 930,000 visitors in all.", 0, [TABLE], "en")
    assert right.status == "derived"
    (wrong,) = compare_values("There were 950,000 visitors in all.", 0, [TABLE], "en")
    assert (wrong.status, wrong.instead) == ("different", "412 + 318 + 200 = 930,000")
