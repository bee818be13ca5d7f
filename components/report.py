"""Runs as reports to read without the app (HTML, Markdown), and the corrected text."""

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
BY_MARKS = "the values beside the marked words"


def proposed(case: Case, progress: Progress) -> tuple[str, str]:
    """(the text, who wrote it); empty where nothing is to be put right, or nobody could."""
    if progress.verdict is None or progress.verdict.label != "hallucinated":
        return "", ""
    if progress.revised is not None:
        text, by = progress.revised.text, progress.revised.agent
    else:
        text = with_edits(case.response, edits_of_spans(progress.spans, case.response))
        by = BY_MARKS
    return (text, by) if text != case.response else ("", "")


def draw_corrected(run: Run, case: Case, progress: Progress) -> None:
    """What would change, folded under a line that says it; within, two buttons."""
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
        if left := contested_still(case.response, text, progress.spans):
            st.caption(escaped(left))
        _draw_buttons(key, CorrectionTarget(run, case, progress), text, str(kept.get("before", "")))


def in_short(before: str, after: str, spans: Sequence[Span] = ()) -> str:
    """The changes where they are few and short, else how many; and how many marks it leaves."""
    told = change_words(before, after)
    words = ", ".join(told)
    short = words if len(words) <= LONGEST_TOLD else counted(len(told), "change")
    left = sum(is_unchanged(before, after, span.start, span.end) for span in spans)
    return f"{short} · {left} of {counted(len(spans), 'mark')} left unchanged" if left else short


def _draw_buttons(key: str, asked: CorrectionTarget, text: str, before: str) -> None:
    with st.container(horizontal=True):
        about = "It becomes the right answer in your judgement below"
        words = "Use the corrected text"
        button(words, f"{key}.take", _take, asked, text, icon="check", help=about)
        about = "It is dismissed; your judgement stays as it is"
        left = {"is_left": True}
        words = "Dismiss the corrected text"
        button(words, f"{key}.leave", drafts.keep, key, left, icon="close", help=about)
        if before:
            button("Restore what I typed", f"{key}.back", _put_back, asked, before)


def _take(asked: CorrectionTarget, text: str) -> None:
    key = key_of(asked.id)
    typed = st.session_state.get(f"{key}.typed") or {}
    before = str(typed.get("answer") or st.session_state.get(f"{key}.answer") or "")
    if before.strip() and before != text:
        drafts.keep(f"run.{asked.id}.corrected", {"before": before})
    if not st.session_state.get(f"{key}.label"):
        choose(asked, "hallucinated")
    _answer(asked, text)


def _put_back(asked: CorrectionTarget, before: str) -> None:
    drafts.keep(f"run.{asked.id}.corrected", {})
    _answer(asked, before)


def _answer(asked: CorrectionTarget, text: str) -> None:
    st.session_state[f"{key_of(asked.id)}.answer"] = text
    keep(asked.id, "answer")


HEADING = "Corrected text"


def corrected_texts(case: Case, progress: Progress) -> list[str]:
    """Who proposes it, the text, each change, and what stays contested; none without one."""
    text, by = proposed(case, progress)
    if not text:
        return []
    left = contested_still(case.response, text, progress.spans)
    told = "\n".join(change_words(case.response, text))
    return [f"Proposed by {by}.", text, told, *([left] if left else [])]


def _corrected_parts(case: Case, progress: Progress) -> list[Html]:
    texts = corrected_texts(case, progress)
    if not texts:
        return []
    by, text, _, *left = texts
    return [
        element("h2", HEADING),
        element("p", by, class_="cp-quiet"),
        within_html(case.response, text),
        *(element("p", words, class_="cp-quiet", dir="auto") for words in left),
    ]


def _debate_parts(progress: Progress) -> list[Html]:
    """Its section of the HTML report; of a long debate all rounds but the last are folded."""
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
        html_table(HEADS, map(_cells, rows)),
        element("h3", "Step by step"),
        *(row_html(row, "", is_over=True) for row in rows),
    ]


def _cells(row: StatementRow) -> list[str | Html]:
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
    """The audit as texts for the Markdown report, one for the whole and one for each statement."""
    if not has_audit(progress):
        return []
    whole = [_use_words(use) for use in whole_uses(progress)]
    told = ["\n".join(["The whole response", *whole])] if whole else []
    return told + [_row_text(row) for row in rows_of(progress)]


def _row_text(row: StatementRow) -> str:
    memory, verdict = row.memory, "Not checked"
    if memory is not None:
        sure = f" ({sure_words(memory)})" if sure_words(memory) else ""
        label = f"{LABEL_WORDS[memory.label]}{sure}"
        verdict = label if memory.is_checkable else NOTHING_TO_CHECK
    lines = [f"{row.number}. {verdict}: {clipped(row.words, LONGEST_TEXT)}"]
    lines += [f"evidence: {clipped(memory.evidence, LONGEST_TEXT)}"] if memory else []
    lines += [_use_words(use) for use in row.uses]
    lines += [
        f"reflection: {change.before} → {change.after}: {clipped(change.reason, LONGEST_TEXT)}"
        for change in row.changes
    ]
    return "\n".join(lines)


