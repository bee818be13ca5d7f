"""HaluQuestQA: two answers to a question, and the spans that an expert found wrong, with reasons.

Only factual errors make an answer hallucinated. A line gives two cases, one an answer.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator

from core.documents.csv_cells import require_columns
from core.errors import InputError
from core.exchange.fields import reason
from core.exchange.packed import MOST_ROW, text_of
from core.exchange.rows import ExchangeRow, Problem, Read, Record, gold_of, nearest
from core.records import Span

COLUMNS = frozenset("question_text ans1_text ans2_text factuality_span factuality_label".split())
LONGEST_LIST = 100_000
FACTUAL = "factual error"


def read(name: str, data: bytes) -> Read:
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
        require_columns(name, reader.fieldnames or (), COLUMNS)
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
