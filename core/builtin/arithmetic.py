"""Sums that a claim states and the evidence only implies: totals, differences, growth, durations.

"The three sites employ 1,240 people together" is checked by adding the sites' own numbers. A sum
is only tried when the claim says that it is one, over values of one unit, and when it is sure that
no summand is missing: all values of one sentence, all rows of a table, or as many as the claim
itself counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.builtin.contrast import WEIGHT, Contrast
from core.builtin.reading import Reading, Unit, read
from core.evidence.terms import IS_UNSPACED
from core.records import Passage
from core.tools.values.quantities import Quantity, compare

FEWEST_PARTS = 2
MOST_ROWS = 200
ROW = re.compile(r"\s*[^:\n]{1,80}: \S")
CHANGE = re.compile(
    r"\b(rose|risen|grew|grown|increased|climbed|gained|up|fell|fallen|dropped|decreased|declined|"
    r"shrank|down)\b.{0,20}?\bby\b",
    re.IGNORECASE,
)
LASTED = re.compile(r"\b(lasted|lasting|ran|reigned|served|took|spanned|for)\s*$", re.IGNORECASE)
DIFFERENCE = re.compile(r"\b(more|fewer|less|\w+er)\b[^.]{0,40}\bthan\b", re.IGNORECASE)
APART = re.compile(r"[，;；。\n]|,\s")
NEAR = 20
MOST_STATED = 20
SECONDS_A_YEAR = 31_557_600.0
PERSONS = frozenset(["person", "participant", "individual", "member", "human"])
KINDS_OF_PERSON = frozenset(
    [
        "man",
        "woman",
        "boy",
        "girl",
        "adult",
        "child",
        "male",
        "female",
        "student",
        "teacher",
        "passenger",
        "crew",
    ]
)
MINUS, PLUS = " − ", " + "


@dataclass(frozen=True)
class Sum:
    """A checked sum: what was computed, from which passage, and the contrast if it is wrong."""

    words: str
    value: float
    passage: Passage
    contrast: Contrast | None


@dataclass(frozen=True)
class _Values:
    """Values of the evidence that stand together, and where; `totals` are said to be totals."""

    passage: Passage
    quantities: tuple[Quantity, ...]
    is_table: bool
    totals: tuple[Quantity, ...] = ()


def check_sums(
    claim: Reading, passages: Sequence[Passage], sources: Mapping[str, str]
) -> Sum | None:
    """The claim's sum worked out from the evidence, or None when there is none to work out.

    `sources` maps source ids to whole texts, for tables of which only some rows were retrieved.
    """
    stated = [u for u in claim.units if u.quantity and not u.quantity.ordinal]
    if not stated or len(stated) > MOST_STATED or not passages:
        return None
    groups = list(_groups(claim.language, passages, sources))
    counts = {u.quantity.low for u in stated if u.quantity and u.quantity.low <= MOST_ROWS}
    for unit in stated:
        for group in groups:
            result = (
                _total(claim, unit, group, counts)
                or _difference(claim, unit, group)
                or _change(claim, unit, group)
                or _growth(claim, unit, group)
                or _persons(unit, group)
                or _duration(claim, unit, group)
            )
            if result:
                return result
    return None


def _groups(
    language: str, passages: Sequence[Passage], sources: Mapping[str, str]
) -> Iterator[_Values]:
    """The values of each sentence; then of each whole table; then of all sentences of a source."""
    for passage in passages:
        own = _quantities(passage.text, language)
        yield _Values(passage, own, False, _said_totals(passage.text, language, own))
    for source_id in dict.fromkeys(p.source_id for p in passages):
        mine = sorted((p for p in passages if p.source_id == source_id), key=lambda p: p.start)
        rows = [line for line in sources.get(source_id, "").splitlines() if line.strip()]
        is_table = len(rows) <= MOST_ROWS and sum(bool(ROW.match(r)) for r in rows) >= FEWEST_PARTS
        texts = [row for row in rows if ROW.match(row)] if is_table else [p.text for p in mine]
        read_in = [(text, _quantities(text, language)) for text in texts]
        found = tuple(q for _, own in read_in for q in own)
        totals = tuple(q for text, own in read_in for q in _said_totals(text, language, own))
        yield _Values(mine[0], found, is_table, totals)


def _quantities(text: str, language: str) -> tuple[Quantity, ...]:
    """Exact values without dates and ordinals."""
    units = read(text, language).units
    return tuple(
        u.quantity
        for u in units
        if u.quantity
        and not u.quantity.ordinal
        and u.quantity.bound == "exact"
        and u.quantity.low == u.quantity.high
    )


def _said_totals(text: str, language: str, found: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Those before or behind which a word for a total stands: “合计4800人”, “4,800 in total”."""
    cuts = [0, *(cut.end() for cut in APART.finditer(text)), len(text)]
    totals = []
    for quantity in found:
        start = max(cut for cut in cuts if cut <= quantity.start)
        end = min(cut for cut in cuts if cut >= quantity.end)
        before = [q.end for q in found if start <= q.end <= quantity.start]
        if says_total(read(text[max([start, *before]) : end], language)):
            totals.append(quantity)
    return tuple(totals)


