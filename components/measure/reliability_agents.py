"""Reliability screen: learned weights (SC-MAKS 3.5), complementary pairs (ColMAD 2.1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.measure.agreement import format_interval
from components.widgets.charts import (
    AgentPairCell,
    answer_weights_figure,
    pair_heatmap_figure,
    reward_figure,
)
from components.widgets.controls import draw_button, draw_table, show_problem, store_problem
from components.widgets.wording import escape_markdown, format_count, format_time
from core.learning import learned_consensus as consensus
from core.learning.agent_answers import (
    AnswersByRun,
    DecidedRun,
    SpeakingAgent,
    load_decided_runs,
    name_agents,
)
from core.learning.debate_worth import DebateWorth, measure_debate_worth
from core.learning.reliability import (
    KIND_OF_ROW,
    AgentPair,
    AgentRecord,
    AnswerTable,
    KindRecord,
    build_answer_table,
    drop_duplicate_voices,
    measure_agent_by_kind,
    measure_agent_records,
    measure_pairs,
)
from core.learning.track_record import MIN_CASES
from core.runtime.errors import ConfigError
from core.store import open_store
from core.store.sqlite import ChangeMark
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact, parse_body

METHOD_WORDS: dict[str, str] = {
    "uniform": "Equal weights",
    "record": "By track record",
    "logistic": "Logistic",
    "policy": "Policy (PPO)",
    "always": "Always the same answer",
}
METHOD_HELP = (
    "By record: an agent weighs as much as its past answers were right. Logistic: agents that err "
    "together share their weight. Policy: a small network weighs each answer by how it fared in "
    "the debate; PPO trained it on a reward model of people's answers and ratings (SC-MAKS 3.5). "
    "Always the same answer: hallucinated, or for log loss the share that is."
)
METRIC_NAMES: dict[str, str] = {
    "log_loss": "Log loss",
    "auroc": "AUROC",
    "balanced_accuracy": "Balanced accuracy",
    "f1": "F1",
    "f2": "F2",
}
SYSTEM_WORDS: dict[str, str] = {
    "stack": "Learned stack",
    "history": "By track record",
    "uniform": "Equal weights",
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
CONSENSUS_COLUMNS: dict[str, list[str]] = {
    "log_loss": [
        "Log loss",
        (
            "How wrong the probabilities are, in nats; lower is better. It decides which weighting "
            "is proposed."
        ),
    ],
    "auroc": ["AUROC", "How often a hallucinated case gets the higher probability; 0.5 is chance."],
    "balanced_accuracy": [
        "Balanced accuracy",
        (
            "The mean of the shares of hallucinated and of supported cases that it gets right; 0.5 "
            "is chance."
        ),
    ],
    "ece": [
        "ECE",
        (
            "Calibration error: how far probabilities lie from the shares that turned out "
            "hallucinated; 0 is best. Chance: what perfectly calibrated ones would show."
        ),
    ],
}
PROPOSED_WORDS: dict[str, str] = {
    "stack": "the learned stack",
    "history": "weights by track record",
    "uniform": "equal weights",
}
ERROR_REDUCTION_HELP = (
    "Reduction of errors from oracle collaboration (after ColMAD, equation 4): if a judge took the "
    "right answer wherever one of the two gave it, only errors that both make would be left. The "
    "figure is 1 - (cases that both get wrong) / (cases that the better of the two gets wrong). 0: "
    "the second adds nothing. 1: they never err together. It is what a perfect judge could gain "
    "from the pair, not what a debate does gain."
)
LEARN_HELP = (
    "Compares the weightings on five folds of cases and keeps the one that is proposed. Takes some "
    "seconds, with a policy about a minute. Leads only."
)
ADAPT_HELP = (
    "The newest policy learns from what was answered since, in small steps, and is kept where it "
    "does better on these answers beyond chance."
)
CONSENSUS_HINT = (
    "What the agents of a run come to together, as one probability. Where weights are in use, it "
    "stands under the verdict of each run; the verdict stays as it is."
)
WEIGHTS_HINT = (
    "In log-odds, the mean over kinds of cases: +0.7 doubles the odds of hallucinated, -0.7 halves "
    "them. Agents that err together share what they count."
)

RELIABILITY_PROBLEM = "reliability.problem"
MAX_CACHED_PROJECTS = 4  # projects
MAX_PAIRED_AGENTS = 12  # agents in the heat map: those with the most cases
ANSWER_FIELDS = ("weights", "compared", "mean_weights")
COMPARED_FIELDS = ("n", "groups", "hallucinated", "figures", "proposed", "single", "is_tie")
MAX_PAIR_ROWS = 20


def _draw_use(
    project_id: str, newest: LearnedArtefact, in_use: LearnedArtefact | None, *, is_lead: bool
) -> None:
    status = (
        f"In use: the weights of {format_time(in_use.at)}." if in_use else "No weights are in use."
    )
    st.markdown(f"**{status}**")
    if not is_lead:
        return
    st.text_input("Reason", key="reliability.reason", max_chars=400)
    with st.container(horizontal=True):
        for words, name, icon, number, is_offered in (
            (
                "Use these weights",
                "use",
                "check_circle",
                newest.number,
                in_use is None or in_use.number != newest.number,
            ),
            ("Use no weights", "back", "undo", NOTHING_LEARNED, in_use is not None),
        ):
            if is_offered:
                draw_button(
                    words, f"reliability.{name}", _choose_weights, project_id, number, icon=icon
                )


def _choose_weights(project_id: str, number: int) -> None:
    reason = str(st.session_state.get("reliability.reason") or "")
    with store_problem(RELIABILITY_PROBLEM):
        with state.open_store() as store:
            by = state.get_person(store)
            consensus.activate_weights(
                store, project_id, number, by=by, reason=reason, now=time.time()
            )
        st.session_state["reliability.reason"] = ""


def _draw_choices(choices: list[ArtefactChoice]) -> None:
    if choices:
        with st.expander("Who put which weights in use"):
            for choice in choices:
                chosen = (
                    f"weights {choice.number}" if choice.number != NOTHING_LEARNED else "no weights"
                )
                words = f"{escape_markdown(choice.by)} · {chosen}: {escape_markdown(choice.reason)}"
                st.markdown(f"{format_time(choice.at)} · {words}")


@dataclass(frozen=True)
class ReliabilityFigures:
    """Everything that is drawn; `table` has the decided cases, duplicates once."""

    rows: tuple[DecidedRun, ...]
    table: AnswerTable
    records: tuple[AgentRecord, ...]
    words: dict[SpeakingAgent, str]
    kinds: dict[tuple[SpeakingAgent, str], tuple[KindRecord, ...]]
    paired: tuple[SpeakingAgent, ...]
    pairs: tuple[AgentPair, ...]
    worth: DebateWorth | None


def load_figures() -> tuple[str, ReliabilityFigures]:
    """Return the current project's id and its figures."""
    with state.open_store() as store:
        project_id = state.get_project(store).id
    return project_id, _compute_figures(
        str(state.home_folder()), project_id, state.get_answers_mark()
    )


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _run_cache(home: str, project_id: str) -> AnswersByRun:
    """Return a cache of the runs read so far, so that later counts read only new ones."""
    return {}


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner="Counting what agents said")
def _compute_figures(home: str, project_id: str, mark: ChangeMark) -> ReliabilityFigures:
    with open_store(Path(home)) as store:
        rows = load_decided_runs(store, project_id, _run_cache(home, project_id))
    table = drop_duplicate_voices(build_answer_table(rows))
    agent_records = measure_agent_records(table)
    paired = tuple(record.agent for record in agent_records[:MAX_PAIRED_AGENTS])
    columns = [table.agents.index(agent) for agent in paired]
    return ReliabilityFigures(
        rows=tuple(rows),
        table=table,
        records=tuple(agent_records),
        words=name_agents(table.agents),
        kinds={
            (r.agent, kind): tuple(measure_agent_by_kind(table, r.agent, kind))
            for r in agent_records
            for kind in KIND_OF_ROW
        },
        paired=paired,
        pairs=tuple(measure_pairs([a.key for a in paired], table.said[:, columns], table.wrong)),
        worth=measure_debate_worth(rows),
    )


