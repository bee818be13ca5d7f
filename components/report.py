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
from components.review.correction import choose
from components.review.correction_draft import CorrectionTarget, keep, key_of, plain_words
from components.run.audit import (
    HEADS,
    LONGEST_TEXT,
    NOTHING_TO_CHECK,
    OUTCOME_WORDS,
    StatementRow,
    change_html,
    has_audit,
    held_tag,
    row_html,
    rows_of,
    summary_words,
    sure_words,
    whole_html,
    whole_uses,
)
from components.run.debate import cost_words, silence_words, state_html
from components.run.transcript import (
    MOST_UNFOLDED,
    asides,
    round_anchor,
    rounds_html,
    rounds_of,
    spoken_texts,
)
from components.run.verdict import (
    NO_PAST,
    PastVerdicts,
    difference_words,
    readers_words,
    verdict_html,
    worth_words,
)
from components.widgets import drafts
from components.widgets.controls import ASSETS, button, download
from components.widgets.html import (
    Html,
    change_words,
    contested_still,
    div,
    element,
    html_table,
    is_unchanged,
    joined,
    marked_text,
    numbered,
    rationale_words,
    show,
    within_html,
)
from components.widgets.wording import (
    LABEL_WORDS,
    QUOTE_WORDS,
    clipped,
    counted,
    escaped,
    percent,
    place_words,
    protocol_words,
    roster_words,
    status_words,
    when,
)
from core.baseline.wording import edits_of_spans, shortened, with_edits
from core.debate.signals import signals_of
from core.review.queue_ranking import policy_of
from core.schema.events import ToolUse
from core.schema.progress import Progress, folded
from core.schema.records import Case, Run, Span
from core.schema.reviews import Correction, category_words, instead_words
from core.store import Store
from core.store import open_store as open_store_in
from core.store.queue import FOR_PEOPLE
from core.store.runs import RunFilter

LONGEST_TOLD = 80  # characters of a line that is read at a glance
LONGEST_SPAN = 600  # characters; thousands of long spans would each repeat half the response
MOST_RUNS = 500
BY_MARKS = "the values beside the marked words"
HEADING = "Corrected text"


def proposed(case: Case, progress: Progress) -> tuple[str, str]:
    """Return (corrected text, its author); empty if nothing is wrong or nobody proposed one."""
    if progress.verdict is None or progress.verdict.label != "hallucinated":
        return "", ""
    if progress.revised is not None:
        text, by = progress.revised.text, progress.revised.agent
    else:
        text = with_edits(case.response, edits_of_spans(progress.spans, case.response))
        by = BY_MARKS
    return (text, by) if text != case.response else ("", "")


def draw_corrected(run: Run, case: Case, progress: Progress) -> None:
    """Draw the corrected text, folded under a summary, with buttons to use or dismiss it."""
    text, by = proposed(case, progress)
    if not text:
        return
    key = f"run.{run.id}.corrected"
    kept = drafts.kept(key)
    if kept.get("is_left"):
        button("Show the corrected text", f"{key}.show", drafts.keep, key, {})
        return
    words = f"Corrected text: {in_short(case.response, text, progress.spans)}"
    with st.expander(escaped(words), key=key):
        words = escaped(f"Proposed by {by}.")
        st.caption(f"{words} Nothing changes until you use it and save.")
        show(within_html(case.response, text))
        if unchanged := contested_still(case.response, text, progress.spans):
            st.caption(escaped(unchanged))
        _draw_buttons(key, CorrectionTarget(run, case, progress), text, str(kept.get("before", "")))


def in_short(before: str, after: str, spans: Sequence[Span] = ()) -> str:
    """Return the changes if they are short, else their number; and how many marks are unchanged."""
    changes = change_words(before, after)
    words = ", ".join(changes)
    short = words if len(words) <= LONGEST_TOLD else counted(len(changes), "change")
    unchanged = sum(is_unchanged(before, after, span.start, span.end) for span in spans)
    return (
        f"{short} · {unchanged} of {counted(len(spans), 'mark')} left unchanged"
        if unchanged
        else short
    )


