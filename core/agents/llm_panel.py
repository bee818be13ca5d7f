"""A language model as a member of a panel: it marks words by itself and votes on the others'.

It is shown question and response, as the paper has it, and the evidence too where the roster says
so; never the debate nor who marked a span. Source: MSA 3.1, 3.3, appendix A.

Spans by a language model: one marks the words that do not hold, another votes on each. Source:
MSA (extraction and adjudication). What a model quotes must stand in the response; what stands
nowhere is dropped, counted and said, never put somewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from rapidfuzz.distance import JaroWinkler

from core.agents.agent_runner import AgentContext, LlmAgent, PromptCall
from core.agents.transcript import fitted_debate, last_turns, passage_lines
from core.documents.quotes import placed
from core.llm.call import Message, Shape, Unusable, ask_structured
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
# A category in other words costs no mark: the model is told the names, and is read generously.
Named = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(CATEGORIES)})]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class _ExtractedSpan(msgspec.Struct, frozen=True):
    reason: str
    quote: str
    category: Named
    instead: str
    p: Probability


class _ExtractedSpans(msgspec.Struct, frozen=True):
    spans: list[_ExtractedSpan]


class _SpanVote(msgspec.Struct, frozen=True):
    reason: str
    hallucinated: bool
    p: Probability


EXTRACTION, VOTE = Shape(_ExtractedSpans), Shape(_SpanVote)


class MarkingAgent(LlmAgent):
    """An agent that marks words, with people's corrections as examples where there are any."""

    @property
    def rule(self) -> str:
        """The prompts in force; with examples also theirs, and which cases they are."""
        named = self._work.learned.examples_words
        if not named:
            return super().rule
        return f"{super().rule}\n\n{self._prompts_words(EXAMPLES_PROMPT)}\n{named}"

    def _fitted(
        self, asking: PromptCall, lines: Sequence[str], fields: Mapping[str, str], case: Case
    ) -> tuple[PromptCall, tuple[Message, ...]]:
        plain, messages, most = asking.fitted(lines, fields, "evidence")
        preface = self._examples(case)
        if not preface:
            return plain, messages
        try:
            taught, with_examples, kept = replace(asking, preface=preface).fitted(
                lines, fields, "evidence"
            )
        except ModelError:
            kept = -1
        if kept < most:
            words = "The examples from corrections did not fit the model's window beside the "
            self._work.notes.add(f"{words}evidence: {self.name} marked without them.")
            return plain, messages
        return taught, with_examples

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
        fields = {
            "question": asking.fenced("question", case.question),
            "response": asking.fenced("response", case.response),
            "finding": asking.fenced("finding", judgement.prose or judgement.text),
        }
        lines = passage_lines(view.view.evidence)
        asking, messages = self._fitted(asking, lines, fields, case)

        def check(marks: _ExtractedSpans) -> None:
            if marks.spans and not self._spans(case.response, marks)[0]:
                raise Unusable(
                    "None of the quotes stands in the response; copy them from it exactly."
                )

        marks = ask_structured(asking.say, messages, EXTRACTION, asking.mend, check)
        spans, lost = self._spans(case.response, marks)
        if lost:
            said = f"{lost} of {len(marks.spans)} places that {self.name} marked"
            self._work.notes.add(f"{said} stand nowhere in the text under review: left out.")
        return spans

    def _spans(self, response: str, marks: _ExtractedSpans) -> tuple[tuple[Span, ...], int]:
        """(the spans, how many quotes stand nowhere); of overlapping ones the surest stays."""
        spans: list[Span] = []
        lost = 0
        for mark in sorted(marks.spans, key=lambda mark: -mark.p):
            place = placed(mark.quote, response, [(span.start, span.end) for span in spans])
            if place is None:
                lost += 1
                continue
            start, end = place
            if any(span.start < end and start < span.end for span in spans):
                continue
            instead = mark.instead.strip()
            text = response[start:end]
            category = category_of(mark.category)
            spans.append(Span(start, end, text, mark.p, category, self.name, instead))
        return tuple(sorted(spans, key=lambda span: span.start)), lost


def example_shown(example: SpanExample, fence: Fence) -> str:
    """One example for a prompt: each of its texts in a fence of its own."""
    marks = [
        {
            "reason": example.reason,
            "quote": s.text,
            "category": s.category,
            "instead": s.instead,
            "p": s.p,
        }
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
        asking = self._asking(
            "span_vote",
            view.view.case,
            stop,
            role="span adjudicator",
            slot=f"span {span.start} to {span.end}",
            schema=VOTE.schema,
        )
        lines = passage_lines(view.view.evidence)
        fields = _vote_fields(asking, view, span)
        ended = last_turns(asking, view)
        asking, messages = fitted_debate(asking, ended, fields, lines, "evidence")
        vote = ask_structured(asking.say, messages, VOTE, asking.mend)
        reason = vote.reason.strip() or "It gave no reason."
        ruled = replace(span, p=round(vote.p, 3))
        least = self._work.learned.threshold.votes.at(view.view.case.language)
        if least is None:
            return SpanRuling(ruled, vote.hallucinated, reason)
        how = "kept" if ruled.p >= least else "dropped"
        told = f"{reason} Learned from people: {how} at p = {ruled.p:.2f}, kept from {least:.2f}."
        return SpanRuling(ruled, ruled.p >= least, told)


def _vote_fields(asking: PromptCall, view: JudgeView, span: Span) -> dict[str, str]:
    why = category_words(span.category)
    if span.instead:
        why = f"{why}; the evidence says: {span.instead}"
    return {
        "response": asking.fenced("response", view.view.case.response),
        "words": asking.fenced("words", span.text),
        "why": asking.fenced("why", why),
    }


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

    def __init__(self, seat: Seat, work: AgentContext, number: int, *, sees_evidence: bool) -> None:
        super().__init__(seat, work)
        self._role = f"{PANEL}{number}"
        self._sees_evidence = sees_evidence

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Its spans in order of their place; each quote's likeliest place in the response.

        Raises ReplyError: twice nothing of what it quotes stands in the response.
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

        Raises ReplyError: twice it voted on none of them.
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
    ) -> PromptCall:
        return self._asking(
            prompt, view.case, stop, role=self._role, slot=slot, schema=shape.schema
        )

    def _fields(self, asking: PromptCall, view: CaseView) -> dict[str, str]:
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
