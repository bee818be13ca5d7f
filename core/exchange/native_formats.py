"""Read and write Counterpoint's own formats: JSONL with everything about a case, and CSV.

JSONL has one object per line with the schema's number. A row needs a `response`; `label`, `spans`,
`soft`, `reason` and `corrected_answer` hold the answer that counts; `golds`, `corrections`,
`suggestions` and `handlings` are the store's own records. The text of a document is written only in
the first row that has it.

CSV has one case per line, with lists as JSON in a cell. Any table with a column of responses or
claims can be read. A table with all the columns that `write_csv_table` writes is ours: only there a
leading apostrophe is the one that keeps a cell from being a formula, and only there documents and
suggestions are JSON. No cell is written as a formula.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from core.documents.tables import (
    CLAIM_NAMES,
    DECLARED_DELIMITER,
    DELIMITERS,
    QUESTION_NAMES,
    fold_column_name,
    mask_formula,
    unmask_formula,
)
from core.exchange.fields import (
    collect_extra_columns,
    describe_row_error,
    dump_golds,
    dump_json_lines,
    dump_records,
    dump_soft_labels,
    dump_span,
    dump_suggestion,
    expand_extra_columns,
    get_basis,
    get_text,
    infer_label,
    is_derived_gold,
    is_same_answer,
    parse_case_id,
    parse_items,
    parse_label,
    parse_records,
    parse_rows,
    parse_soft_labels,
    parse_spans,
    parse_suggestions,
    restore_golds,
)
from core.exchange.file_decoding import (
    MAX_ROW_CHARS,
    decode_file_text,
    describe_unfit_text,
    iter_json_lines,
)
from core.exchange.rows import (
    SCHEMA_VERSION,
    ExchangeDocument,
    ExchangeRow,
    FileRecord,
    MachineVerdict,
    ParsedFile,
    RowProblem,
    build_correction,
    build_gold,
)
from core.runtime.errors import InputError, make_printable
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Suggestion
from core.store.sqlite import from_plain, to_plain

SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")
RECORD_FIELDS = ("golds", "corrections", "suggestions", "handlings")
ANSWER_FIELDS = ("label", "spans", "soft", "reason", "corrected_answer")
TEXT_FIELDS = ("question", "language", "role", "instruction")
KNOWN_FIELDS = (
    "schema", "id", "response", *TEXT_FIELDS, "documents", "images", *ANSWER_FIELDS,
    *RECORD_FIELDS, "verdict", "others", "claim",
)  # fmt: skip
CSV_COLUMNS = (
    "schema", "id", "question", "response", "language", "label", "spans", "soft", "reason",
    "corrected_answer", "answers", "document", "verdict", "p_hallucinated",
    "suggestions", "basis", "golds",
)  # fmt: skip
# Older tables do not have these columns.
REQUIRED_CSV_COLUMNS = frozenset(CSV_COLUMNS) - {"suggestions", "basis", "golds"}
RESPONSE_NAMES = ("response", *(name for name in CLAIM_NAMES if name != "response"))
DOCUMENT_NAMES = ("document", "documents", "context", "source", "evidence")
LABEL_NAMES = ("label", "verdict_label", "gold")
NAMES_BY_FIELD = {
    "response": RESPONSE_NAMES, "question": QUESTION_NAMES, "label": LABEL_NAMES,
    "document": DOCUMENT_NAMES,
}  # fmt: skip
READ_COLUMNS = frozenset(
    (*CSV_COLUMNS, *(name for names in NAMES_BY_FIELD.values() for name in names))
)
CsvRows = Iterator[tuple[int, list[str]] | RowProblem]


def read_jsonl(name: str, data: bytes) -> ParsedFile:
    """Read a JSONL file. Raises InputError if nothing in it can be read."""
    parsed = parse_items(iter_json_lines(decode_file_text(name, data)), _parse_row)
    texts = {d.id: d.text for row in parsed.rows for d in row.documents if d.id and d.text}

    def add_texts(row: ExchangeRow) -> ExchangeRow:
        known = (d if d.text else replace(d, text=texts.get(d.id)) for d in row.documents)
        return replace(row, documents=tuple(known))

    return replace(parsed, rows=tuple(map(add_texts, parsed.rows)))


def require_schema(value: object) -> None:
    """Raise InputError for rows of a newer Counterpoint, and for an invalid schema."""
    if value is not None and (type(value) is not int or not 1 <= value <= SCHEMA_VERSION):
        raise InputError(
            f"expected rows of schema {SCHEMA_VERSION} or older, found {str(value)[:20]}; update "
            "Counterpoint, or export the file again with an older one."
        )


def _parse_row(record: FileRecord) -> ExchangeRow:
    fields = record.fields
    require_schema(fields.get("schema"))
    response = record.text("response", "claim")
    others = fields.get("others") or {}
    if not isinstance(others, dict):
        raise record.broken("an object called others", others)
    role, instruction = (
        None if fields.get(name) is None else get_text(record, name)
        for name in ("role", "instruction")
    )
    row = ExchangeRow(
        id=parse_case_id(fields.get("id")),
        response=response,
        question=get_text(record, "question"),
        language=get_text(record, "language"),
        role=role,
        instruction=instruction,
        documents=_parse_documents(record, "documents"),
        images=_parse_documents(record, "images"),
        golds=parse_records(record, "golds", GoldAnswer),
        corrections=parse_records(record, "corrections", Correction),
        suggestions=parse_records(record, "suggestions", Suggestion),
        handlings=parse_records(record, "handlings", QueueEvent),
        verdict=_parse_verdict(fields.get("verdict")),
        others=(*collect_extra_columns(others, ()), *collect_extra_columns(fields, KNOWN_FIELDS)),
        place=record.line,
    )
    return _add_answer(row, record)


def _add_answer(row: ExchangeRow, record: FileRecord) -> ExchangeRow:
    """Return the row with its top-level answer as a gold, unless its own records say the same."""
    fields = record.fields
    spans = parse_spans(row.response, fields.get("spans"))
    label = infer_label(parse_label(fields.get("label")), spans, bool(spans))
    if label is None:
        return row
    if is_same_answer(row.truth, label, spans):
        return row
    texts = {name: get_text(record, name) for name in ("reason", "corrected_answer")}
    gold = build_gold(
        label, spans, soft=parse_soft_labels(row.response, fields.get("soft")), **texts
    )
    if row.truth.is_decided:  # an edit of the file overrides its records
        gold = replace(gold, origin="corrected", reason=gold.reason or "changed in the file")
    return replace(row, golds=(*row.golds, gold))


def _parse_documents(record: FileRecord, name: str) -> tuple[ExchangeDocument, ...]:
    items = record.fields.get(name) or []
    if not isinstance(items, list):
        raise record.broken(f"a list called {name}", items)
    documents = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, dict):
            raise record.broken(f"{name} with a name and a text or an id", item)
        document = FileRecord(item, "", record.line)
        document_id = get_text(document, "id")
        text = get_text(document, "text") or None
        if not (text or SHA256_PATTERN.fullmatch(document_id)):
            raise record.broken(f"{name} with a text, or the sha256 of a file as id", document_id)
        document_name = get_text(document, "name") or f"source {number}.txt"
        documents.append(ExchangeDocument(document_name, text, document_id))
    return tuple(documents)


def _parse_verdict(value: object) -> MachineVerdict | None:
    if value is None:
        return None
    try:
        return from_plain(MachineVerdict, value)
    except InputError as error:
        raise InputError(f"expected a verdict: {describe_row_error(error)}") from error


def write_jsonl(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as the bytes of a JSONL file."""
    written_ids: set[str] = set()
    return dump_json_lines(_dump_row(row, written_ids) for row in rows)


