"""What tools found of the response as a whole, where it bears on single statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from core.audited import Remembered, ToolUse
from core.records import Statement

# A condition on the answer that is kept says nothing about what is written.
CONDITIONS = frozenset({"conditions"})


def refuting(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """The uses by which the whole response is wrong."""
    return tuple(use for use in _on_the_whole(uses) if use.label == "hallucinated")


def confirming(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """The uses by which it is right; what only keeps a condition comes last."""
    found = [use for use in _on_the_whole(uses) if use.label == "supported"]
    return tuple(sorted(found, key=lambda use: use.tool in CONDITIONS))


def settled(
    statements: Sequence[Statement], memory: Mapping[int, Remembered], uses: Sequence[ToolUse]
) -> Iterator[Remembered]:
    """The statements that hold words which a tool refuted in the whole response."""
    for use in refuting(uses):
        start = use.start
        if start is None:
            continue
        index = next((s.index for s in statements if s.start <= start < s.end), None)
        entry = memory.get(index) if index is not None else None
        if entry is None or entry.label == "hallucinated":
            continue
        yield replace(
            entry,
            label="hallucinated",
            p=use.p,
            evidence=use.words,
            tools=(*entry.tools, use.tool),
            is_contested=False,
            is_checkable=True,
        )


def _on_the_whole(uses: Sequence[ToolUse]) -> Iterator[ToolUse]:
    return (use for use in uses if use.statement is None and use.outcome == "found")
