"""What an audit writes down of a response: tools used, what is remembered, what reflection changed.

Offsets are half-open, count Unicode code points, and lie in `Case.response`.
Source: HaluAgent 2.2 (tools), 2.3 (memory of triples, local and global reflection).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.records import Label

AUDIT = "audit"  # the protocol, as plans name it
ToolOutcome = Literal["found", "nothing", "off", "failed"]
Reach = Literal["local", "global"]


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool, as the trace tells it.

    `statement` is the index of the statement it was called for, None for the response as a whole.
    `given` and `gave` are JSON objects as text: the tool's input, and what it worked out for its
    own view. `label` is what follows for the words it was asked about, `unclear` where nothing
    does; `p` is the probability that they are hallucinated, None where the tool gives none.
    `outcome` tells a tool that had nothing to say from one that is off here or that failed: neither
    of the two is ever a label. `agent` chose it, and `thought` is why. `[start, end)` are the words
    that do not hold, and `instead` is what they should say. `is_over_cap` marks a call that failed
    because a cap left no room for it: a resumed run makes it again.
    """

    tool: str
    statement: int | None
    given: str
    gave: str
    outcome: ToolOutcome
    label: Label
    words: str
    seconds: float
    p: float | None = None
    agent: str = ""
    thought: str = ""
    start: int | None = None
    end: int | None = None
    instead: str = ""
    category: str = ""
    is_over_cap: bool = False


@dataclass(frozen=True)
class Remembered:
    """The audit's memory of a statement: its label and the evidence for it (HaluAgent 2.3).

    `evidence` is a sentence for people, `tools` are those that were used, in order, and `passages`
    the ids of what was read. A contested statement goes to debate; one that nothing can be checked
    of (a greeting, a question, an opinion) has no part in the verdict.
    """

    statement: int
    label: Label
    p: float | None
    evidence: str
    tools: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    is_contested: bool = False
    is_checkable: bool = True


@dataclass(frozen=True)
class Reconsidered:
    """What reflection changed about a statement, and why.

    Local: its evidence does not carry its label. Global: it rests on the statements `because_of`,
    which are wrong, or contradicts them.
    """

    statement: int
    reach: Reach
    before: Label
    after: Label
    reason: str
    because_of: tuple[int, ...] = ()
    agent: str = ""


def paid_for(uses: Sequence[ToolUse]) -> tuple[list[ToolUse], frozenset[int | None]]:
    """The uses without those that failed at a cap and all that followed for the same statement.

    (What is left, the statements that lost some; None is the response as a whole.)
    """
    again: set[int | None] = set()
    kept: list[ToolUse] = []
    for use in uses:
        if use.is_over_cap:
            again.add(use.statement)
        elif use.statement not in again:
            kept.append(use)
    return kept, frozenset(again)
