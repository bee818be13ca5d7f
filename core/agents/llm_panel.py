"""Span agents on language models: mark wrong words and vote on marks (MSA 3.1, 3.3, appendix A).

A panel sees neither the debate nor who marked a span. What a model quotes must stand in the
response; quotes that do not are dropped, counted and reported.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from rapidfuzz.distance import JaroWinkler

from core.agents.agent_runner import AgentContext, LlmAgent, PromptCall
from core.agents.reply_parser import CJK_LETTER
from core.agents.transcript import build_last_turns, fit_debate, format_passages
from core.documents.quotes import locate_quote
from core.documents.segmentation import split_sentences
from core.llm.call import (
    ReplySchema,
    UnusableReply,
    ask_structured,
    decodes_by_grammar,
    with_property_schema,
)
from core.llm.prompting import Fence, fill_prompt
from core.runtime.concurrency import StopSignal
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
    get_base_language,
)
from core.schema.reviews import format_category
from core.schema.roles import CaseView, JudgeView, SpanRuling
from core.schema.rosters import PANEL_ROLE_PREFIX, AgentConfig

CATEGORY_NAMES = tuple(CATEGORY_WORDS)
MIN_CATEGORY_SIMILARITY = 0.85  # similarity from which a category is recognised
EXAMPLES_PROMPT = "span_examples"
# A server's grammar lets a small model quote only what stands in the response; without it such a
# model writes the dots of the prompt's example. More choices than these slow the server down.
MAX_QUOTABLE = 1000
MAX_QUOTED_WORDS = 12  # of a quote that is no whole sentence
MIN_QUOTED_WORDS = 5
QUOTABLE_WORD = re.compile(rf"{CJK_LETTER.pattern}|(?:(?!{CJK_LETTER.pattern})\S)+")
CHARS_BEFORE = 60  # characters before a span, which tell equal words apart
MISSING_VOTE = SpanVote(None, "It gave no vote on these words.")
MISSING_REASON = "It gave no reason."
# The schema lists the categories, but another wording is accepted, as it should cost no mark.
CategoryName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(CATEGORY_NAMES)})]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class _ExtractedSpan(msgspec.Struct, frozen=True):
    reason: str
    quote: str
    category: CategoryName
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


MARKS_SCHEMA, VOTES_SCHEMA = ReplySchema(_Marks), ReplySchema(_Votes)
EXTRACTION_SCHEMA, VOTE_SCHEMA = ReplySchema(_ExtractedSpans), ReplySchema(_SpanVote)


class SpanMarkingAgent(LlmAgent):
    """An agent that marks words, with people's corrections as examples if there are any."""

    apart = True  # of overlapping marks only the most probable is kept

    @property
    def rule(self) -> str:
        """The prompts in force; with examples also their prompt and which cases they are."""
        examples = self._context.learned.examples_words
        if not examples:
            return super().rule
        return f"{super().rule}\n\n{self._prompts_words(EXAMPLES_PROMPT)}\n{examples}"

    def _mark_spans(
        self,
        call: PromptCall,
        fields: Mapping[str, str],
        lines: Sequence[str],
        case: Case,
        schema: ReplySchema[Any],
    ) -> tuple[Span, ...]:
        """Return the reply's spans in order; of marks on one place the most probable stays.

        Examples from corrections are added unless they would displace a passage.
        """
        quotable = _list_quotable(case) if decodes_by_grammar(self._agent) else ()
        if quotable:
            call = replace(
                call, schema=with_property_schema(call.schema, "quote", {"enum": quotable})
            )
        final_call, messages, passages = call.fitted(lines, fields, "evidence")
        if preface := self._format_examples(case):
            longer_call, kept = replace(call, preface=preface), -1
            with contextlib.suppress(ModelError):
                longer_call, with_examples, kept = longer_call.fitted(lines, fields, "evidence")
            if kept >= passages:
                final_call, messages = longer_call, with_examples
            else:
                self._context.notes.add(
                    "The examples from corrections did not fit the model's window beside the "
                    f"evidence: {self.name} marked without them."
                )

        def check(marks: Any) -> None:
            if marks.spans and not self._locate_spans(case.response, marks.spans)[0]:
                raise UnusableReply(
                    "None of the quotes stands in the response; copy them from it exactly."
                )

        marks = ask_structured(final_call.say, messages, schema, final_call.mend, check).spans
        spans, lost = self._locate_spans(case.response, marks)
        if lost:
            self._context.notes.add(
                f"{lost} of {len(marks)} places that {self.name} marked stand nowhere in the text "
                "under review: left out."
            )
        return tuple(sorted(spans, key=lambda span: (span.start, span.end)))

    def _locate_spans(
        self, response: str, marks: Sequence[_ExtractedSpan]
    ) -> tuple[list[Span], int]:
        """Return (the spans, most probable first; how many quotes are not in the response)."""
        spans: dict[tuple[int, int], Span] = {}
        lost = 0
        for mark in sorted(marks, key=lambda mark: -mark.p):
            before = mark.before if isinstance(mark, _Mark) else ""
            place = locate_quote(mark.quote, response, tuple(spans), before)
            if place is None:
                lost += 1
            elif place not in spans and not (
                self.apart and any(start < place[1] and place[0] < end for start, end in spans)
            ):
                text, instead = response[slice(*place)], mark.instead.strip()
                kind = match_category(mark.category)
                spans[place] = Span(*place, text, mark.p, kind, self.name, instead)
        return list(spans.values()), lost

    def _format_examples(self, case: Case) -> str:
        """Return the corrected cases to show before the case, fenced; empty if there are none."""
        examples = self._context.learned.examples
        if not examples:
            return ""
        texts = "\n\n".join(format_example(each, self._context.fence) for each in examples)
        prompt = self._context.book.prompt(EXAMPLES_PROMPT, case.language)
        return fill_prompt(prompt, {"examples": texts})[-1].text


