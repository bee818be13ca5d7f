"""Wrong words marked and voted on by language models (MSA 3.1, 3.3, appendix A).

A panel never sees the debate or who marked a span. What a model quotes must stand in the response;
what stands nowhere is dropped, counted and said.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from rapidfuzz.distance import JaroWinkler

from core.agents.agent_runner import AgentContext, LlmAgent, PromptCall
from core.agents.transcript import fitted_debate, last_turns, passage_lines
from core.documents.quotes import placed
from core.llm.call import Shape, Unusable, ask_structured
from core.llm.prompting import Fence, filled
from core.runtime.concurrency import Stop
from core.runtime.errors import ModelError
from core.schema.events import SpanVote
from core.schema.records import (
    CATEGORY_WORDS,
    Case,
    Category,
    Judgement,
    Label,
    Span,
    SpanExample,
    base_of,
)
from core.schema.reviews import category_words
from core.schema.roles import CaseView, JudgeView, SpanRuling
from core.schema.rosters import PANEL, Seat

CATEGORIES = tuple(CATEGORY_WORDS)
LIKE_FROM = 0.85
EXAMPLES_PROMPT = "span_examples"
BEFORE = 60  # characters that show which of several equal words are meant
NOT_VOTED = SpanVote(None, "It gave no vote on these words.")
NO_REASON = "It gave no reason."
# A category in other words costs no mark: the model is told the names, and is read generously.
Named = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(CATEGORIES)})]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class _ExtractedSpan(msgspec.Struct, frozen=True):
    reason: str
    quote: str
    category: Named
    instead: str
    p: Probability


class _Mark(_ExtractedSpan, frozen=True):
    before: str = ""


class _ExtractedSpans(msgspec.Struct, frozen=True):
    spans: list[_ExtractedSpan]


class _Marks(msgspec.Struct, frozen=True):
    spans: list[_Mark]


class _SpanVote(msgspec.Struct, frozen=True):
    reason: str
    hallucinated: bool
    p: Probability


class _Vote(msgspec.Struct, frozen=True):
    number: int
    reason: str
    p: Probability


class _Votes(msgspec.Struct, frozen=True):
    votes: list[_Vote]


MARKS, VOTES = Shape(_Marks), Shape(_Votes)


EXTRACTION, VOTE = Shape(_ExtractedSpans), Shape(_SpanVote)


class MarkingAgent(LlmAgent):
    """An agent that marks words, with people's corrections as examples where there are any."""

    apart = True  # of marks that overlap, only the surest is kept

    @property
    def rule(self) -> str:
        """The prompts in force; with examples also theirs, and which cases they are."""
        named = self._work.learned.examples_words
        if not named:
            return super().rule
        return f"{super().rule}\n\n{self._prompts_words(EXAMPLES_PROMPT)}\n{named}"

    def _marks(
        self,
        asking: PromptCall,
        fields: Mapping[str, str],
        lines: Sequence[str],
        case: Case,
        shape: Shape[Any],
    ) -> tuple[Span, ...]:
        """The spans of the reply in order; of marks on one place the surest stays.

        The examples from corrections go along unless they would take a passage's place.
        """
        asked, messages, most = asking.fitted(lines, fields, "evidence")
        if preface := self._examples(case):
            taught, kept = replace(asking, preface=preface), -1
            with contextlib.suppress(ModelError):
                taught, with_examples, kept = taught.fitted(lines, fields, "evidence")
            if kept >= most:
                asked, messages = taught, with_examples
            else:
                words = "The examples from corrections did not fit the model's window beside the "
                self._work.notes.add(f"{words}evidence: {self.name} marked without them.")

        def check(marks: Any) -> None:
            if marks.spans and not self._placed(case.response, marks.spans)[0]:
                raise Unusable(
                    "None of the quotes stands in the response; copy them from it exactly."
                )

        marks = ask_structured(asked.say, messages, shape, asked.mend, check).spans
        spans, lost = self._placed(case.response, marks)
        if lost:
            said = f"{lost} of {len(marks)} places that {self.name} marked"
            self._work.notes.add(f"{said} stand nowhere in the text under review: left out.")
        return tuple(sorted(spans, key=lambda span: (span.start, span.end)))

    def _placed(self, response: str, marks: Sequence[_ExtractedSpan]) -> tuple[list[Span], int]:
        """(the spans, the surest first; how many quotes stand nowhere)."""
        spans: dict[tuple[int, int], Span] = {}
        lost = 0
        for mark in sorted(marks, key=lambda mark: -mark.p):
            before = mark.before if isinstance(mark, _Mark) else ""
            place = placed(mark.quote, response, tuple(spans), before)
            if place is None:
                lost += 1
            elif place not in spans and not (
                self.apart and any(start < place[1] and place[0] < end for start, end in spans)
            ):
                text, instead = response[slice(*place)], mark.instead.strip()
                kind = category_of(mark.category)
                spans[place] = Span(*place, text, mark.p, kind, self.name, instead)
        return list(spans.values()), lost

    def _examples(self, case: Case) -> str:
        """What stands before the case: corrected cases, fenced; empty where there are none."""
        examples = self._work.learned.examples
        if not examples:
            return ""
        shown = "\n\n".join(example_shown(one, self._work.fence) for one in examples)
        prompt = self._work.book.prompt(EXAMPLES_PROMPT, case.language)
        return filled(prompt, {"examples": shown})[-1].text


