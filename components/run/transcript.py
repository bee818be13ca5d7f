"""A debate cut into rounds, in words and as HTML: live, stored, in a replay, in a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from components.widgets.html import (
    Html,
    div,
    element,
    joined,
    places_told,
    spoken,
    stated,
    without_places,
)
from components.widgets.wording import (
    LABEL_WORDS,
    QUOTE_SIGNS,
    QUOTE_WORDS,
    counted,
    percent,
    place_words,
)
from core.baseline.wording import listed_plainly, shortened
from core.debate.signals import Signal, SignalKind, by_debater, signals_of
from core.schema.events import (
    ConsensusWeighed,
    TurnStarted,
)
from core.schema.progress import Progress
from core.schema.records import Quote, Reply, Stance, Turn
from core.schema.roles import LEARNED
from core.schema.rosters import ANSWERING, NAMING, Manner

STANCE_WORDS: dict[Stance, str] = {label: word.lower() for label, word in LABEL_WORDS.items()}
REPLY_WORDS: dict[Reply, str] = {"agree": "agrees", "deny": "disagrees"}
MANNER_WORDS: Mapping[Manner, str] = {
    "debate": "",
    "answer": "answers alone",
    "reconsider": "reconsiders",
    "collaborate": "adds to what was said",
    "compete": "argues a side",
    "tit_for_tat": "argues tit for tat",
    "detect": "names wrong words",
    "critique": "examines the named words",
    "revise": "writes the response anew",
    "advise": "advises",
    "attack": "challenges",
}
SIGNAL_WORDS: Mapping[SignalKind, str] = {
    "quote_not_found": "not found in the sources",
    "overconfident": "surer than warranted",
    "task_misread": "off the task",
    "unmoved": "insisting",
}
WHAT_SIGNALS_ARE = (
    "Looked for in every turn by our code, after ColMAD 2.2: quotes that appear in no source, a "
    "tone surer than the debater’s record or quotes allow, turns off the point, and insisting "
    "without a new quote. A signal is a reason to look at the turn; the verdict does not depend "
    "on it."
)
# A turn that was taken, or one under way, of which no more is known than what was asked.
Asked = Turn | TurnStarted
# These are asked for confidence and for one doubt about their own claim (ColMAD 2.3).
AUDITED: frozenset[Manner] = frozenset({"answer", "reconsider", "collaborate"})


def round_words(turn: Asked) -> str:
    """The heading of the round that the turn belongs to."""
    is_first = turn.round == 0 or (turn.manner == "answer" and turn.round == 1)
    return "First answers" if is_first else f"Round {turn.round}"


def round_in_short(heading: str, turns: Sequence[Turn]) -> str:
    """A round's heading where its turns are folded: how many, and what each debater says last."""
    last = {turn.debater: turn for turn in turns if turn.assigned is None}
    said = ", ".join(f"{name} {STANCE_WORDS[turn.stance]}" for name, turn in last.items())
    parts = [heading, counted(len(turns), "turn"), said]
    return " · ".join(part for part in parts if part)


def _manner_words(turn: Asked) -> str:
    """What was asked of the debater, and whose answer it speaks of; empty in CEDA's debate."""
    about = f"{turn.about}’s answer" if turn.about else ""
    # Of whoever was assigned a side, it is said beside the stance that they argue.
    words = MANNER_WORDS.get(turn.manner, "") if turn.assigned is None else ""
    return f"{words}: {about}" if words and about else words or (f"on {about}" if about else "")


def said_words(turn: Turn) -> str:
    """The text without what is told beside it, unless that contradicts what was recorded."""
    is_debate = turn.manner == "debate"
    is_answer = is_debate or turn.manner in ANSWERING
    reply, words = spoken(turn.text) if is_answer else (None, turn.text)
    if reply is not None and reply != turn.reply:
        return turn.text
    if is_debate:
        return words
    stance, rest = stated(words)
    if stance is not None and stance != turn.stance:
        return words
    return without_places(rest) if turn.manner in NAMING else rest


def stated_words(turn: Turn) -> str:
    """The words it names, its confidence and doubt; where these were asked for in vain, that."""
    is_asked = turn.manner in AUDITED
    parts = places_told(turn.text) if turn.manner in NAMING else []
    if turn.confidence is not None:
        parts.append(f"{percent(turn.confidence)} sure")
    elif is_asked:
        parts.append("states no confidence")
    if turn.doubt:
        parts.append(f"may be mistaken: {turn.doubt}")
    elif is_asked:
        parts.append("names no doubt")
    return " · ".join(parts)


