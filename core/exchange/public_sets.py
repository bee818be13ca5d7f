"""Read the layouts of five public sets, and write those of Mu-SHROOM and RAGTruth.

- Mu-SHROOM (SemEval 2025, task 3): JSON lines with hard and soft spans, and no label: any hard span
  means hallucinated. If only soft ones are given, the hard ones are what more than half marked.
- RAGTruth: `response.jsonl` with labelled spans and `source_info.jsonl` with the sources. One
  file may hold the lines of both, and a row may carry its own `source_info`.
- XSum hallucination annotations: a CSV with a line for each span of each annotator. Starts count
  from 1 and are often a few characters off, so the quoted words decide. What more than half of a
  summary's annotators say is the gold; each annotator's own marks are their answer.
- HaluQuestQA: two answers to a question, with the spans that an expert found wrong. Only factual
  errors make an answer hallucinated. Each line gives two cases.
- FaithBench: batches of summaries with the marks of several annotators. The most severe mark is
  the gold, and only unwanted words are wrong. Sample ids start again in each batch, so they are
  kept as an extra column.

What Mu-SHROOM and RAGTruth cannot express is written to an extra object called `counterpoint`.
"""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from core.documents.tables import require_columns
from core.exchange.fields import (
    EXTENSION_KEY,
    apply_extension,
    build_extension,
    collect_extra_columns,
    describe_row_error,
    dump_json_lines,
    expand_extra_columns,
    get_text,
    infer_label,
    parse_case_id,
    parse_items,
    parse_rows,
    parse_soft_labels,
    parse_spans,
)
from core.exchange.file_decoding import (
    MAX_ROW_CHARS,
    decode_file_text,
    iter_json_items,
    iter_json_lines,
)
from core.exchange.rows import (
    UNKNOWN_LANGUAGES,
    UNSPECIFIED_CATEGORY,
    ExchangeDocument,
    ExchangeRow,
    FileRecord,
    GoldSpan,
    OffsetUnit,
    ParsedFile,
    RawSpan,
    RowProblem,
    build_correction,
    build_gold,
    compute_marked_shares,
    find_nearest_offset,
    find_offset_units,
    locate_span,
    normalize_word,
    select_majority_spans,
)
from core.runtime.errors import InputError
from core.schema.records import Label, Span, WordScore

MUSHROOM_FIELDS = (
    "id",
    "model_input",
    "model_output_text",
    "hard_labels",
    "soft_labels",
    EXTENSION_KEY,
)
XSUM_COLUMNS = frozenset(
    "bbcid system summary hallucination_type hallucinated_span hallucinated_span_start "
    "worker_id".split()
)
NO_MARK_WORDS = ("null", "")
HALUQUESTQA_COLUMNS = frozenset(
    "question_text ans1_text ans2_text factuality_span factuality_label".split()
)
MAX_LIST_CHARS = 100_000
FACTUAL_ERROR = "factual error"
MARK_GRADES = ("Unwanted", "Questionable", "Benign")
LABEL_BY_GRADE: dict[str, Label] = {"Unwanted": "hallucinated", "Questionable": "unclear"}
AnnotatorMark = tuple[str, str, Span, str]  # annotator, grade, marked words, note
RAGTRUTH_FIELDS = (
    "id",
    "response",
    "question",
    "language",
    "labels",
    "source_info",
    "source_name",
    EXTENSION_KEY,
)
SOURCE_ID_KEY = "source_id"
MORE_SOURCES_KEY = "more_sources"


def read_mushroom(name: str, data: bytes) -> ParsedFile:
    """Read a Mu-SHROOM file; rows without labels are cases without a gold."""
    return parse_items(iter_json_lines(decode_file_text(name, data)), parse_mushroom_row)


def parse_mushroom_row(record: FileRecord) -> ExchangeRow:
    """Return a row with the gold that its spans give; without labels it has no gold.

    Raises InputError if a field is missing, or a span lies outside of the response.
    """
    fields = record.fields
    response = record.text("model_output_text")
    hard = fields.get("hard_labels")
    soft = parse_soft_labels(response, fields.get("soft_labels"))
    if hard is None and fields.get("soft_labels") is not None:
        marked = select_majority_spans(GoldSpan(one.start, one.end, one.p) for one in soft)
        hard = [[one.start, one.end] for one in marked]
    spans = parse_spans(response, hard)
    label = infer_label(None, spans, hard is not None)
    gold = None if label is None else build_gold(label, spans, soft=soft)
    row = ExchangeRow(
        id=parse_case_id(fields.get("id")),
        response=response,
        question=get_text(record, "model_input"),
        language=get_text(record, "lang").lower(),
        golds=() if gold is None else (gold,),
        others=collect_extra_columns(fields, MUSHROOM_FIELDS),
        place=record.line,
    )
    return apply_extension(row, fields.get(EXTENSION_KEY))