def _dump_row(row: ExchangeRow, written_ids: set[str]) -> dict[str, Any]:
    answer = row.answer
    plain: dict[str, Any] = {"schema": SCHEMA_VERSION}
    plain |= {name: getattr(row, name) for name in ("id", "response", *TEXT_FIELDS)}
    plain |= {
        "label": answer.label if answer else None,
        "spans": [dump_span(span) for span in answer.spans] if answer else [],
        "soft": dump_soft_labels(row),
        "reason": answer.reason if answer else "",
        "corrected_answer": answer.corrected_answer if answer else "",
        "documents": [_dump_document(document, written_ids) for document in row.documents],
        "images": [{"id": image.id, "name": image.name} for image in row.images],
    }
    for name in RECORD_FIELDS:
        plain[name] = dump_records(getattr(row, name))
    plain["verdict"] = to_plain(row.verdict)
    plain["others"] = expand_extra_columns(row.others)
    return plain


def _dump_document(document: ExchangeDocument, written_ids: set[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": document.id, "name": document.name}
    if document.text is not None and (not document.id or document.id not in written_ids):
        plain["text"] = document.text
        written_ids.add(document.id)
    return plain


def write_csv_table(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as a CSV table for spreadsheets: UTF-8 with BOM."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    extra_columns = list(dict.fromkeys(_build_title(n) for row in rows for n, _ in row.others))
    writer.writerow([mask_formula(name) for name in (*CSV_COLUMNS, *extra_columns)])
    for row in rows:
        others = {_build_title(name): text for name, text in row.others}
        cells = [*_build_cells(row), *(others.get(name, "") for name in extra_columns)]
        writer.writerow([mask_formula(cell) for cell in cells])
    return b"\xef\xbb\xbf" + stream.getvalue().encode()


def _build_title(name: str) -> str:
    return f"{name} (other)" if fold_column_name(name) in CSV_COLUMNS else name


def _build_cells(row: ExchangeRow) -> list[str]:
    answer = row.answer
    answers = [
        {"person": one.author, "label": one.label, "spans": list(map(dump_span, one.spans))}
        | {"reason": one.reason, "corrected_answer": one.corrected_answer}
        for one in row.people
    ]
    documents = [
        {"name": d.name, "text": d.text} if d.text is not None else {"name": d.name, "id": d.id}
        for d in row.documents
    ]
    verdict = row.verdict
    p = verdict.p_hallucinated if verdict else None
    return [
        str(SCHEMA_VERSION),
        row.id,
        row.question,
        row.response,
        row.language,
        row.truth.label or "",
        _dump_json([dump_span(span) for span in answer.spans]) if answer else "",
        _dump_json(dump_soft_labels(row)) if row.soft else "",
        answer.reason if answer else "",
        answer.corrected_answer if answer else "",
        _dump_json(answers) if answers else "",
        _dump_json(documents) if documents else "",
        verdict.label if verdict else "",
        "" if p is None else str(p),
        _dump_json([dump_suggestion(one) for one in row.suggestions]) if row.suggestions else "",
        get_basis(row),
        _dump_json(golds) if (golds := dump_golds(row)) else "",
    ]


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_csv_table(name: str, data: bytes) -> ParsedFile:
    """Read a table with a header.

    Raises InputError if it has no column of responses.
    """
    text, name = decode_file_text(name, data), make_printable(name)
    declared = DECLARED_DELIMITER.match(text)
    text = text[declared.end() :] if declared else text
    header, delimiter = _detect_header(name, text, declared[1] if declared else "")
    grid = iter_table_cells(text, delimiter)
    next(grid, None)  # the header
    items = iter_table_items(header, grid)
    rows, problems = parse_rows(items, partial(_parse_csv_row, _is_ours(header)))
    return ParsedFile(tuple(rows), tuple(problems))


def _detect_header(name: str, text: str, delimiter: str) -> tuple[list[str], str]:
    """Return the column names and the delimiter with which one is a column of responses."""
    csv.field_size_limit(MAX_ROW_CHARS)
    longest: list[str] = []
    for candidate in (delimiter,) if delimiter else DELIMITERS:
        row = next(iter_table_cells(text, candidate), None)
        if row is None or isinstance(row, RowProblem):
            continue
        names = row[1]
        folded_names = [fold_column_name(one) for one in names]
        longest = names if len(names) > len(longest) else longest
        if any(one in folded_names for one in RESPONSE_NAMES):
            names = [unmask_formula(one) for one in names] if _is_ours(names) else names
            _require_once(name, names, folded_names)
            return names, candidate
    there = make_printable(", ".join(longest), 200) or "none"
    raise InputError(
        f"{name}: expected a header with a column called response (or claim), found {there}; name "
        "the column of responses “response”."
    )


def _is_ours(names: Sequence[str]) -> bool:
    return set(map(fold_column_name, names)) >= REQUIRED_CSV_COLUMNS


def _require_once(name: str, names: Sequence[str], plain: Sequence[str]) -> None:
    known = [one for one in plain if one in READ_COLUMNS]
    duplicate = next((one for group in (names, known) for one in group if group.count(one) > 1), "")
    if duplicate:
        raise InputError(
            f"{name}: expected each column once, found “{make_printable(duplicate, 60)}” twice; "
            f"rename "
            "one of them."
        )


def iter_table_cells(text: str, delimiter: str) -> CsvRows:
    """Yield (line, cells) of each row that is not empty; stop after an unmatched quote."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield RowProblem(
                line,
                f"expected double quotes that match, found: {error}; put the text into double "
                "quotes and write a quote inside it twice. What follows could not be read.",
            )
            return
        if cells is None:
            return
        if cells:
            yield line, cells


def iter_table_items(header: list[str], grid: CsvRows) -> Iterator[tuple[int, object] | RowProblem]:
    """Yield each row as a mapping from column to cell."""
    is_ours = _is_ours(header)
    for item in grid:
        if isinstance(item, RowProblem):
            yield item
            continue
        line, cells = item
        if len(cells) > len(header):
            yield RowProblem(
                line,
                f"expected {len(header)} cells as in the header, found {len(cells)}; put texts "
                "that hold a comma into double quotes.",
            )
            continue
        cells = [unmask_formula(cell) for cell in cells] if is_ours else cells
        if why := next(filter(None, map(describe_unfit_text, cells)), ""):
            yield RowProblem(line, f"expected text in every cell, {why}")
            continue
        yield line, dict(zip(header, cells, strict=False))


def _parse_csv_row(is_ours: bool, record: FileRecord) -> ExchangeRow:
    by_column = {fold_column_name(name): str(value) for name, value in record.fields.items()}
    is_written = is_ours and bool(by_column.get("schema"))  # rows added by hand have no schema
    used = {"id", "language", "soft", "spans", "reason", "corrected_answer", "answers"}
    used |= {"schema", "suggestions", "basis", "golds"} if is_ours else set()
    values: dict[str, str] = {}
    for field, names in NAMES_BY_FIELD.items():
        name = next((one for one in names if one in by_column), "")
        used.add(name)
        values[field] = by_column.get(name, "")
    if is_written:
        cell = by_column["schema"]
        require_schema(int(cell) if cell.isascii() and cell.isdigit() else cell)
        used |= {"verdict", "p_hallucinated"}
    response = values["response"]
    if not response.strip():
        raise InputError("expected a text in the column of responses, found none; fill it in.")
    cells = ((name, str(value)) for name, value in record.fields.items())
    # In our own tables an empty cell means that the row has no such column.
    others = [(n, v) for n, v in cells if fold_column_name(n) not in used and (v or not is_ours)]
    suggestions = (
        parse_json_cell(by_column.get("suggestions", ""), "suggestions") if is_ours else None
    )
    row = ExchangeRow(
        id=parse_case_id(by_column.get("id")),
        response=response,
        question=values["question"],
        language=by_column.get("language", ""),
        documents=_parse_csv_documents(values["document"], is_written),
        suggestions=parse_suggestions(response, suggestions),
        others=tuple(others),
        place=record.line,
    )
    row = _add_answers(row, by_column, values["label"])
    if not is_ours:
        return row
    own = {"golds": parse_json_cell(by_column.get("golds", ""), "golds")}
    return replace(row, golds=restore_golds(row.golds, FileRecord(own, "", row.place)))


def _add_answers(row: ExchangeRow, by_column: dict[str, str], label_text: str) -> ExchangeRow:
    answers = parse_json_cell(by_column.get("answers", ""), "answers")
    if answers is not None and not isinstance(answers, list):
        raise InputError("expected a JSON list in the column answers, found another value.")
    corrections = tuple(
        _parse_answer(row.response, FileRecord(a if isinstance(a, dict) else {}, "", row.place))
        for a in answers or []
    )
    spans = parse_spans(row.response, parse_json_cell(by_column.get("spans", ""), "spans"))
    label = infer_label(parse_label(label_text.strip()), spans, bool(by_column.get("spans")))
    golds: tuple[GoldAnswer, ...] = ()
    if label is not None:
        soft = parse_soft_labels(row.response, parse_json_cell(by_column.get("soft", ""), "soft"))
        texts = {name: by_column.get(name, "") for name in ("reason", "corrected_answer")}
        golds = (build_gold(label, spans, soft=soft, **texts),)
    basis = by_column.get("basis")
    own = tuple(gold for gold in golds if not is_derived_gold(gold, corrections, basis))
    return replace(row, golds=own, corrections=corrections)


def _parse_answer(response: str, record: FileRecord) -> Any:
    label = parse_label(record.fields.get("label"))
    if label is None:
        raise InputError("expected a label in each of the answers, found none; add it.")
    texts = {name: record.spare(name) for name in ("reason", "corrected_answer")}
    spans = parse_spans(response, record.fields.get("spans"))
    return build_correction(record.text("person"), label, spans, **texts)


def parse_json_cell(cell: str, name: str) -> object:
    """Return the JSON value in a cell, or None if it is blank. Raises InputError for other text."""
    if not cell.strip():
        return None
    item = next(iter_json_lines(cell.replace("\n", " ").replace("\r", " ")), None)
    if item is None or isinstance(item, RowProblem):
        why = item.reason if item else "expected JSON"
        raise InputError(f"in the column {name}: {why}")
    return item[1]


def _parse_csv_documents(cell: str, is_written: bool) -> tuple[ExchangeDocument, ...]:
    if not cell.strip():
        return ()
    if is_written and cell.startswith("[{"):
        items = parse_json_cell(cell, "document")
        if isinstance(items, list) and all(isinstance(item, dict) for item in items):
            records = [FileRecord(item, "", 0) for item in items]
            return tuple(
                ExchangeDocument(
                    r.text("name"), r.plain("text") if r.spare("text") else None, r.spare("id")
                )
                for r in records
            )
    return (ExchangeDocument("", cell),)
