"""Reliability screen: how often agents and tools are right, what debate and reasons are worth."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.measure.agreement import format_interval
from components.measure.reliability_agents import (
    ReliabilityFigures,
    draw_consensus,
    draw_pairs,
    load_figures,
)
from components.measure.summary import (
    draw_counts,
    draw_next_step,
)
from components.review.review_queue import ADJUDICATION_PAGE, QUEUE_PAGE
from components.widgets.charts import (
    AccuracyInterval,
    forest_figure,
    judge_risk_figure,
    majority_error_figure,
)
from components.widgets.controls import draw_table
from components.widgets.wording import (
    escape_markdown,
    format_count,
    format_duration,
    format_language,
    format_protocol,
    format_time,
)
from core.evaluation.alignment import ProtocolAlignment, summarize_alignment
from core.learning import debate_worth as theory
from core.learning.agent_answers import (
    MAX_DECIDED_RUNS,
    DecidedRun,
    get_alignment_note_name,
    load_reasons,
    name_agents,
)
from core.learning.debate_worth import DebateWorth, WorthStep
from core.learning.learned_consensus import CONSENSUS_RECORD_KIND, describe_missing_cases
from core.learning.metrics import MetricEstimate
from core.learning.reliability import MAX_AUDITS as MOST_AUDITS
from core.learning.reliability import (
    AgentRecord,
    AuditRecord,
    ToolRate,
    ToolRates,
    measure_tools,
)
from core.learning.track_record import MIN_CASES, WilsonShare
from core.schema.reviews import format_category
from core.store import open_store
from core.store.review_queue import ItemFilter
from core.store.sqlite import ChangeMark
from core.tools.registry import load_tools

TOOL_HELP: dict[str, str] = {
    "Used in": "Of all audits, those in which it was called.",
    "Where it was meant": (
        "Of statements (and whole responses) that the tool's own rules read something for: where "
        "it was called."
    ),
    "Found / nothing / off / failed": (
        "What came of its calls. Off: it needs something that is not there, a language model or a "
        "source. Neither off nor failed is ever a label."
    ),
    "Its label is right": (
        "Of its labels other than unclear: those that people's answers agree with. In brackets the "
        "95% interval (Wilson)."
    ),
    "Always hallucinated": (
        "How often the one word “hallucinated” would have been right on the same calls. A tool "
        "that is not above this has shown nothing."
    ),
    "The statement is right in the end": (
        "Of the statements that it was called for: those whose label in the end people agree with; "
        "unclear counts as wrong."
    ),
}
STEP_WORDS: dict[str, str] = {
    "opener": "First speaker alone",
    "openings": "Majority of all first turns",
    "closings": "Majority of all last turns",
    "judge": "The judge's own label",
    "verdict": "The verdict in the end",
}
PART_WORDS: dict[str, str] = {
    "debater": "debater",
    "reader": "judge's reader",
    "judge": "judge",
    "classifier": "classifier",
}
CASE_DIMENSIONS: dict[str, str] = {
    "language": "Language",
    "form": "Form",
    "image": "Images",
    "documents": "Documents",
    "tool": "Tool",
    "category": "Kind of error",
}
AGENT_HELP: dict[str, str] = {
    "Cases": (
        "Cases that people decided and the agent spoke on; the same question and response count "
        "once. Those that it left unclear and those that it decided make up all of them."
    ),
    "Decided": "Cases that it called supported or hallucinated: the shares beside count these.",
    "Right of all": "Of all its cases: those it decided as people did. Left unclear is not right.",
    "Right": (
        "Of the cases that the agent decided: how often it said what people decided. In brackets: "
        "95% interval (Wilson)."
    ),
    "Balanced": (
        "Balanced accuracy where it decided: the mean of the last two shares. A constant answer "
        "has 0.5, however many cases are hallucinated."
    ),
    "Always hallucinated": (
        "How often the one word “hallucinated” would have been right on the same cases. An agent "
        "that is not above this has shown nothing."
    ),
    "Finds hallucinated": (
        "Sensitivity: of hallucinated responses that it decided, how many it called so."
    ),
    "Passes supported": (
        "Specificity: of supported responses that it decided, how many it called so."
    ),
    "Rules": "Digest of the prompts or rules that it followed. Another prompt is another agent.",
}
REASONS_HINT = (
    "Over runs whose verdict is the person's. Quoted: of the words that people marked in the "
    "sources, how many the run quotes where it argues for its verdict; found: how many lie in any "
    "passage that it found. 95% intervals over cases. Source: ColMAD 4, figure 5b."
)
JUDGE_MODEL_HINT = (
    "A model to try out, not a measurement: two labels equally likely, evidence that is normal. "
    "Debaters who compete push their own side whatever is true; a judge who takes that for "
    "evidence errs more the less alike they are, and the best judge ignores it. Debaters who "
    "collaborate bring true evidence. Source: ColMAD 2.2, 2.3 and A."
)
LEAD_HELP = (
    "How much more often the verdict in the end is right, over the cases on which both spoke, with "
    "a 95% interval of the paired difference."
)
NOTHING_DECIDED = (
    "No agent has spoken on a case that people decided yet. Answer cases on Review, or agree or "
    "disagree on runs: each answer counts here."
)

MAX_CACHED_PROJECTS = 4  # projects
ALIGNMENT_COMMAND = "python -m core.evaluation.alignment --model PROVIDER/MODEL"
DEBATE_PART_WORDS = {"debaters": "Debaters' turns", "judge": "Judge", "others": "All other roles"}
MAX_PLOTTED_AGENTS = 20
MAX_THEORY_AGENTS = 25
EVIDENCE_BUDGETS = [step / 20 for step in range(101)]
DEFAULT_ACCURACY, DEFAULT_CORRELATION, DEFAULT_RISK = (
    0.7,
    0.3,
    0.3,
)  # defaults until something is measured


def make_column_help(words: dict[str, str]) -> dict[str, Any]:
    """Return a table's column configuration with a help text for each column."""
    return {name: st.column_config.Column(help=text) for name, text in words.items()}


