"""Quality over time: by week, roster and protocol, from stored runs and people's answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from components.app import state
from components.measure.agreement import format_interval
from components.measure.benchmark_results import format_system
from components.widgets.charts import (
    SHARE_RANGE,
    SYSTEM_COLORS,
    SYSTEM_SYMBOLS,
    style_figure,
)
from components.widgets.controls import draw_table
from core.learning.track_record import MIN_CASES, WilsonShare
from core.learning.weekly_quality import WeekOfRuns, count_weeks
from core.store import open_store
from core.store.sqlite import ChangeMark

MAX_WEEKS, MAX_CACHED = 26, 4
HINT = (
    "Overturned: of verdicts that people decided, those that they called something else; unclear "
    "counts as overturned. Drift: how the share called hallucinated differs from all earlier weeks "
    "of the same models and protocol; it has drifted if the interval leaves out 0. The cases may "
    "have changed instead of the models. 95% intervals: Wilson for shares, bootstrap over runs for "
    "drift, cost and seconds. Weeks begin on Monday (UTC)."
)


def draw_weeks() -> None:
    """Draw the newest weeks as a figure and a table, if there are any runs."""
    with state.open_store() as store:
        project_id = state.get_project(store).id
    weeks = _load_weeks(str(state.home_folder()), project_id, state.get_answers_mark())
    newest = sorted({week.week for week in weeks})[-MAX_WEEKS:]
    weeks = [week for week in weeks if week.week in newest]
    if not weeks:
        return
    st.subheader("Over time", anchor=False)
    if len(newest) > 1:
        st.plotly_chart(_plot_overturned(weeks), key="reliability.weeks", width="stretch")
    rows = sorted(weeks, key=lambda week: week.week, reverse=True)
    draw_table([_build_row(week) for week in rows], "reliability.weeks.table")
    st.caption(HINT)


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Counting the weeks")
def _load_weeks(home: str, project_id: str, mark: ChangeMark) -> list[WeekOfRuns]:
    with open_store(Path(home)) as store:
        return count_weeks(store, project_id)


def _build_row(week: WeekOfRuns) -> dict[str, Any]:
    drift = week.drift and format_interval(*week.drift, sign="+")
    has_drifted = week.drift is not None and (week.drift.low > 0 or week.drift.high < 0)
    shares = {"Overturned": week.overturned, "Said hallucinated": week.hallucinated}
    return {
        "Week of": week.week,
        "System": format_system(week.roster, week.protocol),
        "Runs": week.runs,
        **{name: _format_share(share) for name, share in shares.items()},
        "Drift": f"{drift}{', drifted' if has_drifted and week.runs >= MIN_CASES else ''}"
        if drift
        else "–",
        "US$ a run": format_interval(*week.cost, digits=4) if week.cost else "not known",
        "Seconds a run": format_interval(*week.seconds, digits=1),
    }


def _format_share(share: WilsonShare) -> str:
    return f"{format_interval(share.value, *share.interval)}, n={share.n:,}" if share.n else "–"


def _plot_overturned(weeks: Sequence[WeekOfRuns]) -> go.Figure:
    """Plot the share that people overturned by week, a trace for each system."""
    figure = go.Figure()
    systems = dict.fromkeys((week.roster, week.protocol) for week in weeks)
    for number, system in enumerate(systems):
        own = [w for w in weeks if (w.roster, w.protocol) == system and w.overturned.n]
        shares = [week.overturned for week in own]
        colour = SYSTEM_COLORS[number % len(SYSTEM_COLORS)]
        figure.add_scatter(
            name=format_system(*system), x=[week.week for week in own],
            y=[share.value for share in shares], text=[f"n={share.n}" for share in shares],
            mode="markers+lines", line={"color": colour, "dash": "dot", "width": 1},
            marker={"symbol": SYSTEM_SYMBOLS[number % len(SYSTEM_SYMBOLS)], "size": 9},
            error_y={
                "type": "data", "symmetric": False, "color": colour,
                "array": [share.interval[1] - share.value for share in shares],
                "arrayminus": [share.value - share.interval[0] for share in shares],
            },
        )  # fmt: skip
    figure.update_layout(title="Overturned by people, by week of the verdict")
    figure.update_xaxes(type="category", categoryorder="category ascending")
    figure.update_yaxes(range=list(SHARE_RANGE), tickformat=".0%")
    return style_figure(figure)
