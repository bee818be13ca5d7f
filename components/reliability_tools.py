"""How often audits used each tool, and how often people agree with it (HaluAgent 3.4, fig. 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from components import state
from components.charts import Interval, forest_figure
from components.wording import counted
from core.learning.reliability import FEWEST
from core.learning.tool_rates import MOST_RUNS, Audited, ToolRate, ToolRates, tool_rates
from core.learning.track_record import Share
from core.store import open_store
from core.store.sqlite import Mark
from core.tools.registry import toolbox

MOST_KEPT = 4  # projects
HELP = {
    "Used in": "Of all audits, those in which it was called.",
    "Where it was meant": "Of statements (and whole responses) that the tool's own rules read "
    "something for: where it was called.",
    "Found / nothing / off / failed": "What came of its calls. Off: it needs something that is not "
    "there, a language model or a source. Neither off nor failed is ever a label.",
    "Its label is right": "Of its labels other than unclear: those that people's answers agree "
    "with. In brackets the 95% interval (Wilson).",
    "Always hallucinated": "How often the one word “hallucinated” would have been right on the "
    "same calls. A tool that is not above this has shown nothing.",
    "The statement is right in the end": "Of the statements that it was called for: those whose "
    "label in the end people agree with; unclear counts as wrong.",
}


def draw_tools() -> None:
    """The table of all tools over the project's audits; nothing before there is one."""
    rates = _current()
    if not rates.audits:
        return
    st.subheader("Each tool", anchor=False)
    newest = f" These are the {MOST_RUNS:,} newest." if rates.audits == MOST_RUNS else ""
    st.caption(
        f"{counted(rates.audits, 'audit')}, {rates.decided:,} of them over responses that people "
        f"answered.{newest}"
    )
    judged = [rate for rate in rates.tools if rate.label_right.n]
    if judged:
        figure = forest_figure(
            [_interval(r) for r in judged], "How often each tool's label is right"
        )
        st.plotly_chart(figure, key="reliability.tools.figure", width="stretch")
    st.dataframe(
        [_row(rate) for rate in rates.tools if rate.calls or not _is_system(rate.tool)],
        key="reliability.tools",
        hide_index=True,
        height="content",
        column_config={name: st.column_config.Column(help=words) for name, words in HELP.items()},
    )
    if any(rate.label_right.n < FEWEST for rate in judged):
        st.caption(f"Below {FEWEST} labels (a hollow circle) a share says little.")


def _is_system(name: str) -> bool:
    """Tools that run the audit itself; nobody chooses them."""
    tool = toolbox().get(name)
    return tool is not None and tool.is_system


def _current() -> ToolRates:
    """The rates of the project at hand as of now."""
    with state.open_store() as store:
        mark = (*store.changes.of_corrections(), *store.changes.of_runs())
        project_id = state.project(store).id
    return _rates(str(state.home()), project_id, mark)


@st.cache_resource(max_entries=MOST_KEPT, show_spinner=False)
def _known(home: str, project_id: str) -> dict[str, Audited]:
    """What was read of each audit: after the next answer, only new ones are read."""
    return {}


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Counting what tools did")
def _rates(home: str, project_id: str, mark: Mark) -> ToolRates:
    """Kept until somebody says something or a run ends."""
    with open_store(Path(home)) as store:
        return tool_rates(store, project_id, _known(home, project_id))


def _row(rate: ToolRate) -> dict[str, Any]:
    came = rate.outcomes
    return {
        "Tool": rate.tool,
        "Calls": rate.calls,
        "Used in": _of(rate.used),
        "Where it was meant": _of(rate.where_meant),
        "Found / nothing / off / failed": " / ".join(
            f"{came.get(outcome, 0):,}" for outcome in ("found", "nothing", "off", "failed")
        ),
        "Seconds a call": f"{rate.seconds / rate.calls:.2f}" if rate.calls else "–",
        "Its label is right": share_words(rate.label_right),
        "Always hallucinated": f"{rate.always.value:.2f}" if rate.always.n else "–",
        "The statement is right in the end": share_words(rate.statement_right),
    }


def _of(share: Share) -> str:
    return f"{100 * share.value:.0f}% ({share.right:,} of {share.n:,})" if share.n else "–"


def share_words(share: Share) -> str:
    """“0.61 (0.40 to 0.79), n=31”, with a remark where there are too few."""
    if not share.n:
        return "–"
    low, high = share.interval
    told = f"{share.value:.2f} ({low:.2f} to {high:.2f}), n={share.n:,}"
    return told + (", too few" if share.n < FEWEST else "")


def _interval(rate: ToolRate) -> Interval:
    share = rate.label_right
    low, high = share.interval
    is_thin = share.n < FEWEST
    return Interval(rate.tool, share.value, low, high, share.n, rate.always.value, is_thin)
