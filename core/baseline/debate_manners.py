"""How built-in debaters speak in each manner: what they found stays, the words follow the manner.

A debater hands over its `Own` findings; nothing is added to them here. Stances, quotes and points
are what the evidence gives; an assigned side is argued with what the evidence has for it, or with
nothing. It reads the same evidence each time, so where it has nothing to add in later rounds it
says so in a few words. Source: ColMAD 2.1 (answer), 2.2 (compete), 2.3 (collaborate), SC-MAKS 2.1.2
(reconsider, tit for tat), 2.1.4 (detect, critique, revise), 3.4 (advise, attack) and 5.4 (people
who speak in mid-debate).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.baseline.wording import (
    SIDES,
    WORDS_OF_STANCE,
    cited,
    edits_of,
    in_brief,
    listed,
    listed_plainly,
    reply_to,
    shortened,
    with_edits,
)
from core.records import Passage, Point, Quote, Reply, Stance, Turn
from core.roles import DebateView
from core.seats import ANSWERING, Manner

MOST_SURE = 0.95  # words that are all carried are no certainty
NOTHING = "I find nothing in my passages for this side."
PHRASE = "I have nothing new"
MOST_QUOTES = 2
QUOTED = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{4,})[”»」』\"]")
VALUE = re.compile(r"\d+(?:[.,]\d+)*")
ENDING = re.compile(r"\.\w{1,5}$")
NAME_CHARACTERS = 40
LEAST_NAME = 4  # characters of a file's name that can be told from a word


@dataclass(frozen=True)
class Side:
    """What the evidence has for a stance: sentences, the passages quoted in them, their weight.

    `strength` in [0, 1] is the debater's own measure; None where it cannot measure.
    """

    words: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    strength: float | None = None


@dataclass(frozen=True)
class Own:
    """What a built-in debater finds, however it is asked.

    `sides` has what speaks for each stance, its own and the others; `doubt` is the one way in which
    it would most likely be mistaken; `points` are places in the response; `wrong` are the indices
    of the statements that it calls wrong.
    """

    stance: Stance
    sides: Mapping[Stance, Side]
    doubt: str
    points: tuple[Point, ...] = ()
    wrong: frozenset[int] = frozenset()

    @property
    def side(self) -> Side:
        """What speaks for its own stance."""
        return self.sides.get(self.stance, Side())


@dataclass(frozen=True)
class Said:
    """What is said in a manner: sentences after the stance, and what goes with them.

    `reply` is given where it is not about the last message; `lines` stand by themselves.
    """

    words: Sequence[str]
    stance: Stance
    quotes: Sequence[Quote] = ()
    points: Sequence[Point] = ()
    confidence: float | None = None
    doubt: str = ""
    lines: Sequence[str] = field(default_factory=tuple)
    reply: Reply | None = None


Speaking = Callable[[DebateView, Own], Said]


def own_turns(view: DebateView) -> list[Turn]:
    """The debater's own turns that it is shown, in their order."""
    return [turn for turn in view.turns if turn.debater == view.debater]


def has_said(view: DebateView, sentence: str) -> bool:
    """True where it said so in a turn that it is shown."""
    return any(sentence.casefold() in turn.text.casefold() for turn in own_turns(view))


def new_words(
    sentences: Sequence[str], stance: Stance, quotes: Sequence[Quote], view: DebateView
) -> list[str]:
    """Those of the sentences for that stance that it has not said yet; without any, that it is so.

    Who came to an end of them before has none: turns from before that are not always shown.
    """
    own = own_turns(view)
    if not own or own[-1].stance != stance:
        return list(sentences)
    is_over = has_come_to_an_end(quotes, stance, view)
    fresh = [] if is_over else [said for said in sentences if not has_said(view, said)]
    return fresh or [nothing_new(stance, quotes)]


def has_come_to_an_end(quotes: Sequence[Quote], stance: Stance, view: DebateView) -> bool:
    """True where its last turn said that there was nothing new, and these are its quotes still."""
    last = own_turns(view)[-1:]
    return any(
        PHRASE in turn.text
        and turn.stance == stance
        and {quote.text for quote in quotes} <= {quote.text for quote in turn.quotes}
        for turn in last
    )


