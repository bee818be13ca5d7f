"""An audit as markup: each statement a row that opens its steps, its memory, what reflection did.

The same while it runs, after a reload, in a replay and of an imported trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.audit_rows import Row
from components.audit_steps import LONGEST_TEXT, MOST_STEPS, steps_html, tag
from components.highlight import marked_text
from components.markup import Html, element, joined
from components.tool_views.sources import is_shown, shown_once
from components.words import clipped, percent
from core.audit.remembering import READING
from core.audited import Reconsidered, Remembered
from core.records import Passage

NOTHING_TO_CHECK = "Nothing to check"
MOST_PASSAGES = 5
HEADS = ("", "Verdict", "Statement", "Tools", "Evidence")


def head_html() -> Html:
    """The names of the columns; narrow screens do without them."""
    cells = (element("span", words) for words in HEADS)
    return element("div", *cells, class_="cp-row cp-row-head", aria_label="Columns")


def row_html(row: Row, anchor: str, *, is_over: bool, is_open: bool = False) -> Html:
    """A statement: the line that is always seen, and what opens below it.

    Passages that were found for it and that no tool read are left to the evidence below.
    `anchor` is the id of its words in the response above, empty where they are not on the page.
    """
    jump = (
        [element("a", f"Show statement {row.number} in the response", href=f"#{anchor}")]
        if anchor
        else []
    )
    rewrite = row.statement.rewrite
    completed = (
        [_named("Read as", clipped(rewrite, LONGEST_TEXT))] if rewrite != row.statement.text else []
    )
    uses, shown = shown_once(row.uses[:MOST_STEPS])
    parts: list[str | Html] = [*completed, steps_html([*uses, *row.uses[MOST_STEPS:]])]
    read = row.passages if any(use.tool in READING for use in row.uses) else ()
    parts += [memory_html(row.memory, read, shown)] if row.memory else []
    parts += [change_html(change) for change in row.changes]
    return element(
        "details",
        element("summary", *_cells(row, is_over), class_="cp-row"),
        element("div", *jump, *parts, class_="cp-row-open"),
        class_=f"cp-statement {_class(row)}",
        open="" if is_open else None,
    )


def _class(row: Row) -> str:
    memory = row.memory
    return f"cp-{memory.label}" if memory and memory.is_checkable else "cp-pending"


def _cells(row: Row, is_over: bool) -> list[Html]:
    memory = row.memory
    changed = " ↻" if row.changes else ""
    return [
        element("span", str(row.number), class_="cp-row-number"),
        verdict_cell(memory, row, is_over),
        element("span", marked_text(row.words, row.marks), class_="cp-row-words"),
        element("span", clipped(", ".join(row.tools), 80) or "–", class_="cp-quiet cp-row-tools"),
        element(
            "span",
            (clipped(memory.evidence, 220) if memory else "–") + changed,
            class_="cp-row-evidence",
            dir="auto",
        ),
    ]


def verdict_cell(memory: Remembered | None, row: Row, is_over: bool) -> Html:
    """Label and probability; what is going on where nothing is held yet."""
    if memory is None:
        under_way = f"checking with {row.uses[-1].tool}" if row.uses else "waiting"
        words = "not checked" if is_over else clipped(under_way, 60)
        return element("span", words, class_="cp-quiet cp-row-verdict")
    if not memory.is_checkable:
        return element("span", "– nothing to check", class_="cp-quiet cp-row-verdict")
    return element(
        "span",
        tag(memory.label),
        element("span", sure_words(memory), class_="cp-quiet"),
        *([element("span", "contested", class_="cp-reply")] if memory.is_contested else []),
        class_="cp-row-verdict",
    )


def held_tag(memory: Remembered) -> Html:
    """The label that is held; what says nothing to check has none."""
    if memory.is_checkable:
        return tag(memory.label)
    return element("span", NOTHING_TO_CHECK, class_="cp-tag")


def sure_words(memory: Remembered) -> str:
    """How likely the label is by its own probability, empty where there is none."""
    if memory.p is None or memory.label == "unclear":
        return ""
    return percent(memory.p if memory.label == "hallucinated" else 1.0 - memory.p)


def memory_html(memory: Remembered, passages: Sequence[Passage], shown: Sequence[str]) -> Html:
    """What is held of the statement: label, evidence, the passages that were read.

    Of those whose words are `shown` with the steps only the place is told.
    """
    sure = f" ({sure_words(memory)})" if sure_words(memory) else ""
    held = element(
        "div",
        held_tag(memory),
        f"{sure} ",
        clipped(memory.evidence, LONGEST_TEXT),
        dir="auto",
    )
    listed = passages[:MOST_PASSAGES]
    read = [
        element(
            "div",
            element("div", _place_of(passage), class_="cp-quiet"),
            clipped(passage.text, LONGEST_TEXT),
            class_="cp-quote",
            dir="auto",
        )
        for passage in listed
        if not is_shown(passage.text, shown)
    ]
    above = dict.fromkeys(_place_of(p) for p in listed if is_shown(p.text, shown))
    places = f"Read, as shown above: {'; '.join(above)}"
    known = [element("div", places, class_="cp-quiet", dir="auto")] if above else []
    return joined([_named("In memory", held), *known, *read])


def _place_of(passage: Passage) -> str:
    return f"{passage.source}{f', p. {passage.page}' if passage.page else ''}"


def change_html(change: Reconsidered) -> Html:
    """What reflection changed: before and after, why, because of which statements."""
    reach = (
        "Its evidence does not carry its label."
        if change.reach == "local"
        else "It does not stand beside the other statements."
    )
    numbers = ", ".join(str(index + 1) for index in change.because_of[:20])
    because = f" Because of statement {numbers}." if numbers else ""
    return _named(
        "Reflection" + (f" ({clipped(change.agent, 60)})" if change.agent else ""),
        element(
            "div",
            tag(change.before),
            " → ",
            tag(change.after),
            f" {clipped(change.reason, LONGEST_TEXT)}{because}",
            element("div", reach, class_="cp-quiet"),
            dir="auto",
        ),
    )


def _named(name: str, *children: str | Html) -> Html:
    return element("div", element("div", name, class_="cp-named"), *children)
