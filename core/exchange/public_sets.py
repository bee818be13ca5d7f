"""FaithBench's batches: summaries with the spans that several annotators marked, and the sources.

What all marks say together is the gold: the gravest of them counts, and only unwanted words are
wrong. Each annotator's own marks are their answer. The ids of its samples start anew in each batch
and are kept as a further column; the case's own id comes from its text.

HaluQuestQA: two answers to a question, and the spans that an expert found wrong, with reasons.
Only factual errors make an answer hallucinated. A line gives two cases, one an answer.

The XSum hallucination annotations: a CSV with a line for each span of each annotator. Starts
count from 1 and are often a few characters off: the quoted words are what counts. What more than
half of a summary's annotators say is the gold, each one's own marks are their answer.

Mu-SHROOM (SemEval 2025, task 3): JSON lines with hard and soft spans; ids and texts as they are.
Its rows know no label: any hard span means hallucinated, none supported. Where only soft ones are
given the hard ones are what more than half marked, as the task's organisers derive them. What it
cannot say (a label that its spans do not tell, categories) stands in a further object called
`counterpoint`.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from core.documents.tables import require_columns
from core.errors import InputError
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
    said,
    soft_of,
    spans_of,
    with_own_words,
)
from core.exchange.packed import MOST_ROW, json_items, json_lines, text_of
from core.exchange.rows import (
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
from core.records import Label, Span, WordScore

KNOWN = ("id", "model_input", "model_output_text", "hard_labels", "soft_labels", OWN)


def read_mushroom(name: str, data: bytes) -> Read:
    """The rows of a file; those without labels are cases without a gold.

    Raises:
        InputError: nothing in it can be read.
    """
    return read_of(json_lines(text_of(name, data)), _mushroom_row)


def _mushroom_row(record: Record) -> ExchangeRow:
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
        others=others_of(fields, KNOWN),
        place=record.line,
    )
    return with_own_words(row, fields.get(OWN))


def write_mushroom(rows: Sequence[ExchangeRow]) -> bytes:
    """The rows as a file."""
    return lines(_plain(row) for row in rows)


def _plain(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    made: dict[str, Any] = {
        "id": row.id,
        "lang": (row.language or "und").upper(),
        "model_input": row.question,
        "model_output_text": row.response,
    }
    made |= {name: value for name, value in plain_others(row.others).items() if name not in KNOWN}
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

    Raises:
        InputError: nothing in it can be read, or it has other columns.
    """
    csv.field_size_limit(MOST_ROW)
    reader = csv.DictReader(io.StringIO(text_of(name, data), newline=""))
    found: dict[str, list[Record]] = {}
    problems: list[Problem] = []
    try:
        require_columns(name, reader.fieldnames or (), XSUM_COLUMNS)
        for cells in reader:
            record = Record({k: v for k, v in cells.items() if k is not None}, "", reader.line_num)
            try:
                summary = f"{record.text('bbcid')}:{record.text('system')}"
                record.text("summary"), record.text("worker_id")
            except InputError as error:
                problems.append(Problem(record.line, reason(error)))
            else:
                found.setdefault(summary, []).append(record)
    except csv.Error as error:
        problems.append(Problem(reader.line_num, f"expected a table, found: {error}."))
    rows = []
    for summary, written in found.items():
        try:
            rows.append(_xsum_row(summary, written))
        except InputError as error:
            problems.append(Problem(written[0].line, reason(error)))
    return Read(tuple(rows), tuple(problems))


def _xsum_row(name: str, lines: Sequence[Record]) -> ExchangeRow:
    summary = lines[0].text("summary")
    if any(line.text("summary") != summary for line in lines):
        raise InputError(f"expected one summary called {name}, found several; rename them.")
    workers: dict[str, list[Span]] = {}
    unsure = set()
    for line in lines:
        spans = workers.setdefault(line.text("worker_id"), [])
        if word(line.fields.get("hallucination_type")) in NO_MARK:
            continue
        unsure.add(line.text("worker_id"))
        found = _xsum_span(summary, line)
        spans += [found] if found else []
    marked = [[GoldSpan(s.start, s.end) for s in spans] for spans in workers.values()]
    soft = shares(marked)
    is_wrong = 2 * len(unsure) > len(workers)
    hard = [
        Span(one.start, one.end, summary[one.start : one.end], 1.0, UNSPECIFIED, "")
        for one in (majority(soft) if is_wrong else ())
    ]
    return ExchangeRow(
        id=name,
        response=summary,
        golds=(
            gold_of(
                "hallucinated" if is_wrong else "supported",
                hard,
                soft=[WordScore(one.start, one.end, one.p) for one in soft],
            ),
        ),
        corrections=tuple(
            correction_of(who, "hallucinated" if who in unsure else "supported", spans)
            for who, spans in workers.items()
        ),
        others=(("bbcid", lines[0].text("bbcid")), ("system", lines[0].text("system"))),
        place=lines[0].line,
    )


