"""From what tools said of a statement to what the audit remembers of it.

Source: HaluAgent 2.3 (the triple of sentence, label and evidence). Beyond the paper, a statement is
contested where the reading of evidence is not one: then it goes to debate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.audit.told import do_differ
from core.audited import Remembered, ToolUse
from core.records import Label
from core.roles import Step

# Tools that read what others wrote; all others work something out, and are not outvoted by them.
SEARCH = "search"  # brings what can be read, and says nothing of the statement itself
READING = frozenset({SEARCH, "match", "translate"})
OPEN_MIDDLE = (0.35, 0.65)
NOTHING_SAID = "No tool says anything about it."
NOT_CHECKABLE = "It says nothing that could be true or false."


def concluded(
    statement: int, uses: Sequence[ToolUse], end: Step, passages: Sequence[str] = ()
) -> Remembered:
    """What is held of the statement once its picker has ended with the step `end`.

    The picker's own label counts where it gives one: it may overrule what a reading tool said
    (HaluAgent, figure 4), while against a tool that works something out it only contests. A tool
    that failed is said to have, where nothing else tells of the statement.
    """
    entry = Remembered(
        statement,
        "unclear",
        None,
        end.evidence or _failures(uses) or NOTHING_SAID,
        tuple(dict.fromkeys(use.tool for use in uses)),
        tuple(passages),
    )
    if not end.is_checkable:
        words = end.evidence or end.thought or NOT_CHECKABLE
        return replace(entry, evidence=words, is_checkable=False)
    said = [use for use in uses if use.outcome == "found" and use.label != "unclear"]
    if end.label is not None:
        return _by_picker(entry, said, end, end.label)
    return _by_tools(entry, said, uses)


def _by_picker(entry: Remembered, said: Sequence[ToolUse], end: Step, label: Label) -> Remembered:
    alike = [use for use in said if use.label == label]
    against = [use for use in said if use.label != label and use.tool not in READING]
    if label == "unclear":  # a right sum does not make right what stands beside it
        against = [use for use in against if use.label == "hallucinated"]
    words = end.evidence or (alike[-1].words if alike else end.thought) or entry.evidence
    return replace(
        entry, label=label, p=_p_of(alike, label), evidence=words, is_contested=bool(against)
    )


def _by_tools(entry: Remembered, said: Sequence[ToolUse], uses: Sequence[ToolUse]) -> Remembered:
    """What was worked out weighs more than what was read; the last reading counts."""
    worked = [use for use in said if use.tool not in READING]
    wrong = [use for use in worked if use.label == "hallucinated"]
    shown = [use for use in uses if use.tool in READING and use.outcome == "found"]
    read = [use for use in shown if use.tool != SEARCH][-1:] or shown[-1:]
    if wrong:
        return _told(entry, wrong, "hallucinated")
    decided = [use for use in read if use.label != "unclear"]
    if worked and not any(use.label == "hallucinated" for use in decided):
        return _told(entry, [*worked, *decided], "supported")
    is_open = any(do_differ(use) or _is_middling(use) for use in read)
    if worked:
        return replace(_told(entry, decided, "hallucinated"), is_contested=True)
    if decided:
        return replace(_told(entry, decided, decided[0].label), is_contested=is_open)
    words = " ".join(filter(None, [*(use.words for use in read), _failures(uses)]))
    words = words or entry.evidence
    return replace(entry, p=_p_of(read, "unclear"), evidence=words, is_contested=is_open)


def _failures(uses: Sequence[ToolUse]) -> str:
    """Which tools failed and how, in sentences."""
    told = (f"The tool {use.tool} failed: {use.words}" for use in uses if use.outcome == "failed")
    return " ".join(dict.fromkeys(told))


def _told(entry: Remembered, deciding: Sequence[ToolUse], label: Label) -> Remembered:
    words = " ".join(dict.fromkeys(use.words for use in deciding))
    return replace(entry, label=label, p=_p_of(deciding, label), evidence=words)


def _p_of(uses: Sequence[ToolUse], label: Label) -> float | None:
    """The most doubtful of what is known; a p on the other side of the label is no p of it."""
    known = [use.p for use in uses if use.p is not None]
    if label == "hallucinated":
        known = [p for p in known if p >= 0.5]
    elif label == "supported":
        known = [p for p in known if p < 0.5]
    return max(known, default=None)


def _is_middling(use: ToolUse) -> bool:
    low, high = OPEN_MIDDLE
    return use.label != "unclear" and use.p is not None and low < use.p < high
