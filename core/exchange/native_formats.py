"""Counterpoint's own formats: JSONL with everything that is known of a case, and CSV.

JSONL has one object a line with the schema's number. A row needs a `response`; `label`, `spans`,
`soft`, `reason` and `corrected_answer` say the answer that counts, `golds`, `corrections`,
`suggestions` and `handlings` are the store's own records. The text of a document stands in the
first row that has it.

CSV has one case a line, with lists as JSON in a cell. Any table with a column of responses or
claims is read. One with all the columns that `write_csv_table` writes is ours: only there a leading
apostrophe is the one that keeps a cell from being a formula, and only there documents and
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


def read_jsonl(name: str, data: bytes) -> Read:
    """The rows of a file. Raises InputError: nothing in it can be read."""
    found = read_of(json_lines(text_of(name, data)), _row)
    texts = {d.id: d.text for row in found.rows for d in row.documents if d.id and d.text}

    def whole(row: ExchangeRow) -> ExchangeRow:
        known = (d if d.text else replace(d, text=texts.get(d.id)) for d in row.documents)
        return replace(row, documents=tuple(known))

    return replace(found, rows=tuple(map(whole, found.rows)))


def require_schema(value: object) -> None:
    """Raise InputError for rows of a newer Counterpoint, and for what is no schema."""
    if value is not None and (type(value) is not int or not 1 <= value <= SCHEMA):
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
    words = {name: plain_text(record, name) for name in ("reason", "corrected_answer")}
    gold = gold_of(label, spans, soft=soft_of(row.response, fields.get("soft")), **words)
    if known[0] is not None and not same[0]:  # what was changed counts, whatever was said before
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
    """The rows as the bytes of a JSONL file."""
    told: set[str] = set()
    return lines(_plain(row, told) for row in rows)


def _plain(row: ExchangeRow, told: set[str]) -> dict[str, Any]:
    answer = row.answer
    made: dict[str, Any] = {"schema": SCHEMA}
    made |= {name: getattr(row, name) for name in ("id", "response", *TEXTS)}
    made |= {
        "label": answer.label if answer else None,
        "spans": [plain_span(span) for span in answer.spans] if answer else [],
        "soft": plain_soft(row),
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


COLUMNS = (
    "schema", "id", "question", "response", "language", "label", "spans", "soft", "reason",
    "corrected_answer", "answers", "document", "verdict", "p_hallucinated",
    "suggestions",
)  # fmt: skip
OURS = frozenset(COLUMNS) - {"suggestions"}  # older tables have none


def write_csv_table(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a table: UTF-8 with BOM, for spreadsheets."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    titles = list(dict.fromkeys(_title(name) for row in rows for name, _ in row.others))
    writer.writerow([masked(name) for name in (*COLUMNS, *titles)])
    for row in rows:
        others = {_title(name): text for name, text in row.others}
        cells = [*_cells(row), *(others.get(name, "") for name in titles)]
        writer.writerow([masked(cell) for cell in cells])
    return b"\xef\xbb\xbf" + out.getvalue().encode()


def _title(name: str) -> str:
    return f"{name} (other)" if folded(name) in COLUMNS else name


def _cells(row: ExchangeRow) -> list[str]:
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
        _dumped([plain_span(span) for span in answer.spans]) if answer else "",
        _dumped(plain_soft(row)) if row.soft else "",
        answer.reason if answer else "",
        answer.corrected_answer if answer else "",
        _dumped(answers) if answers else "",
        _dumped(documents) if documents else "",
        verdict.label if verdict else "",
        "" if p is None else str(p),
        _dumped([plain_suggestion(one) for one in row.suggestions]) if row.suggestions else "",
    ]


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


RESPONSE_NAMES = ("response", *(name for name in CLAIM_NAMES if name != "response"))
DOCUMENT_NAMES = ("document", "documents", "context", "source", "evidence")
LABEL_NAMES = ("label", "verdict_label", "gold")
READ = frozenset((*COLUMNS, *RESPONSE_NAMES, *QUESTION_NAMES, *DOCUMENT_NAMES, *LABEL_NAMES))
Grid = Iterator[tuple[int, list[str]] | Problem]


def read_csv_table(name: str, data: bytes) -> Read:
    """The rows of a table under its header.

    Raises InputError: it is no table with a column of responses.
    """
    text, name = text_of(name, data), shown(name)
    declared = DECLARED.match(text)
    text = text[declared.end() :] if declared else text
    header, delimiter = _header(name, text, declared[1] if declared else "")
    grid = _grid(text, delimiter)
    next(grid, None)  # the header
    items = _items(header, grid)
    rows, problems = rows_of(items, partial(_csv_table_row, _is_ours(header)))
    return Read(tuple(rows), tuple(problems))


def _header(name: str, text: str, delimiter: str) -> tuple[list[str], str]:
    """The columns' names, and what separates them: what makes a column of responses."""
    csv.field_size_limit(MOST_ROW)
    found: list[str] = []
    for candidate in (delimiter,) if delimiter else DELIMITERS:
        first = next(_grid(text, candidate), None)
        if first is None or isinstance(first, Problem):
            continue
        names = first[1]
        plain = [folded(one) for one in names]
        found = names if len(names) > len(found) else found
        if any(one in plain for one in RESPONSE_NAMES):
            names = [bare(one) for one in names] if _is_ours(names) else names
            _require_once(name, names, plain)
            return names, candidate
    there = shown(", ".join(found), 200) or "none"
    raise InputError(
        f"{name}: expected a header with a column called response (or claim), found {there}; name "
        "the column of responses “response”."
    )


