"""JSONL: everything that is known of a case, one object a line, with the schema's number.

A row needs an `id` (or none) and a `response`; `label`, `spans`, `soft`, `reason` and
`corrected_answer` say the answer that counts. `golds`, `corrections`, `suggestions` and
`handlings` are the store's own records. The text of a document stands in the first row that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from core.errors import InputError
from core.exchange.fields import (
    case_id,
    label_of,
    lines,
    others_of,
    plain_others,
    plain_span,
    plain_text,
    read_of,
    reason,
    said,
    soft_of,
    spans_of,
)
from core.exchange.packed import json_lines, text_of
from core.exchange.rows import (
    SCHEMA,
    Document,
    ExchangeRow,
    MachineVerdict,
    Read,
    Record,
    gold_of,
    imported_row,
)
from core.records import Label, Span
from core.reviews import Correction, Gold, Handling, Suggestion
from core.store.sqlite import from_plain, to_plain

SHA256 = re.compile(r"[0-9a-f]{64}")
RECORDS = ("golds", "corrections", "suggestions", "handlings")
ANSWER = ("label", "spans", "soft", "reason", "corrected_answer")
TEXTS = ("question", "language", "role", "instruction")
KNOWN = ("schema", "id", "response", *TEXTS, "documents", "images", *ANSWER, *RECORDS, "verdict",
         "others", "claim")  # fmt: skip
R = TypeVar("R", Gold, Correction, Suggestion, Handling)


def read_jsonl(name: str, data: bytes) -> Read:
    """The rows of a file.

    Raises:
        InputError: nothing in it can be read.
    """
    found = read_of(json_lines(text_of(name, data)), _row)
    texts = {d.id: d.text or "" for row in found.rows for d in row.documents if d.id and d.text}
    rows = tuple(replace(row, documents=_with_texts(row.documents, texts)) for row in found.rows)
    return replace(found, rows=rows)


def _with_texts(documents: Sequence[Document], texts: Mapping[str, str]) -> tuple[Document, ...]:
    return tuple(d if d.text else replace(d, text=texts.get(d.id) or None) for d in documents)


def require_schema(value: object) -> None:
    """Refuse rows of a newer Counterpoint, and what is no schema.

    Raises:
        InputError: says which is read here.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= SCHEMA:
        raise InputError(
            f"expected rows of schema {SCHEMA} or older, found {str(value)[:20]}; update "
            "Counterpoint, or export the file again with an older one."
        )


def _row(record: Record) -> ExchangeRow:
    fields = record.fields
    require_schema(fields.get("schema"))
    response = record.text("response", "claim")
    others = fields.get("others") or {}
    if not isinstance(others, dict):
        raise record.broken("an object called others", others)
    row = ExchangeRow(
        id=case_id(fields.get("id")),
        response=response,
        question=plain_text(record, "question"),
        language=plain_text(record, "language"),
        role=_said(record, "role"),
        instruction=_said(record, "instruction"),
        documents=_documents(record, "documents"),
        images=_documents(record, "images"),
        golds=_records(record, "golds", Gold),
        corrections=_records(record, "corrections", Correction),
        suggestions=_records(record, "suggestions", Suggestion),
        handlings=_records(record, "handlings", Handling),
        verdict=_verdict(fields.get("verdict")),
        others=(*others_of(others, ()), *others_of(fields, KNOWN)),
        place=record.line,
    )
    return _with_answer(row, record)


def _said(record: Record, name: str) -> str | None:
    return None if record.fields.get(name) is None else plain_text(record, name)


def _with_answer(row: ExchangeRow, record: Record) -> ExchangeRow:
    """The row with the answer at its top as a gold, unless its own records say the same."""
    fields = record.fields
    spans = spans_of(row.response, fields.get("spans"))
    label = said(label_of(fields.get("label")), spans, bool(spans))
    if label is None:
        return row
    known = row.answer, imported_row(row).answer  # as it counted there, as it will count here
    same = [a is not None and _is_same(a, label, spans) for a in known]
    if all(same):
        return row
    gold = gold_of(
        label,
        spans,
        soft=soft_of(row.response, fields.get("soft")),
        reason=plain_text(record, "reason"),
        corrected_answer=plain_text(record, "corrected_answer"),
    )
    if (
        known[0] is not None and not same[0]
    ):  # a changed answer counts from now on, whatever was said before
        gold = replace(gold, origin="corrected", reason=gold.reason or "changed in the file")
    return replace(row, golds=(*row.golds, gold))


def _is_same(answer: Gold | Correction, label: Label, spans: Sequence[Span]) -> bool:
    own = [*map(plain_span, answer.spans)]
    return (answer.label, own) == (label, [*map(plain_span, spans)])


def _documents(record: Record, name: str) -> tuple[Document, ...]:
    items = record.fields.get(name) or []
    if not isinstance(items, list):
        raise record.broken(f"a list called {name}", items)
    found = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, dict):
            raise record.broken(f"{name} with a name and a text or an id", item)
        inner = Record(item, "", record.line)
        source = plain_text(inner, "id")
        text = plain_text(inner, "text") or None
        if not (text or SHA256.fullmatch(source)):
            raise record.broken(f"{name} with a text, or the sha256 of a file as id", source)
        found.append(Document(plain_text(inner, "name") or f"source {number}.txt", text, source))
    return tuple(found)


def _records(record: Record, name: str, kind: type[R]) -> tuple[R, ...]:
    items = record.fields.get(name) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise record.broken(f"a list of objects called {name}", items)
    found = []
    for item in items:
        try:
            found.append(from_plain(kind, {**item, "case_id": ""}))
        except InputError as error:
            raise record.broken(f"{name} as Counterpoint writes them", str(error)) from error
    return tuple(found)


def _verdict(value: object) -> MachineVerdict | None:
    if value is None:
        return None
    try:
        return from_plain(MachineVerdict, value)
    except InputError as error:
        raise InputError(f"expected a verdict: {reason(error)}") from error


def write_jsonl(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file."""
    return lines(_plain_rows(rows))


def _plain_rows(rows: Sequence[ExchangeRow]) -> Iterator[dict[str, Any]]:
    told: set[str] = set()
    for row in rows:
        yield _plain(row, told)


def _plain(row: ExchangeRow, told: set[str]) -> dict[str, Any]:
    answer = row.answer
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "id": row.id,
        "response": row.response,
        "question": row.question,
        "language": row.language,
        "role": row.role,
        "instruction": row.instruction,
        "label": answer.label if answer else None,
        "spans": [plain_span(span) for span in answer.spans] if answer else [],
        "soft": [{"start": s.start, "end": s.end, "prob": s.p} for s in row.soft],
        "reason": answer.reason if answer else "",
        "corrected_answer": answer.corrected_answer if answer else "",
        "documents": [_document(document, told) for document in row.documents],
        "images": [{"id": image.id, "name": image.name} for image in row.images],
    }
    for name in RECORDS:
        records = [to_plain(one) for one in getattr(row, name)]
        made[name] = [{k: v for k, v in one.items() if k != "case_id"} for one in records]
    made["verdict"] = to_plain(row.verdict)
    made["others"] = plain_others(row.others)
    return made


def _document(document: Document, told: set[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"id": document.id, "name": document.name}
    if document.text is not None and (not document.id or document.id not in told):
        made["text"] = document.text
        told.add(document.id)
    return made
