"""Draws a debate from its events: live, after a reload, in a replay, in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.asides import after
from components.markup import Html, element, joined
from components.plain import spoken, stated
from components.rounds import MOST_UNFOLDED, Round, Speaking, asked_of, rounds_of
from components.turn_words import (
    REPLY_WORDS,
    STANCE_WORDS,
    Asked,
    manner_words,
    round_in_short,
    said_words,
    stance_words,
    stated_words,
)
from components.words import QUOTE_SIGNS, QUOTE_WORDS
from core.baseline.wording import shortened
from core.debate.signals import Signal
from core.manners import ANSWERING
from core.records import Quote, Reply, Stance, Turn


def debate_html(
    turns: Sequence[Turn],
    speaking: Mapping[int, Speaking] | None = None,
    signals: Sequence[Signal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> Html:
    """All turns by rounds, with those under way by their numbers.

    `placed` is what stands between the turns, by the number of the turn before it.
    """
    return joined(rounds_html(rounds_of(turns, speaking), signals, placed))


def rounds_html(
    rounds: Sequence[Round],
    signals: Sequence[Signal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> list[Html]:
    """The same in pieces: what stands before all turns, if anything does, then a round each."""
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
