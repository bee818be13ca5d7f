"""The layouts of public sets: Mu-SHROOM and RAGTruth in and out, three others only in.

- Mu-SHROOM (SemEval 2025, task 3): JSON lines with hard and soft spans, and no label: any hard span
  means hallucinated. Where only soft ones are given the hard ones are what more than half marked.
- RAGTruth: `response.jsonl` with labelled spans and `source_info.jsonl` with the sources; their
  lines may follow each other in one file, and a row may carry its own `source_info`.
- XSum hallucination annotations: a CSV with a line for each span of each annotator. Starts count
  from 1 and are often a few characters off: the quoted words count. What more than half of a
  summary's annotators say is the gold, each one's own marks are their answer.
- HaluQuestQA: two answers to a question, with the spans that an expert found wrong. Only factual
  errors make an answer hallucinated. A line gives two cases.
- FaithBench: batches of summaries with the marks of several annotators. The gravest mark is the
  gold, and only unwanted words are wrong. Ids of samples start anew in each batch, so they are kept
  as a further column.

What Mu-SHROOM and RAGTruth cannot say stands in a further object called `counterpoint`.
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
    OWN,
    case_id,
    lines,
    others_of,
    own_words,
    plain_others,
    plain_text,
    read_of,
    reason,
    rows_of,
    said,
    soft_of,
    spans_of,
    with_own_words,
)
from core.exchange.packed import MOST_ROW, json_items, json_lines, text_of
from core.exchange.rows import (
    UNKNOWN,
    UNSPECIFIED,
    Document,
    ExchangeRow,
    GoldSpan,
    Place,
    Problem,
    Read,
    Record,
    Unit,
    correction_of,
    gold_of,
    majority,
    nearest,
    placed,
    shares,
    unit_of,
    word,
)
from core.runtime.errors import InputError
from core.schema.records import Label, Span, WordScore

MUSHROOM = ("id", "model_input", "model_output_text", "hard_labels", "soft_labels", OWN)


def read_mushroom(name: str, data: bytes) -> Read:
    """The rows of a file; those without labels are cases without a gold."""
    return read_of(json_lines(text_of(name, data)), mushroom_row)


def mushroom_row(record: Record) -> ExchangeRow:
    """A row with what its spans say; without labels a case without a gold.

    Raises InputError: a field is missing, or a span lies outside of the response.
    """
    fields = record.fields
    response = record.text("model_output_text")
    hard = fields.get("hard_labels")
    soft = soft_of(response, fields.get("soft_labels"))
    if hard is None and fields.get("soft_labels") is not None:
        marked = majority(GoldSpan(one.start, one.end, one.p) for one in soft)
        hard = [[one.start, one.end] for one in marked]
    spans = spans_of(response, hard)
    label = said(None, spans, hard is not None)
    gold = None if label is None else gold_of(label, spans, soft=soft)
    row = ExchangeRow(
        id=case_id(fields.get("id")),
        response=response,
        question=plain_text(record, "model_input"),
        language=plain_text(record, "lang").lower(),
        golds=() if gold is None else (gold,),
        others=others_of(fields, MUSHROOM),
        place=record.line,
    )
    return with_own_words(row, fields.get(OWN))


def write_mushroom(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as the bytes of a file."""
    return lines(_mushroom_plain(row) for row in rows)


