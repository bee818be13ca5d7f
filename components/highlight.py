"""Marks stretches of a text: a pure function from text and spans to HTML, all of it escaped."""

from __future__ import annotations

import itertools
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from components.markup import Html, element

MOST_TITLES = 20


@dataclass(frozen=True)
class Mark:
    """`[start, end)` in the text, with a number to show and words for the tooltip.

    `strength` in [0, 1] is how strongly it is coloured; None marks plainly, with a line below.
    """

    start: int
    end: int
    number: str = ""
    title: str = ""
    kind: str = ""
    strength: float | None = None


@dataclass(frozen=True)
class Part:
    """`[start, end)` of the text that a link can lead to by its `id`."""

    start: int
    end: int
    id: str


def marked_text(text: str, marks: Sequence[Mark], parts: Sequence[Part] = ()) -> Html:
    """The whole text with its marks; where marks overlap each stretch shows all its numbers.

    The numbers are drawn by CSS, so that copying the text copies the text alone. Of parts that
    overlap the first one counts.
    """
    apart = _apart(parts, len(text))
    cuts = sorted({0, len(text), *(m.start for m in marks), *(m.end for m in marks)})
    cuts = sorted({*cuts, *(part.start for part in apart), *(part.end for part in apart)})
    cuts = [cut for cut in cuts if 0 <= cut <= len(text)]
    opening, closing = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for place, mark in enumerate(marks):
        if max(mark.start, 0) < mark.end:
            opening[max(mark.start, 0)].append(place)
        closing[mark.end].append(place)
    cover = _Cover(marks, any(mark.strength is not None for mark in marks))
    inside = iter(apart)
    part = next(inside, None)
    pieces: list[str | Html] = []
    whole: list[str | Html] = []
    for start, end in itertools.pairwise(cuts):
        if part and start == part.start:
            whole.extend(pieces)
            pieces = []
        cover.move(opening[start], closing[start])
        pieces.append(cover.drawn(text[start:end]))
        ending = [marks[place].number for place in closing[end] if marks[place].number]
        pieces += [element("sup", class_="cp-number", data_n=number) for number in ending]
        if part and end == part.end:
            whole.append(element("span", *pieces, class_="cp-part", id=part.id))
            part, pieces = next(inside, None), []
    return element("div", *whole, *pieces, class_="cp-text", dir="auto")


def _apart(parts: Sequence[Part], length: int) -> list[Part]:
    """The parts in the order of the text, without those that overlap an earlier one."""
    found: list[Part] = []
    for part in sorted(parts, key=lambda own: own.start):
        free_from = found[-1].end if found else 0
        if free_from <= part.start < part.end <= length:
            found.append(part)
    return found


@dataclass
class _Cover:
    """The marks over one stretch, as the stretches are gone through from left to right."""

    marks: Sequence[Mark]
    is_heat: bool
    places: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    titled: list[int] = field(default_factory=list)

    def move(self, opened: Sequence[int], closed: Sequence[int]) -> None:
        """Go on to the next stretch: some marks begin here, others ended."""
        for place in opened:
            self.places.add(place)
            self.kinds[self.marks[place].kind] += 1
            if self.marks[place].title:
                insort(self.titled, place)
        for place in self.places.intersection(closed):
            self.places.remove(place)
            self.kinds[self.marks[place].kind] -= 1
            if self.marks[place].title:
                self.titled.remove(place)

    def drawn(self, words: str) -> str | Html:
        """The stretch's words, marked if any mark lies over them."""
        if not self.places:
            return words
        kinds = sorted(kind for kind, count in self.kinds.items() if kind and count)
        classes = " ".join(["cp-mark", *(f"cp-mark-{kind}" for kind in kinds)])
        titles = [self.marks[place].title for place in self.titled[:MOST_TITLES]]
        if len(self.titled) > MOST_TITLES:
            titles.append("…")
        said = "\n".join(titles) or None
        if not self.is_heat:
            return element("mark", words, class_=classes, title=said)
        strongest = max(self.marks[place].strength or 0.0 for place in self.places)
        return element(
            "mark",
            words,
            class_=f"{classes} cp-heat",
            style=f"--cp-heat: {100 * strongest:.0f}%",
            tabindex="0",
            data_say=said,
            aria_label=f"{words}: {said}" if said else None,
        )
