"""What the rule checker says of its comparison: as CEDA's debater, and the best of each side."""

from __future__ import annotations

from collections.abc import Sequence

from core.builtin.assess import Assessment
from core.builtin.manners import Own, Side
from core.builtin.speech import (
    capitalised,
    cited,
    counted,
    joined_texts,
    listed,
    quote_of,
    shortened,
)
from core.records import Point, Quote, Stance, Turn
from core.roles import DebateView

NO_STATEMENT = "There is nothing in this text that evidence could support or contradict."
ADDS_UP = 0.9
HALF = 0.5  # lacking support is half of what a contradiction is


def own_of(
    assessments: Sequence[Assessment],
    stances: Sequence[Stance],
    stance: Stance,
    points: Sequence[Point],
    quotes: Sequence[Quote],
) -> Own:
    """What the rules have for each side; for the other side what speaks for it best, if any."""
    if not assessments:
        return Own(stance, {stance: Side((NO_STATEMENT,))}, "")
    holds, fails = zip(*(_strengths(item) for item in assessments), strict=True)
    strengths = {"supported": min(holds), "hallucinated": max(fails)}
    best = {"supported": _speaks_for(assessments), "hallucinated": _speaks_against(assessments)}
    sides: dict[Stance, Side] = {
        side: Side(*best[side], strength=strengths[side]) for side in ("supported", "hallucinated")
    }
    sure = strengths.get(stance, 1.0 - max(strengths.values()))
    words = _opening(assessments, stances, stance)
    known = dict.fromkeys([*quotes, *_cited_in(words, assessments)])
    sides[stance] = Side(tuple(words), tuple(known), sure)
    return Own(stance, sides, _doubt(assessments, stance), tuple(points))


def _cited_in(words: Sequence[str], assessments: Sequence[Assessment]) -> list[Quote]:
    """The passages that the sentences cite: where nothing is contested, no point has them."""
    said = " ".join(words)
    closest = [item.closest for item in assessments]
    return [quote_of(passage) for passage in closest if passage and cited(passage) in said]


def _strengths(item: Assessment) -> tuple[float, float]:
    """(how far the evidence carries the statement, how far it speaks against it), in [0, 1]."""
    if item.closest is None:
        return 0.0, 0.0
    strongest = max((found.contrast.weight for found in item.contradictions), default=0.0)
    if item.claim.denied:
        return strongest, item.weakest * (1.0 - strongest)
    if item.adds_up:
        return ADDS_UP, 1.0 - ADDS_UP
    holds = item.weakest * (1.0 - strongest)
    return holds, strongest or HALF * (1.0 - item.weakest)


def _speaks_for(assessments: Sequence[Assessment]) -> tuple[tuple[str, ...], tuple[Quote, ...]]:
    """The passage that carries most of a statement."""
    item = max(assessments, key=lambda a: a.coverage)
    best = max(item.parts, key=lambda part: part.coverage, default=None)
    if item.claim.denied or best is None or best.best is None or not best.coverage:
        return (), ()
    passage = best.best.passage
    share = f"{round(100 * item.coverage)} % of what it says is carried"
    return (f"{share}, most of it by {cited(passage)}.",), (quote_of(passage),)


def _speaks_against(
    assessments: Sequence[Assessment],
) -> tuple[tuple[str, ...], tuple[Quote, ...]]:
    """The strongest contrast, however weak, else what no passage mentions."""
    found = [f for a in assessments if not a.claim.denied for f in a.contradictions]
    if found:
        first = max(found, key=lambda f: f.contrast.weight)
        words = f"{capitalised(first.contrast.explanation)}: {cited(first.passage)}."
        return (words,), (quote_of(first.passage),)
    missing = joined_texts([unit for item in assessments for unit in item.missing])
    return ((f"No passage mentions {listed(missing)}.",) if missing else ()), ()


def _doubt(assessments: Sequence[Assessment], stance: Stance) -> str:
    """The one way in which comparing words and values would most likely be mistaken here."""
    if stance == "hallucinated":
        found = [f.contrast for item in assessments for f in item.contradictions]
        if found:
            what = f"“{shortened(found[0].claim, 40)}” and “{shortened(found[0].evidence, 40)}”"
            return f"{what} may be said of different things."
        return "What was asked may be affirmed of something else."
    if stance == "supported":
        return "A denial in other words would escape a comparison of words and values."
    return "The passages may say it in words that I do not match."


