"""Reliability: learned weights (SC-MAKS 3.5), pairs that make up for each other (ColMAD 2.1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.measure import WORDS
from components.measure.agreement import between
from components.widgets.charts import Cell, counts_figure, pairs_figure, reward_figure
from components.widgets.controls import button, problem_kept, show_problem, table
from components.widgets.wording import counted, escaped, when
from core.learning import learned_consensus as consensus
from core.learning.debate_worth import Worth, worth
from core.learning.reasoning import Known, ReasoningRow, SpeakingAgent, rows_of, words_of
from core.learning.reliability import (
    FEWEST,
    KINDS,
    AgentPair,
    AgentRecord,
    AnswerTable,
    KindRecord,
    by_kinds,
    pairs,
    records,
    table_of,
    voices_once,
)
from core.runtime.errors import ConfigError
from core.store import open_store
from core.store.sqlite import Mark
from core.store.versions import NONE, Choice, Learned, read_body

PROBLEM = "reliability.problem"


def _draw_use(project_id: str, newest: Learned, in_use: Learned | None, *, is_lead: bool) -> None:
    told = f"In use: the weights of {when(in_use.at)}." if in_use else "No weights are in use."
    st.markdown(f"**{told}**")
    if not is_lead:
        st.caption("A lead puts weights in use.")
        return
    st.text_input("Reason", key="reliability.reason", max_chars=400)
    with st.container(horizontal=True):
        for words, name, icon, number, is_offered in (
            ("Use these weights", "use", "check_circle", newest.number,
             in_use is None or in_use.number != newest.number),
            ("Use no weights", "back", "undo", NONE, in_use is not None),
        ):  # fmt: skip
            if is_offered:
                button(words, f"reliability.{name}", _choose, project_id, number, icon=icon)


def _choose(project_id: str, number: int) -> None:
    reason = str(st.session_state.get("reliability.reason") or "")
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            by = state.person(store)
            consensus.choose(store, project_id, number, by=by, reason=reason, now=time.time())
        st.session_state["reliability.reason"] = ""


def _draw_choices(choices: list[Choice]) -> None:
    if choices:
        with st.expander("Who put which weights in use"):
            for choice in choices:
                what = f"weights {choice.number}" if choice.number != NONE else "no weights"
                words = f"{escaped(choice.by)} · {what}: {escaped(choice.reason)}"
                st.markdown(f"{when(choice.at)} · {words}")


MOST_KEPT = 4  # projects
MOST_PAIRED = 12  # agents in the heat map: those with the most cases


@dataclass(frozen=True)
class ReliabilityFigures:
    """All that is drawn; `table` has the decided cases, equal ones once."""

    rows: tuple[ReasoningRow, ...]
    table: AnswerTable
    records: tuple[AgentRecord, ...]
    words: dict[SpeakingAgent, str]
    kinds: dict[tuple[SpeakingAgent, str], tuple[KindRecord, ...]]
    paired: tuple[SpeakingAgent, ...]
    pairs: tuple[AgentPair, ...]
    worth: Worth | None


def figures() -> tuple[str, ReliabilityFigures]:
    """The project at hand and its figures as of now."""
    with state.open_store() as store:
        project_id = state.project(store).id
    return project_id, _figures(str(state.home()), project_id, state.answers_mark())


@st.cache_resource(max_entries=MOST_KEPT, show_spinner=False)
def _known(home: str, project_id: str) -> Known:
    """What was heard in each run: after the next answer, only new runs are read."""
    return {}


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Counting what agents said")
def _figures(home: str, project_id: str, mark: Mark) -> ReliabilityFigures:
    with open_store(Path(home)) as store:
        rows = rows_of(store, project_id, _known(home, project_id))
    table = voices_once(table_of(rows))
    found = records(table)
    paired = tuple(record.agent for record in found[:MOST_PAIRED])
    columns = [table.agents.index(agent) for agent in paired]
    return ReliabilityFigures(
        rows=tuple(rows),
        table=table,
        records=tuple(found),
        words=words_of(table.agents),
        kinds={(r.agent, kind): tuple(by_kinds(table, r, kind)) for r in found for kind in KINDS},
        paired=paired,
        pairs=tuple(pairs([a.key for a in paired], table.said[:, columns], table.wrong)),
        worth=worth(rows),
    )


def _shown_names(agents: Sequence[SpeakingAgent]) -> dict[str, str]:
    return {agent.key: words for agent, words in words_of(agents).items()}


METHOD_WORDS: dict[str, str] = WORDS["reliability_agents.method_words"]
FIGURES: dict[str, str] = WORDS["reliability_agents.figures"]
WITH_ANSWERS = ("weights", "compared", "mean_weights")


def _draw_learning(
    project_id: str, found: ReliabilityFigures, newest: Learned | None, *, is_lead: bool
) -> None:
    """The buttons: learn all weights, with a policy where it can be trained; go on with one."""
    if lacking := consensus.missing(found.rows):
        st.info(f"Weights can be learned after {lacking}.", icon=":material/info:")
        return
    words = consensus.policy_words()
    row = st.container(horizontal=True, vertical_alignment="center")
    learns = row.button(
        "Learn weights",
        key="reliability.learn",
        icon=":material/balance:",
        disabled=not is_lead,
        help=WORDS["reliability_agents.draw_learning"],
    )
    with_policy = row.checkbox(
        "Train a policy too", key="reliability.policy", disabled=bool(words) or not is_lead
    )
    has_policy = newest is not None and bool((newest.body.get("answers") or {}).get("policy"))
    adapts = has_policy and row.button(
        "Continue with new answers",
        key="reliability.adapt",
        icon=":material/update:",
        disabled=bool(words) or not is_lead,
        help=WORDS["reliability_agents.draw_learning_2"],
    )
    if words:
        st.caption(words)  # our own
    if not learns and not adapts:
        return
    told = "Comparing the weightings on five folds" if learns else "Continuing with the new answers"
    with problem_kept(PROBLEM), st.spinner(told), state.open_store() as store:
        work = (
            partial(consensus.learn, with_policy=bool(with_policy)) if learns else consensus.adapt
        )
        work(store, project_id, found.rows, state.person(store), time.time())


def _draw_answers(learned: Learned) -> None:
    own: dict[str, Any] | None = learned.body.get("answers")
    if own is None:
        return
    st.markdown("**Weights of debaters in a consensus (SC-MAKS)**")
    if own["lacking"]:
        st.caption(f"None yet: {escaped(own['lacking'])}. All debaters count equally.")
        return
    compared = own["compared"]
    st.markdown(
        f"Used: **{METHOD_WORDS[compared['used']].lower()}**. Other weights than all alike are "
        "used only where their log loss is lower beyond chance."
    )
    table(
        [_method_row(method, compared) for method in METHOD_WORDS if method in compared["figures"]],
        "reliability.answers",
        column_config={
            "Weights": st.column_config.Column(help=WORDS["reliability_agents.method_help"])
        },
    )
    st.caption(
        f"On the same five folds, n={compared['n']:,} debates over {compared['groups']:,} cases, "
        f"{compared['hallucinated']:,} hallucinated. In brackets: 95% intervals over resampled "
        "cases. The last columns are against all alike, case by case; p is Wilcoxon's."
    )
    with st.expander("How much each debater weighs"):
        table(
            [
                {"Debater": f"{name}, {seat}" if seat else name, "Mean weight": weight}
                for name, seat, weight in own["mean_weights"]
            ],
            column_config={"Mean weight": st.column_config.NumberColumn(format="%.2f")},
        )
    if "policy" in own:
        _draw_policy(own)


def _draw_policy(own: dict[str, Any]) -> None:
    policy = own["policy"]
    with st.expander("How the policy was trained"):
        figure = reward_figure(
            [pair[0] for pair in policy["curve"]], [p[1] for p in policy["curve"]]
        )
        st.plotly_chart(figure, key="reliability.curve", width="stretch")
        ranks = policy["reward_auroc"]
        st.caption(
            f"Kept is the policy after update {policy['best']}: training stops where the reward on "
            "debates held out comes to a plateau. The reward model was fitted to "
            f"{policy['answers']:,} answers and ranks these with AUROC "
            f"{'–' if ranks is None else f'{ranks:.2f}'} (0.5 is chance; they are its own)."
        )
    if "adapted" in own:
        gone = own["adapted"]
        gain = gone["gain"]
        st.caption(
            f"Continued with {gone['groups']:,} cases: log loss lower by {gain['value']:+.3f} "
            f"({gain['low']:+.3f} to {gain['high']:+.3f}) than before; "
            + ("the new policy is used." if gone["is_used"] else "the earlier weights are kept.")
        )


def _figure(figure: Sequence[float]) -> str:
    return between(figure[0], figure[1], figure[2], 3)


def _method_row(method: str, compared: dict[str, Any]) -> dict[str, str]:
    figures, gain = compared["figures"][method], compared["gains"].get(method)
    used = " (used)" if method == compared["used"] else ""
    cells = {title: _figure(figures[name]) for name, title in FIGURES.items()}
    better = "–" if gain is None else between(gain["value"], gain["low"], gain["high"], 3)
    p = None if gain is None else gain["p"]
    chance = "–" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    return {"Weights": METHOD_WORDS[method] + used} | cells | {"Lower by": better, "p": chance}


SYSTEM_WORDS: dict[str, str] = WORDS["reliability_agents.system_words"]
CONSENSUS_COLUMNS: dict[str, list[str]] = WORDS["reliability_agents.consensus_columns"]  # fmt: skip
COMPARED = ("n", "groups", "hallucinated", "figures", "proposed", "single", "is_tie")
PROPOSED_WORDS: dict[str, str] = WORDS["reliability_agents.proposed_words"]


def draw_consensus(project_id: str, found: ReliabilityFigures) -> None:
    """What was learned last, how it compares, what is in use."""
    st.subheader("Consensus of agents", anchor=False)
    st.caption(WORDS["reliability_agents.draw_consensus"])
    with state.open_store() as store:
        is_lead = store.projects.role_of(project_id, state.person(store)) in ("lead", "admin")
        before = _intact(store.learned.newest, project_id, is_told=False)
    _draw_learning(project_id, found, before, is_lead=is_lead)
    with state.open_store() as store:
        newest = _intact(store.learned.newest, project_id)
        in_use = _intact(store.learned.in_use, project_id)
        choices = store.learned.choices(consensus.KIND, project_id)
    show_problem(PROBLEM)
    if newest is not None:
        _draw_learned(newest)
        _draw_answers(newest)
        _draw_use(project_id, newest, in_use, is_lead=is_lead)
    _draw_choices(choices)


def _intact(
    read: Callable[[str, str], Learned | None], project_id: str, *, is_told: bool = True
) -> Learned | None:
    """What was learned; what cannot be read as it was learned is named and not used."""

    def require(body: dict[str, Any]) -> None:
        needed = [body["compared"][name] for name in COMPARED]
        if (own := body.get("answers")) is not None:
            needed += [own[name] for name in (("lacking",) if own["lacking"] else WITH_ANSWERS)]

    try:
        found = read(consensus.KIND, project_id)
        if found is not None:
            consensus.weights_in(found)
            read_body(found, require)
        return found
    except ConfigError as error:
        if is_told:
            st.error(escaped(str(error)), icon=":material/error:")
        return None


def _draw_learned(learned: Learned) -> None:
    compared: dict[str, Any] = learned.body["compared"]
    weights, agents = consensus.weights_in(learned)
    names = _shown_names(agents)
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
    table(
        [_system_row(system, compared, names) for system in SYSTEM_WORDS],
        "reliability.consensus",
        column_config={
            words: st.column_config.Column(help=told) for words, told in CONSENSUS_COLUMNS.values()
        }
        | {"Consensus": st.column_config.Column(help=WORDS["reliability_agents.system_help"])},
    )
    st.caption(
        f"All on the same five folds, n={compared['n']:,} runs over {compared['groups']:,} "
        "cases; no case is judged by weights that it taught. In brackets: 95% intervals over "
        "resampled cases."
    )
    if weights.weighting == "uniform":
        st.caption("All agents that speak in a run count equally.")
        return
    own = consensus.counts_for(weights, agents)
    with st.expander("How much each agent counts"):
        figure = counts_figure(
            [names[row["agent"].key] for row in own],
            [row["hallucinated"] for row in own],
            [row["supported"] for row in own],
        )
        st.plotly_chart(figure, key="reliability.counts", width="stretch")
        st.caption(WORDS["reliability_agents.draw_learned"])


def _system_row(system: str, compared: dict[str, Any], names: dict[str, str]) -> dict[str, str]:
    own = compared["figures"].get(system, {})
    words = SYSTEM_WORDS[system]
    if system == "single":
        words += f": {names.get(compared['single'], 'unknown')}"
    elif system == compared["proposed"]:
        words += " (proposed)"
    cells = {
        title: _figure(own[name]) if own.get(name) is not None else "–"
        for name, (title, _) in CONSENSUS_COLUMNS.items()
    }
    ece = CONSENSUS_COLUMNS["ece"][0]
    return {"Consensus": words} | cells | {ece: cells[ece].replace("(", "(chance: ")}


MOST_ROWS = 20
MEASURE: str = WORDS["reliability_agents.measure"]


def draw_pairs(found: ReliabilityFigures) -> None:
    """The heat map, and the pairs with the most to gain."""
    if not found.pairs:
        return
    st.subheader("Which agents complement each other", anchor=False, help=MEASURE)
    if all(own.is_thin or own.reduction is None for own in found.pairs):
        st.caption(_why_nothing(found.pairs))
        return
    names = _shown_names(found.paired)
    cells = [
        Cell(
            names[own.one], names[own.other], None if own.is_thin else own.reduction,
            f"errors avoided: {_reduction_words(own)}<br>n={own.n}, at least one right "
            f"{own.oracle:.2f}, both right {own.both_right:.2f}, both wrong {own.both_wrong:.2f}",
        )
        for own in found.pairs
    ]  # fmt: skip
    figure = pairs_figure([names[agent.key] for agent in found.paired], cells)
    st.plotly_chart(figure, key="reliability.pairs.figure", width="stretch")
    st.caption(
        f"Pairs with fewer than {FEWEST} cases in common stay empty, as do those whose better one "
        "made no error. Unclear counts as not right."
    )
    best = sorted(found.pairs, key=lambda own: (own.is_thin, -own.gain))
    gain = "What the pair gets right together above its better one alone, as a share of the cases."
    with st.expander("The pairs with the most to gain"):
        table(
            [_pair_row(own, names) for own in best[:MOST_ROWS]],
            "reliability.pairs",
            column_config={
                name: st.column_config.Column(help=told)
                for name, told in (("Gain", gain), ("Errors avoided", MEASURE))
            },
        )


def _why_nothing(found: Sequence[AgentPair]) -> str:
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


def _pair_row(own: AgentPair, names: dict[str, str]) -> dict[str, object]:
    return {
        "Agents": f"{names[own.one]} · {names[own.other]}",
        "Cases": own.n,
        "At least one right": f"{own.oracle:.2f}",
        "Both right": f"{own.both_right:.2f}",
        "Both wrong": f"{own.both_wrong:.2f}",
        "Better one alone": f"{own.oracle - own.gain:.2f}",
        "Gain": f"{own.gain:.2f}",
        "Errors avoided": _reduction_words(own),
    }


def _reduction_words(own: AgentPair) -> str:
    if own.reduction is None or own.low is None or own.high is None:
        return "not defined"
    return between(own.reduction, own.low, own.high) + (", too few" if own.is_thin else "")