def _draw_tools() -> None:
    with state.open_store() as store:
        project_id = state.get_project(store).id
    rates = _compute_rates(str(state.home_folder()), project_id, state.get_answers_mark())
    if not rates.audits:
        return
    st.subheader("Each tool", anchor=False)
    newest = f" These are the {MOST_AUDITS:,} newest." if rates.audits == MOST_AUDITS else ""
    st.caption(
        f"{format_count(rates.audits, 'audit')}, {rates.decided:,} of them over responses that "
        f"people "
        f"answered.{newest}"
    )
    judged = [rate for rate in rates.tools if rate.label_right.n]
    if judged:
        lines = [_build_interval(r.tool, r.label_right, r.always.value) for r in judged]
        _draw_forest(lines, "How often each tool's label is right", "reliability.tools.figure")
    tools = load_tools()
    draw_table(
        [
            _build_tool_row(rate)
            for rate in rates.tools  # system tools, which nobody chooses, only if called
            if rate.calls or not (rate.tool in tools and tools[rate.tool].is_system)
        ],
        "reliability.tools",
        column_config=make_column_help(TOOL_HELP),
    )


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _audit_cache(home: str, project_id: str) -> dict[str, AuditRecord]:
    """Return a cache of the audits read so far, so that later counts read only new ones."""
    return {}


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner="Counting what tools did")
def _compute_rates(home: str, project_id: str, mark: ChangeMark) -> ToolRates:
    with open_store(Path(home)) as store:
        return measure_tools(store, project_id, _audit_cache(home, project_id))


def _build_tool_row(rate: ToolRate) -> dict[str, Any]:
    outcomes = (f"{rate.outcomes.get(o, 0):,}" for o in ("found", "nothing", "off", "failed"))
    used, where_meant = (
        f"{100 * share.value:.0f}% ({share.right:,} of {share.n:,})" if share.n else "–"
        for share in (rate.used, rate.where_meant)
    )
    return {
        "Tool": rate.tool,
        "Calls": rate.calls,
        "Used in": used,
        "Where it was meant": where_meant,
        "Found / nothing / off / failed": " / ".join(outcomes),
        "Seconds a call": f"{rate.seconds / rate.calls:.2f}" if rate.calls else "–",
        "Its label is right": format_wilson_share(rate.label_right),
        "Always hallucinated": f"{rate.always.value:.2f}" if rate.always.n else "–",
        "The statement is right in the end": format_wilson_share(rate.statement_right),
    }


