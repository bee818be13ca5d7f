"""Audits on a page: what holds of the whole response, then a row per statement (HaluAgent 2.3).

A row opens its steps (thought, tool, input, output), its memory, and what reflection changed. Live
runs, stored runs, replays and imported traces are drawn the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from components.run.tool_views import (
    drop_repeated_sources,
    format_input,
    is_already_shown,
    render_tool_output,
)
from components.widgets.html import (
    Html,
    HtmlMark,
    LinkTarget,
    div,
    draw_html,
    element,
    join_html,
    paginate,
    render_marked_text,
)
from components.widgets.wording import (
    clip_text,
    format_count,
    format_duration,
    format_label,
    format_label_probability,
    format_source,
)
from core.pipeline.audit_steps import READING_TOOLS, SEARCH_TOOL
from core.schema.events import LabelRevision, MemoryEntry, ToolOutcome, ToolUse
from core.schema.records import Case, Label, Passage, Statement
from core.schema.reviews import LABELS_BY_GRAVITY
from core.schema.run_state import RunState

OUTCOME_WORDS: dict[ToolOutcome, str] = {
    "found": "",
    "nothing": "found nothing to check",
    "off": "is not available here",
    "failed": "failed",
}
MAX_TEXT_CHARS = 600
MAX_STEPS = 40
MAX_PASSAGES = 5
NOTHING_TO_CHECK = "Nothing to check"
COLUMN_TITLES = ("", "Verdict", "Statement", "Tools", "Evidence")
ANCHOR_PREFIX = "cp-statement"


def _steps_html(uses: Sequence[ToolUse]) -> Html:
    if not uses:
        return div("cp-quiet", "No tool was called for it.")
    remaining = len(uses) - MAX_STEPS
    note = [div("cp-quiet", f"and {remaining} more steps")] if remaining > 0 else []
    return element("ol", *map(render_step, uses[:MAX_STEPS]), *note, class_="cp-steps")


def render_step(use: ToolUse) -> Html:
    """Render one tool call; a tool that is off or failed has no label."""
    thought = div("cp-thought", f"“{clip_text(use.thought, MAX_TEXT_CHARS)}”", dir="auto")
    duration = format_duration(min(use.seconds, 1e6))
    source = clip_text(f"{duration} · {use.agent}" if use.agent else duration, 100)
    tool_input = format_input(use.given)
    call = div(
        "cp-step-call",
        element("strong", clip_text(use.tool, 60)),
        element("code", tool_input, dir="auto") if tool_input else "",
        element("span", source, class_="cp-quiet"),
    )
    result = div("cp-step-said", *_outcome_parts(use), dir="auto")
    parts = (thought if use.thought else "", call, result, render_tool_output(use))
    return element("li", *parts, class_="cp-step")


def _outcome_parts(use: ToolUse) -> list[str | Html]:
    words = clip_text(use.words, MAX_TEXT_CHARS)
    if use.outcome == "found" and use.tool == SEARCH_TOOL and use.label == "unclear":
        return [words]  # a search finds evidence to compare, and decides nothing by itself
    if use.outcome == "found":
        return [label_tag(use.label), " ", words]
    notice = element("span", f"The tool {OUTCOME_WORDS[use.outcome]}.", class_="cp-tag cp-unclear")
    return [notice, " ", words]


def label_tag(label: Label) -> Html:
    """Render a label as a coloured word with its sign."""
    return element("span", format_label(label), class_=f"cp-tag cp-{label}")


def render_whole_response(uses: Sequence[ToolUse]) -> Html:
    """Render what was checked of the response as a whole."""
    decided = [use for use in uses if use.outcome == "found"]
    wrong = [use for use in decided if use.label == "hallucinated"]
    shown = (wrong or decided or list(uses))[0]
    result = element("span", *_outcome_parts(shown), dir="auto")
    line = element("summary", element("strong", "The whole response"), result, class_="cp-whole")
    label = shown.label if shown.outcome == "found" else "unclear"
    details = div("cp-row-open", _steps_html(uses))
    return element("details", line, details, class_=f"cp-statement cp-{label}")


@dataclass(frozen=True)
class StatementRow:
    """A statement with its checks; `memory` is None before the audit concludes it.

    `marks` are offsets in `words`, the statement as it stands in the response.
    """

    statement: Statement
    words: str
    memory: MemoryEntry | None
    uses: tuple[ToolUse, ...]
    changes: tuple[LabelRevision, ...]
    marks: tuple[HtmlMark, ...]
    passages: tuple[Passage, ...]

    @property
    def number(self) -> int:
        """The statement's number, from 1."""
        return self.statement.index + 1

    @property
    def tools(self) -> list[str]:
        """Names of the tools called for it in order; a tool that gave no answer says why."""
        failures = {use.tool: use.outcome for use in self.uses if use.outcome in ("off", "failed")}
        answered = {use.tool for use in self.uses if use.outcome not in ("off", "failed")}
        called = [*(self.memory.tools if self.memory else ()), *(use.tool for use in self.uses)]
        return [
            f"{name} ({failures[name]})" if name in failures and name not in answered else name
            for name in dict.fromkeys(called)
        ]


