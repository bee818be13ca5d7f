"""Reports of runs to read without the app (HTML, Markdown), and the corrected text."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from components.app import login, state
from components.review.correction import choose_label
from components.review.correction_draft import (
    CorrectionTarget,
    format_correction,
    make_form_key,
    save_draft,
)
from components.run.audit import (
    COLUMN_TITLES,
    MAX_TEXT_CHARS,
    NOTHING_TO_CHECK,
    OUTCOME_WORDS,
    StatementRow,
    build_statement_rows,
    format_label_probability,
    has_audit,
    list_whole_response_calls,
    memory_tag,
    render_change,
    render_statement_row,
    render_whole_response,
    summarize_statements,
)
from components.run.debate import explain_silence, format_cost, render_state
from components.run.transcript import (
    MAX_UNFOLDED_TURNS,
    collect_asides,
    list_spoken_texts,
    render_rounds,
    round_anchor,
    split_rounds,
)
from components.run.verdict import (
    NO_PAST_VERDICTS,
    PastVerdicts,
    describe_judge_dissent,
    describe_readers,
    describe_reliability,
    render_verdict,
)
from components.widgets import drafts
from components.widgets.controls import ASSETS, draw_button, draw_download
from components.widgets.html import (
    Html,
    describe_changes,
    describe_unchanged_spans,
    div,
    draw_html,
    element,
    html_table,
    is_unchanged,
    join_html,
    number_spans,
    render_inline_diff,
    render_marked_text,
    strip_verdict_line,
)
from components.widgets.wording import (
    LABEL_WORDS,
    QUOTE_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_percent,
    format_place,
    format_protocol,
    format_roster,
    format_status,
    format_time,
)
from core.baseline.wording import apply_edits, find_span_edits, shorten
from core.debate.signals import find_signals
from core.review.people import list_visible_answers
from core.review.queue_ranking import load_policy
from core.schema.events import ToolUse
from core.schema.records import Case, Run, Span
from core.schema.reviews import Correction, format_category, introduce_correction
from core.schema.run_state import RunState, fold_events
from core.store import Store
from core.store import open_store as open_store_in
from core.store.review_queue import PEOPLE_DECIDE_REASON
from core.store.runs import RunFilter

MAX_SUMMARY_CHARS = 80  # characters of a line that is read at a glance
MAX_SPAN_CHARS = 600  # characters; thousands of long spans would each repeat half the response
MAX_REPORTED_RUNS = 500
MARKED_VALUES_AUTHOR = "the values beside the marked words"
CORRECTED_HEADING = "Corrected text"


def propose_correction(case: Case, progress: RunState) -> tuple[str, str]:
    """Return (corrected text, its author); empty if nothing is wrong or nobody proposed one."""
    if progress.verdict is None or progress.verdict.label != "hallucinated":
        return "", ""
    if progress.revised is not None:
        text, by = progress.revised.text, progress.revised.agent
    else:
        text = apply_edits(case.response, find_span_edits(progress.spans, case.response))
        by = MARKED_VALUES_AUTHOR
    return (text, by) if text != case.response else ("", "")


def draw_corrected_text(run: Run, case: Case, progress: RunState) -> None:
    """Draw the corrected text, folded under a summary, with buttons to use or dismiss it."""
    text, by = propose_correction(case, progress)
    if not text:
        return
    key = f"run.{run.id}.corrected"
    kept = drafts.load_draft_values(key)
    if kept.get("is_left"):
        draw_button("Show the corrected text", f"{key}.show", drafts.save_draft_values, key, {})
        return
    words = f"Corrected text: {summarize_changes(case.response, text, progress.spans)}"
    with st.expander(escape_markdown(words), key=key):
        words = escape_markdown(f"Proposed by {by}.")
        st.caption(f"{words} Nothing changes until you use it and save.")
        draw_html(render_inline_diff(case.response, text))
        if unchanged := describe_unchanged_spans(case.response, text, progress.spans):
            st.caption(escape_markdown(unchanged))
        _draw_buttons(key, CorrectionTarget(run, case, progress), text, str(kept.get("before", "")))


def summarize_changes(before: str, after: str, spans: Sequence[Span] = ()) -> str:
    """Return the changes if they are short, else their number; and how many marks are unchanged."""
    changes = describe_changes(before, after)
    words = ", ".join(changes)
    short = words if len(words) <= MAX_SUMMARY_CHARS else format_count(len(changes), "change")
    unchanged = sum(is_unchanged(before, after, span.start, span.end) for span in spans)
    return (
        f"{short} · {unchanged} of {format_count(len(spans), 'mark')} left unchanged"
        if unchanged
        else short
    )


def _draw_buttons(key: str, target: CorrectionTarget, text: str, before: str) -> None:
    with st.container(horizontal=True):
        draw_button(
            "Use the corrected text",
            f"{key}.take",
            _use_corrected,
            target,
            text,
            icon="check",
            help="It becomes the right answer in your judgement below",
        )
        draw_button(
            "Dismiss the corrected text",
            f"{key}.leave",
            drafts.save_draft_values,
            key,
            {"is_left": True},
            icon="close",
            help="It is dismissed; your judgement stays as it is",
        )
        if before:
            draw_button("Restore what I typed", f"{key}.back", _restore_answer, target, before)


def _use_corrected(target: CorrectionTarget, text: str) -> None:
    key = make_form_key(target.id)
    typed = st.session_state.get(f"{key}.typed") or {}
    before = str(typed.get("answer") or st.session_state.get(f"{key}.answer") or "")
    if before.strip() and before != text:
        drafts.save_draft_values(f"run.{target.id}.corrected", {"before": before})
    if not st.session_state.get(f"{key}.label"):
        choose_label(target, "hallucinated")
    _set_answer(target, text)


def _restore_answer(target: CorrectionTarget, before: str) -> None:
    drafts.save_draft_values(f"run.{target.id}.corrected", {})
    _set_answer(target, before)


def _set_answer(target: CorrectionTarget, text: str) -> None:
    st.session_state[f"{make_form_key(target.id)}.answer"] = text
    save_draft(target.id, "answer")


def list_corrected_texts(case: Case, progress: RunState) -> list[str]:
    """Return author, text, changes and what stays contested; none without a correction."""
    text, by = propose_correction(case, progress)
    if not text:
        return []
    texts = [f"Proposed by {by}.", text, "\n".join(describe_changes(case.response, text))]
    if contested := describe_unchanged_spans(case.response, text, progress.spans):
        texts.append(contested)
    return texts


def _corrected_parts(case: Case, progress: RunState) -> list[Html]:
    texts = list_corrected_texts(case, progress)
    if not texts:
        return []
    by, text, _, *contested = texts
    return [
        element("h2", CORRECTED_HEADING),
        element("p", by, class_="cp-quiet"),
        render_inline_diff(case.response, text),
        *(element("p", words, class_="cp-quiet", dir="auto") for words in contested),
    ]


def _debate_parts(progress: RunState) -> list[Html]:
    """Return the debate of the HTML report; a long one has links and only its last round open."""
    rounds = split_rounds(progress.turns)
    pieces = render_rounds(rounds, find_signals(progress), collect_asides(progress))
    if not progress.turns:
        return [*pieces, element("p", explain_silence(progress))]
    if len(progress.turns) <= MAX_UNFOLDED_TURNS:
        return pieces
    links = (element("a", one.heading, href=f"#{round_anchor(one)}") for one in rounds)
    return [element("p", *(join_html([link, " "]) for link in links), class_="cp-rounds"), *pieces]


def _audit_parts(progress: RunState) -> list[Html]:
    if not has_audit(progress):
        return []
    rows, whole = build_statement_rows(progress), list_whole_response_calls(progress)
    return [
        element("h2", "Statement by statement"),
        element("p", summarize_statements(rows), class_="cp-quiet"),
        *([render_whole_response(whole)] if whole else []),
        html_table(COLUMN_TITLES, map(_audit_row, rows)),
        element("h3", "Step by step"),
        *(render_statement_row(row, "", is_over=True) for row in rows),
    ]


def _audit_row(row: StatementRow) -> list[str | Html]:
    memory = row.memory
    evidence = clip_text(memory.evidence, MAX_TEXT_CHARS) if memory else "–"
    return [
        str(row.number),
        join_html([memory_tag(memory), f" {format_label_probability(memory)}"])
        if memory
        else "not checked",
        clip_text(row.words, MAX_TEXT_CHARS),
        ", ".join(row.tools) or "–",
        join_html([evidence, *map(render_change, row.changes)]),
    ]


def list_audit_texts(progress: RunState) -> list[str]:
    """Return the audit for the Markdown report: a text for the whole and each statement."""
    if not has_audit(progress):
        return []
    texts = [_statement_text(row) for row in build_statement_rows(progress)]
    if whole := [_tool_call_text(use) for use in list_whole_response_calls(progress)]:
        texts.insert(0, "\n".join(["The whole response", *whole]))
    return texts


def _statement_text(row: StatementRow) -> str:
    memory, verdict = row.memory, "Not checked"
    if memory is not None:
        sure = f" ({format_label_probability(memory)})" if format_label_probability(memory) else ""
        label = f"{LABEL_WORDS[memory.label]}{sure}"
        verdict = label if memory.is_checkable else NOTHING_TO_CHECK
    lines = [f"{row.number}. {verdict}: {clip_text(row.words, MAX_TEXT_CHARS)}"]
    lines += [f"evidence: {clip_text(memory.evidence, MAX_TEXT_CHARS)}"] if memory else []
    lines += [_tool_call_text(use) for use in row.uses]
    lines += [
        f"reflection: {change.before} → {change.after}: {clip_text(change.reason, MAX_TEXT_CHARS)}"
        for change in row.changes
    ]
    return "\n".join(lines)


def _tool_call_text(use: ToolUse) -> str:
    result = f"{use.label}: " if use.outcome == "found" else f"{OUTCOME_WORDS[use.outcome]}: "
    return f"{clip_text(use.tool, 60)}: {result}{clip_text(use.words, MAX_TEXT_CHARS)}"


def build_html_report(
    run: Run,
    case: Case,
    progress: RunState,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST_VERDICTS,
) -> str:
    """Return the whole report as one HTML file that loads nothing."""
    spans = progress.spans
    parts: list[str | Html] = [
        element("h1", "Counterpoint report"),
        element("p", _origin_line(run, progress), class_="cp-quiet"),
    ]
    if progress.verdict is not None:
        parts.append(render_verdict(progress, card, past))
    if case.question:
        parts += [element("h2", "Question"), element("p", case.question, dir="auto")]
    parts += [element("h2", "Response"), render_marked_text(case.response, number_spans(spans))]
    if spans:
        parts.append(_span_table(spans))
    parts += _corrected_parts(case, progress)
    parts += _audit_parts(progress)
    if corrections:
        parts.append(element("h2", "What people said"))
        parts += [
            element("p", _correction_line(correction), dir="auto") for correction in corrections
        ]
    parts.append(element("h2", "Evidence"))
    parts += [_quote_html(format_place(p), p.text) for p in progress.evidence.values()]
    parts += [element("h2", "Debate"), *_debate_parts(progress)]
    parts += [element("h2", "How it was checked"), render_state(run, case, progress)]
    parts += [element("p", words) for words in _problem_messages(progress)]
    return str(_page_html("Counterpoint report", join_html(parts)))


def _quote_html(place: str, text: str) -> Html:
    return element("div", div("cp-quiet", place), div("cp-quote", text, dir="auto"))


def _page_html(title: str, body: Html) -> Html:
    """Return the document around the body; its styles are our own files, never a person's text."""
    styles = [(ASSETS / f"{name}.css").read_text(encoding="utf-8") for name in ("app", "report")]
    parts = (
        element("meta", charset="utf-8"),
        element("title", title),
        element("style", Html("".join(styles))),
    )
    page = element("html", element("head", *parts), element("body", body), lang="en")
    return join_html([Html("<!doctype html>"), page])


