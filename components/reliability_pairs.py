"""Pairs of agents that make up for each other's errors, as a heat map and a table (ColMAD 2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.agent_charts import Cell, pairs_figure
from components.reliability_kept import Figures, shown_names
from components.words import counted
from core.learning.complement import FEWEST, Pair

MOST_ROWS = 20
MEASURE = (
    "Reduction of errors from oracle collaboration (after ColMAD, equation 4): if a judge took the "
    "right answer wherever one of the two gave it, only errors that both make would be left. "
    "The figure is 1 - (cases that both get wrong) / (cases that the better of the two gets "
    "wrong). 0: the second adds nothing. 1: they never err together. It is what a perfect judge "
    "could gain from the pair, not what a debate does gain."
)


def draw_pairs(found: Figures) -> None:
    """The heat map, and the pairs with the most to gain."""
    if not found.pairs:
        return
    st.subheader("Who makes up for whom", anchor=False, help=MEASURE)
    if all(own.is_thin or own.reduction is None for own in found.pairs):
        st.caption(why_nothing(found.pairs))
        return
    names = shown_names(found.paired)
    cells = [
        Cell(names[p.one], names[p.other], None if p.is_thin else p.reduction, _words(p, names))
        for p in found.pairs
    ]
    st.plotly_chart(
        pairs_figure([names[agent.key] for agent in found.paired], cells),
        key="reliability.pairs.figure",
        width="stretch",
    )
    st.caption(
        f"Pairs with fewer than {FEWEST} cases in common stay empty, as do those whose better one "
        "made no error. Unclear counts as not right."
    )
    best = sorted(found.pairs, key=lambda own: (own.is_thin, -own.gain))
    with st.expander("The pairs with the most to gain"):
        st.dataframe(
            [_row(own, names) for own in best[:MOST_ROWS]],
            key="reliability.pairs",
            hide_index=True,
            height="content",
            column_config={
                "Gain": st.column_config.Column(
                    help="What the pair gets right together above its better one alone, as a "
                    "share of the cases."
                ),
                "Errors that go": st.column_config.Column(help=MEASURE),
            },
        )


def why_nothing(found: Sequence[Pair]) -> str:
    """Why no pair has a figure."""
    thin = sum(own.is_thin for own in found)
    spotless = sum(own.reduction is None for own in found if not own.is_thin)
    told = []
    if thin:
        told.append(f"{thin} spoke on fewer than {FEWEST} of the same cases")
    if spotless:
        told.append(f"in {spotless} the better one made no error that another could make up for")
    return (
        f"Of {counted(len(found), 'pair')} of agents nothing can be told yet: "
        f"{', and '.join(told)}. Each answer on Review adds a case."
    )


def _row(own: Pair, names: dict[str, str]) -> dict[str, object]:
    return {
        "Agents": f"{names[own.one]} · {names[own.other]}",
        "Cases": own.n,
        "At least one right": f"{own.oracle:.2f}",
        "Both right": f"{own.both_right:.2f}",
        "Both wrong": f"{own.both_wrong:.2f}",
        "Better one alone": f"{own.oracle - own.gain:.2f}",
        "Gain": f"{own.gain:.2f}",
        "Errors that go": _reduction_words(own),
    }


def _words(own: Pair, names: dict[str, str]) -> str:
    """What is read when a square is pointed at; figures need no markup of ours."""
    return (
        f"errors that go: {_reduction_words(own)}<br>n={own.n}, at least one right "
        f"{own.oracle:.2f}, both right {own.both_right:.2f}, both wrong {own.both_wrong:.2f}"
    )


def _reduction_words(own: Pair) -> str:
    if own.reduction is None or own.low is None or own.high is None:
        return "not defined"
    few = ", too few" if own.is_thin else ""
    return f"{own.reduction:.2f} ({own.low:.2f} to {own.high:.2f}){few}"
