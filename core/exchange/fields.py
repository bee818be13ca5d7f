"""The parts of a row that all formats read and write alike: ids, labels, spans, further columns.

Words of foreign sets become `supported`, `hallucinated` or `unclear` here and nowhere else. What a
foreign layout has no place for goes into a further object `counterpoint`, which is read back only
while it fits the layout's own labels: whoever changed these is believed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from core.exchange.packed import MOST_ROWS
from core.exchange.rows import (
    OTHER_JSON,
    UNSPECIFIED,
    ExchangeRow,
    Others,
    Place,
    Problem,
    Read,
    Record,
    Unit,
    gold_of,
    placed,
    unit_of,
)
from core.runtime.errors import InputError, shown
from core.schema.records import Label, Span, WordScore
from core.schema.reviews import Suggestion

LONGEST_ID = 200
WORDS: Mapping[Label, str] = {
    "supported": "supported, supports, support, faithful, consistent, factual, correct, "
    "entailment, entailed, not hallucinated, not_hallucinated, no_error",
    "hallucinated": "hallucinated, hallucination, refuted, refutes, contradicted, contradiction, "
    "unfaithful, inconsistent, incorrect, not factual, error",
    "unclear": "unclear, unsure, neutral, unverifiable, not enough info, not_enough_info, "
    "questionable",
}
LABELS = {word: label for label, words in WORDS.items() for word in words.split(", ")}
T = TypeVar("T")


def rows_of(
    items: Iterable[tuple[int, object] | Problem], row_of: Callable[[Record], T | None]
) -> tuple[list[T], list[Problem]]:
    """Every item read by `row_of` or listed with what is wrong with it; None passes one over."""
    rows: list[T] = []
    problems: list[Problem] = []
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
            continue
        place, value = item
        if len(rows) >= MOST_ROWS:
            problems.append(Problem(place, f"expected at most {MOST_ROWS:,} rows, found more."))
            break
        try:
            if not isinstance(value, dict):
                raise InputError("expected a JSON object, found another kind of value.")
            row = row_of(Record(value, "", place))
        except InputError as error:
            problems.append(Problem(place, reason(error)))
        else:
            if row is not None:
                rows.append(row)
    return rows, problems


def read_of(
    items: Iterable[tuple[int, object] | Problem],
    row_of: Callable[[Record], ExchangeRow | None],
    unit: str = "line",
) -> Read:
    """A file's rows and problems."""
    rows, problems = rows_of(items, row_of)
    return Read(tuple(rows), tuple(problems), unit)


def reason(error: InputError) -> str:
    """What is wrong with a row, safe to show, without the place: that is told beside it."""
    words = shown(error)
    return words.split(": ", 1)[1] if words.startswith(", line ") else words


def case_id(value: object) -> str:
    """The case's own id; "" where there is none.

    Raises InputError: it is neither a text nor a number, too long, or not printable.
    """
    if value is None or value == "":
        return ""
    is_fit = isinstance(value, str | int | float) and not isinstance(value, bool)
    words = str(value)
    if not is_fit or len(words) > LONGEST_ID or not words.isprintable() or not words.strip():
        raise InputError(
            f"expected an id of at most {LONGEST_ID} printable characters, found "
            f"“{ascii(words)[1:61]}”; give another, or none."
        )
    return words


def plain_text(record: Record, *names: str) -> str:
    """The first of these texts that is there, as it is; "" where none is or it is null."""
    for name in names:
        value = record.fields.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise record.broken(f"a text called {name}", type(value).__name__)
        return value if isinstance(value, str) else str(value)
    return ""


def label_of(value: object) -> Label | None:
    """What a label's word means; None where there is none.

    Raises InputError: the word is not known. Bare numbers are not: they mean opposite things in
    different sets.
    """
    if value is None or value == "":
        return None
    found = LABELS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise InputError(
            "expected a label of supported, hallucinated or unclear, found "
            f"“{str(value)[:60]}”; write one of these words."
        )
    return found


def spans_of(response: str, items: object, source: str = "") -> tuple[Span, ...]:
    """Spans written as objects with start and end, or as pairs.

    Raises InputError: one does not lie in the response, or its text does not stand there.
    """
    if items is None:
        return ()
    if not isinstance(items, list):
        raise InputError("expected a list of spans, found another kind of value; write a list.")
    unit = unit_of(response, (_place(item) for item in items if isinstance(item, dict)))
    return tuple(_span(response, item, source, unit) for item in items)


def _place(item: dict[str, Any]) -> Place:
    return item.get("start"), item.get("end"), item.get("text")


def _span(response: str, item: object, source: str, unit: Unit | None) -> Span:
    if isinstance(item, list) and len(item) == 2:
        item = {"start": item[0], "end": item[1]}
    if not isinstance(item, dict):
        raise InputError("expected a span with start and end, found another kind of value.")
    start, end = placed(response, *_place(item), unit)
    names = ("category", "label", "label_type", "type")
    named = (item[name] for name in names if isinstance(item.get(name), str) and item[name].strip())
    instead = item.get("instead")
    p = share(item.get("p", item.get("prob")), 1.0)
    category = next(named, UNSPECIFIED)
    by = item["source"] if isinstance(item.get("source"), str) else source
    told = instead if isinstance(instead, str) else ""
    return Span(start, end, response[start:end], p, category, by, told)


