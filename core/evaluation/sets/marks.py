"""What people marked in a record, read into labels and spans; a mark that cannot be is an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.evaluation.gold import GoldSpan
from core.evaluation.record import Record
from core.records import Label

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

    Among the pieces of some sets stand comments (“incomplete answer”): what is not in the text
    marks nothing.
    """
    spans = []
    for piece in pieces:
        bare = piece.strip()
        start = text.find(bare) if bare else -1
        if start >= 0:
            spans.append(GoldSpan(start, start + len(bare)))
    return joined(spans)


def joined(spans: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """The spans in order; those that overlap or touch become one."""
    done: list[GoldSpan] = []
    for one in sorted(spans, key=lambda span: (span.start, span.end)):
        if done and one.start <= done[-1].end:
            done[-1] = GoldSpan(done[-1].start, max(done[-1].end, one.end))
        else:
            done.append(one)
    return tuple(done)


def shares(size: int, marked: Sequence[Iterable[GoldSpan]]) -> tuple[GoldSpan, ...]:
    """Stretches of a text of `size` characters with the share of annotators who marked them.

    `marked` holds the spans of each annotator, also of those who marked nothing.
    """
    counts = [0] * (size + 1)
    for spans in marked:
        for one in joined(spans):
            for place in range(one.start, one.end):
                counts[place] += 1
    done: list[GoldSpan] = []
    begins = 0
    for place in range(1, size + 1):
        if place == size or counts[place] != counts[begins]:
            if counts[begins]:
                done.append(GoldSpan(begins, place, counts[begins] / len(marked)))
            begins = place
    return tuple(done)


def majority(stretches: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """The stretches that more than half of the annotators marked."""
    return joined(GoldSpan(one.start, one.end) for one in stretches if one.p > 0.5)