def says_total(said: Reading) -> bool:
    """True where it speaks of a total; a word of several unspaced characters is several tokens."""
    norms = [token.norm for token in said.tokens]
    if not said.words.total.isdisjoint(norms):
        return True
    unspaced = "".join(norms)
    return any(IS_UNSPACED.match(word) and word in unspaced for word in said.words.total)


def _alike(total: Quantity, group: _Values) -> list[Quantity]:
    """The group's values of the total's unit; counted things must be the same things."""
    found = [q for q in group.quantities if q.unit == total.unit]
    same = [q for q in found if q.noun in ("", total.noun)]
    if total.noun and any(q.noun == total.noun for q in same):
        return same  # "1,200 bikes in 2019 and 1,500 in 2020"
    return [q for q in found if not q.noun or not total.noun]


def _total(claim: Reading, unit: Unit, group: _Values, counts: set[float]) -> Sum | None:
    """Parts added up, where the claim speaks of a total and no part equals it."""
    quantity = unit.quantity
    if quantity is None or not says_total(claim):
        return None
    alike = _alike(quantity, group)
    if any(compare(quantity, part) == "equal" for part in alike):
        return None
    parts = [part for part in alike if not _is_their_total(part, alike, group)]
    counted = {count for count in counts if count != quantity.low}
    complete = group.is_table or len(parts) in counted or _one_sentence(group)
    if len(parts) < FEWEST_PARTS or not complete or quantity.low == len(parts):
        return None
    if any(2 * part.low == sum(q.low for q in parts) for part in parts) and len(parts) > 2:
        return None  # one is as much as all others: a total that is not called one, or chance
    return _result(unit, parts, group.passage, PLUS)


def _is_their_total(part: Quantity, parts: Sequence[Quantity], group: _Values) -> bool:
    """True for a value that is called a total and that none of the others exceeds."""
    return part in group.totals and all(other.low <= part.low for other in parts)


def _one_sentence(group: _Values) -> bool:
    return all(q.end <= len(group.passage.text) for q in group.quantities)


def _difference(claim: Reading, unit: Unit, group: _Values) -> Sum | None:
    """Two values of one sentence, the one less the other: "12 m longer than", not "over 12 m"."""
    quantity = unit.quantity
    said = DIFFERENCE.search(claim.text, unit.end)
    if quantity is None or said is None or said.start() - unit.end > NEAR:
        return None
    return _less(unit, quantity, _alike(quantity, group), group.passage)


def _change(claim: Reading, unit: Unit, group: _Values) -> Sum | None:
    """The change in "rose by 3 million", from the two values of one sentence."""
    said = CHANGE.search(claim.text, 0, unit.start)
    if unit.quantity is None or said is None or claim.text[said.end() : unit.start].strip():
        return None
    # "84 million euros, up from 79 million": the second has its unit from the first
    parts = [q for q in group.quantities if q.unit in ("", unit.quantity.unit) and not q.noun]
    return _less(unit, unit.quantity, parts, group.passage)


