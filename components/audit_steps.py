"""The steps of an audit as markup: the thought, the tool with its input, what came back."""

from __future__ import annotations

from collections.abc import Sequence

from components.markup import Html, element
from components.tool_views import tool_view
from components.tool_views.plain import input_words
from components.words import LABEL_SIGNS, LABEL_WORDS, clipped, seconds
from core.audit.remembering import SEARCH
from core.audited import ToolOutcome, ToolUse
from core.records import Label

OUTCOME_WORDS: dict[ToolOutcome, str] = {
    "found": "",
    "nothing": "had nothing to look at",
    "off": "is off here",
    "failed": "failed",
}
LONGEST_TEXT = 600
MOST_STEPS = 40


def steps_html(uses: Sequence[ToolUse]) -> Html:
    """Each step: the thought, the tool with its input, what came back."""
    if not uses:
        return element("div", "No tool was called for it.", class_="cp-quiet")
    more = len(uses) - MOST_STEPS
    rest = [element("div", f"and {more} more steps", class_="cp-quiet")] if more > 0 else []
    return element("ol", *map(step_html, uses[:MOST_STEPS]), *rest, class_="cp-steps")


def step_html(use: ToolUse) -> Html:
    """One call of a tool; one that is off or failed has no label."""
    thought = f"“{clipped(use.thought, LONGEST_TEXT)}”" if use.thought else ""
    took = seconds(min(use.seconds, 1e6))
    who = clipped(f"{took} · {use.agent}" if use.agent else took, 100)
    given = input_words(use.given)
    call = element(
        "div",
        element("strong", clipped(use.tool, 60)),
        element("code", given, dir="auto") if given else "",
        element("span", who, class_="cp-quiet"),
        class_="cp-step-call",
    )
    return element(
        "li",
        element("div", thought, class_="cp-thought", dir="auto") if thought else "",
        call,
        element("div", *_said(use), dir="auto", class_="cp-step-said"),
        tool_view(use),
        class_="cp-step",
    )


def _said(use: ToolUse) -> list[str | Html]:
    words = clipped(use.words, LONGEST_TEXT)
    if use.outcome == "found" and use.tool == SEARCH and use.label == "unclear":
        return [words]  # it brings what can be compared, and says nothing by itself
    if use.outcome == "found":
        return [tag(use.label), " ", words]
    told = element("span", f"The tool {OUTCOME_WORDS[use.outcome]}.", class_="cp-tag cp-unclear")
    return [told, " ", words]


def tag(label: Label) -> Html:
    """A label as a coloured word with its sign."""
    return element(
        "span", f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}", class_=f"cp-tag cp-{label}"
    )


def whole_html(uses: Sequence[ToolUse], *, is_open: bool) -> Html:
    """What was checked of the response as a whole."""
    wrong = [use for use in uses if use.outcome == "found" and use.label == "hallucinated"]
    found = [use for use in uses if use.outcome == "found"]
    told = (wrong or found or list(uses))[0]
    line = element(
        "summary",
        element("strong", "The whole response"),
        element("span", *_said(told), dir="auto"),
        class_="cp-whole",
    )
    label = told.label if told.outcome == "found" else "unclear"
    return element(
        "details",
        line,
        element("div", steps_html(uses), class_="cp-row-open"),
        class_=f"cp-statement cp-{label}",
        open="" if is_open else None,
    )
