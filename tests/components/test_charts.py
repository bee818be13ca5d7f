"""Figures are read in both themes, and never by colour alone; names in them are no markup."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.measure.calibration import plot_levels, plot_risk
from components.widgets.charts import (
    AccuracyInterval,
    AgentPairCell,
    answer_weights_figure,
    confusion_matrix_figure,
    cost_accuracy_figure,
    forest_figure,
    judge_risk_figure,
    learning_curve_figure,
    loss_figure,
    majority_error_figure,
    pair_heatmap_figure,
    reliability_figure,
    threshold_figure,
    write_figures_html,
)
from core.learning.data_quality import LearningCurve
from core.learning.data_quality import LearningCurvePoint as Learned
from core.learning.track_record import ThresholdPoint, WilsonShare

CONFIG = Path(__file__).resolve().parent.parent.parent / ".streamlit" / "config.toml"
THEME = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["theme"]
COUNTS = {
    "true_hallucinated": 2, "missed_hallucinated": 0, "false_alarms": 1, "true_supported": 1,
}  # fmt: skip
LEVELS = [(0.55, WilsonShare(12, 20)), (0.97, WilsonShare(30, 30))]
POINTS = [
    ThresholdPoint(0.97, 0.6, WilsonShare(0, 30)),
    ThresholdPoint(0.55, 1.0, WilsonShare(8, 50)),
]
LEAST_CONTRAST = 3.0  # WCAG 2.1, 1.4.11: graphics


EVIL = '<a href="http://evil.example">a</a>'
LINES = [
    AccuracyInterval(EVIL, 0.8, 0.7, 0.9, 60, 0.4),
    AccuracyInterval("b", 0.5, 0.1, 0.9, 30, None),
]
FOREST = forest_figure(LINES, "How often")
ADDED = answer_weights_figure([EVIL, "b"], [1.2, 0.1], [-1.0, -0.1])
PAIRS = pair_heatmap_figure([EVIL, "b"], [AgentPairCell(EVIL, "b", 0.25, "n=9")])
BINS = [{"low": 0.5, "high": 0.75, "n": 32, "right": 24}, {"low": 0.75, "high": 1.0, "n": 29,
        "right": 0}]  # fmt: skip
CURVE = LearningCurve(
    (Learned(8, 0.6, 0.5, 0.7, 0.65), Learned(90, 0.8, 0.75, 0.85, 0.9)),
    120, (0.9, 0.9, 0.5), 0.02, 0.01, 0.03,
)  # fmt: skip


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
        plot_levels(LEVELS),
        plot_risk(POINTS, 0.1, POINTS[1]),
        FOREST,
        ADDED,
        reliability_figure(BINS, BINS, ("seed", "v1")),
        loss_figure([(5, 0.4), (10, 0.2)], 40),
        learning_curve_figure(CURVE),
    ],
)
def test_a_figures_colours_stand_out_in_both_themes(theme: str, figure: Any) -> None:
    background = THEME[theme]["backgroundColor"]
    assert colours(figure)
    for colour in colours(figure):
        assert contrast(colour, background) >= LEAST_CONTRAST, colour


def test_coverage_and_risk_stand_beside_a_random_order_and_what_is_wanted() -> None:
    lines = {line.get("name"): line for line in plot_risk(POINTS, 0.1, POINTS[0]).to_dict()["data"]}
    assert (list(lines["the surest first"]["x"]), list(lines["the surest first"]["y"])) == (
        [0.6, 1.0], [0.0, 0.16]
    )  # fmt: skip
    assert list(lines["in a random order"]["y"]) == [0.16, 0.16]
    assert list(lines["target"]["y"]) == [0.1, 0.1]
    assert (list(lines["in use"]["x"]), list(lines["in use"]["y"])) == ([0.6], [0.0])
    assert not {"target", "in use"} & {
        line.get("name") for line in plot_risk(POINTS, None, None).to_dict()["data"]
    }


def test_each_level_stands_with_its_range_and_its_number() -> None:
    said, numbers = plot_levels(LEVELS).to_dict()["data"]
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


def test_the_trivial_answer_has_a_sign_of_its_own() -> None:
    right, always = FOREST.to_dict()["data"]
    assert right["marker"]["symbol"] == "circle"
    assert always["marker"]["symbol"] == "x"
    assert right["error_x"]["array"][0] == pytest.approx(0.1)
    bars = ADDED.to_dict()["data"]
    assert len({bar["marker"]["pattern"]["shape"] for bar in bars}) == len(bars)


def test_a_pair_stands_on_both_sides_and_nothing_with_itself() -> None:
    (heat,) = PAIRS.to_dict()["data"]
    assert [list(row) for row in heat["z"]] == [[None, 0.25], [0.25, None]]
    assert [list(row) for row in heat["text"]] == [["", "0.25"], ["0.25", ""]]


@pytest.mark.parametrize("figure", [FOREST, ADDED, PAIRS])
def test_names_are_no_markup(figure: Any) -> None:
    for trace in figure.to_dict()["data"]:
        for name in [*trace["y"]]:
            assert "<" not in str(name)


def test_no_tools_but_full_screen_lie_over_a_title() -> None:
    figures = [FOREST, PAIRS, loss_figure([(1, 0.3), (2, 0.2)])]
    for figure in figures:
        removed = figure.to_dict()["layout"]["modebar"]["remove"]
        assert {"zoom", "pan", "toImage"} <= set(removed)


def test_a_matrix_says_its_counts_and_shares() -> None:
    words = [
        note["text"]
        for note in confusion_matrix_figure(COUNTS, "v1").to_dict()["layout"]["annotations"]
    ]
    assert words == ["<b>2</b><br>100%", "<b>0</b><br>0%", "<b>1</b><br>50%", "<b>1</b><br>50%"]


def test_bins_of_few_cases_are_left_out_and_others_say_their_n() -> None:
    before, after = reliability_figure(BINS, BINS, ("seed", "v1")).to_dict()["data"]
    assert (before["x"], before["y"], before["text"]) == ([0.625], [0.75], ["n=32"])
    assert after["marker"]["symbol"] != before["marker"]["symbol"]
    assert before["mode"] == after["mode"] == "markers", "between two levels nothing was measured"
    assert before["error_y"]["arrayminus"] == pytest.approx([0.171], abs=0.001)


def test_a_curve_goes_on_to_twice_as_many_cases() -> None:
    lines = {line["name"]: line for line in learning_curve_figure(CURVE).to_dict()["data"]}
    assert lines["expected"]["x"][0] == 90
    assert lines["expected"]["x"][-1] == 240
    assert lines["balanced accuracy"]["error_y"]["array"] == pytest.approx([0.1, 0.05])


def assert_axes_hold_all(figure: Any) -> None:
    """Every point lies inside its axes with its interval, and off their very edges."""
    made = figure.to_dict()
    for axis in "xy":
        bounds = made["layout"][f"{axis}axis"].get("range")
        for trace in made["data"] if bounds else ():
            values = [v for v in trace[axis] if isinstance(v, int | float)]
            error = trace.get(f"error_{axis}") or {}
            none = [0.0] * len(values)
            for value, more, less in zip(
                values, error.get("array", none), error.get("arrayminus", none), strict=True
            ):
                assert bounds[0] < value - less <= value + more < bounds[1], trace.get("name")


@pytest.mark.parametrize("seed", range(4))
def test_axes_hold_what_is_drawn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [1, 2, 14, *rng.integers(30, 200, 3).tolist()]
    shares = [WilsonShare(int(rng.integers(0, n + 1)), n) for n in sizes]
    shares += [WilsonShare(0, 40), WilsonShare(40, 40)]
    p = [*rng.random(7).tolist(), 0.0, 1.0]
    levels = [(0.5 + n / 16, share) for n, share in enumerate(shares, start=1)]
    points = [ThresholdPoint(0.5, n / 8, share) for n, share in enumerate(shares, start=1)]
    lines = [AccuracyInterval("a", s.value, *s.interval, s.n, p[0]) for s in shares]
    bins = [{"low": 0.5, "high": 1.0, "n": s.n, "right": s.right} for s in shares]
    learned = [Learned(8 + n, s.value, *s.interval, p[1]) for n, s in enumerate(shares)]
    counted = list(enumerate(p, start=1))
    for figure in (
        plot_levels(levels),
        plot_risk(points, None, points[-1]),
        plot_risk(points, p[2], None),
        forest_figure(lines, "How often"),
        reliability_figure(bins, bins, ("seed", "v1")),
        learning_curve_figure(LearningCurve(tuple(learned), 120, None, None, None, None)),
        majority_error_figure(counted, counted, counted, [(2, p[4], "two")]),
        judge_risk_figure([0.0, 1.0], p[5:7], p[7], p[7:9], (0.5, p[8])),
        threshold_figure([0.3, 0.4], p[7:9], {"in use": 0.3}),
    ):
        assert_axes_hold_all(figure)


def test_only_systems_that_nothing_cheaper_reaches_lie_on_the_line() -> None:
    points = [
        ("cheap", 0.01, (0.6, 0.5, 0.7)),
        ("worse", 0.02, (0.5, 0.4, 0.6)),
        ("<dear>", 0.05, (0.8, 0.7, 0.9)),
    ]
    figure = cost_accuracy_figure(points, "US$ a row", "accuracy")
    line, *systems = figure.to_dict()["data"]
    assert (list(line["x"]), list(line["y"])) == ([0.01, 0.05], [0.6, 0.8])
    assert [one["name"] for one in systems] == ["cheap", "worse", "&lt;dear&gt;"]
    page = write_figures_html([figure, figure])
    assert page.count("Plotly.newPlot(") >= 2
    assert '<script src="' not in page, "the file needs no network"
