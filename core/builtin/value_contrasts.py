"""Contrasts of values and names: numbers, dates, entities, short answers."""

from __future__ import annotations

from collections.abc import Iterator

from core.builtin.alignment import Alignment, may_be_name, same
from core.builtin.contrast import Contrast, Kind, Pair, contrast, says, value_words
from core.builtin.polarity import excepted
from core.builtin.reading import Unit
from core.tools.values.dates import compare_dates
from core.tools.values.quantities import Quantity, compare

# Written with a capital like names, but one weekday is never another one's second name.
DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())


def value_contrasts(pair: Pair) -> Iterator[Contrast]:
    """Numbers and dates: compared with those of the closest clause, else of the sentence."""
    for unit in pair.claim.units:
        if unit.quantity is None and unit.date is None:
            continue
        kind: Kind = "quantity" if unit.quantity else "date"
        for side in (pair.clause, pair.whole):
            out = excepted(side.evidence)
            others = [
                other
                for j, other in enumerate(side.evidence.units)
                if j not in out and _comparable(unit, other)
            ]
            if any(same(unit, other) for other in others):
                break
            if others:
                other = min(others, key=lambda u: _distance(side, unit, u))
                shown = value_words(side.evidence, other)
                yield from contrast(
                    kind, pair, unit.start, unit.end, shown, says(shown, unit.text), [unit]
                )
                break


def _comparable(one: Unit, other: Unit) -> bool:
    if one.quantity and other.quantity:
        if _is_vague(other.quantity) and not _is_vague(one.quantity):
            return False
        return compare(one.quantity, other.quantity) != "incomparable"
    if one.date and other.date:
        return compare_dates(one.date, other.date) != "incomparable"
    return False


def _is_vague(quantity: Quantity) -> bool:
    """True for "thousands" and "dozens": no number that another could contradict."""
    return quantity.low < quantity.high and not any(c.isdigit() for c in quantity.text)


def _distance(side: Alignment, unit: Unit, other: Unit) -> int:
    """0 for the same slot, else how far the evidence's value is from the matched words."""
    for slot in side.slots:
        if unit in slot.claim and other in slot.evidence:
            return 0
    places = [side.evidence.units[j].start for j in side.matched.values()]
    return 1 + min((abs(place - other.start) for place in places), default=0)


def name_contrasts(pair: Pair) -> Iterator[Contrast]:
    """Another name in the same slot; a name found anywhere in the passage is not contested."""
    for slot in pair.whole.slots:
        names = [u for u in slot.claim if u.kind == "name"]
        others = [u for u in slot.evidence if u.kind == "name"]
        nearby = {pair.whole.claim.units[i] for i in pair.whole.nearby}
        for unit, other in zip(names, others, strict=False):
            if unit in nearby or not slot.anchored:
                continue
            kind: Kind = "date" if _is_day(unit) and _is_day(other) else "name"
            yield from contrast(
                kind, pair, unit.start, unit.end, other.text, says(other.text, unit.text), [unit]
            )


def _is_day(unit: Unit) -> bool:
    return unit.text.casefold().removesuffix("s") in DAYS


def answer_contrasts(pair: Pair) -> Iterator[Contrast]:
    """A short answer against the passage that answers its question with another of its kind."""
    if not pair.own_start:
        return
    side = pair.whole
    taken = set(side.matched.values())
    free = [u for j, u in enumerate(side.evidence.units) if j not in taken]
    own = [u for u in pair.claim.units if u.start >= pair.own_start]
    for unit in own:
        if pair.claim.units.index(unit) in side.matched or unit.kind not in ("name", "word"):
            continue
        other = next((u for u in free if may_be_name(u)), None)
        if other is not None and may_be_name(unit):
            yield from contrast(
                "name", pair, unit.start, unit.end, other.text, says(other.text, unit.text), own
            )
