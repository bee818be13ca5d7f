"""The audit in a report: what holds of the whole, then every statement with tools and evidence."""

from __future__ import annotations

from components.audit_html import (
    NOTHING_TO_CHECK,
    change_html,
    held_tag,
    row_html,
    sure_words,
)
from components.audit_rows import Row, has_audit, rows_of, summary_words, whole_uses
from components.audit_steps import OUTCOME_WORDS, whole_html
from components.markup import Html, element
from components.words import LABEL_WORDS, clipped
from core.audited import ToolUse
from core.progress import Progress

HEADS = ("", "Verdict", "Statement", "Tools", "Evidence")
LONGEST_TEXT = 600


def audit_parts(progress: Progress) -> list[Html]:
    """The audit's section of the HTML report; none of a run without one."""
    if not has_audit(progress):
        return []
    rows, whole = rows_of(progress), whole_uses(progress)
    head = element("tr", *(element("th", name, scope="col") for name in HEADS))
    return [
        element("h2", "Statement by statement"),
        element("p", summary_words(rows), class_="cp-quiet"),
        *([whole_html(whole, is_open=False)] if whole else []),
        element("table", element("thead", head), element("tbody", *map(_table_row, rows))),
        element("h3", "Step by step"),
        *(row_html(row, "", is_over=True) for row in rows),
    ]


def _table_row(row: Row) -> Html:
    memory = row.memory
    if memory is None:
        verdict: list[str | Html] = ["not checked"]
    else:
        verdict = [held_tag(memory), f" {sure_words(memory)}"]
    return element(
        "tr",
        element("td", str(row.number)),
        element("td", *verdict),
        element("td", clipped(row.words, LONGEST_TEXT), dir="auto"),
        element("td", ", ".join(row.tools) or "–"),
        element(
            "td",
            clipped(memory.evidence, LONGEST_TEXT) if memory else "–",
            *map(change_html, row.changes),
            dir="auto",
        ),
    )


def audit_texts(progress: Progress) -> list[str]:
    """The audit as texts for the Markdown report, one for the whole and one for each statement."""
    if not has_audit(progress):
        return []
    whole = [_use_words(use) for use in whole_uses(progress)]
    told = ["\n".join(["The whole response", *whole])] if whole else []
    return told + [_row_text(row) for row in rows_of(progress)]


def _row_text(row: Row) -> str:
    memory = row.memory
    sure = f" ({sure_words(memory)})" if memory and sure_words(memory) else ""
    verdict = f"{LABEL_WORDS[memory.label]}{sure}" if memory else "Not checked"
    verdict = verdict if memory is None or memory.is_checkable else NOTHING_TO_CHECK
    lines = [f"{row.number}. {verdict}: {clipped(row.words, LONGEST_TEXT)}"]
    if memory:
        lines.append(f"evidence: {clipped(memory.evidence, LONGEST_TEXT)}")
    lines += [_use_words(use) for use in row.uses]
    lines += [
        f"reflection: {change.before} → {change.after}: {clipped(change.reason, LONGEST_TEXT)}"
        for change in row.changes
    ]
    return "\n".join(lines)


def _use_words(use: ToolUse) -> str:
    came = f"{use.label}: " if use.outcome == "found" else f"{OUTCOME_WORDS[use.outcome]}: "
    return f"{clipped(use.tool, 60)}: {came}{clipped(use.words, LONGEST_TEXT)}"
