"""A debate cut into rounds, in words and as HTML: live, stored, in a replay, in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from components.widgets.html import (
    Html,
    element,
    joined,
    places_told,
    spoken,
    stated,
    without_places,
)
from components.widgets.wording import LABEL_WORDS, QUOTE_SIGNS, QUOTE_WORDS, counted, percent
from core.baseline.wording import listed_plainly, shortened
from core.debate.signals import Signal, SignalKind, by_debater, signals_of
from core.schema.events import (
    ConsensusWeighed,
    JudgementSampled,
    PersonSpoke,
    RoundSummarised,
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
    "detect": "names words that do not hold",
    "critique": "examines the named words",
    "revise": "writes the response anew",
    "advise": "advises",
    "attack": "challenges",
}
SIGNAL_WORDS: Mapping[SignalKind, str] = {
    "quote_not_found": "not found in the sources",
    "overconfident": "surer than warranted",
    "task_misread": "beside the task",
    "unmoved": "insisting",
}
WHAT_SIGNALS_ARE = (
    "Looked for in every turn by our code, after ColMAD 2.2: quotes that stand in no source, a "
    "tone surer than the debater’s record or quotes allow, turns beside the point, and insisting "
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


def manner_words(turn: Asked) -> str:
    """What was asked of the debater, and whose answer it speaks of; empty in CEDA's debate."""
    about = f"{turn.about}’s answer" if turn.about else ""
    # Of whoever was assigned a side, it is said beside the stance that they argue.
    words = MANNER_WORDS.get(turn.manner, "") if turn.assigned is None else ""
    return f"{words}: {about}" if words and about else words or (f"on {about}" if about else "")


def said_words(turn: Turn) -> str:
    """The turn's text without what is told beside it: reply, verdict, places, confidence, doubt."""
    if turn.manner == "debate":
        reply, words = spoken(turn.text)
        # What is said contradicts what was recorded: people must see it.
        return turn.text if reply is not None and reply != turn.reply else words
    reply, rest = spoken(turn.text) if turn.manner in ANSWERING else (None, turn.text)
    if reply is not None and reply != turn.reply:
        return turn.text
    stance, words = stated(rest)
    if stance is not None and stance != turn.stance:
        return rest
    return without_places(words) if turn.manner in NAMING else words


def stated_words(turn: Turn) -> str:
    """The words that it names, its confidence and its doubt.

    Where it was asked for confidence and doubt and gave none, that it did not.
    """
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


def stance_words(turn: Asked, stance: Stance) -> tuple[str, str]:
    """(the words before the stance, the words after it); none for who only writes a text anew."""
    if turn.manner == "revise":  # what it calls wrong is not the text that it gives
        return "", ""
    if turn.assigned is None:
        return "calls it", ""
    if turn.assigned == stance:
        return "argues, as assigned, that it is", ""
    return "calls it", f"though assigned {STANCE_WORDS[turn.assigned]}"


def signals_counted(
    signals: Sequence[Signal], debaters: Sequence[str], *, so_far: bool = False
) -> str:
    """How many signals of debate hacking each debater's turns have, and which."""
    counts = by_debater(signals)
    name = "Signals of debate hacking" + (" so far" if so_far else "")
    if not counts:
        return f"{name}: none."
    parts = []
    for debater in debaters:
        kinds = counts.get(debater)
        if kinds is None:
            parts.append(f"{debater} none")
        else:
            told = ", ".join(f"{number} {SIGNAL_WORDS[kind]}" for kind, number in kinds.items())
            parts.append(f"{debater} {kinds.total()} ({told})")
    return f"{name}: {'; '.join(parts)}."


def told_in_short(turn: Turn) -> str:
    """Round, debater, what was asked and the stance, on one line of plain text."""
    before, after = stance_words(turn, turn.stance)
    asked = REPLY_WORDS[turn.reply] if turn.manner in ANSWERING else ""
    parts = [manner_words(turn), asked, f"{before} {turn.stance}" if before else "", after]
    who = f"{round_words(turn)}: {turn.debater} ({turn.agent})"
    return ", ".join([who, *(part for part in parts if part)])