def _less(unit: Unit, stated: Quantity, parts: Sequence[Quantity], passage: Passage) -> Sum | None:
    """The smaller of two values taken from the larger; None where one of them is the stated."""
    if len(parts) != FEWEST_PARTS or any(compare(stated, part) == "equal" for part in parts):
        return None
    larger, smaller = sorted(parts, key=lambda q: -q.low)
    return _result(unit, [larger, smaller], passage, MINUS)


def _persons(unit: Unit, group: _Values) -> Sum | None:
    """Persons where one sentence counts men and women; only ever in the claim's favour."""
    if unit.quantity is None or unit.quantity.noun not in PERSONS or group.is_table:
        return None
    parts = [q for q in group.quantities if q.noun in KINDS_OF_PERSON]
    if len(parts) < FEWEST_PARTS or len({q.noun for q in parts}) < len(parts):
        return None
    found = _result(unit, parts, group.passage, PLUS)
    return found if found.contrast is None else None


def _duration(claim: Reading, unit: Unit, group: _Values) -> Sum | None:
    """The length in "lasted four years", where one sentence gives the first and the last year."""
    quantity = unit.quantity
    if quantity is None or quantity.unit != "second" or quantity.low % SECONDS_A_YEAR:
        return None
    if group.is_table or not LASTED.search(claim.text, 0, unit.start):
        return None
    dates = [u.date for u in read(group.passage.text, claim.language).units if u.date]
    years = [year for d in dates for year in (d.year, d.end_year) if year is not None]
    if len(years) != FEWEST_PARTS:
        return None
    first, last = sorted(years)
    shown = f"{last}{MINUS}{first} = {last - first}"
    if any(q.unit == quantity.unit for q in group.quantities):
        return None  # the evidence gives a duration itself
    return _judged(
        unit, (last - first) * SECONDS_A_YEAR, shown, group.passage, tolerance=SECONDS_A_YEAR
    )


def _growth(claim: Reading, unit: Unit, group: _Values) -> Sum | None:
    """A change in per cent from two values in one sentence."""
    if not unit.quantity or unit.quantity.unit != "percent" or not CHANGE.search(claim.text):
        return None
    values = [q for q in group.quantities if q.unit != "percent" and q.low > 0]
    if len(values) != FEWEST_PARTS or values[0].unit not in ("", values[1].unit):
        return None
    if any(q.unit == "percent" for q in group.quantities):
        return None
    first, second = values
    change = 100.0 * abs(second.low - first.low) / first.low
    shown = f"{first.text} → {second.text} is {change:.3g} %"
    return _judged(unit, change, shown, group.passage, tolerance=0.5)


def _result(unit: Unit, values: Sequence[Quantity], passage: Passage, sign: str) -> Sum:
    first, rest = values[0].low, [q.low for q in values[1:]]
    value = first + sum(rest) if sign == PLUS else first - sum(rest)
    shown = f"{sign.join(q.text for q in values)} = {value:,.10g}"
    return _judged(unit, value, shown, passage, tolerance=1e-6 * max(1.0, abs(value)))


def _judged(unit: Unit, value: float, shown: str, passage: Passage, *, tolerance: float) -> Sum:
    quantity = unit.quantity
    exact = replace(quantity, low=value, high=value, bound="exact") if quantity else None
    agrees = quantity and exact and compare(quantity, exact) in ("equal", "compatible")
    near = quantity and abs(quantity.low - value) <= tolerance
    if agrees or near:
        return Sum(shown, value, passage, None)
    contrast = Contrast(
        "sum",
        unit.start,
        unit.end,
        unit.text,
        shown,
        f"the evidence's own numbers give {shown}, not “{unit.text}”",
        WEIGHT["sum"],
    )
    return Sum(shown, value, passage, contrast)