class LlmSpanExtractor(MarkingAgent):
    """Span extractor with a language model."""

    prompts = ("spans",)

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Spans in order of their place, none overlapping; none unless it is hallucinated.

        Raises ReplyError: twice nothing of what it quotes stands in the response.
        """
        if judgement.label != "hallucinated":
            return ()
        case = view.view.case
        asking = self._asking(
            "spans", case, stop, role="span extractor", slot="spans", schema=EXTRACTION.schema
        )
        finding = judgement.prose or judgement.text
        fields = asking.fields(question=case.question, response=case.response, finding=finding)
        return self._marks(asking, fields, passage_lines(view.view.evidence), case, EXTRACTION)


def example_shown(example: SpanExample, fence: Fence) -> str:
    """One example for a prompt: each of its texts in a fence of its own."""
    marks = [
        {"reason": example.reason, "quote": s.text}
        | {"category": s.category, "instead": s.instead, "p": s.p}
        for s in example.spans
    ]
    wanted = msgspec.json.encode({"spans": marks}).decode()
    parts = [("example question", example.question)] if example.question.strip() else []
    parts += [("example response", example.response), ("example marks", wanted)]
    return "\n".join(fence.around(kind, text) for kind, text in parts)


def category_of(words: str) -> Category:
    """The category that is meant; one that is none of ours is a plain contradiction."""
    said = words.strip().casefold().replace(" ", "_")
    likest = max(CATEGORIES, key=lambda name: JaroWinkler.similarity(said, name))
    return likest if JaroWinkler.similarity(said, likest) >= LIKE_FROM else "contradicted"


class LlmSpanAdjudicator(LlmAgent):
    """Span adjudicator with a language model: one vote on one span."""

    prompts = ("span_vote",)

    @property
    def rule(self) -> str:
        """The prompts in force, and from which p a vote keeps where that was learned."""
        learned = self._work.learned.threshold
        words = learned.votes.words
        told = f"Kept from p, learned from people (no. {learned.number}): {words}."
        return f"{super().rule}\n\n{told}" if words else super().rule

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Kept when the vote says hallucinated, with the vote's probability.

        Where a threshold was learned from people's marks, the probability decides (MSA 3.3).
        """
        if label != "hallucinated":
            return SpanRuling(span, False, f"The verdict is {label}.")
        case, slot = view.view.case, f"span {span.start} to {span.end}"
        asking = self._asking(
            "span_vote", case, stop, role="span adjudicator", slot=slot, schema=VOTE.schema
        )
        why = category_words(span.category)
        why += f"; the evidence says: {span.instead}" if span.instead else ""
        fields = asking.fields(response=case.response, words=span.text, why=why)
        lines = passage_lines(view.view.evidence)
        ended = last_turns(asking, view)
        asking, messages = fitted_debate(asking, ended, fields, lines, "evidence")
        vote = ask_structured(asking.say, messages, VOTE, asking.mend)
        reason = vote.reason.strip() or NO_REASON
        ruled = replace(span, p=round(vote.p, 3))
        least = self._work.learned.threshold.votes.at(case.language)
        if least is None:
            return SpanRuling(ruled, vote.hallucinated, reason)
        how = "kept" if ruled.p >= least else "dropped"
        told = f"{reason} Learned from people: {how} at p = {ruled.p:.2f}, kept from {least:.2f}."
        return SpanRuling(ruled, ruled.p >= least, told)


