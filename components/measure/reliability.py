"""Reliability: how often agents and tools are right, and what debate and explanations are worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.measure import WORDS
from components.measure.agreement import between
from components.measure.reliability_agents import (
    ReliabilityFigures,
    draw_consensus,
    draw_pairs,
    figures,
)
from components.widgets.charts import Interval, forest_figure, judge_figure, majority_figure
from components.widgets.controls import table
from components.widgets.wording import counted, escaped, protocol_words, seconds, when
from core.evaluation.alignment import Rated, aligned
from core.learning import debate_worth as theory
from core.learning.debate_worth import Worth, WorthStep
from core.learning.metrics import Figure
from core.learning.reasoning import MOST_RUNS, ReasoningRow, note_name, reasons_of, words_of
from core.learning.reliability import (
    FEWEST,
    AgentRecord,
    Audited,
    Posterior,
    ToolRate,
    ToolRates,
    tool_rates,
)
from core.learning.reliability import MOST_RUNS as MOST_AUDITS
from core.learning.track_record import WilsonShare
from core.schema.reviews import category_words
from core.store import open_store
from core.store.sqlite import Mark
from core.tools.registry import toolbox

MOST_KEPT = 4  # projects
TOOL_HELP: dict[str, str] = WORDS["reliability.tool_help"]


def column_help(words: dict[str, str]) -> dict[str, Any]:
    """The columns of a table with what each of them means."""
    return {name: st.column_config.Column(help=told) for name, told in words.items()}


def _draw_tools() -> None:
    with state.open_store() as store:
        project_id = state.project(store).id
    rates = _rates(str(state.home()), project_id, state.answers_mark())
    if not rates.audits:
        return
    st.subheader("Each tool", anchor=False)
    newest = f" These are the {MOST_AUDITS:,} newest." if rates.audits == MOST_AUDITS else ""
    st.caption(
        f"{counted(rates.audits, 'audit')}, {rates.decided:,} of them over responses that people "
        f"answered.{newest}"
    )
    judged = [rate for rate in rates.tools if rate.label_right.n]
    if judged:
        lines = [_interval(r.tool, of_right(r.label_right), r.always.value) for r in judged]
        figure = forest_figure(lines, "How often each tool's label is right")
        st.plotly_chart(figure, key="reliability.tools.figure", width="stretch")
    tools = toolbox()
    table(
        [
            _tool_row(rate)
            for rate in rates.tools  # those that run the audit itself nobody chooses
            if rate.calls or not (rate.tool in tools and tools[rate.tool].is_system)
        ],
        "reliability.tools",
        column_config=column_help(TOOL_HELP),
    )
    if any(rate.label_right.n < FEWEST for rate in judged):
        st.caption(f"Below {FEWEST} labels (a hollow circle) a share says little.")


@st.cache_resource(max_entries=MOST_KEPT, show_spinner=False)
def _known(home: str, project_id: str) -> dict[str, Audited]:
    """What was read of each audit: after the next answer, only new ones are read."""
    return {}


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Counting what tools did")
def _rates(home: str, project_id: str, mark: Mark) -> ToolRates:
    with open_store(Path(home)) as store:
        return tool_rates(store, project_id, _known(home, project_id))


def _tool_row(rate: ToolRate) -> dict[str, Any]:
    came = (f"{rate.outcomes.get(o, 0):,}" for o in ("found", "nothing", "off", "failed"))
    used, meant = (
        f"{100 * share.value:.0f}% ({share.right:,} of {share.n:,})" if share.n else "–"
        for share in (rate.used, rate.where_meant)
    )
    return {
        "Tool": rate.tool,
        "Calls": rate.calls,
        "Used in": used,
        "Where it was meant": meant,
        "Found / nothing / off / failed": " / ".join(came),
        "Seconds a call": f"{rate.seconds / rate.calls:.2f}" if rate.calls else "–",
        "Its label is right": share_words(of_right(rate.label_right)),
        "Always hallucinated": f"{rate.always.value:.2f}" if rate.always.n else "–",
        "The statement is right in the end": share_words(of_right(rate.statement_right)),
    }


def of_right(share: WilsonShare) -> Posterior:
    """The same share as the other tables have it."""
    return Posterior(share.value, *share.interval, share.right, share.n)


COMMAND = "python -m core.evaluation.alignment --model PROVIDER/MODEL"


def _draw_reasons(project_id: str, found: ReliabilityFigures) -> None:
    """By protocol; nothing where no run was right for which somebody gave a reason."""
    with state.open_store() as store:
        kept = store.projects.note(note_name(project_id))
    rows = _reasons(str(state.home()), project_id, state.answers_mark(), found.rows)
    told: dict[str, Any] = json.loads(kept) if kept else {}
    if not rows and not told:
        return
    st.subheader("Do they give people's reasons?", anchor=False)
    ratings = {own["protocol"]: own for own in told.get("by_protocol", [])}
    table([_reasons_row(own, ratings.get(own.protocol, {})) for own in rows], "reliability.reasons")
    for own in told.get("paired", []):
        one, other = (protocol_words(own[name], short=True) for name in ("one", "other"))
        lead = _range(own["lead"], "+")
        words = f"{one} beside {other}, on the {own['n']} cases on which both were right: {lead}"
        st.markdown(f"- {escaped(f'{words} in agreement.')}")
    st.caption(WORDS["reliability.draw_reasons"])
    if told:
        st.caption(
            escaped(
                f"Agreement: 1 (another reason) to 5 (the same), rated by {told['model']} on "
                f"{when(told['at'])}. Unlike: the same explanations against reasons that people "
                "gave on other cases of that label."
            )
        )
    else:
        st.caption(
            "How far explanations agree with people's reasons is rated by a language model "
            f"only; it has not been run here yet: `{COMMAND}`."
        )


@st.cache_resource(max_entries=4, show_spinner="Reading people's reasons")
def _reasons(
    home: str, project_id: str, mark: Mark, _rows: tuple[ReasoningRow, ...]
) -> list[Rated]:
    """Kept until somebody says something or a run ends; `_rows` follow from the rest."""
    with open_store(Path(home)) as store:
        return aligned(reasons_of(store, _rows))[0]


def _reasons_row(own: Rated, told: dict[str, Any]) -> dict[str, str]:
    rated = f", n={told['rated']}" if told.get("rated") else ""
    unusable = f", {told['unusable']} unusable" if told.get("unusable") else ""
    return {
        "Protocol": protocol_words(own.protocol, short=True),
        "Runs": str(own.runs),
        "Marked words quoted": _range(own.quoted) + (f", n={own.marks}" if own.marks else ""),
        "Found": "–" if own.found is None else f"{own.found:.2f}",
        "Agreement": _range(told.get("agreement")) + rated + unusable,
        "Unlike": _range(told.get("unlike")),
    }


def _range(share: dict[str, float] | None, sign: str = "") -> str:
    if share is None:
        return "–"
    return between(share["value"], share["low"], share["high"], sign=sign)


FEWEST_DEBATES = 30
STEP_WORDS: dict[str, str] = WORDS["reliability.step_words"]
DEBATE_PART_WORDS = {"debaters": "Debaters' turns", "judge": "Judge", "others": "All other roles"}


def _draw_debate_worth(worth: Worth) -> None:
    st.subheader("Is the debate worth it?", anchor=False)
    st.markdown(finding(worth))
    table(
        [_step_row(step) for step in worth.steps]
        + [{"Step of a run": "Always saying hallucinated", "Right": f"{worth.always:.2f}",
            "Unclear": "0", "The verdict's lead": "–"}],
        "reliability.debate",
        column_config=column_help({
            "Right": "Of all cases; unclear counts as not right. In brackets: 95% interval.",
            "The verdict's lead": WORDS["reliability.draw_debate_worth"],
        }),
    )  # fmt: skip
    timing = (
        f"A run took {seconds(worth.seconds)} on average, the first turn was there after "
        f"{seconds(worth.opening_seconds)} (over {counted(worth.runs, 'run')})."
    )
    if not any(cost.calls for cost in worth.costs):
        st.caption(f"{timing} No language model was asked: the calls cost nothing.")
        return
    rows = [
        {
            "Of a run, on average": DEBATE_PART_WORDS[cost.part],
            "Calls": f"{cost.calls:.1f}",
            "Tokens": f"{cost.tokens:,.0f}",
            "US dollars": "not known" if cost.dollars is None else f"{cost.dollars:.5f}",
        }
        for cost in worth.costs
    ]
    table(rows, "reliability.costs")
    st.caption(timing)


def finding(worth: Worth) -> str:
    """What the table comes to: beside one agent, and beside all of them before any answered."""
    alone, openings = worth.steps[:2]
    if alone.lead is None or alone.paired < FEWEST_DEBATES:
        return (
            f"Too few cases to say ({alone.paired}; from {FEWEST_DEBATES} on a difference can be "
            "judged)."
        )
    told = _lead_words(alone, "its first speaker alone")
    if openings.lead is None or openings.paired < FEWEST_DEBATES:
        return told
    return f"{told} {_lead_words(openings, 'the majority of all first turns, without a debate')}"


def _lead_words(step: WorthStep, what: str) -> str:
    lead, low, high = (100 * (x or 0.0) for x in (step.lead, step.low, step.high))
    words = f"{lead:+.0f} points ({low:+.0f} to {high:+.0f})"
    if low > 0:
        return f"The verdict beats {what}, by **{words}**, n={step.paired}."
    if high < 0:
        return f"The verdict is **worse** than {what}: {words}, n={step.paired}."
    return f"No difference to {what} is shown: {words}, n={step.paired}."


def _step_row(step: WorthStep) -> dict[str, str]:
    share, lead = step.accuracy, "–"
    if step.step != "verdict" and step.lead is not None:
        lead = f"{between(step.lead, step.low, step.high, sign='+')}, n={step.paired}"
    right = f"{between(share.mean, share.low, share.high)}, n={share.n}" if share.n else "–"
    return {
        "Step of a run": STEP_WORDS[step.step],
        "Right": right,
        "Unclear": str(step.unclear),
        "The verdict's lead": lead,
    }


MOST_LINES = 20
PART_WORDS: dict[str, str] = WORDS["reliability.part_words"]
DIMENSIONS: dict[str, str] = WORDS["reliability.dimensions"]
HELP: dict[str, str] = WORDS["reliability.help"]


def draw_reliability() -> None:
    """Draw all sections over the project at hand."""
    project_id, found = figures()
    if not found.records:
        st.info(WORDS["reliability.draw_reliability"], icon=":material/info:")
        _draw_tools()
        return
    newest = f" These are the {MOST_RUNS:,} newest runs; older ones are left out."
    st.caption(
        f"{counted(len(found.table.rows), 'case')} that people decided, "
        f"{counted(len(found.rows), 'run')} over them. What was "
        "settled counts, else the newest answer; cases that people left unclear do not. People "
        "look first at cases where agents are unsure, so an agent may do better on all of them."
        + (newest if len(found.rows) == MOST_RUNS else "")
    )
    _draw_agents(found)
    _draw_tools()
    _draw_kinds(found)
    draw_pairs(found)
    if found.worth is not None:
        _draw_debate_worth(found.worth)
    _draw_reasons(project_id, found)
    draw_consensus(project_id, found)


def _draw_agents(found: ReliabilityFigures) -> None:
    st.subheader("Each agent", anchor=False)
    best = sorted(found.records, key=lambda r: (r.accuracy.is_thin, -r.accuracy.mean))
    lines = [_interval(found.words[r.agent], r.accuracy, r.always) for r in best]
    st.plotly_chart(
        forest_figure(lines[:MOST_LINES], "How often each agent is right"),
        key="reliability.agents.figure",
        width="stretch",
    )
    table(
        [_agent_row(found.words[r.agent], r) for r in best],
        "reliability.agents",
        column_config=column_help(HELP),
    )
    if any(record.accuracy.is_thin for record in found.records):
        st.caption(f"Below {FEWEST} decided cases (a hollow circle) a share says little.")


def _agent_row(words: str, record: AgentRecord) -> dict[str, object]:
    agent = record.agent
    return {
        "Agent": words,
        "Part": PART_WORDS.get(agent.part, agent.part),
        "Cases": record.n,
        "Right": share_words(record.accuracy),
        "Always hallucinated": "–" if record.always is None else f"{record.always:.2f}",
        "Finds hallucinated": share_words(record.sensitivity),
        "Passes supported": share_words(record.specificity),
        "Unclear": f"{record.unclear} of {record.n}",
        "Model": agent.model or ("built in" if agent.rules else "not known"),
        "Rules": agent.rules or "–",
    }


def _draw_kinds(found: ReliabilityFigures) -> None:
    st.subheader("By kind of case", anchor=False)
    agents = [record.agent for record in found.records]
    agent = st.selectbox(
        "Agent", agents, format_func=found.words.__getitem__, key="reliability.agent"
    )
    dimension = st.segmented_control(
        "Kind of case", list(DIMENSIONS), format_func=DIMENSIONS.__getitem__,
        default="language", required=True, key="reliability.kind",
    ) or "language"  # fmt: skip
    if agent is None:
        return
    kinds = found.kinds.get((agent, dimension), ())
    if not kinds:
        st.caption("The agent has decided no case of which this is known.")
        return
    is_error = dimension == "category"
    lines = [
        _interval(
            f"{category_words(own.kind) if is_error else own.kind} (n={own.accuracy.n})",
            own.accuracy,
            own.always,
        )
        for own in kinds[:MOST_LINES]
    ]
    figure = forest_figure(lines, f"{found.words[agent]}: {DIMENSIONS[dimension].lower()}")
    st.plotly_chart(figure, key="reliability.kinds.figure", width="stretch")
    words = "The share of a kind with few cases is pulled towards the agent's share over all cases."
    if is_error:
        words += " These are hallucinated responses only, by what people marked in them."
    st.caption(escaped(words))


def _interval(name: str, share: Posterior, always: float | None) -> Interval:
    return Interval(name, share.mean, share.low, share.high, share.n, always, share.is_thin)


def share_words(share: Posterior) -> str:
    """“0.61 (0.40 to 0.79), n=31”, with a remark where there are too few cases."""
    if not share.n:
        return "–"
    told = f"{between(share.mean, share.low, share.high)}, n={share.n:,}"
    return told + (", too few" if share.is_thin else "")


MOST_AGENTS = 25
BUDGETS = [step / 20 for step in range(101)]
ACCURACY, CORRELATION, BASE_RISK = 0.7, 0.3, 0.3  # where nothing is measured yet


def draw_theory() -> None:
    """Equations to try out, on request; sliders begin at what was measured."""
    if not st.toggle("Show what more agents and debate can bring", key="theory.shown"):
        return
    project_id, found = figures()
    agents, debates = _measured(str(state.home()), project_id, state.answers_mark(), found.rows)
    _draw_majority(agents)
    _draw_judge(debates[0] if debates else None)


@st.cache_resource(max_entries=4, show_spinner="Looking at first and last turns")
def _measured(
    home: str, project_id: str, mark: Mark, _rows: tuple[ReasoningRow, ...]
) -> tuple[theory.MeasuredAgents | None, list[theory.Information]]:
    """Kept until somebody says something or a run ends; `_rows` follow from the rest."""
    return theory.measured(_rows), theory.information(_rows)


def _draw_majority(found: theory.MeasuredAgents | None) -> None:
    st.subheader("More agents", anchor=False)
    if found is None:
        st.caption(
            f"Nothing is measured yet: that takes {theory.FEWEST} decided cases with two agents' "
            "first words, some right and some wrong. The sliders begin at made-up values."
        )
    else:
        names = "; ".join(words_of(found.agents).values())
        told = (
            f"Measured over {found.n} decided cases, of first turns and the judge's readers "
            f"({names}): right {_figure(found.accuracy)}, correlation of two agents' errors "
            f"{_figure(found.correlation)}. Always saying the more frequent label errs in "
            f"{found.always:.2f}."
        )
        st.caption(escaped(told))
    begin = (found.accuracy.value, found.correlation.value) if found else (ACCURACY, CORRELATION)
    left, middle, right = st.columns(3)
    accuracy = left.slider(
        "How often an agent is right", 0.0, 1.0, round(begin[0], 2), 0.01, key="theory.accuracy"
    )
    correlation = middle.slider(
        "Correlation of errors", 0.0, 1.0, round(max(0.0, begin[1]), 2), 0.01,
        key="theory.correlation",
    )  # fmt: skip
    agents = right.slider(
        "Agents", 1, MOST_AGENTS, max(3, len(found.agents)) if found else 5, key="theory.agents"
    )
    sizes = range(1, max(agents, 9) + 1)
    figure = majority_figure(
        [(n, theory.majority_error(n, accuracy, 0.0)) for n in sizes],
        [(n, theory.majority_error(n, accuracy, correlation)) for n in sizes],
        [(n, theory.hoeffding(n, accuracy, correlation)) for n in sizes],
        [
            (k, error, f"{k} of your agents: {error:.3f}, over {cases:.0f} cases on average")
            for k, error, cases in (found.curve if found else ())
        ],
    )
    st.plotly_chart(figure, key="theory.majority", width="stretch")
    st.caption(
        f"{agents} such agents are worth {theory.effective_agents(agents, correlation):.1f} "
        "independent ones. Source: CEDA A.1 (Hoeffding's bound, an effective number of agents). "
        "The dashed curve is a beta-binomial of agents alike: our choice, not the paper's. A "
        "diamond is over the cases on which all of its agents decided."
    )


def information_words(found: theory.Information) -> str:
    """Whether debate added information, in a sentence (ColMAD 2.1, equations 1 to 3)."""
    told = f"{between(found.bits.value, found.bits.low, found.bits.high, 3, '+')}, n={found.n}"
    told = told.replace(" (", " bits a case (", 1)
    if found.bits.low > 0:
        return f"Debate **added information**: {told}."
    if found.bits.high < 0:
        return f"Debate added **no information**; last stances mislead: {told}."
    return f"That debate added information is **not shown**: {told}."


def _draw_judge(found: theory.Information | None) -> None:
    st.subheader("A judge between debaters", anchor=False)
    st.markdown(
        information_words(found)
        if found
        else "Too few cases to say whether debate added information: that takes "
        f"{theory.FEWEST_DEBATED} decided cases on which at least two debaters spoke, ten of "
        "each label."
    )
    begin = round(min(0.49, max(0.01, found.base.value)), 2) if found else BASE_RISK
    left, right = st.columns(2)
    risk = left.slider(
        "The judge's risk without a debate", 0.01, 0.49, begin, 0.01, key="theory.risk"
    )
    weaker = right.slider(
        "How far the weaker debater pushes, beside the stronger",
        0.0, 1.0, 0.5, 0.05, key="theory.weaker",
    )  # fmt: skip
    d = theory.separation(risk)
    own = None
    if found is not None and found.gain.value > 0 and abs(risk - begin) < 1e-9:
        own = theory.evidence_in(found.base.value, found.full.value), found.full.value
    against = [theory.competitive(d, budget, weaker) for budget in BUDGETS]
    together = [theory.collaborative(d, budget) for budget in BUDGETS]
    figure = judge_figure(BUDGETS, against, risk, together, own)
    st.plotly_chart(figure, key="theory.judge", width="stretch")
    st.caption(WORDS["reliability.draw_judge"])


def _figure(own: Figure) -> str:
    return between(own.value, own.low, own.high)
