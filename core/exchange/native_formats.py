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
from typing import Any, TypeVar

from core.documents.tables import (
    CLAIM_NAMES,
    DECLARED,
    DELIMITERS,
    QUESTION_NAMES,
    bare,
    folded,
    masked,
)
from core.exchange.fields import (
    case_id,
    label_of,
    lines,
    others_of,
    plain_others,
    plain_soft,
    plain_span,
    plain_suggestion,
    plain_text,
    read_of,
    reason,
    rows_of,
    said,
    soft_of,
    spans_of,
    suggestions_of,
)
from core.exchange.packed import MOST_ROW, json_lines, text_of, unfit_text
from core.exchange.rows import (
    SCHEMA,
    Document,
    ExchangeRow,
    MachineVerdict,
    Problem,
    Read,
    Record,
    correction_of,
    gold_of,
    imported_row,
)
from core.runtime.errors import InputError, shown
from core.schema.records import Label, Span
from core.schema.reviews import Correction, Gold, Handling, Suggestion
from core.store.sqlite import from_plain, to_plain

SHA256 = re.compile(r"[0-9a-f]{64}")
RECORDS = ("golds", "corrections", "suggestions", "handlings")
ANSWER = ("label", "spans", "soft", "reason", "corrected_answer")
TEXTS = ("question", "language", "role", "instruction")
KNOWN = ("schema", "id", "response", *TEXTS, "documents", "images", *ANSWER, *RECORDS, "verdict",
         "others", "claim")  # fmt: skip
R = TypeVar("R", Gold, Correction, Suggestion, Handling)
COLUMNS = (
    "schema", "id", "question", "response", "language", "label", "spans", "soft", "reason",
    "corrected_answer", "answers", "document", "verdict", "p_hallucinated",
    "suggestions",
)  # fmt: skip
OURS = frozenset(COLUMNS) - {"suggestions"}  # older tables do not have this column
RESPONSE_NAMES = ("response", *(name for name in CLAIM_NAMES if name != "response"))
DOCUMENT_NAMES = ("document", "documents", "context", "source", "evidence")
LABEL_NAMES = ("label", "verdict_label", "gold")
NAMES_BY_FIELD = {
    "response": RESPONSE_NAMES, "question": QUESTION_NAMES, "label": LABEL_NAMES,
    "document": DOCUMENT_NAMES,
}  # fmt: skip
READ = frozenset((*COLUMNS, *(name for names in NAMES_BY_FIELD.values() for name in names)))
Grid = Iterator[tuple[int, list[str]] | Problem]


def read_jsonl(name: str, data: bytes) -> Read:
    """Read a JSONL file. Raises InputError if nothing in it can be read."""
    parsed = read_of(json_lines(text_of(name, data)), _parse_row)
    texts = {d.id: d.text for row in parsed.rows for d in row.documents if d.id and d.text}

    def add_texts(row: ExchangeRow) -> ExchangeRow:
        known = (d if d.text else replace(d, text=texts.get(d.id)) for d in row.documents)
        return replace(row, documents=tuple(known))

    return replace(parsed, rows=tuple(map(add_texts, parsed.rows)))


def require_schema(value: object) -> None:
    """Raise InputError for rows of a newer Counterpoint, and for an invalid schema."""
    if value is not None and (type(value) is not int or not 1 <= value <= SCHEMA):
        raise InputError(
            f"expected rows of schema {SCHEMA} or older, found {str(value)[:20]}; update "
            "Counterpoint, or export the file again with an older one."
        )


def _parse_row(record: Record) -> ExchangeRow:
    fields = record.fields
    require_schema(fields.get("schema"))
    response = record.text("response", "claim")
    others = fields.get("others") or {}
    if not isinstance(others, dict):
        raise record.broken("an object called others", others)
    role, instruction = (
        None if fields.get(name) is None else plain_text(record, name)
        for name in ("role", "instruction")
    )
    row = ExchangeRow(
        id=case_id(fields.get("id")),
        response=response,
        question=plain_text(record, "question"),
        language=plain_text(record, "language"),
        role=role,
        instruction=instruction,
        documents=_parse_documents(record, "documents"),
        images=_parse_documents(record, "images"),
        golds=_parse_records(record, "golds", Gold),
        corrections=_parse_records(record, "corrections", Correction),
        suggestions=_parse_records(record, "suggestions", Suggestion),
        handlings=_parse_records(record, "handlings", Handling),
        verdict=_parse_verdict(fields.get("verdict")),
        others=(*others_of(others, ()), *others_of(fields, KNOWN)),
        place=record.line,
    )
    return _add_answer(row, record)


