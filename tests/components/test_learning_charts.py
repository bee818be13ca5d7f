"""Figures of learning are read in both themes, hide no count, and take names as text."""

from __future__ import annotations

from typing import Any

import pytest

from components.widgets.charts import curve_figure, loss_figure, matrix_figure, reliability_figure
from core.learning.data_quality import Curve, Point
from tests.components.test_charts import COUNTS, LEAST_CONTRAST, THEME, colours, contrast

BINS = [{"low": 0.5, "high": 0.75, "n": 4, "right": 3}, {"low": 0.75, "high": 1.0, "n": 0,
        "right": 0}]  # fmt: skip
CURVE = Curve(
    (Point(8, 0.6, 0.5, 0.7, 0.65), Point(90, 0.8, 0.75, 0.85, 0.9)),
    120, (0.9, 0.9, 0.5), 0.02, 0.01, 0.03,
)  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "figure",
    [
        reliability_figure(BINS, BINS, ("seed", "v1")),
        loss_figure([(5, 0.4), (10, 0.2)], 40),
        curve_figure(CURVE),
    ],
)
def test_colours_stand_out_in_both_themes(theme: str, figure: Any) -> None:
    background = THEME[theme]["backgroundColor"]
    assert colours(figure)
    for colour in colours(figure):
        assert contrast(colour, background) >= LEAST_CONTRAST, colour


def test_a_matrix_says_its_counts_and_shares() -> None:
    words = [
        note["text"] for note in matrix_figure(COUNTS, "v1").to_dict()["layout"]["annotations"]
    ]
    assert words == ["<b>2</b><br>100%", "<b>0</b><br>0%", "<b>1</b><br>50%", "<b>1</b><br>50%"]


def test_empty_bins_are_left_out_and_others_say_their_n() -> None:
    before, after = reliability_figure(BINS, BINS, ("seed", "v1")).to_dict()["data"]
    assert (before["x"], before["y"], before["text"]) == ([0.625], [0.75], ["n=4"])
    assert after["marker"]["symbol"] != before["marker"]["symbol"]
    assert before["marker"]["size"] == [6 + 16]  # the largest of all


def test_a_curve_goes_on_to_twice_as_many_cases() -> None:
    lines = {line["name"]: line for line in curve_figure(CURVE).to_dict()["data"]}
    assert lines["expected"]["x"][0] == 90
    assert lines["expected"]["x"][-1] == 240
    assert lines["balanced accuracy"]["error_y"]["array"] == pytest.approx([0.1, 0.05])
