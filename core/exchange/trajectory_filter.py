"""Which trajectories are fit to learn from, and why the others are not (HaluAgent 2.4.1).

The paper removes wrong invocations of tools, formatting errors and results that differ from the
gold label. Statements are compared too, where people marked words: a right label for a wrong
reason teaches the wrong reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from core.audited import ToolUse
from core.errors import InputError
from core.exchange.trajectory import Trajectory
from core.progress import Progress
from core.records import Label, Statement
from core.reviews import Correction, Gold
from core.tools.registry import read_input, tool_named

Answer = Gold | Correction
Reason = Literal[
    "not_decided", "wrong_label", "wrong_statement", "tool_failed", "wrong_call", "left_for_balance"
]
LABELS: tuple[Label, ...] = ("supported", "hallucinated")
REASON_WORDS: Mapping[Reason, str] = {
    "not_decided": "not decided by people",
    "wrong_label": "wrong label",
    "wrong_statement": "wrong statement",
    "tool_failed": "a tool failed or was off",
    "wrong_call": "a tool was called wrongly",
    "left_for_balance": "left out so that labels are as many as each other",
}


@dataclass(frozen=True)
class Fault:
    """Why a trajectory is not learned from; `why` is a sentence about this one."""

    reason: Reason
    why: str


def faults_of(progress: Progress, answer: Answer | None) -> list[Fault]:
    """Everything that speaks against a finished audit, given the answer that counts, if any."""
    label: Label = progress.judgement.label if progress.judgement else "unclear"
    faults = [fault for use in progress.tool_uses for fault in _faults_of_use(use)]
    if answer is None or answer.label == "unclear":
        said = "nobody answered" if answer is None else "people left it unclear"
        return [Fault("not_decided", f"Of this case {said}."), *faults]
    if label != answer.label:
        why = f"The audit says {label}, people decided {answer.label}."
        return [Fault("wrong_label", why), *faults]
    return [*_wrong_statements(progress, answer), *faults]


def _faults_of_use(use: ToolUse) -> list[Fault]:
    if use.outcome in ("off", "failed"):
        was = "was off" if use.outcome == "off" else "failed"
        return [Fault("tool_failed", f"{use.tool} {was}: {use.words}")]
    try:
        read_input(tool_named(use.tool), use.given)
    except InputError as error:
        return [Fault("wrong_call", str(error))]
    return []


def _wrong_statements(progress: Progress, answer: Answer) -> list[Fault]:
    """Statements whose label people's marks deny; nothing where they marked no words at all.

    A statement that could not be found out is none, unless people marked words in it; nor is one
    that holds where the response is wrong as a whole, such as one that is too long.
    """
    told = statement_answers(progress.statements, answer)
    is_whole = any(u.statement is None and u.label == "hallucinated" for u in progress.tool_uses)
    faults = []
    for number, entry in sorted(progress.memory.items()):
        right = told.get(number, entry.label)
        is_missed = right == "hallucinated" != entry.label and not is_whole
        if is_missed or (right == "supported" and entry.label == "hallucinated"):
            why = f"Statement {number + 1} was found {entry.label}, people decided {right}."
            faults.append(Fault("wrong_statement", why))
    return faults


def statement_answers(statements: Mapping[int, Statement], answer: Answer) -> dict[int, Label]:
    """By statement what people's answer says of it; statements of which it says nothing left out.

    Of a supported response every statement is. Of a hallucinated one those are that hold marked
    words, or the only one there is; where no words are marked nothing is known of several.
    """
    if answer.label == "supported":
        return dict.fromkeys(statements, "supported")
    if answer.label != "hallucinated":
        return {}
    if len(statements) == 1:
        return dict.fromkeys(statements, "hallucinated")
    if not answer.spans:
        return {}
    return {
        number: "hallucinated"
        if any(span.start < one.end and one.start < span.end for span in answer.spans)
        else "supported"
        for number, one in statements.items()
    }


def balanced(found: Sequence[Trajectory]) -> tuple[list[Trajectory], list[Trajectory]]:
    """(as many of each label in each language, those left over).

    Which stay is drawn by a digest of the run's id: the same runs always give the same file.
    """
    cells: dict[str, dict[Label, list[Trajectory]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(found, key=lambda one: sha256(one.run_id.encode()).digest()):
        cells[one.language][one.label].append(one)
    kept: set[str] = set()
    for cell in cells.values():
        fewest = min(len(cell[label]) for label in LABELS)
        kept |= {one.run_id for label in LABELS for one in cell[label][:fewest]}
    return (
        [one for one in found if one.run_id in kept],
        [one for one in found if one.run_id not in kept],
    )
