"""FaithBench's batches: summaries with the spans that several annotators marked, and the sources.

What all marks say together is the gold: the gravest of them counts, and only unwanted words are
wrong. Each annotator's own marks are their answer. The ids of its samples start anew in each batch
and are kept as a further column; the case's own id comes from its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from core.errors import InputError
from core.exchange.fields import others_of, plain_text, read_of
from core.exchange.packed import json_items, text_of
from core.exchange.rows import (
    Document,
    ExchangeRow,
    Place,
    Problem,
    Read,
    Record,
    Unit,
    correction_of,
    gold_of,
    placed,
    unit_of,
)
from core.records import Label, Span

GRADES = ("Unwanted", "Questionable", "Benign")
LABELS: dict[str, Label] = {"Unwanted": "hallucinated", "Questionable": "unclear"}
Mark = tuple[str, str, Span, str]  # who, grade, words, note


def is_faithbench(value: object) -> bool:
    """Whether a decoded row looks like a batch or a sample of it."""
    if isinstance(value, dict) and isinstance(value.get("samples"), list):
        value = value["samples"][0] if value["samples"] else None
    return isinstance(value, dict) and {"source", "summary", "annotations"} <= value.keys()


def read(name: str, data: bytes) -> Read:
    """The samples of a batch.

    Raises:
        InputError: nothing in it can be read.
    """
    return read_of(_samples(json_items(text_of(name, data))), _row, "row")


def _samples(items: Iterable[tuple[int, object] | Problem]) -> Iterator[Any]:
    for item in items:
        value = None if isinstance(item, Problem) else item[1]
        if isinstance(value, dict) and isinstance(value.get("samples"), list):
            yield from enumerate(value["samples"], start=1)
        else:
            yield item


def _row(record: Record) -> ExchangeRow:
    summary = record.text("summary")
    annotations = record.records("annotations")
    unit = unit_of(summary, map(_place, annotations))
    given = [_mark(summary, one, unit) for one in annotations]
    marks = [mark for mark in given if mark[1]]  # a mark without a grade says nothing
    people = dict.fromkeys(person for person, *_ in marks)
    own = ((who, [mark for mark in marks if mark[0] == who]) for who in people)
    metadata = record.fields.get("metadata")
    return ExchangeRow(
        id="",
        response=summary,
        documents=(Document("source.txt", record.text("source")),),
        golds=(gold_of(_label(marks), _wrong(marks), reason=_notes(marks)),),
        corrections=tuple(
            correction_of(who, _label(given), [mark[2] for mark in given], reason=_notes(given))
            for who, given in own
        ),
        others=(
            *others_of({"sample_id": record.fields.get("sample_id")}, ()),
            *others_of(metadata if isinstance(metadata, dict) else {}, ()),
        ),
        place=record.line,
    )


def _place(record: Record) -> Place:
    names = ("summary_start", "summary_end", "summary_span")
    start, end, quote = map(record.fields.get, names)
    return start, end, quote


def _mark(summary: str, record: Record, unit: Unit | None) -> Mark:
    labels = record.texts("label")
    grade = next((one for one in GRADES if any(w.split(".")[0] == one for w in labels)), "")
    if labels and not grade:
        raise InputError(
            f"expected a mark of {', '.join(GRADES)}, found “{', '.join(labels)[:60]}”; correct it."
        )
    start, end = placed(summary, *_place(record), unit)
    person = plain_text(record, "annotator_name", "annotator_id") or "annotator"
    span = Span(start, end, summary[start:end], 1.0, max(labels, key=len, default=""), "")
    return person, grade, span, plain_text(record, "note").strip()


def _label(marks: Sequence[Mark]) -> Label:
    grades = {grade for _, grade, *_ in marks}
    return next((LABELS[one] for one in GRADES if one in grades and one in LABELS), "supported")


def _wrong(marks: Sequence[Mark]) -> list[Span]:
    """The unwanted words, once where several annotators marked the same."""
    found = {(s.start, s.end, s.category): s for _, grade, s, _ in marks if grade == "Unwanted"}
    return [found[key] for key in sorted(found)]


def _notes(marks: Sequence[Mark]) -> str:
    return "\n".join(dict.fromkeys(note for *_, note in marks if note))