def _name_agents(agents: Sequence[SpeakingAgent]) -> dict[str, str]:
    return {agent.key: words for agent, words in name_agents(agents).items()}


def _draw_learning(
    project_id: str, data: ReliabilityFigures, newest: LearnedArtefact | None
) -> None:
    """Draw the buttons that learn weights, train a policy, or continue a policy."""
    if lacking := consensus.describe_missing_cases(data.rows):
        st.info(f"Weights can be learned after {lacking}.", icon=":material/info:")
        return
    words = consensus.describe_policy_obstacle()
    row = st.container(horizontal=True, vertical_alignment="center")
    learns = row.button(
        "Learn weights",
        key="reliability.learn",
        icon=":material/balance:",
        help=LEARN_HELP,
    )
    with_policy = row.checkbox("Train a policy too", key="reliability.policy", disabled=bool(words))
    has_policy = newest is not None and bool((newest.body.get("answers") or {}).get("policy"))
    adapts = has_policy and row.button(
        "Continue with new answers",
        key="reliability.adapt",
        icon=":material/update:",
        disabled=bool(words),
        help=ADAPT_HELP,
    )
    if words:
        st.caption(words)  # our own text, so not escaped
    if not learns and not adapts:
        return
    status = (
        "Comparing the weightings on five folds" if learns else "Continuing with the new answers"
    )
    with store_problem(RELIABILITY_PROBLEM), st.spinner(status), state.open_store() as store:
        run = (
            partial(consensus.learn_weights, with_policy=bool(with_policy))
            if learns
            else consensus.adapt_policy
        )
        run(store, project_id, data.rows, state.get_person(store), time.time())


