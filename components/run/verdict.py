"""The verdict card: label, probability, how often such verdicts are right, readers, consensus."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.run.audit import has_audit
from components.widgets.controls import draw_table
from components.widgets.html import Html, div, draw_html, element, split_rationale
from components.widgets.wording import (
    CAUSE_ADVICE,
    CAUSE_WORDS,
    LABEL_SIGNS,
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_label,
    format_percent,
)
from core.learning.agent_answers import name_agents
from core.learning.learned_consensus import CONSENSUS_RECORD_KIND, ConsensusOpinion, form_opinion
from core.runtime.errors import ConfigError
from core.schema.records import Judgement, ReaderStance, Verdict
from core.schema.run_state import RunState
from core.store import open_store
from core.store.sqlite import ChangeMark
from core.store.versions import SEED_VERSION, LearnedArtefact

ANSWER_WORDS = {1.0: "hallucinated", 0.0: "supported", 0.5: "unclear"}
MAX_CACHED_PROJECTS = 8  # projects
MAX_DISPUTED_STATEMENTS = 3
MAX_STATEMENT_CHARS = 90
# In the debate each reader saw a share of the evidence, and may have said otherwise.
ALL_EVIDENCE_LEAD = "Given all the evidence,"
TOO_FEW_VERDICTS = (
    "Too few verdicts with a confidence like this were measured to say how often it is right."
)
MATERIAL_WORDS = {
    "claim": "a short passage",
    "answer": "a passage, as answers to a question,",
    "document": "a long document",
    "table": "a table",
}


def draw_consensus_line(project_id: str, progress: RunState) -> None:
    """Draw the consensus, if weights are in use and the run's agents have some."""
    with state.open_store() as store:
        mark = store.changes.of_learned()
    weights = _load_weights(str(state.home_folder()), project_id, mark)
    try:
        consensus = form_opinion(weights, progress) if weights else None
    except ConfigError:
        return  # the Reliability page reports it
    if consensus is None:
        return
    day = time.strftime("%-d %B %Y", time.localtime(consensus.at))
    weighting = (
        "all weighted equally" if consensus.weighting == "uniform" else "weighted by their record"
    )
    p = f"{min(0.99, max(0.01, consensus.p)):.2f}"
    st.caption(
        f"Consensus of agents {weighting}: **p = {p}** that it is hallucinated (weights of {day}; "
        f"n={consensus.n:,}). The verdict above does not depend on it.",
        help="Each agent's answer is weighted by how often it was right on such cases; the "
        "weights are learned and put in use on Reliability.",
    )
    with st.expander("How much each agent counted"):
        _draw_weights_table(consensus)


def _draw_weights_table(consensus: ConsensusOpinion) -> None:
    names = name_agents([agent for agent, _, _ in consensus.parts] + list(consensus.unknown))
    draw_table(
        [
            {
                "Agent": names[agent],
                "Said": ANSWER_WORDS.get(answer, f"p = {answer:.2f}"),
                "Adds": added,
            }
            for agent, answer, added in consensus.parts
        ],
        column_config={
            "Adds": st.column_config.NumberColumn(
                format="%+.2f",
                help="Log-odds: above 0 towards hallucinated, below 0 towards supported. The kind "
                "of case and the debate's course add to it too, where the weights know them.",
            )
        },
    )
    if consensus.unknown:
        unknown = ", ".join(names[agent] for agent in consensus.unknown)
        st.caption(f"Without a weight yet: {escape_markdown(unknown)}.")


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _load_weights(home: str, project_id: str, mark: ChangeMark) -> LearnedArtefact | None:
    """Return the weights in use, cached until others are learned or taken into use."""
    with open_store(Path(home)) as store:
        try:
            return store.learned.in_use(CONSENSUS_RECORD_KIND, project_id)
        except ConfigError:
            return None


def render_readers(progress: RunState) -> Html:
    """Render the readers' views in a line; of several statements those on which they disagree."""
    views = _group_by_statement(progress.judgement)
    if not views:
        return Html("")
    split = {index: group for index, group in views.items() if _disagree(group)}
    total = len(progress.statements) if has_audit(progress) else len(views)
    parts = [element("div", _summary_words(views, split, total))]
    for index, group in list(split.items())[:MAX_DISPUTED_STATEMENTS]:
        if total > 1:
            statement = progress.statements.get(index)
            words = (
                clip_text(statement.text, MAX_STATEMENT_CHARS)
                if statement
                else f"statement {index + 1}"
            )
            parts.append(div("cp-quiet", f"“{words}”", dir="auto"))
        parts.append(div("cp-readers-line", *map(_view_tag, group)))
    if len(split) > MAX_DISPUTED_STATEMENTS:
        parts.append(div("cp-quiet", f"and {len(split) - MAX_DISPUTED_STATEMENTS} more"))
    return div("cp-readers", *parts)


