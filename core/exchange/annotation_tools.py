"""Read and write tasks of Label Studio and records of Argilla 2.

Label Studio: `data` holds id and text, annotations are by people, predictions by models. Offsets
count code points, as its editor writes them since 1.5. Older files count UTF-16 units, and browsers
count CRLF once. The quoted texts of the annotation reveal it, or else those of the rest of the
file. If neither does, marks that may be shifted get a notice. For texts shown as HTML,
`globalOffsets` are used. An only annotation, or one marked as `ground_truth`, is the gold. In a
file of ours one marked so may also be what people agree on, and is then no gold of its own.

Argilla, as `records.to_json` writes it: the questions are `label`, `spans`, `reason` and
`corrected_answer`. People are UUIDs whose names are in the metadata as `user.UUID`; its `gold`
names the person whose response is the gold; a single person's response is the gold too. The newest
suggestion is stored as Argilla's own; older ones and what has no place are under `counterpoint`.
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
    LABEL_BY_WORD,
    collect_extra_columns,
    dump_golds,
    dump_json_list,
    dump_soft_labels,
    dump_suggestion,
    expand_extra_columns,
    get_basis,
    get_text,
    infer_label,
    is_derived_gold,
    parse_case_id,
    parse_items,
    parse_label,
    parse_probability,
    parse_share,
    parse_soft_labels,
    parse_spans,
    parse_suggestions,
    restore_golds,
)
from core.exchange.file_decoding import decode_file_text, iter_json_items
from core.exchange.rows import (
    OFFSET_UNITS,
    UNKNOWN_LANGUAGES,
    UNSPECIFIED_CATEGORY,
    ExchangeDocument,
    ExchangeRow,
    FileRecord,
    OffsetUnit,
    ParsedFile,
    RawSpan,
    RowProblem,
    build_correction,
    build_gold,
    find_offset_units,
    locate_span,
)
from core.schema.records import Label, Span
from core.schema.reviews import Correction, GoldAnswer, Suggestion

ANNOTATOR_NAMESPACE = uuid.UUID("6f1d1a0e-5f0b-4b53-9a35-0c6a5e1f7b21")
ARGILLA_RESPONSE_FIELDS = ("response", "text", "answer", "claim")
ARGILLA_FIELDS = (*ARGILLA_RESPONSE_FIELDS, "question", "context")
TEXT_QUESTIONS = ("reason", "corrected_answer")
ARGILLA_QUESTIONS = ("label", "spans", *TEXT_QUESTIONS)
USER_PREFIX, GOLD_KEY, LANGUAGE_KEY, METADATA_EXTENSION_KEY = (
    "user.",
    "gold",
    "language",
    "counterpoint",
)
LABELING_CONFIG = Template("""\
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
RESPONSE_FIELDS = ("text", "response", "answer", "claim")
SOFT_LABELS_KEY = (
    "soft_labels"  # Label Studio has no place for the share of people who marked a word
)
BASIS_KEY = "counterpoint_basis"  # nor for what the ground truth rests on
GOLDS_KEY = "counterpoint_golds"  # nor for earlier golds
KNOWN_TASK_FIELDS = (
    "id", *RESPONSE_FIELDS, "question", "language", "documents", SOFT_LABELS_KEY, BASIS_KEY,
    GOLDS_KEY,
)  # fmt: skip
AGREEMENT_AUTHOR = "agreement"  # of a ground truth that is what several people, or one, say
LABEL_RESULT_TYPES = ("labels", "hypertextlabels")
UNKNOWN_PERSON = "unknown"


def read_argilla(name: str, data: bytes) -> ParsedFile:
    """Read a file of Argilla records. Raises InputError if nothing in it can be read."""
    return parse_items(iter_json_items(decode_file_text(name, data)), _parse_argilla_row, "row")


def _parse_argilla_row(record: FileRecord) -> ExchangeRow:
    fields = record.inner("fields")
    response = fields.text(*ARGILLA_RESPONSE_FIELDS)
    metadata = _get_mapping(record, "metadata")
    golds, corrections = _parse_argilla_people(record, response, metadata)
    context = get_text(fields, "context")
    earlier = parse_suggestions(response, _get_extension(metadata).get("suggestions"))
    metadata_columns = {k: v for k, v in metadata.items() if not k.startswith(USER_PREFIX)}
    return ExchangeRow(
        id=parse_case_id(record.fields.get("id")),
        response=response,
        question=get_text(fields, "question"),
        language=get_text(FileRecord(metadata, "", record.line), LANGUAGE_KEY),
        documents=(ExchangeDocument("context.txt", context),) if context.strip() else (),
        golds=golds,
        corrections=corrections,
        suggestions=(*earlier, *_parse_suggestions(record, response)),
        others=(
            *collect_extra_columns(
                metadata_columns, (GOLD_KEY, LANGUAGE_KEY, METADATA_EXTENSION_KEY)
            ),
            *collect_extra_columns(fields.fields, ARGILLA_FIELDS),
        ),
        place=record.line,
    )


