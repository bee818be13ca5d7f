"""Read tables and JSON lines with columns of any name, by a mapping that a person chooses.

What each value of the label column means is part of the mapping: 0 and 1 mean opposite things in
different sets. Where a column names the annotator, rows with the same texts are one case, and each
label is that person's answer instead of a gold answer.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import itemgetter

from core.documents.segmentation import IS_UNSPACED, extract_terms
from core.documents.tables import DECLARED_DELIMITER, DELIMITERS, fold_column_name
from core.exchange.fields import (
    LABEL_BY_WORD,
    LABEL_SYNONYMS,
    collect_extra_columns,
    get_text,
    infer_label,
    parse_case_id,
    parse_rows,
    parse_spans,
)
from core.exchange.file_decoding import MAX_ROW_CHARS, decode_file_text, iter_json_items
from core.exchange.native_formats import (
    NAMES_BY_FIELD,
    iter_table_cells,
    iter_table_items,
    parse_json_cell,
)
from core.exchange.rows import (
    ExchangeDocument,
    ExchangeRow,
    FileRecord,
    ParsedFile,
    RowProblem,
    build_correction,
    build_gold,
    mark_name_imported,
)
from core.runtime.errors import InputError, make_printable
from core.schema.records import Label
from core.store.corrections import require_author_and_time

SAMPLED_ROWS = 100
MAX_SAMPLED_CHARS = 2000  # of a text
MIN_TERMS = 3  # of a sentence
MIN_SHARED_TERMS = 0.1  # of a response and its source, beyond chance
LONGER = 1.5  # times as many terms
QUESTION_MARKS, QUESTION_SHARE = ("?", "？", "؟"), 0.2
MAX_LABEL_VALUES = 20  # more different values are no labels
COLUMN_NAMES: Mapping[str, Sequence[str]] = {
    **NAMES_BY_FIELD,
    "annotator": ("annotator", "annotator_id", "annotator_name", "worker", "worker_id"),
    "id": ("id",),
    "spans": ("spans",),
    "reason": ("reason",),
    "corrected_answer": ("corrected_answer",),
    "language": ("language",),
}
TableItem = tuple[int, object] | RowProblem


@dataclass(frozen=True)
class FileTable:
    """The rows of a file as they are, and all columns in the order in which they first occur."""

    columns: tuple[str, ...]
    items: tuple[TableItem, ...]

    @property
    def rows(self) -> Iterator[Mapping[str, object]]:
        """The rows that could be read."""
        for item in self.items:
            if not isinstance(item, RowProblem) and isinstance(item[1], dict):
                yield item[1]


@dataclass(frozen=True)
class ColumnMapping:
    """Which column holds which field of `COLUMN_NAMES`, and the label that each value stands for.

    None stands for rows without a label.
    """

    columns: Mapping[str, str]
    labels: Mapping[str, Label | None]


def read_file_table(name: str, data: bytes) -> FileTable:
    """Read a table with a header, a JSON list or JSON lines. Raises InputError for other files."""
    text = decode_file_text(name, data)
    if text.lstrip()[:1] in ("{", "["):
        items = tuple(iter_json_items(text))
        rows = FileTable((), items).rows
        return FileTable(tuple(dict.fromkeys(column for row in rows for column in row)), items)
    declared = DECLARED_DELIMITER.match(text)
    text = text[declared.end() :] if declared else text
    csv.field_size_limit(MAX_ROW_CHARS)
    header: list[str] = []
    delimiter = declared[1] if declared else DELIMITERS[0]
    for candidate in (delimiter,) if declared else DELIMITERS:
        first = next(iter_table_cells(text, candidate), None)
        if first is not None and not isinstance(first, RowProblem) and len(first[1]) > len(header):
            header, delimiter = first[1], candidate
    names = [column.strip() or f"column {n}" for n, column in enumerate(header, start=1)]
    if twice := next((column for column in names if names.count(column) > 1), ""):
        raise InputError(
            f"{make_printable(name)}: expected each column once, found "
            f"“{make_printable(twice, 60)}” twice; rename one of them."
        )
    grid = iter_table_cells(text, delimiter)
    next(grid, None)  # the header
    return FileTable(tuple(names), tuple(iter_table_items(names, grid)))


def guess_columns(table: FileTable) -> dict[str, str]:
    """Return the column of each field: by its name if that is known, else by its values.

    No id is guessed by its values: numbers that count the rows would clash with another file's.
    """
    by_name = {fold_column_name(column): column for column in reversed(table.columns)}
    named = {
        field: next((by_name[name] for name in names if name in by_name), "")
        for field, names in COLUMN_NAMES.items()
    }
    named = {field: column for field, column in named.items() if column}
    rows = list(table.rows)
    sample = rows[:: len(rows) // SAMPLED_ROWS + 1]
    values = {column: [row.get(column) for row in sample] for column in table.columns}
    named = _guess_text_columns(values, named) | named
    return _guess_label_column(values, named) | named


def _guess_label_column(
    values: Mapping[str, Sequence[object]], named: Mapping[str, str]
) -> dict[str, str]:
    """Return the column with a word for a label, else the only one of two or three values."""
    few: dict[str, set[str]] = {}
    for column, cells in values.items():
        different = set(filter(None, map(format_cell_value, cells)))
        if column not in named.values() and 1 < len(different) <= len(cells) / 2:
            few[column] = different
    worded = [column for column, different in few.items() if any(map(guess_label, different))]
    short = [column for column, different in few.items() if len(different) <= len(LABEL_SYNONYMS)]
    guessed = worded or short
    return {"label": guessed[0]} if worded or len(short) == 1 else {}


def _guess_text_columns(
    values: Mapping[str, Sequence[object]], named: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns of questions, responses and sources.

    A response shares more words with its own source than with another row's.
    """
    guessed: dict[str, str] = {}
    terms: dict[str, list[set[str]]] = {}
    for column, cells in values.items():
        texts = list(map(_join_texts, cells))
        column_terms = [set(extract_terms(text[:MAX_SAMPLED_CHARS])) for text in texts]
        if column in (named.get("response"), named.get("document")):
            terms[column] = column_terms
        elif column in named.values() or not _is_prose(texts, column_terms):
            continue
        elif sum(text.endswith(QUESTION_MARKS) for text in texts) > QUESTION_SHARE * len(texts):
            guessed.setdefault("question", column)
        else:
            terms[column] = column_terms
    sources = [named["document"]] if "document" in named else [*terms]
    responses = [named["response"]] if "response" in named else [
        c for c in terms if not any(isinstance(cell, list) for cell in values[c])
    ]  # fmt: skip
    pairs = [
        (_count_shared_terms(terms[source], terms[response]), source, response)
        for source, response in product(sources, responses)
        if source != response
        and (named.keys() & {"document", "response"} or _may_be_source(source, response, terms))
    ]
    shared, source, response = max(pairs, default=(0.0, "", ""), key=itemgetter(0))
    if shared > MIN_SHARED_TERMS:
        return guessed | {"document": source, "response": response}
    return guessed | ({"response": responses[0]} if responses else {})


