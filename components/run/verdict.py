"""The verdict card: what is wrong, the strongest quote, how often such verdicts are right.

What people say leads, and the machine's verdict is folded below it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.run.audit import has_audit, list_statement_labels
from components.widgets.controls import draw_table
from components.widgets.html import (
    Html,
    div,
    draw_html,
    element,
    join_html,
    split_rationale,
    strip_verdict_line,
)
from components.widgets.wording import (
    CAUSE_ADVICE,
    CAUSE_WORDS,
    LABEL_SIGNS,
    LABEL_WORDS,
    clip_sentences,
    clip_text,
    describe_people,
    escape_markdown,
    format_answer,
    format_count,
    format_label,
    format_percent,
    format_source,
    format_time,
)
from core.baseline.wording import shorten
from core.documents.segmentation import is_ended
from core.learning.agent_answers import name_agents
from core.learning.learned_consensus import CONSENSUS_RECORD_KIND, ConsensusOpinion, form_opinion
from core.review.people import find_visible_truths, list_visible_answers
from core.runtime.errors import ConfigError
from core.schema.records import Case, DebatePoint, Judgement, Label, ReaderStance, Span, Verdict
from core.schema.reviews import Correction, StatementLabel, format_category
from core.schema.run_state import RunState
from core.store import Store, open_store
from core.store.ground_truth import GroundTruth, TruthRecord
from core.store.sqlite import ChangeMark
from core.store.versions import SEED_VERSION, LearnedArtefact

ANSWER_WORDS = {1.0: "hallucinated", 0.0: "supported", 0.5: "unclear"}
MAX_CACHED_PROJECTS = 8  # projects
MAX_DISPUTED_STATEMENTS = 3
MAX_STATEMENT_CHARS = 90
MAX_WORDS_CHARS = 60  # characters of wrong words and of what they should be
MAX_FINDING_CHARS = 260
MAX_QUOTE_CHARS = 180
# In the debate each reader saw a share of the evidence, and may have said otherwise.
ALL_EVIDENCE_LEAD = "Given all the evidence,"
TOO_FEW_VERDICTS = (
    "Too few verdicts with a confidence like this were measured to say how often it is right."
)
MATERIAL_WORDS = {
    "claim": "claims about a short passage",
    "answer": "answers from a passage",
    "document": "statements about long documents",
    "table": "statements about tables",
}
MEASURED_METHOD = (
    "Labelled statements of public data, not of yours, each judged by a model fitted without it."
)
HELD_OUT_METHOD = "Cases with a right answer that this classifier did not learn from; see Retrain."
JUDGE_WEIGHS = "the judge’s own model weighs what all readers measured together; it counts no votes"
SHARE_WORDS: dict[Label, str] = {
    "hallucinated": "wrong",
    "supported": "supported",
    "unclear": "unclear",
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
    """Return the views as one line of text, in the order of the statements."""
    ordered = sorted(_group_by_statement(judgement).items())
    if len(ordered) == 1:
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


@dataclass(frozen=True)
class PersonVerdict:
    """What people say, which leads over the machine's verdict; `label` is None if they disagree.

    `others` are answers that the `truth` does not rest on.
    """

    truth: GroundTruth
    label: Label | None
    spans: tuple[Span, ...] = ()
    statements: tuple[StatementLabel, ...] = ()
    others: tuple[Correction, ...] = ()

    @property
    def names(self) -> str:
        """Whose answers these are."""
        return ", ".join(self.truth.people)

    def describe(self, verdict: Verdict | None) -> str:
        """Say what they did to the machine's verdict: “Overruled by Mira”."""
        return describe_people(self.truth, verdict.label if verdict else None)

    def describe_wrong_statements(self, response: str) -> str:
        """Quote the statements that were labelled wrong one by one; empty without any."""
        wrong = [one for one in self.statements if one.label == "hallucinated"]
        if self.label != "hallucinated" or not wrong:
            return ""
        shown = wrong[:MAX_DISPUTED_STATEMENTS]
        words = [clip_text(response[one.start : one.end], MAX_STATEMENT_CHARS) for one in shown]
        more = f" and {len(wrong) - len(shown)} more" if len(wrong) > len(shown) else ""
        count = f"{len(wrong)} of {format_count(len(self.statements), 'labelled statement')} wrong"
        return f"{count}: {', '.join(f'“{text}”' for text in words)}{more}."


