"""Tasks of Label Studio and records of Argilla 2, in and out.

Label Studio: `data` with id and text, annotations by people, predictions by models. Offsets count
code points, as its editor writes them since 1.5; older files count UTF-16 units, which the quoted
texts show, or else those of the rest of the file; of texts shown as HTML `globalOffsets` count.
What a person alone annotated, or what is marked as `ground_truth`, is the gold.

Argilla, as `records.to_json` writes it: the questions are `label`, `spans`, `reason` and
`corrected_answer`. People are UUIDs, whose names stand in the metadata as `user.UUID`; `gold` there
names the one whose response is the gold, as a single person's is. Of several suggestions the newest
is Argilla's own; the others, and what else has no place, stand there under `counterpoint`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from string import Template
from typing import Any
from xml.sax.saxutils import quoteattr

from core.exchange.fields import (
    LABELS,
    case_id,
    json_list,
    label_of,
    others_of,
    plain_others,
    plain_soft,
    plain_suggestion,
    plain_text,
    probability,
    read_of,
    said,
    share,
    soft_of,
    spans_of,
    suggestions_of,
)
from core.exchange.packed import json_items, text_of
from core.exchange.rows import (
    UNKNOWN,
    UNSPECIFIED,
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
from core.schema.records import Label, Span
from core.schema.reviews import Correction, Gold, Suggestion

NAMES = uuid.UUID("6f1d1a0e-5f0b-4b53-9a35-0c6a5e1f7b21")
ARGILLA_TEXTS = ("response", "text", "answer", "claim")
FIELDS = (*ARGILLA_TEXTS, "question", "context")
WORDS = ("reason", "corrected_answer")
QUESTIONS = ("label", "spans", *WORDS)
USER, GOLD, LANGUAGE, MORE = "user.", "gold", "language", "counterpoint"


def read_argilla(name: str, data: bytes) -> Read:
    """The records of a file. Raises InputError: nothing in it can be read."""
    return read_of(json_items(text_of(name, data)), _argilla_row, "row")


def _argilla_row(record: Record) -> ExchangeRow:
    fields = record.inner("fields")
    response = fields.text(*ARGILLA_TEXTS)
    metadata = _mapping(record, "metadata")
    golds, corrections = _argilla_people(record, response, metadata)
    context = plain_text(fields, "context")
    earlier = suggestions_of(response, _own(metadata).get("suggestions"))
    others = {k: v for k, v in metadata.items() if not k.startswith(USER)}
    return ExchangeRow(
        id=case_id(record.fields.get("id")),
        response=response,
        question=plain_text(fields, "question"),
        language=plain_text(Record(metadata, "", record.line), LANGUAGE),
        documents=(Document("context.txt", context),) if context.strip() else (),
        golds=golds,
        corrections=corrections,
        suggestions=(*earlier, *_suggestions(record, response)),
        others=(*others_of(others, (GOLD, LANGUAGE, MORE)), *others_of(fields.fields, FIELDS)),
        place=record.line,
    )


def _mapping(record: Record, name: str) -> dict[str, Any]:
    value = record.fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise record.broken(f"an object called {name}", value)
    return value


def _argilla_people(
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
    told, said_of = ([(s.start, s.end, s.category) for s in one] for one in (spans, gold.spans))
    soft = soft_of(response, own.get("soft"))
    return replace(gold, spans=spans if told == said_of else gold.spans, soft=soft)


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
    texts = {n: "" if answers.get(n) is None else answers[n] for n in WORDS}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise record.broken(f"a text as the response to {name}", value)
    return label or "supported", spans, texts


def _suggestions(record: Record, response: str) -> tuple[Suggestion, ...]:
    by_agent: dict[str, dict[str, Any]] = {}
    for question, value in _mapping(record, "suggestions").items():
        if question not in ("label", "spans") or value is None:
            continue
        if not isinstance(value, dict):
            raise record.broken(f"a suggestion to {question} with value and agent", value)
        by_agent.setdefault(str(value.get("agent") or "unknown"), {})[question] = value
    found = []
    for agent, own in by_agent.items():
        told = own.get("label", {})
        label, p = label_of(told.get("value")), probability(told.get("score"))
        spans = spans_of(response, own.get("spans", {}).get("value"))
        found.append(Suggestion("", "", agent, 0.0, label, p, spans))
    return tuple(found)


def write_argilla(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file of records."""
    return json_list(map(_record, rows))


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
    given = [*([answer] if answer else ()), *(one for one in row.people if one is not answer)]
    responses: dict[str, list[dict[str, Any]]] = {}
    for one in given:
        kind = "gold" if isinstance(one, Gold) else "person"  # one may be both
        user = str(uuid.uuid5(NAMES, f"{kind}\n{one.author}"))
        metadata[USER + user] = one.author
        if one is answer:
            metadata[GOLD] = user
        values: dict[str, Any] = {"label": one.label, "spans": _marks(one.spans)}
        values |= {name: getattr(one, name) for name in WORDS if getattr(one, name)}
        for question, value in values.items():
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