MOST_UNFOLDED = 15  # turns; beyond them nobody finds a round by scrolling
PHASES: Mapping[Manner, str] = {
    "advise": "advice",
    "attack": "challenges",
    "reconsider": "answers again",
}
ORDINALS = ("First", "Second", "Third")


@dataclass(frozen=True)
class Speaking:
    """A turn under way: what was asked of it, and its words so far."""

    asked: TurnStarted
    words: str


Part = Turn | Speaking


@dataclass(frozen=True)
class Round:
    """The turns of a round in their order; `number` is that of its first one.

    `sides` says who argues what in the debate that begins here, where sides change hands later.
    """

    number: int
    heading: str
    sides: str
    parts: tuple[Part, ...]

    @property
    def turns(self) -> list[Turn]:
        """Those that were taken."""
        return [part for part in self.parts if isinstance(part, Turn)]

    @property
    def is_over(self) -> bool:
        """Nobody speaks in it any more."""
        return len(self.turns) == len(self.parts)


def asked_of(part: Part) -> Asked:
    """What was asked: number, round, debater, manner, side."""
    return part.asked if isinstance(part, Speaking) else part


def rounds_of(turns: Sequence[Turn], speaking: Mapping[int, Speaking] | None = None) -> list[Round]:
    """All rounds in the order in which their turns were asked for, whoever was quicker.

    One in which all advise, then challenge, then answer again (SC-MAKS) is cut at these phases.
    """
    taken = {turn.number for turn in turns}
    under_way = [said for number, said in (speaking or {}).items() if number not in taken]
    # A trace from elsewhere may number two turns alike: both are shown.
    parts: list[Part] = [*turns, *under_way]
    ordered = sorted(parts, key=lambda part: asked_of(part).number)
    debates = _debates([asked_of(part) for part in ordered])
    sides = _sides([asked_of(part) for part in ordered], debates)
    found: list[Round] = []
    of_round = groupby(
        zip(ordered, debates, strict=True),
        key=lambda pair: (pair[1], round_words(asked_of(pair[0]))),
    )
    for (debate, heading), pairs in of_round:
        for words, own in _phases(heading, [part for part, _ in pairs]):
            told = sides.pop(debate, "")
            found.append(Round(asked_of(own[0]).number, words, told, tuple(own)))
    return found


def _phases(heading: str, parts: Sequence[Part]) -> list[tuple[str, list[Part]]]:
    """The round whole, unless each manner in it has its own time."""
    cut = [(m, list(own)) for m, own in groupby(parts, key=lambda part: asked_of(part).manner)]
    manners = [manner for manner, _ in cut]
    if len(cut) < 2 or len(set(manners)) < len(cut):
        return [(heading, list(parts))]
    return [(f"{heading}, {PHASES.get(m, MANNER_WORDS[m])}", own) for m, own in cut]


def sides_told(turns: Sequence[Turn]) -> dict[int, str]:
    """By the number of a debate's first turn, who argues what in it; none unless sides change."""
    return {one.number: one.sides for one in rounds_of(turns) if one.sides}


def _debates(asked: Sequence[Asked]) -> list[int]:
    """Of each turn the number of its debate: where sides change hands, another begins."""
    debate, held, numbers = 1, dict[str, Stance](), []
    for turn in asked:
        if turn.assigned is not None:
            others = {side for name, side in held.items() if name != turn.debater}
            if held.get(turn.debater, turn.assigned) != turn.assigned or turn.assigned in others:
                debate, held = debate + 1, {}
            held[turn.debater] = turn.assigned
        numbers.append(debate)
    return numbers