def has_audit(progress: RunState) -> bool:
    """Return True for runs of any protocol that hold events of an audit."""
    return bool(progress.tool_uses or progress.memory or progress.reconsidered)


def list_statement_labels(progress: RunState) -> list[Label]:
    """Return the label of each statement in order; none from a judge that has given none.

    Statements with nothing to check are unclear, and so are all if a model judged that failed its
    test: its labels must not stand beside a verdict that does not count.
    """
    given = dict(enumerate(progress.judgement.statement_labels if progress.judgement else ()))
    if has_audit(progress):
        given = {i: e.label for i, e in progress.memory.items() if e.is_checkable}
    if not given:
        return []
    labels: list[Label] = [given.get(index, "unclear") for index in sorted(progress.statements)]
    return ["unclear"] * len(labels) if is_judge_unfit(progress) else labels


def is_judge_unfit(progress: RunState) -> bool:
    """Return True if a model judged that failed its test, so that its labels do not count."""
    return progress.verdict is not None and progress.verdict.cause == "model_not_fit"


def list_whole_response_calls(progress: RunState) -> list[ToolUse]:
    """Return tool calls about the response as a whole: its length, code, a date asked for."""
    return [use for use in progress.tool_uses if use.statement is None]


def build_statement_rows(progress: RunState) -> list[StatementRow]:
    """Return a row for each statement, in the order of the response."""
    response = progress.case.response if progress.case else ""
    evidence, rows = progress.evidence, []
    uses = defaultdict[int | None, list[ToolUse]](list)
    for use in progress.tool_uses:
        uses[use.statement].append(use)
    changes = defaultdict[int, list[LabelRevision]](list)
    for change in progress.reconsidered:
        changes[change.statement].append(change)
    for index, statement in sorted(progress.statements.items()):
        memory = progress.memory.get(index)
        if memory is not None and is_judge_unfit(progress):
            memory = replace(memory, label="unclear", p=None)
        rows.append(
            StatementRow(
                statement,
                response[statement.start : statement.end] or statement.text,
                memory,
                tuple(uses[index]),
                tuple(changes[index]),
                _wrong_word_marks(statement, uses[index], progress),
                tuple(evidence[i] for i in (memory.passages if memory else ()) if i in evidence),
            )
        )
    return rows


def summarize_statements(rows: Sequence[StatementRow]) -> str:
    """Summarize: “2 hallucinated · 0 unclear · 5 supported, of 8 statements; 1 not concluded”."""
    labels = Counter(row.memory.label for row in rows if row.memory and row.memory.is_checkable)
    summary = " · ".join(f"{labels[label]} {label}" for label in LABELS_BY_GRAVITY)
    summary += f", of {format_count(len(rows), 'statement')}"
    open_count = sum(row.memory is None for row in rows)
    if open_count:
        summary += f"; {open_count} not concluded"
    uncheckable = len(rows) - open_count - labels.total()
    if uncheckable:
        summary += f"; {uncheckable} with nothing to check"
    return summary