def _draw_buttons(key: str, target: CorrectionTarget, text: str, before: str) -> None:
    with st.container(horizontal=True):
        button(
            "Use the corrected text",
            f"{key}.take",
            _use_corrected,
            target,
            text,
            icon="check",
            help="It becomes the right answer in your judgement below",
        )
        button(
            "Dismiss the corrected text",
            f"{key}.leave",
            drafts.keep,
            key,
            {"is_left": True},
            icon="close",
            help="It is dismissed; your judgement stays as it is",
        )
        if before:
            button("Restore what I typed", f"{key}.back", _restore_answer, target, before)


def _use_corrected(target: CorrectionTarget, text: str) -> None:
    key = key_of(target.id)
    typed = st.session_state.get(f"{key}.typed") or {}
    before = str(typed.get("answer") or st.session_state.get(f"{key}.answer") or "")
    if before.strip() and before != text:
        drafts.keep(f"run.{target.id}.corrected", {"before": before})
    if not st.session_state.get(f"{key}.label"):
        choose(target, "hallucinated")
    _set_answer(target, text)


def _restore_answer(target: CorrectionTarget, before: str) -> None:
    drafts.keep(f"run.{target.id}.corrected", {})
    _set_answer(target, before)


def _set_answer(target: CorrectionTarget, text: str) -> None:
    st.session_state[f"{key_of(target.id)}.answer"] = text
    keep(target.id, "answer")


def corrected_texts(case: Case, progress: Progress) -> list[str]:
    """Return author, text, changes and what stays contested; none without a correction."""
    text, by = proposed(case, progress)
    if not text:
        return []
    texts = [f"Proposed by {by}.", text, "\n".join(change_words(case.response, text))]
    if contested := contested_still(case.response, text, progress.spans):
        texts.append(contested)
    return texts


def _corrected_parts(case: Case, progress: Progress) -> list[Html]:
    texts = corrected_texts(case, progress)
    if not texts:
        return []
    by, text, _, *contested = texts
    return [
        element("h2", HEADING),
        element("p", by, class_="cp-quiet"),
        within_html(case.response, text),
        *(element("p", words, class_="cp-quiet", dir="auto") for words in contested),
    ]


def _debate_parts(progress: Progress) -> list[Html]:
    """Return the debate of the HTML report; a long one has links and only its last round open."""
    rounds = rounds_of(progress.turns)
    pieces = rounds_html(rounds, signals_of(progress), asides(progress))
    if not progress.turns:
        return [*pieces, element("p", silence_words(progress))]
    if len(progress.turns) <= MOST_UNFOLDED:
        return pieces
    links = (element("a", one.heading, href=f"#{round_anchor(one)}") for one in rounds)
    return [element("p", *(joined([link, " "]) for link in links), class_="cp-rounds"), *pieces]


def _audit_parts(progress: Progress) -> list[Html]:
    if not has_audit(progress):
        return []
    rows, whole = rows_of(progress), whole_uses(progress)
    return [
        element("h2", "Statement by statement"),
        element("p", summary_words(rows), class_="cp-quiet"),
        *([whole_html(whole)] if whole else []),
        html_table(HEADS, map(_audit_row, rows)),
        element("h3", "Step by step"),
        *(row_html(row, "", is_over=True) for row in rows),
    ]


def _audit_row(row: StatementRow) -> list[str | Html]:
    memory = row.memory
    evidence = clipped(memory.evidence, LONGEST_TEXT) if memory else "–"
    return [
        str(row.number),
        joined([held_tag(memory), f" {sure_words(memory)}"]) if memory else "not checked",
        clipped(row.words, LONGEST_TEXT),
        ", ".join(row.tools) or "–",
        joined([evidence, *map(change_html, row.changes)]),
    ]


def audit_texts(progress: Progress) -> list[str]:
    """Return the audit for the Markdown report: a text for the whole and each statement."""
    if not has_audit(progress):
        return []
    texts = [_statement_text(row) for row in rows_of(progress)]
    if whole := [_tool_call_text(use) for use in whole_uses(progress)]:
        texts.insert(0, "\n".join(["The whole response", *whole]))
    return texts