def _mushroom_plain(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    language = (row.language or "und").upper()
    made: dict[str, Any] = {"id": row.id, "lang": language, "model_input": row.question}
    made |= {"model_output_text": row.response}
    made |= {n: value for n, value in plain_others(row.others).items() if n not in MUSHROOM}
    if answer is not None:
        made["soft_labels"] = [{"start": s.start, "prob": s.p, "end": s.end} for s in row.soft]
        made["hard_labels"] = [[span.start, span.end] for span in answer.spans]
    told = said(None, answer.spans, is_marked=True) if answer else None
    return made | own_words(row, told, tells_shares=True)


XSUM_COLUMNS = frozenset(
    "bbcid system summary hallucination_type hallucinated_span hallucinated_span_start "
    "worker_id".split()
)
NO_MARK = ("null", "")


def read_xsum(name: str, data: bytes) -> Read:
    """A case for each summary, with the answers of its annotators.

    Raises InputError: the file cannot be read, or it has other columns.
    """
    found: dict[str, list[Record]] = {}
    rows: list[ExchangeRow] = []
    problems: list[Problem] = []
    for record in _table(name, data, ",", XSUM_COLUMNS, problems):
        try:
            record.text("summary"), record.text("worker_id")
            found.setdefault(xsum_name(record), []).append(record)
        except InputError as error:
            problems.append(Problem(record.line, reason(error)))
    for written in found.values():
        try:
            rows.append(xsum_row(written))
        except InputError as error:
            problems.append(Problem(written[0].line, reason(error)))
    return Read(tuple(rows), tuple(problems))


def _table(
    name: str, data: bytes, delimiter: str, columns: frozenset[str], problems: list[Problem]
) -> Iterator[Record]:
    """The lines of a table; a line behind which nothing can be read joins the problems."""
    csv.field_size_limit(MOST_ROW)
    stream = io.StringIO(text_of(name, data), newline="")
    reader = csv.DictReader(stream, delimiter=delimiter)
    try:
        require_columns(name, reader.fieldnames or (), columns)
        for cells in reader:
            yield Record({k: v for k, v in cells.items() if k is not None}, "", reader.line_num)
    except csv.Error as error:
        problems.append(Problem(reader.line_num, f"expected a table, found: {error}."))


def xsum_name(record: Record) -> str:
    """What a summary is called: its article and the system that wrote it."""
    return f"{record.text('bbcid')}:{record.text('system')}"


def xsum_row(lines: Sequence[Record]) -> ExchangeRow:
    """The summary that all these lines are on.

    Raises InputError: they are on several, or a field is missing.
    """
    name, summary = xsum_name(lines[0]), lines[0].text("summary")
    if any(line.text("summary") != summary for line in lines):
        raise InputError(f"expected one summary called {name}, found several; rename them.")
    workers: dict[str, list[Span]] = {}
    unsure = set()
    for line in lines:
        spans = workers.setdefault(line.text("worker_id"), [])
        if word(line.fields.get("hallucination_type")) in NO_MARK:
            continue
        unsure.add(line.text("worker_id"))
        text = line.text("hallucinated_span").replace("\\n", "")
        near = int(line.number("hallucinated_span_start"))
        found = _span(summary, text, line.text("hallucination_type").strip(), near)
        spans += [found] if found else []
    marked = [[GoldSpan(s.start, s.end) for s in spans] for spans in workers.values()]
    soft = shares(marked)
    is_wrong = 2 * len(unsure) > len(workers)
    hard = [
        Span(one.start, one.end, summary[one.start : one.end], 1.0, UNSPECIFIED, "")
        for one in (majority(soft) if is_wrong else ())
    ]
    scores = [WordScore(one.start, one.end, one.p) for one in soft]
    return ExchangeRow(
        id=name,
        response=summary,
        golds=(gold_of("hallucinated" if is_wrong else "supported", hard, soft=scores),),
        corrections=tuple(
            correction_of(who, "hallucinated" if who in unsure else "supported", spans)
            for who, spans in workers.items()
        ),
        others=(("bbcid", lines[0].text("bbcid")), ("system", lines[0].text("system"))),
        place=lines[0].line,
    )


def _span(response: str, piece: str, category: str, place: int = 0) -> Span | None:
    """The marked words where they stand nearest to the place; None where they stand nowhere."""
    bare = piece.strip()
    start = nearest(response, bare, place)
    if start < 0 or not bare:
        return None
    end = start + len(bare)
    return Span(start, end, response[start:end], 1.0, category, "")


HALUQUESTQA_COLUMNS = frozenset(
    "question_text ans1_text ans2_text factuality_span factuality_label".split()
)
LONGEST_LIST = 100_000
FACTUAL = "factual error"


def read_haluquestqa(name: str, data: bytes) -> Read:
    """Two cases a line. Raises InputError: nothing in it can be read, or it has other columns."""
    rows: list[ExchangeRow] = []
    problems: list[Problem] = []
    for record in _table(name, data, "\t", HALUQUESTQA_COLUMNS, problems):
        try:
            rows += haluquestqa_rows(record)
        except InputError as error:
            problems.append(Problem(record.line, reason(error)))
    return Read(tuple(rows), tuple(problems))


def haluquestqa_rows(record: Record) -> list[ExchangeRow]:
    """Both answers of a line.

    Raises InputError: a field is missing or no list, or there is not one answer for each span.
    """
    pieces, answers = _listed(record, "factuality_span"), _listed(record, "factuality_label")
    if len(pieces) != len(answers) or set(answers) - {"answer1", "answer2"}:
        raise record.broken("answer1 or answer2 in factuality_label for each span", answers)
    has_reasons = "factuality_reason" in record.fields
    reasons = _listed(record, "factuality_reason") if has_reasons else ()
    index = record.spare("")
    rows = []
    for number in (1, 2):
        places = [n for n, answer in enumerate(answers) if answer == f"answer{number}"]
        response = record.text(f"ans{number}_text")
        found = [_span(response, pieces[n], FACTUAL) for n in places]
        missing = [pieces[n] for n, span in zip(places, found, strict=True) if span is None]
        gold = gold_of(
            "hallucinated" if places else "supported",
            [span for span in found if span is not None],
            reason="\n".join(reasons[n] for n in places if n < len(reasons)),
            author=record.spare("annotator"),
        )
        rows.append(
            ExchangeRow(
                id=f"{index}:{number}" if index else "",
                response=response,
                question=record.text("question_text"),
                golds=(gold,),
                others=_others(record, number, missing),
                place=record.line,
            )
        )
    return rows


def _others(record: Record, number: int, missing: list[str]) -> tuple[tuple[str, str], ...]:
    found = {
        "written_by": record.spare(f"ans{number}_label"),
        "category": record.spare("category"),
        "preferred": record.spare("ans_preference"),
        "preferred_because": record.spare("ans_preference_reason"),
        "marks_not_found": "\n".join(missing),
    }
    return tuple((name, text) for name, text in found.items() if text)


def _listed(record: Record, name: str) -> tuple[str, ...]:
    """The texts of a list that is written into a cell as Python writes it; empty where blank."""
    text = record.plain(name).strip()
    try:
        found = ast.literal_eval(text) if text and len(text) <= LONGEST_LIST else []
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise record.broken(f"a list in {name}", text) from None
    if not isinstance(found, list) or len(text) > LONGEST_LIST:
        raise record.broken(f"a list in {name} of at most {LONGEST_LIST:,} characters", text)
    return tuple(str(one) for one in found)


GRADES = ("Unwanted", "Questionable", "Benign")
LABELS: dict[str, Label] = {"Unwanted": "hallucinated", "Questionable": "unclear"}
Mark = tuple[str, str, Span, str]  # who, grade, words, note


def is_faithbench(value: object) -> bool:
    """Whether a decoded row looks like a batch or a sample of it."""
    if isinstance(value, dict) and isinstance(value.get("samples"), list):
        value = value["samples"][0] if value["samples"] else None
    return isinstance(value, dict) and {"source", "summary", "annotations"} <= value.keys()


def read_faithbench(name: str, data: bytes) -> Read:
    """The samples of a batch. Raises InputError: nothing in it can be read."""
    return read_of(_samples(json_items(text_of(name, data))), faithbench_row, "row")


def _samples(items: Iterable[tuple[int, object] | Problem]) -> Iterator[Any]:
    for item in items:
        value = None if isinstance(item, Problem) else item[1]
        if isinstance(value, dict) and isinstance(value.get("samples"), list):
            yield from enumerate(value["samples"], start=1)
        else:
            yield item


def faithbench_row(record: Record) -> ExchangeRow:
    """A sample with its source and the marks of all annotators.

    Raises InputError: a field is missing, a mark is of no known kind, or it does not stand where it
    says.
    """
    summary = record.text("summary")
    annotations = record.records("annotations")
    unit = unit_of(summary, map(_place, annotations))
    given = [_mark(summary, one, unit) for one in annotations]
    marks = [mark for mark in given if mark[1]]  # a mark without a grade says nothing
    people = dict.fromkeys(person for person, *_ in marks)
    own = ((who, [mark for mark in marks if mark[0] == who]) for who in people)
    metadata = record.fields.get("metadata")
    return ExchangeRow(
        id="",
        response=summary,
        documents=(Document("source.txt", record.text("source")),),
        golds=(gold_of(_label(marks), _wrong(marks), reason=_notes(marks)),),
        corrections=tuple(
            correction_of(who, _label(given), [mark[2] for mark in given], reason=_notes(given))
            for who, given in own
        ),
        others=(
            *others_of({"sample_id": record.fields.get("sample_id")}, ()),
            *others_of(metadata if isinstance(metadata, dict) else {}, ()),
        ),
        place=record.line,
    )


def _place(record: Record) -> Place:
    names = ("summary_start", "summary_end", "summary_span")
    start, end, quote = map(record.fields.get, names)
    return start, end, quote


def _mark(summary: str, record: Record, unit: Unit | None) -> Mark:
    labels = record.texts("label")
    grade = next((one for one in GRADES if any(w.split(".")[0] == one for w in labels)), "")
    if labels and not grade:
        raise InputError(
            f"expected a mark of {', '.join(GRADES)}, found “{', '.join(labels)[:60]}”; correct it."
        )
    start, end = placed(summary, *_place(record), unit)
    person = plain_text(record, "annotator_name", "annotator_id") or "annotator"
    span = Span(start, end, summary[start:end], 1.0, max(labels, key=len, default=""), "")
    return person, grade, span, plain_text(record, "note").strip()


def _label(marks: Sequence[Mark]) -> Label:
    grades = {grade for _, grade, *_ in marks}
    return next((LABELS[one] for one in GRADES if one in grades and one in LABELS), "supported")


def _wrong(marks: Sequence[Mark]) -> list[Span]:
    found = {(s.start, s.end, s.category): s for _, grade, s, _ in marks if grade == "Unwanted"}
    return [found[key] for key in sorted(found)]


def _notes(marks: Sequence[Mark]) -> str:
    return "\n".join(dict.fromkeys(note for *_, note in marks if note))


RAGTRUTH = ("id", "response", "question", "language", "labels", "source_info", "source_name", OWN)
SOURCE = "source_id"
MORE = "more_sources"


def read_ragtruth(name: str, data: bytes) -> Read:
    """The rows of a file, joined with the sources that stand in it."""
    items = list(json_lines(text_of(name, data)))
    sources = [i for i in items if not isinstance(i, Problem) and _is_source(i[1])]
    rest = (i for i in items if isinstance(i, Problem) or not _is_source(i[1]))
    found = read_of(rest, ragtruth_row)
    return _joined_with(found, sources)


def with_sources(read: Read, data: bytes) -> Read:
    """Responses with the sources of a file of their own."""
    return _joined_with(read, list(json_lines(text_of("sources", data))))


def _joined_with(read: Read, items: Sequence[tuple[int, object] | Problem]) -> Read:
    sources, problems = rows_of(items, _source)
    by_id = dict(sources)
    told = (Problem(one.place, f"among the sources: {one.reason}") for one in problems)
    rows = []
    for row in read.rows:
        wanted = case_id(plain_others(row.others).get(SOURCE))
        if not row.documents and wanted in by_id:
            document, question = by_id[wanted]
            row = replace(row, documents=(document,), question=row.question or question)
        rows.append(row)
    return replace(read, rows=tuple(rows), problems=(*read.problems, *told))


def _is_source(value: object) -> bool:
    return isinstance(value, dict) and "response" not in value and "source_info" in value


def _source(record: Record) -> tuple[str, tuple[Document, str]]:
    source = case_id(record.fields.get(SOURCE))
    if not source:
        raise record.broken("a source_id beside the source_info")
    return source, _document(record, source)


def _document(record: Record, source: str) -> tuple[Document, str]:
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


def ragtruth_row(record: Record) -> ExchangeRow:
    """An answer with its labelled spans, and its source where it stands in the row.

    Raises InputError: a field is missing, or a span lies elsewhere.
    """
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
        others=others_of(fields, (*RAGTRUTH, MORE)),
        place=record.line,
    )
    return with_own_words(row, fields.get(OWN))


def write_ragtruth(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file; each carries the texts that it rests on."""
    return lines(_ragtruth_plain(row) for row in rows)


def _ragtruth_plain(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    made: dict[str, Any] = {"id": row.id, "response": row.response}
    others = plain_others(row.others)
    made |= {name: value for name, value in others.items() if name not in (*RAGTRUTH, MORE)}
    if answer is not None:
        made["labels"] = [
            {"start": span.start, "end": span.end, "text": span.text, "label_type": span.category}
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
