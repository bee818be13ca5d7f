"""Marks stretches of a text: a pure function from text and spans to HTML, all of it escaped."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from components.markup import Html, element, joined


@dataclass(frozen=True)
class Mark:
    """`[start, end)` in the text, with a number to show and words for the tooltip."""

    start: int
    end: int
    number: str = ""
    title: str = ""
    kind: str = ""


def marked_text(text: str, marks: Sequence[Mark]) -> Html:
    """The whole text with its marks; where marks overlap each stretch shows all its numbers.

    The numbers are drawn by CSS, so that copying the text copies the text alone.
    """
    cuts = sorted({0, len(text), *(m.start for m in marks), *(m.end for m in marks)})
    cuts = [cut for cut in cuts if 0 <= cut <= len(text)]
    pieces: list[str | Html] = []
    for start, end in itertools.pairwise(cuts):
        here = [m for m in marks if m.start <= start and end <= m.end]
        pieces.append(_marked(text[start:end], here) if here else text[start:end])
        ending = [m.number for m in marks if m.end == end and m.number]
        pieces += [element("sup", class_="cp-number", data_n=number) for number in ending]
    return element("div", joined(pieces), class_="cp-text", dir="auto")


def _marked(words: str, marks: Sequence[Mark]) -> Html:
    kinds = {mark.kind for mark in marks if mark.kind}
    classes = " ".join(["cp-mark", *(f"cp-mark-{kind}" for kind in sorted(kinds))])
    title = "\n".join(mark.title for mark in marks if mark.title)
    return element("mark", words, class_=classes, title=title or None)