def _draw_answers(learned: LearnedArtefact) -> None:
    answers: dict[str, Any] | None = learned.body.get("answers")
    if answers is None:
        return
    st.markdown("**Weights of debaters in a consensus (SC-MAKS)**")
    if answers["lacking"]:
        st.caption(f"None yet: {escape_markdown(answers['lacking'])}. All debaters count equally.")
        return
    compared = answers["compared"]
    st.markdown(
        f"Used: **{METHOD_WORDS[compared['used']].lower()}**. Other weights than all alike are "
        "used only where their log loss is lower beyond chance."
    )
    draw_table(
        [
            _build_method_row(method, compared)
            for method in METHOD_WORDS
            if method in compared["figures"]
        ],
        "reliability.answers",
        column_config={"Weights": st.column_config.Column(help=METHOD_HELP)},
    )
    st.caption(
        f"On the same five folds, n={compared['n']:,} debates over {compared['groups']:,} cases, "
        f"{compared['hallucinated']:,} hallucinated. In brackets: 95% intervals over resampled "
        "cases. The last columns are against all alike, case by case; p is Wilcoxon's."
    )
    with st.expander("How much each debater weighs"):
        draw_table(
            [
                {"Debater": f"{name}, {config}" if config else name, "Mean weight": weight}
                for name, config, weight in answers["mean_weights"]
            ],
            column_config={"Mean weight": st.column_config.NumberColumn(format="%.2f")},
        )
    if "policy" in answers:
        _draw_policy(answers)


def _draw_policy(answers: dict[str, Any]) -> None:
    policy = answers["policy"]
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
    if "adapted" in answers:
        adapted = answers["adapted"]
        gain = adapted["gain"]
        st.caption(
            f"Continued with {adapted['groups']:,} cases: log loss lower by {gain['value']:+.3f} "
            f"({gain['low']:+.3f} to {gain['high']:+.3f}) than before; "
            + ("the new policy is used." if adapted["is_used"] else "the earlier weights are kept.")
        )


def _format_figure(figure: Sequence[float]) -> str:
    return format_interval(figure[0], figure[1], figure[2], 3)