def _wrong_word_marks(
    statement: Statement, uses: Sequence[ToolUse], progress: RunState
) -> tuple[HtmlMark, ...]:
    """Mark the wrong words: kept spans, or before the verdict those that tools point at."""
    places = [(span.start, span.end, span.instead) for span in progress.spans]
    if progress.verdict is None:
        places = [
            (use.start, use.end, use.instead)
            for use in uses
            if use.start is not None and use.end is not None and use.label == "hallucinated"
        ]
    offset, length = statement.start, statement.end - statement.start
    return tuple(
        HtmlMark(
            max(0, start - offset),
            min(end - offset, length),
            title=f"should say “{instead}”" if instead else "",
        )
        for start, end, instead in places
        if start < statement.end and end > offset
    )


def _head_html() -> Html:
    cells = (element("span", words) for words in COLUMN_TITLES)
    return div("cp-row cp-row-head", *cells, aria_label="Columns")


def render_statement_row(row: StatementRow, anchor: str, *, is_over: bool) -> Html:
    """Render a statement's line and its details; `anchor` is the id of its words on the page."""
    parts: list[Html] = []
    if anchor:
        words = f"Show statement {row.number} in the response"
        parts.append(element("a", words, href=f"#{anchor}"))
    if row.statement.rewrite != row.statement.text:
        parts.append(_titled_block("Read as", clip_text(row.statement.rewrite, MAX_TEXT_CHARS)))
    uses, shown = drop_repeated_sources(row.uses[:MAX_STEPS])
    parts.append(_steps_html([*uses, *row.uses[MAX_STEPS:]]))
    passages = row.passages if any(use.tool in READING_TOOLS for use in row.uses) else ()
    parts += [render_memory(row.memory, passages, shown)] if row.memory else []
    parts += [render_change(change) for change in row.changes]
    memory = row.memory
    class_ = f"cp-{memory.label}" if memory and memory.is_checkable else "cp-pending"
    line = element("summary", *_row_cells(row, is_over), class_="cp-row")
    return element("details", line, div("cp-row-open", *parts), class_=f"cp-statement {class_}")


def _row_cells(row: StatementRow, is_over: bool) -> list[Html]:
    tools = clip_text(", ".join(row.tools), 80) or "–"
    evidence = clip_text(row.memory.evidence, 220) if row.memory else "–"
    if row.changes:
        evidence += " ↻"
    return [
        element("span", str(row.number), class_="cp-row-number"),
        _verdict_cell(row, is_over),
        element("span", render_marked_text(row.words, row.marks), class_="cp-row-words"),
        element("span", tools, class_="cp-quiet cp-row-tools"),
        element("span", evidence, class_="cp-row-evidence", dir="auto"),
    ]


def _verdict_cell(row: StatementRow, is_over: bool) -> Html:
    """Render label and probability, or what is going on before there is a result."""
    memory = row.memory
    if memory is None:
        under_way = f"checking with {row.uses[-1].tool}" if row.uses else "waiting"
        words = "not checked" if is_over else clip_text(under_way, 60)
        return element("span", words, class_="cp-quiet cp-row-verdict")
    if not memory.is_checkable:
        return element("span", "– nothing to check", class_="cp-quiet cp-row-verdict")
    return element(
        "span",
        label_tag(memory.label),
        element("span", format_label_probability(memory.label, memory.p), class_="cp-quiet"),
        *([element("span", "contested", class_="cp-reply")] if memory.is_contested else []),
        class_="cp-row-verdict",
    )


