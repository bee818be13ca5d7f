"""What a tool finds out about a case without any evidence: a length, a date, code that is run.

The chooser is deterministic: each tool reads the question itself and speaks only where it is
meant. Source: HaluAgent 2.2, 2.3 (one tool per kind of statement).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from core.categories import Category
from core.concurrency import Stop
from core.records import Case
from core.tools.box import calendar, code, conditions
from core.tools.toolbox import Answer, Bench, Tool

RULE = f"{conditions.RULE}\n{calendar.RULE}\n{code.RULE}"
# What people call each tool that the judge asks.
NAMES: Mapping[str, str] = {"conditions": "Length", "calendar": "Calendar", "code": "Code"}
OTHER_CONDITIONS = "Conditions"
TOOLS: tuple[Tool[Any], ...] = (conditions.TOOL, calendar.TOOL, code.TOOL)


@dataclass(frozen=True)
class ToolFinding:
    """A tool's word on the response; `p` is the probability that it is hallucinated.

    `sentence` is for people. `[start, end)` in `Case.response` is what it is about, None where
    that is all of it. `is_answer` tells the answer itself from a condition on it: a kept length
    says nothing about what is written. `instead` is what the words should say.
    """

    label: Literal["supported", "hallucinated"]
    p: float
    sentence: str
    tool: str
    start: int | None = None
    end: int | None = None
    is_answer: bool = False
    instead: str = ""
    category: Category = "number_or_date"


def tool_finding(case: Case, stop: Stop) -> ToolFinding | None:
    """What the tools find; None where none applies. A broken condition weighs most.

    Raises:
        Stopped: the person stopped the check while code ran.
    """
    bench = Bench(stop)
    found = []
    for tool in TOOLS:
        given = tool.reads(None, case) if tool.reads else None
        if given is not None and not tool.why_off(bench):
            finding = _finding(tool.name, tool.work(given, bench))
            found += [finding] if finding else []
    wrong = [finding for finding in found if finding.label == "hallucinated"]
    answers = [finding for finding in found if finding.is_answer]
    return next(iter((*wrong, *answers, *found)), None)


def _finding(name: str, answer: Answer) -> ToolFinding | None:
    if answer.label == "unclear" or answer.p is None:
        return None
    kinds = {one["kind"] for one in answer.gave.get("conditions", ())}
    # That an answer is in French says too little to call it right; a length is its whole task.
    if kinds and "length" not in kinds and answer.label == "supported":
        return None
    return ToolFinding(
        answer.label,
        answer.p,
        answer.words,
        NAMES[name] if kinds <= {"length"} else OTHER_CONDITIONS,
        answer.start,
        answer.end,
        is_answer=name != conditions.TOOL.name,
        instead=answer.instead,
        category=cast(Category, answer.category or "number_or_date"),
    )


def what_is_off(case: Case) -> str:
    """Which tool this case would have needed that cannot work here, and why; mostly empty."""
    for tool in TOOLS:
        why = tool.why_off(Bench(Stop()))
        if why and tool.reads and tool.reads(None, case) is not None:
            return why
    return ""
