"""How built-in debaters speak in each manner: what they found stays, the words follow the manner.

A debater hands over its `Own` findings; nothing is added to them here. Stances, quotes and points
are what the evidence gives; an assigned side is argued with what the evidence has for it, or with
nothing. Source: ColMAD 2.1 (answer), 2.2 (compete), 2.3 (collaborate), SC-MAKS 2.1.2 (reconsider,
tit for tat) and 2.1.4 (detect, critique, revise).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from core.builtin.critics import advise, attack
from core.builtin.found_out import Own as Own
from core.builtin.found_out import Said as Said
from core.builtin.found_out import Side as Side
from core.builtin.mended import mended, mendings_of
from core.builtin.nothing_new import has_said, new_words, nothing_new, own_turns
from core.builtin.remarks import answered
from core.builtin.speech import SIDES, WORDS_OF_STANCE, in_brief, listed, listed_plainly, reply_to
from core.manners import ANSWERING, Manner
from core.records import Point, Stance, Turn
from core.roles import DebateView

MOST_SURE = 0.95  # words that are all carried are no certainty
NOTHING = "I find nothing in my passages for this side."


Speaking = Callable[[DebateView, Own], Said]


def is_spoken(manner: Manner) -> bool:
    """True for a manner that has words of its own here; in others they speak as in CEDA."""
    return manner == "revise" or manner in SPEAKING


def turn_in_manner(view: DebateView, agent: str, own: Own) -> Turn:
    """The turn that is asked for: its stance first, after its reply where it answers somebody."""
    if view.manner == "revise":
        return _revised(view, agent, own)
    said = SPEAKING[view.manner](view, own)
    about = [turn for turn in view.turns if turn.debater == view.about]
    reply = said.reply or reply_to(said.stance, about or view.turns)
    opening, told = SIDES[said.stance], [] if view.about else answered(view)
    if view.manner in ANSWERING:
        opening = f"{reply.upper()}, {opening}"
    lines = [in_brief([f"{opening}.", *told, *said.words]), *said.lines]
    if said.confidence is not None:
        lines.append(f"Confidence: {round(100 * said.confidence)} %")
    if said.doubt:
        lines.append(f"Doubt: {said.doubt}")
    return Turn(
        debater=view.debater,
        agent=agent,
        number=view.number,
        round=view.round,
        reply=reply,
        stance=said.stance,
        text="\n".join(lines),
        quotes=tuple(said.quotes),
        points=tuple(said.points),
        confidence=said.confidence,
        doubt=said.doubt,
    )


def wrong_of(statements: Sequence[int], stances: Sequence[Stance]) -> frozenset[int]:
    """The indices of the statements that are called wrong; stances are in their order."""
    paired = zip(statements, stances, strict=True)
    return frozenset(index for index, stance in paired if stance == "hallucinated")


def with_confidence(words: Sequence[str], own: Own) -> Said:
    """These words for the debater's own stance, with its confidence and its doubt."""
    strength = own.side.strength
    confidence = None if strength is None else round(min(strength, MOST_SURE), 2)
    return Said(words, own.stance, own.side.quotes, own.points, confidence, own.doubt)


def others_of(view: DebateView) -> list[Turn]:
    """The last turn of each other debater that was heard, in the order in which they spoke."""
    last = {turn.debater: turn for turn in view.turns if turn.debater != view.debater}
    return sorted(last.values(), key=lambda turn: turn.number)


def not_said_yet(words: Sequence[str], view: DebateView) -> list[str]:
    """Those of the sentences that nobody has said so far."""
    said = " ".join(turn.text for turn in view.turns).casefold()
    return [sentence for sentence in words if sentence.casefold() not in said]


def _new_of(own: Own, view: DebateView) -> list[str]:
    """What it has for its stance beyond what it has said; where that is nothing, that it is."""
    return new_words(own.side.words, own.stance, own.side.quotes, view)


def _once(sentence: str, view: DebateView) -> list[str]:
    """The sentence, unless it has said it already."""
    return [] if has_said(view, sentence) else [sentence]


def _answer(view: DebateView, own: Own) -> Said:
    return with_confidence(own.side.words, own)


def _collaborate(view: DebateView, own: Own) -> Said:
    """What the others left out; where they differ, also what there is for their reading."""
    others = others_of(view)
    if not others:
        return _answer(view, own)
    mine = own_turns(view)
    differing = [turn for turn in others if turn.stance != own.stance]
    fresh = not_said_yet(own.side.words, view)
    nothing = nothing_new(own.stance, own.side.quotes)
    if mine and mine[-1].stance != own.stance:
        first = f"What the others quoted changes my mind: I now call it {_called(own)}."
        return with_confidence([first, *fresh], own)
    if not differing:
        names = listed_plainly([turn.debater for turn in others])
        verb = "comes" if len(others) == 1 else "come"
        rest = fresh or [nothing if mine else "I find nothing that was left out."]
        return with_confidence([*_once(f"{names} {verb} to the same.", view), *rest], own)
    names = listed_plainly([turn.debater for turn in differing])
    rest = [f"What {names} left out: {fresh[0]}", *fresh[1:]] if fresh else []
    for_them = not_said_yet(own.sides.get(differing[-1].stance, Side()).words, view)
    if for_them:
        rest.append(f"For {differing[-1].debater}’s reading I find this: {for_them[0]}")
    return with_confidence(rest or [nothing], own)


