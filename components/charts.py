"""Figures: plain data in, a plotly figure out; plotly is used in files that are named so alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from streamlit.elements.lib.streamlit_plotly_theme import configure_streamlit_plotly_theme

configure_streamlit_plotly_theme()  # launch.py keeps plotly out of Streamlit's own start
# Plotly knows no CSS variables: hues of assets/app.css at a lightness that stands out from the
# light and from the dark page, so that a figure need not know which of them it is on.
HALLUCINATED = "#d9540b"
SUPPORTED = "#0284c7"
QUIET = "#7d8793"
# The bar of tools lies over the title, on a phone for good: full screen is what is wanted there.
MODEBAR = {"remove": ["toImage", "zoom", "pan", "zoomIn", "zoomOut", "autoScale", "resetScale"]}


def threshold_figure(
    taus: Sequence[float], iou: Sequence[float], levels: Mapping[str, float]
) -> go.Figure:
    """Mean IoU at each threshold, with a line at each named level; equal levels share a line."""
    figure = go.Figure()
    figure.add_scatter(
        x=list(taus), y=list(iou), mode="lines", line={"color": SUPPORTED}, showlegend=False
    )
    named: dict[float, list[str]] = {}
    for name, level in levels.items():
        named.setdefault(level, []).append(name)
    low, high = min(iou), max(iou)
    for number, (level, names) in enumerate(sorted(named.items())):
        is_new = "proposed" in names
        figure.add_scatter(
            x=[level, level],
            y=[low, high],
            mode="lines",
            name=f"{', '.join(names)}: {level:.2f}",
            line={"color": HALLUCINATED if is_new else QUIET, "dash": ("dot", "dash")[number % 2]},
        )
    figure.update_layout(title="IoU with people's marks, by threshold")
    figure.update_xaxes(title="threshold: words are marked from this probability on")
    figure.update_yaxes(title="mean IoU")
    return plain(figure)


def plain(figure: go.Figure, height: int = 320) -> go.Figure:
    """The figure with the margins and the legend that all of ours have."""
    figure.update_layout(
        margin={"l": 40, "r": 10, "t": 40, "b": 40},
        height=height,
        legend={"orientation": "h", "y": -0.3},
        modebar=MODEBAR,
    )
    return figure