def _draw_reasons(project_id: str, data: ReliabilityFigures) -> None:
    """Draw the agreement with people's reasons by protocol, if any run can be compared."""
    with state.open_store() as store:
        note = store.projects.note(get_alignment_note_name(project_id))
    rows = _load_reasons(str(state.home_folder()), project_id, state.get_answers_mark(), data.rows)
    rating: dict[str, Any] = json.loads(note) if note else {}
    if not rows and not rating:
        return
    st.subheader("Do they give people's reasons?", anchor=False)
    by_protocol = {each["protocol"]: each for each in rating.get("by_protocol", [])}
    draw_table(
        [_build_reasons_row(row, by_protocol.get(row.protocol, {})) for row in rows],
        "reliability.reasons",
    )
    for pair in rating.get("paired", []):
        one, other = (format_protocol(pair[name], short=True) for name in ("one", "other"))
        lead = _format_share(pair["lead"], "+")
        words = f"{one} beside {other}, on the {pair['n']} cases on which both were right: {lead}"
        st.markdown(f"- {escape_markdown(f'{words} in agreement.')}")
    st.caption(REASONS_HINT)
    if rating:
        st.caption(
            escape_markdown(
                f"Agreement: 1 (another reason) to 5 (the same), rated by {rating['model']} on "
                f"{format_time(rating['at'])}. Unlike: the same explanations against reasons "
                f"that people "
                "gave on other cases of that label."
            )
        )
    else:
        st.caption(
            "How far explanations agree with people's reasons is rated by a language model "
            f"only; it has not been run here yet: `{ALIGNMENT_COMMAND}`."
        )


@st.cache_resource(max_entries=4, show_spinner="Reading people's reasons")
def _load_reasons(
    home: str, project_id: str, mark: ChangeMark, _rows: tuple[DecidedRun, ...]
) -> list[ProtocolAlignment]:
    """Return the reasons by protocol, cached until a new answer or a finished run.

    `_rows` follow from the other arguments.
    """
    with open_store(Path(home)) as store:
        return summarize_alignment(load_reasons(store, _rows))[0]


def _build_reasons_row(row: ProtocolAlignment, rating: dict[str, Any]) -> dict[str, str]:
    rated = f", n={rating['rated']}" if rating.get("rated") else ""
    unusable = f", {rating['unusable']} unusable" if rating.get("unusable") else ""
    return {
        "Protocol": format_protocol(row.protocol, short=True),
        "Runs": str(row.runs),
        "Marked words quoted": _format_share(row.quoted)
        + (f", n={row.marks}" if row.marks else ""),
        "Found": "–" if row.found is None else f"{row.found:.2f}",
        "Agreement": _format_share(rating.get("agreement")) + rated + unusable,
        "Unlike": _format_share(rating.get("unlike")),
    }


def _format_share(share: dict[str, float] | None, sign: str = "") -> str:
    if share is None:
        return "–"
    return format_interval(share["value"], share.get("low"), share.get("high"), sign=sign)