def _origin_line(run: Run, progress: RunState) -> str:
    cost = f" · {format_cost(progress.cost)}" if progress.calls else ""
    return (
        f"{format_time(run.started_at)} · {format_roster(run.plan.roster, short=True)} · "
        f"{format_protocol(run.plan.protocol, short=True)} · "
        f"classifier {progress.classifier or run.plan.classifier}{cost} · run {run.id}"
    )


def _span_table(spans: Sequence[Span]) -> Html:
    """Render the marked words, what is wrong with them, and what they should say."""
    rows = []
    for number, span in enumerate(spans, start=1):
        wrong, instead = format_category(span.category), span.instead or "–"
        rows.append((str(number), _span_text(span), wrong, instead, format_percent(span.p)))
    return html_table(("", "Words", "What is wrong", "It should say", "p"), rows)


def _span_text(span: Span) -> str:
    return span.text if len(span.text) <= MAX_SPAN_CHARS else shorten(span.text, MAX_SPAN_CHARS)


def _correction_line(correction: Correction) -> str:
    """Return what a person said, on one line."""
    words = format_correction(correction, MAX_SPAN_CHARS)
    return f"{correction.author}, {format_time(correction.at)}: {words}"


def _problem_messages(progress: RunState) -> list[str]:
    """Return what else went wrong; the verdict shows its own cause."""
    cause = progress.verdict.cause_words if progress.verdict else ""
    return [p.message for p in progress.problems if p.message != cause]


