"""Draws a debate from its events: live, after a reload, in a replay, in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.markup import Html, element, joined
from components.plain import spoken
from components.words import LABEL_WORDS, QUOTE_SIGNS, QUOTE_WORDS
from core.builtin.speech import shortened
from core.records import Quote, Reply, Turn

STANCE_WORDS = {label: word.lower() for label, word in LABEL_WORDS.items()}
REPLY_WORDS = {"agree": "agrees", "deny": "disagrees"}


def debate_html(
    turns: Sequence[Turn],
    speaking: Mapping[int, tuple[str, str]] | None = None,
) -> Html:
    """All turns by rounds; `speaking` maps a turn under way to its debater and words so far."""
    pieces: list[Html] = []
    shown_round = 0
    debaters = list(dict.fromkeys(turn.debater for turn in turns))
    for turn in turns:
        if turn.round != shown_round:
            shown_round = turn.round
            pieces.append(element("div", f"Round {shown_round}", class_="cp-quiet"))
        pieces.append(turn_html(turn, debaters.index(turn.debater) + 1))
    finished = {turn.number for turn in turns}
    for number, (debater, words) in sorted((speaking or {}).items()):
        if number not in finished:
            place = debaters.index(debater) + 1 if debater in debaters else len(debaters) + 1
            pieces.append(_speaking(number, debater, words, place))
    return joined(pieces)


def turn_html(turn: Turn, place: int, *, with_quotes: bool = True) -> Html:
    """One finished turn: who, the reply, the stance, the words, the quotes as checked."""
    reply, words = spoken(turn.text)
    if reply is not None and reply != turn.reply:
        words = turn.text  # what is said contradicts what was recorded: people must see it
    head = element(
        "div",
        element("span", turn.debater, class_="cp-turn-head"),
        element("span", f"  {turn.agent} ", class_="cp-quiet"),
        _reply_badge(turn.reply, turn.number),
        element("span", " calls it ", class_="cp-quiet"),
        element("span", STANCE_WORDS[turn.stance], class_=f"cp-tag cp-{turn.stance}"),
    )
    said = [element("div", words, class_="cp-turn-said", dir="auto")] if words else []
    quotes = [quote_line(quote) for quote in turn.quotes] if with_quotes else []
    cut = [element("span", "cut at its length limit", class_="cp-quiet")] if turn.cut else []
    return element("div", head, *said, *quotes, *cut, class_=f"cp-turn cp-turn-{place}")


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


def _speaking(number: int, debater: str, text: str, place: int) -> Html:
    reply, words = spoken(text, under_way=True)
    badge = [" ", _reply_badge(reply, number)] if reply else []
    return element(
        "div",
        element("div", element("span", debater, class_="cp-turn-head"), *badge),
        element("div", words, class_="cp-turn-said cp-caret", dir="auto"),
        class_=f"cp-turn cp-turn-{place}",
    )
