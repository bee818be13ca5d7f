"""Lets what tools work out decide where the judge's readers cannot, or where it refutes them.

Each tool reads the question and the response itself and speaks only where it is meant: a length, a
date, code that is run, and sums, which are worked out statement by statement in every protocol.
Source: HaluAgent 2.2, 2.3 (one tool per kind of statement).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from core.baseline.wording import DEGREES
from core.concurrency import Stop
from core.records import Case, Category, Judgement, Label, Point, Statement
from core.roles import CaseView
from core.tools import calculator, calendar, code, constraints
from core.tools.registry import Answer, Bench, Tool

RULE = """Besides the evidence, tools look at the question: a length that it asks for is counted (a
bare figure may be missed by 7.5 %, "about" by 20 %, a bound not at all), a format, a language or
words that it plainly asks for are looked for, a date question that
states its dates is worked out, Python that comes with checks is run in a sandbox, the sums that a
statement states are worked out again. What a tool refutes is hallucinated whatever the readers
find. What the calendar or the run confirms is supported where the readers leave it open, and so is
an answer of right sums alone where there is no evidence; a length that is kept only where there is
none, and then nothing else was checked."""


# What people call each tool that the judge asks.
NAMES: Mapping[str, str] = {"conditions": "Length", "calendar": "Calendar", "code": "Code",
                              "calculator": "Calculator"}  # fmt: skip
OTHER_CONDITIONS = "Conditions"
TOOLS: tuple[Tool[Any], ...] = (constraints.TOOL, calendar.TOOL, code.TOOL)


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


def tool_finding(
    case: Case, stop: Stop, statements: tuple[Statement, ...] = ()
) -> ToolFinding | None:
    """What the tools find; None where none applies. A broken condition weighs most.

    `statements` are those whose sums are worked out. Raises Stopped if the person stopped the
    check while code ran.
    """
    bench = Bench(stop)
    found = []
    for tool in TOOLS:
        given = tool.reads(None, case) if tool.reads else None
        if given is not None and not tool.why_off(bench):
            finding = _finding(tool.name, tool.work(given, bench))
            found += [finding] if finding else []
    found += _sum_findings(case, statements, bench)
    wrong = [finding for finding in found if finding.label == "hallucinated"]
    answers = [finding for finding in found if finding.is_answer]
    return next(iter((*wrong, *answers, *found)), None)


def _sum_findings(
    case: Case, statements: tuple[Statement, ...], bench: Bench
) -> Iterator[ToolFinding]:
    """Wrong sums of the statements; a right one where all statements are right sums."""
    right = []
    for statement in statements:
        given = calculator.reads(statement, case)
        answer = calculator.work(given, bench) if given else None
        finding = _finding("calculator", answer) if answer else None
        if answer and finding and finding.label == "hallucinated":
            place = (statement.start + (answer.start or 0), statement.start + (answer.end or 0))
            is_placed = answer.start is not None
            yield replace(finding, start=place[0], end=place[1]) if is_placed else finding
        right += [finding] if finding and finding.label == "supported" else []
    # Arithmetic alone says little: of an answer that says more, its sums are no verdict.
    if right and len(right) == len(statements):
        yield right[0]


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
        is_answer=name not in ("conditions", "calculator"),
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


def with_tools(judgement: Judgement, view: CaseView, stop: Stop) -> Judgement:
    """The judgement as it stands once the tools have spoken; mostly the same.

    Raises Stopped if the person stopped the check while code ran.
    """
    return _with_note(_weighed(judgement, view, stop), what_is_off(view.case))


def _weighed(judgement: Judgement, view: CaseView, stop: Stop) -> Judgement:
    finding = tool_finding(view.case, stop, tuple(view.statements))
    if finding is None:
        return judgement
    if finding.label == "hallucinated":
        return _refuted(judgement, finding, view)
    is_open = judgement.label == "unclear" and judgement.cause != "image_not_readable"
    if is_open and (finding.is_answer or judgement.cause == "no_evidence"):
        return _decided(judgement, finding, view)
    return judgement


def _with_note(judgement: Judgement, note: str) -> Judgement:
    """A tool that is off is told of where the verdict's reason stands."""
    if not note:
        return judgement
    if judgement.label == "unclear":
        return replace(judgement, cause_words=f"{judgement.cause_words} {note}".strip())
    return replace(judgement, prose=f"{judgement.prose or judgement.text} {note}")


def _refuted(judgement: Judgement, finding: ToolFinding, view: CaseView) -> Judgement:
    """Hallucinated; what the readers found against it stays beside it."""
    if judgement.label != "hallucinated":
        return _decided(judgement, finding, view)
    return replace(
        judgement,
        prose=f"{finding.sentence} {judgement.prose or judgement.text}",
        p=max(finding.p, judgement.p or 0.0),
        by_tool=finding.tool,
        statement_labels=_labels(judgement, finding, view),
        points=(*judgement.points, *_points(finding, view)),
    )


def _decided(judgement: Judgement, finding: ToolFinding, view: CaseView) -> Judgement:
    is_wrong = finding.label == "hallucinated"
    is_whole = is_wrong or finding.is_answer
    unchecked = "" if is_whole else " Nothing else was checked: no evidence."
    return replace(
        judgement,
        label=finding.label,
        # The classifier learned from what readers find in evidence and would guess at a count or a
        # calendar: it is told the conclusion and p, people are told the reason.
        text=_concluded(finding),
        prose=f"{finding.sentence}{unchecked}",
        cause=None,
        cause_words="",
        p=finding.p,
        by_tool=finding.tool,
        statement_labels=_labels(judgement, finding, view),
        points=_points(finding, view),
    )


def _concluded(finding: ToolFinding) -> str:
    """As the judge concludes over what it read."""
    is_wrong = finding.label == "hallucinated"
    side = finding.p if is_wrong else 1.0 - finding.p
    degree = next(words for least, words in DEGREES if side >= least)
    head = "INCORRECT" if is_wrong else "CORRECT"
    return f"Verdict: {head}, the statement is {degree} {finding.label}."


def _statement_of(finding: ToolFinding, view: CaseView) -> int | None:
    """The statement that holds the words that the finding is about."""
    if finding.start is None:
        return None
    return next(
        (s.index for s in view.statements if s.start <= finding.start < s.end),
        None,
    )


def _labels(judgement: Judgement, finding: ToolFinding, view: CaseView) -> tuple[Label, ...]:
    """The label of the statement it is about is the finding's; a length is about none of them."""
    index = _statement_of(finding, view)
    before = dict(zip((s.index for s in view.statements), judgement.statement_labels, strict=False))
    return tuple(
        finding.label if s.index == index else before.get(s.index, "unclear")
        for s in view.statements
    )


def _points(finding: ToolFinding, view: CaseView) -> tuple[Point, ...]:
    """The refuted words, for marking."""
    index = _statement_of(finding, view)
    if index is None or finding.start is None or finding.end is None:
        return ()
    if finding.label != "hallucinated":
        return ()
    return (
        Point(
            statement=index,
            finding="contradicted",
            start=finding.start,
            end=finding.end,
            text=view.case.response[finding.start : finding.end],
            category=finding.category,
            evidence=finding.instead,
            explanation=finding.sentence,
            weight=finding.p,
        ),
    )