def _marks(spans: Sequence[Span]) -> list[dict[str, Any]]:
    return [{"label": s.category, "start": s.start, "end": s.end} for s in spans]


def _more(row: ExchangeRow) -> dict[str, str]:
    answer = row.answer
    own: dict[str, Any] = {}
    if answer and any(s.p != 1.0 or s.instead for s in answer.spans):
        names = ("start", "end", "text", "category", "p", "instead")
        own["spans"] = [{name: getattr(s, name) for name in names} for s in answer.spans]
    if row.soft:
        own["soft"] = plain_soft(row)
    if row.suggestions[1:]:
        own["suggestions"] = [plain_suggestion(one) for one in row.suggestions[:-1]]
    return {MORE: json.dumps(own, ensure_ascii=False)} if own else {}


def _suggested(row: ExchangeRow) -> dict[str, Any]:
    if not row.suggestions:
        return {}
    newest = row.suggestions[-1]
    by = {"agent": newest.agent}
    made = {"spans": {"value": _marks(newest.spans), "score": None, **by}}
    return made | (
        {"label": {"value": newest.label, "score": newest.p, **by}} if newest.label else {}
    )


CONFIG = Template("""\
<View>
  <Text name="question" value="$$question"/>
  <Labels name="wrong" toName="text">
$labels
  </Labels>
  <Text name="text" value="$$text"/>
  <Choices name="verdict" toName="text"><Choice value="supported"/><Choice value="hallucinated"/>
    <Choice value="unclear"/></Choices>
  <TextArea name="reason" toName="text"/>
  <TextArea name="corrected_answer" toName="text"/>
</View>
""")
TEXTS = ("text", "response", "answer", "claim")
SOFT = "soft_labels"  # Label Studio has no place for the share of people who marked a word
KNOWN = ("id", *TEXTS, "question", "language", "documents", SOFT)
MARKS = ("labels", "hypertextlabels")
NOBODY = "unknown"


def config_of(categories: Sequence[str]) -> str:
    """The labelling configuration for tasks of a project with these categories of wrong words."""
    labels = "\n".join(f"    <Label value={quoteattr(name)}/>" for name in categories)
    return CONFIG.substitute(labels=labels)


def read_label_studio(name: str, data: bytes) -> Read:
    """The tasks of a file. Raises InputError: nothing in it can be read."""
    items = list(json_items(text_of(name, data)))
    return read_of(items, partial(_row, _unit_of_file(items)), "row")


def _unit_of_file(items: Iterable[tuple[int, object] | Problem]) -> Unit | None:
    """What spans count whose own annotation does not tell: what those that tell agree upon."""
    tasks = (item[1] for item in items if not isinstance(item, Problem))
    units = {unit_of(*answer) for task in tasks for answer in _answers(task)}
    return "utf-16" if units - {None} == {"utf-16"} else None