def _add_answer(row: ExchangeRow, record: Record) -> ExchangeRow:
    """Return the row with its top-level answer as a gold, unless its own records say the same."""
    fields = record.fields
    spans = spans_of(row.response, fields.get("spans"))
    label = said(label_of(fields.get("label")), spans, bool(spans))
    if label is None:
        return row
    known_answers = row.answer, imported_row(row).answer  # in its own home, and after the import
    is_same = [a is not None and _is_same_answer(a, label, spans) for a in known_answers]
    if all(is_same):
        return row
    texts = {name: plain_text(record, name) for name in ("reason", "corrected_answer")}
    gold = gold_of(label, spans, soft=soft_of(row.response, fields.get("soft")), **texts)
    if known_answers[0] is not None and not is_same[0]:  # an edit of the file overrides its records
        gold = replace(gold, origin="corrected", reason=gold.reason or "changed in the file")
    return replace(row, golds=(*row.golds, gold))


def _is_same_answer(answer: Gold | Correction, label: Label, spans: Sequence[Span]) -> bool:
    known_spans = [*map(plain_span, answer.spans)]
    return (answer.label, known_spans) == (label, [*map(plain_span, spans)])


def _parse_documents(record: Record, name: str) -> tuple[Document, ...]:
    items = record.fields.get(name) or []
    if not isinstance(items, list):
        raise record.broken(f"a list called {name}", items)
    documents = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, dict):
            raise record.broken(f"{name} with a name and a text or an id", item)
        document = Record(item, "", record.line)
        document_id = plain_text(document, "id")
        text = plain_text(document, "text") or None
        if not (text or SHA256.fullmatch(document_id)):
            raise record.broken(f"{name} with a text, or the sha256 of a file as id", document_id)
        document_name = plain_text(document, "name") or f"source {number}.txt"
        documents.append(Document(document_name, text, document_id))
    return tuple(documents)


def _parse_records(record: Record, name: str, kind: type[R]) -> tuple[R, ...]:
    items = record.fields.get(name) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise record.broken(f"a list of objects called {name}", items)
    records = []
    for item in items:
        try:
            records.append(from_plain(kind, {**item, "case_id": ""}))
        except InputError as error:
            raise record.broken(f"{name} as Counterpoint writes them", str(error)) from error
    return tuple(records)


def _parse_verdict(value: object) -> MachineVerdict | None:
    if value is None:
        return None
    try:
        return from_plain(MachineVerdict, value)
    except InputError as error:
        raise InputError(f"expected a verdict: {reason(error)}") from error