def describe_readers(judgement: Judgement) -> str:
    """Return each statement's views as one line of text, disputed statements first."""
    views = _group_by_statement(judgement)
    ordered = sorted(views.items(), key=lambda item: (not _disagree(item[1]), item[0]))
    if len(views) == 1:
        return format_views(ordered[0][1])
    return "; ".join(f"{index + 1}. {format_views(group)}" for index, group in ordered)


def format_views(views: Sequence[ReaderStance]) -> str:
    """Format views: “Entailment reader: supported · Value checker: hallucinated”."""
    return " · ".join(f"{view.reader}: {LABEL_WORDS[view.stance].lower()}" for view in views)


def _summary_words(
    views: dict[int, list[ReaderStance]], split: dict[int, list[ReaderStance]], total: int
) -> str:
    """Say whether the readers agree; of an audit's statements (`total`) they read only some."""
    if len(views) < total:
        some = f"{len(split)} of" if split else "each of"
        on = f"{some} the {len(views):,} statements" if len(views) > 1 else "the one statement"
        agree, end = ("disagree", ":") if split else ("agree", ".")
        return (
            f"{ALL_EVIDENCE_LEAD} the readers {agree} on {on} that they read ({total:,} in "
            f"all){end}"
        )
    first_views = next(iter(views.values()))
    if not split:
        on = " on every statement" if len(views) > 1 else f": {format_views(first_views)}"
        return f"{ALL_EVIDENCE_LEAD} the readers agree{on}."
    on = f" on {len(split)} of {format_count(len(views), 'statement')}" if len(views) > 1 else ""
    return f"{ALL_EVIDENCE_LEAD} the readers disagree{on}:"


def _view_tag(view: ReaderStance) -> Html:
    words = f"{LABEL_SIGNS[view.stance]} {format_views([view])}"
    return element("span", words, class_=f"cp-tag cp-{view.stance}")


def _group_by_statement(judgement: Judgement | None) -> dict[int, list[ReaderStance]]:
    views: dict[int, list[ReaderStance]] = {}
    for view in judgement.readers if judgement else ():
        views.setdefault(view.statement, []).append(view)
    return views


def _disagree(views: Sequence[ReaderStance]) -> bool:
    return len({view.stance for view in views}) > 1


@dataclass(frozen=True)
class PastVerdicts:
    """What past verdicts show and `how` it was counted; `is_known` if there were enough."""

    words: str = ""
    how: str = ""
    is_known: bool = False
    for_people: str = ""


NO_PAST_VERDICTS = PastVerdicts()


def draw_verdict(
    progress: RunState, card: dict[str, Any] | None, past: PastVerdicts = NO_PAST_VERDICTS
) -> None:
    """Draw the verdict card; `card` describes the classifier and how reliable it was."""
    draw_html(render_verdict(progress, card, past))


def render_verdict(
    progress: RunState, card: dict[str, Any] | None, past: PastVerdicts = NO_PAST_VERDICTS
) -> Html:
    """Render the verdict card; empty while there is no verdict."""
    verdict = progress.verdict
    if verdict is None:
        return Html("")
    parts = [div("cp-verdict-label", format_label(verdict.label))]
    if verdict.p_hallucinated is None:
        cause = verdict.cause
        words = verdict.cause_words or (CAUSE_WORDS[cause] if cause else "")
        parts.append(div("cp-verdict-p", words))
        parts += [div("cp-verdict-worth", CAUSE_ADVICE[cause])] if cause else []
    else:
        parts += _probability_html(verdict)
        worth = describe_reliability(verdict, card, progress, past)
        how = {"title": past.how, "role": "img", "aria_label": past.how}
        sign = element("span", " ⓘ", **how) if past.how else ""
        parts.append(div("cp-verdict-worth", worth, sign))
        parts += [div("cp-verdict-people", f"⚑ {past.for_people}")] if past.for_people else []
        why = (element("div", line, dir="auto") for line in split_rationale(verdict.rationale))
        parts.append(div("cp-verdict-why", *why))
    parts.append(render_readers(progress))
    if again := describe_rescoring(progress):
        parts.append(div("cp-verdict-worth", f"↻ {again}"))
    if differs := describe_judge_dissent(progress):
        parts.append(div("cp-verdict-differs", f"⚖ {differs}"))
    if progress.roles and all(role.built_in for role in progress.roles):
        words = "By the built-in engine: no language model was asked."
        parts.append(div("cp-verdict-worth", words))
    return div(f"cp-verdict cp-{verdict.label}", *parts)