def memory_tag(memory: MemoryEntry) -> Html:
    """Render the label in memory, or that there is nothing to check."""
    if memory.is_checkable:
        return label_tag(memory.label)
    return element("span", NOTHING_TO_CHECK, class_="cp-tag")


def render_memory(memory: MemoryEntry, passages: Sequence[Passage], shown: Sequence[str]) -> Html:
    """Render the memory; of passages already in `shown` only the place is given."""
    p = format_label_probability(memory.label, memory.p)
    sure = f" ({p})" if p else ""
    words = clip_text(memory.evidence, MAX_TEXT_CHARS)
    parts = [
        _titled_block(
            "In memory", element("div", memory_tag(memory), f"{sure} ", words, dir="auto")
        )
    ]
    places_above: dict[str, None] = {}
    quotes: list[Html] = []
    for passage in passages[:MAX_PASSAGES]:
        place = format_source(passage)
        if is_already_shown(passage.text, shown):
            places_above[place] = None
        else:
            text = clip_text(passage.text, MAX_TEXT_CHARS)
            quotes.append(div("cp-quote", div("cp-quiet", place), text, dir="auto"))
    if places_above:
        places = f"Read, as shown above: {'; '.join(places_above)}"
        parts.append(div("cp-quiet", places, dir="auto"))
    return join_html([*parts, *quotes])


def render_change(change: LabelRevision) -> Html:
    """Render what reflection changed: before and after, why, because of which statements."""
    explanation = (
        "Its evidence does not support its label."
        if change.reach == "local"
        else "It does not fit with the other statements."
    )
    numbers = ", ".join(str(index + 1) for index in change.because_of[:20])
    because = f" Because of statement {numbers}." if numbers else ""
    why = f" {clip_text(change.reason, MAX_TEXT_CHARS)}{because}"
    parts = (
        label_tag(change.before),
        " → ",
        label_tag(change.after),
        why,
        div("cp-quiet", explanation),
    )
    by = f" ({clip_text(change.agent, 60)})" if change.agent else ""
    return _titled_block(f"Reflection{by}", element("div", *parts, dir="auto"))


def _titled_block(name: str, *children: str | Html) -> Html:
    return element("div", div("cp-named", name), *children)


def draw_audit(case: Case, progress: RunState, key: str) -> None:
    """Draw what an ended run's audit did for each statement, folded; nothing without an audit."""
    if not has_audit(progress):
        return
    rows = build_statement_rows(progress)
    with st.expander(f"How each statement was checked: {summarize_statements(rows)}"):
        page = paginate(rows, f"{key}.statements")
        _draw_rows(progress, page, is_over=True, shown=len(case.response))


def draw_audit_so_far(progress: RunState, key: str, shown: int) -> None:
    """Draw statements in order; links lead to the first `shown` characters of the response."""
    if not has_audit(progress):
        return
    rows = build_statement_rows(progress)
    st.caption(summarize_statements(rows))
    is_over, page = progress.ending is not None, paginate(rows, f"{key}.statements")
    _draw_rows(progress, page, is_over=is_over, shown=shown)


def list_link_targets(progress: RunState) -> list[LinkTarget]:
    """Return each statement's place in the response, for links that lead there."""
    if not has_audit(progress):
        return []
    return [
        LinkTarget(s.start, s.end, f"{ANCHOR_PREFIX}-{i + 1}")
        for i, s in progress.statements.items()
    ]


def _draw_rows(
    progress: RunState, rows: Sequence[StatementRow], *, is_over: bool, shown: int
) -> None:
    """Draw each row as its own element: an unchanged one stays open while others arrive."""
    whole = list_whole_response_calls(progress)
    with st.container(key="cp-statements", gap=None):
        if whole:
            draw_html(render_whole_response(whole))
        if rows:
            draw_html(_head_html())
        for row in rows:
            anchor = f"{ANCHOR_PREFIX}-{row.number}" if row.statement.end <= shown else ""
            draw_html(render_statement_row(row, anchor, is_over=is_over))
