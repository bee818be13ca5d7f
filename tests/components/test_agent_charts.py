"""Figures about agents are read in both themes, never by colour alone, and names are no markup."""

from __future__ import annotations

from typing import Any

import pytest

from components.widgets.charts import (
    Cell,
    Interval,
    counts_figure,
    forest_figure,
    loss_figure,
    pairs_figure,
)
from tests.components.test_charts import LEAST_CONTRAST, THEME, colours, contrast

EVIL = '<a href="http://evil.example">a</a>'
LINES = [
    Interval(EVIL, 0.8, 0.7, 0.9, 60, 0.4, is_thin=False),
    Interval("b", 0.5, 0.1, 0.9, 3, None, is_thin=True),
]
FOREST = forest_figure(LINES, "How often")
COUNTS = counts_figure([EVIL, "b"], [1.2, 0.1], [-1.0, -0.1])
PAIRS = pairs_figure([EVIL, "b"], [Cell(EVIL, "b", 0.25, "n=9")])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("figure", [FOREST, COUNTS])
def test_colours_stand_out_in_both_themes(theme: str, figure: Any) -> None:
    for colour in colours(figure):
        assert contrast(colour, THEME[theme]["backgroundColor"]) >= LEAST_CONTRAST, colour


def test_what_is_thin_is_hollow_and_the_trivial_answer_has_a_sign_of_its_own() -> None:
    right, always = FOREST.to_dict()["data"]
    assert list(right["marker"]["symbol"]) == ["circle", "circle-open"]
    assert always["marker"]["symbol"] == "x"
    assert right["error_x"]["array"][0] == pytest.approx(0.1)
    bars = COUNTS.to_dict()["data"]
    assert len({bar["marker"]["pattern"]["shape"] for bar in bars}) == len(bars)


def test_a_pair_stands_on_both_sides_and_nothing_with_itself() -> None:
    (heat,) = PAIRS.to_dict()["data"]
    assert [list(row) for row in heat["z"]] == [[None, 0.25], [0.25, None]]
    assert [list(row) for row in heat["text"]] == [["", "0.25"], ["0.25", ""]]


@pytest.mark.parametrize("figure", [FOREST, COUNTS, PAIRS])
def test_names_are_no_markup(figure: Any) -> None:
    for trace in figure.to_dict()["data"]:
        for name in [*trace["y"]]:
            assert "<" not in str(name)


def test_no_tools_but_full_screen_lie_over_a_title() -> None:
    figures = [FOREST, PAIRS, loss_figure([(1, 0.3), (2, 0.2)])]
    for figure in figures:
        removed = figure.to_dict()["layout"]["modebar"]["remove"]
        assert {"zoom", "pan", "toImage"} <= set(removed)