def _xsum_span(summary: str, line: Record) -> Span | None:
    """The marked words where they stand nearest; None where they stand nowhere."""
    text = line.text("hallucinated_span").replace("\\n", "").strip()
    start = nearest(summary, text, int(line.number("hallucinated_span_start")))
    if start < 0 or not text:
        return None
    kind = line.text("hallucination_type").strip()
    end = start + len(text)
    return Span(start, end, summary[start:end], 1.0, kind, "")


HALUQUESTQA_COLUMNS = frozenset(
    "question_text ans1_text ans2_text factuality_span factuality_label".split()
)
LONGEST_LIST = 100_000
FACTUAL = "factual error"


def read_haluquestqa(name: str, data: bytes) -> Read:
    """Two cases a line.

    Raises:
        InputError: nothing in it can be read, or it has other columns.
    """
    csv.field_size_limit(MOST_ROW)
    stream = io.StringIO(text_of(name, data), newline="")
    reader = csv.DictReader(stream, delimiter="\t")
    rows: list[ExchangeRow] = []
    problems: list[Problem] = []
    try:
        require_columns(name, reader.fieldnames or (), HALUQUESTQA_COLUMNS)
        for cells in reader:
            record = Record({k: v for k, v in cells.items() if k is not None}, "", reader.line_num)
            try:
                rows += [*_rows(record)]
            except InputError as error:
                problems.append(Problem(record.line, reason(error)))
    except csv.Error as error:
        problems.append(Problem(reader.line_num, f"expected a table, found: {error}."))
    return Read(tuple(rows), tuple(problems))


def _rows(record: Record) -> Iterator[ExchangeRow]:
    pieces, answers = listed(record, "factuality_span"), listed(record, "factuality_label")
    if len(pieces) != len(answers) or set(answers) - {"answer1", "answer2"}:
        raise record.broken("answer1 or answer2 in factuality_label for each span", answers)
    reasons = listed(record, "factuality_reason")
    for number in (1, 2):
        places = [n for n, answer in enumerate(answers) if answer == f"answer{number}"]
        response = record.text(f"ans{number}_text")
        found = [_span(response, pieces[n]) for n in places]
        spans = [span for span in found if span is not None]
        missing = [pieces[n] for n, span in zip(places, found, strict=True) if span is None]
        index = record.spare("")
        yield ExchangeRow(
            id=f"{index}:{number}" if index else "",
            response=response,
            question=record.text("question_text"),
            golds=(
                gold_of(
                    "hallucinated" if places else "supported",
                    spans,
                    reason="\n".join(reasons[n] for n in places if n < len(reasons)),
                    author=record.spare("annotator"),
                ),
            ),
            others=_others(record, number, missing),
            place=record.line,
        )


def _others(record: Record, number: int, missing: list[str]) -> tuple[tuple[str, str], ...]:
    """Who wrote the answer, how it was compared, and marks that stand nowhere in it."""
    found = {
        "written_by": record.spare(f"ans{number}_label"),
        "category": record.spare("category"),
        "preferred": record.spare("ans_preference"),
        "preferred_because": record.spare("ans_preference_reason"),
        "marks_not_found": "\n".join(missing),
    }
    return tuple((name, text) for name, text in found.items() if text)


def _span(response: str, piece: str) -> Span | None:
    bare = piece.strip()
    start = nearest(response, bare, 0)
    if start < 0 or not bare:
        return None
    end = start + len(bare)
    return Span(start, end, response[start:end], 1.0, FACTUAL, "")


def listed(record: Record, name: str) -> tuple[str, ...]:
    """The texts of a list that is written into a cell as Python writes it; empty where blank.

    Raises:
        InputError: the cell holds something else.
    """
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
    """The samples of a batch.

    Raises:
        InputError: nothing in it can be read.
    """
    return read_of(_samples(json_items(text_of(name, data))), _row, "row")


def _samples(items: Iterable[tuple[int, object] | Problem]) -> Iterator[Any]:
    for item in items:
        value = None if isinstance(item, Problem) else item[1]
        if isinstance(value, dict) and isinstance(value.get("samples"), list):
            yield from enumerate(value["samples"], start=1)
        else:
            yield item


def _row(record: Record) -> ExchangeRow:
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
    """The unwanted words, once where several annotators marked the same."""
    found = {(s.start, s.end, s.category): s for _, grade, s, _ in marks if grade == "Unwanted"}
    return [found[key] for key in sorted(found)]


def _notes(marks: Sequence[Mark]) -> str:
    return "\n".join(dict.fromkeys(note for *_, note in marks if note))