class LlmPanelist(MarkingAgent):
    """A member of a panel with a language model; `number` is its seat's, from 1."""

    prompts = ("panel_spans", "panel_votes")
    apart = False

    def __init__(self, seat: Seat, work: AgentContext, number: int, *, sees_evidence: bool) -> None:
        super().__init__(seat, work)
        self._role = f"{PANEL}{number}"
        self._sees_evidence = sees_evidence

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Its spans in order of their place; each quote's likeliest place in the response.

        Raises ReplyError: twice nothing of what it quotes stands in the response.
        """
        asking, fields, lines = self._asked("panel_spans", view, stop, "spans", MARKS)
        spans = self._marks(asking, fields, lines, view.case, MARKS)
        return tuple(replace(span, p=round(span.p, 3)) for span in spans)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """A vote on each span, all in one call; who is passed over in the reply has none.

        Raises ReplyError: twice it voted on none of them.
        """
        slot = f"votes on {spans[0].source}"
        asking, fields, lines = self._asked("panel_votes", view, stop, slot, VOTES)
        numbers, response = range(1, len(spans) + 1), view.case.response
        shown = [
            {
                "number": number,
                "after": " ".join(response[max(0, span.start - BEFORE) : span.start].split()),
                "words": span.text,
            }
            for number, span in enumerate(spans, 1)
        ]
        fields |= asking.fields(words=msgspec.json.encode(shown).decode())
        asking, messages, _ = asking.fitted(lines, fields, "evidence")

        def check(votes: _Votes) -> None:
            if not any(vote.number in numbers for vote in votes.votes):
                raise Unusable(f"Vote on each of the numbers 1 to {len(spans)}.")

        votes = ask_structured(asking.say, messages, VOTES, asking.mend, check).votes
        given = {
            vote.number: SpanVote(round(vote.p, 3), vote.reason.strip() or NO_REASON)
            for vote in reversed(votes)
            if vote.number in numbers
        }
        if strange := len(votes) - len(given):
            self._work.notes.add(
                f"{strange} of {len(votes)} votes of {self.name} were on nothing that was asked, "
                "or on the same words again: left out."
            )
        return tuple(given.get(number, NOT_VOTED) for number in numbers)

    def _asked(
        self, prompt: str, view: CaseView, stop: Stop, slot: str, shape: Shape[Any]
    ) -> tuple[PromptCall, dict[str, str], list[str]]:
        """(the asking, the fields beside the evidence, the lines of the evidence)."""
        case, slot = view.case, f"{self._role}: {slot}"
        asking = self._asking(prompt, case, stop, role=self._role, slot=slot, schema=shape.schema)
        fields = asking.fields(question=case.question, response=case.response)
        lines = passage_lines(view.evidence) if self._sees_evidence else []
        return asking, fields | {"language": base_of(case.language)}, lines
