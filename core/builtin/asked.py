"""What kind of answer a question asks for, and answers of another kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.builtin.alignment import may_be_name
from core.builtin.contrast import Contrast, Pair, contrast, value_words
from core.builtin.reading import Reading, Unit

# English only: in other languages the kind is not asked of an answer.
ASKS_FOR = (
    (re.compile(r"\bhow (many|much|tall|high|deep|wide|far|heavy|large|big|fast|long|old)\b"), "n"),
    (re.compile(r"\b(when|(what|which|in what|in which) (year|date|day|month|century))\b"), "date"),
    (re.compile(r"^\W*(who|whom|whose|where)\b"), "name"),
)
WORDS = {"n": "a number", "date": "a date", "name": "a name"}
VALUES = ("quantity", "date")


def kind_contrasts(pair: Pair) -> Iterator[Contrast]:
    """A date where a height was asked for, if the evidence has an answer of the right kind."""
    question = pair.claim.text[: pair.own_start].casefold()
    asked = next((kind for pattern, kind in ASKS_FOR if pattern.search(question)), "")
    own = [u for u in pair.claim.units if u.start >= pair.own_start]
    if not asked or not own or pair.claim.language != "en":
        return
    evidence = pair.whole.evidence
    if any(_fits(unit, asked, evidence) for unit in own) or not all(u.kind in VALUES for u in own):
        return
    taken = set(pair.whole.matched.values())
    free = [u for j, u in enumerate(evidence.units) if j not in taken]
    rival = next((u for u in free if _is_of_kind(u, asked)), None)
    if rival is None:
        return
    shown = value_words(evidence, rival)
    but = f"{WORDS[asked]} was asked for, and the evidence has “{shown}”"
    yield from contrast("kind", pair, own[0].start, own[-1].end, shown, but, own)


def _fits(unit: Unit, asked: str, evidence: Reading) -> bool:
    """True for a unit that may answer; what looks like a year may be a count ("1889" members)."""
    if asked == "n" and unit.date is not None:
        return any(u.quantity and u.quantity.low == unit.date.year for u in evidence.units)
    return _is_of_kind(unit, asked)


def _is_of_kind(unit: Unit, asked: str) -> bool:
    """True for a quantity, a date, or what may be a name."""
    if asked == "n":
        return unit.quantity is not None
    return may_be_name(unit) if asked == "name" else unit.kind == asked
