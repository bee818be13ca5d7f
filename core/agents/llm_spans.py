"""Spans by a language model: one marks the words that do not hold, another votes on each.

Source: MSA (extraction and adjudication). What a model quotes must stand in the response; what
stands nowhere is dropped, counted and said, never put somewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
from rapidfuzz.distance import JaroWinkler

from core.agents.ask import Asking, LlmAgent
from core.agents.laid_out import passage_lines
from core.agents.placed import placed
from core.agents.told import fitted_debate, last_turns
from core.categories import CATEGORY_WORDS, Category
from core.concurrency import Stop
from core.errors import ModelError
from core.learned_marks import SpanExample
from core.models.call import Message
from core.models.injection import Fence
from core.models.prompting import filled
from core.models.structured import Shape, Unusable, ask_structured
from core.records import Case, Judgement, Label, Span
from core.reviews import category_words
from core.roles import JudgeView, SpanRuling

CATEGORIES = tuple(CATEGORY_WORDS)
LIKE_FROM = 0.85
EXAMPLES_PROMPT = "span_examples"
# A category in other words costs no mark: the model is told the names, and is read generously.
Named = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(CATEGORIES)})]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class _Mark(msgspec.Struct, frozen=True):
    reason: str
    quote: str
    category: Named
    instead: str
    p: Probability


class _Marks(msgspec.Struct, frozen=True):
    spans: list[_Mark]


class _Vote(msgspec.Struct, frozen=True):
    reason: str
    hallucinated: bool
    p: Probability


MARKS, VOTE = Shape(_Marks), Shape(_Vote)


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
        self, asking: Asking, lines: Sequence[str], fields: Mapping[str, str], case: Case
    ) -> tuple[Asking, tuple[Message, ...]]:
        """The messages, with the examples unless they would take a passage's place."""
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

        Raises:
            ReplyError: twice nothing of what it quotes stands in the response.
        """
        if judgement.label != "hallucinated":
            return ()
        case = view.view.case
        asking = self._asking(
            "spans", case, stop, role="span extractor", slot="spans", schema=MARKS.schema
        )
        fields = {
            "question": asking.fenced("question", case.question),
            "response": asking.fenced("response", case.response),
            "finding": asking.fenced("finding", judgement.prose or judgement.text),
        }
        lines = passage_lines(view.view.evidence)
        asking, messages = self._fitted(asking, lines, fields, case)

        def check(marks: _Marks) -> None:
            if marks.spans and not self._spans(case.response, marks)[0]:
                raise Unusable(
                    "None of the quotes stands in the response; copy them from it exactly."
                )

        marks = ask_structured(asking.say, messages, MARKS, asking.mend, check)
        spans, lost = self._spans(case.response, marks)
        if lost:
            said = f"{lost} of {len(marks.spans)} places that {self.name} marked"
            self._work.notes.add(f"{said} stand nowhere in the text under review: left out.")
        return spans

    def _spans(self, response: str, marks: _Marks) -> tuple[tuple[Span, ...], int]:
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


def _vote_fields(asking: Asking, view: JudgeView, span: Span) -> dict[str, str]:
    """The words, and why they were marked."""
    why = category_words(span.category)
    if span.instead:
        why = f"{why}; the evidence says: {span.instead}"
    return {
        "response": asking.fenced("response", view.view.case.response),
        "words": asking.fenced("words", span.text),
        "why": asking.fenced("why", why),
    }
