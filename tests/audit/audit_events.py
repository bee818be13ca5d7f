"""An audited response told event by event: every kind of step, of memory and of reflection."""

from __future__ import annotations

import json
from typing import Any

from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    LabelRevision,
    MemoryEntry,
    MemoryUpdated,
    PassagesFound,
    ReflectionChanged,
    RunFinished,
    RunStarted,
    SpanAdjudicated,
    StatementFound,
    ToolCalled,
    ToolUse,
)
from core.schema.records import Case, Judgement, Passage, Plan, Span, Statement, Verdict
from tests.fakes import make_case

SENTENCES = (
    "The old bridge is 412 m long.",
    "It was opened on 12 March 2024, a Monday.",
    "Building took 3 + 0.5 + 1.5 = 6 years.",
    "So its builders were paid for 6 years in all.",
    "What a sight!",
)
RESPONSE = " ".join(SENTENCES)
CASE = make_case(RESPONSE, question="Describe the bridge in 20 words.")
PASSAGE = Passage("b:0", "b", "bridge.pdf", False, 2, 0, 30, "The old bridge is 412 m long.", 1.0)
VERDICT = Verdict("hallucinated", 0.97, 0.97, "Two statements are wrong.", classifier="seed")
SUM = {
    "equations": [
        {"formula": "3 + 0.5 + 1.5", "stated": "6", "worked_out": "5", "holds": False, "why": "",
         "start": 14, "end": 31}
    ]
}  # fmt: skip


def statements() -> list[Statement]:
    """The sentences at their places; the second one is completed."""
    found, start = [], 0
    for index, words in enumerate(SENTENCES):
        start = RESPONSE.index(words, start)
        rewrite = words.replace("It was", "The old bridge was")
        found.append(Statement(index, start, start + len(words), words, rewrite))
    return found


def used(tool: str, statement: int | None, gave: dict[str, Any], **fields: Any) -> ToolCalled:
    """A tool's use; `given` is its text unless told otherwise."""
    given = fields.pop("given", {"text": SENTENCES[statement] if statement is not None else "…"})
    values: dict[str, Any] = {
        "outcome": "found",
        "label": "unclear",
        "words": f"{tool} says so.",
        "seconds": 0.2,
        "agent": "Tool picker (rules)",
    }
    return ToolCalled(
        10.0, ToolUse(tool, statement, json.dumps(given), json.dumps(gave), **(values | fields))
    )


def wrong_place(words: str, instead: str) -> dict[str, Any]:
    start = RESPONSE.index(words)
    return {"label": "hallucinated", "start": start, "end": start + len(words), "instead": instead}


TUESDAY = {
    "dates": [{"date": "2024-03-12", "weekday": "Tuesday"}],
    "days_between": None,
    "worked_out": "Tuesday",
    "said": "Monday",
    "holds": False,
}
STEPS: list[Event] = [
    used(
        "conditions",
        None,
        {"conditions": [{"kind": "length", "asked": "20 words", "found": "34 words",
                         "holds": False, "start": None, "end": None}]},
        label="hallucinated",
        words="20 words were asked for, it has 34.",
        p=0.99,
    ),
    used("code", None, {}, outcome="nothing", words="There is no Python in it."),
    used("search", 0, {"sources": [{"title": "bridge.pdf", "address": "", "text": PASSAGE.text}]},
         words="One passage was found.", thought="A length: the library may know it."),
    used("match", 0, {"finding": "holds", "by": "built-in readers", "sources": []},
         label="supported", p=0.04),
    MemoryUpdated(10.1, MemoryEntry(0, "supported", 0.04, "The source says 412 m.",
                                   ("search", "match"), ("b:0",))),
    used("translate", 1, {}, outcome="off", words="The tool translate needs a language model."),
    used("calendar", 1, TUESDAY, **wrong_place("Monday", "Tuesday"), p=0.98,
         words="12 March 2024 was a Tuesday."),
    MemoryUpdated(10.2, MemoryEntry(1, "hallucinated", 0.98, "12 March 2024 was a Tuesday.",
                                   ("translate", "calendar"))),
    used("calculator", 2, SUM, **wrong_place("6 years.", "5 years"), p=0.97,
         thought="It states a sum.", words="3 + 0.5 + 1.5 is 5, not 6."),
    MemoryUpdated(10.3, MemoryEntry(2, "hallucinated", 0.97, "The sum is 5, not 6.",
                                   ("calculator",))),
    used("search", 3, {}, outcome="failed", words="No answer within 10 s."),
    MemoryUpdated(10.4, MemoryEntry(3, "unclear", None, "Nothing was found about it.", (),
                                   is_contested=True)),
    ReflectionChanged(10.5, LabelRevision(3, "global", "unclear", "hallucinated",
                                         "It repeats the 6 years of a wrong sum.", (2,),
                                         "Reflector (rules)")),
    MemoryUpdated(10.6, MemoryEntry(3, "hallucinated", 0.9, "It rests on a wrong sum.")),
    MemoryUpdated(
        10.7, MemoryEntry(4, "unclear", None, "It states nothing to check.", is_checkable=False)
    ),
]  # fmt: skip


def begun(case: Case = CASE, plan: Plan | None = None) -> list[Event]:
    """The run up to its audit."""
    return [
        RunStarted(9.0, case, plan or Plan(), ()),
        *(StatementFound(9.1, own) for own in statements()),
        PassagesFound(9.2, 0, (PASSAGE,)),
    ]


def told(case: Case = CASE, plan: Plan | None = None) -> list[Event]:
    """The whole run."""
    start = RESPONSE.index("Monday")
    span = Span(start, start + 6, "Monday", 0.98, "number_or_date", "calendar", "Tuesday")
    judgement = Judgement("Audit", "hallucinated", "Two statements are wrong.")
    return [
        *begun(case, plan),
        *STEPS,
        JudgementReached(11.0, judgement, 0.1),
        LabelPredicted(11.1, VERDICT),
        SpanAdjudicated(11.2, span, True, "kept"),
        RunFinished(11.3, VERDICT, 2.3),
    ]