def _build_method_row(method: str, compared: dict[str, Any]) -> dict[str, str]:
    figures, gain = compared["figures"][method], compared["gains"].get(method)
    used = " (used)" if method == compared["used"] else ""
    cells = {title: _format_figure(figures[name]) for name, title in METRIC_NAMES.items()}
    better = "–" if gain is None else format_interval(gain["value"], gain["low"], gain["high"], 3)
    p = None if gain is None else gain["p"]
    chance = "–"
    if p is not None:
        chance = f"{p:.3f}" if p >= 0.001 else "<0.001"
    return {"Weights": METHOD_WORDS[method] + used} | cells | {"Lower by": better, "p": chance}


def draw_consensus(project_id: str, data: ReliabilityFigures) -> None:
    """Draw what was learned last, how it compares, and what is in use."""
    st.subheader("Consensus of agents", anchor=False)
    st.caption(CONSENSUS_HINT)
    is_lead = has_role("lead", "learn weights and put them in use", project_id=project_id)
    if is_lead:
        with state.open_store() as store:
            before = _load_learned(store.learned.newest, project_id, is_told=False)
        _draw_learning(project_id, data, before)
    with state.open_store() as store:
        newest = _load_learned(store.learned.newest, project_id)
        in_use = _load_learned(store.learned.in_use, project_id)
        choices = store.learned.choices(consensus.CONSENSUS_RECORD_KIND, project_id)
    show_problem(RELIABILITY_PROBLEM)
    if newest is not None:
        _draw_learned(newest)
        _draw_answers(newest)
        _draw_use(project_id, newest, in_use, is_lead=is_lead)
    _draw_choices(choices)


def _load_learned(
    read: Callable[[str, str], LearnedArtefact | None], project_id: str, *, is_told: bool = True
) -> LearnedArtefact | None:
    """Return what was learned; None, with a message, if its stored form is not readable."""

    def require(body: dict[str, Any]) -> None:
        needed = [body["compared"][name] for name in COMPARED_FIELDS]
        if (answers := body.get("answers")) is not None:
            needed += [
                answers[name] for name in (("lacking",) if answers["lacking"] else ANSWER_FIELDS)
            ]

    try:
        learned = read(consensus.CONSENSUS_RECORD_KIND, project_id)
        if learned is not None:
            consensus.parse_stored_consensus(learned)
            parse_body(learned, require)
        return learned
    except ConfigError as error:
        if is_told:
            st.error(escape_markdown(str(error)), icon=":material/error:")
        return None


def _draw_learned(learned: LearnedArtefact) -> None:
    compared: dict[str, Any] = learned.body["compared"]
    weights, agents = consensus.parse_stored_consensus(learned)
    names = _name_agents(agents)
    tie = ""
    if compared["is_tie"]:
        best = min(PROPOSED_WORDS, key=lambda name: compared["figures"][name]["log_loss"][0])
        tie = (
            f" “{SYSTEM_WORDS[best]}” has a lower log loss, which may be chance: then the simpler "
            "weighting is proposed."
        )
    st.markdown(
        f"Learned {format_time(learned.at)} by {escape_markdown(learned.author)} from "
        f"{compared['groups']:,} cases ({compared['hallucinated']:,} of {compared['n']:,} runs "
        f"hallucinated). Proposed: **{PROPOSED_WORDS[compared['proposed']]}**.{tie}"
    )
    draw_table(
        [_build_system_row(system, compared, names) for system in SYSTEM_WORDS],
        "reliability.consensus",
        column_config={
            words: st.column_config.Column(help=text) for words, text in CONSENSUS_COLUMNS.values()
        }
        | {"Consensus": st.column_config.Column(help=SYSTEM_HELP)},
    )
    st.caption(
        f"All on the same five folds, n={compared['n']:,} runs over {compared['groups']:,} "
        "cases; no case is judged by weights that it taught. In brackets: 95% intervals over "
        "resampled cases."
    )
    if weights.weighting == "uniform":
        st.caption("All agents that speak in a run count equally.")
        return
    counts = consensus.summarize_agent_weights(weights, agents)
    with st.expander("How much each agent counts"):
        figure = answer_weights_figure(
            [names[row["agent"].key] for row in counts],
            [row["hallucinated"] for row in counts],
            [row["supported"] for row in counts],
        )
        st.plotly_chart(figure, key="reliability.counts", width="stretch")
        st.caption(WEIGHTS_HINT)


