"""Cuts a response into statements that stand alone, by a language model."""

from __future__ import annotations

import msgspec

from core.agents.ask import LlmAgent
from core.agents.placed import placed
from core.concurrency import Stop
from core.documents.segmentation import sentences
from core.models.structured import Shape, Unusable, ask_structured
from core.records import Case, Statement


class _Cut(msgspec.Struct, frozen=True):
    quote: str
    rewrite: str


class _Cuts(msgspec.Struct, frozen=True):
    statements: list[_Cut]


SHAPE = Shape(_Cuts)


class LlmSegmenter(LlmAgent):
    """Segmenter with a language model; what it quotes must stand in the response."""

    prompts = ("segment",)

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """All statements in order.

        Where a quote stands nowhere in the response, or there is none, sentences that no other
        covers are added as they are: a slip of the model must not take one out of the check.
        """
        asking = self._asking(
            "segment", case, stop, role="segmenter", slot="segment", schema=SHAPE.schema
        )
        fields = {
            "response": asking.fenced("response", case.response),
            "question": asking.fenced("question", case.question),
        }
        messages = asking.whole(fields)

        def check(cuts: _Cuts) -> None:
            if cuts.statements and not _found(case.response, cuts):
                raise Unusable("None of the quotes stands in the text; copy them from it exactly.")

        cuts = ask_structured(asking.say, messages, SHAPE, asking.mend, check)
        found = _found(case.response, cuts)
        if len(found) < max(1, len(cuts.statements)):
            found = [*found, *_uncovered(case, found)]
        return tuple(
            Statement(index, start, end, case.response[start:end], rewrite)
            for index, (start, end, rewrite) in enumerate(sorted(found))
        )


def _found(response: str, cuts: _Cuts) -> list[tuple[int, int, str]]:
    """Places and rewrites of the quotes that stand in the response, each place once."""
    found: list[tuple[int, int, str]] = []
    for cut in cuts.statements:
        taken = [(start, end) for start, end, _ in found]
        place = placed(cut.quote, response, taken)
        if place and place not in taken:
            found.append((*place, cut.rewrite.strip() or response[place[0] : place[1]]))
    return found


def _uncovered(case: Case, found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    whole = sentences(case.response, case.language)
    return [
        (s.start, s.end, case.response[s.start : s.end])
        for s in whole
        if not any(start < s.end and s.start < end for start, end, _ in found)
    ]