def _stance_words(turn: Asked, stance: Stance) -> tuple[str, str]:
    """(the words before the stance, the words after it); none for who only writes a text anew."""
    if turn.manner == "revise":  # what it calls wrong is not the text that it gives
        return "", ""
    if turn.assigned is None:
        return "calls it", ""
    if turn.assigned == stance:
        return "argues, as assigned, that it is", ""
    return "calls it", f"although assigned {STANCE_WORDS[turn.assigned]}"


def signals_counted(
    signals: Sequence[Signal], debaters: Sequence[str], *, so_far: bool = False
) -> str:
    """How many signals of debate hacking each debater's turns have, and which."""
    counts = by_debater(signals)
    name = "Signals of debate hacking" + (" so far" if so_far else "")
    parts = []
    for debater in debaters if counts else ():
        kinds = counts.get(debater, Counter())
        told = ", ".join(f"{number} {SIGNAL_WORDS[kind]}" for kind, number in kinds.items())
        parts.append(f"{debater} {kinds.total()} ({told})" if told else f"{debater} none")
    return f"{name}: {'; '.join(parts) or 'none'}."


def told_in_short(turn: Turn) -> str:
    """Round, debater, what was asked and the stance, on one line of plain text."""
    before, after = _stance_words(turn, turn.stance)
    asked = REPLY_WORDS[turn.reply] if turn.manner in ANSWERING else ""
    parts = [_manner_words(turn), asked, f"{before} {turn.stance}" if before else "", after]
    who = f"{round_words(turn)}: {turn.debater} ({turn.agent})"
    return ", ".join([who, *(part for part in parts if part)])


MOST_UNFOLDED = 15  # turns; beyond them nobody finds a round by scrolling
PHASES: Mapping[Manner, str] = {
    "advise": "advice", "attack": "challenges", "reconsider": "answers again",
}  # fmt: skip
ORDINALS = ("First", "Second", "Third")


@dataclass(frozen=True)
class Speaking:
    """A turn under way: what was asked of it, and its words so far."""

    asked: TurnStarted
    words: str


Part = Turn | Speaking


@dataclass(frozen=True)
class Round:
    """A round's turns from `number` on; `sides` says who argues what, if sides change later."""

    number: int
    heading: str
    sides: str
    parts: tuple[Part, ...]

    @property
    def turns(self) -> list[Turn]:
        """The turns that the debaters took."""
        return [part for part in self.parts if isinstance(part, Turn)]

    @property
    def is_over(self) -> bool:
        """Nobody speaks in it any more."""
        return len(self.turns) == len(self.parts)


def _asked_of(part: Part) -> Asked:
    return part.asked if isinstance(part, Speaking) else part


def rounds_of(turns: Sequence[Turn], speaking: Mapping[int, Speaking] | None = None) -> list[Round]:
    """All rounds in the order of asking, cut at phases with one task for all (SC-MAKS)."""
    taken = {turn.number for turn in turns}
    under_way = [said for number, said in (speaking or {}).items() if number not in taken]
    # A trace from elsewhere may number two turns alike: both are shown.
    parts: list[Part] = sorted([*turns, *under_way], key=lambda part: _asked_of(part).number)
    debates, sides = _debates([_asked_of(part) for part in parts])
    found: list[Round] = []
    pairs = zip(parts, debates, strict=True)
    for (debate, heading), own in groupby(pairs, lambda p: (p[1], round_words(_asked_of(p[0])))):
        for words, cut in _phases(heading, [part for part, _ in own]):
            number = _asked_of(cut[0]).number
            found.append(Round(number, words, sides.pop(debate, ""), tuple(cut)))
    return found


def _phases(heading: str, parts: Sequence[Part]) -> list[tuple[str, list[Part]]]:
    """The round whole, unless each manner in it has its own time."""
    cut = [(m, list(own)) for m, own in groupby(parts, key=lambda part: _asked_of(part).manner)]
    manners = [manner for manner, _ in cut]
    if len(cut) < 2 or len(set(manners)) < len(cut):
        return [(heading, list(parts))]
    return [(f"{heading}, {PHASES.get(m, MANNER_WORDS[m])}", own) for m, own in cut]


def _debates(asked: Sequence[Asked]) -> tuple[list[int], dict[int, str]]:
    """(each turn's debate, by debate who argues what); another begins where sides change hands."""
    debate, held, numbers = 1, dict[int, dict[str, Stance]](), []
    for turn in asked:
        if turn.assigned is not None:
            own = held.setdefault(debate, {})
            others = {side for name, side in own.items() if name != turn.debater}
            if own.get(turn.debater, turn.assigned) != turn.assigned or turn.assigned in others:
                debate += 1
            held.setdefault(debate, {})[turn.debater] = turn.assigned
        numbers.append(debate)
    several = held if len(held) > 1 else {}
    return numbers, {number: _sides_words(number, sides) for number, sides in several.items()}