def _sides(asked: Sequence[Asked], debates: Sequence[int]) -> dict[int, str]:
    """By the number of the debate, who argues what in it; none where there is but one."""
    held: dict[int, dict[str, Stance]] = {}
    for turn, debate in zip(asked, debates, strict=True):
        if turn.assigned is not None:
            held.setdefault(debate, {})[turn.debater] = turn.assigned
    if len(held) < 2:
        return {}
    return {debate: _sides_words(debate, sides) for debate, sides in held.items()}


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
    placed: dict[int, list[Html]] = {0: [note_html(words) for words in progress.notes]}
    for said, place in zip(progress.remarks, progress.remark_places, strict=True):
        placed.setdefault(place, []).append(remark_html(said))
    last = max((turn.number for turn in progress.turns), default=0)
    for brief in progress.summaries:
        place = max((t.number for t in progress.turns if t.round <= brief.round), default=last)
        placed.setdefault(place, []).append(summary_html(brief))
    for number, sample in sorted(progress.samples.items()):
        placed.setdefault(progress.sample_places[number], []).append(sample_html(sample))
    if progress.weighed is not None:
        placed.setdefault(last, []).append(weights_html(progress.weighed))
    return placed


def after(placed: Mapping[int, Sequence[Html]], number: int, until: int | None) -> list[Html]:
    """Those that stand after that turn and before the turn `until`; None: to the end."""
    return [
        piece
        for place, pieces in sorted(placed.items())
        if number <= place and (until is None or place < until)
        for piece in pieces
    ]


def note_html(words: str) -> Html:
    """How the debate is held: a quiet line before the first turn."""
    return element("div", words, class_="cp-quiet", dir="auto")


def remark_html(said: PersonSpoke) -> Html:
    """What a person said in the middle of the debate."""
    head = element(
        "div",
        element("span", said.by or "Somebody", class_="cp-turn-head"),
        element("span", "  a person, to all debaters", class_="cp-quiet"),
    )
    words = element("div", said.text, class_="cp-turn-said", dir="auto")
    return element("div", head, words, class_="cp-turn cp-turn-person")


def summary_html(brief: RoundSummarised) -> Html:
    """A round in brief, folded: it repeats what stands above it."""
    return element(
        "details",
        element("summary", f"Round {brief.round} in brief, for the turns after it ({brief.agent})"),
        element("div", brief.text, class_="cp-turn-said", dir="auto"),
        class_="cp-quiet",
    )


def sample_html(sample: JudgementSampled) -> Html:
    """A judgement on the way, with what is different about it; the run's own follows from them."""
    judgement = sample.judgement
    head = element(
        "div",
        element("span", judgement.agent, class_="cp-turn-head"),
        element("span", f"  {sample.note} ", class_="cp-quiet"),
        element("span", LABEL_WORDS[judgement.label], class_=f"cp-tag cp-{judgement.label}"),
    )
    words = element("div", judgement.prose or judgement.text, class_="cp-turn-said", dir="auto")
    return element("div", head, words, class_="cp-turn cp-turn-person")


def weights_html(weighed: ConsensusWeighed) -> Html:
    """How much each agent's answer counts, and what they come to."""
    method, learned, number = weighed.method.partition(LEARNED)
    how = METHOD_WORDS.get(method, method) + (f" (weights {number})" if learned else "")
    who = " · ".join(f"{name} {percent(weight)}" for name, weight in weighed.weights)
    words = f"Weighed {how}: {who}. Together: {percent(weighed.p)} for hallucinated."
    return element("div", words, class_="cp-quiet", dir="auto")