def load_person_verdict(store: Store, case: Case, name: str) -> PersonVerdict | None:
    """Return what people say of a case as far as the person called `name` may be shown it."""
    found = {case.id: store.truths.of_case(case.id)}
    truth = find_visible_truths(store, case.project_id, name, found)[case.id]
    answers = store.corrections.of_case(case.id)
    return find_person_verdict(truth, list_visible_answers(store, case, name, answers))


def find_person_verdict(
    truth: GroundTruth, answers: Sequence[Correction] = ()
) -> PersonVerdict | None:
    """Return what people say by the rule for what is true; None if nobody answered."""
    if not truth.records:
        return None
    label = truth.common_label
    newest = {answer.author: answer for answer in answers}
    labelled = [answer.statements for answer in truth.corrections if answer.statements]
    return PersonVerdict(
        truth,
        label,
        (truth.spans or truth.records[-1].spans) if label == "hallucinated" else (),
        labelled[-1] if labelled and label else (),
        tuple(answer for answer in newest.values() if answer.author not in truth.people),
    )


def apply_person_marks(progress: RunState, person: PersonVerdict | None) -> RunState:
    """Return the state with people's marks in place of the machine's, unless they disagree.

    Who labelled statements and marked no words leaves the machine's marks in those that are wrong.
    """
    if person is None or person.label is None:
        return progress
    spans = person.spans
    if person.label == "hallucinated" and person.statements and not spans:
        right = [one for one in person.statements if one.label == "supported"]
        spans = tuple(
            span
            for span in progress.spans
            if not any(one.start < span.end and span.start < one.end for one in right)
        )
    return replace(progress, person_spans=spans)


def draw_verdict(
    progress: RunState,
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST_VERDICTS,
    person: PersonVerdict | None = None,
) -> None:
    """Draw the verdict card; `card` describes the classifier and how reliable it was."""
    draw_html(render_verdict(progress, card, past, person))


def render_verdict(
    progress: RunState,
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST_VERDICTS,
    person: PersonVerdict | None = None,
) -> Html:
    """Render the verdict card, a person's first; empty while there is no verdict."""
    verdict = progress.verdict
    if verdict is None:
        return Html("") if person is None else _render_person_verdict(person, progress)
    machine = _render_machine_verdict(verdict, progress, card, past)
    if person is None:
        return machine
    likelihood = "" if verdict.p_hallucinated is None else f", {_format_likelihood(verdict)}"
    words = f"The machine: {format_label(verdict.label)}{likelihood}"
    below = element("details", element("summary", words), machine, class_="cp-machine")
    return join_html([_render_person_verdict(person, progress), below])


def _render_person_verdict(person: PersonVerdict, progress: RunState) -> Html:
    truth, lead = person.truth, person.describe(progress.verdict)
    if person.label is None:
        lines = [div("cp-verdict-why", _word_answer(one), dir="auto") for one in truth.records]
        return div("cp-verdict cp-unclear", div("cp-verdict-label", lead), *lines)
    sign = element("span", format_label(person.label), class_="cp-verdict-sign")
    reason = truth.reason.strip()
    response = progress.case.response if progress.case else ""
    wrong = person.describe_wrong_statements(response)
    why = [f"{wrong} "] if wrong else []
    why += [f"{reason} " if is_ended(reason) else f"{reason}. "] if reason else []
    if worst := _find_strongest_span(person.spans):
        why.append(f"{_word_span(worst)}.")
    agreeing = truth.records if len(truth.records) > 1 else ()
    said = [format_answer(one.author, one.label) for one in (*agreeing, *person.others)]
    return div(
        f"cp-verdict cp-{person.label}",
        div("cp-verdict-label", f"{lead}: ", sign),
        div("cp-verdict-why", *why, dir="auto") if why else "",
        div("cp-verdict-worth", " · ".join([format_time(truth.at), *said])),
    )


def _word_answer(answer: TruthRecord) -> str:
    words = format_answer(answer.author, answer.label)
    return f"{words}: {answer.reason}" if answer.reason.strip() else f"{words}."


