"""Figures of the theory: a majority's error by its size, a judge's risk by what messages carry."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from components.charts import HALLUCINATED, QUIET, SUPPORTED, plain

Points = Sequence[tuple[float, float]]


def majority_figure(
    independent: Points, together: Points, bound: Points, measured: Sequence[tuple[int, float, str]]
) -> go.Figure:
    """Error against the number of agents; `measured` are (agents, error, words when pointed at)."""
    figure = go.Figure()
    lines = (
        ("independent agents", independent, SUPPORTED, "solid"),
        ("agents that err together", together, HALLUCINATED, "dash"),
        ("Hoeffding's bound for the effective number", bound, QUIET, "dot"),
    )
    for name, points, colour, dash in lines:
        figure.add_scatter(
            name=name,
            x=[x for x, _ in points],
            y=[y for _, y in points],
            mode="lines",
            line={"color": colour, "dash": dash},
            hovertemplate="%{x} agents: %{y:.3f}<extra></extra>",
        )
    if measured:
        figure.add_scatter(
            name="majorities of your agents",
            x=[k for k, _, _ in measured],
            y=[error for _, error, _ in measured],
            mode="markers",
            marker={"color": QUIET, "size": 9, "symbol": "diamond"},
            text=[words for _, _, words in measured],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.update_layout(title="How often a majority of n agents is wrong")
    figure.update_xaxes(title="agents", tick0=1)
    figure.update_yaxes(rangemode="tozero", range=[0, _top((independent, together, bound))])
    return _with_room(plain(figure, height=380))


def judge_figure(
    budgets: Sequence[float],
    competing: Sequence[float],
    base: float,
    collaborating: Sequence[float],
    measured: tuple[float, float] | None,
) -> go.Figure:
    """Risk against the budget of a message; `measured` is (evidence, risk) of your debates."""
    figure = go.Figure()
    lines = (
        ("competing, taken for evidence", competing, HALLUCINATED, "dash"),
        ("no debate", [base] * len(budgets), QUIET, "dot"),
        ("collaborating", collaborating, SUPPORTED, "solid"),
    )
    for name, risks, colour, dash in lines:
        figure.add_scatter(
            name=name,
            x=list(budgets),
            y=list(risks),
            mode="lines",
            line={"color": colour, "dash": dash},
            hovertemplate="%{x:.2f} nats: %{y:.3f}<extra></extra>",
        )
    if measured is not None:
        figure.add_scatter(
            name="your debates, if collaborating",
            x=[measured[0]],
            y=[measured[1]],
            mode="markers",
            marker={"color": QUIET, "size": 10, "symbol": "diamond"},
            hovertemplate="%{x:.2f} nats: %{y:.3f}<extra></extra>",
        )
    figure.update_layout(title="The judge's risk by how far a message can move it")
    figure.update_xaxes(title="budget of a message, mean LLR in nats")
    figure.update_yaxes(range=[0, 0.62])
    return _with_room(plain(figure, height=380))


def _top(lines: Sequence[Points]) -> float:
    """A little above the highest line."""
    return min(1.02, 1.1 * max([0.1, *(y for points in lines for _, y in points)]))


def _with_room(figure: go.Figure) -> go.Figure:
    """Long names below each other need their room, on a phone above all."""
    figure.update_layout(margin={"l": 40, "r": 10, "t": 40, "b": 130}, legend={"y": -0.24})
    return figure
