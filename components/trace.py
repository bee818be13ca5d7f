"""Draws a debate from its events: live, after a reload, in a replay, in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.asides import after
from components.markup import Html, element, joined
from components.plain import spoken, stated
from components.turn_words import (
    REPLY_WORDS,
    REPLYING,
    STANCE_WORDS,
    manner_words,
    round_words,
    said_words,
    stance_words,
    stated_words,
)
from components.words import QUOTE_SIGNS, QUOTE_WORDS
from core.builtin.speech import shortened
from core.debate.signals import Signal
from core.records import Quote, Reply, Turn


def debate_html(
    turns: Sequence[Turn],
    speaking: Mapping[int, tuple[str, str]] | None = None,
    signals: Sequence[Signal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> Html:
    """All turns by rounds; `speaking` maps a turn under way to its debater and words so far.

    `placed` is what stands between the turns, by the number of the turn before it.
    """
    pieces: list[Html] = []
    shown_round = ""
    ordered = sorted(turns, key=lambda turn: turn.number)
    numbers = [turn.number for turn in ordered]
    under_way = {n: said for n, said in sorted((speaking or {}).items()) if n not in set(numbers)}
    names = {turn.number: turn.debater for turn in ordered}
    names |= {number: name for number, (name, _) in under_way.items()}
    debaters = list(dict.fromkeys(name for _, name in sorted(names.items())))
    pieces += after(placed or {}, 0, numbers[0] if numbers else None)
    for turn, following in zip(ordered, [*numbers[1:], None], strict=False):
        if round_words(turn) != shown_round:
            shown_round = round_words(turn)
            pieces.append(element("div", shown_round, class_="cp-quiet"))
        # Whoever speaks at the same time and is slower keeps the place that the turn will have.
        for number in [number for number in under_way if number < turn.number]:
            pieces.append(_speaking(number, *under_way.pop(number), debaters))
        own = [signal.words for signal in signals if signal.turn == turn.number]
        pieces.append(turn_html(turn, debaters.index(turn.debater) + 1, signals=own))
        pieces += after(placed or {}, turn.number, following)
    for number, (debater, words) in under_way.items():
        pieces.append(_speaking(number, debater, words, debaters))
    return joined(pieces)


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
    asked = manner_words(turn)
    before, after = stance_words(turn)
    parts = [
        element("span", turn.debater, class_="cp-turn-head"),
        element("span", f"  {turn.agent} ", class_="cp-quiet"),
    ]
    if asked:
        parts.append(element("span", f"{asked} ", class_="cp-manner"))
    if turn.manner in REPLYING:
        parts.append(_reply_badge(turn.reply, turn.number))
    if before:
        parts.append(element("span", f" {before} ", class_="cp-quiet"))
        parts.append(element("span", STANCE_WORDS[turn.stance], class_=f"cp-tag cp-{turn.stance}"))
    if after:
        parts.append(element("span", f" {after}", class_="cp-quiet"))
    return element("div", *parts)


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


def _speaking(number: int, debater: str, text: str, debaters: Sequence[str]) -> Html:
    reply, rest = spoken(text, under_way=True)
    stance, words = stated(rest, under_way=True)
    badge = [" ", _reply_badge(reply, number)] if reply else []
    if stance:
        badge += [" ", element("span", STANCE_WORDS[stance], class_=f"cp-tag cp-{stance}")]
    return element(
        "div",
        element("div", element("span", debater, class_="cp-turn-head"), *badge),
        element("div", words, class_="cp-turn-said cp-caret", dir="auto"),
        class_=f"cp-turn cp-turn-{debaters.index(debater) + 1}",
    )