def build_markdown_report(
    run: Run,
    case: Case,
    progress: RunState,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST_VERDICTS,
) -> str:
    """Return the report as Markdown; people's texts are in fenced blocks, so they stay text."""
    lines = ["# Counterpoint report", "", *_fenced(_origin_line(run, progress)), ""]
    lines += _verdict_lines(progress, card, past)
    if case.question:
        lines += ["", "## Question", "", *_fenced(case.question)]
    lines += ["", "## Response", "", *_fenced(case.response)]
    sources = [f"read: {name}" for name in progress.source_names.values()]
    sources += [f"problem: {message}" for message in _problem_messages(progress)]
    lines += ["", "## Sources", "", *_fenced("\n".join(sources) or "none")]
    for number, span in enumerate(progress.spans, start=1):
        lines += ["", f"{number}. {format_category(span.category)}, {format_percent(span.p)}", ""]
        lead = introduce_correction(in_evidence=span.in_evidence)
        instead = f"\n{lead}: {span.instead}" if span.instead else ""
        lines += _fenced(_span_text(span) + instead)
    corrected = list_corrected_texts(case, progress)
    lines += ["", f"## {CORRECTED_HEADING}"] if corrected else []
    lines += _blocks(corrected)
    audit = list_audit_texts(progress)
    lines += ["", "## Statement by statement"] if audit else []
    lines += _blocks(audit)
    if corrections:
        lines += [
            "",
            "## What people said",
            "",
            *_fenced("\n".join(map(_correction_line, corrections))),
        ]
    lines += ["", "## Evidence"]
    lines += _blocks(f"{format_place(p)}\n{p.text}" for p in progress.evidence.values())
    lines += [
        "",
        "## Debate",
        *([] if progress.turns else ["", *_fenced(explain_silence(progress))]),
    ]
    lines += _blocks(list_spoken_texts(progress))
    return "\n".join(lines) + "\n"