def spoken_texts(progress: Progress) -> list[str]:
    """Turns, with their quotes as checked, and what people and judges said between them."""
    told = [(0, words) for words in progress.notes]
    signals, sides = signals_of(progress), sides_told(progress.turns)
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        quotes = [f"[{QUOTE_WORDS[q.status]}] {q.source}: {q.text}" for q in turn.quotes]
        above = [f"{sides[turn.number]}\n"] if turn.number in sides else []
        said = [*above, f"{told_in_short(turn)}:", said_words(turn), stated_words(turn)]
        said += [f"Look at this: {s.words}" for s in signals if s.turn == turn.number]
        told.append((turn.number, "\n".join([*(line for line in said if line), *quotes])))
    for remark, place in zip(progress.remarks, progress.remark_places, strict=True):
        told.append(
            (place, f"{remark.by or 'Somebody'}, a person, to all debaters:\n{remark.text}")
        )
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
    """What stands before all turns, if anything does, then a round each; turns under way too.

    `placed` is what stands between the turns, by the number of the turn before it.
    """
    asked = [asked_of(part) for one in rounds for part in one.parts]
    debaters = list(dict.fromkeys(one.debater for one in asked))
    numbers = [one.number for one in asked]
    following = iter([*numbers[1:], None])
    before = after(placed or {}, 0, numbers[0] if numbers else None)
    pieces = [joined(before)] if before else []
    is_long = len(asked) > MOST_UNFOLDED
    for one in rounds:
        drawn: list[Html] = []
        for part in one.parts:
            number, place = asked_of(part).number, debaters.index(asked_of(part).debater) + 1
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
    """The round under its heading; folded, its heading says who said what."""
    sides = [element("div", one.sides, class_="cp-sides", dir="auto")] if one.sides else []
    if not folded:
        head = element("div", one.heading, class_="cp-quiet", id=round_anchor(one))
        return joined([*sides, head, *drawn])
    # A link to a place within what is folded unfolds it.
    inside = element("div", *drawn, id=round_anchor(one), class_="cp-round-open")
    summary = element("summary", round_in_short(one.heading, one.turns), dir="auto")
    return joined([*sides, element("details", summary, inside, class_="cp-round")])


def turn_html(
    turn: Turn, place: int, *, with_quotes: bool = True, signals: Sequence[str] = ()
) -> Html:
    """One finished turn: who, what was asked, the stance, the words, the quotes as checked."""
    words = said_words(turn)
    said = [element("div", words, class_="cp-turn-said", dir="auto")] if words else []
    own = stated_words(turn)
    beside = [element("div", own, class_="cp-quiet", dir="auto")] if own else []
    quotes = [quote_line(quote) for quote in turn.quotes] if with_quotes else []
    cut = [element("span", "cut at its length limit", class_="cp-quiet")] if turn.cut else []
    seen = [element("div", f"⚑ {signal}", class_="cp-signal", dir="auto") for signal in signals]
    return element(
        "div", _head(turn), *said, *beside, *quotes, *cut, *seen, class_=f"cp-turn cp-turn-{place}"
    )


def _head(turn: Turn) -> Html:
    """Who speaks, in which manner, whether it agrees, and what it calls the claim."""
    replied = [_reply_badge(turn.reply, turn.number)] if turn.manner in ANSWERING else []
    return element("div", *_who(turn), *replied, *_stance(turn, turn.stance))


def _who(asked: Asked) -> list[Html]:
    """The debater with its agent, and what was asked of it."""
    parts = [
        element("span", asked.debater, class_="cp-turn-head"),
        element("span", f"  {asked.agent} ", class_="cp-quiet"),
    ]
    manner = manner_words(asked)
    return [*parts, element("span", f"{manner} ", class_="cp-manner")] if manner else parts


def _stance(asked: Asked, stance: Stance) -> list[Html]:
    """What it calls the claim, or argues that it is."""
    before, after = stance_words(asked, stance)
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
    status = QUOTE_WORDS[quote.status]
    score = f", {quote.score:.0f} of 100" if quote.status == "fuzzy" else ""
    return element(
        "div",
        element("span", f"{QUOTE_SIGNS[quote.status]} {status}{score}: ", class_="cp-cited-how"),
        f"“{shortened(quote.text, 120)}” ",
        element("span", _place(quote), class_="cp-quiet"),
        class_=f"cp-cited cp-cited-{quote.status}",
        dir="auto",
    )


def _place(quote: Quote) -> str:
    return f"{quote.source}{f', p. {quote.page}' if quote.page else ''}"


def _speaking(under_way: Speaking, place: int) -> Html:
    """A turn under way; the side it was assigned stands there until it states one."""
    asked = under_way.asked
    reply, rest = spoken(under_way.words, under_way=True)
    stance, words = stated(rest, under_way=True)
    badge = [_reply_badge(reply, asked.number)] if reply else []
    side = stance or asked.assigned
    badge += _stance(asked, side) if side else []
    return element(
        "div",
        element("div", *_who(asked), *badge),
        element("div", words, class_="cp-turn-said cp-caret", dir="auto"),
        class_=f"cp-turn cp-turn-{place}",
    )