def write_jsonl(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as the bytes of a JSONL file."""
    written_ids: set[str] = set()
    return lines(_dump_row(row, written_ids) for row in rows)


def _dump_row(row: ExchangeRow, written_ids: set[str]) -> dict[str, Any]:
    answer = row.answer
    plain: dict[str, Any] = {"schema": SCHEMA}
    plain |= {name: getattr(row, name) for name in ("id", "response", *TEXTS)}
    plain |= {
        "label": answer.label if answer else None,
        "spans": [plain_span(span) for span in answer.spans] if answer else [],
        "soft": plain_soft(row),
        "reason": answer.reason if answer else "",
        "corrected_answer": answer.corrected_answer if answer else "",
        "documents": [_dump_document(document, written_ids) for document in row.documents],
        "images": [{"id": image.id, "name": image.name} for image in row.images],
    }
    for name in RECORDS:
        records = [to_plain(one) for one in getattr(row, name)]
        plain[name] = [{k: v for k, v in one.items() if k != "case_id"} for one in records]
    plain["verdict"] = to_plain(row.verdict)
    plain["others"] = plain_others(row.others)
    return plain


def _dump_document(document: Document, written_ids: set[str]) -> dict[str, Any]:
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
    writer.writerow([masked(name) for name in (*COLUMNS, *extra_columns)])
    for row in rows:
        others = {_build_title(name): text for name, text in row.others}
        cells = [*_build_cells(row), *(others.get(name, "") for name in extra_columns)]
        writer.writerow([masked(cell) for cell in cells])
    return b"\xef\xbb\xbf" + stream.getvalue().encode()


def _build_title(name: str) -> str:
    return f"{name} (other)" if folded(name) in COLUMNS else name


def _build_cells(row: ExchangeRow) -> list[str]:
    answer = row.answer
    people = [one for one in row.people if one is not answer]
    answers = [
        {"person": one.author, "label": one.label, "spans": list(map(plain_span, one.spans))}
        | {"reason": one.reason, "corrected_answer": one.corrected_answer}
        for one in people
    ]
    documents = [
        {"name": d.name, "text": d.text} if d.text is not None else {"name": d.name, "id": d.id}
        for d in row.documents
    ]
    verdict = row.verdict
    p = verdict.p_hallucinated if verdict else None
    return [
        str(SCHEMA),
        row.id,
        row.question,
        row.response,
        row.language,
        answer.label if answer else "",
        _dump_json([plain_span(span) for span in answer.spans]) if answer else "",
        _dump_json(plain_soft(row)) if row.soft else "",
        answer.reason if answer else "",
        answer.corrected_answer if answer else "",
        _dump_json(answers) if answers else "",
        _dump_json(documents) if documents else "",
        verdict.label if verdict else "",
        "" if p is None else str(p),
        _dump_json([plain_suggestion(one) for one in row.suggestions]) if row.suggestions else "",
    ]


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_csv_table(name: str, data: bytes) -> Read:
    """Read a table with a header.

    Raises InputError if it has no column of responses.
    """
    text, name = text_of(name, data), shown(name)
    declared = DECLARED.match(text)
    text = text[declared.end() :] if declared else text
    header, delimiter = _detect_header(name, text, declared[1] if declared else "")
    grid = _iter_cells(text, delimiter)
    next(grid, None)  # the header
    items = _iter_items(header, grid)
    rows, problems = rows_of(items, partial(_parse_csv_row, _is_ours(header)))
    return Read(tuple(rows), tuple(problems))


def _detect_header(name: str, text: str, delimiter: str) -> tuple[list[str], str]:
    """Return the column names and the delimiter with which one is a column of responses."""
    csv.field_size_limit(MOST_ROW)
    longest: list[str] = []
    for candidate in (delimiter,) if delimiter else DELIMITERS:
        row = next(_iter_cells(text, candidate), None)
        if row is None or isinstance(row, Problem):
            continue
        names = row[1]
        folded_names = [folded(one) for one in names]
        longest = names if len(names) > len(longest) else longest
        if any(one in folded_names for one in RESPONSE_NAMES):
            names = [bare(one) for one in names] if _is_ours(names) else names
            _require_once(name, names, folded_names)
            return names, candidate
    there = shown(", ".join(longest), 200) or "none"
    raise InputError(
        f"{name}: expected a header with a column called response (or claim), found {there}; name "
        "the column of responses “response”."
    )


def _is_ours(names: Sequence[str]) -> bool:
    return set(map(folded, names)) >= OURS


def _require_once(name: str, names: Sequence[str], plain: Sequence[str]) -> None:
    known = [one for one in plain if one in READ]
    duplicate = next((one for group in (names, known) for one in group if group.count(one) > 1), "")
    if duplicate:
        raise InputError(
            f"{name}: expected each column once, found “{shown(duplicate, 60)}” twice; rename "
            "one of them."
        )


def _iter_cells(text: str, delimiter: str) -> Grid:
    """Yield (line, cells) of each row that is not empty; stop after an unmatched quote."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Problem(
                line,
                f"expected double quotes that match, found: {error}; put the text into double "
                "quotes and write a quote inside it twice. What follows could not be read.",
            )
            return
        if cells is None:
            return
        if cells:
            yield line, cells


