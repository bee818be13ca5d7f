"""Parse and write the parts that all exchange formats share: ids, labels, spans, extra columns.

The label words of foreign sets become `supported`, `hallucinated` or `unclear` here and nowhere
else. What a foreign layout has no place for goes into an extra object `counterpoint`. It is read
back only while it agrees with the layout's own labels, so that an edit of these wins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from core.exchange.file_decoding import MAX_ROWS
from core.exchange.rows import (
    JSON_COLUMN_SUFFIX,
    UNSPECIFIED_CATEGORY,
    ExchangeRow,
    ExtraColumns,
    FileRecord,
    OffsetUnit,
    ParsedFile,
    RawSpan,
    RowProblem,
    build_gold,
    find_offset_units,
    locate_span,
)
from core.runtime.errors import InputError, make_printable
from core.schema.records import Label, Span, WordScore
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Suggestion
from core.store.ground_truth import GroundTruth, choose_counting_gold, decide_truth
from core.store.sqlite import from_plain, to_plain

MAX_ID_CHARS = 200
LABEL_SYNONYMS: Mapping[Label, str] = {
    "supported": "supported, supports, support, faithful, consistent, factual, correct, "
    "entailment, entailed, not hallucinated, not_hallucinated, no_error",
    "hallucinated": "hallucinated, hallucination, refuted, refutes, contradicted, contradiction, "
    "unfaithful, inconsistent, incorrect, not factual, error",
    "unclear": "unclear, unsure, neutral, unverifiable, not enough info, not_enough_info, "
    "questionable",
}
LABEL_BY_WORD = {
    word: label for label, words in LABEL_SYNONYMS.items() for word in words.split(", ")
}
T = TypeVar("T")
R = TypeVar("R", GoldAnswer, Correction, Suggestion, QueueEvent)
EXTENSION_KEY = "counterpoint"
DERIVED_BASES = ("agreed", "single")  # what people say, without a right answer


def parse_rows(
    items: Iterable[tuple[int, object] | RowProblem], row_of: Callable[[FileRecord], T | None]
) -> tuple[list[T], list[RowProblem]]:
    """Parse each item with `row_of` into a row or a problem; skip items that give None."""
    rows: list[T] = []
    problems: list[RowProblem] = []
    for item in items:
        if isinstance(item, RowProblem):
            problems.append(item)
            continue
        place, item_value = item
        if len(rows) >= MAX_ROWS:
            problems.append(RowProblem(place, f"expected at most {MAX_ROWS:,} rows, found more."))
            break
        try:
            if not isinstance(item_value, dict):
                raise InputError("expected a JSON object, found another kind of value.")
            row = row_of(FileRecord(item_value, "", place))
        except InputError as error:
            problems.append(RowProblem(place, describe_row_error(error)))
        else:
            if row is not None:
                rows.append(row)
    return rows, problems


def parse_items(
    items: Iterable[tuple[int, object] | RowProblem],
    row_of: Callable[[FileRecord], ExchangeRow | None],
    unit: str = "line",
) -> ParsedFile:
    """Parse the items of a file and return its rows with their notices, and its problems."""

    def parse(record: FileRecord) -> ExchangeRow | None:
        row = row_of(record)
        return row and replace(row, notices=tuple(dict.fromkeys(record.notices)))

    rows, problems = parse_rows(items, parse)
    return ParsedFile(tuple(rows), tuple(problems), unit)


def describe_row_error(error: InputError) -> str:
    """Return the error's message, safe to show, without the place, which is shown beside it."""
    message = make_printable(error)
    return message.split(": ", 1)[1] if message.startswith(", line ") else message


def parse_case_id(value: object) -> str:
    """Return the case's own id, or "" if there is none.

    Raises InputError if it is neither a text nor a number, too long, or not printable.
    """
    if value is None or value == "":
        return ""
    is_valid_type = isinstance(value, str | int | float) and not isinstance(value, bool)
    text = str(value)
    if not is_valid_type or len(text) > MAX_ID_CHARS or not text.isprintable() or not text.strip():
        raise InputError(
            f"expected an id of at most {MAX_ID_CHARS} printable characters, found "
            f"“{ascii(text)[1:61]}”; give another, or none."
        )
    return text


def get_text(record: FileRecord, *names: str) -> str:
    """Return the first of these fields that is not null, unchanged; "" if there is none."""
    for name in names:
        value = record.fields.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise record.broken(f"a text called {name}", type(value).__name__)
        return value if isinstance(value, str) else str(value)
    return ""


def parse_label(value: object) -> Label | None:
    """Return the label that a word stands for, or None if there is no word.

    Raises InputError if the word is unknown. Bare numbers are unknown, because they mean opposite
    things in different sets.
    """
    if value is None or value == "":
        return None
    label = LABEL_BY_WORD.get(value.strip().lower()) if isinstance(value, str) else None
    if label is None:
        raise InputError(
            "expected a label of supported, hallucinated or unclear, found "
            f"“{str(value)[:60]}”; write one of these words."
        )
    return label


