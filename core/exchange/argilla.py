"""Argilla 2's records as `records.to_json` writes them: fields, metadata, suggestions, responses.

The questions are `label`, `spans`, `reason` and `corrected_answer`. Argilla names people by UUIDs:
their names stand in the metadata as `user.UUID`, and `gold` there names the one whose response is
the gold. A single person's response is the gold too. Of several suggestions the newest is Argilla's
own; the others stand in the metadata under `counterpoint`, beside what else has no place.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.exchange.fields import (
    case_id,
    label_of,
    others_of,
    plain_others,
    plain_suggestion,
    plain_text,
    read_of,
    said,
    share,
    soft_of,
    spans_of,
    suggestions_of,
)
from core.exchange.packed import json_items, text_of
from core.exchange.rows import UNKNOWN, Document, ExchangeRow, Read, Record, correction_of, gold_of
from core.records import Label, Span
from core.reviews import Correction, Gold, Suggestion

NAMES = uuid.UUID("6f1d1a0e-5f0b-4b53-9a35-0c6a5e1f7b21")
TEXTS = ("response", "text", "answer", "claim")
FIELDS = (*TEXTS, "question", "context")
QUESTIONS = ("label", "spans", "reason", "corrected_answer")
USER, GOLD, LANGUAGE, MORE = "user.", "gold", "language", "counterpoint"


def read_argilla(name: str, data: bytes) -> Read:
    """The records of a file.

    Raises:
        InputError: nothing in it can be read.
    """
    return read_of(json_items(text_of(name, data)), _row, "row")


def _row(record: Record) -> ExchangeRow:
    fields = record.inner("fields")
    response = fields.text(*TEXTS)
    metadata = _mapping(record, "metadata")
    golds, corrections = _people(record, response, metadata)
    earlier = suggestions_of(response, _own(metadata).get("suggestions"))
    others = {k: v for k, v in metadata.items() if not k.startswith(USER)}
    return ExchangeRow(
        id=case_id(record.fields.get("id")),
        response=response,
        question=plain_text(fields, "question"),
        language=plain_text(Record(metadata, "", record.line), LANGUAGE),
        documents=_documents(fields),
        golds=golds,
        corrections=corrections,
        suggestions=(*earlier, *_suggestions(record, response)),
        others=(
            *others_of(others, (GOLD, LANGUAGE, MORE)),
            *others_of(fields.fields, FIELDS),
        ),
        place=record.line,
    )


def _mapping(record: Record, name: str) -> dict[str, Any]:
    value = record.fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise record.broken(f"an object called {name}", value)
    return value


def _documents(fields: Record) -> tuple[Document, ...]:
    text = plain_text(fields, "context")
    return (Document("context.txt", text),) if text.strip() else ()


def _people(
    record: Record, response: str, metadata: dict[str, Any]
) -> tuple[tuple[Gold, ...], tuple[Correction, ...]]:
    said_by: dict[str, dict[str, Any]] = {}
    for question, values in _mapping(record, "responses").items():
        if question not in QUESTIONS or not isinstance(values, list):
            continue
        for value in values:
            if not isinstance(value, dict):
                raise record.broken(f"responses to {question} with value and user_id", value)
            said_by.setdefault(str(value.get("user_id")), {})[question] = value.get("value")
    chosen = str(metadata.get(GOLD) or (next(iter(said_by)) if len(said_by) == 1 else ""))
    golds: list[Gold] = []
    corrections: list[Correction] = []
    for user, answers in said_by.items():
        label, spans, texts = _answer(record, response, answers)
        name = str(metadata.get(USER + user) or user)[:60]
        if user == chosen:
            gold = replace(gold_of(label, spans, author=name), **texts)
            golds.append(_with_more(gold, metadata, response))
        else:
            corrections.append(replace(correction_of(name, label, spans), **texts))
    return tuple(golds), tuple(corrections)


def _with_more(gold: Gold, metadata: dict[str, Any], response: str) -> Gold:
    """The gold with what Argilla's own values have no place for, where it is about the same."""
    own = _own(metadata)
    spans = spans_of(response, own.get("spans"))
    same = [(s.start, s.end, s.category) for s in spans] == [
        (s.start, s.end, s.category) for s in gold.spans
    ]
    soft = soft_of(response, own.get("soft"))
    return replace(gold, spans=spans if same else gold.spans, soft=soft)


def _own(metadata: dict[str, Any]) -> dict[str, Any]:
    """What Argilla's own values have no place for; empty where it is not as it was written."""
    more = metadata.get(MORE)
    try:
        own = json.loads(more) if isinstance(more, str) else None
    except (ValueError, RecursionError):
        return {}
    return own if isinstance(own, dict) else {}