def _get_mapping(record: FileRecord, name: str) -> dict[str, Any]:
    value = record.fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise record.broken(f"an object called {name}", value)
    return value


def _parse_argilla_people(
    record: FileRecord, response: str, metadata: dict[str, Any]
) -> tuple[tuple[GoldAnswer, ...], tuple[Correction, ...]]:
    by_user: dict[str, dict[str, Any]] = {}
    for question, values in _get_mapping(record, "responses").items():
        if question not in ARGILLA_QUESTIONS or not isinstance(values, list):
            continue
        for value in values:
            if not isinstance(value, dict):
                raise record.broken(f"responses to {question} with value and user_id", value)
            by_user.setdefault(str(value.get("user_id")), {})[question] = value.get("value")
    basis = _get_extension(metadata).get("basis")
    only = next(iter(by_user)) if len(by_user) == 1 and basis is None else ""
    gold_user = str(metadata.get(GOLD_KEY) or only)
    golds: list[GoldAnswer] = []
    corrections: list[Correction] = []
    for user, answers in by_user.items():
        label, spans, texts = _parse_answer(record, response, answers)
        name = str(metadata.get(USER_PREFIX + user) or user)[:60]
        if user == gold_user:
            gold = replace(build_gold(label, spans, author=name), **texts)
            golds.append(gold)
        else:
            corrections.append(replace(build_correction(name, label, spans), **texts))
    own = (gold for gold in golds if not is_derived_gold(gold, corrections, basis))
    told = [_apply_extension(gold, metadata, response) for gold in own]
    extension = FileRecord(_get_extension(metadata), "", record.line)
    return restore_golds(told, extension), tuple(corrections)


def _apply_extension(gold: GoldAnswer, metadata: dict[str, Any], response: str) -> GoldAnswer:
    """Return the gold with the details kept under `counterpoint`, if its spans are the same."""
    extension = _get_extension(metadata)
    spans = parse_spans(response, extension.get("spans"))
    marks, gold_marks = ([(s.start, s.end, s.category) for s in one] for one in (spans, gold.spans))
    soft = parse_soft_labels(response, extension.get("soft"))
    return replace(gold, spans=spans if marks == gold_marks else gold.spans, soft=soft)


