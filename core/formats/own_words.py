"""What a foreign layout has no place for, as one further object of ours that others pass over.

It is read back only while it fits the layout's own labels: whoever changed these is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.errors import InputError
from core.formats.fields import label_of, plain_span, soft_of, spans_of
from core.formats.row import UNSPECIFIED, ExchangeRow, gold_of
from core.records import Label

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
        own["soft"] = [{"start": s.start, "end": s.end, "prob": s.p} for s in row.soft]
    own |= {
        name: getattr(answer, name)
        for name in ("reason", "corrected_answer")
        if getattr(answer, name)
    }
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
