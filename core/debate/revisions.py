"""Which contested places most critics keep, and which of several revisions mends them best.

All of it is computed: places by votes, revisions by what they change. Source: SC-MAKS 2.1.4 and
table 2 (MAMM-REFINE: majority over detections, ranking of revisions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rapidfuzz.distance import Levenshtein

from core.records import Point, Turn

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
Place = tuple[int, int]


def contested(turns: Sequence[Turn]) -> tuple[Point, ...]:
    """All points of these turns that contest words, in order of their place."""
    points = [p for turn in turns for p in turn.points if p.finding != "carried"]
    return tuple(sorted(points, key=lambda point: (point.start, point.end)))


def kept_by_most(critics: Sequence[Turn], asked: int = 0) -> tuple[Point, ...]:
    """The places that more than half of all who were asked keep, in order; no two overlap.

    Who leaves the response open keeps none, nor does who is missing of the `asked`. A critic keeps
    a place when a place of its own overlaps it; shorter ones go first, so that one long quotation
    does not swallow several.
    """
    own = [contested([turn]) for turn in critics if turn.stance != "unclear"]
    whole = max(asked, len(critics))
    places = {(p.start, p.end) for points in own for p in points if p.start < p.end}
    chosen: list[Place] = []
    for place in sorted(places, key=lambda one: (one[1] - one[0], one)):
        votes = sum(any(_overlap(place, (p.start, p.end)) for p in points) for points in own)
        if 2 * votes > whole and not any(_overlap(place, other) for other in chosen):
            chosen.append(place)
    return tuple(_as_most_say(place, own) for place in sorted(chosen))


def with_kept(critics: Sequence[Turn], kept: Sequence[Point]) -> tuple[Turn, ...]:
    """These turns, each with only those of its points that were kept, as most say them."""
    return tuple(
        replace(turn, points=tuple(k for k in kept if _names(turn, k))) for turn in critics
    )


def best_first(response: str, revisions: Sequence[str], kept: Sequence[Point]) -> tuple[str, ...]:
    """Unlike revisions that change something, the best first.

    Best is what changes most of the kept places, then what most wrote alike, then what changes
    least beside them, then the first.
    """
    counts = Counter(text for text in revisions if text != response and text.strip())
    return tuple(sorted(counts, key=lambda text: _rank(response, text, counts[text], kept)))


def mended_places(response: str, revision: str, kept: Sequence[Point]) -> int:
    """How many of the kept places do not read as they did."""
    changed = _changes(response, revision)
    return sum(any(_overlap((p.start, p.end), place) for place in changed) for p in kept)


def _rank(response: str, revision: str, count: int, kept: Sequence[Point]) -> tuple[int, int, int]:
    changed = _changes(response, revision)
    beside = sum(
        last - first
        for first, last in changed
        if not any(_overlap((p.start, p.end), (first, last)) for p in kept)
    )
    longer = max(0, len(revision) - len(response))
    return -mended_places(response, revision, kept), -count, beside + longer


def _changes(response: str, revision: str) -> list[Place]:
    """Where the response was changed, `[start, end)` in it; an insertion is one character wide."""
    old, new = TOKEN.findall(response), TOKEN.findall(revision)
    starts = [0]
    for token in old:
        starts.append(starts[-1] + len(token))
    return [
        (starts[block.src_start], max(starts[block.src_end], starts[block.src_start] + 1))
        for block in Levenshtein.opcodes(old, new)
        if block.tag != "equal"
    ]


def _names(turn: Turn, place: Point) -> bool:
    return any((p.start, p.end) == (place.start, place.end) for p in contested([turn]))


def _as_most_say(place: Place, own: Sequence[Sequence[Point]]) -> Point:
    """The surest point on that very place, with the words that most put there."""
    there = [p for points in own for p in points if (p.start, p.end) == place]
    surest = max(there, key=lambda point: point.weight)
    instead = Counter(p.evidence for p in there if p.evidence)
    return replace(surest, evidence=instead.most_common(1)[0][0]) if instead else surest


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]