def speech(
    view: DebateView,
    assessments: Sequence[Assessment],
    stances: Sequence[Stance],
    stance: Stance,
) -> list[str]:
    """The case in the first turn; an answer to the other's last words in later ones."""
    mine = [turn for turn in view.turns if turn.debater == view.debater]
    other = view.turns[-1] if view.turns else None
    if not assessments:
        return [NO_STATEMENT]
    if mine and other and mine[-1].stance == stance:
        return _rejoinder(mine, other, assessments, stances, stance)
    return _opening(assessments, stances, stance)


def _opening(
    assessments: Sequence[Assessment], stances: Sequence[Stance], stance: Stance
) -> list[str]:
    """The case for the stance, when nobody is answered."""
    if stance == "hallucinated":
        return _against(assessments, stances)
    if stance == "supported":
        return _in_favour(assessments)
    return _undecided(assessments, stances)


def _rejoinder(
    mine: Sequence[Turn],
    other: Turn,
    assessments: Sequence[Assessment],
    stances: Sequence[Stance],
    stance: Stance,
) -> list[str]:
    """What the rules say to the other's last words."""
    found = [f for a, s in zip(assessments, stances, strict=True) for f in a.contradictions]
    said = " ".join(turn.text for turn in mine)
    if stance == "hallucinated" and found:
        known = said.casefold()
        fresh = next((f for f in found if f.contrast.explanation.casefold() not in known), None)
        if fresh is not None:
            return [f"Also, {fresh.contrast.explanation}: {cited(fresh.passage)}."]
        contrast = found[0].contrast
        if other.stance == stance:
            return [f"We agree on “{contrast.claim}”; I have nothing to add."]
        if contrast.claim.casefold() in found[0].passage.text.casefold():
            return [f"“{contrast.claim}” does stand there, but it is said of something else."]
        return [
            f"Sharing words settles nothing: “{contrast.claim}” and "
            f"“{contrast.evidence}” cannot both hold."
        ]
    if stance == "supported" and other.stance == "hallucinated":
        words = [p.text for p in other.points if p.finding == "missing"]
        what = listed(words) if words else "what you miss"
        return [f"I have looked for {what} too: it changes no value, name or negation."]
    if stance == other.stance:
        return ["I see it the same way and have nothing to add."]
    return ["By rules alone I still cannot decide it."]


def _against(assessments: Sequence[Assessment], stances: Sequence[Stance]) -> list[str]:
    wrong = [a for a, s in zip(assessments, stances, strict=True) if s == "hallucinated"]
    wrong.sort(key=lambda a: -max((f.contrast.weight for f in a.contradictions), default=0.0))
    sentences = []
    if len(assessments) > 1:
        verb = "contradicts" if len(wrong) == 1 else "contradict"
        share = f"{len(wrong)} of {counted(len(assessments), 'statement')}"
        sentences.append(f"{share} {verb} the evidence.")
    for item in wrong[:2]:
        found = item.contradictions[0] if item.contradictions else None
        if found and not item.claim.denied:
            what = capitalised(found.contrast.explanation)
            sentences.append(f"{what}: {cited(found.passage)}.")
        elif item.closest:
            sentences.append(f"The evidence affirms what was asked: {cited(item.closest)}.")
    return sentences


def _in_favour(assessments: Sequence[Assessment]) -> list[str]:
    best = max(assessments, key=lambda a: a.coverage)
    if best.claim.denied and best.contradictions:
        found = best.contradictions[0]
        what = capitalised(found.contrast.explanation)
        return [f"The answer is right to deny it. {what}: {cited(found.passage)}."]
    if best.adds_up and best.total:
        return [f"The evidence's own numbers give {best.total.words}: {cited(best.total.passage)}."]
    subject = "the statement" if len(assessments) == 1 else f"all {len(assessments)} statements"
    sentences = [f"No value, name or negation of {subject} is contradicted."]
    if best.closest:
        sentences.append(f"It is carried by {cited(best.closest)}.")
    return sentences


def _undecided(assessments: Sequence[Assessment], stances: Sequence[Stance]) -> list[str]:
    open_ones = [a for a, s in zip(assessments, stances, strict=True) if s == "unclear"]
    missing = joined_texts([u for item in open_ones for u in item.missing])
    if all(item.closest is None for item in open_ones):
        return ["I was given no passage that speaks about this."]
    sentences = ["I find no contradiction."]
    if missing:
        sentences.append(f"But no passage mentions {listed(missing)}.")
    else:
        sentences.append("But the passages share too little with the statement to carry it.")
    closest = max(open_ones, key=lambda a: a.coverage).closest
    if closest:
        sentences.append(f"Closest is {cited(closest)}.")
    return sentences