def _draw_debate_worth(worth: DebateWorth) -> None:
    st.subheader("Is the debate worth it?", anchor=False)
    st.markdown(format_debate_finding(worth))
    draw_table(
        [_build_step_row(step) for step in worth.steps]
        + [
            {
                "Step of a run": "Always saying hallucinated",
                "Right": f"{worth.always:.2f}",
                "Unclear": "0",
                "The verdict's lead": "–",
            }
        ],
        "reliability.debate",
        column_config=make_column_help(
            {
                "Right": "Of all cases; unclear counts as not right. In brackets: 95% interval.",
                "The verdict's lead": LEAD_HELP,
            }
        ),
    )
    timing = (
        f"A run took {format_duration(worth.seconds)} on average, the first turn was there after "
        f"{format_duration(worth.opening_seconds)} (over {format_count(worth.runs, 'run')})."
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
    draw_table(rows, "reliability.costs")
    st.caption(timing)


def format_debate_finding(worth: DebateWorth) -> str:
    """Return the finding: the verdict's lead over one agent, and over all agents' first turns."""
    alone, openings = worth.steps[:2]
    if alone.lead is None or alone.paired < MIN_CASES:
        return (
            f"Too few cases to say ({alone.paired}; from {MIN_CASES} on a difference can be "
            "judged)."
        )
    lead = _describe_lead(alone, "its first speaker alone")
    if openings.lead is None or openings.paired < MIN_CASES:
        return lead
    return f"{lead} {_describe_lead(openings, 'the majority of all first turns, without a debate')}"


def _describe_lead(step: WorthStep, baseline: str) -> str:
    lead, low, high = (100 * (x or 0.0) for x in (step.lead, step.low, step.high))
    words = f"{lead:+.0f} points ({low:+.0f} to {high:+.0f})"
    if low > 0:
        return f"The verdict beats {baseline}, by **{words}**, n={step.paired}."
    if high < 0:
        return f"The verdict is **worse** than {baseline}: {words}, n={step.paired}."
    return f"No difference to {baseline} is shown: {words}, n={step.paired}."


def _build_step_row(step: WorthStep) -> dict[str, str]:
    share, lead = step.accuracy, "–"
    if step.step != "verdict" and step.lead is not None:
        lead = f"{format_interval(step.lead, step.low, step.high, sign='+')}, n={step.paired}"
    right = f"{format_interval(share.value, *share.interval)}, n={share.n}" if share.n else "–"
    return {
        "Step of a run": STEP_WORDS[step.step],
        "Right": right,
        "Unclear": str(step.unclear),
        "The verdict's lead": lead,
    }


def draw_reliability() -> None:
    """Draw all sections for the current project."""
    project_id, data = load_figures()
    if not data.records:
        st.info(NOTHING_DECIDED, icon=":material/info:")
        draw_next_step("answer cases.", QUEUE_PAGE, "Review")
        _draw_tools()
        return
    newest = f" These are the {MAX_DECIDED_RUNS:,} newest runs; older ones are left out."
    _draw_next_step(project_id, data)
    draw_counts(
        f"Here count {format_count(len(data.table.rows), 'case')} that people decided, each text "
        f"once, and {format_count(len(data.rows), 'run')} over them. Cases that "
        "people left unclear do not count. People "
        "look first at cases where agents are unsure, so an agent may do better on all of them."
        + (newest if len(data.rows) == MAX_DECIDED_RUNS else "")
    )
    _draw_agents(data)
    _draw_tools()
    _draw_kinds(data)
    draw_pairs(data)
    if data.worth is not None:
        _draw_debate_worth(data.worth)
    _draw_reasons(project_id, data)
    draw_consensus(project_id, data)


def _draw_next_step(project_id: str, data: ReliabilityFigures) -> None:
    if lacking := describe_missing_cases(data.rows):
        draw_next_step(f"weights can be learned after {lacking}.", QUEUE_PAGE, "Review")
        return
    with state.open_store() as store:
        differing = store.queue.count(project_id, ItemFilter(differ=True), ("open",), time.time())
        is_used = bool(store.learned.choices(CONSENSUS_RECORD_KIND, project_id))
    if differing:
        words = f"people differ on {format_count(differing, 'case')}, which may count otherwise."
        draw_next_step(words, ADJUDICATION_PAGE, "Adjudicate")
    elif not is_used:
        draw_next_step("learn how much each agent counts, at the foot of this page, and use it.")
    else:
        draw_next_step("answer more cases, and learn the weights again.", QUEUE_PAGE, "Review")


def _draw_agents(data: ReliabilityFigures) -> None:
    st.subheader("Each agent", anchor=False)
    best = sorted(data.records, key=lambda r: (r.accuracy.is_thin, -r.accuracy.value))
    lines = [
        _build_interval(_name_with_unclear(data.words[r.agent], r.unclear), r.accuracy, r.always)
        for r in best
    ]
    _draw_forest(lines, "How often each agent is right", "reliability.agents.figure")
    draw_table(
        [_build_agent_row(data.words[r.agent], r) for r in best],
        "reliability.agents",
        column_config=make_column_help(AGENT_HELP),
    )


def _build_agent_row(words: str, record: AgentRecord) -> dict[str, object]:
    agent = record.agent
    return {
        "Agent": words,
        "Part": PART_WORDS.get(agent.part, agent.part),
        "Cases": record.n,
        "Left unclear": record.unclear,
        "Decided": record.accuracy.n,
        "Right of all": f"{record.accuracy.right} of {record.n}",
        "Right": format_wilson_share(record.accuracy),
        "Balanced": _format_balanced(record),
        "Always hallucinated": "–" if record.always is None else f"{record.always:.2f}",
        "Finds hallucinated": format_wilson_share(record.sensitivity),
        "Passes supported": format_wilson_share(record.specificity),
        "Model": agent.model or ("built in" if agent.rules else "not known"),
        "Rules": agent.rules or "–",
    }


def _format_balanced(record: AgentRecord) -> str:
    """Return the balanced accuracy, or which label is missing for it."""
    if record.balanced is not None:
        few = record.sensitivity.is_thin or record.specificity.is_thin
        return f"{record.balanced:.2f}" + (", too few" if few else "")
    return "only hallucinated cases" if record.sensitivity.n else "only supported cases"


def _draw_kinds(data: ReliabilityFigures) -> None:
    st.subheader("By kind of case", anchor=False)
    agents = [record.agent for record in data.records]
    agent = st.selectbox(
        "Agent", agents, format_func=data.words.__getitem__, key="reliability.agent"
    )
    dimension = (
        st.segmented_control(
            "Kind of case",
            list(CASE_DIMENSIONS),
            format_func=CASE_DIMENSIONS.__getitem__,
            default="language",
            required=True,
            key="reliability.kind",
        )
        or "language"
    )
    if agent is None:
        return
    kinds = data.kinds.get((agent, dimension), ())
    if not kinds:
        st.caption("The agent has decided no case of which this is known.")
        return
    is_error = dimension == "category"
    formats = {"category": format_category, "language": format_language}
    names = [formats.get(dimension, str)(r.kind) for r in kinds]
    lines = [
        _build_interval(_name_with_unclear(name, record.unclear), record.accuracy, record.always)
        for name, record in zip(names, kinds, strict=True)
    ]
    title = f"{data.words[agent]}: {CASE_DIMENSIONS[dimension].lower()}"
    _draw_forest(lines, title, "reliability.kinds.figure")
    draw_table(
        [
            {
                "Kind": name,
                "Cases": record.accuracy.n + record.unclear,
                "Left unclear": record.unclear,
                "Right": format_wilson_share(record.accuracy),
            }
            for name, record in zip(names, kinds, strict=True)
        ],
        "reliability.kinds",
        column_config=make_column_help({"Right": AGENT_HELP["Right"]}),
    )
    words = "Each kind's share and interval come from its own cases alone."
    if is_error:
        words += " These are hallucinated responses only, by what people marked in them."
    st.caption(escape_markdown(words))


def _name_with_unclear(name: str, unclear: int) -> str:
    return f"{name}, {unclear} left unclear" if unclear else name


def _build_interval(name: str, share: WilsonShare, always: float | None) -> AccuracyInterval:
    return AccuracyInterval(name, share.value, *share.interval, share.n, always)


def _draw_forest(lines: Sequence[AccuracyInterval], title: str, key: str) -> None:
    """Draw the shares of enough cases, and say how many have too few to be drawn."""
    drawn = [line for line in lines if line.n >= MIN_CASES]
    if drawn:
        figure = forest_figure(drawn[:MAX_PLOTTED_AGENTS], title)
        st.plotly_chart(figure, key=key, width="stretch")
    if len(drawn) < len(lines):
        st.caption(
            f"{escape_markdown(title)}: {len(lines) - len(drawn)} of {len(lines)} decided fewer "
            f"than {MIN_CASES} cases and are not drawn; the table has their counts."
        )


def format_wilson_share(share: WilsonShare) -> str:
    """Return text such as “0.61 (0.40 to 0.79), n=31”; of too few cases only the count."""
    if not share.n:
        return "–"
    if share.is_thin:
        return f"{share.right} of {share.n}, too few"
    return f"{format_interval(share.value, *share.interval)}, n={share.n:,}"


def draw_theory() -> None:
    """Draw the theory on request, with sliders that start at the measured values."""
    if not st.toggle("Show what more agents and debate can bring", key="theory.shown"):
        return
    project_id, data = load_figures()
    agents, debates = _measure_debates(
        str(state.home_folder()), project_id, state.get_answers_mark(), data.rows
    )
    _draw_majority(agents)
    _draw_judge(debates[0] if debates else None)


@st.cache_resource(max_entries=4, show_spinner="Looking at first and last turns")
def _measure_debates(
    home: str, project_id: str, mark: ChangeMark, _rows: tuple[DecidedRun, ...]
) -> tuple[theory.MeasuredAgents | None, list[theory.DebateInformation]]:
    """Return what debates measured, cached; `_rows` follow from the other arguments."""
    return theory.measure_agents(_rows), theory.measure_information(_rows)


def _draw_majority(data: theory.MeasuredAgents | None) -> None:
    st.subheader("More agents", anchor=False)
    if data is None:
        st.caption(
            f"Nothing is measured yet: that takes {MIN_CASES} decided cases with "
            f"two agents' "
            "first words, some right and some wrong. The sliders begin at made-up values."
        )
    else:
        names = "; ".join(name_agents(data.agents).values())
        summary = (
            f"Measured over {data.n} decided cases, of first turns and the judge's readers "
            f"({names}): right {_format_figure(data.accuracy)}, correlation of two agents' errors "
            f"{_format_figure(data.correlation)}. Always saying the more frequent label errs in "
            f"{data.always:.2f}."
        )
        st.caption(escape_markdown(summary))
    start = (
        (data.accuracy.value, data.correlation.value)
        if data
        else (DEFAULT_ACCURACY, DEFAULT_CORRELATION)
    )
    left, middle, right = st.columns(3)
    accuracy = left.slider(
        "How often an agent is right", 0.0, 1.0, round(start[0], 2), 0.01, key="theory.accuracy"
    )
    correlation = middle.slider(
        "Correlation of errors",
        0.0,
        1.0,
        round(max(0.0, start[1]), 2),
        0.01,
        key="theory.correlation",
    )
    agents = right.slider(
        "Agents", 1, MAX_THEORY_AGENTS, max(3, len(data.agents)) if data else 5, key="theory.agents"
    )
    sizes = range(1, max(agents, 9) + 1)
    figure = majority_error_figure(
        [(n, theory.compute_majority_error(n, accuracy, 0.0)) for n in sizes],
        [(n, theory.compute_majority_error(n, accuracy, correlation)) for n in sizes],
        [(n, theory.compute_hoeffding_bound(n, accuracy, correlation)) for n in sizes],
        [
            (k, error, f"{k} of your agents: {error:.3f}, over {cases:.0f} cases on average")
            for k, error, cases in (data.curve if data else ())
        ],
    )
    st.plotly_chart(figure, key="theory.majority", width="stretch")
    st.caption(
        f"{agents} such agents are worth {theory.count_effective_agents(agents, correlation):.1f} "
        "independent ones. Source: CEDA A.1 (Hoeffding's bound, an effective number of agents). "
        "The dashed curve is a beta-binomial of agents alike: our choice, not the paper's. A "
        "diamond is over the cases on which all of its agents decided."
    )


def format_information(data: theory.DebateInformation) -> str:
    """Return a sentence on whether debate added information (ColMAD 2.1, equations 1 to 3)."""
    bits = f"{format_interval(data.bits.value, data.bits.low, data.bits.high, 3, '+')}, n={data.n}"
    bits = bits.replace(" (", " bits a case (", 1)
    if data.bits.low > 0:
        return f"Debate **added information**: {bits}."
    if data.bits.high < 0:
        return f"Debate added **no information**; last stances mislead: {bits}."
    return f"That debate added information is **not shown**: {bits}."


def _draw_judge(data: theory.DebateInformation | None) -> None:
    st.subheader("A judge between debaters", anchor=False)
    st.markdown(
        format_information(data)
        if data
        else "Too few cases to say whether debate added information: that takes "
        f"{MIN_CASES} decided cases on which at least two debaters spoke, ten of "
        "each label."
    )
    start = round(min(0.49, max(0.01, data.base.value)), 2) if data else DEFAULT_RISK
    left, right = st.columns(2)
    risk = left.slider(
        "The judge's risk without a debate", 0.01, 0.49, start, 0.01, key="theory.risk"
    )
    weaker = right.slider(
        "How far the weaker debater pushes, beside the stronger",
        0.0,
        1.0,
        0.5,
        0.05,
        key="theory.weaker",
    )
    d = theory.compute_separation(risk)
    measured_point = None
    if data is not None and data.gain.value > 0 and abs(risk - start) < 1e-9:
        measured_point = (theory.infer_evidence(data.base.value, data.full.value), data.full.value)
    against = [theory.compute_competitive_risk(d, budget, weaker) for budget in EVIDENCE_BUDGETS]
    together = [theory.compute_collaborative_risk(d, budget) for budget in EVIDENCE_BUDGETS]
    figure = judge_risk_figure(EVIDENCE_BUDGETS, against, risk, together, measured_point)
    st.plotly_chart(figure, key="theory.judge", width="stretch")
    st.caption(JUDGE_MODEL_HINT)


def _format_figure(figure: MetricEstimate) -> str:
    return format_interval(figure.value, figure.low, figure.high)