def _iter_items(header: list[str], grid: Grid) -> Iterator[tuple[int, object] | Problem]:
    """Yield each row as a mapping from column to cell."""
    is_ours = _is_ours(header)
    for item in grid:
        if isinstance(item, Problem):
            yield item
            continue
        line, cells = item
        if len(cells) > len(header):
            yield Problem(
                line,
                f"expected {len(header)} cells as in the header, found {len(cells)}; put texts "
                "that hold a comma into double quotes.",
            )
            continue
        cells = [bare(cell) for cell in cells] if is_ours else cells
        if why := next(filter(None, map(unfit_text, cells)), ""):
            yield Problem(line, f"expected text in every cell, {why}")
            continue
        yield line, dict(zip(header, cells, strict=False))


def _parse_csv_row(is_ours: bool, record: Record) -> ExchangeRow:
    by_column = {folded(name): str(value) for name, value in record.fields.items()}
    is_written = is_ours and bool(by_column.get("schema"))  # rows added by hand have no schema
    used = {"id", "language", "soft", "spans", "reason", "corrected_answer", "answers"}
    used |= {"schema", "suggestions"} if is_ours else set()
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
    others = [(n, v) for n, v in cells if folded(n) not in used and (v or not is_ours)]
    suggestions = (
        _parse_json_cell(by_column.get("suggestions", ""), "suggestions") if is_ours else None
    )
    row = ExchangeRow(
        id=case_id(by_column.get("id")),
        response=response,
        question=values["question"],
        language=by_column.get("language", ""),
        documents=_parse_csv_documents(values["document"], is_written),
        suggestions=suggestions_of(response, suggestions),
        others=tuple(others),
        place=record.line,
    )
    return _add_answers(row, by_column, values["label"])


def _add_answers(row: ExchangeRow, by_column: dict[str, str], label_text: str) -> ExchangeRow:
    spans = spans_of(row.response, _parse_json_cell(by_column.get("spans", ""), "spans"))
    label = said(label_of(label_text.strip()), spans, bool(by_column.get("spans")))
    golds: tuple[Gold, ...] = ()
    if label is not None:
        soft = soft_of(row.response, _parse_json_cell(by_column.get("soft", ""), "soft"))
        texts = {name: by_column.get(name, "") for name in ("reason", "corrected_answer")}
        golds = (gold_of(label, spans, soft=soft, **texts),)
    answers = _parse_json_cell(by_column.get("answers", ""), "answers")
    if answers is not None and not isinstance(answers, list):
        raise InputError("expected a JSON list in the column answers, found another value.")
    corrections = tuple(
        _parse_answer(row.response, Record(a if isinstance(a, dict) else {}, "", row.place))
        for a in answers or []
    )
    return replace(row, golds=golds, corrections=corrections)


def _parse_answer(response: str, record: Record) -> Any:
    label = label_of(record.fields.get("label"))
    if label is None:
        raise InputError("expected a label in each of the answers, found none; add it.")
    texts = {name: record.spare(name) for name in ("reason", "corrected_answer")}
    spans = spans_of(response, record.fields.get("spans"))
    return correction_of(record.text("person"), label, spans, **texts)


def _parse_json_cell(cell: str, name: str) -> object:
    if not cell.strip():
        return None
    item = next(json_lines(cell.replace("\n", " ").replace("\r", " ")), None)
    if item is None or isinstance(item, Problem):
        why = item.reason if item else "expected JSON"
        raise InputError(f"in the column {name}: {why}")
    return item[1]


def _parse_csv_documents(cell: str, is_written: bool) -> tuple[Document, ...]:
    if not cell.strip():
        return ()
    if is_written and cell.startswith("[{"):
        items = _parse_json_cell(cell, "document")
        if isinstance(items, list) and all(isinstance(item, dict) for item in items):
            records = [Record(item, "", 0) for item in items]
            return tuple(
                Document(
                    r.text("name"), r.plain("text") if r.spare("text") else None, r.spare("id")
                )
                for r in records
            )
    return (Document("", cell),)