def _build_system_row(
    system: str, compared: dict[str, Any], names: dict[str, str]
) -> dict[str, str]:
    values = compared["figures"].get(system, {})
    words = SYSTEM_WORDS[system]
    if system == "single":
        words += f": {names.get(compared['single'], 'unknown')}"
    elif system == compared["proposed"]:
        words += " (proposed)"
    cells = {
        title: _format_figure(values[name]) if values.get(name) is not None else "–"
        for name, (title, _) in CONSENSUS_COLUMNS.items()
    }
    ece = CONSENSUS_COLUMNS["ece"][0]
    return {"Consensus": words} | cells | {ece: cells[ece].replace("(", "(chance: ")}


def draw_pairs(data: ReliabilityFigures) -> None:
    """Draw the heat map and the pairs with the most to gain."""
    if not data.pairs:
        return
    st.subheader("Which agents complement each other", anchor=False, help=ERROR_REDUCTION_HELP)
    if all(pair.is_thin or pair.reduction is None for pair in data.pairs):
        st.caption(_explain_no_pairs(data.pairs))
        return
    names = _name_agents(data.paired)
    cells = [
        AgentPairCell(
            names[pair.one],
            names[pair.other],
            None if pair.is_thin else pair.reduction,
            f"errors avoided: {_format_reduction(pair)}<br>n={pair.n}, at least one right "
            f"{pair.oracle:.2f}, both right {pair.both_right:.2f}, "
            f"both wrong {pair.both_wrong:.2f}",
        )
        for pair in data.pairs
    ]
    figure = pair_heatmap_figure([names[agent.key] for agent in data.paired], cells)
    st.plotly_chart(figure, key="reliability.pairs.figure", width="stretch")
    st.caption(
        f"Pairs with fewer than {MIN_CASES} cases in common stay empty, as do those "
        f"whose better one "
        "made no error. Unclear counts as not right."
    )
    best = sorted(data.pairs, key=lambda pair: (pair.is_thin, -pair.gain))
    gain = "What the pair gets right together above its better one alone, as a share of the cases."
    with st.expander("The pairs with the most to gain"):
        draw_table(
            [_build_pair_row(pair, names) for pair in best[:MAX_PAIR_ROWS]],
            "reliability.pairs",
            column_config={
                name: st.column_config.Column(help=text)
                for name, text in (("Gain", gain), ("Errors avoided", ERROR_REDUCTION_HELP))
            },
        )


def _explain_no_pairs(pairs_found: Sequence[AgentPair]) -> str:
    thin = sum(pair.is_thin for pair in pairs_found)
    spotless = sum(pair.reduction is None for pair in pairs_found if not pair.is_thin)
    reasons = []
    if thin:
        reasons.append(f"{thin} spoke on fewer than {MIN_CASES} of the same cases")
    if spotless:
        reasons.append(f"in {spotless} the better one made no error that another could make up for")
    return (
        f"Of {format_count(len(pairs_found), 'pair')} of agents nothing can be told yet: "
        f"{', and '.join(reasons)}. Each answer on Review adds a case."
    )


def _build_pair_row(pair: AgentPair, names: dict[str, str]) -> dict[str, object]:
    return {
        "Agents": f"{names[pair.one]} · {names[pair.other]}",
        "Cases": pair.n,
        "At least one right": f"{pair.oracle:.2f}",
        "Both right": f"{pair.both_right:.2f}",
        "Both wrong": f"{pair.both_wrong:.2f}",
        "Better one alone": f"{pair.oracle - pair.gain:.2f}",
        "Gain": f"{pair.gain:.2f}",
        "Errors avoided": _format_reduction(pair),
    }


def _format_reduction(pair: AgentPair) -> str:
    if pair.reduction is None or pair.low is None or pair.high is None:
        return "not defined"
    return format_interval(pair.reduction, pair.low, pair.high) + (
        ", too few" if pair.is_thin else ""
    )
