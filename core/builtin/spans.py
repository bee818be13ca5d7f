"""Spans, built in: the words that the debaters contested, put to a vote of what was shown.

A contrast with a verified quote counts with its weight; words that nothing carries count for
less; words that both debaters contest count for more. Spans are kept only when the verdict is
hallucinated: the machine does not mark words of what it calls supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.concurrency import Stop
from core.records import Judgement, Label, Point, Span
from core.roles import JudgeView, SpanRuling

KEPT_FROM = 0.5
AGREEMENT_BONUS = 0.1
EXTRACTOR_RULE = """Every stretch of words that a debater or the judge contested in a statement that
the judge calls hallucinated, with the evidence's own value where there is one; missing words only
where the judge, who sees all the evidence, misses them too. Of stretches that overlap the one with
a contrast and the greater weight stands."""
ADJUDICATOR_RULE = """p is the weight of the strongest point on the span, 0.1 more when several
raise it. Kept at p of 0.5 or more, and only under the verdict hallucinated."""


class PointSpanExtractor:
    """Built-in span extractor."""

    name = "Point span extractor"
    built_in = True
    rule = EXTRACTOR_RULE

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Spans from the debate's points, in order of their place."""
        response = view.view.case.response
        raised: list[tuple[Point, str]] = [
            (point, turn.agent)
            for turn in view.turns
            for point in turn.points
            if _stands(point, judgement)
        ]
        raised += [(point, judgement.agent) for point in judgement.points]
        summed = {p.statement for p, _ in raised if p.category == "reasoning"}
        raised = [
            (point, agent)
            for point, agent in raised
            if point.finding == "contradicted"
            or (point.finding == "missing" and point.statement not in summed)
        ]
        raised.sort(key=lambda item: (item[0].finding != "contradicted", -item[0].weight))
        spans: list[Span] = []
        for point, agent in raised:
            twin = next((s for s in spans if s.start < point.end and point.start < s.end), None)
            if twin is None:
                spans.append(_span(point, agent, response))
            elif agent not in twin.source.split(", "):
                spans[spans.index(twin)] = replace(twin, source=f"{twin.source}, {agent}")
        return _joined(sorted(spans, key=lambda span: span.start), response)


class VotingSpanAdjudicator:
    """Built-in span adjudicator."""

    name = "Span adjudicator"
    built_in = True
    rule = ADJUDICATOR_RULE

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Kept or dropped, with its final probability."""
        both = "," in span.source
        p = round(min(0.99, span.p + (AGREEMENT_BONUS if both else 0.0)), 3)
        final = replace(span, p=p)
        if label != "hallucinated":
            return SpanRuling(final, False, f"The verdict is {label}.")
        if p < KEPT_FROM:
            return SpanRuling(final, False, f"p = {p:.2f} is below {KEPT_FROM}.")
        raised = "several agents contest it" if both else "one agent contests it"
        return SpanRuling(final, True, f"p = {p:.2f}: {raised}.")


def _stands(point: Point, judgement: Judgement) -> bool:
    """True for a debater's point that the judge, who saw all evidence, leaves standing.

    A statement that is not hallucinated has no wrong words; words that one debater did not find in
    its share are missing only if the judge did not find them either.
    """
    labels = judgement.statement_labels
    if point.statement < len(labels) and labels[point.statement] != "hallucinated":
        return False
    if point.finding != "missing":
        return True
    return any(
        own.finding == "missing" and own.start < point.end and point.start < own.end
        for own in judgement.points
    )


def _joined(spans: Sequence[Span], response: str) -> tuple[Span, ...]:
    """Neighbours without a gap as one: a Chinese name is missed character by character."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        alike = last and last.end == span.start and not (last.instead or span.instead)
        if last and alike and (last.category, last.source) == (span.category, span.source):
            text = response[last.start : span.end]
            joined[-1] = replace(last, end=span.end, text=text, p=max(last.p, span.p))
        else:
            joined.append(span)
    return tuple(joined)


def _span(point: Point, agent: str, response: str) -> Span:
    return Span(
        point.start,
        point.end,
        response[point.start : point.end],
        point.weight,
        point.category,
        agent,
        point.evidence,
        point.quote,
    )