def _answers(task: object) -> Iterator[tuple[str, list[Place]]]:
    """(response, places) of each annotation and prediction; what is broken is told later."""
    inside = task.get("data") if isinstance(task, dict) else None
    if not isinstance(task, dict) or not isinstance(inside, dict):
        return
    response = next((inside[name] for name in TEXTS if name in inside), None)
    for name in ("annotations", "predictions") if isinstance(response, str) else ():
        given = task.get(name)
        for one in given if isinstance(given, list) else ():
            result = one.get("result") if isinstance(one, dict) else None
            yield str(response), _places(result if isinstance(result, list) else [])


def _places(result: Sequence[object]) -> list[Place]:
    marks = (one for one in result if isinstance(one, dict) and one.get("type") in MARKS)
    return [_place(one["value"]) for one in marks if isinstance(one.get("value"), dict)]


def _place(value: dict[str, Any]) -> Place:
    """Start, end and quote; the start and end of HTML are paths, which only its editor can walk."""
    whole = value.get("globalOffsets")
    ends = whole if isinstance(whole, dict) else value
    return ends.get("start"), ends.get("end"), value.get("text")


def _row(unit: Unit | None, record: Record) -> ExchangeRow:
    inside = record.inner("data")
    response = inside.text(*TEXTS)
    own = inside.fields.get("id")
    golds, corrections = _people(record, response, unit)
    soft = soft_of(response, inside.fields.get(SOFT))
    golds = tuple(replace(gold, soft=soft) for gold in golds)
    return ExchangeRow(
        id=case_id(own) or case_id(record.fields.get("id")),
        response=response,
        question=plain_text(inside, "question"),
        language=plain_text(inside, "language"),
        documents=_documents(inside),
        golds=golds,
        corrections=corrections,
        suggestions=tuple(_suggestion(response, p, unit) for p in _list(record, "predictions")),
        others=others_of(inside.fields, KNOWN),
        place=record.line,
    )


def _documents(record: Record) -> tuple[Document, ...]:
    items = record.fields.get("documents")
    found = []
    for number, item in enumerate(items if isinstance(items, list) else [], start=1):
        one = Record(item if isinstance(item, dict) else {"text": item}, "", record.line)
        found.append(Document(plain_text(one, "name") or f"source {number}.txt", one.text("text")))
    return tuple(found)


def _list(record: Record, name: str) -> list[Record]:
    return record.records(name) if record.fields.get(name) is not None else []


def _people(
    record: Record, response: str, unit: Unit | None
) -> tuple[tuple[Gold, ...], tuple[Correction, ...]]:
    given = [a for a in _list(record, "annotations") if not a.fields.get("was_cancelled")]
    truths = [one for one in given if one.fields.get("ground_truth") is True]
    if not truths and len(given) == 1:
        truths = given
    golds, answers = [], []
    for one in given:
        label, spans, texts = _result(response, one, unit)
        if one in truths:
            golds.append(replace(gold_of(label, spans, author=_person(one)), **texts))
        else:
            answers.append(replace(correction_of(_person(one) or NOBODY, label, spans), **texts))
    return tuple(golds), tuple(answers)


def _person(annotation: Record) -> str:
    named = annotation.fields.get("created_username")
    if isinstance(named, str) and named.strip():
        return named.strip()
    by = annotation.fields.get("completed_by")
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    return "" if by is None or isinstance(by, bool) else str(by)[:60]


def _suggestion(response: str, prediction: Record, unit: Unit | None) -> Suggestion:
    label, spans, _ = _result(response, prediction, unit)
    agent = plain_text(prediction, "model_version") or NOBODY
    p = probability(prediction.fields.get("score"))
    return Suggestion("", "", agent, 0.0, label, p, spans)