def _compete(view: DebateView, own: Own) -> Said:
    """The best that the evidence has for the assigned side; whoever has no side keeps its own."""
    stance = view.assigned or own.stance
    side = own.sides.get(stance, Side())
    fresh = not_said_yet(side.words, view)
    words = fresh or ([nothing_new(stance, side.quotes)] if side.words else [NOTHING])
    rival: Stance = "hallucinated" if stance == "supported" else "supported"
    against = own.sides.get(rival, Side()).strength
    if view.turns and against is not None and against < 0.5:
        reach = f"By my measure the other side reaches {round(100 * against)} of 100."
        words = [*words, *_once(reach, view)]
    return Said(words, stance, side.quotes, own.points if stance == own.stance else ())


def _reconsider(view: DebateView, own: Own) -> Said:
    """What the others' answers change, and where they differ what its own rests on."""
    others = others_of(view)
    mine = own_turns(view)
    if not others:
        return with_confidence(_new_of(own, view), own)
    if mine and mine[-1].stance != own.stance:
        first = f"What the others quoted changes my mind: I now call it {_called(own)}."
        return with_confidence([first, *own.side.words], own)
    differing = [turn for turn in others if turn.stance != own.stance]
    first = f"All come to {_called(own)}."
    if differing:
        names = listed_plainly([turn.debater for turn in differing])
        first = f"I have read what {names} said, and it does not change what I find."
    fresh = _new_of(own, view)
    is_said_again = bool(mine) and fresh[0] in mine[-1].text
    return with_confidence(fresh if is_said_again else [first, *fresh], own)


def _tit_for_tat(view: DebateView, own: Own) -> Said:
    """Its own view; where it has to oppose, the best that the evidence has for that side."""
    if view.assigned is not None:
        return _compete(view, own)
    others = others_of(view)
    words = _new_of(own, view)
    if others and others[-1].stance == own.stance:
        words = [*_once(f"Here {others[-1].debater} is right.", view), *words]
    elif others:
        theirs = own.sides.get(others[-1].stance, Side())
        granted = not_said_yet(theirs.words, view)
        words = [*words, *(f"What there is for the other side: {w}" for w in granted[:1])]
    return replace(with_confidence(words, own), confidence=None, doubt="")


def _detect(view: DebateView, own: Own) -> Said:
    """Its own view, with a line for each place that it contests."""
    said = with_confidence(own.side.words, own)
    return replace(said, lines=[f"Words: “{p.text}”" for p in _contested(own.points)])


def _critique(view: DebateView, own: Own) -> Said:
    """Which of the contested places its own reading bears out, and what should stand there.

    It keeps its own places, and others' contrasts in a statement that it calls wrong itself; words
    that others merely miss it keeps only where it misses them too.
    """
    mine = _contested(own.points)
    theirs = _contested([point for turn in others_of(view) for point in turn.points])
    fresh = [point for point in theirs if not any(_overlap(point, other) for other in mine)]
    taken = [p for p in fresh if p.finding == "contradicted" and p.statement in own.wrong]
    dropped = [p.text for p in fresh if p not in taken]
    kept = [*mine, *taken]
    words = [f"I keep {listed([p.text for p in kept])}." if kept else "I keep none of the places."]
    if dropped:
        words.append(f"My own reading does not bear out {listed(dropped)}.")
    said = with_confidence([*words, *_new_of(own, view)], own)
    lines = [f"Words: “{point.text}” -> “{point.evidence}”" for point in kept]
    return replace(said, points=kept, lines=lines, reply="agree" if kept else "deny")


def _revised(view: DebateView, agent: str, own: Own) -> Turn:
    """The response with the evidence's own values in the places that the critics keep."""
    response = view.view.case.response
    points = [point for turn in view.turns for point in turn.points]
    text = mended(response, mendings_of(points, response))
    reply = reply_to(own.stance, view.turns)
    return Turn(view.debater, agent, view.number, view.round, reply, own.stance, text)


def _contested(points: Sequence[Point]) -> list[Point]:
    """Those that contest words, each place once, in order."""
    places = {(p.start, p.end): p for p in reversed(points) if p.finding != "carried"}
    return [places[place] for place in sorted(places)]


def _overlap(one: Point, other: Point) -> bool:
    return one.start < other.end and other.start < one.end


def _called(own: Own) -> str:
    return f"“{WORDS_OF_STANCE[own.stance]}”"


SPEAKING: Mapping[Manner, Speaking] = {
    "answer": _answer,
    "collaborate": _collaborate,
    "compete": _compete,
    "reconsider": _reconsider,
    "advise": advise,
    "attack": attack,
    "tit_for_tat": _tit_for_tat,
    "detect": _detect,
    "critique": _critique,
}
