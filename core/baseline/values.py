"""Sets the numbers, units and dates of a statement against those of the evidence.

Each value is the same as one in the evidence, follows from some of them, differs from those it
could be compared with, or has nothing to be compared with. In a table row (“Revenue, 2024: 131.5;
2023: 120.1”) a value stands under its labels: the same figure under other labels is another's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import regex

from core.documents.segmentation import query_terms, terms
from core.tools.date_values import DateValue, compare_dates
from core.tools.dates import find_dates
from core.tools.quantities import Match, Quantity, compare, find_quantities
from core.tools.units import FEWEST_OF_TOTAL, Derivation, derived_values

Status = Literal["same", "derived", "different", "unmatched"]
Value = Quantity | DateValue
ROW = regex.compile(r"(?m)^[^\n]{1,160}?(?:: |： ?)[\p{Sc}+−(-]?\p{N}[^;；\n]{0,28}(?=[;；]|\.?$)")
"""A label and a figure that ends its cell; prose goes on behind a figure."""
CELL = regex.compile(r"(?P<label>[^;；\n]*?)(?:: |： ?)(?P<value>[^;；:：\n]+)(?=[;；\n]|$)")
HEADER_UNIT = regex.compile(r"[(（](?P<unit>[^()（）]{1,30})[)）]")
CLAUSE_END = regex.compile(r"[.,!?:] |[。！？；，、;\n]")
NAMING = regex.compile(r"\p{L}{3}|^(?:1[5-9]|20)\p{Nd}{2}$")
LONGEST_CELL = 60


@dataclass(frozen=True)
class ValueFinding:
    """How one value of the statement stands to the evidence."""

    start: int
    """`[start, end)` in the claim."""
    end: int
    text: str
    is_date: bool
    status: Status
    instead: str = ""
    """Of a value that differs the evidence's own; of one that follows how it is worked out."""
    is_nearest: bool = False
    """True where one clause or cell alone has most of the statement's words, and `instead`."""
    in_table: bool = False
    """True where that is a cell of a table, or all cells of a column."""
    is_worked: bool = False
    """True where `instead` is how the evidence's figures come to a total, as in “1 + 2 = 3”."""


@dataclass(frozen=True)
class _Cell:
    """The value of a table row: `[start, end)` in the text, its column's label, and its labels."""

    start: int
    end: int
    column: str
    labels: frozenset[str]
    """The terms of the row's and the column's labels."""
    unit: str


@dataclass(frozen=True)
class _Held:
    """A value of the evidence; `cell` where it stands in a table row."""

    value: Value
    cell: _Cell | None
    around: frozenset[str]
    """The terms of the cell's labels, or of the clause that the value stands in."""


def is_row(text: str) -> bool:
    """True of a table row with labels and a value: “Visitors, 2023 (thousands), North: 412”."""
    return ROW.search(text) is not None


def compare_values(
    claim: str, own_start: int, evidence: Sequence[str], language: str
) -> tuple[ValueFinding, ...]:
    """A finding for each value of the claim's own words; `evidence` are windows, best first."""
    quantities, dates = _values(claim, language)
    wanted = frozenset(query_terms(claim, language))
    held = [one for text in evidence for one in _held_in(text, language)]
    held_dates = [one for one in held if isinstance(one.value, DateValue)]
    held_quantities = [one for one in held if isinstance(one.value, Quantity)]
    own = (value for value in quantities if value.start >= own_start)
    found = [_quantity_finding(value, held_quantities, wanted) for value in own]
    found += [_compared(date, held_dates, wanted) for date in dates if date.start >= own_start]
    return tuple(sorted(found, key=lambda finding: finding.start))


@lru_cache(maxsize=20_000)
def _values(text: str, language: str) -> tuple[tuple[Quantity, ...], tuple[DateValue, ...]]:
    dates = tuple(find_dates(text, language))
    quantities = tuple(
        quantity
        for quantity in find_quantities(text, language)
        if not any(d.start < quantity.end and quantity.start < d.end for d in dates)
    )
    return quantities, dates


@lru_cache(maxsize=20_000)
def _held_in(text: str, language: str) -> tuple[_Held, ...]:
    """The text's values, those of table rows with their cells and also in their header's unit."""
    cells = list(_cells(text, language)) if is_row(text) else []
    quantities, dates = _values(text, language)
    found: list[_Held] = []
    every: tuple[Value, ...] = (*quantities, *dates)
    for value in every:
        cell = next((c for c in cells if c.start <= value.start and value.end <= c.end), None)
        start = max((m.end() for m in CLAUSE_END.finditer(text, 0, value.start)), default=0)
        after = CLAUSE_END.search(text, value.end)
        clause = text[start : after.start() if after else len(text)]
        around = cell.labels if cell else frozenset(terms(clause, language))
        found.append(_Held(value, cell, around))
        if cell and cell.unit and isinstance(value, Quantity) and not value.unit:
            found += [_Held(one, cell, around) for one in _in_unit(value, cell.unit, language)]
    return tuple(found)


