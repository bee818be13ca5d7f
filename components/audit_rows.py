"""What an audit has come to, statement by statement, as plain rows to draw (HaluAgent 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.highlight import Mark
from components.words import counted
from core.audited import Reconsidered, Remembered, ToolUse
from core.progress import Progress
from core.records import Label, Passage, Statement

GRAVEST: tuple[Label, ...] = ("hallucinated", "unclear", "supported")


@dataclass(frozen=True)
class Row:
    """One statement: its words as they stand, what was done about it, what is held of it.

    `memory` is None until the audit has concluded about it. `marks` have offsets in `words`.
    """

    statement: Statement
    words: str
    memory: Remembered | None
    uses: tuple[ToolUse, ...]
    changes: tuple[Reconsidered, ...]
    marks: tuple[Mark, ...]
    passages: tuple[Passage, ...]

    @property
    def number(self) -> int:
        """The statement's number as people count."""
        return self.statement.index + 1

    @property
    def tools(self) -> list[str]:
        """Names of the tools that were called for it, in their order, with why one said nothing."""
        silent = {use.tool: use.outcome for use in self.uses if use.outcome in ("off", "failed")}
        spoke = {use.tool for use in self.uses if use.outcome not in ("off", "failed")}
        called = [*(self.memory.tools if self.memory else ()), *(use.tool for use in self.uses)]
        is_silent = {name: name in silent and name not in spoke for name in called}
        return [f"{n} ({silent[n]})" if quiet else n for n, quiet in is_silent.items()]

    @property
    def gravity(self) -> tuple[int, int]:
        """What sorts wrong statements to the front, what says or has come to nothing to the end."""
        if self.memory is None:
            return len(GRAVEST) + 1, self.number
        place = GRAVEST.index(self.memory.label)
        return place if self.memory.is_checkable else len(GRAVEST), self.number


def has_audit(progress: Progress) -> bool:
    """True for runs of any protocol that hold events of an audit."""
    return bool(progress.tool_uses or progress.memory or progress.reconsidered)


def whole_uses(progress: Progress) -> list[ToolUse]:
    """Tools that were used on the response as a whole: its length, code, a date asked for."""
    return [use for use in progress.tool_uses if use.statement is None]


def rows_of(progress: Progress) -> list[Row]:
    """All statements in the order of the response; none where the case is not known."""
    response = progress.case.response if progress.case else ""
    uses: dict[int, list[ToolUse]] = {}
    for use in progress.tool_uses:
        if use.statement is not None:
            uses.setdefault(use.statement, []).append(use)
    changes: dict[int, list[Reconsidered]] = {}
    for change in progress.reconsidered:
        changes.setdefault(change.statement, []).append(change)
    evidence = progress.evidence
    rows = []
    for index, statement in sorted(progress.statements.items()):
        own, memory = uses.get(index, []), progress.memory.get(index)
        rows.append(
            Row(
                statement,
                response[statement.start : statement.end] or statement.text,
                memory,
                tuple(own),
                tuple(changes.get(index, [])),
                _marks(statement, own, progress),
                tuple(evidence[i] for i in (memory.passages if memory else ()) if i in evidence),
            )
        )
    return rows


def counts(rows: Sequence[Row]) -> dict[Label, int]:
    """How many checkable statements there are of each label, gravest first."""
    labels = [row.memory.label for row in rows if row.memory and row.memory.is_checkable]
    return {label: labels.count(label) for label in GRAVEST}


def summary_words(rows: Sequence[Row]) -> str:
    """“2 hallucinated · 0 unclear · 5 supported, of 8 statements; 1 not concluded”."""
    told = " · ".join(f"{number} {label}" for label, number in counts(rows).items())
    left = sum(row.memory is None for row in rows)
    rest = f"; {left} not concluded" if left else ""
    idle = sum(row.memory is not None and not row.memory.is_checkable for row in rows)
    rest += f"; {idle} with nothing to check" if idle else ""
    return f"{told}, of {counted(len(rows), 'statement')}{rest}"


def _marks(statement: Statement, uses: Sequence[ToolUse], progress: Progress) -> tuple[Mark, ...]:
    """The wrong words: spans that were kept, before the verdict those that tools point at."""
    places = [
        (span.start, span.end, f"should say “{span.instead}”" if span.instead else "")
        for span in progress.spans
    ]
    if progress.verdict is None:
        places = [
            (use.start, use.end, f"should say “{use.instead}”" if use.instead else "")
            for use in uses
            if use.start is not None and use.end is not None and use.label == "hallucinated"
        ]
    return tuple(
        Mark(max(0, start - statement.start), min(end, statement.end) - statement.start, "", title)
        for start, end, title in places
        if start < statement.end and end > statement.start
    )