def _is_ours(names: Sequence[str]) -> bool:
    return set(map(folded, names)) >= OURS


def _require_once(name: str, names: Sequence[str], plain: Sequence[str]) -> None:
    known = [one for one in plain if one in READ]
    twice = next((one for own in (names, known) for one in own if own.count(one) > 1), "")
    if twice:
        raise InputError(
            f"{name}: expected each column once, found “{shown(twice, 60)}” twice; rename "
            "one of them."
        )


def _grid(text: str, delimiter: str) -> Grid:
    """(line, cells) of each row that holds anything; behind a broken quote nothing is read."""
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


def _items(header: list[str], grid: Grid) -> Iterator[tuple[int, object] | Problem]:
    """Each row as a mapping by its columns."""
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


def _csv_table_row(is_ours: bool, record: Record) -> ExchangeRow:
    given = {folded(name): str(value) for name, value in record.fields.items()}
    is_written = is_ours and bool(given.get("schema"))  # not put in by hand
    used = {"id", "language", "soft", "spans", "reason", "corrected_answer", "answers"}
    used |= {"schema", "suggestions"} if is_ours else set()
    values: dict[str, str] = {}
    for what, names in (
        ("response", RESPONSE_NAMES), ("question", QUESTION_NAMES), ("label", LABEL_NAMES),
        ("document", DOCUMENT_NAMES),
    ):  # fmt: skip
        name = next((one for one in names if one in given), "")
        used.add(name)
        values[what] = given.get(name, "")
    if is_written:
        cell = given["schema"]
        require_schema(int(cell) if cell.isascii() and cell.isdigit() else cell)
        used |= {"verdict", "p_hallucinated"}
    response = values["response"]
    if not response.strip():
        raise InputError("expected a text in the column of responses, found none; fill it in.")
    cells = ((name, str(value)) for name, value in record.fields.items())
    # A row of ours has no cell for what it does not know.
    others = [(n, v) for n, v in cells if folded(n) not in used and (v or not is_ours)]
    suggested = _json(given.get("suggestions", ""), "suggestions") if is_ours else None
    row = ExchangeRow(
        id=case_id(given.get("id")),
        response=response,
        question=values["question"],
        language=given.get("language", ""),
        documents=_csv_table_documents(values["document"], is_written),
        suggestions=suggestions_of(response, suggested),
        others=tuple(others),
        place=record.line,
    )
    return _with_answers(row, given, values["label"])


def _with_answers(row: ExchangeRow, given: dict[str, str], word: str) -> ExchangeRow:
    spans = spans_of(row.response, _json(given.get("spans", ""), "spans"))
    label = said(label_of(word.strip()), spans, bool(given.get("spans")))
    golds: tuple[Gold, ...] = ()
    if label is not None:
        soft = soft_of(row.response, _json(given.get("soft", ""), "soft"))
        words = {name: given.get(name, "") for name in ("reason", "corrected_answer")}
        golds = (gold_of(label, spans, soft=soft, **words),)
    answers = _json(given.get("answers", ""), "answers")
    if answers is not None and not isinstance(answers, list):
        raise InputError("expected a JSON list in the column answers, found another value.")
    corrections = tuple(
        _answer(row.response, Record(a if isinstance(a, dict) else {}, "", row.place))
        for a in answers or []
    )
    return replace(row, golds=golds, corrections=corrections)


def _answer(response: str, record: Record) -> Any:
    label = label_of(record.fields.get("label"))
    if label is None:
        raise InputError("expected a label in each of the answers, found none; add it.")
    words = {name: record.spare(name) for name in ("reason", "corrected_answer")}
    spans = spans_of(response, record.fields.get("spans"))
    return correction_of(record.text("person"), label, spans, **words)


def _json(cell: str, name: str) -> object:
    if not cell.strip():
        return None
    item = next(json_lines(cell.replace("\n", " ").replace("\r", " ")), None)
    if item is None or isinstance(item, Problem):
        why = item.reason if item else "expected JSON"
        raise InputError(f"in the column {name}: {why}")
    return item[1]


def _csv_table_documents(cell: str, is_written: bool) -> tuple[Document, ...]:
    if not cell.strip():
        return ()
    if is_written and cell.startswith("[{"):
        items = _json(cell, "document")
        if isinstance(items, list) and all(isinstance(item, dict) for item in items):
            records = [Record(item, "", 0) for item in items]
            return tuple(
                Document(
                    r.text("name"), (r.plain("text") if r.spare("text") else None), r.spare("id")
                )
                for r in records
            )
    return (Document("", cell),)