def _get_extension(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the object kept under `counterpoint`; {} if it is not as it was written."""
    text = metadata.get(METADATA_EXTENSION_KEY)
    try:
        extension = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return extension if isinstance(extension, dict) else {}


def _parse_answer(
    record: FileRecord, response: str, answers: dict[str, Any]
) -> tuple[Label, tuple[Span, ...], dict[str, Any]]:
    spans = parse_spans(response, answers.get("spans"))
    label = infer_label(parse_label(answers.get("label")), spans, is_marked=True)
    texts = {n: "" if answers.get(n) is None else answers[n] for n in TEXT_QUESTIONS}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise record.broken(f"a text as the response to {name}", value)
    return label or "supported", spans, texts


def _parse_suggestions(record: FileRecord, response: str) -> tuple[Suggestion, ...]:
    by_agent: dict[str, dict[str, Any]] = {}
    for question, value in _get_mapping(record, "suggestions").items():
        if question not in ("label", "spans") or value is None:
            continue
        if not isinstance(value, dict):
            raise record.broken(f"a suggestion to {question} with value and agent", value)
        by_agent.setdefault(str(value.get("agent") or "unknown"), {})[question] = value
    suggestions = []
    for agent, answers in by_agent.items():
        choice = answers.get("label", {})
        label, p = parse_label(choice.get("value")), parse_probability(choice.get("score"))
        spans = parse_spans(response, answers.get("spans", {}).get("value"))
        suggestions.append(Suggestion("", "", agent, 0.0, label, p, spans))
    return tuple(suggestions)


def write_argilla(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as the bytes of a file of Argilla records."""
    return dump_json_list(map(_dump_record, rows))


def _dump_record(row: ExchangeRow) -> dict[str, Any]:
    fields: dict[str, Any] = {"response": row.response, "question": row.question}
    texts = [document.text for document in row.documents if document.text]
    fields |= {"context": "\n\n".join(texts)} if texts else {}
    metadata = {
        name: value
        for name, value in expand_extra_columns(row.others).items()
        if name not in (GOLD_KEY, LANGUAGE_KEY, METADATA_EXTENSION_KEY)
        and not name.startswith(USER_PREFIX)
    }
    metadata |= {LANGUAGE_KEY: row.language} if row.language not in UNKNOWN_LANGUAGES else {}
    responses: dict[str, list[dict[str, Any]]] = {}
    for person in _list_answers(row):
        role = "gold" if isinstance(person, GoldAnswer) else "person"  # one may be both
        user = str(uuid.uuid5(ANNOTATOR_NAMESPACE, f"{role}\n{person.author}"))
        metadata[USER_PREFIX + user] = person.author
        if role == "gold":
            metadata[GOLD_KEY] = user
        values: dict[str, Any] = {"label": person.label, "spans": _dump_marks(person.spans)}
        values |= {name: getattr(person, name) for name in TEXT_QUESTIONS if getattr(person, name)}
        for question, value in values.items():
            responses.setdefault(question, []).append({"value": value, "user_id": user})
    metadata |= _dump_extension(row)
    return {
        "id": row.id,
        "fields": fields,
        "metadata": metadata,
        "suggestions": _dump_suggestions(row),
        "responses": responses,
        "vectors": {},
    }


def _list_answers(row: ExchangeRow) -> list[GoldAnswer | Correction]:
    """Return the ground truth as a gold, if it is decided, then what each person said."""
    truth = row.truth
    if not truth.is_decided or truth.label is None:
        return [*row.people]
    record = truth.records[0]
    if not isinstance(record, GoldAnswer):
        texts = {name: getattr(truth, name) for name in TEXT_QUESTIONS}
        record = replace(build_gold(truth.label, truth.spans, author=AGREEMENT_AUTHOR), **texts)
    return [record, *row.people]


def _dump_marks(spans: Sequence[Span]) -> list[dict[str, Any]]:
    return [{"label": s.category, "start": s.start, "end": s.end} for s in spans]


def _dump_extension(row: ExchangeRow) -> dict[str, str]:
    answer = row.answer
    extension: dict[str, Any] = {}
    if answer and any(s.p != 1.0 or s.instead for s in answer.spans):
        names = ("start", "end", "text", "category", "p", "instead")
        extension["spans"] = [{name: getattr(s, name) for name in names} for s in answer.spans]
    if row.soft:
        extension["soft"] = dump_soft_labels(row)
    if basis := get_basis(row):
        extension["basis"] = basis
    if golds := dump_golds(row):
        extension["golds"] = golds
    if row.suggestions[1:]:
        extension["suggestions"] = [dump_suggestion(one) for one in row.suggestions[:-1]]
    return {METADATA_EXTENSION_KEY: json.dumps(extension, ensure_ascii=False)} if extension else {}


def _dump_suggestions(row: ExchangeRow) -> dict[str, Any]:
    if not row.suggestions:
        return {}
    newest = row.suggestions[-1]
    agent = {"agent": newest.agent}
    suggested = {"spans": {"value": _dump_marks(newest.spans), "score": None, **agent}}
    return suggested | (
        {"label": {"value": newest.label, "score": newest.p, **agent}} if newest.label else {}
    )


def build_labeling_config(categories: Sequence[str]) -> str:
    """Return the labelling configuration for a project with these categories of wrong words."""
    labels = "\n".join(f"    <Label value={quoteattr(name)}/>" for name in categories)
    return LABELING_CONFIG.substitute(labels=labels)


def read_label_studio(name: str, data: bytes) -> ParsedFile:
    """Read a file of Label Studio tasks. Raises InputError if nothing in it can be read."""
    items = list(iter_json_items(decode_file_text(name, data)))
    return parse_items(items, partial(_parse_task, _find_file_units(items)), "row")


def _find_file_units(items: Iterable[tuple[int, object] | RowProblem]) -> set[OffsetUnit]:
    """Return the units in which the quotes of all annotations are found; skip wrong quotes."""
    tasks = (item[1] for item in items if not isinstance(item, RowProblem))
    fitting = (find_offset_units(*answer) for task in tasks for answer in _iter_raw_spans(task))
    return set(OFFSET_UNITS).intersection(*filter(None, fitting))


def _iter_raw_spans(task: object) -> Iterator[tuple[str, list[RawSpan]]]:
    """Yield (response, raw spans) of each annotation and prediction; skip malformed ones."""
    task_data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(task, dict) or not isinstance(task_data, dict):
        return
    response = next((task_data[name] for name in RESPONSE_FIELDS if name in task_data), None)
    for name in ("annotations", "predictions") if isinstance(response, str) else ():
        entries = task.get(name)
        for entry in entries if isinstance(entries, list) else ():
            result = entry.get("result") if isinstance(entry, dict) else None
            yield str(response), _get_raw_spans(result if isinstance(result, list) else [])


def _get_raw_spans(result: Sequence[object]) -> list[RawSpan]:
    marks = (
        one for one in result if isinstance(one, dict) and one.get("type") in LABEL_RESULT_TYPES
    )
    return [_get_raw_span(one["value"]) for one in marks if isinstance(one.get("value"), dict)]


def _get_raw_span(value: dict[str, Any]) -> RawSpan:
    """Return start, end and quote; for HTML, `start` and `end` are paths, so use globalOffsets."""
    global_offsets = value.get("globalOffsets")
    offsets = global_offsets if isinstance(global_offsets, dict) else value
    return offsets.get("start"), offsets.get("end"), value.get("text")


def _parse_task(units: set[OffsetUnit], record: FileRecord) -> ExchangeRow:
    task_data = record.inner("data")
    response = task_data.text(*RESPONSE_FIELDS)
    own_id = task_data.fields.get("id")
    golds, corrections = _parse_people(record, response, units, task_data.fields.get(BASIS_KEY))
    soft = parse_soft_labels(response, task_data.fields.get(SOFT_LABELS_KEY))
    golds = tuple(replace(gold, soft=soft) for gold in golds)
    golds = restore_golds(golds, task_data, GOLDS_KEY)
    return ExchangeRow(
        id=parse_case_id(own_id) or parse_case_id(record.fields.get("id")),
        response=response,
        question=get_text(task_data, "question"),
        language=get_text(task_data, "language"),
        documents=_parse_documents(task_data),
        golds=golds,
        corrections=corrections,
        suggestions=tuple(
            _parse_suggestion(response, p, units) for p in _get_records(record, "predictions")
        ),
        others=collect_extra_columns(task_data.fields, KNOWN_TASK_FIELDS),
        place=record.line,
    )


def _parse_documents(record: FileRecord) -> tuple[ExchangeDocument, ...]:
    items = record.fields.get("documents")
    documents = []
    for number, item in enumerate(items if isinstance(items, list) else [], start=1):
        document = FileRecord(item if isinstance(item, dict) else {"text": item}, "", record.line)
        name = get_text(document, "name") or f"source {number}.txt"
        documents.append(ExchangeDocument(name, document.text("text")))
    return tuple(documents)


def _get_records(record: FileRecord, name: str) -> list[FileRecord]:
    return record.records(name) if record.fields.get(name) is not None else []


def _parse_people(
    record: FileRecord, response: str, units: set[OffsetUnit], basis: object
) -> tuple[tuple[GoldAnswer, ...], tuple[Correction, ...]]:
    listed = _get_records(record, "annotations")
    annotations = [one for one in listed if not one.fields.get("was_cancelled")]
    truths = [one for one in annotations if one.fields.get("ground_truth") is True]
    if not truths and len(annotations) == 1 and basis is None:
        truths = annotations
    golds, answers = [], []
    for annotation in annotations:
        label, spans, texts = _parse_result(response, annotation, units)
        if annotation in truths:
            golds.append(replace(build_gold(label, spans, author=_get_person(annotation)), **texts))
        else:
            answer = build_correction(_get_person(annotation) or UNKNOWN_PERSON, label, spans)
            answers.append(replace(answer, **texts))
    own = (gold for gold in golds if not is_derived_gold(gold, answers, basis))
    return tuple(own), tuple(answers)


def _get_person(annotation: FileRecord) -> str:
    username = annotation.fields.get("created_username")
    if isinstance(username, str) and username.strip():
        return username.strip()
    person = annotation.fields.get("completed_by")
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    return "" if person is None or isinstance(person, bool) else str(person)[:60]


def _parse_suggestion(response: str, prediction: FileRecord, units: set[OffsetUnit]) -> Suggestion:
    label, spans, _ = _parse_result(response, prediction, units)
    agent = get_text(prediction, "model_version") or UNKNOWN_PERSON
    p = parse_probability(prediction.fields.get("score"))
    return Suggestion("", "", agent, 0.0, label, p, spans)


def _parse_result(
    response: str, annotation: FileRecord, file_units: set[OffsetUnit]
) -> tuple[Label, tuple[Span, ...], dict[str, Any]]:
    """Return label, spans and texts of an annotation; without a choice any mark is hallucinated."""
    label: Label | None = None
    spans: list[Span] = []
    texts: dict[str, Any] = {}
    items = _get_records(annotation, "result")
    own = find_offset_units(response, _get_raw_spans([item.fields for item in items]))
    units = [unit for unit in own if unit in file_units] or own
    for item in items:
        value = item.fields.get("value")
        kind, name = item.fields.get("type"), item.fields.get("from_name")
        if not isinstance(value, dict):
            continue
        if kind in LABEL_RESULT_TYPES:
            spans.append(_parse_span(response, item, value, units))
        elif kind == "choices":
            label = _parse_choice(value, name) or label
        elif kind == "textarea" and name in TEXT_QUESTIONS:
            value_text = value.get("text")
            parts = value_text if isinstance(value_text, list) else [value_text]
            texts[str(name)] = "\n".join(word for word in parts if isinstance(word, str))
    inferred = infer_label(label, spans, is_marked=True)
    return inferred or "supported", tuple(spans), texts


def _parse_choice(value: dict[str, Any], name: object) -> Label | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    is_verdict = name in ("verdict", "label")
    is_known = isinstance(first, str) and first.strip().lower() in LABEL_BY_WORD
    return parse_label(first) if is_verdict or is_known else None


def _parse_span(
    response: str, item: FileRecord, value: dict[str, Any], units: Sequence[OffsetUnit]
) -> Span:
    start, end = locate_span(response, *_get_raw_span(value), units, item.notices)
    names: list[Any] = next(
        (value[kind] for kind in LABEL_RESULT_TYPES if isinstance(value.get(kind), list)), []
    )
    category = "; ".join(name for name in names if isinstance(name, str))
    meta = item.fields.get("meta")
    instead = meta.get("text") if isinstance(meta, dict) else None
    first = instead[0] if isinstance(instead, list) and instead else ""
    p, quote = parse_share(item.fields.get("score"), 1.0), response[start:end]
    replacement = first if isinstance(first, str) else ""
    return Span(start, end, quote, p, category or UNSPECIFIED_CATEGORY, "", replacement)


def write_label_studio(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as the bytes of a file of Label Studio tasks."""
    return dump_json_list(_dump_task(number, row) for number, row in enumerate(rows, start=1))


def _dump_task(number: int, row: ExchangeRow) -> dict[str, Any]:
    data: dict[str, Any] = {"id": row.id, "text": row.response, "question": row.question}
    data |= {"language": row.language} if row.language not in UNKNOWN_LANGUAGES else {}
    texts = [{"name": d.name, "text": d.text} for d in row.documents if d.text is not None]
    data |= {"documents": texts} if texts else {}
    data |= {SOFT_LABELS_KEY: dump_soft_labels(row)} if row.soft else {}
    data |= {BASIS_KEY: basis} if (basis := get_basis(row)) else {}
    data |= {GOLDS_KEY: golds} if (golds := dump_golds(row)) else {}
    others = expand_extra_columns(row.others)
    data |= {name: value for name, value in others.items() if name not in KNOWN_TASK_FIELDS}
    annotations = [
        {
            "created_username": person.author,
            "ground_truth": isinstance(person, GoldAnswer),
            "was_cancelled": False,
            "result": _dump_items(person),
        }
        for person in _list_answers(row)
    ]
    predictions = [
        {
            "model_version": s.agent,
            **({} if s.p is None else {"score": s.p}),
            "result": _dump_items(s),
        }
        for s in row.suggestions
    ]
    return {"id": number, "data": data, "annotations": annotations, "predictions": predictions}


def _dump_items(source: GoldAnswer | Correction | Suggestion) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for span in source.spans:
        place = {"start": span.start, "end": span.end, "text": span.text}
        item: dict[str, Any] = {"from_name": "wrong", "type": "labels"}
        item["value"] = {**place, "labels": [span.category]}
        item |= {} if span.p == 1.0 else {"score": span.p}
        item |= {"meta": {"text": [span.instead]}} if span.instead else {}
        items.append(item)
    if source.label is not None:
        choice = {"choices": [source.label]}
        items.append({"from_name": "verdict", "type": "choices", "value": choice})
    for name in TEXT_QUESTIONS:
        if text := getattr(source, name, ""):
            items.append({"from_name": name, "type": "textarea", "value": {"text": [text]}})
    return [{"id": f"r{n}", "to_name": "text", **item} for n, item in enumerate(items, start=1)]