def _join_texts(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return format_cell_value(value)


def _is_prose(texts: Sequence[str], terms: Sequence[set[str]]) -> bool:
    """Return True if many of the texts are different sentences, not names, addresses or JSON."""
    sentences = {
        text
        for text, each in zip(texts, terms, strict=True)
        if len(each) >= MIN_TERMS
        and text[0] not in "[{"
        and (" " in text or IS_UNSPACED.search(text))
    }
    return len(sentences) > len(texts) / 4


def _may_be_source(source: str, response: str, terms: Mapping[str, Sequence[set[str]]]) -> bool:
    """Return True if the source is much longer than the response, or as long and before it."""
    length, other = (sum(map(len, terms[column])) for column in (source, response))
    is_first = list(terms).index(source) < list(terms).index(response)
    return length > LONGER * other or (is_first and other <= LONGER * length)


def _count_shared_terms(sources: Sequence[set[str]], responses: Sequence[set[str]]) -> float:
    """Return how many more terms a response shares with its source than with another row's."""
    shift = len(sources) // 2
    others = (*sources[shift:], *sources[:shift])
    rows = zip(responses, sources, others, strict=True)
    gains = (len(own & source) - len(own & other) for own, source, other in rows)
    return sum(gains) / max(1, len(responses))


def guess_label(value: str) -> Label | None:
    """Return the label that a word stands for; None for numbers and words that nobody agreed on."""
    return LABEL_BY_WORD.get(value.lower())


def list_label_values(table: FileTable, column: str) -> list[str]:
    """Return the different values of a label column. Raises InputError if they are too many."""
    values = list(dict.fromkeys(format_cell_value(row.get(column)) for row in table.rows))
    if len(values) > MAX_LABEL_VALUES:
        raise InputError(
            f"Expected at most {MAX_LABEL_VALUES} different labels in the column “{column[:60]}”, "
            f"found {len(values):,}; choose another column."
        )
    return [value for value in values if value]


def format_cell_value(value: object) -> str:
    """Return a text without the spaces around it, other values as JSON, and nothing as ""."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def map_rows(table: FileTable, mapping: ColumnMapping) -> ParsedFile:
    """Return the rows as the mapping reads them."""
    rows, problems = parse_rows(table.items, partial(_map_row, mapping))
    if "annotator" in mapping.columns:
        rows = _merge_answers(rows)
    return ParsedFile(tuple(rows), tuple(problems))


def _map_row(mapping: ColumnMapping, record: FileRecord) -> ExchangeRow:
    fields = {field: record.fields.get(column) for field, column in mapping.columns.items()}
    values = FileRecord(fields, "", record.line)
    response = get_text(values, "response")
    if not response.strip():
        raise InputError("expected a text in the column of responses, found none; fill it in.")
    marked = fields.get("spans")
    marked = parse_json_cell(marked, "spans") if isinstance(marked, str) else marked
    spans = parse_spans(response, marked)
    label = infer_label(_map_label(mapping, fields.get("label")), spans, marked is not None)
    row = ExchangeRow(
        id=parse_case_id(fields.get("id")),
        response=response,
        question=get_text(values, "question"),
        language=get_text(values, "language"),
        documents=tuple(_parse_documents(values)),
        others=collect_extra_columns(record.fields, mapping.columns.values()),
        place=record.line,
    )
    if label is None:
        return row
    reason, right = get_text(values, "reason"), get_text(values, "corrected_answer")
    if person := get_text(values, "annotator").strip():
        require_author_and_time(mark_name_imported(person), 0.0)
        answer = build_correction(person, label, spans, reason=reason, corrected_answer=right)
        return replace(row, corrections=(answer,))
    gold = build_gold(label, spans, reason=reason, corrected_answer=right)
    return replace(row, golds=(gold,))


def _map_label(mapping: ColumnMapping, value: object) -> Label | None:
    text = format_cell_value(value)
    if text and text not in mapping.labels:
        raise InputError(f"expected a meaning of the label “{text[:60]}”, found none; choose one.")
    return mapping.labels[text] if text else None


def _parse_documents(record: FileRecord) -> Iterator[ExchangeDocument]:
    """Yield the sources of a row: a text, the name of a file in the library, or a list of texts."""
    value = record.fields.get("document")
    if not isinstance(value, list):
        if text := get_text(record, "document"):
            yield ExchangeDocument("", text)
        return
    for number, item in enumerate(value, start=1):
        source = FileRecord(item if isinstance(item, dict) else {"text": item}, "", record.line)
        name = get_text(source, "name", "title") or f"source {number}.txt"
        yield ExchangeDocument(name, source.text("text", "content"))


def _merge_answers(rows: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Return the rows with those of the same id and texts joined, one answer of a person each."""
    merged: dict[tuple[object, ...], ExchangeRow] = {}
    for row in rows:
        key = (row.id, row.question, row.response, row.documents)
        first = merged.get(key, replace(row, golds=(), corrections=()))
        merged[key] = replace(
            first,
            golds=(*first.golds, *row.golds),
            corrections=(*first.corrections, *row.corrections),
        )
    return list(merged.values())


def attribute_labels(read: ParsedFile, person: str) -> ParsedFile:
    """Return the file with its gold answers as the answers of one person.

    Raises InputError if there are some and the name is empty.
    """
    if not person and any(row.golds for row in read.rows):
        raise InputError("Expected the name of the person who gave these answers; type it.")
    return replace(read, rows=tuple(_attribute_row(row, person) for row in read.rows))


def _attribute_row(row: ExchangeRow, person: str) -> ExchangeRow:
    given = (
        build_correction(
            gold.author or person,
            gold.label,
            gold.spans,
            reason=gold.reason,
            corrected_answer=gold.corrected_answer,
        )
        for gold in row.golds
    )
    return replace(row, golds=(), corrections=(*row.corrections, *given))
