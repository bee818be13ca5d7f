"""Picks the best of several revisions of a response by a language model.

Source: SC-MAKS 2.1.4 and table 2 (MAMM-REFINE: reranking).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence

from core.agents.ask import Asking, LlmAgent, case_fields
from core.agents.contested import place_lines
from core.agents.heard import parted
from core.agents.laid_out import passage_lines
from core.concurrency import Stop
from core.errors import ModelError
from core.models.call import Completion, Message
from core.models.structured import Unusable, ask_readable
from core.records import Point
from core.roles import JudgeView

BEST = re.compile(
    r"[\W_]*(?:best|最佳|最好)[\W_]*[:：][\W_]*(?P<number>\d{1,3})[\W_]*", re.IGNORECASE
)
PROMPT = "judge_rerank"
LEAST = 2  # between fewer there is no choice


class LlmRanker(LlmAgent):
    """Ranker with a language model, in the judge's seat."""

    def best_of(
        self, view: JudgeView, points: Sequence[Point], revisions: Sequence[str], stop: Stop
    ) -> int:
        """The index of the best; `points` are the places that were to be mended.

        Of revisions that do not all fit, the last are left out; the first where no two do.

        Raises:
            ReplyError: twice no last line that names one of them.
        """
        case = view.view.case
        asking = self._asking(PROMPT, case, stop, role="judge", slot=view.slot)
        known = case_fields(asking, case)
        fields = {
            "claim": known["claim"],
            "question": known["question"],
            "contested": asking.fenced("places", place_lines(points)),
        }
        lines = passage_lines(view.view.evidence)
        asking, messages, count = self._fitted(asking, fields, lines, revisions)
        if count < LEAST:
            return 0

        def read(said: Completion) -> int:
            return best_in(said, count)

        return ask_readable(asking.say, messages, read, asking.mend)

    def _fitted(
        self,
        asking: Asking,
        fields: Mapping[str, str],
        lines: Sequence[str],
        revisions: Sequence[str],
    ) -> tuple[Asking, tuple[Message, ...], int]:
        """(the asking, the messages over as many of the first revisions as fit, how many)."""
        for count in range(len(revisions), LEAST - 1, -1):
            shown = "\n".join(
                f"{number}.\n{asking.fenced('version', text)}"
                for number, text in enumerate(revisions[:count], 1)
            )
            with contextlib.suppress(ModelError):
                found, messages, kept = asking.fitted(
                    lines, {**fields, "revisions": shown}, "evidence"
                )
                if kept or not lines:
                    self._tell_of(len(revisions) - count, len(revisions))
                    return found, messages, count
        self._tell_of(len(revisions) - 1, len(revisions))
        return asking, (), 0

    def _tell_of(self, lost: int, count: int) -> None:
        if lost:
            self._work.notes.add(
                f"{lost} of {count} revisions did not fit the window of {self.name}: those that "
                "mend least, or change most, were left out of the choice."
            )


def best_in(said: Completion, count: int) -> int:
    """The index, from 0, that the last line names by its number, from 1.

    Raises:
        Unusable: that line names none of so many.
    """
    _, last = parted(said.text)
    match = BEST.fullmatch(last)
    number = int(match["number"]) if match else 0
    if not 1 <= number <= count:
        raise Unusable(
            f"Expected a last line that reads “Best: N” with a number from 1 to {count}, found "
            f"“{' '.join(last.split())[-80:]}”."
        )
    return number - 1