def _use_words(use: ToolUse) -> str:
    came = f"{use.label}: " if use.outcome == "found" else f"{OUTCOME_WORDS[use.outcome]}: "
    return f"{clipped(use.tool, 60)}: {came}{clipped(use.words, LONGEST_TEXT)}"


# A longer span is read in the response; thousands of them would each repeat half of it.
LONGEST_SPAN = 600


def html_report(
    run: Run,
    case: Case,
    progress: Progress,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST,
) -> str:
    """The whole report as one HTML file without anything to fetch."""
    spans = progress.spans
    parts: list[str | Html] = [
        element("h1", "Counterpoint report"),
        element("p", _line(run, progress), class_="cp-quiet"),
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
        parts += [element("p", _said_words(correction), dir="auto") for correction in corrections]
    parts.append(element("h2", "Evidence"))
    parts += [_cited(place_words(p), p.text) for p in progress.evidence.values()]
    parts += [element("h2", "Debate"), *_debate_parts(progress)]
    parts += [element("h2", "How it was checked"), state_html(run, case, progress)]
    parts += [element("p", words) for words in _problems(progress)]
    return str(_page_html("Counterpoint report", joined(parts)))


def _cited(place: str, text: str) -> Html:
    return element("div", div("cp-quiet", place), div("cp-quote", text, dir="auto"))


def _page_html(title: str, body: Html) -> Html:
    """The document around the body; the styles are our own files, never a person's text."""
    styles = [(ASSETS / f"{name}.css").read_text(encoding="utf-8") for name in ("app", "report")]
    parts = (
        element("meta", charset="utf-8"),
        element("title", title),
        element("style", Html("".join(styles))),
    )
    page = element("html", element("head", *parts), element("body", body), lang="en")
    return joined([Html("<!doctype html>"), page])


def _line(run: Run, progress: Progress) -> str:
    cost = f" · {cost_words(progress.cost)}" if progress.calls else ""
    return (
        f"{when(run.started_at)} · {roster_words(run.plan.roster, short=True)} · "
        f"{protocol_words(run.plan.protocol, short=True)} · "
        f"classifier {progress.classifier or run.plan.classifier}{cost} · run {run.id}"
    )


def _span_table(spans: Sequence[Span]) -> Html:
    """The marked words, what is wrong with them, and what they should say."""
    rows = []
    for number, span in enumerate(spans, start=1):
        wrong, instead = category_words(span.category), span.instead or "–"
        rows.append((str(number), _words_of(span), wrong, instead, percent(span.p)))
    return html_table(("", "Words", "What is wrong", "It should say", "p"), rows)


def _words_of(span: Span) -> str:
    return span.text if len(span.text) <= LONGEST_SPAN else shortened(span.text, LONGEST_SPAN)


def _said_words(correction: Correction) -> str:
    """What a person said, in one line."""
    said = plain_words(correction, LONGEST_SPAN)
    return f"{correction.author}, {when(correction.at)}: {said}"


def _problems(progress: Progress) -> list[str]:
    """What else went wrong; the verdict's own cause stands with it."""
    told = progress.verdict.cause_words if progress.verdict else ""
    return [p.message for p in progress.problems if p.message != told]


def markdown_report(
    run: Run,
    case: Case,
    progress: Progress,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST,
) -> str:
    """The report as Markdown; people's texts stand in fenced blocks, so they stay texts."""
    lines = ["# Counterpoint report", "", *_fenced(_line(run, progress)), ""]
    lines += _verdict_lines(progress, card, past)
    if case.question:
        lines += ["", "## Question", "", *_fenced(case.question)]
    lines += ["", "## Response", "", *_fenced(case.response)]
    sources = progress.source_names.values()
    problems = _problems(progress)
    given = [*(f"read: {name}" for name in sources), *(f"problem: {words}" for words in problems)]
    lines += ["", "## Sources", "", *_fenced("\n".join(given) or "none")]
    for number, span in enumerate(progress.spans, start=1):
        lines += ["", f"{number}. {category_words(span.category)}, {percent(span.p)}", ""]
        leads = instead_words(in_evidence=span.in_evidence)
        instead = f"\n{leads}: {span.instead}" if span.instead else ""
        lines += _fenced(_words_of(span) + instead)
    corrected = corrected_texts(case, progress)
    lines += ["", f"## {HEADING}"] if corrected else []
    lines += [line for told in corrected for line in ("", *_fenced(told))]
    audit = audit_texts(progress)
    lines += ["", "## Statement by statement"] if audit else []
    lines += [line for told in audit for line in ("", *_fenced(told))]
    if corrections:
        lines += ["", "## What people said", "", *_fenced("\n".join(map(_said_words, corrections)))]
    lines += ["", "## Evidence"]
    for passage in progress.evidence.values():
        lines += ["", *_fenced(f"{place_words(passage)}\n{passage.text}")]
    lines += ["", "## Debate", *([] if progress.turns else ["", *_fenced(silence_words(progress))])]
    for told in spoken_texts(progress):
        lines += ["", *_fenced(told)]
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
    return lines + [line for text in texts for line in ("", *_fenced(text))]


def _fenced(text: str) -> list[str]:
    """The text in a block that is fenced by more backticks than it holds in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text.splitlines(), fence]


MOST_RUNS = 500


@dataclass(frozen=True)
class ReportedRun:
    """A run with what came of it."""

    run: Run
    case: Case
    progress: Progress
    corrections: tuple[Correction, ...]
    is_for_people: bool = False


def draw_report_button(wanted: RunFilter) -> None:
    """The report of the runs that fit; Streamlit makes it in a thread without the session."""
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
    """(the newest runs that fit, how many fit in all)."""
    lease = store.projects.settings().lease_seconds
    rows, total = store.runs.page(
        project_id, wanted, limit=MOST_RUNS, offset=0, now=time.time(), lease=lease
    )
    policy = policy_of(store, store.projects.get(project_id))
    found = []
    for row in rows:
        case = store.cases.get(row.run.case_id)
        if case is not None:
            progress = folded(event for _, event in store.runs.events(row.run.id))
            given = tuple(store.corrections.of_run(row.run.id))
            is_theirs = policy is not None and policy.is_for_people(row.run, progress.classifier)
            found.append(ReportedRun(row.run, case, progress, given, is_theirs))
    return found, total


def html_of_many(found: Sequence[ReportedRun], total: int) -> str:
    """The whole report as one HTML file without anything to fetch."""
    runs = f"{total} run{'' if total == 1 else 's'}"
    words = f"{len(found)} of {runs}" if total > len(found) else runs
    head = [element("h1", "Counterpoint report"), element("p", words, class_="cp-quiet")]
    sections = (_section(number, one) for number, one in enumerate(found, start=1))
    return str(_page_html("Counterpoint report", joined([*head, _counts(found), *sections])))


def _counts(found: Iterable[ReportedRun]) -> Html:
    verdicts: Counter[str] = Counter()
    people: Counter[tuple[str, str]] = Counter()
    for one in found:
        verdict = LABEL_WORDS[one.run.label] if one.run.label else "No verdict"
        verdicts[verdict] += 1
        if one.corrections:
            people[verdict, LABEL_WORDS[one.corrections[-1].label]] += 1
    labels = list(LABEL_WORDS.values())
    rows = (
        (verdict, str(count), *(str(people[verdict, label]) for label in labels))
        for verdict, count in verdicts.most_common()
    )
    names = ("Verdict", "Runs", *(f"People say: {label.lower()}" for label in labels))
    return html_table(names, rows)


def _section(number: int, one: ReportedRun) -> Html:
    run, progress = one.run, one.progress
    verdict = progress.verdict
    label = LABEL_WORDS[run.label] if run.label else status_words(run)
    p = "" if run.p_hallucinated is None else f", {percent(run.p_hallucinated)} hallucinated"
    line = f"{when(run.started_at)} · {roster_words(run.plan.roster, short=True)} · run {run.id}"
    parts: list[str | Html] = [
        element("h2", f"{number}. {label}{p}"),
        element("p", line, class_="cp-quiet"),
    ]
    if one.is_for_people:
        parts.append(element("p", f"⚑ {FOR_PEOPLE.capitalize()}."))
    if one.case.question:
        parts.append(element("p", one.case.question, dir="auto"))
    parts.append(marked_text(one.case.response, numbered(progress.spans)))
    if verdict is not None:
        words = verdict.cause_words or rationale_words(verdict.rationale)
        parts.append(element("p", words, dir="auto"))
    if progress.spans:
        parts.append(_span_table(progress.spans))
    # Every quote of the debate once, in the order in which they were given.
    given = [quote for turn in progress.turns for quote in turn.quotes]
    for quote in {(quote.source, quote.text): quote for quote in given}.values():
        words = " · ".join(part for part in (quote.source, QUOTE_WORDS[quote.status]) if part)
        page = f", p. {quote.page}" if quote.page else ""
        parts.append(_cited(words + page, quote.text))
    parts += [element("p", _said_words(given), dir="auto") for given in one.corrections]
    return joined(parts)