def _sides_words(debate: int, sides: Mapping[str, Stance]) -> str:
    name = f"{ORDINALS[debate - 1]} debate" if debate <= len(ORDINALS) else f"Debate {debate}"
    how = ", the sides change hands" if debate > 1 else ""
    told = [f"{who} argues that it is {STANCE_WORDS[side]}" for who, side in sides.items()]
    return f"{name}{how}: {listed_plainly(told)}."


METHOD_WORDS = {
    "uniform": "all alike",
    "record": "by how often each was right here",
    "logistic": "by how often each was right here, what they err in together counted once",
    "policy": "by how each answer fared in the debate",
}


def asides(progress: Progress) -> dict[int, list[Html]]:
    """By the number of the turn after which they stand; 0 is before the first."""
    placed: dict[int, list[Html]] = {0: [div("cp-quiet", n, dir="auto") for n in progress.notes]}
    for said, place in zip(progress.remarks, progress.remark_places, strict=True):
        who = _named(said.by or "Somebody", "  a person, to all debaters")
        placed.setdefault(place, []).append(_remark(who, said.text))
    last = max((turn.number for turn in progress.turns), default=0)
    for brief in progress.summaries:  # folded: it repeats what stands above it
        place = max((t.number for t in progress.turns if t.round <= brief.round), default=last)
        words = f"Round {brief.round} in brief, for the turns after it ({brief.agent})"
        own = (element("summary", words), div("cp-turn-said", brief.text, dir="auto"))
        placed.setdefault(place, []).append(element("details", *own, class_="cp-quiet"))
    for number, sample in sorted(progress.samples.items()):
        judgement, place = sample.judgement, progress.sample_places[number]
        who = _named(judgement.agent, f"  {sample.note} ")
        label = LABEL_WORDS[judgement.label]
        who.append(element("span", label, class_=f"cp-tag cp-{judgement.label}"))
        placed.setdefault(place, []).append(_remark(who, judgement.prose or judgement.text))
    if progress.weighed is not None:
        placed.setdefault(last, []).append(weights_html(progress.weighed))
    return placed


def _named(name: str, about: str) -> list[Html]:
    return [
        element("span", name, class_="cp-turn-head"),
        element("span", about, class_="cp-quiet"),
    ]


def _remark(who: Sequence[Html], words: str) -> Html:
    said = div("cp-turn-said", words, dir="auto")
    return div("cp-turn cp-turn-person", element("div", *who), said)


def after(placed: Mapping[int, Sequence[Html]], number: int, until: int | None) -> list[Html]:
    """Those that stand after that turn and before the turn `until`; None: to the end."""
    return [
        piece
        for place, pieces in sorted(placed.items())
        if number <= place and (until is None or place < until)
        for piece in pieces
    ]


def weights_html(weighed: ConsensusWeighed) -> Html:
    """How much each agent's answer counts, and what they come to."""
    method, learned, number = weighed.method.partition(LEARNED)
    how = METHOD_WORDS.get(method, method) + (f" (weights {number})" if learned else "")
    who = " · ".join(f"{name} {percent(weight)}" for name, weight in weighed.weights)
    words = f"Weighed {how}: {who}. Together: {percent(weighed.p)} for hallucinated."
    return div("cp-quiet", words, dir="auto")


def spoken_texts(progress: Progress) -> list[str]:
    """Turns, with their quotes as checked, and what people and judges said between them."""
    told = [(0, words) for words in progress.notes]
    signals = signals_of(progress)
    sides = {one.number: one.sides for one in rounds_of(progress.turns) if one.sides}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        quotes = [f"[{QUOTE_WORDS[q.status]}] {q.source}: {q.text}" for q in turn.quotes]
        above = [f"{sides[turn.number]}\n"] if turn.number in sides else []
        said = [*above, f"{told_in_short(turn)}:", said_words(turn), stated_words(turn)]
        said += [f"Look at this: {s.words}" for s in signals if s.turn == turn.number]
        told.append((turn.number, "\n".join([*(line for line in said if line), *quotes])))
    for remark, place in zip(progress.remarks, progress.remark_places, strict=True):
        words = f"{remark.by or 'Somebody'}, a person, to all debaters:\n{remark.text}"
        told.append((place, words))
    for number, sample in sorted(progress.samples.items()):
        judgement = sample.judgement
        head = f"{judgement.agent}, {sample.note}: {LABEL_WORDS[judgement.label].lower()}"
        place = progress.sample_places[number]
        told.append((place, f"{head}\n{judgement.prose or judgement.text}"))
    return [text for _, text in sorted(told, key=lambda item: item[0])]


