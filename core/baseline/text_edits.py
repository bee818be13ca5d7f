"""The response as it should read, built in: the evidence's own values in the places of wrong ones.

A point counts where its words stand at its offsets and the evidence's value is of the same make;
what has no such value is left as it is: a guess could be ungrammatical, or wrong. Source: SC-MAKS
3.2 (the output O*).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.baseline.wording import capitalised
from core.records import Point, Span

VALUES = frozenset({"number_or_date", "wrong_entity"})
LONGEST = 60  # characters; longer ones are stretches of sentences, not values
DIGIT = re.compile(r"\d")
ELLIPSIS = "…"


@dataclass(frozen=True)
class TextEdit:
    """`instead` of the words at `[start, end)` of the response; the surer one goes first."""

    start: int
    end: int
    instead: str
    weight: float


def edits_of(points: Iterable[Point], response: str) -> list[TextEdit]:
    """Those of the points whose value fits; equal ones once."""
    found = [
        TextEdit(point.start, point.end, _instead(point.text, point.evidence), point.weight)
        for point in points
        if point.finding == "contradicted"
        and response[point.start : point.end] == point.text
        and fits(point.text, point.evidence, point.category)
    ]
    return list(dict.fromkeys(found))


def edits_of_spans(spans: Iterable[Span], response: str) -> list[TextEdit]:
    """Those of the marked spans that say what should stand there."""
    return [
        TextEdit(span.start, span.end, _instead(span.text, span.instead), span.p)
        for span in spans
        if response[span.start : span.end] == span.text
        and fits(span.text, span.instead, span.category)
    ]


def with_edits(response: str, edits: Sequence[TextEdit]) -> str:
    """The response with these put in; of those that overlap the surer one.

    Where two that are equally sure want different words in one place, it is left as it is.
    """
    chosen: list[TextEdit] = []
    for one in sorted(edits, key=lambda m: (-m.weight, m.start)):
        if not any(one.start < other.end and other.start < one.end for other in chosen):
            chosen.append(one)
    kept = [one for one in chosen if not any(_contests(one, other) for other in edits)]
    for one in sorted(kept, key=lambda m: -m.start):
        response = response[: one.start] + one.instead + response[one.end :]
    return response


def fits(words: str, value: str, category: str) -> bool:
    """True where the value can stand in the place of the words without changing their sentence.

    A value on one line and not long; figures for figures, and both with or both without letters
    before them, as bounds have (“more than 40”), and behind them, as units have.
    """
    if category not in VALUES or not value.strip() or not words.strip():
        return False
    if len(value) > LONGEST or ELLIPSIS in value or "\n" in value:
        return False
    if bool(DIGIT.search(words)) != bool(DIGIT.search(value)):
        return False
    return not DIGIT.search(words) or _make(words) == _make(value)


def _make(words: str) -> tuple[bool, bool]:
    """Whether it begins, and whether it ends, with a figure."""
    bare = words.strip()
    return bare[0].isdigit(), bare[-1].isdigit()


def _instead(words: str, value: str) -> str:
    value = value.strip()
    return capitalised(value) if words[:1].isupper() else value


def _contests(one: TextEdit, other: TextEdit) -> bool:
    overlaps = one.start < other.end and other.start < one.end
    return overlaps and other.weight == one.weight and other.instead != one.instead