def describe_rescoring(progress: RunState) -> str:
    """Say that an old run was scored again, and what it had ended with; else empty."""
    first, verdict = progress.first_verdict, progress.verdict
    if first is None or verdict is None:
        return ""
    p = first.p_hallucinated
    likelihood = "" if p is None else f", {format_percent(max(p, 1.0 - p))} likely"
    return (
        f"Scored again by classifier {verdict.classifier}. The run had ended with "
        f"{LABEL_WORDS[first.label].lower()}{likelihood}, by {first.classifier}."
    )


def describe_judge_dissent(progress: RunState) -> str:
    """Say, for old runs, that the classifier's label counts though the judge's differs."""
    judgement, verdict = progress.judgement, progress.verdict
    if judgement is None or verdict is None or verdict.label in (judgement.label, "unclear"):
        return ""
    return (
        f"The judge itself calls it {LABEL_WORDS[judgement.label].lower()}; the classifier, which "
        f"reads the judge's text, calls it {LABEL_WORDS[verdict.label].lower()}, and its label "
        "counts. Look at the debate before you rely on either."
    )


def describe_reliability(
    verdict: Verdict, card: dict[str, Any] | None, progress: RunState, past: PastVerdicts
) -> str:
    """Say what the probability is worth by the project's own verdicts, else as measured."""
    if past.is_known:
        return past.words
    measured = describe_measured_reliability(verdict, card, progress)
    if not past.words:
        return measured
    return past.words if measured == TOO_FEW_VERDICTS else f"{measured} {past.words}"


def _probability_html(verdict: Verdict) -> list[Html]:
    p = verdict.p_hallucinated or 0.0
    side = p if verdict.label == "hallucinated" else 1.0 - p
    description = f"probability of being hallucinated: {format_percent(p)}"
    dot = div("cp-bar-dot", style=f"left: calc({100 * p:.1f}% - 2px)")
    return [
        div("cp-verdict-p", f"{format_percent(side)} likely to be {verdict.label}"),
        div("cp-bar", dot, role="img", aria_label=description),
        div("cp-bar-ends", element("span", "supported"), element("span", "hallucinated")),
    ]


def describe_measured_reliability(
    verdict: Verdict, card: dict[str, Any] | None, progress: RunState
) -> str:
    """Say how often verdicts of this confidence were right, if that was measured."""
    judge = next((used for used in progress.roles if used.role == "judge"), None)
    if verdict.classifier == SEED_VERSION and judge is not None and not judge.built_in:
        return (
            "What this probability is worth is not known: the seed classifier was measured on the "
            "built-in judge's verdicts, not on this model's. Corrections on Retrain teach it."
        )
    if progress.judgement is not None and progress.judgement.by_tool:
        return (
            f"A tool decided this ({progress.judgement.by_tool.lower()}): how often the readers' "
            "verdicts were right says nothing about it."
        )
    measured = progress.judgement.measured if progress.judgement is not None else None
    if verdict.classifier == SEED_VERSION and measured is not None and measured.n:
        return (
            f"Of {measured.n} statements checked against {MATERIAL_WORDS[measured.material]} "
            f"with a probability like this, {100 * measured.right / measured.n:.0f}% were right "
            "(labelled statements, each judged by a model fitted without it)."
        )
    confidence = verdict.confidence or 0.0
    bins = (card or {}).get("reliability") or []
    for entry in bins:
        n = entry["n"]
        if entry["low"] <= confidence <= entry["high"] and n >= 20:
            share = f"{100.0 * entry['right'] / n:.0f}% were right."
            return f"Of {n} held-out verdicts with a confidence like this, {share}"
    return TOO_FEW_VERDICTS
