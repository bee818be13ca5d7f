"""The rule checker: a debater that compares values and words and trusts nothing else.

It says “hallucinated” only for a contrast it can name (numbers and units, dates, names, negation,
quantifiers, superlatives, "only", swapped roles, sums), and “supported” only when nearly every
word that matters is carried and no value is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.builtin.alignment import is_vital
from core.builtin.arithmetic import Sum
from core.builtin.assess import FULL_COVERAGE, Assessment, Found, assess
from core.builtin.claims import claim_of
from core.builtin.manners import is_spoken, turn_in_manner, wrong_of
from core.builtin.nothing_new import new_words
from core.builtin.remarks import answered, pointed_at
from core.builtin.rules_said import own_of, speech
from core.builtin.speech import quote_of, turn_said
from core.concurrency import Stop
from core.records import Point, Quote, Stance, Turn
from core.roles import DebateView, Speak

CONTRADICTED_FROM = 0.5
SUPPORTED_FROM = 0.8
MOST_QUOTES = 3
RULE = """Compares the statement, clause by clause, with each passage it was given.
1. Numbers (with units, rounding and bounds), dates, names, opposites, denials with their scope,
   quantifiers, ranks and superlatives, “only”, swapped roles, conditions, hedges, the kind of
   answer, sums, differences and durations are compared in the closest clause. A value or name of
   one part of a sentence (“leaves at 10:15 and arrives at 12:40”) is not another part's.
2. A contrast counts when enough of the rest of the clause is carried there; its weight grows
   with that share. One contrast of weight 0.5 or more: hallucinated.
3. Four fifths or more carried, no contrast, no value or name missing: supported. So is what two
   turns make (“not 600 m” against “412 m”).
4. Otherwise unclear. A passage that another debater quotes, or a person points to, is read too."""


class RuleChecker:
    """Built-in debater; deterministic."""

    name = "Rule checker"
    built_in = True
    rule = RULE

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn over all statements, the gravest first."""
        allowed = view.share | quoted_ids(view)
        assessments: list[Assessment] = []
        for statement in view.view.statements:
            stop.check()
            claim = claim_of(view.view.case, statement)
            if claim.has_content:
                passages = view.view.evidence.of(statement.index, allowed)
                assessments.append(assess(claim, passages, view.view.sources))
        stances = [stance_of(item) for item in assessments]
        stance = overall(stances)
        points = tuple(point for item in assessments for point in points_of(item))
        if is_spoken(view.manner):
            own = own_of(assessments, stances, stance, points, _quotes(points))
            statements = [item.claim.statement.index for item in assessments]
            own = replace(own, wrong=wrong_of(statements, stances))
            turn = turn_in_manner(view, self.name, own)
        else:
            quotes, words = _quotes(points), speech(view, assessments, stances, stance)
            said = [*answered(view), *new_words(words, stance, quotes, view)]
            turn = turn_said(view, self.name, stance, said, quotes=quotes, points=points)
        speak(turn.text)
        return turn


def _quotes(points: Sequence[Point]) -> tuple[Quote, ...]:
    """The passages behind the points, those that contradict first."""
    ordered = sorted(points, key=lambda p: (p.finding != "contradicted", -p.weight))
    return tuple(dict.fromkeys(p.quote for p in ordered if p.quote))[:MOST_QUOTES]


def quoted_ids(view: DebateView) -> frozenset[str]:
    """Ids of the passages that any debater has quoted so far, or a person has pointed to."""
    places = {(q.source_id, q.start) for turn in view.turns for q in turn.quotes}
    quoted = (
        p.id for p in view.view.evidence.passages.values() if (p.source_id, p.start) in places
    )
    return frozenset(quoted) | {passage.id for passage in pointed_at(view)}


def stance_of(item: Assessment) -> Stance:
    """The rule checker's stance on one statement."""
    strongest = max((f.contrast.weight for f in item.contradictions), default=0.0)
    if item.claim.denied:
        if strongest >= CONTRADICTED_FROM:
            return "supported"
        return "hallucinated" if item.weakest >= FULL_COVERAGE else "unclear"
    if strongest >= CONTRADICTED_FROM:
        return "hallucinated"
    if item.adds_up:
        return "supported"
    vital = any(is_vital(unit) for unit in item.missing)
    if item.weakest >= SUPPORTED_FROM and not vital:
        return "supported"
    return "unclear"


def overall(stances: Sequence[Stance]) -> Stance:
    """One wrong statement makes the response wrong; all must hold for it to be supported."""
    if "hallucinated" in stances:
        return "hallucinated"
    if stances and all(stance == "supported" for stance in stances):
        return "supported"
    return "unclear"


def points_of(item: Assessment) -> list[Point]:
    """What the comparison found, as points with places in the response."""
    if item.claim.answer is not None:
        return _points_of_answer(item)
    points = [_contradicted(item, found) for found in item.contradictions]
    if item.adds_up and item.total and not points:
        points.append(_adds_up(item, item.total))
    elif item.supporting and not points:
        points.append(_carried(item))
    return points


def _contradicted(item: Assessment, found: Found) -> Point:
    contrast = found.contrast
    start, end = item.claim.place(contrast.start, contrast.end) or (0, 0)
    return Point(
        item.claim.statement.index,
        "contradicted",
        start,
        end,
        contrast.claim,
        contrast.category,
        contrast.evidence,
        contrast.explanation,
        contrast.weight,
        quote_of(found.passage),
    )


def _points_of_answer(item: Assessment) -> list[Point]:
    """A yes or no is one point: the words of the question are not the answer's."""
    stance, closest = stance_of(item), item.closest
    if stance == "unclear" or closest is None or item.claim.answer is None:
        return []
    wrong = stance == "hallucinated"
    found = item.contradictions[0].contrast if item.contradictions else None
    return [
        Point(
            item.claim.statement.index,
            "contradicted" if wrong else "carried",
            *item.claim.answer,
            item.claim.answer_words,
            "contradicted",
            found.evidence if found and wrong else closest.text,
            found.explanation if found else "the evidence affirms what was asked",
            found.weight if found else 0.8,
            quote_of(closest),
        )
    ]


def _adds_up(item: Assessment, total: Sum) -> Point:
    own = item.claim.statement
    return Point(
        own.index,
        "carried",
        own.start,
        own.end,
        own.text,
        "reasoning",
        total.words,
        f"the evidence's own numbers give {total.words}",
        0.9,
        quote_of(total.passage),
    )


def _carried(item: Assessment) -> Point:
    own, passage = item.claim.statement, item.supporting[0]
    return Point(
        own.index,
        "carried",
        own.start,
        own.end,
        own.text,
        "harmless_addition",
        passage.text,
        "the passage carries all of it",
        round(item.coverage, 3),
        quote_of(passage),
    )