def _verdict_lines(
    progress: RunState, card: dict[str, Any] | None, past: PastVerdicts
) -> list[str]:
    verdict, judgement = progress.verdict, progress.judgement
    if verdict is None:
        return []
    label = f"**{LABEL_WORDS[verdict.label]}**"
    texts = [verdict.cause_words or strip_verdict_line(verdict.rationale)]
    if judgement is not None and judgement.readers:
        texts.insert(0, describe_readers(judgement))
    people: list[str] = []
    if (p := verdict.p_hallucinated) is not None:
        label += (
            f", p(hallucinated) = {p:.2f}. {describe_reliability(verdict, card, progress, past)}"
        )
        people = ["", *_fenced(past.for_people)] if past.for_people else []
    differs = describe_judge_dissent(progress)
    lines = [label, *people, *(["", differs] if differs else [])]
    return lines + _blocks(texts)


def _blocks(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in ("", *_fenced(text))]


def _fenced(text: str) -> list[str]:
    """Return the text in a block fenced by more backticks than it has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text.splitlines(), fence]


@dataclass(frozen=True)
class ReportedRun:
    """A run with its case, state and corrections."""

    run: Run
    case: Case
    progress: RunState
    corrections: tuple[Correction, ...]
    is_for_people: bool = False


def draw_report_button(wanted: RunFilter) -> None:
    """Draw the download of a report; Streamlit builds it in a thread without a session."""
    with state.open_store() as store:
        project_id, person = state.get_project(store).id, state.get_person(store)
    home, members_only = state.home_folder(), login.is_login_required()

    def make() -> str:
        with open_store_in(home) as store:
            if members_only:
                store.projects.require(project_id, person, "annotator", "read these runs")
            return build_runs_report(*load_reported_runs(store, project_id, wanted))

    draw_download(
        "Report of these runs",
        make,
        "counterpoint-runs.html",
        "history.report",
        "description",
        help=f"One HTML file with the newest {MAX_REPORTED_RUNS} of them.",
    )


def load_reported_runs(
    store: Store, project_id: str, wanted: RunFilter
) -> tuple[list[ReportedRun], int]:
    """Return (the newest matching runs, how many match in all)."""
    lease = store.projects.settings().lease_seconds
    rows, total = store.runs.page(
        project_id, wanted, limit=MAX_REPORTED_RUNS, offset=0, now=time.time(), lease=lease
    )
    policy = load_policy(store, store.projects.get(project_id))
    runs = []
    for row in rows:
        case = store.cases.get(row.run.case_id)
        if case is not None:
            progress = fold_events(event for _, event in store.runs.events(row.run.id))
            answers = store.corrections.of_run(row.run.id)
            corrections = tuple(list_visible_answers(store, case, state.get_person(store), answers))
            is_for_people = policy is not None and policy.is_for_people(
                row.run, progress.classifier
            )
            runs.append(ReportedRun(row.run, case, progress, corrections, is_for_people))
    return runs, total


def build_runs_report(found: Sequence[ReportedRun], total: int) -> str:
    """Return the report of several runs as one HTML file that loads nothing."""
    runs = f"{total} run{'' if total == 1 else 's'}"
    words = f"{len(found)} of {runs}" if total > len(found) else runs
    head = [element("h1", "Counterpoint report"), element("p", words, class_="cp-quiet")]
    sections = (_run_section(number, run) for number, run in enumerate(found, start=1))
    return str(
        _page_html("Counterpoint report", join_html([*head, _label_counts(found), *sections]))
    )


def _label_counts(runs: Iterable[ReportedRun]) -> Html:
    verdicts: Counter[str] = Counter()
    people: Counter[tuple[str, str]] = Counter()
    for reported in runs:
        verdict = LABEL_WORDS[reported.run.label] if reported.run.label else "No verdict"
        verdicts[verdict] += 1
        if reported.corrections:
            people[verdict, LABEL_WORDS[reported.corrections[-1].label]] += 1
    labels = list(LABEL_WORDS.values())
    rows = (
        (verdict, str(count), *(str(people[verdict, label]) for label in labels))
        for verdict, count in verdicts.most_common()
    )
    names = ("Verdict", "Runs", *(f"People say: {label.lower()}" for label in labels))
    return html_table(names, rows)


def _run_section(number: int, reported: ReportedRun) -> Html:
    run, progress = reported.run, reported.progress
    verdict = progress.verdict
    label = LABEL_WORDS[run.label] if run.label else format_status(run)
    p = "" if run.p_hallucinated is None else f", {format_percent(run.p_hallucinated)} hallucinated"
    line = (
        f"{format_time(run.started_at)} · {format_roster(run.plan.roster, short=True)} · run "
        f"{run.id}"
    )
    parts: list[str | Html] = [
        element("h2", f"{number}. {label}{p}"),
        element("p", line, class_="cp-quiet"),
    ]
    if reported.is_for_people:
        parts.append(element("p", f"⚑ {PEOPLE_DECIDE_REASON.capitalize()}."))
    if reported.case.question:
        parts.append(element("p", reported.case.question, dir="auto"))
    parts.append(render_marked_text(reported.case.response, number_spans(progress.spans)))
    if verdict is not None:
        words = verdict.cause_words or strip_verdict_line(verdict.rationale)
        parts.append(element("p", words, dir="auto"))
    if progress.spans:
        parts.append(_span_table(progress.spans))
    # Every quote of the debate once, in order.
    quotes = [quote for turn in progress.turns for quote in turn.quotes]
    for quote in {(quote.source, quote.text): quote for quote in quotes}.values():
        words = " · ".join(part for part in (quote.source, QUOTE_WORDS[quote.status]) if part)
        page = f", p. {quote.page}" if quote.page else ""
        parts.append(_quote_html(words + page, quote.text))
    parts += [
        element("p", _correction_line(correction), dir="auto")
        for correction in reported.corrections
    ]
    return join_html(parts)