def _result(
    response: str, annotation: Record, unit: Unit | None
) -> tuple[Label, tuple[Span, ...], dict[str, Any]]:
    """What one annotation says; without a choice any mark means hallucinated."""
    label: Label | None = None
    spans: list[Span] = []
    texts: dict[str, Any] = {}
    items = _list(annotation, "result")
    unit = unit_of(response, _places([item.fields for item in items])) or unit
    for item in items:
        value = item.fields.get("value")
        kind, name = item.fields.get("type"), item.fields.get("from_name")
        if not isinstance(value, dict):
            continue
        if kind in MARKS:
            spans.append(_span(response, item, value, unit))
        elif kind == "choices":
            label = _choice(value, name) or label
        elif kind == "textarea" and name in WORDS:
            said_words = value.get("text")
            words = said_words if isinstance(said_words, list) else [said_words]
            texts[str(name)] = "\n".join(word for word in words if isinstance(word, str))
    found = said(label, spans, is_marked=True)
    return found or "supported", tuple(spans), texts


def _choice(value: dict[str, Any], name: object) -> Label | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    is_verdict = name in ("verdict", "label")
    is_known = isinstance(first, str) and first.strip().lower() in LABELS
    return label_of(first) if is_verdict or is_known else None


def _span(response: str, item: Record, value: dict[str, Any], unit: Unit | None) -> Span:
    start, end = placed(response, *_place(value), unit)
    names: list[Any] = next(
        (value[kind] for kind in MARKS if isinstance(value.get(kind), list)), []
    )
    category = "; ".join(name for name in names if isinstance(name, str))
    meta = item.fields.get("meta")
    instead = meta.get("text") if isinstance(meta, dict) else None
    words = instead[0] if isinstance(instead, list) and instead else ""
    p, quote = share(item.fields.get("score"), 1.0), response[start:end]
    told = words if isinstance(words, str) else ""
    return Span(start, end, quote, p, category or UNSPECIFIED, "", told)


def write_label_studio(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file of tasks."""
    return json_list(_task(number, row) for number, row in enumerate(rows, start=1))


def _task(number: int, row: ExchangeRow) -> dict[str, Any]:
    data: dict[str, Any] = {"id": row.id, "text": row.response, "question": row.question}
    data |= {"language": row.language} if row.language not in UNKNOWN else {}
    texts = [{"name": d.name, "text": d.text} for d in row.documents if d.text is not None]
    data |= {"documents": texts} if texts else {}
    data |= {SOFT: plain_soft(row)} if row.soft else {}
    others = plain_others(row.others)
    data |= {name: value for name, value in others.items() if name not in KNOWN}
    answer = row.settled
    given = [*([answer] if answer else ()), *(one for one in row.people if one is not answer)]
    annotations = [
        {
            "created_username": one.author,
            "ground_truth": one is answer,
            "was_cancelled": False,
            "result": _items(one),
        }
        for one in given
    ]
    predictions = [
        {"model_version": s.agent, **({} if s.p is None else {"score": s.p}), "result": _items(s)}
        for s in row.suggestions
    ]
    return {"id": number, "data": data, "annotations": annotations, "predictions": predictions}


def _items(told: Gold | Correction | Suggestion) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for span in told.spans:
        place = {"start": span.start, "end": span.end, "text": span.text}
        item: dict[str, Any] = {"from_name": "wrong", "type": "labels"}
        item["value"] = {**place, "labels": [span.category]}
        item |= {} if span.p == 1.0 else {"score": span.p}
        item |= {"meta": {"text": [span.instead]}} if span.instead else {}
        items.append(item)
    if told.label is not None:
        choice = {"choices": [told.label]}
        items.append({"from_name": "verdict", "type": "choices", "value": choice})
    for name in WORDS:
        if text := getattr(told, name, ""):
            items.append({"from_name": name, "type": "textarea", "value": {"text": [text]}})
    return [{"id": f"r{n}", "to_name": "text", **item} for n, item in enumerate(items, start=1)]