class LlmSpanExtractor(SpanMarkingAgent):
    """Span extractor on a language model."""

    prompts = ("spans",)

    def propose(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> tuple[Span, ...]:
        """Return spans ordered by offset, without overlap; none unless it is hallucinated.

        Raises ReplyError if in two replies no quote stands in the response.
        """
        if judgement.label != "hallucinated":
            return ()
        case = view.case_view.case
        call = self._asking(
            "spans",
            case,
            stop,
            role="span extractor",
            slot="spans",
            schema=EXTRACTION_SCHEMA.json_schema,
        )
        finding = judgement.prose or judgement.text
        fields = call.fields(question=case.question, response=case.response, finding=finding)
        return self._mark_spans(
            call, fields, format_passages(view.case_view.evidence), case, EXTRACTION_SCHEMA
        )


def _list_quotable(case: Case) -> tuple[str, ...]:
    """Return what of the response may be quoted: its sentences and up to so many of its words.

    Empty if the response is too long for that.
    """
    text = case.response
    words = [match.span() for match in QUOTABLE_WORD.finditer(text)]
    longest = min(MAX_QUOTED_WORDS, MAX_QUOTABLE // max(1, len(words)))
    if longest < MIN_QUOTED_WORDS:
        return ()
    sentences = (text[s.start : s.end] for s in split_sentences(text, case.language))
    pieces = (
        text[words[first][0] : words[last][1]].strip('.,;:!?"“”()。，；：！？')
        for first in range(len(words))
        for last in range(first, min(first + longest, len(words)))
    )
    return tuple(dict.fromkeys(piece for piece in (*pieces, *sentences) if piece))


def format_example(example: SpanExample, fence: Fence) -> str:
    """Return an example for a prompt, each of its texts in its own fence."""
    marks = [
        {"reason": example.reason, "quote": s.text}
        | {"category": s.category, "instead": s.instead, "p": s.p}
        for s in example.spans
    ]
    answer = msgspec.json.encode({"spans": marks}).decode()
    parts = [("example question", example.question)] if example.question.strip() else []
    parts += [("example response", example.response), ("example marks", answer)]
    return "\n".join(fence.around(kind, text) for kind, text in parts)


def match_category(words: str) -> Category:
    """Return the most similar category, or `contradicted` if none is similar enough."""
    name = words.strip().casefold().replace(" ", "_")
    likest = max(CATEGORY_NAMES, key=lambda category: JaroWinkler.similarity(name, category))
    return (
        likest
        if JaroWinkler.similarity(name, likest) >= MIN_CATEGORY_SIMILARITY
        else "contradicted"
    )


class LlmSpanAdjudicator(LlmAgent):
    """Span adjudicator on a language model: one vote on one span."""

    prompts = ("span_vote",)

    @property
    def rule(self) -> str:
        """The prompts in force, and the learned threshold of p, if any."""
        learned = self._context.learned.threshold
        words = learned.votes.words
        sentence = f"Kept from p, learned from people (no. {learned.number}): {words}."
        return f"{super().rule}\n\n{sentence}" if words else super().rule

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: StopSignal) -> SpanRuling:
        """Keep the span if the vote says hallucinated, with the vote's probability.

        If a threshold was learned from people's marks, the probability decides (MSA 3.3).
        """
        if label != "hallucinated":
            return SpanRuling(span, False, f"The verdict is {label}.")
        case, slot = view.case_view.case, f"span {span.start} to {span.end}"
        call = self._asking(
            "span_vote",
            case,
            stop,
            role="span adjudicator",
            slot=slot,
            schema=VOTE_SCHEMA.json_schema,
        )
        claim = format_category(span.category)
        claim += f"; the evidence says: {span.instead}" if span.instead else ""
        fields = call.fields(response=case.response, words=span.text, why=claim)
        lines = format_passages(view.case_view.evidence)
        debate_end = build_last_turns(call, view)
        call, messages = fit_debate(call, debate_end, fields, lines, "evidence")
        vote = ask_structured(call.say, messages, VOTE_SCHEMA, call.mend)
        reason = vote.reason.strip() or MISSING_REASON
        ruled = replace(span, p=round(vote.p, 3))
        least = self._context.learned.threshold.votes.at(case.language)
        if least is None:
            return SpanRuling(ruled, vote.hallucinated, reason)
        outcome = "kept" if ruled.p >= least else "dropped"
        return SpanRuling(
            ruled,
            ruled.p >= least,
            f"{reason} Learned from people: {outcome} at p = {ruled.p:.2f}, kept from {least:.2f}.",
        )


class LlmPanelist(SpanMarkingAgent):
    """Panel member on a language model; `number` is its place in the panel, from 1."""

    prompts = ("panel_spans", "panel_votes")
    apart = False

    def __init__(
        self, agent: AgentConfig, context: AgentContext, number: int, *, sees_evidence: bool
    ) -> None:
        super().__init__(agent, context)
        self._role = f"{PANEL_ROLE_PREFIX}{number}"
        self._sees_evidence = sees_evidence

    def extract(self, view: CaseView, stop: StopSignal) -> tuple[Span, ...]:
        """Return its spans ordered by offset, each at its quote's likeliest place.

        Raises ReplyError if in two replies no quote stands in the response.
        """
        call, fields, lines = self._prepare_call("panel_spans", view, stop, "spans", MARKS_SCHEMA)
        spans = self._mark_spans(call, fields, lines, view.case, MARKS_SCHEMA)
        return tuple(replace(span, p=round(span.p, 3)) for span in spans)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: StopSignal) -> tuple[SpanVote, ...]:
        """Return a vote on each span, all from one call; `MISSING_VOTE` where the reply has none.

        Raises ReplyError if two replies vote on none of the spans.
        """
        slot = f"votes on {spans[0].source}"
        call, fields, lines = self._prepare_call("panel_votes", view, stop, slot, VOTES_SCHEMA)
        numbers, response = range(1, len(spans) + 1), view.case.response
        items = [
            {
                "number": number,
                "after": " ".join(response[max(0, span.start - CHARS_BEFORE) : span.start].split()),
                "words": span.text,
            }
            for number, span in enumerate(spans, 1)
        ]
        fields |= call.fields(words=msgspec.json.encode(items).decode())
        call, messages, _ = call.fitted(lines, fields, "evidence")
        asked = {"enum": list(numbers)}
        call = replace(call, schema=with_property_schema(call.schema, "number", asked))

        def check(votes: _Votes) -> None:
            if not any(vote.number in numbers for vote in votes.votes):
                raise UnusableReply(f"Vote on each of the numbers 1 to {len(spans)}.")

        votes = ask_structured(call.say, messages, VOTES_SCHEMA, call.mend, check).votes
        by_number = {
            vote.number: SpanVote(round(vote.p, 3), vote.reason.strip() or MISSING_REASON)
            for vote in reversed(votes)
            if vote.number in numbers
        }
        if strange := len(votes) - len(by_number):
            self._context.notes.add(
                f"{strange} of {len(votes)} votes of {self.name} were on nothing that was asked, "
                "or on the same words again: left out."
            )
        return tuple(by_number.get(number, MISSING_VOTE) for number in numbers)

    def _prepare_call(
        self, prompt: str, view: CaseView, stop: StopSignal, slot: str, schema: ReplySchema[Any]
    ) -> tuple[PromptCall, dict[str, str], list[str]]:
        """Return (the call, the fields besides the evidence, the lines of the evidence)."""
        case, slot = view.case, f"{self._role}: {slot}"
        call = self._asking(
            prompt, case, stop, role=self._role, slot=slot, schema=schema.json_schema
        )
        fields = call.fields(question=case.question, response=case.response)
        lines = format_passages(view.evidence) if self._sees_evidence else []
        return call, fields | {"language": get_base_language(case.language)}, lines
