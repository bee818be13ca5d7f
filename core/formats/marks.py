"""What people marked in a record, read into labels and spans; a mark that cannot be is an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.formats.record import Record
from core.records import Label


@dataclass(frozen=True)
class GoldSpan:
    """Words that people marked: `[start, end)` in the response, code points.

    `p` is the share of annotators who marked them; 1.0 where the set gives no share.
    """

    start: int
    end: int
    p: float = 1.0


WRONG_IS_TRUE: Mapping[str, Label] = {"1": "hallucinated", "0": "supported"}
FACT_IS_TRUE: Mapping[str, Label] = {"true": "supported", "false": "hallucinated"}


def word(value: object) -> str:
    """A text, number or truth value as one lower-case word; anything else is ""."""
    return str(value).strip().lower() if isinstance(value, str | int) else ""


def label_of(record: Record, value: object, meanings: Mapping[str, Label]) -> Label:
    """The label that a text, a number or a truth value stands for in this set."""
    found = meanings.get(word(value))
    if found is None:
        raise record.broken(f"a label, one of {', '.join(meanings)}", value)
    return found


def span(record: Record, text: str, start: object, end: object) -> GoldSpan:
    """`[start, end)` of `text`; offsets that do not lie in it mean a broken row."""
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text):
        return GoldSpan(start, end)
    raise record.broken(f"a span inside a text of {len(text)} characters", f"{start} to {end}")


def found_spans(text: str, pieces: Iterable[str]) -> tuple[GoldSpan, ...]:
    """Where the pieces stand in the text, the first match of each, touching ones joined.

    Annotators' tools changed a first letter's case here and there, so case does not count. Among
    the pieces of some sets stand comments (“incomplete answer”): what is not in the text marks
    nothing.
    """
    spans = []
    for piece in pieces:
        bare = piece.strip()
        start = nearest(text, bare, 0)
        if start >= 0:
            spans.append(GoldSpan(start, start + len(bare)))
    return joined(spans)


def nearest(text: str, piece: str, place: int) -> int:
    """Where the piece stands in the text, nearest to the place; -1 where it does not stand.

    As it is written if it stands so anywhere, else in any case.
    """
    places = _places(text, piece)
    low, low_piece = text.lower(), piece.lower()
    # A few letters change their length with their case: offsets would then be of another text.
    if not places and (len(low), len(low_piece)) == (len(text), len(piece)):
        places = _places(low, low_piece)
    return min(places, key=lambda start: abs(start - place), default=-1)


def _places(text: str, piece: str) -> list[int]:
    found, start = [], text.find(piece) if piece else -1
    while start >= 0:
        found.append(start)
        start = text.find(piece, start + 1)
    return found


def joined(spans: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """The spans in order; those that overlap or touch become one."""
    done: list[GoldSpan] = []
    for one in sorted(spans, key=lambda span: (span.start, span.end)):
        if done and one.start <= done[-1].end:
            done[-1] = GoldSpan(done[-1].start, max(done[-1].end, one.end))
        else:
            done.append(one)
    return tuple(done)


def shares(marked: Sequence[Iterable[GoldSpan]]) -> tuple[GoldSpan, ...]:
    """Stretches of a text with the share of annotators who marked them.

    `marked` holds the spans of each annotator, also of those who marked nothing.
    """
    sides = [joined(spans) for spans in marked]
    edges = sorted({edge for spans in sides for one in spans for edge in (one.start, one.end)})
    stretches = []
    for start, end in pairwise(edges):
        count = sum(any(one.start <= start < one.end for one in spans) for spans in sides)
        if count:
            stretches.append(GoldSpan(start, end, count / len(sides)))
    return tuple(stretches)


def majority(stretches: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """The stretches that more than half of the annotators marked."""
    return joined(GoldSpan(one.start, one.end) for one in stretches if one.p > 0.5)
