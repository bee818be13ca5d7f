"""Figures are read in both themes, and never by colour alone."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from components.measure.calibration import level_figure, risk_figure
from components.widgets.charts import threshold_figure
from core.learning.track_record import Point, Share

CONFIG = Path(__file__).resolve().parent.parent.parent / ".streamlit" / "config.toml"
THEME = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["theme"]
COUNTS = {
    "true_hallucinated": 2, "missed_hallucinated": 0, "false_alarms": 1, "true_supported": 1,
}  # fmt: skip
LEVELS = [(0.55, Share(12, 20)), (0.97, Share(30, 30))]
POINTS = [Point(0.97, 0.6, Share(0, 30)), Point(0.55, 1.0, Share(8, 50))]
LEAST_CONTRAST = 3.0  # WCAG 2.1, 1.4.11: graphics


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colours(figure: Any) -> set[str]:
    """Every colour that a figure sets itself."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name == "color" and isinstance(inner, str):
                    found.add(inner)
                look(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                look(inner)

    made = figure.to_dict()
    look(made["data"])
    look(made["layout"].get("shapes", ()))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "figure",
    [
        threshold_figure([0.3, 0.4], [0.5, 0.6], {"in use": 0.3, "proposed": 0.4}),
        level_figure(LEVELS),
        risk_figure(POINTS, 0.1, POINTS[1]),
    ],
)
def test_a_figures_colours_stand_out_in_both_themes(theme: str, figure: Any) -> None:
    background = THEME[theme]["backgroundColor"]
    assert colours(figure)
    for colour in colours(figure):
        assert contrast(colour, background) >= LEAST_CONTRAST, colour


def test_coverage_and_risk_stand_beside_a_random_order_and_what_is_wanted() -> None:
    lines = {
        line.get("name"): line for line in risk_figure(POINTS, 0.1, POINTS[0]).to_dict()["data"]
    }
    assert (list(lines["the surest first"]["x"]), list(lines["the surest first"]["y"])) == (
        [0.6, 1.0], [0.0, 0.16]
    )  # fmt: skip
    assert list(lines["in a random order"]["y"]) == [0.16, 0.16]
    assert list(lines["wanted at most"]["y"]) == [0.1, 0.1]
    assert (list(lines["in use"]["x"]), list(lines["in use"]["y"])) == ([0.6], [0.0])
    assert not {"wanted at most", "in use"} & {
        line.get("name") for line in risk_figure(POINTS, None, None).to_dict()["data"]
    }


def test_each_level_stands_with_its_range_and_its_number() -> None:
    said, numbers = level_figure(LEVELS).to_dict()["data"]
    assert (list(said["x"]), list(said["y"])) == ([0.55, 0.97], [0.6, 1.0])
    assert list(said["error_y"]["array"]) == pytest.approx([0.181, 0.0], abs=0.001)
    assert list(said["error_y"]["arrayminus"]) == pytest.approx([0.213, 0.114], abs=0.001)
    assert list(numbers["text"]) == ["20", "30"]


def test_the_thresholds_stand_on_their_curve_and_equal_ones_share_a_line() -> None:
    levels = {"as shipped": 0.38, "in use": 0.5, "proposed": 0.5}
    figure = threshold_figure([0.3, 0.5], [0.2, 0.6], levels)
    curve, first, second = figure.data
    assert list(curve.y) == [0.2, 0.6]
    assert (first.name, list(first.x)) == ("as shipped: 0.38", [0.38, 0.38])
    assert second.name == "in use, proposed: 0.50"
    assert second.line.color != first.line.color