def soft_of(response: str, items: object) -> tuple[WordScore, ...]:
    """Stretches with the share of people who marked them.

    Raises InputError: one does not lie in the response, or its share is no probability.
    """
    if items is None:
        return ()
    if not isinstance(items, list):
        raise InputError("expected a list of soft labels, found another kind of value.")
    found = []
    for item in items:
        if not isinstance(item, dict):
            raise InputError("expected a soft label with start, end and prob, found another value.")
        start, end = placed(response, item.get("start"), item.get("end"))
        found.append(WordScore(start, end, share(item.get("prob", item.get("p")), 1.0)))
    return tuple(found)


def share(value: object, otherwise: float) -> float:
    """A probability from 0 to 1; `otherwise` where none is given.

    Raises InputError: it is neither.
    """
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(
            f"expected a probability from 0 to 1, found {str(value)[:40]}; correct it."
        )
    return float(value)


def probability(value: object) -> float | None:
    """A probability from 0 to 1, or None. Raises InputError: it is something else."""
    return None if value is None else share(value, 0.0)


def said(label: Label | None, spans: Sequence[Span], is_marked: bool) -> Label | None:
    """The label, or what the marks alone say: any is hallucinated, none is supported."""
    if label is not None or not is_marked:
        return label
    return "hallucinated" if spans else "supported"


def others_of(fields: Mapping[str, object], known: Iterable[str]) -> Others:
    """Columns that have no place of their own, as texts; what is no text is kept as JSON."""
    names = set(known)
    return tuple(
        (name, value)
        if isinstance(value, str) and not name.endswith(OTHER_JSON)
        else (name + OTHER_JSON, json.dumps(value, ensure_ascii=False))
        for name, value in fields.items()
        if name not in names
    )


def plain_others(others: Others) -> dict[str, Any]:
    """The further columns as they stood in JSON."""
    return {
        name.removesuffix(OTHER_JSON): _value(text) if name.endswith(OTHER_JSON) else text
        for name, text in others
    }


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def plain_span(span: Span) -> dict[str, Any]:
    """A span as JSON formats write it."""
    made = {name: getattr(span, name) for name in ("start", "end", "text", "category")}
    made |= {"p": span.p} if span.p != 1.0 else {}
    return made | ({"instead": span.instead} if span.instead else {})


def plain_soft(row: ExchangeRow) -> list[dict[str, Any]]:
    """The share of people who marked each stretch, as JSON formats write it."""
    return [{"start": s.start, "end": s.end, "prob": s.p} for s in row.soft]


def suggestions_of(response: str, items: object) -> tuple[Suggestion, ...]:
    """What agents said, as `plain_suggestion` writes it.

    Raises InputError: one names no agent, or its label, probability or span is none.
    """
    if items is None:
        return ()
    if not isinstance(items, list):
        raise InputError("expected a list of suggestions, found another kind of value.")
    found = []
    for item in items:
        agent = item.get("agent") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(agent, str) or not agent.strip():
            raise InputError("expected a suggestion with the name of its agent, found none.")
        label, p = label_of(item.get("label")), probability(item.get("p"))
        spans = spans_of(response, item.get("spans"))
        found.append(Suggestion("", "", agent, 0.0, label, p, spans))
    return tuple(found)


def plain_suggestion(suggestion: Suggestion) -> dict[str, Any]:
    """A suggestion as JSON, where a layout has no place of its own for it."""
    made = {name: getattr(suggestion, name) for name in ("agent", "label", "p")}
    return made | {"spans": [plain_span(span) for span in suggestion.spans]}


def lines(rows: Iterator[dict[str, Any]]) -> bytes:
    """Objects as JSON lines."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def json_list(rows: Iterable[dict[str, Any]]) -> bytes:
    """Objects as a JSON list, one a line."""
    made = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    return b"[" + b",\n".join(made) + b"]\n"


OWN = "counterpoint"


def own_words(
    row: ExchangeRow,
    told: Label | None,
    *,
    tells_categories: bool = False,
    tells_shares: bool = False,
) -> dict[str, Any]:
    """The further object, or nothing where the layout says it all; `told` is its label."""
    answer = row.answer
    if answer is None:
        return {}
    is_plain = all(
        span.p == 1.0 and not span.instead and (tells_categories or span.category == UNSPECIFIED)
        for span in answer.spans
    )
    own: dict[str, Any] = {} if answer.label == told else {"label": answer.label}
    own |= {} if is_plain else {"spans": [plain_span(span) for span in answer.spans]}
    if row.soft and not tells_shares:
        own["soft"] = plain_soft(row)
    words = {name: getattr(answer, name) for name in ("reason", "corrected_answer")}
    own |= {name: text for name, text in words.items() if text}
    if own:
        own["label"] = answer.label
        own["of"] = [[span.start, span.end] for span in answer.spans]
    return {OWN: own} if own else {}


def with_own_words(row: ExchangeRow, own: object) -> ExchangeRow:
    """The row with what the object adds to its gold, where both speak of the same words."""
    if not isinstance(own, Mapping) or not row.golds:
        return row
    gold = row.golds[-1]
    if own.get("of") != [[span.start, span.end] for span in gold.spans]:
        return row
    try:
        label = label_of(own.get("label")) or gold.label
        spans = spans_of(row.response, own.get("spans")) or gold.spans
        soft = soft_of(row.response, own.get("soft")) or gold.soft
    except InputError:
        return row
    texts = {name: own.get(name) for name in ("reason", "corrected_answer")}
    words = {name: text for name, text in texts.items() if isinstance(text, str)}
    made = replace(gold_of(label, spans, soft=soft), **words)  # type: ignore[arg-type]
    return replace(row, golds=(*row.golds[:-1], made))
