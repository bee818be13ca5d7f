"""Looks over all checked statements by a language model. Source: HaluAgent 2.3 (reflection)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from core.agents.ask import LlmAgent
from core.audited import Reach, Reconsidered, Remembered, ToolUse
from core.concurrency import Stop
from core.models.structured import Shape, Unusable, ask_structured
from core.records import Label
from core.roles import CaseView

SHOWN = 400  # characters of a statement's evidence


class _Change(msgspec.Struct, frozen=True):
    statement: int
    reason: str
    reach: Reach
    because_of: list[int]
    after: Label


class _Changes(msgspec.Struct, frozen=True):
    changes: list[_Change]


SHAPE = Shape(_Changes)


class LlmReflector(LlmAgent):
    """Reflector with a language model; it numbers statements from 1, as people do."""

    prompts = ("reflect",)

    def reflect(
        self, view: CaseView, memory: Sequence[Remembered], uses: Sequence[ToolUse], stop: Stop
    ) -> tuple[Reconsidered, ...]:
        """What has to change.

        Raises:
            ModelError: the service failed.
            ReplyError: two replies could not be used.
        """
        held = {entry.statement: entry for entry in memory if entry.is_checkable}
        if not held:
            return ()
        asking = self._asking(
            "reflect", view.case, stop, role="reflector", slot="reflect", schema=SHAPE.schema
        )
        texts = {s.index: s.text for s in view.statements}
        lines = [
            f"{index + 1}. {texts[index]}\n   label: {entry.label}"
            f"\n   evidence: {entry.evidence[:SHOWN]}"
            for index, entry in sorted(held.items())
        ]
        fields = {
            "question": asking.fenced("question", view.case.question),
            "statements": asking.fenced("statements", "\n".join(lines)),
        }

        def check(reply: _Changes) -> None:
            known = {index + 1 for index in held}
            for change in reply.changes:
                unknown = {change.statement, *change.because_of} - known
                if unknown:
                    raise Unusable(f"There is no statement {min(unknown)}; use the numbers given.")
                if not change.reason.strip():
                    raise Unusable(f"The change of statement {change.statement} has no reason.")
                if change.reach == "global":
                    _require_spoiled(change)
            changed = [change.statement for change in reply.changes]
            if len(set(changed)) < len(changed):
                raise Unusable("A statement is changed twice; give one change for each.")

        reply = ask_structured(asking.say, asking.whole(fields), SHAPE, asking.mend, check)
        return tuple(
            Reconsidered(
                change.statement - 1,
                change.reach,
                held[change.statement - 1].label,
                change.after,
                change.reason.strip(),
                tuple(number - 1 for number in change.because_of),
                self.name,
            )
            for change in reply.changes
        )


def _require_spoiled(change: _Change) -> None:
    """What rests on wrong statements: on others, and never the better for it (HaluAgent 2.3).

    Raises:
        Unusable: with words for the model.
    """
    number = change.statement
    if not change.because_of or number in change.because_of:
        raise Unusable(f"The global change of statement {number} names no other statement.")
    if change.after == "supported":
        raise Unusable(f"Statement {number} cannot become supported by resting on a wrong one.")
