"""What a file says of a case that the store does not know yet: its records, named and numbered.

A record without an id gets one from what it says, so that it is the same whenever it is read again.
A time that is yet to come is brought down to now: it would outdo all that people say until then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.formats.row import IMPORTED, ExchangeRow, MachineVerdict, imported_name, standing
from core.records import Span, WordScore
from core.reviews import Correction, Gold, Suggestion
from core.store.codec import to_json
from core.store.golds import counting

Key = tuple[object, ...]


@dataclass(frozen=True)
class Says:
    """Records to append to a case."""

    golds: tuple[Gold, ...]
    corrections: tuple[Correction, ...]
    suggestions: tuple[Suggestion, ...]


def new_golds(golds: Sequence[Gold], before: ExchangeRow, by: str, now: float) -> tuple[Gold, ...]:
    """Golds that say something new of the case."""
    ids = {gold.id for gold in before.golds}
    keys = {(*_key(gold), gold.soft) for gold in before.golds}
    answer = before.answer
    found = []
    for gold in golds:
        key = (*_key(gold), gold.soft)
        is_known = gold.id in ids or key in keys or (not gold.id and _adds_nothing(gold, answer))
        if not is_known:
            keys.add(key)
            number = gold.id or digest(before.id, "gold", to_json(replace(gold, at=0.0)))
            found.append(
                replace(
                    gold,
                    id=number,
                    case_id=before.id,
                    author=gold.author or by,
                    at=_passed(gold.at, now),
                )
            )
    return tuple(found)


def _adds_nothing(gold: Gold, answer: Gold | Correction | None) -> bool:
    """Whether what counts already says the same and at least as much."""
    if answer is None or _marks(gold.spans) != _marks(answer.spans) or gold.label != answer.label:
        return False
    texts = (gold.reason, answer.reason), (gold.corrected_answer, answer.corrected_answer)
    is_softer = isinstance(answer, Gold) and gold.soft not in ((), answer.soft)
    return all(own in ("", there) for own, there in texts) and not is_softer


def new_corrections(
    corrections: Sequence[Correction], before: ExchangeRow, now: float
) -> list[Correction]:
    """Answers of people that the case does not have, under names that no member has."""
    ids = {one.id for one in before.corrections}
    keys = {(_bare(one.author), *_key(one)) for one in standing(before.corrections)}
    found = []
    for one in corrections:
        key = (_bare(one.author), *_key(one))
        if one.id in ids or (not one.id and key in keys):
            continue
        keys.add(key)
        author = imported_name(one.author)
        number = one.id or digest(before.id, "correction", author, to_json(replace(one, at=0.0)))
        found.append(
            replace(one, id=number, case_id=before.id, author=author, at=_passed(one.at, now))
        )
    return found


def new_suggestions(
    suggestions: Sequence[Suggestion], before: ExchangeRow, now: float
) -> tuple[Suggestion, ...]:
    """Suggestions that the case does not have."""
    ids = {one.id for one in before.suggestions}
    keys = {_told(one) for one in before.suggestions}
    found = []
    for one in suggestions:
        if one.id in ids or (not one.id and _told(one) in keys):
            continue
        keys.add(_told(one))
        number = one.id or digest(before.id, "suggestion", to_json(replace(one, at=0.0)))
        found.append(replace(one, id=number, case_id=before.id, at=_passed(one.at, now)))
    return tuple(found)


def is_said(row: ExchangeRow, agent: str) -> list[Suggestion]:
    """A row's labels as suggestions: its golds by the agent, each person's answer by the person."""
    gold = counting(row.golds)
    told = [Suggestion("", "", agent, 0.0, gold.label, None, _with_shares(gold))] if gold else []
    people = [Suggestion("", "", one.author, 0.0, one.label, None, one.spans) for one in row.people]
    return [*told, *people]


def judged_elsewhere(verdict: MachineVerdict) -> list[Suggestion]:
    """What a run of another home said: here it is a suggestion, for the run itself is not here."""
    p = verdict.p_hallucinated
    agent = f"Counterpoint (run {verdict.run_id[:8]})"
    return [Suggestion("", "", agent, verdict.finished_at or 0.0, verdict.label, p)]


def _with_shares(gold: Gold) -> tuple[Span, ...]:
    """The gold's spans, each as likely as the people who marked it were many."""
    return tuple(replace(span, p=_share(span, gold.soft)) for span in gold.spans)


def _share(span: Span, soft: Sequence[WordScore]) -> float:
    """The mean over the span's characters; what the soft labels say nothing of keeps its own."""
    inside = [
        (min(one.end, span.end) - max(one.start, span.start), one.p)
        for one in soft
        if one.start < span.end and span.start < one.end
    ]
    if not inside:
        return span.p
    return min(1.0, sum(width * p for width, p in inside) / (span.end - span.start))


def digest(*parts: str) -> str:
    """An id of what is said: the same for the same."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _passed(at: float, now: float) -> float:
    return min(at or now, now)


def _bare(name: str) -> str:
    return name.removesuffix(IMPORTED)


def _marks(spans: Sequence[Span]) -> Key:
    return tuple((span.start, span.end, span.category) for span in spans)


def _key(one: Gold | Correction) -> Key:
    return one.label, _marks(one.spans), one.reason, one.corrected_answer


def _told(one: Suggestion) -> Key:
    return one.agent, one.label, one.p, _marks(one.spans)