def _render_machine_verdict(
    verdict: Verdict, progress: RunState, card: dict[str, Any] | None, past: PastVerdicts
) -> Html:
    p = verdict.p_hallucinated
    label = div("cp-verdict-label", format_label(verdict.label))
    likelihood = div("cp-verdict-p", _format_likelihood(verdict)) if p is not None else ""
    parts = [div("cp-verdict-head", label, likelihood)]
    if p is None:
        cause = verdict.cause
        words = verdict.cause_words or (CAUSE_WORDS[cause] if cause else "")
        parts.append(div("cp-verdict-why", shorten(words, MAX_FINDING_CHARS), dir="auto"))
        parts += [div("cp-verdict-worth", CAUSE_ADVICE[cause])] if cause else []
    else:
        dot = div("cp-bar-dot", style=f"left: calc({100 * p:.1f}% - 2px)")
        description = f"probability of being hallucinated: {format_percent(p)}"
        parts.append(div("cp-bar", dot, role="img", aria_label=description))
        parts.append(div("cp-verdict-why", *_finding_html(verdict, progress), dir="auto"))
        worth = describe_reliability(verdict, card, progress, past)
        is_seed = verdict.classifier == SEED_VERSION
        measured = MEASURED_METHOD if is_seed else HELD_OUT_METHOD
        how = past.how if past.is_known else measured if worth.startswith("Of ") else ""
        sign = element("span", " ⓘ", title=how, role="img", aria_label=how) if how else ""
        parts.append(div("cp-verdict-worth", worth, sign))
    signed = (
        ("⚑", past.for_people),
        ("↻", describe_rescoring(progress)),
        ("⚖", describe_judge_dissent(progress)),
        ("⚖", describe_reader_dissent(progress)),
    )
    notes = (div("cp-verdict-note", f"{sign} {words}") for sign, words in signed if words)
    return join_html([div(f"cp-verdict cp-{verdict.label}", *parts), *notes])


def _format_likelihood(verdict: Verdict) -> str:
    p = verdict.p_hallucinated or 0.0
    return f"{format_percent(p if verdict.label == 'hallucinated' else 1.0 - p)} likely"


def _finding_html(verdict: Verdict, progress: RunState) -> list[Html]:
    """Render what is wrong, in how many statements, and the strongest quote."""
    worst = _find_strongest_span(progress.spans) if verdict.label == "hallucinated" else None
    point = _find_strongest_point(verdict, progress) if worst is None else None
    quote = point.quote if point else worst.quote if worst and worst.in_evidence else None
    finding = _count_statements(progress)
    if worst is not None:
        several = len(progress.spans) > 1
        lead = f"{finding}{'. The surest: ' if several else ': '}" if finding else ""
        finding = lead + _word_span(worst)
    elif quote is None or (not finding and verdict.label == "hallucinated"):
        return [element("span", _shorten_rationale(verdict, progress, finding))]
    parts = [element("span", f"{finding}. ")] if finding else []
    if quote is not None:
        proof = worst.instead if worst else point.evidence if point else ""
        marked = worst or point
        claim = _find_statement_words(progress, marked.start) if marked else ""
        words = clip_sentences(quote.text, proof, claim, MAX_QUOTE_CHARS)
        lead = "The source: " if worst else "The source says so: "
        said = element("bdi", f"“{words}”", title=quote.text if words != quote.text else None)
        parts.append(element("span", lead, said, f" ({format_source(quote)})"))
    return parts


def _count_statements(progress: RunState) -> str:
    """Count the statements with the verdict's label: “1 of 17 statements wrong, 6 unclear”."""
    labels = list_statement_labels(progress)
    label = progress.verdict.label if progress.verdict else "unclear"
    count, unclear = labels.count(label), labels.count("unclear")
    if len(labels) < 2 or not count:
        return ""
    words = f"{count} of {len(labels)} statements {SHARE_WORDS[label]}"
    return words + (f", {unclear} unclear" if unclear and label != "unclear" else "")


def _find_strongest_span(spans: Sequence[Span]) -> Span | None:
    """Return the surest span, one with a correction first."""
    return max(spans, key=lambda span: (bool(span.instead), span.in_evidence, span.p), default=None)