def nothing_new(stance: Stance, quotes: Sequence[Quote]) -> str:
    """In a few words: the stance that it holds to, and what it has quoted for it."""
    texts = list(dict.fromkeys(quote.text for quote in quotes))[:MOST_QUOTES]
    quoted = f"quoted {listed(texts)} and " if texts else ""
    return f"{PHRASE}: I {quoted}hold to “{WORDS_OF_STANCE[stance]}”."


def pointed_at(view: DebateView) -> tuple[Passage, ...]:
    """The passages that people's words quote, whose source they name, or that hold their values."""
    said = " ".join(words for _, words in view.remarks).casefold()
    quoted = [" ".join(found.split()) for found in QUOTED.findall(said)]
    values = set(VALUE.findall(said))
    return tuple(
        passage
        for passage in view.view.evidence.passages.values()
        if _is_named(passage, said)
        or any(quote in " ".join(passage.text.casefold().split()) for quote in quoted)
        or values & set(VALUE.findall(passage.text))
    )


def answered(view: DebateView) -> list[str]:
    """What is said to people, in one sentence, where it was not said yet; nothing unless asked."""
    if not view.remarks:
        return []
    who = shortened(" ".join(view.remarks[-1][0].split()) or "somebody", NAME_CHARACTERS)
    found = pointed_at(view)
    words = f"What {who} says names nothing in the sources; I go by the evidence alone."
    if found:
        words = f"I have read what {who} points to: {cited(found[0])}."
    own = (turn.text for turn in view.turns if turn.debater == view.debater)
    return [] if any(words in text for text in own) else [words]


def _is_named(passage: Passage, said: str) -> bool:
    name = ENDING.sub("", passage.source.casefold())
    return len(name) >= LEAST_NAME and name in said


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
    text = with_edits(response, edits_of(points, response))
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


def advise(view: DebateView, own: Own) -> Said:
    """What the answer that is spoken of leaves out, or how it should read (SC-MAKS 3.4)."""
    answer = _answer_of(view)
    words = [f"“{q.text}” stands in no source." for q in answer.quotes if q.status == "not_found"]
    said = answer.text.casefold()
    fresh = [sentence for sentence in own.side.words if sentence.casefold() not in said]
    quotes = own.side.quotes if fresh else ()
    if answer.stance != own.stance:
        words.append(f"It should read “{WORDS_OF_STANCE[own.stance]}”.")
    if fresh and has_come_to_an_end(quotes, own.stance, view):
        fresh = [nothing_new(own.stance, quotes)]
    elif fresh and answer.stance == own.stance:
        words.append(f"{answer.debater}’s answer could say besides:")
    elif not fresh and not words:
        words.append("I find nothing that it leaves out.")
    return Said([*words, *fresh], own.stance, quotes)


def attack(view: DebateView, own: Own) -> Said:
    """What the evidence has against the answer that is spoken of, whoever is right."""
    answer = _answer_of(view)
    if answer.stance != own.stance:
        quotes = own.side.quotes
        words = [
            "Against it stands what I find.",
            *new_words(own.side.words, own.stance, quotes, view),
        ]
        return Said(words, own.stance, quotes, own.points)
    rivals: list[Stance] = [stance for stance in own.sides if stance != own.stance]
    found = [own.sides[stance] for stance in rivals if own.sides[stance].words]
    if not found:
        return Said(["It withstands all that I find."], own.stance)
    strongest = max(found, key=lambda side: side.strength or 0.0)
    if has_come_to_an_end(own.side.quotes, own.stance, view):
        return Said(["I find no more against it than before."], own.stance, strongest.quotes)
    words = ["The most that I find against it:", *strongest.words, "It does not decide the matter."]
    return Said(words, own.stance, strongest.quotes)


def _answer_of(view: DebateView) -> Turn:
    """The answer that is spoken of; it was heard, or nobody could be asked about it."""
    return next(turn for turn in reversed(view.turns) if turn.debater == view.about)


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
