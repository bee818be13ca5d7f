"""Draws a debate from its events: live, after a reload, in a replay, in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.markup import Html, element, joined
from components.words import LABEL_WORDS, QUOTE_SIGNS, QUOTE_WORDS
from core.builtin.speech import shortened
from core.records import Quote, Turn

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
            pieces.append(_speaking(debater, words, place))
    return joined(pieces)


def turn_html(turn: Turn, place: int) -> Html:
    """One finished turn: who, the reply, the stance, the words, the quotes as checked."""
    first = turn.number == 1
    reply = REPLY_WORDS[turn.reply] + (" with the statement" if first else "")
    head = element(
        "div",
        element("span", turn.debater, class_="cp-turn-head"),
        element("span", f"  {turn.agent} · {reply} · calls it ", class_="cp-quiet"),
        element("span", STANCE_WORDS[turn.stance], class_=f"cp-tag cp-{turn.stance}"),
    )
    said = element("div", turn.text, class_="cp-turn-said", dir="auto")
    quotes = [quote_chip(quote) for quote in turn.quotes]
    cut = [element("span", "cut at its length limit", class_="cp-quiet")] if turn.cut else []
    return element("div", head, said, *quotes, *cut, class_=f"cp-turn cp-turn-{place}")


def quote_chip(quote: Quote) -> Html:
    """A quote with what checking it in code gave."""
    score = f" {quote.score:.0f} of 100" if quote.status == "fuzzy" else ""
    place = f"{quote.source}{f', p. {quote.page}' if quote.page else ''}" or "no source"
    return element(
        "span",
        f"{QUOTE_SIGNS[quote.status]} {place}: {shortened(quote.text, 60)}",
        class_=f"cp-chip cp-chip-{quote.status}",
        title=f"{QUOTE_WORDS[quote.status]}{score}",
    )


def _speaking(debater: str, words: str, place: int) -> Html:
    return element(
        "div",
        element("div", element("span", debater, class_="cp-turn-head")),
        element("div", words, class_="cp-turn-said cp-caret", dir="auto"),
        class_=f"cp-turn cp-turn-{place}",
    )
