"""Who holds which words for wrong, and how surely: a layer of heat for each agent (MSA 3.3).

A layer is what an agent scored word by word, proposed, voted or ruled; the mean of a vote is a
layer of its own. An agent that gave no vote on a span has none there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from components.highlight import Mark
from components.words import clipped, percent
from core.progress import Progress
from core.reviews import category_words

MEAN = "Mean of the vote"
EACH_WORD = "Every word by itself"
LEAST_SHOWN = 0.1  # colder words are not coloured: they would be most of the text
LONGEST_REASON = 160
Layers = dict[str, list[Mark]]


def layers_of(progress: Progress) -> Layers:
    """What each agent says, by its name in the order in which they spoke; the vote's mean first."""
    layers: Layers = {}
    for name, mark in _told(progress):
        layers.setdefault(name, []).append(mark)
    return layers


def heated(layers: Layers, chosen: Iterable[str], progress: Progress) -> list[Mark]:
    """The marks of the chosen layers, with who said it; what counts in the end is outlined."""
    marks = [
        replace(mark, title=f"{name}: {mark.title}")
        for name in chosen
        for mark in layers.get(name, [])
    ]
    return marks + [Mark(s.start, s.end, "", "", "hard", 0.0) for s in progress.spans]


def _told(progress: Progress) -> Iterable[tuple[str, Mark]]:
    soft = progress.soft
    for label in soft.labels if soft else ():
        yield MEAN, Mark(label.start, label.end, "", percent(label.p), "", label.p)
    for span in progress.proposed:
        instead = f", should say “{clipped(span.instead, 80)}”" if span.instead else ""
        words = f"{percent(span.p)}, {category_words(span.category)}{instead}"
        for name in span.source.split(", "):  # who raised it together has a layer each
            yield name, Mark(span.start, span.end, "", words, "", span.p)
    for vote in progress.votes:
        if vote.p is not None:
            why = f"{percent(vote.p)}{_because(vote.reason)}"
            yield vote.adjudicator, Mark(vote.span.start, vote.span.end, "", why, "", vote.p)
    adjudicator = next((u.agent for u in progress.roles if u.role == "span adjudicator"), "")
    for ruling in progress.rulings if adjudicator else ():
        own = ruling.span
        words = f"{percent(own.p)}, {'kept' if ruling.kept else 'dropped'}{_because(ruling.reason)}"
        yield adjudicator, Mark(own.start, own.end, "", words, "", own.p)
    if progress.words:
        for score in progress.words.scores:
            if score.p >= LEAST_SHOWN:
                yield EACH_WORD, Mark(score.start, score.end, "", percent(score.p), "", score.p)


def _because(reason: str) -> str:
    return f" – {clipped(reason, LONGEST_REASON)}" if reason else ""


def missing_votes(progress: Progress) -> Sequence[str]:
    """Who gave no vote, and on how many spans: absent from every mean, and said to be."""
    silent = [vote.adjudicator for vote in progress.votes if vote.p is None]
    return [f"{name} on {silent.count(name)}" for name in dict.fromkeys(silent)]
