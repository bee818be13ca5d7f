"""RAGTruth: responses with labelled spans, and the sources that they rest on.

`response.jsonl` holds the answers, `source_info.jsonl` the sources: their lines may follow each
other in one file, and a response's row may carry its own `source_info` and `prompt`. Any label
means hallucinated, none supported; what its rows cannot say stands in `counterpoint`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
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
    rows_of,
    said,
    spans_of,
    with_own_words,
)
from core.exchange.packed import json_lines, text_of
from core.exchange.rows import UNKNOWN, Document, ExchangeRow, Problem, Read, Record, gold_of

KNOWN = ("id", "response", "question", "language", "labels", "source_info", "source_name", OWN)
SOURCE = "source_id"
MORE = "more_sources"


def read_ragtruth(name: str, data: bytes) -> Read:
    """The rows of a file, joined with the sources that stand in it.

    Raises:
        InputError: nothing in it can be read.
    """
    items = list(json_lines(text_of(name, data)))
    sources = [i for i in items if not isinstance(i, Problem) and _is_source(i[1])]
    rest = (i for i in items if isinstance(i, Problem) or not _is_source(i[1]))
    found = read_of(rest, _row)
    return _joined_with(found, sources)


def with_sources(read: Read, data: bytes) -> Read:
    """Responses with the sources of a file of their own.

    Raises:
        InputError: nothing in it can be read.
    """
    return _joined_with(read, list(json_lines(text_of("sources", data))))


def _joined_with(read: Read, items: Sequence[tuple[int, object] | Problem]) -> Read:
    sources, problems = rows_of(items, _source)
    by_id = dict(sources)
    told = (Problem(one.place, f"among the sources: {one.reason}") for one in problems)
    rows = tuple(_joined(row, by_id) for row in read.rows)
    return replace(read, rows=rows, problems=(*read.problems, *told))


def _is_source(value: object) -> bool:
    return isinstance(value, dict) and "response" not in value and "source_info" in value


def _source(record: Record) -> tuple[str, tuple[Document, str]]:
    source = case_id(record.fields.get(SOURCE))
    if not source:
        raise record.broken("a source_id beside the source_info")
    document, question = _document(record, source)
    return source, (document, question)


def _document(record: Record, source: str) -> tuple[Document, str]:
    """The source's text, and the question where it holds one (its QA part)."""
    info = record.fields.get("source_info")
    name = plain_text(record, "source_name") or f"{source or 'source'}.txt"
    if isinstance(info, str):
        return Document(name, record.text("source_info")), ""
    if not isinstance(info, dict):
        raise record.broken("a text or an object called source_info", info)
    question = info.get("question")
    passages = info.get("passages")
    if isinstance(passages, str) and passages.strip():
        return Document(name, passages), question if isinstance(question, str) else ""
    return Document(name, json.dumps(info, ensure_ascii=False, indent=1)), ""


def _joined(row: ExchangeRow, sources: dict[str, tuple[Document, str]]) -> ExchangeRow:
    wanted = case_id(plain_others(row.others).get(SOURCE))
    found = sources.get(wanted) if not row.documents else None
    if found is None:
        return row
    return replace(row, documents=(found[0],), question=row.question or found[1])


def _row(record: Record) -> ExchangeRow:
    fields = record.fields
    response = record.text("response")
    spans = spans_of(response, fields.get("labels"))
    label = said(None, spans, fields.get("labels") is not None)
    documents: tuple[Document, ...] = ()
    question = plain_text(record, "question")
    if fields.get("source_info") is not None:
        document, asked = _document(record, case_id(fields.get(SOURCE)))
        documents, question = (document,), question or asked
    more = fields.get(MORE)
    for item in more if isinstance(more, list) else []:
        if isinstance(item, dict):
            inner = Record(item, "", record.line)
            documents = (*documents, _document(inner, "")[0])
    row = ExchangeRow(
        id=case_id(fields.get("id")),
        response=response,
        question=question,
        language=plain_text(record, "language"),
        documents=documents,
        golds=() if label is None else (gold_of(label, spans),),
        others=others_of(fields, (*KNOWN, MORE)),
        place=record.line,
    )
    return with_own_words(row, fields.get(OWN))


def write_ragtruth(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file; each carries the texts that it rests on."""
    return lines(_plain(row) for row in rows)


def _plain(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    made: dict[str, Any] = {"id": row.id, "response": row.response}
    others = plain_others(row.others)
    made |= {name: value for name, value in others.items() if name not in (*KNOWN, MORE)}
    if answer is not None:
        made["labels"] = [
            {
                "start": span.start,
                "end": span.end,
                "text": span.text,
                "label_type": span.category,
            }
            for span in answer.spans
        ]
    made |= {"question": row.question} if row.question else {}
    made |= {"language": row.language} if row.language not in UNKNOWN else {}
    texts = [
        {"source_info": d.text, "source_name": d.name} for d in row.documents if d.text is not None
    ]
    made |= texts[0] if texts else {}
    made |= {MORE: texts[1:]} if texts[1:] else {}
    told = said(None, answer.spans, is_marked=True) if answer else None
    return made | own_words(row, told, tells_categories=True)