def parse_spans(response: str, items: object, source: str = "") -> tuple[Span, ...]:
    """Parse spans written as objects with start and end, or as pairs.

    Raises InputError if one lies outside the response, or its text is not found there.
    """
    if items is None:
        return ()
    if not isinstance(items, list):
        raise InputError("expected a list of spans, found another kind of value; write a list.")
    units = find_offset_units(
        response, [_get_raw_span(item) for item in items if isinstance(item, dict)]
    )
    return tuple(_parse_span(response, item, source, units) for item in items)


def _get_raw_span(item: dict[str, Any]) -> RawSpan:
    return item.get("start"), item.get("end"), item.get("text")


def _parse_span(response: str, item: object, source: str, units: Sequence[OffsetUnit]) -> Span:
    if isinstance(item, list) and len(item) == 2:
        item = {"start": item[0], "end": item[1]}
    if not isinstance(item, dict):
        raise InputError("expected a span with start and end, found another kind of value.")
    start, end = locate_span(response, *_get_raw_span(item), units)
    names = ("category", "label", "label_type", "type")
    categories = (
        item[name] for name in names if isinstance(item.get(name), str) and item[name].strip()
    )
    instead = item.get("instead")
    p = parse_share(item.get("p", item.get("prob")), 1.0)
    category = next(categories, UNSPECIFIED_CATEGORY)
    span_source = item["source"] if isinstance(item.get("source"), str) else source
    replacement = instead if isinstance(instead, str) else ""
    return Span(start, end, response[start:end], p, category, span_source, replacement)


def parse_soft_labels(response: str, items: object) -> tuple[WordScore, ...]:
    """Parse stretches of the response with the share of people who marked them.

    Raises InputError if one lies outside the response, or its share is not a probability.
    """
    if items is None:
        return ()
    if not isinstance(items, list):
        raise InputError("expected a list of soft labels, found another kind of value.")
    scores = []
    for item in items:
        if not isinstance(item, dict):
            raise InputError("expected a soft label with start, end and prob, found another value.")
        start, end = locate_span(response, item.get("start"), item.get("end"))
        scores.append(WordScore(start, end, parse_share(item.get("prob", item.get("p")), 1.0)))
    return tuple(scores)


def parse_share(value: object, otherwise: float) -> float:
    """Return the probability from 0 to 1, or `otherwise` if the value is None.

    Raises InputError for any other value.
    """
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(
            f"expected a probability from 0 to 1, found {str(value)[:40]}; correct it."
        )
    return float(value)


def parse_probability(value: object) -> float | None:
    """Return the probability from 0 to 1, or None. Raises InputError for any other value."""
    return None if value is None else parse_share(value, 0.0)


def infer_label(label: Label | None, spans: Sequence[Span], is_marked: bool) -> Label | None:
    """Return the label; if there is none, any mark means hallucinated and no mark supported."""
    if label is not None or not is_marked:
        return label
    return "hallucinated" if spans else "supported"


def collect_extra_columns(fields: Mapping[str, object], known: Iterable[str]) -> ExtraColumns:
    """Return the columns that are not `known`, as texts; other values are kept as JSON."""
    names = set(known)
    return tuple(
        (name, value)
        if isinstance(value, str) and not name.endswith(JSON_COLUMN_SUFFIX)
        else (name + JSON_COLUMN_SUFFIX, json.dumps(value, ensure_ascii=False))
        for name, value in fields.items()
        if name not in names
    )


def expand_extra_columns(others: ExtraColumns) -> dict[str, Any]:
    """Return the extra columns with the values that they had in JSON."""
    return {
        name.removesuffix(JSON_COLUMN_SUFFIX): _parse_json_cell(text)
        if name.endswith(JSON_COLUMN_SUFFIX)
        else text
        for name, text in others
    }


