"""A language model as a member of a panel: it marks words by itself and votes on the others'.

It is shown question and response, as the paper has it, and the evidence too where the roster says
so; never the debate nor who marked a span. Source: MSA 3.1, 3.3, appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from core.agents.ask import Asking, Work
from core.agents.laid_out import passage_lines
from core.agents.llm_spans import MarkingAgent, Named, Probability, category_of
from core.agents.placed import placed
from core.concurrency import Stop
from core.learned_marks import base_of
from core.models.structured import Shape, Unusable, ask_structured
from core.records import Span
from core.roles import CaseView
from core.seats import PANEL, Seat
from core.voted import SpanVote

BEFORE = 60  # characters that show which of several equal words are meant
NOT_VOTED = SpanVote(None, "It gave no vote on these words.")


class _Mark(msgspec.Struct, frozen=True):
    reason: str
    quote: str
    category: Named
    instead: str
    p: Probability
    before: str = ""


class _Marks(msgspec.Struct, frozen=True):
    spans: list[_Mark]


class _Vote(msgspec.Struct, frozen=True):
    number: int
    reason: str
    p: Probability


class _Votes(msgspec.Struct, frozen=True):
    votes: list[_Vote]


MARKS, VOTES = Shape(_Marks), Shape(_Votes)


class LlmPanelist(MarkingAgent):
    """A member of a panel with a language model; `number` is its seat's, from 1."""

    prompts = ("panel_spans", "panel_votes")

    def __init__(self, seat: Seat, work: Work, number: int, *, sees_evidence: bool) -> None:
        super().__init__(seat, work)
        self._role = f"{PANEL}{number}"
        self._sees_evidence = sees_evidence

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Its spans in order of their place; each quote's likeliest place in the response.

        Raises:
            ReplyError: twice nothing of what it quotes stands in the response.
        """
        case = view.case
        asking = self._panel_asking("panel_spans", view, stop, f"{self._role}: spans", MARKS)
        fields = self._fields(asking, view)
        asking, messages = self._fitted(asking, self._lines(view), fields, case)

        def check(marks: _Marks) -> None:
            if marks.spans and not self._placed(case.response, marks)[0]:
                raise Unusable(
                    "None of the quotes stands in the response; copy them from it exactly."
                )

        marks = ask_structured(asking.say, messages, MARKS, asking.mend, check)
        spans, lost = self._placed(case.response, marks)
        if lost:
            said = f"{lost} of {len(marks.spans)} places that {self.name} marked"
            self._work.notes.add(f"{said} stand nowhere in the text under review: left out.")
        return spans

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """A vote on each span, all in one call; who is passed over in the reply has none.

        Raises:
            ReplyError: twice it voted on none of them.
        """
        slot = f"{self._role}: votes on {spans[0].source}"
        asking = self._panel_asking("panel_votes", view, stop, slot, VOTES)
        words = msgspec.json.encode(_numbered(view.case.response, spans)).decode()
        fields = {**self._fields(asking, view), "words": asking.fenced("words", words)}
        asking, messages, _ = asking.fitted(self._lines(view), fields, "evidence")

        def check(votes: _Votes) -> None:
            if not any(1 <= vote.number <= len(spans) for vote in votes.votes):
                raise Unusable(f"Vote on each of the numbers 1 to {len(spans)}.")

        votes = ask_structured(asking.say, messages, VOTES, asking.mend, check).votes
        given = {vote.number: vote for vote in reversed(votes)}
        strange = len(votes) - sum(number in given for number in range(1, len(spans) + 1))
        if strange:
            self._work.notes.add(
                f"{strange} of {len(votes)} votes of {self.name} were on nothing that was asked, "
                "or on the same words again: left out."
            )
        return tuple(_vote(given.get(number)) for number in range(1, len(spans) + 1))

    def _panel_asking(
        self, prompt: str, view: CaseView, stop: Stop, slot: str, shape: Shape[Any]
    ) -> Asking:
        return self._asking(
            prompt, view.case, stop, role=self._role, slot=slot, schema=shape.schema
        )

    def _fields(self, asking: Asking, view: CaseView) -> dict[str, str]:
        return {
            "language": base_of(view.case.language),
            "question": asking.fenced("question", view.case.question),
            "response": asking.fenced("response", view.case.response),
        }

    def _lines(self, view: CaseView) -> list[str]:
        return passage_lines(view.evidence) if self._sees_evidence else []

    def _placed(self, response: str, marks: _Marks) -> tuple[tuple[Span, ...], int]:
        """(the spans, how many quotes stand nowhere); of marks on one place the surest stays."""
        spans: dict[tuple[int, int], Span] = {}
        lost = 0
        for mark in sorted(marks.spans, key=lambda mark: -mark.p):
            place = placed(mark.quote, response, tuple(spans), mark.before)
            if place is None:
                lost += 1
            elif place not in spans:
                text, instead = response[slice(*place)], mark.instead.strip()
                kind = category_of(mark.category)
                spans[place] = Span(*place, text, round(mark.p, 3), kind, self.name, instead)
        return tuple(spans[place] for place in sorted(spans)), lost


def _numbered(response: str, spans: Sequence[Span]) -> list[dict[str, object]]:
    """The spans as an adjudicator sees them: with what stands before each, and by nobody."""
    return [
        {
            "number": number,
            "after": " ".join(response[max(0, span.start - BEFORE) : span.start].split()),
            "words": span.text,
        }
        for number, span in enumerate(spans, 1)
    ]


def _vote(vote: _Vote | None) -> SpanVote:
    if vote is None:
        return NOT_VOTED
    return SpanVote(round(vote.p, 3), vote.reason.strip() or "It gave no reason.")
