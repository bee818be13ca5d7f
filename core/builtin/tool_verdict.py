"""Lets what a tool worked out decide where the judge's readers cannot, or where it refutes them."""

from __future__ import annotations

from dataclasses import replace

from core.builtin.judge_words import DEGREES
from core.builtin.tool_findings import ToolFinding, tool_finding, what_is_off
from core.concurrency import Stop
from core.records import Judgement, Label, Point
from core.roles import CaseView

RULE = """Besides the evidence, tools look at the question: a length that it asks for is counted (a
bare figure may be missed by 7.5 %, "about" by 20 %, a bound not at all), a format, a language or
words that it plainly asks for are looked for, a date question that
states its dates is worked out, Python that comes with checks is run in a sandbox. What a tool
refutes is hallucinated whatever the readers find. What the calendar or the run confirms is
supported where the readers leave it open; a length that is kept only where there is no evidence,
and then nothing else was checked."""


def with_tools(judgement: Judgement, view: CaseView, stop: Stop) -> Judgement:
    """The judgement as it stands once the tools have spoken; mostly the same.

    Raises:
        Stopped: the person stopped the check while code ran.
    """
    return _with_note(_weighed(judgement, view, stop), what_is_off(view.case))


def _weighed(judgement: Judgement, view: CaseView, stop: Stop) -> Judgement:
    finding = tool_finding(view.case, stop)
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
    unchecked = "" if is_wrong or finding.is_answer else " Nothing else was checked: no evidence."
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
