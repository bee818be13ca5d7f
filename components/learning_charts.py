"""Figures of learning: losses, calibration, confusion, what more cases would add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from components.charts import HALLUCINATED, QUIET, SUPPORTED, plain
from core.learning.learning_curve import Curve

TINTS = ((0.0, "#eaf4fb"), (1.0, "#7cc3e8"))  # light in both themes, so that INK is read on them
INK = "#10202e"
CELLS = (("true_hallucinated", "missed_hallucinated"), ("false_alarms", "true_supported"))
LABELS = ("Hallucinated", "Supported")


def matrix_figure(counts: Mapping[str, Any], title: str) -> go.Figure:
    """What people say (rows) against what a version says (columns), tinted by share of the row."""
    rows = [[int(counts.get(key) or 0) for key in row] for row in CELLS]
    shares = [[value / (sum(row) or 1) for value in row] for row in rows]
    figure = go.Figure(
        go.Heatmap(
            z=shares, x=list(LABELS), y=list(LABELS), zmin=0, zmax=1, showscale=False,
            colorscale=[list(tint) for tint in TINTS], xgap=3, ygap=3, customdata=rows,
            hovertemplate="people say %{y}, it says %{x}: %{customdata}<extra></extra>",
        )
    )  # fmt: skip
    for place, row in enumerate(rows):
        for other, value in enumerate(row):
            words = f"<b>{value}</b><br>{shares[place][other]:.0%}"
            figure.add_annotation(
                x=LABELS[other], y=LABELS[place], text=words, showarrow=False,
                font={"color": INK, "size": 14},
            )  # fmt: skip
    figure.update_layout(title=title)
    figure.update_xaxes(title="it says", side="bottom")
    figure.update_yaxes(title="people say", autorange="reversed", tickangle=-90)
    return plain(figure, height=260)


def reliability_figure(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> go.Figure:
    """How often verdicts were right at each stated confidence; on the line is calibrated.

    A point's area shows how many cases are behind it: their numbers as words lay on one another.
    """
    most = max([one.get("n", 0) for one in (*before, *after)], default=0) or 1
    figure = go.Figure()
    for name, bins, colour, symbol in (
        (names[0], before, QUIET, "diamond"),
        (names[1], after, SUPPORTED, "circle"),
    ):
        filled = [one for one in bins if one.get("n")]
        figure.add_scatter(
            name=name,
            x=[(one["low"] + one["high"]) / 2 for one in filled],
            y=[one["right"] / one["n"] for one in filled],
            text=[f"n={one['n']:.0f}" for one in filled],
            mode="lines+markers",
            line={"color": colour, "dash": "solid" if symbol == "circle" else "dash"},
            marker={
                "color": colour,
                "symbol": symbol,
                "size": [6 + 16 * (one["n"] / most) ** 0.5 for one in filled],
            },
            hovertemplate=f"about %{{x:.2f}}: %{{y:.0%}} right, %{{text}}<extra>{name}</extra>",
        )
    low = min([one["low"] for one in (*before, *after)], default=0.0)
    line = {"color": QUIET, "dash": "dot", "width": 1}
    figure.add_shape(type="line", x0=low, y0=low, x1=1, y1=1, line=line)
    figure.update_layout(title="Confidence against right verdicts (larger: more cases)")
    figure.update_xaxes(title="confidence", range=[low - 0.03, 1.03])
    figure.update_yaxes(title="share that was right", range=[-0.08, 1.15])
    return plain(figure)


def loss_figure(losses: Sequence[Sequence[float]], steps: int = 0) -> go.Figure:
    """The training loss at each step so far; `steps` is where the axis ends."""
    figure = go.Figure()
    figure.add_scatter(
        x=[one[0] for one in losses],
        y=[one[1] for one in losses],
        mode="lines+markers",
        line={"color": SUPPORTED},
        marker={"color": SUPPORTED, "size": 6},
        name="loss",
        hovertemplate="step %{x}: %{y:.3f}<extra></extra>",
    )
    figure.update_layout(title="Loss: how far pairs of texts still lie wrong", showlegend=False)
    figure.update_xaxes(title="step", range=[0, steps] if steps else None)
    figure.update_yaxes(rangemode="tozero")
    return plain(figure, height=240)


def reward_figure(own: Sequence[float], held: Sequence[float]) -> go.Figure:
    """The mean reward of a policy after each update, on its own debates and on those held out."""
    figure = go.Figure()
    for name, rewards, dash in (("trained on", own, "dot"), ("held out", held, "solid")):
        figure.add_scatter(
            name=name,
            x=list(range(len(rewards))),
            y=list(rewards),
            mode="lines",
            line={"dash": dash},
            hovertemplate="update %{x}: %{y:.3f}<extra></extra>",
        )
    figure.update_xaxes(title="updates")
    figure.update_yaxes(title="mean reward")
    return plain(figure)


def curve_figure(curve: Curve) -> go.Figure:
    """Quality against cases learned from, on to twice as many, beside a coin's."""
    figure = go.Figure()
    x = [point.cases for point in curve.points]
    balanced = [point.balanced for point in curve.points]
    figure.add_scatter(
        name="balanced accuracy",
        x=x,
        y=balanced,
        error_y={
            "type": "data", "symmetric": False, "color": SUPPORTED,
            "array": [point.balanced_high - point.balanced for point in curve.points],
            "arrayminus": [point.balanced - point.balanced_low for point in curve.points],
        },
        mode="lines+markers",
        line={"color": SUPPORTED},
        marker={"color": SUPPORTED, "symbol": "circle", "size": 8},
    )  # fmt: skip
    figure.add_scatter(
        name="AUROC",
        x=x,
        y=[point.auroc for point in curve.points],
        mode="lines+markers",
        line={"color": HALLUCINATED, "dash": "dash"},
        marker={"color": HALLUCINATED, "symbol": "x", "size": 8},
    )
    ahead = [round(x[-1] + (2 * curve.cases - x[-1]) * step / 8) for step in range(9)]
    if curve.law is not None:
        figure.add_scatter(
            name="expected",
            x=ahead,
            y=[curve.expected(cases) for cases in ahead],
            mode="lines",
            line={"color": QUIET, "dash": "dot"},
        )
    figure.add_hline(y=0.5, line={"color": QUIET, "width": 1}, annotation_text="always the same")
    figure.update_layout(title="Quality against corrected cases")
    figure.update_xaxes(title="cases learned from", type="log", tickvals=[*x, 2 * curve.cases])
    figure.update_yaxes(range=[0.35, 1.03])
    return plain(figure)