def _statement_text(row: StatementRow) -> str:
    memory, verdict = row.memory, "Not checked"
    if memory is not None:
        sure = f" ({sure_words(memory)})" if sure_words(memory) else ""
        label = f"{LABEL_WORDS[memory.label]}{sure}"
        verdict = label if memory.is_checkable else NOTHING_TO_CHECK
    lines = [f"{row.number}. {verdict}: {clipped(row.words, LONGEST_TEXT)}"]
    lines += [f"evidence: {clipped(memory.evidence, LONGEST_TEXT)}"] if memory else []
    lines += [_tool_call_text(use) for use in row.uses]
    lines += [
        f"reflection: {change.before} → {change.after}: {clipped(change.reason, LONGEST_TEXT)}"
        for change in row.changes
    ]
    return "\n".join(lines)


def _tool_call_text(use: ToolUse) -> str:
    result = f"{use.label}: " if use.outcome == "found" else f"{OUTCOME_WORDS[use.outcome]}: "
    return f"{clipped(use.tool, 60)}: {result}{clipped(use.words, LONGEST_TEXT)}"


def html_report(
    run: Run,
    case: Case,
    progress: Progress,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST,
) -> str:
    """Return the whole report as one HTML file that loads nothing."""
    spans = progress.spans
    parts: list[str | Html] = [
        element("h1", "Counterpoint report"),
        element("p", _origin_line(run, progress), class_="cp-quiet"),
    ]
    if progress.verdict is not None:
        parts.append(verdict_html(progress, card, past))
    if case.question:
        parts += [element("h2", "Question"), element("p", case.question, dir="auto")]
    parts += [element("h2", "Response"), marked_text(case.response, numbered(spans))]
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
    parts += [_quote_html(place_words(p), p.text) for p in progress.evidence.values()]
    parts += [element("h2", "Debate"), *_debate_parts(progress)]
    parts += [element("h2", "How it was checked"), state_html(run, case, progress)]
    parts += [element("p", words) for words in _problem_messages(progress)]
    return str(_page_html("Counterpoint report", joined(parts)))


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
    return joined([Html("<!doctype html>"), page])


def _origin_line(run: Run, progress: Progress) -> str:
    cost = f" · {cost_words(progress.cost)}" if progress.calls else ""
    return (
        f"{when(run.started_at)} · {roster_words(run.plan.roster, short=True)} · "
        f"{protocol_words(run.plan.protocol, short=True)} · "
        f"classifier {progress.classifier or run.plan.classifier}{cost} · run {run.id}"
    )


def _span_table(spans: Sequence[Span]) -> Html:
    """Render the marked words, what is wrong with them, and what they should say."""
    rows = []
    for number, span in enumerate(spans, start=1):
        wrong, instead = category_words(span.category), span.instead or "–"
        rows.append((str(number), _span_text(span), wrong, instead, percent(span.p)))
    return html_table(("", "Words", "What is wrong", "It should say", "p"), rows)


def _span_text(span: Span) -> str:
    return span.text if len(span.text) <= LONGEST_SPAN else shortened(span.text, LONGEST_SPAN)


def _correction_line(correction: Correction) -> str:
    """Return what a person said, on one line."""
    words = plain_words(correction, LONGEST_SPAN)
    return f"{correction.author}, {when(correction.at)}: {words}"


def _problem_messages(progress: Progress) -> list[str]:
    """Return what else went wrong; the verdict shows its own cause."""
    cause = progress.verdict.cause_words if progress.verdict else ""
    return [p.message for p in progress.problems if p.message != cause]