def _word_span(span: Span) -> str:
    words = f"“{clip_text(span.text, MAX_WORDS_CHARS)}”"
    if not span.instead:
        return f"{words} is wrong ({format_category(span.category)})"
    return f"{words} should be “{clip_text(span.instead, MAX_WORDS_CHARS)}”"


def _find_strongest_point(verdict: Verdict, progress: RunState) -> DebatePoint | None:
    """Return the judge's surest point for its label that quotes a source."""
    finding = "carried" if verdict.label == "supported" else "contradicted"
    points = progress.judgement.points if progress.judgement else ()
    quoted = [p for p in points if p.finding == finding and p.quote and p.quote.start is not None]
    return max(quoted, key=lambda point: point.weight, default=None)


def _find_statement_words(progress: RunState, at: int) -> str:
    """Return the statement at that place of the response."""
    found = (s.text for s in progress.statements.values() if s.start <= at < s.end)
    return next(found, progress.case.response if progress.case else "")


def _shorten_rationale(verdict: Verdict, progress: RunState, finding: str) -> str:
    """Return the beginning of the judge's reasons; for an audit those on the worst statement."""
    if has_audit(progress) and finding:
        entries = [e for e in progress.memory.values() if e.is_checkable and e.p is not None]
        same = [entry for entry in entries if entry.label == verdict.label]
        worst = max(same, key=lambda entry: abs((entry.p or 0.5) - 0.5), default=None)
        text = f"{finding}. {worst.evidence}" if worst else finding
    else:
        text = strip_verdict_line(verdict.rationale)
    return shorten(text, MAX_FINDING_CHARS)


def render_reasons(progress: RunState) -> Html:
    """Render the judge's reasons in full and its readers' views; an audit's are in its table."""
    verdict = progress.verdict
    if verdict is None:
        return Html("")
    lines = [] if has_audit(progress) else split_rationale(verdict.rationale)
    why = [div("cp-reasons-why", *(element("div", line) for line in lines), dir="auto")]
    parts = [*(why if any(lines) else []), render_readers(progress)]
    return div("cp-reasons", div("cp-named", "The judge"), *parts) if any(parts) else Html("")


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


def describe_reader_dissent(progress: RunState) -> str:
    """Say who decided where no reader by itself gives the verdict's label; else empty."""
    judgement, verdict = progress.judgement, progress.verdict
    if judgement is None or verdict is None or verdict.label == "unclear":
        return ""
    if any(view.stance == verdict.label for view in judgement.readers):
        return ""
    if not judgement.readers or judgement.by_tool or verdict.label != judgement.label:
        return ""
    return f"No reader by itself calls it {LABEL_WORDS[verdict.label].lower()}: {JUDGE_WEIGHS}."


def describe_reliability(
    verdict: Verdict, card: dict[str, Any] | None, progress: RunState, past: PastVerdicts
) -> str:
    """Say what the probability is worth by the project's own verdicts, else as measured."""
    if past.is_known:
        return past.words
    measured = describe_measured_reliability(verdict, card, progress)
    return past.words if past.words and measured == TOO_FEW_VERDICTS else measured


def _is_measured(progress: RunState) -> bool:
    """Return True if the reliability said is that on labelled public data."""
    verdict, judgement = progress.verdict, progress.judgement
    return bool(
        verdict is not None
        and verdict.classifier == SEED_VERSION
        and judgement is not None
        and not judgement.by_tool
        and judgement.measured is not None
        and judgement.measured.n
    )


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
    judgement = progress.judgement
    if judgement is not None and judgement.measured is not None and _is_measured(progress):
        measured = judgement.measured
        share = f"{100 * measured.right / measured.n:.0f}% were right"
        kind = MATERIAL_WORDS[measured.material]
        return f"Of {measured.n} {kind} with a probability like this, {share}."
    confidence = verdict.confidence or 0.0
    bins = (card or {}).get("reliability") or []
    for entry in bins:
        n = entry["n"]
        if entry["low"] <= confidence <= entry["high"] and n >= 20:
            share = f"{100.0 * entry['right'] / n:.0f}% were right."
            is_seed = verdict.classifier == SEED_VERSION
            kind = "labelled public statements" if is_seed else "held-out cases"
            return f"Of {n} {kind} with a confidence like this, {share}"
    return TOO_FEW_VERDICTS
