"""Figures about agents: intervals line by line, pairs as a heat map, how much each one counts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from components.charts import HALLUCINATED, MODEBAR, SUPPORTED

LINE = 34  # pixels for each line of a figure
HEAD = 88  # for the title and up to two lines of legend
FOOT = 50
SCALE = ((0.0, "#eef2f6"), (1.0, "#0369a1"))


@dataclass(frozen=True)
class Interval:
    """A line of a forest plot: shares in [0, 1], and `always`, the trivial answer's."""

    name: str
    mean: float
    low: float
    high: float
    n: int
    always: float | None
    is_thin: bool


@dataclass(frozen=True)
class Cell:
    """A square of the heat map between two agents; `words` are read when it is pointed at."""

    one: str
    other: str
    value: float | None
    words: str


def forest_figure(lines: Sequence[Interval], title: str) -> go.Figure:
    """Means with 95 % intervals, the first on top; hollow where there is too little to say."""
    names = [_flat(line.name) for line in lines]
    figure = go.Figure()
    figure.add_scatter(
        name="right, with 95 % interval",
        x=[line.mean for line in lines],
        y=names,
        mode="markers",
        marker={
            "color": SUPPORTED,
            "size": 10,
            "symbol": ["circle-open" if line.is_thin else "circle" for line in lines],
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [line.high - line.mean for line in lines],
            "arrayminus": [line.mean - line.low for line in lines],
            "color": SUPPORTED,
        },
        text=[f"{line.mean:.2f} ({line.low:.2f} to {line.high:.2f}), n={line.n}" for line in lines],
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure.add_scatter(
        name="always saying hallucinated",
        x=[line.always for line in lines],
        y=names,
        mode="markers",
        marker={"color": HALLUCINATED, "size": 9, "symbol": "x"},
        hovertemplate="always hallucinated: %{x:.2f}<extra></extra>",
    )
    figure.update_xaxes(range=[0, 1.02], title="share right")
    return _lines(figure, title, len(lines))


def pairs_figure(names: Sequence[str], cells: Sequence[Cell]) -> go.Figure:
    """Pairs of agents, each pair in both squares; empty where it is not defined."""
    place = {name: number for number, name in enumerate(names)}
    values: list[list[float | None]] = [[None] * len(names) for _ in names]
    words = [[""] * len(names) for _ in names]
    for cell in cells:
        for i, j in ((cell.one, cell.other), (cell.other, cell.one)):
            values[place[i]][place[j]] = cell.value
            words[place[i]][place[j]] = cell.words
    shown = [["" if v is None else f"{v:.2f}" for v in row] for row in values]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=[_flat(name) for name in names],
            y=[_flat(name) for name in names],
            text=shown,
            texttemplate="%{text}",
            customdata=words,
            hovertemplate="%{customdata}<extra></extra>",
            colorscale=[list(step) for step in SCALE],
            zmin=0,
            zmax=1,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            showscale=False,  # each square has its number; on a phone the bar took a third
        )
    )
    figure.update_xaxes(tickangle=-35, showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_layout(
        title="The better one's errors that the other makes up for",
        height=200 + 46 * len(names),
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        modebar=MODEBAR,
    )
    return figure


def counts_figure(
    names: Sequence[str], wrong: Sequence[float], right: Sequence[float]
) -> go.Figure:
    """What an agent's word adds to the log-odds of hallucinated, one line an agent."""
    figure = go.Figure()
    for name, added, colour, pattern in (
        ("when it says hallucinated", wrong, HALLUCINATED, ""),
        ("when it says supported", right, SUPPORTED, "/"),
    ):
        figure.add_bar(
            name=name,
            x=list(added),
            y=[_flat(agent) for agent in names],
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern}},
            hovertemplate="%{y}: %{x:+.2f}<extra></extra>",
        )
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(title="towards supported (below 0) or hallucinated (above 0)")
    return _lines(figure, "How much each agent's word counts", len(names))


def _lines(figure: go.Figure, title: str, many: int) -> go.Figure:
    """Names on the left take the room that they need; the first line stands on top."""
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(
        title={"text": title, "y": 0.99, "yanchor": "top", "yref": "container"},
        height=HEAD + FOOT + LINE * many,
        margin={"l": 10, "r": 10, "t": HEAD, "b": FOOT},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        modebar=MODEBAR,
    )
    return figure


def _flat(name: str) -> str:
    """A name is no markup, and no longer than a figure has room for."""
    short = name if len(name) <= 44 else name[:43] + "…"
    return html.escape(short, quote=False)
