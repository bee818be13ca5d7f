"""Puts the final answer together from what was remembered of each statement.

Source: HaluAgent 2.3, A.2 (system tool `get_answer`; the paper's 1 and 0 are our labels).
"""

from __future__ import annotations

import msgspec

from core.errors import InputError
from core.records import Label
from core.tools.toolbox import Answer, Bench, Example, Tool


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement with its label and the evidence for it."""

    statement: str
    label: Label
    evidence: str


class GetAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All statements of a response as they stand after reflection."""

    checked: list[Checked]


def _compose(given: GetAnswer, bench: Bench) -> Answer:
    """One wrong statement makes the response wrong; all must hold for it to be supported."""
    if not given.checked:
        raise InputError("Expected at least one checked statement, found none; check one first.")
    for item in given.checked:
        if item.label == "hallucinated" and not item.evidence.strip():
            raise InputError(
                f"Expected evidence against “{item.statement}”, found none; say what shows that it "
                "is hallucinated, or leave it unclear."
            )
    by_label = {
        label: [item for item in given.checked if item.label == label]
        for label in ("supported", "hallucinated", "unclear")
    }
    wrong, left_open = by_label["hallucinated"], by_label["unclear"]
    label: Label = "hallucinated" if wrong else "unclear" if left_open else "supported"
    gave = {
        "counts": {name: len(items) for name, items in by_label.items()},
        "wrong": msgspec.to_builtins(wrong),
        "unclear": msgspec.to_builtins(left_open),
    }
    return Answer(label, _words(len(given.checked), wrong, left_open), gave)


def _words(total: int, wrong: list[Checked], left_open: list[Checked]) -> str:
    statements = "1 statement" if total == 1 else f"{total} statements"
    if wrong:
        listed = " ".join(f"“{item.statement}”: {item.evidence}" for item in wrong)
        verb = "is" if len(wrong) == 1 else "are"
        return f"{len(wrong)} of {statements} {verb} hallucinated. {listed}"
    if left_open:
        verb = "is" if len(left_open) == 1 else "are"
        return f"None of {statements} is shown to be wrong; {len(left_open)} {verb} unclear."
    return "The statement is supported." if total == 1 else f"All {statements} are supported."


TOOL = Tool(
    name="get_answer",
    description=(
        "Ends the audit: puts the answer together from all statements with their labels and "
        "evidence, and lists those that are wrong and why. Call it once, after reflection."
    ),
    takes=GetAnswer,
    work=_compose,
    examples=(
        Example(
            question="Tell me about the Orrin bridge.",
            response="The Orrin bridge was opened in 1931. It is 512 m long.",
            given=GetAnswer(
                [
                    Checked("The Orrin bridge was opened in 1931.", "supported", "A report: 1931."),
                    Checked("It is 512 m long.", "hallucinated", "The report says 412 m."),
                ]
            ),
            label="hallucinated",
            thought="All statements are checked and I changed none, so I give the answer.",
        ),
        Example(
            question="What is 12 times 12?",
            response="12 times 12 is 144.",
            given=GetAnswer([Checked("12 times 12 is 144.", "supported", "12 * 12 = 144.")]),
            label="supported",
            thought="The only statement holds, so the response is supported.",
        ),
    ),
    is_system=True,
)