def rounds_html(
    rounds: Sequence[Round],
    signals: Sequence[Signal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> list[Html]:
    """What stands before all turns, then each round; `placed` has the number of the turn before."""
    asked = [_asked_of(part) for one in rounds for part in one.parts]
    debaters = list(dict.fromkeys(one.debater for one in asked))
    numbers = [one.number for one in asked]
    following = iter([*numbers[1:], None])
    before = after(placed or {}, 0, numbers[0] if numbers else None)
    pieces = [joined(before)] if before else []
    is_long = len(asked) > MOST_UNFOLDED
    for one in rounds:
        drawn: list[Html] = []
        for part in one.parts:
            number, place = _asked_of(part).number, debaters.index(_asked_of(part).debater) + 1
            if isinstance(part, Speaking):
                drawn.append(_speaking(part, place))
            else:
                own = [signal.words for signal in signals if signal.turn == number]
                drawn.append(turn_html(part, place, signals=own))
            drawn += after(placed or {}, number, next(following))
        pieces.append(_round(one, drawn, folded=is_long and one is not rounds[-1] and one.is_over))
    return pieces


def round_anchor(one: Round) -> str:
    """The id of a round's place, for links that lead there."""
    return f"cp-round-{one.number}"


def _round(one: Round, drawn: Sequence[Html], *, folded: bool) -> Html:
    sides = [div("cp-sides", one.sides, dir="auto")] if one.sides else []
    if not folded:
        return joined([*sides, div("cp-quiet", one.heading, id=round_anchor(one)), *drawn])
    # A link to a place within what is folded unfolds it.
    inside = div("cp-round-open", *drawn, id=round_anchor(one))
    summary = element("summary", round_in_short(one.heading, one.turns), dir="auto")
    return joined([*sides, element("details", summary, inside, class_="cp-round")])


def turn_html(
    turn: Turn, place: int, *, with_quotes: bool = True, signals: Sequence[str] = ()
) -> Html:
    """One finished turn: who, what was asked, the stance, the words, the quotes as checked."""
    words, own = said_words(turn), stated_words(turn)
    replied = [_reply_badge(turn.reply, turn.number)] if turn.manner in ANSWERING else []
    return div(
        f"cp-turn cp-turn-{place}",
        element("div", *_who(turn), *replied, *_stance(turn, turn.stance)),
        *([div("cp-turn-said", words, dir="auto")] if words else []),
        *([div("cp-quiet", own, dir="auto")] if own else []),
        *(map(quote_line, turn.quotes) if with_quotes else []),
        *([element("span", "cut at its length limit", class_="cp-quiet")] if turn.cut else []),
        *(div("cp-signal", f"⚑ {signal}", dir="auto") for signal in signals),
    )


def _who(asked: Asked) -> list[Html]:
    parts = _named(asked.debater, f"  {asked.agent} ")
    manner = _manner_words(asked)
    return [*parts, element("span", f"{manner} ", class_="cp-manner")] if manner else parts


def _stance(asked: Asked, stance: Stance) -> list[Html]:
    before, after = _stance_words(asked, stance)
    parts: list[Html] = []
    if before:
        parts.append(element("span", f" {before} ", class_="cp-quiet"))
        parts.append(element("span", STANCE_WORDS[stance], class_=f"cp-tag cp-{stance}"))
    if after:
        parts.append(element("span", f" {after}", class_="cp-quiet"))
    return parts


def _reply_badge(reply: Reply, number: int) -> Html:
    """To whom the reply is given: the first turn answers the statement itself."""
    words = REPLY_WORDS[reply] + (" with the statement" if number == 1 else "")
    return element("span", words, class_=f"cp-reply cp-reply-{reply}")


def quote_line(quote: Quote) -> Html:
    """A quote, where it stands, and what checking it in code gave; to be read, not pressed."""
    score = f", {quote.score:.0f} of 100" if quote.status == "fuzzy" else ""
    how = f"{QUOTE_SIGNS[quote.status]} {QUOTE_WORDS[quote.status]}{score}: "
    return div(
        f"cp-cited cp-cited-{quote.status}",
        element("span", how, class_="cp-cited-how"),
        f"“{shortened(quote.text, 120)}” ",
        element("span", place_words(quote), class_="cp-quiet"),
        dir="auto",
    )


def _speaking(under_way: Speaking, place: int) -> Html:
    asked = under_way.asked
    reply, rest = spoken(under_way.words, under_way=True)
    stance, words = stated(rest, under_way=True)
    badge = [_reply_badge(reply, asked.number)] if reply else []
    side = stance or asked.assigned
    badge += _stance(asked, side) if side else []
    said = div("cp-turn-said cp-caret", words, dir="auto")
    return div(f"cp-turn cp-turn-{place}", element("div", *_who(asked), *badge), said)
