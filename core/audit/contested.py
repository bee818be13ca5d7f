"""What goes to debate of an audited response, and how the judge's word closes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from core.audit.placing import cut_alike, is_cut_from
from core.audited import Remembered, ToolUse
from core.baseline.tool_picker import rest_of
from core.records import Judgement, Label, Project, Statement
from core.roles import CaseView, Evidence

JUST_RIGHT, JUST_WRONG = 0.49, 0.51
IN_QUESTION = "In question are only these statements of a longer response:"


def cut_down(view: CaseView, indices: Sequence[int], uses: Sequence[ToolUse] = ()) -> CaseView:
    """The view with these statements alone, less what tools have worked out of them.

    All else of the response is blank, so that places stay what they are, and the instruction names
    the statements in their self-contained form.
    """
    chosen = tuple(_left_of(s, uses) for s in view.statements if s.index in indices)
    response = "".join(char if char.isspace() else " " for char in view.case.response)
    for own in chosen:
        response = f"{response[: own.start]}{own.text}{response[own.end :]}"
    asked = view.case.instruction or Project.instruction
    listed = "\n".join(f"- {' '.join(statement.rewrite.split())}" for statement in chosen)
    case = replace(view.case, response=response, instruction=f"{asked}\n{IN_QUESTION}\n{listed}")
    by_statement = {s.index: view.evidence.by_statement.get(s.index, ()) for s in chosen}
    ids = {i for found in by_statement.values() for i in found}
    passages = {i: p for i, p in view.evidence.passages.items() if i in ids}
    return replace(view, case=case, statements=chosen, evidence=Evidence(passages, by_statement))


def _left_of(statement: Statement, uses: Sequence[ToolUse]) -> Statement:
    """The statement with blanks for what tools have worked out of it."""
    rest = rest_of(statement, [use for use in uses if use.statement == statement.index])
    is_cut = is_cut_from(rest.text, statement.text)
    return cut_alike(rest.text, statement) if is_cut else statement


def closed(
    memory: Mapping[int, Remembered], found: Mapping[int, tuple[Label, Judgement]]
) -> Iterator[Remembered]:
    """What is held of each contested statement after the judge's word on it.

    The judge's p is the statement's where the word was on it alone. What a tool read where the
    judge cannot look, on the web for one, stands as it was read.
    """
    for index, (label, judgement) in sorted(found.items()):
        entry = memory[index]
        if judgement.cause == "no_evidence" and entry.label != "unclear":
            yield replace(entry, is_contested=False)
            continue
        is_alone = sum(other is judgement for _, other in found.values()) == 1
        p = _sided(judgement.p if is_alone else entry.p, label)
        # A judge without prose writes for the classifier; what was read before says it to people.
        why = judgement.prose or (entry.evidence if label == entry.label else judgement.text)
        words = why if label == entry.label or judgement.cause else f"The judge decides: {why}"
        yield replace(entry, label=label, p=p, evidence=words or entry.evidence, is_contested=False)


def _sided(p: float | None, label: Label) -> float | None:
    """The p on the side of its label: the judge decides the side, which p then stays close to."""
    if p is None or label == "unclear":
        return p
    return max(p, JUST_WRONG) if label == "hallucinated" else min(p, JUST_RIGHT)


def labels_told(judgement: Judgement, indices: Sequence[int]) -> dict[int, Label] | None:
    """The label of each statement where the judgement tells them apart; else None.

    A judge that finds all of them right, or nothing decided, says so of each.
    """
    if len(judgement.statement_labels) == len(indices):
        return dict(zip(indices, judgement.statement_labels, strict=True))
    if len(indices) == 1 or judgement.label != "hallucinated":
        return dict.fromkeys(indices, judgement.label)
    return None