def write_mushroom(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as the bytes of a Mu-SHROOM file."""
    return dump_json_lines(_dump_mushroom_row(row) for row in rows)


def _dump_mushroom_row(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    language = (row.language or "und").upper()
    plain: dict[str, Any] = {"id": row.id, "lang": language, "model_input": row.question}
    plain |= {"model_output_text": row.response}
    plain |= {
        n: value
        for n, value in expand_extra_columns(row.others).items()
        if n not in MUSHROOM_FIELDS
    }
    if answer is not None:
        plain["soft_labels"] = [{"start": s.start, "prob": s.p, "end": s.end} for s in row.soft]
        plain["hard_labels"] = [[span.start, span.end] for span in answer.spans]
    label = infer_label(None, answer.spans, is_marked=True) if answer else None
    return plain | build_extension(row, label, tells_shares=True)


def read_xsum(name: str, data: bytes) -> ParsedFile:
    """Read a case for each summary, with the answers of its annotators.

    Raises InputError if the file cannot be read, or it has other columns.
    """
    records_by_summary: dict[str, list[FileRecord]] = {}
    rows: list[ExchangeRow] = []
    problems: list[RowProblem] = []
    for record in _iter_table(name, data, ",", XSUM_COLUMNS, problems):
        try:
            record.text("summary"), record.text("worker_id")
            records_by_summary.setdefault(build_xsum_id(record), []).append(record)
        except InputError as error:
            problems.append(RowProblem(record.line, describe_row_error(error)))
    for records in records_by_summary.values():
        try:
            rows.append(parse_xsum_row(records))
        except InputError as error:
            problems.append(RowProblem(records[0].line, describe_row_error(error)))
    return ParsedFile(tuple(rows), tuple(problems))


def _iter_table(
    name: str, data: bytes, delimiter: str, columns: frozenset[str], problems: list[RowProblem]
) -> Iterator[FileRecord]:
    """Yield the lines of a table; a line after which nothing can be read joins the problems."""
    csv.field_size_limit(MAX_ROW_CHARS)
    stream = io.StringIO(decode_file_text(name, data), newline="")
    reader = csv.DictReader(stream, delimiter=delimiter)
    try:
        require_columns(name, reader.fieldnames or (), columns)
        for cells in reader:
            yield FileRecord({k: v for k, v in cells.items() if k is not None}, "", reader.line_num)
    except csv.Error as error:
        problems.append(RowProblem(reader.line_num, f"expected a table, found: {error}."))


def build_xsum_id(record: FileRecord) -> str:
    """Return the id of a summary: its article and the system that wrote it."""
    return f"{record.text('bbcid')}:{record.text('system')}"


def parse_xsum_row(lines: Sequence[FileRecord]) -> ExchangeRow:
    """Return the row of the summary that all these lines are about.

    Raises InputError if they are about several summaries, or a field is missing.
    """
    name, summary = build_xsum_id(lines[0]), lines[0].text("summary")
    if any(line.text("summary") != summary for line in lines):
        raise InputError(f"expected one summary called {name}, found several; rename them.")
    spans_by_worker: dict[str, list[Span]] = {}
    markers = set()
    for line in lines:
        spans = spans_by_worker.setdefault(line.text("worker_id"), [])
        if normalize_word(line.fields.get("hallucination_type")) in NO_MARK_WORDS:
            continue
        markers.add(line.text("worker_id"))
        text = line.text("hallucinated_span").replace("\\n", "")
        start = int(line.number("hallucinated_span_start"))
        span = _find_span(summary, text, line.text("hallucination_type").strip(), start)
        spans += [span] if span else []
    marked = [[GoldSpan(s.start, s.end) for s in spans] for spans in spans_by_worker.values()]
    soft = compute_marked_shares(marked)
    is_wrong = 2 * len(markers) > len(spans_by_worker)
    hard = [
        Span(
            stretch.start,
            stretch.end,
            summary[stretch.start : stretch.end],
            1.0,
            UNSPECIFIED_CATEGORY,
            "",
        )
        for stretch in (select_majority_spans(soft) if is_wrong else ())
    ]
    scores = [WordScore(stretch.start, stretch.end, stretch.p) for stretch in soft]
    return ExchangeRow(
        id=name,
        response=summary,
        golds=(build_gold("hallucinated" if is_wrong else "supported", hard, soft=scores),),
        corrections=tuple(
            build_correction(worker, "hallucinated" if worker in markers else "supported", spans)
            for worker, spans in spans_by_worker.items()
        ),
        others=(("bbcid", lines[0].text("bbcid")), ("system", lines[0].text("system"))),
        place=lines[0].line,
    )


def _find_span(response: str, piece: str, category: str, place: int = 0) -> Span | None:
    """Return the marked words' occurrence nearest to the place, or None if there is none."""
    stripped = piece.strip()
    start = find_nearest_offset(response, stripped, place)
    if start < 0 or not stripped:
        return None
    end = start + len(stripped)
    return Span(start, end, response[start:end], 1.0, category, "")


def read_haluquestqa(name: str, data: bytes) -> ParsedFile:
    """Read two cases per line. Raises InputError if nothing can be read or columns differ."""
    rows: list[ExchangeRow] = []
    problems: list[RowProblem] = []
    for record in _iter_table(name, data, "\t", HALUQUESTQA_COLUMNS, problems):
        try:
            rows += parse_haluquestqa_rows(record)
        except InputError as error:
            problems.append(RowProblem(record.line, describe_row_error(error)))
    return ParsedFile(tuple(rows), tuple(problems))


def parse_haluquestqa_rows(record: FileRecord) -> list[ExchangeRow]:
    """Return the rows of both answers of a line.

    Raises InputError if a field is missing or not a list, or not every span names one answer.
    """
    pieces = _parse_list(record, "factuality_span")
    answers = _parse_list(record, "factuality_label")
    if len(pieces) != len(answers) or set(answers) - {"answer1", "answer2"}:
        raise record.broken("answer1 or answer2 in factuality_label for each span", answers)
    has_reasons = "factuality_reason" in record.fields
    reasons = _parse_list(record, "factuality_reason") if has_reasons else ()
    line_id = record.spare("")
    rows = []
    for number in (1, 2):
        numbers = [n for n, answer in enumerate(answers) if answer == f"answer{number}"]
        response = record.text(f"ans{number}_text")
        spans = [_find_span(response, pieces[n], FACTUAL_ERROR) for n in numbers]
        unmatched = [pieces[n] for n, span in zip(numbers, spans, strict=True) if span is None]
        gold = build_gold(
            "hallucinated" if numbers else "supported",
            [span for span in spans if span is not None],
            reason="\n".join(reasons[n] for n in numbers if n < len(reasons)),
            author=record.spare("annotator"),
        )
        rows.append(
            ExchangeRow(
                id=f"{line_id}:{number}" if line_id else "",
                response=response,
                question=record.text("question_text"),
                golds=(gold,),
                others=_collect_columns(record, number, unmatched),
                place=record.line,
            )
        )
    return rows


def _collect_columns(
    record: FileRecord, number: int, unmatched: list[str]
) -> tuple[tuple[str, str], ...]:
    columns = {
        "written_by": record.spare(f"ans{number}_label"),
        "category": record.spare("category"),
        "preferred": record.spare("ans_preference"),
        "preferred_because": record.spare("ans_preference_reason"),
        "marks_not_found": "\n".join(unmatched),
    }
    return tuple((name, text) for name, text in columns.items() if text)


def _parse_list(record: FileRecord, name: str) -> tuple[str, ...]:
    """Return the texts of a list that a cell holds as a Python literal; () if it is blank."""
    text = record.plain(name).strip()
    try:
        items = ast.literal_eval(text) if text and len(text) <= MAX_LIST_CHARS else []
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise record.broken(f"a list in {name}", text) from None
    if not isinstance(items, list) or len(text) > MAX_LIST_CHARS:
        raise record.broken(f"a list in {name} of at most {MAX_LIST_CHARS:,} characters", text)
    return tuple(str(one) for one in items)


def is_faithbench(value: object) -> bool:
    """Return True if a decoded row looks like a FaithBench batch or a sample of one."""
    if isinstance(value, dict) and isinstance(value.get("samples"), list):
        value = value["samples"][0] if value["samples"] else None
    return isinstance(value, dict) and {"source", "summary", "annotations"} <= value.keys()


def read_faithbench(name: str, data: bytes) -> ParsedFile:
    """Read the samples of a batch. Raises InputError if nothing in it can be read."""
    return parse_items(
        _iter_samples(iter_json_items(decode_file_text(name, data))), parse_faithbench_row, "row"
    )


def _iter_samples(items: Iterable[tuple[int, object] | RowProblem]) -> Iterator[Any]:
    for item in items:
        value = None if isinstance(item, RowProblem) else item[1]
        if isinstance(value, dict) and isinstance(value.get("samples"), list):
            yield from enumerate(value["samples"], start=1)
        else:
            yield item


def parse_faithbench_row(record: FileRecord) -> ExchangeRow:
    """Return a sample with its source and the marks of all annotators.

    Raises InputError if a field is missing, or a mark is of no known kind or not where it says.
    """
    summary = record.text("summary")
    annotations = record.records("annotations")
    units = find_offset_units(summary, map(_get_raw_span, annotations))
    all_marks = [_parse_mark(summary, one, units) for one in annotations]
    marks = [mark for mark in all_marks if mark[1]]  # without a grade a mark says nothing
    annotators = dict.fromkeys(annotator for annotator, *_ in marks)
    marks_by_annotator = (
        (annotator, [mark for mark in marks if mark[0] == annotator]) for annotator in annotators
    )
    metadata = record.fields.get("metadata")
    return ExchangeRow(
        id="",
        response=summary,
        documents=(ExchangeDocument("source.txt", record.text("source")),),
        golds=(
            build_gold(_choose_label(marks), _select_unwanted(marks), reason=_join_notes(marks)),
        ),
        corrections=tuple(
            build_correction(
                annotator, _choose_label(own), [mark[2] for mark in own], reason=_join_notes(own)
            )
            for annotator, own in marks_by_annotator
        ),
        others=(
            *collect_extra_columns({"sample_id": record.fields.get("sample_id")}, ()),
            *collect_extra_columns(metadata if isinstance(metadata, dict) else {}, ()),
        ),
        place=record.line,
    )


def _get_raw_span(record: FileRecord) -> RawSpan:
    names = ("summary_start", "summary_end", "summary_span")
    start, end, quote = map(record.fields.get, names)
    return start, end, quote


def _parse_mark(summary: str, record: FileRecord, units: Sequence[OffsetUnit]) -> AnnotatorMark:
    labels = record.texts("label")
    grade = next(
        (known for known in MARK_GRADES if any(w.split(".")[0] == known for w in labels)), ""
    )
    if labels and not grade:
        raise InputError(
            f"expected a mark of {', '.join(MARK_GRADES)}, found “{', '.join(labels)[:60]}”; "
            f"correct it."
        )
    start, end = locate_span(summary, *_get_raw_span(record), units, record.notices)
    person = get_text(record, "annotator_name", "annotator_id") or "annotator"
    span = Span(start, end, summary[start:end], 1.0, max(labels, key=len, default=""), "")
    return person, grade, span, get_text(record, "note").strip()


def _choose_label(marks: Sequence[AnnotatorMark]) -> Label:
    grades = {grade for _, grade, *_ in marks}
    return next(
        (LABEL_BY_GRADE[one] for one in MARK_GRADES if one in grades and one in LABEL_BY_GRADE),
        "supported",
    )


def _select_unwanted(marks: Sequence[AnnotatorMark]) -> list[Span]:
    spans = {(s.start, s.end, s.category): s for _, grade, s, _ in marks if grade == "Unwanted"}
    return [spans[key] for key in sorted(spans)]


def _join_notes(marks: Sequence[AnnotatorMark]) -> str:
    return "\n".join(dict.fromkeys(note for *_, note in marks if note))


def read_ragtruth(name: str, data: bytes) -> ParsedFile:
    """Read a RAGTruth file, joined with the sources in it."""
    items = list(iter_json_lines(decode_file_text(name, data)))
    sources = [i for i in items if not isinstance(i, RowProblem) and _is_source(i[1])]
    responses = (i for i in items if isinstance(i, RowProblem) or not _is_source(i[1]))
    parsed = parse_items(responses, parse_ragtruth_row)
    return _join_sources(parsed, sources)


def join_sources_file(read: ParsedFile, data: bytes) -> ParsedFile:
    """Return the responses joined with the sources of a separate file."""
    return _join_sources(read, list(iter_json_lines(decode_file_text("sources", data))))


def _join_sources(read: ParsedFile, items: Sequence[tuple[int, object] | RowProblem]) -> ParsedFile:
    sources, problems = parse_rows(items, _parse_source)
    by_id = dict(sources)
    source_problems = (
        RowProblem(one.place, f"among the sources: {one.reason}") for one in problems
    )
    rows = []
    for row in read.rows:
        source_id = parse_case_id(expand_extra_columns(row.others).get(SOURCE_ID_KEY))
        if not row.documents and source_id in by_id:
            document, question = by_id[source_id]
            row = replace(row, documents=(document,), question=row.question or question)
        rows.append(row)
    return replace(read, rows=tuple(rows), problems=(*read.problems, *source_problems))


def _is_source(value: object) -> bool:
    return isinstance(value, dict) and "response" not in value and "source_info" in value


def _parse_source(record: FileRecord) -> tuple[str, tuple[ExchangeDocument, str]]:
    source_id = parse_case_id(record.fields.get(SOURCE_ID_KEY))
    if not source_id:
        raise record.broken("a source_id beside the source_info")
    return source_id, _parse_document(record, source_id)


def _parse_document(record: FileRecord, source: str) -> tuple[ExchangeDocument, str]:
    info = record.fields.get("source_info")
    name = get_text(record, "source_name") or f"{source or 'source'}.txt"
    if isinstance(info, str):
        return ExchangeDocument(name, record.text("source_info")), ""
    if not isinstance(info, dict):
        raise record.broken("a text or an object called source_info", info)
    question = info.get("question")
    passages = info.get("passages")
    if isinstance(passages, str) and passages.strip():
        return ExchangeDocument(name, passages), question if isinstance(question, str) else ""
    return ExchangeDocument(name, json.dumps(info, ensure_ascii=False, indent=1)), ""


def parse_ragtruth_row(record: FileRecord) -> ExchangeRow:
    """Return an answer with its labelled spans, and its source if the row carries it.

    Raises InputError if a field is missing, or a span lies outside of the response.
    """
    fields = record.fields
    response = record.text("response")
    spans = parse_spans(response, fields.get("labels"))
    label = infer_label(None, spans, fields.get("labels") is not None)
    documents: tuple[ExchangeDocument, ...] = ()
    question = get_text(record, "question")
    if fields.get("source_info") is not None:
        document, source_question = _parse_document(
            record, parse_case_id(fields.get(SOURCE_ID_KEY))
        )
        documents, question = (document,), question or source_question
    more = fields.get(MORE_SOURCES_KEY)
    for item in more if isinstance(more, list) else []:
        if isinstance(item, dict):
            source = FileRecord(item, "", record.line)
            documents = (*documents, _parse_document(source, "")[0])
    row = ExchangeRow(
        id=parse_case_id(fields.get("id")),
        response=response,
        question=question,
        language=get_text(record, "language"),
        documents=documents,
        golds=() if label is None else (build_gold(label, spans),),
        others=collect_extra_columns(fields, (*RAGTRUTH_FIELDS, MORE_SOURCES_KEY)),
        place=record.line,
    )
    return apply_extension(row, fields.get(EXTENSION_KEY))


def write_ragtruth(rows: Sequence[ExchangeRow]) -> bytes:
    """Return the rows as the bytes of a RAGTruth file; each row carries its source texts."""
    return dump_json_lines(_dump_ragtruth_row(row) for row in rows)


def _dump_ragtruth_row(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    plain: dict[str, Any] = {"id": row.id, "response": row.response}
    others = expand_extra_columns(row.others)
    plain |= {
        name: value
        for name, value in others.items()
        if name not in (*RAGTRUTH_FIELDS, MORE_SOURCES_KEY)
    }
    if answer is not None:
        plain["labels"] = [
            {"start": span.start, "end": span.end, "text": span.text, "label_type": span.category}
            for span in answer.spans
        ]
    plain |= {"question": row.question} if row.question else {}
    plain |= {"language": row.language} if row.language not in UNKNOWN_LANGUAGES else {}
    texts = [
        {"source_info": d.text, "source_name": d.name} for d in row.documents if d.text is not None
    ]
    plain |= texts[0] if texts else {}
    plain |= {MORE_SOURCES_KEY: texts[1:]} if texts[1:] else {}
    label = infer_label(None, answer.spans, is_marked=True) if answer else None
    return plain | build_extension(row, label, tells_categories=True)
