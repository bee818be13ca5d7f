"""Mu-SHROOM (SemEval 2025, task 3): JSON lines with hard and soft spans; ids and texts as they are.

Its rows know no label: any hard span means hallucinated, none supported. Where only soft ones are
given the hard ones are what more than half marked, as the task's organisers derive them. What it
cannot say (a label that its spans do not tell, categories) stands in a further object called
`counterpoint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.exchange.fields import (
    OWN,
    case_id,
    lines,
    others_of,
    own_words,
    plain_others,
    plain_text,
    read_of,
    said,
    soft_of,
    spans_of,
    with_own_words,
)
from core.exchange.packed import json_lines, text_of
from core.exchange.rows import ExchangeRow, GoldSpan, Read, Record, gold_of, majority

KNOWN = ("id", "model_input", "model_output_text", "hard_labels", "soft_labels", OWN)


def read(name: str, data: bytes) -> Read:
    """The rows of a file; those without labels are cases without a gold.

    Raises:
        InputError: nothing in it can be read.
    """
    return read_of(json_lines(text_of(name, data)), _row)


def _row(record: Record) -> ExchangeRow:
    fields = record.fields
    response = record.text("model_output_text")
    hard = fields.get("hard_labels")
    soft = soft_of(response, fields.get("soft_labels"))
    if hard is None and fields.get("soft_labels") is not None:
        marked = majority(GoldSpan(one.start, one.end, one.p) for one in soft)
        hard = [[one.start, one.end] for one in marked]
    spans = spans_of(response, hard)
    label = said(None, spans, hard is not None)
    gold = None if label is None else gold_of(label, spans, soft=soft)
    row = ExchangeRow(
        id=case_id(fields.get("id")),
        response=response,
        question=plain_text(record, "model_input"),
        language=plain_text(record, "lang").lower(),
        golds=() if gold is None else (gold,),
        others=others_of(fields, KNOWN),
        place=record.line,
    )
    return with_own_words(row, fields.get(OWN))


def write(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file."""
    return lines(_plain(row) for row in rows)


def _plain(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    made: dict[str, Any] = {
        "id": row.id,
        "lang": (row.language or "und").upper(),
        "model_input": row.question,
        "model_output_text": row.response,
    }
    made |= {name: value for name, value in plain_others(row.others).items() if name not in KNOWN}
    if answer is not None:
        made["soft_labels"] = [{"start": s.start, "prob": s.p, "end": s.end} for s in row.soft]
        made["hard_labels"] = [[span.start, span.end] for span in answer.spans]
    told = said(None, answer.spans, is_marked=True) if answer else None
    return made | own_words(row, told, tells_shares=True)
