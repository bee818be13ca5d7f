"""The debate in a report: its rounds, folded where it is long, with links to each."""

from __future__ import annotations

from components.asides import asides
from components.debate_calls import silence_words
from components.markup import Html, element, joined
from components.rounds import MOST_UNFOLDED, rounds_of
from components.trace import round_anchor, rounds_html
from core.debate.signals import signals_of
from core.progress import Progress


def debate_parts(progress: Progress) -> list[Html]:
    """Its section of the HTML report; of a long debate all rounds but the last are folded."""
    rounds = rounds_of(progress.turns)
    pieces = rounds_html(rounds, signals_of(progress), asides(progress))
    if not progress.turns:
        return [*pieces, element("p", silence_words(progress))]
    if len(progress.turns) <= MOST_UNFOLDED:
        return pieces
    links = (element("a", one.heading, href=f"#{round_anchor(one)}") for one in rounds)
    return [element("p", *(joined([link, " "]) for link in links), class_="cp-rounds"), *pieces]
