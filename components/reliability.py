"""The Reliability page: how often each agent is right, overall and on each kind of case."""

from __future__ import annotations

import streamlit as st

from components.agent_charts import Interval, forest_figure
from components.reliability_consensus import draw_consensus
from components.reliability_debate import draw_debate_worth
from components.reliability_kept import Figures, figures
from components.reliability_pairs import draw_pairs
from components.reliability_reasons import draw_reasons
from components.reliability_tools import draw_tools
from components.words import counted, escaped
from core.learning.heard import MOST_RUNS, Agent
from core.learning.posterior import FEWEST, Share
from core.learning.reliability import KindRecord, Record
from core.reviews import category_words

MOST_LINES = 20
PART_WORDS = {
    "debater": "debater",
    "reader": "judge's reader",
    "judge": "judge",
    "classifier": "classifier",
}
DIMENSIONS = {
    "language": "Language",
    "form": "Form",
    "image": "Images",
    "documents": "Documents",
    "tool": "Tool",
    "category": "Kind of error",
}
HELP = {
    "Cases": "Decided cases that the agent spoke on; the same question and response count once.",
    "Unclear": "Cases that the agent left open. They do not count in the shares beside.",
    "Right": "Of the cases that the agent decided: how often it said what people decided. In "
    "brackets: between which values the share lies with 95 % probability (Beta posterior).",
    "Always hallucinated": "How often the one word “hallucinated” would have been right on the "
    "same cases. An agent that is not above this has shown nothing.",
    "Finds hallucinated": "Sensitivity: of hallucinated responses that it decided, how many it "
    "called so.",
    "Passes supported": "Specificity: of supported responses that it decided, how many it called "
    "so.",
    "Rules": "Digest of the prompts or rules that it followed. Another prompt is another agent.",
}


def draw_reliability() -> None:
    """All sections over the project at hand."""
    project_id, found = figures()
    if not found.records:
        st.info(
            "No agent has spoken on a case that people decided yet. Answer cases on Review, or "
            "agree or disagree on runs: each answer counts here.",
            icon=":material/info:",
        )
        draw_tools()
        return
    st.caption(_counted_words(found))
    _draw_agents(found)
    draw_tools()
    _draw_kinds(found)
    draw_pairs(found)
    draw_debate_worth(found)
    draw_reasons(project_id, found)
    draw_consensus(project_id, found)


def _counted_words(found: Figures) -> str:
    newest = f" These are the {MOST_RUNS:,} newest runs; older ones are left out."
    return (
        f"{counted(found.cases, 'case')} that people decided, "
        f"{counted(len(found.rows), 'run')} over them. What was "
        "settled counts, else the newest answer; cases that people left unclear do not. People "
        "look first at cases where agents are unsure, so an agent may do better on all of them."
        + (newest if found.is_cut else "")
    )


def _draw_agents(found: Figures) -> None:
    st.subheader("Each agent", anchor=False)
    best = sorted(found.records, key=lambda r: (r.accuracy.is_thin, -r.accuracy.mean))
    lines = [_interval(found.words[r.agent], r.accuracy, r.always) for r in best]
    st.plotly_chart(
        forest_figure(lines[:MOST_LINES], "How often each agent is right"),
        key="reliability.agents.figure",
        width="stretch",
    )
    st.dataframe(
        [_agent_row(found.words[r.agent], r) for r in best],
        key="reliability.agents",
        hide_index=True,
        height="content",
        column_config={name: st.column_config.Column(help=words) for name, words in HELP.items()},
    )
    if any(record.accuracy.is_thin for record in found.records):
        st.caption(f"Below {FEWEST} decided cases (a hollow circle) a share says little.")


def _agent_row(words: str, record: Record) -> dict[str, object]:
    agent = record.agent
    model = agent.model or ("built in" if agent.rules else "not known")
    return {
        "Agent": words,
        "Part": PART_WORDS.get(agent.part, agent.part),
        "Cases": record.n,
        "Right": share_words(record.accuracy),
        "Always hallucinated": "–" if record.always is None else f"{record.always:.2f}",
        "Finds hallucinated": share_words(record.sensitivity),
        "Passes supported": share_words(record.specificity),
        "Unclear": f"{record.unclear} of {record.n}",
        "Model": model,
        "Rules": agent.rules or "–",
    }


def _draw_kinds(found: Figures) -> None:
    st.subheader("By kind of case", anchor=False)
    agents = [record.agent for record in found.records]
    agent = st.selectbox(
        "Agent", agents, format_func=lambda own: found.words[own], key="reliability.agent"
    )
    dimension = st.segmented_control(
        "Kind of case",
        list(DIMENSIONS),
        format_func=lambda name: DIMENSIONS[name],
        default="language",
        required=True,
        key="reliability.kind",
    )
    if agent is None:
        return
    _draw_kind(agent, str(dimension or "language"), found)


def _draw_kind(agent: Agent, dimension: str, found: Figures) -> None:
    kinds = found.kinds.get((agent, dimension), ())
    if not kinds:
        st.caption("The agent has decided no case of which this is known.")
        return
    title = f"{found.words[agent]}: {DIMENSIONS[dimension].lower()}"
    lines = [_kind_interval(own, dimension) for own in kinds[:MOST_LINES]]
    st.plotly_chart(forest_figure(lines, title), key="reliability.kinds.figure", width="stretch")
    words = (
        "A kind with few cases is drawn towards the agent's share over all cases, the more the "
        "fewer it has and the less the kinds differ."
    )
    if dimension == "category":
        words += " These are hallucinated responses only, by what people marked in them."
    st.caption(escaped(words))


def _kind_interval(own: KindRecord, dimension: str) -> Interval:
    name = category_words(own.kind) if dimension == "category" else own.kind
    return _interval(f"{name} (n={own.accuracy.n})", own.accuracy, own.always)


def _interval(name: str, share: Share, always: float | None) -> Interval:
    return Interval(name, share.mean, share.low, share.high, share.n, always, share.is_thin)


def share_words(share: Share) -> str:
    """“0.61 (0.40 to 0.79), n=31”, with a remark where there are too few cases."""
    if not share.n:
        return "–"
    told = f"{share.mean:.2f} ({share.low:.2f} to {share.high:.2f}), n={share.n}"
    return told + (", too few" if share.is_thin else "")