def _parse_json_cell(cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def dump_span(span: Span) -> dict[str, Any]:
    """Return a span as JSON formats write it."""
    plain = {name: getattr(span, name) for name in ("start", "end", "text", "category")}
    plain |= {"p": span.p} if span.p != 1.0 else {}
    return plain | ({"instead": span.instead} if span.instead else {})


def is_same_answer(truth: GroundTruth, label: Label | None, spans: Sequence[Span]) -> bool:
    """Return True if that label and these spans are what counts as true."""
    return (truth.label, [*map(dump_span, truth.spans)]) == (label, [*map(dump_span, spans)])


def is_derived_gold(gold: GoldAnswer, answers: Sequence[Correction], basis: object) -> bool:
    """Return True if a gold of our own file only repeats what the answers beside it come to.

    `basis` is what the file names as that of its ground truth. An edited gold is one of its own.
    """
    truth = decide_truth((), answers)
    return basis in DERIVED_BASES and is_same_answer(truth, gold.label, gold.spans)


def dump_records(records: Iterable[R], *left_out: str) -> list[dict[str, Any]]:
    """Return the store's own records as JSON, without their case and the fields `left_out`."""
    names = ("case_id", *left_out)
    return [{k: v for k, v in to_plain(one).items() if k not in names} for one in records]


def parse_records(record: FileRecord, name: str, kind: type[R]) -> tuple[R, ...]:
    """Parse records as `dump_records` writes them. Raises InputError for anything else."""
    items = record.fields.get(name) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise record.broken(f"a list of objects called {name}", items)
    try:
        return tuple(from_plain(kind, {**item, "case_id": ""}) for item in items)
    except InputError as error:
        raise record.broken(f"{name} as Counterpoint writes them", str(error)) from error


def dump_golds(row: ExchangeRow) -> list[dict[str, Any]]:
    """Return the golds that stand, for a layout with room for one and none for the log.

    What they took has no ids in there.
    """
    return dump_records(row.standing_golds, "took")


def restore_golds(
    golds: Sequence[GoldAnswer], record: FileRecord, name: str = "golds"
) -> tuple[GoldAnswer, ...]:
    """Return the golds that `dump_golds` wrote, if the layout's own are still what counts."""
    recorded = parse_records(record, name, GoldAnswer)
    counting = choose_counting_gold(recorded)
    is_unedited = counting and [_get_content(counting)] == [*map(_get_content, golds)]
    return recorded if is_unedited else tuple(golds)


def _get_content(gold: GoldAnswer) -> tuple[object, ...]:
    marks = [dump_span(span) for span in gold.spans]
    return gold.label, marks, gold.soft, gold.reason, gold.corrected_answer


def get_basis(row: ExchangeRow) -> str:
    """Return on what the row's ground truth rests, or why it has none; "" without any answer."""
    return (row.truth.basis or row.truth.state) if row.truth.records else ""


def dump_soft_labels(row: ExchangeRow) -> list[dict[str, Any]]:
    """Return the share of people who marked each stretch, as JSON formats write it."""
    return [{"start": s.start, "end": s.end, "prob": s.p} for s in row.soft]


def parse_suggestions(response: str, items: object) -> tuple[Suggestion, ...]:
    """Parse agents' suggestions as `dump_suggestion` writes them.

    Raises InputError if one names no agent, or has an invalid label, probability or span.
    """
    if items is None:
        return ()
    if not isinstance(items, list):
        raise InputError("expected a list of suggestions, found another kind of value.")
    suggestions = []
    for item in items:
        agent = item.get("agent") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(agent, str) or not agent.strip():
            raise InputError("expected a suggestion with the name of its agent, found none.")
        label, p = parse_label(item.get("label")), parse_probability(item.get("p"))
        spans = parse_spans(response, item.get("spans"))
        suggestions.append(Suggestion("", "", agent, 0.0, label, p, spans))
    return tuple(suggestions)


def dump_suggestion(suggestion: Suggestion) -> dict[str, Any]:
    """Return a suggestion as JSON, for a layout that has no place of its own for it."""
    plain = {name: getattr(suggestion, name) for name in ("agent", "label", "p")}
    return plain | {"spans": [dump_span(span) for span in suggestion.spans]}


def dump_json_lines(rows: Iterator[dict[str, Any]]) -> bytes:
    """Return the objects as the bytes of JSON lines."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def dump_json_list(rows: Iterable[dict[str, Any]]) -> bytes:
    """Return the objects as the bytes of a JSON list, one object a line."""
    encoded = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    return b"[" + b",\n".join(encoded) + b"]\n"


def build_extension(
    row: ExchangeRow,
    told: Label | None,
    *,
    tells_categories: bool = False,
    tells_shares: bool = False,
) -> dict[str, Any]:
    """Return the `counterpoint` object, or {} if the layout holds everything.

    `told` is the label that the layout itself conveys.
    """
    answer = row.answer
    if answer is None:
        return {}
    is_plain = all(
        span.p == 1.0
        and not span.instead
        and (tells_categories or span.category == UNSPECIFIED_CATEGORY)
        for span in answer.spans
    )
    extension: dict[str, Any] = {} if answer.label == told else {"label": answer.label}
    extension |= {} if is_plain else {"spans": [dump_span(span) for span in answer.spans]}
    if row.soft and not tells_shares:
        extension["soft"] = dump_soft_labels(row)
    texts = {name: getattr(answer, name) for name in ("reason", "corrected_answer")}
    extension |= {name: text for name, text in texts.items() if text}
    if extension:
        extension["label"] = answer.label
        extension["of"] = [[span.start, span.end] for span in answer.spans]
    return {EXTENSION_KEY: extension} if extension else {}


def apply_extension(row: ExchangeRow, own: object) -> ExchangeRow:
    """Return the row with what the object adds to its gold, if both mark the same words."""
    if not isinstance(own, Mapping) or not row.golds:
        return row
    gold = row.golds[-1]
    if own.get("of") != [[span.start, span.end] for span in gold.spans]:
        return row
    try:
        label = parse_label(own.get("label")) or gold.label
        spans = parse_spans(row.response, own.get("spans")) or gold.spans
        soft = parse_soft_labels(row.response, own.get("soft")) or gold.soft
    except InputError:
        return row
    texts = {name: own.get(name) for name in ("reason", "corrected_answer")}
    present_texts = {name: text for name, text in texts.items() if isinstance(text, str)}
    updated = replace(build_gold(label, spans, soft=soft), **present_texts)  # type: ignore[arg-type]
    return replace(row, golds=(*row.golds[:-1], updated))