def markdown_report(
    run: Run,
    case: Case,
    progress: Progress,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST,
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
        lines += ["", f"{number}. {category_words(span.category)}, {percent(span.p)}", ""]
        lead = instead_words(in_evidence=span.in_evidence)
        instead = f"\n{lead}: {span.instead}" if span.instead else ""
        lines += _fenced(_span_text(span) + instead)
    corrected = corrected_texts(case, progress)
    lines += ["", f"## {HEADING}"] if corrected else []
    lines += _blocks(corrected)
    audit = audit_texts(progress)
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
    lines += _blocks(f"{place_words(p)}\n{p.text}" for p in progress.evidence.values())
    lines += ["", "## Debate", *([] if progress.turns else ["", *_fenced(silence_words(progress))])]
    lines += _blocks(spoken_texts(progress))
    return "\n".join(lines) + "\n"


def _verdict_lines(
    progress: Progress, card: dict[str, Any] | None, past: PastVerdicts
) -> list[str]:
    verdict, judgement = progress.verdict, progress.judgement
    if verdict is None:
        return []
    label = f"**{LABEL_WORDS[verdict.label]}**"
    texts = [verdict.cause_words or rationale_words(verdict.rationale)]
    if judgement is not None and judgement.readers:
        texts.insert(0, readers_words(judgement))
    people: list[str] = []
    if (p := verdict.p_hallucinated) is not None:
        label += f", p(hallucinated) = {p:.2f}. {worth_words(verdict, card, progress, past)}"
        people = ["", *_fenced(past.for_people)] if past.for_people else []
    differs = difference_words(progress)
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
    progress: Progress
    corrections: tuple[Correction, ...]
    is_for_people: bool = False


def draw_report_button(wanted: RunFilter) -> None:
    """Draw the download of a report; Streamlit builds it in a thread without a session."""
    with state.open_store() as store:
        project_id, person = state.project(store).id, state.person(store)
    home, members_only = state.home(), login.is_on()

    def make() -> str:
        with open_store_in(home) as store:
            if members_only:
                store.projects.require(project_id, person, "annotator", "read these runs")
            return html_of_many(*told_runs(store, project_id, wanted))

    download(
        "Report of these runs",
        make,
        "counterpoint-runs.html",
        "history.report",
        "description",
        help=f"One HTML file with the newest {MOST_RUNS} of them.",
    )


def told_runs(store: Store, project_id: str, wanted: RunFilter) -> tuple[list[ReportedRun], int]:
    """Return (the newest matching runs, how many match in all)."""
    lease = store.projects.settings().lease_seconds
    rows, total = store.runs.page(
        project_id, wanted, limit=MOST_RUNS, offset=0, now=time.time(), lease=lease
    )
    policy = policy_of(store, store.projects.get(project_id))
    runs = []
    for row in rows:
        case = store.cases.get(row.run.case_id)
        if case is not None:
            progress = folded(event for _, event in store.runs.events(row.run.id))
            corrections = tuple(store.corrections.of_run(row.run.id))
            is_for_people = policy is not None and policy.is_for_people(
                row.run, progress.classifier
            )
            runs.append(ReportedRun(row.run, case, progress, corrections, is_for_people))
    return runs, total


def html_of_many(found: Sequence[ReportedRun], total: int) -> str:
    """Return the report of several runs as one HTML file that loads nothing."""
    runs = f"{total} run{'' if total == 1 else 's'}"
    words = f"{len(found)} of {runs}" if total > len(found) else runs
    head = [element("h1", "Counterpoint report"), element("p", words, class_="cp-quiet")]
    sections = (_run_section(number, run) for number, run in enumerate(found, start=1))
    return str(_page_html("Counterpoint report", joined([*head, _label_counts(found), *sections])))


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
    label = LABEL_WORDS[run.label] if run.label else status_words(run)
    p = "" if run.p_hallucinated is None else f", {percent(run.p_hallucinated)} hallucinated"
    line = f"{when(run.started_at)} · {roster_words(run.plan.roster, short=True)} · run {run.id}"
    parts: list[str | Html] = [
        element("h2", f"{number}. {label}{p}"),
        element("p", line, class_="cp-quiet"),
    ]
    if reported.is_for_people:
        parts.append(element("p", f"⚑ {FOR_PEOPLE.capitalize()}."))
    if reported.case.question:
        parts.append(element("p", reported.case.question, dir="auto"))
    parts.append(marked_text(reported.case.response, numbered(progress.spans)))
    if verdict is not None:
        words = verdict.cause_words or rationale_words(verdict.rationale)
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
    return joined(parts)
