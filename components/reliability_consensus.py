"""Weights of agents learned from the answers: how they compare, and taking them into use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from components import state
from components.agent_charts import counts_figure
from components.reliability_answers import draw_answers, draw_learning, require_readable
from components.reliability_kept import Figures, shown_names
from components.reliability_use import PROBLEM, draw_choices, draw_use
from components.words import escaped, when
from core.errors import ConfigError
from core.learning.heard import Agent
from core.learning.learned_consensus import (
    KIND,
    counts_for,
    missing,
    weights_in,
)
from core.learning.weights import Weights
from core.store.learned import Learned, read_body

SYSTEM_WORDS = {
    "stack": "Learned stack",
    "history": "By record",
    "uniform": "All alike",
    "majority": "Majority",
    "single": "Best single agent",
    "always": "Always the same answer",
}
SYSTEM_HELP = (
    "All alike: the mean of all votes. By record: each agent's vote weighs as its past answers "
    "have shown. Learned stack: a logistic regression over votes and what the debate looked like. "
    "Best single agent: the one that did best on the other cases. Always the same answer: "
    "hallucinated, or for log loss and ECE the share that is hallucinated."
)
FIGURES = {
    "log_loss": ("Log loss", "How wrong the probabilities are, in nats; lower is better. It "
                 "decides which weighting is proposed."),
    "auroc": ("AUROC", "How often a hallucinated case gets the higher probability; 0.5 is chance."),
    "balanced_accuracy": ("Balanced accuracy", "The mean of the shares of hallucinated and of "
                          "supported cases that it gets right; 0.5 is chance."),
    "ece": ("ECE", "Calibration error: how far probabilities lie from the shares that turned out "
            "hallucinated; 0 is best. Chance: what perfectly calibrated ones would show."),
}  # fmt: skip
COMPARED = ("n", "groups", "hallucinated", "figures", "proposed", "single", "is_tie")
PROPOSED_WORDS = {
    "stack": "the learned stack",
    "history": "weights by record",
    "uniform": "all agents alike",
}


def draw_consensus(project_id: str, found: Figures) -> None:
    """What was learned last, how it compares, what is in use."""
    st.subheader("Consensus of agents", anchor=False)
    st.caption(
        "What the agents of a run come to together, as one probability. Where weights are in use, "
        "it stands under the verdict of each run; the verdict stays as it is."
    )
    with state.open_store() as store:
        role = store.projects.role_of(project_id, state.person(store))
    is_lead = role in ("lead", "admin")
    with state.open_store() as store:
        before = _intact(store.learned.newest, project_id, is_told=False)
    _draw_learning(project_id, found, before, is_lead=is_lead)
    with state.open_store() as store:
        newest = _intact(store.learned.newest, project_id)
        in_use = _intact(store.learned.in_use, project_id)
        choices = store.learned.choices(KIND, project_id)
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.error(escaped(problem))
    if newest is not None:
        _draw_learned(newest)
        draw_answers(newest)
        draw_use(project_id, newest, in_use, is_lead=is_lead)
    draw_choices(choices)


def _intact(
    read: Callable[[str, str], Learned | None], project_id: str, *, is_told: bool = True
) -> Learned | None:
    """What was learned; what cannot be read as it was learned is named and not used."""
    try:
        found = read(KIND, project_id)
        if found is not None:
            weights_in(found)
            read_body(found, lambda body: [body["compared"][name] for name in COMPARED])
            require_readable(found)
        return found
    except ConfigError as error:
        if is_told:
            st.error(escaped(str(error)), icon=":material/error:")
        return None


def _draw_learning(
    project_id: str, found: Figures, newest: Learned | None, *, is_lead: bool
) -> None:
    lacking = missing(found.rows)
    if lacking:
        st.info(f"Weights can be learned after {lacking}.", icon=":material/info:")
        return
    draw_learning(project_id, found, newest, is_lead=is_lead)


def _draw_learned(learned: Learned) -> None:
    compared: dict[str, Any] = learned.body["compared"]
    weights, agents = weights_in(learned)
    names = shown_names(agents)
    tie = ""
    if compared["is_tie"]:
        best = min(PROPOSED_WORDS, key=lambda own: compared["figures"][own]["log_loss"][0])
        tie = (
            f" “{SYSTEM_WORDS[best]}” has a lower log loss, which may be chance: then the simpler "
            "weighting is proposed."
        )
    st.markdown(
        f"Learned {when(learned.at)} by {escaped(learned.author)} from "
        f"{compared['groups']:,} cases ({compared['hallucinated']:,} of {compared['n']:,} runs "
        f"hallucinated). Proposed: **{PROPOSED_WORDS[compared['proposed']]}**.{tie}"
    )
    st.dataframe(
        [_system_row(system, compared, names) for system in SYSTEM_WORDS],
        key="reliability.consensus",
        hide_index=True,
        height="content",
        column_config={
            words: st.column_config.Column(help=told) for words, told in FIGURES.values()
        }
        | {"Consensus": st.column_config.Column(help=SYSTEM_HELP)},
    )
    st.caption(
        f"All on the same five folds, n={compared['n']:,} runs over {compared['groups']:,} cases; "
        "no case is judged by weights that it taught. In brackets: 95 % of resamples of cases."
    )
    _draw_counts(weights, agents)


def _draw_counts(weights: Weights, agents: Sequence[Agent]) -> None:
    if weights.weighting == "uniform":
        st.caption("All agents that speak in a run count alike.")
        return
    names = shown_names(agents)
    own = counts_for(weights, agents)
    with st.expander("How much each agent counts"):
        figure = counts_figure(
            [names[row["agent"].key] for row in own],
            [row["hallucinated"] for row in own],
            [row["supported"] for row in own],
        )
        st.plotly_chart(figure, key="reliability.counts", width="stretch")
        st.caption(
            "In log-odds, the mean over kinds of cases: +0.7 doubles the odds of hallucinated, "
            "-0.7 halves them. Agents that err together share what they count."
        )


def _system_row(system: str, compared: dict[str, Any], names: dict[str, str]) -> dict[str, str]:
    own = compared["figures"].get(system, {})
    words = SYSTEM_WORDS[system]
    if system == "single":
        words += f": {names.get(compared['single'], 'unknown')}"
    elif system == compared["proposed"]:
        words += " (proposed)"
    return {"Consensus": words} | {
        title: _figure_words(own.get(name), "chance: " if name == "ece" else "")
        for name, (title, _) in FIGURES.items()
    }


def _figure_words(figure: list[float] | None, what: str) -> str:
    if figure is None:
        return "–"
    value, low, high = figure
    return f"{value:.3f} ({what}{low:.3f} to {high:.3f})"