def _cells(text: str, language: str) -> Iterator[_Cell]:
    """The cells of each row; what stands before the first label names the whole row."""
    line_start = 0
    for line in text.split("\n"):
        row, unit = "", ""
        matches = list(CELL.finditer(line))
        for number, match in enumerate(matches):
            label = match["label"].strip()
            # a year or a name in another column says which row it is
            others = (m["value"] for m in matches if m is not match)
            naming = " ".join(v for v in others if len(v) <= LONGEST_CELL and NAMING.search(v))
            if number == 0:
                row, _, column = label.rpartition(", ")
                header = HEADER_UNIT.search(label)
                unit = header["unit"] if header else ""
            else:
                column = label
            if len(match["value"]) <= LONGEST_CELL:
                own = HEADER_UNIT.search(column)
                yield _Cell(
                    line_start + match.start("value"), line_start + match.end("value"), column,
                    frozenset(terms(f"{row} {column} {naming}", language)),
                    own["unit"] if own else unit,
                )  # fmt: skip
        line_start += len(line) + 1


def _in_unit(value: Quantity, unit: str, language: str) -> Iterator[Quantity]:
    """The bare number of a cell as its header means it: “412” under “(thousands)” is 412,000."""
    for written in (f"{value.text} {unit}", f"{value.text} {unit.rstrip('s')}"):
        for one in find_quantities(written, language):
            is_another = one.unit or (one.low, one.high) != (value.low, value.high)
            if is_another and value.text in one.text:
                yield replace(one, start=value.start, end=value.end, text=value.text, noun="")
                return


def _quantity_finding(own: Quantity, held: Sequence[_Held], wanted: frozenset[str]) -> ValueFinding:
    found = _compared(own, held, wanted)
    if found.status == "same":
        return found
    every = [one.value for one in held if isinstance(one.value, Quantity)]
    if derived := derived_values(own, every):
        return _finding(own, "derived", derived[0].words)
    if total := _other_total(own, held, wanted):
        if own.low <= total.value <= own.high:
            return _finding(own, "derived", total.words)
        words = total.words
        return _finding(own, "different", words, is_nearest=True, in_table=True, is_worked=True)
    return found


def _compared(own: Value, held: Sequence[_Held], wanted: frozenset[str]) -> ValueFinding:
    """The same as some value that fits best, or different from one that fits better."""
    same: list[int] = []
    different: list[tuple[int, _Held]] = []
    for one in held:
        match: Match = "incomparable"
        if isinstance(own, DateValue) and isinstance(one.value, DateValue):
            match = compare_dates(own, one.value)
        elif isinstance(own, Quantity) and isinstance(one.value, Quantity):
            match = compare(own, one.value)
        fit = len(wanted & one.around)
        if match == "same" and one.cell is None:
            return _finding(own, "same")
        if match == "same":
            same.append(fit)
        elif match == "different" and _is_alike(own, one):
            different.append((fit, one))
    in_cells = max((fit for fit, one in different if one.cell), default=0)
    if same and in_cells <= max(same):
        return _finding(own, "same")
    if not different:
        return _finding(own, "unmatched")
    fit, other = max(different, key=lambda pair: pair[0])
    nearest = {(one.value.text, one.cell) for own_fit, one in different if own_fit == fit}
    instead = other.value.text
    if other.cell and isinstance(own, Quantity) and own.unit and instead.isascii():
        bare = not any(char.isalpha() or char in "%€$£" for char in instead)
        instead += f" {other.cell.unit}" if bare and other.cell.unit else ""
    return _finding(
        own, "different", instead,
        is_nearest=fit > 0 and len(nearest) == 1, in_table=other.cell is not None,
    )  # fmt: skip


def _is_alike(own: Value, other: _Held) -> bool:
    """True where both measure the same kind of thing, so that one may stand for the other."""
    if isinstance(own, DateValue) or isinstance(other.value, DateValue):
        return True
    if own.unit != other.value.unit:
        return False
    # a number in words counts things ("three plants"); it does not restate a cell
    is_digits = any(char.isdigit() for char in own.text)
    is_bare = other.cell is not None and not other.value.noun and is_digits
    return bool(own.unit) or not own.noun or is_bare or own.noun == other.value.noun


def _other_total(own: Quantity, held: Sequence[_Held], wanted: frozenset[str]) -> Derivation | None:
    """The total of a column that the statement names, where it names none of the column's rows."""
    if not any(char.isdigit() for char in own.text):
        return None
    # of a cell that is held twice, bare and in its header's unit, the latter counts
    by_cell = {
        one.cell: one
        for one in held
        if one.cell and isinstance(one.value, Quantity) and one.value.unit == own.unit
    }
    columns: dict[str, list[_Held]] = defaultdict(list)
    for cell, one in by_cell.items():
        columns[cell.column].append(one)
    for rows in columns.values():
        cells = [one.cell for one in rows if one.cell]
        shared = frozenset.intersection(*(cell.labels for cell in cells))
        is_of_row = any(wanted & (cell.labels - shared) for cell in cells)
        if len(rows) < FEWEST_OF_TOTAL or not wanted & shared or is_of_row:
            continue
        parts = tuple(one.value for one in rows if isinstance(one.value, Quantity))
        return Derivation("total", parts, sum(part.low for part in parts))
    return None


def _finding(own: Value, status: Status, instead: str = "", **known: bool) -> ValueFinding:
    is_date = isinstance(own, DateValue)
    return ValueFinding(own.start, own.end, own.text, is_date, status, instead, **known)
