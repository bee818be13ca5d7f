"""Homes with finished audits that were told, not computed, over a tool of the tests' own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import pytest

from core.review.people import ensure_project
from core.schema.events import (
    Event,
    JudgementReached,
    LabelRevision,
    MemoryEntry,
    MemoryUpdated,
    ReflectionChanged,
    RunFinished,
    RunStarted,
    StatementFound,
    ToolCalled,
    ToolUse,
)
from core.schema.records import Case, Judgement, Label, Plan, Run, Span, Statement, Verdict
from core.schema.reviews import Correction
from core.store import Store
from core.tools.registry import Tool, ToolAnswer, ToolContext, ToolExample
from core.tools.text_tools import GET_ANSWER, SPLIT_TEXT


class Sum(msgspec.Struct, frozen=True):
    """The sentence that states a sum."""

    text: str


def _add(given: Sum, bench: ToolContext) -> ToolAnswer:
    return ToolAnswer("supported", given.text)


def _reads(statement: Statement | None, case: Case) -> Sum | None:
    return Sum(statement.text) if statement is not None and "=" in statement.text else None


_EXAMPLE = ToolExample("How many?", "2 + 2 = 4", Sum("2 + 2 = 4"), "supported", "A sum.")
TOOLS = {
    "adder": Tool("adder", "Adds up.", Sum, _add, (_EXAMPLE, _EXAMPLE), reads=_reads),
    "get_answer": GET_ANSWER,
    "split_text": SPLIT_TEXT,
}
SENTENCES = ("3 + 4 = 7.", "2 + 2 = 5.")


@pytest.fixture
def own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry holds the tool above, those that run the audit, and no others."""
    for module in ("core.tools.registry", "core.exchange.trajectory", "core.learning.reliability"):
        monkeypatch.setattr(f"{module}.load_tools", lambda: TOOLS)


@dataclass(frozen=True)
class Audit:
    """An audit: the label of each sentence with the use that led to it, and what is right.

    `final` are the labels after looking back, those of before where left out. `marks` are the
    sentences in which people marked words; `right` is None where nobody answered.
    """

    labels: Sequence[Label] = ("supported", "hallucinated")
    right: Label | None = "hallucinated"
    marks: Sequence[int] = ()
    final: Sequence[Label] | None = None
    sentences: Sequence[str] = SENTENCES
    question: str = "How many?"
    language: str = "en"
    roster: str = "builtin"
    protocol: str = "audit"
    tool: str = "adder"
    outcome: str = "found"
    thought: str = "A sum is stated: add it up."
    at: float = 1000.0

    @property
    def ends(self) -> Sequence[Label]:
        return self.labels if self.final is None else self.final

    @property
    def label(self) -> Label:
        if "hallucinated" in self.ends:
            return "hallucinated"
        return "supported" if set(self.ends) == {"supported"} else "unclear"

    @property
    def statements(self) -> list[Statement]:
        found, start = [], 0
        for number, text in enumerate(self.sentences):
            found.append(Statement(number, start, start + len(text), text, text))
            start += len(text) + 1
        return found


def use_of(audit: Audit, number: int) -> ToolUse:
    """The tool's use on a sentence."""
    text, label = audit.sentences[number], audit.labels[number]
    is_found = audit.outcome == "found"
    return ToolUse(
        audit.tool, number, json.dumps({"text": text}), json.dumps({"checked": [text]}),
        audit.outcome,  # type: ignore[arg-type]
        label if is_found else "unclear", f"{text} was added up.", 0.1,
        agent="Rules", thought=audit.thought,
    )  # fmt: skip


def events_of(audit: Audit, case: Case) -> list[Event]:
    """The run's events; sentences come back in the opposite order, as parallel work may."""
    at = audit.at
    events: list[Event] = [RunStarted(at, case, Plan(protocol="audit"), ())]
    events += [StatementFound(at, one) for one in audit.statements]
    for one in reversed(audit.statements):
        events.append(ToolCalled(at, use_of(audit, one.index)))
        entry = MemoryEntry(
            one.index, audit.labels[one.index], None, f"Added {one.text}", ("adder",)
        )
        events.append(MemoryUpdated(at, entry))
    for number, (before, after) in enumerate(zip(audit.labels, audit.ends, strict=True)):
        if before != after:
            change = LabelRevision(number, "global", before, after, "It rests on another.", (0,))
            entry = MemoryEntry(number, after, None, "It rests on another.", ("adder",))
            events += [ReflectionChanged(at, change), MemoryUpdated(at, entry)]
    verdict = Verdict(audit.label, None, None, "Because.")
    events += [
        JudgementReached(at + 1, Judgement("Audit", audit.label, "Because."), 1.0),
        RunFinished(at + 2, verdict, 2.0),
    ]
    return events


def case_of(audit: Audit, number: int = 0, project: str = "p") -> Case:
    """The case of an audit."""
    return Case(
        f"case{number}", project, " ".join(audit.sentences), audit.question,
        language=audit.language, author="Mira", created_at=audit.at,
    )  # fmt: skip


def tell(store: Store, audits: Sequence[Audit]) -> list[str]:
    """Store each as a case with its finished run and the person's answer; the ids of the runs."""
    project = ensure_project(store, "Mira", 1.0)
    store.projects.save_note("person", "Mira")
    with store.writing():
        for number, own in enumerate(audits):
            at = own.at + 100 * number
            audit, case = replace(own, at=at), case_of(own, number, project.id)
            store.cases.add(case, [])
            plan = Plan(protocol=own.protocol, roster=own.roster)
            store.runs.add(Run(f"run{number}", case.id, project.id, plan, "queued", at), "t", at)
            store.runs.append(f"run{number}", "t", events_of(audit, case))
            if own.right is not None:
                store.corrections.add(_correction(audit, case, number), case.response)
    return [f"run{number}" for number in range(len(audits))]


def _correction(audit: Audit, case: Case, number: int) -> Correction:
    marked = [audit.statements[index] for index in audit.marks]
    spans = tuple(
        Span(one.start, one.start + 1, one.text[:1], 1.0, "number_or_date", "Mira")
        for one in marked
    )
    right: Label = audit.right or "unclear"
    return Correction(
        f"said{number}", f"run{number}", case.id, "Mira", audit.at + 50, right, spans, "Counted."
    )


ACTION = re.compile(r"(\w+)\((\{.*\})\)", re.DOTALL)


def read_action(text: str) -> tuple[str, str] | None:
    """(tool, its input as JSON) of an action as trajectories write it; None where it is none."""
    match = ACTION.fullmatch(text.strip())
    if match is None:
        return None
    try:
        value = json.loads(match[2])
    except ValueError:
        return None
    return (match[1], match[2]) if isinstance(value, dict) else None