def _answer(
    record: Record, response: str, answers: dict[str, Any]
) -> tuple[Label, tuple[Span, ...], dict[str, Any]]:
    spans = spans_of(response, answers.get("spans"))
    label = said(label_of(answers.get("label")), spans, is_marked=True)
    texts: dict[str, Any] = {}
    for name in ("reason", "corrected_answer"):
        value = answers.get(name)
        if value is not None and not isinstance(value, str):
            raise record.broken(f"a text as the response to {name}", value)
        texts[name] = value or ""
    return label or "supported", spans, texts


def _suggestions(record: Record, response: str) -> tuple[Suggestion, ...]:
    """Argilla keeps one suggestion a question; those of one agent belong together."""
    by_agent: dict[str, dict[str, Any]] = {}
    for question, value in _mapping(record, "suggestions").items():
        if question not in ("label", "spans") or value is None:
            continue
        if not isinstance(value, dict):
            raise record.broken(f"a suggestion to {question} with value and agent", value)
        by_agent.setdefault(str(value.get("agent") or "unknown"), {})[question] = value
    found = []
    for agent, own in by_agent.items():
        label = label_of(own["label"].get("value")) if "label" in own else None
        score = own.get("label", {}).get("score")
        spans = spans_of(response, own["spans"].get("value")) if "spans" in own else ()
        p = None if score is None else share(score, 0.0)
        found.append(Suggestion("", "", agent, 0.0, label, p, spans))
    return tuple(found)


def write_argilla(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file of records."""
    made = [json.dumps(_record(row), ensure_ascii=False).encode() for row in rows]
    return b"[" + b",\n".join(made) + b"]\n"


def _record(row: ExchangeRow) -> dict[str, Any]:
    fields: dict[str, Any] = {"response": row.response, "question": row.question}
    texts = [document.text for document in row.documents if document.text]
    fields |= {"context": "\n\n".join(texts)} if texts else {}
    metadata = {
        name: value
        for name, value in plain_others(row.others).items()
        if name not in (GOLD, LANGUAGE, MORE) and not name.startswith(USER)
    }
    metadata |= {LANGUAGE: row.language} if row.language not in UNKNOWN else {}
    answer = row.settled
    people = [one for one in row.people if one is not answer]
    given = [*([answer] if answer else ()), *people]
    responses: dict[str, list[dict[str, Any]]] = {}
    for one in given:
        kind = "gold" if isinstance(one, Gold) else "person"  # one may be both
        user = str(uuid.uuid5(NAMES, f"{kind}\n{one.author}"))
        metadata[USER + user] = one.author
        if one is answer:
            metadata[GOLD] = user
        for question, value in _values(one).items():
            responses.setdefault(question, []).append({"value": value, "user_id": user})
    metadata |= _more(row)
    return {
        "id": row.id,
        "fields": fields,
        "metadata": metadata,
        "suggestions": _suggested(row),
        "responses": responses,
        "vectors": {},
    }


def _values(answer: Gold | Correction) -> dict[str, Any]:
    spans = [{"label": s.category, "start": s.start, "end": s.end} for s in answer.spans]
    values: dict[str, Any] = {"label": answer.label, "spans": spans}
    texts = {"reason": answer.reason, "corrected_answer": answer.corrected_answer}
    return values | {name: text for name, text in texts.items() if text}


def _more(row: ExchangeRow) -> dict[str, str]:
    answer = row.answer
    own: dict[str, Any] = {}
    if answer and any(s.p != 1.0 or s.instead for s in answer.spans):
        names = ("start", "end", "text", "category", "p", "instead")
        own["spans"] = [{name: getattr(s, name) for name in names} for s in answer.spans]
    if row.soft:
        own["soft"] = [{"start": s.start, "end": s.end, "prob": s.p} for s in row.soft]
    if row.suggestions[1:]:
        own["suggestions"] = [plain_suggestion(one) for one in row.suggestions[:-1]]
    return {MORE: json.dumps(own, ensure_ascii=False)} if own else {}


def _suggested(row: ExchangeRow) -> dict[str, Any]:
    if not row.suggestions:
        return {}
    newest = row.suggestions[-1]
    told: dict[str, Any] = {"score": newest.p, "agent": newest.agent}
    spans = [{"label": s.category, "start": s.start, "end": s.end} for s in newest.spans]
    made: dict[str, Any] = {"spans": {"value": spans, "score": None, "agent": newest.agent}}
    return made | ({"label": {"value": newest.label, **told}} if newest.label else {})
