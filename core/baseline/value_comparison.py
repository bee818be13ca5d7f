"""Comparison of the numbers, units and dates of a statement with those of the evidence.

Each value is the same as one in the evidence, derived from some of them, different from those it
can be compared with, or unmatched. In a table row (“Revenue, 2024: 131.5; 2023: 120.1”) a value
belongs to its labels: the same figure under other labels is a different value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import regex

from core.documents.segmentation import extract_query_terms, extract_terms
from core.tools.date_values import DateValue, compare_dates
from core.tools.dates import find_dates
from core.tools.quantities import Agreement, Quantity, find_quantities, match_quantities
from core.tools.units import MIN_TOTAL_PARTS, FigureDerivation, derive_value

ValueStatus = Literal["same", "derived", "different", "unmatched"]
ComparableValue = Quantity | DateValue
ROW_PATTERN = regex.compile(
    r"(?m)^[^\n]{1,160}?(?:: |： ?)[\p{Sc}+−(-]?\p{N}[^;；\n]{0,28}(?=[;；]|\.?$)"
)
"""A label and a figure that ends its cell; in prose, text follows a figure."""
CELL_PATTERN = regex.compile(
    r"(?P<label>[^;；\n]*?)(?:: |： ?)(?P<value>[^;；:：\n]+)(?=[;；\n]|$)"
)
HEADER_UNIT = regex.compile(r"[(（](?P<unit>[^()（）]{1,30})[)）]")
CLAUSE_END = regex.compile(r"[.,!?:] |[。！？；，、;\n]")
ROW_NAMING_PATTERN = regex.compile(r"\p{L}{3}|^(?:1[5-9]|20)\p{Nd}{2}$")
MAX_CELL_CHARS = 60


@dataclass(frozen=True)
class ValueFinding:
    """How one value of the statement compares with the evidence."""

    start: int
    """`[start, end)` in the claim."""
    end: int
    text: str
    is_date: bool
    status: ValueStatus
    instead: str = ""
    """The evidence's value if this one differs; the calculation if this one is derived."""
    is_nearest: bool = False
    """True if `instead` comes from the single clause or cell with most of the statement's words."""
    in_table: bool = False
    """True if `instead` comes from a table cell, or from all cells of a column."""
    is_worked: bool = False
    """True if `instead` is a calculation of a total from the evidence's figures: “1 + 2 = 3”."""


@dataclass(frozen=True)
class _Cell:
    """A value of a table row: `[start, end)` in the text, its column's label, labels and unit."""

    start: int
    end: int
    column: str
    labels: frozenset[str]
    """The terms of the row's and the column's labels."""
    unit: str


@dataclass(frozen=True)
class _SourceValue:
    """A value of the evidence; `cell` is set if it is in a table row."""

    value: ComparableValue
    cell: _Cell | None
    around: frozenset[str]
    """The terms of the cell's labels, or of the clause around the value."""


def is_table_row(text: str) -> bool:
    """Return True for a row of labels and a value: “Visitors, 2023 (thousands), North: 412”."""
    return ROW_PATTERN.search(text) is not None


def compare_values(
    claim: str, own_start: int, evidence: Sequence[str], language: str
) -> tuple[ValueFinding, ...]:
    """Return a finding for each value from `own_start` on; `evidence` is windows, best first."""
    quantities, dates = _find_values(claim, language)
    claim_terms = frozenset(extract_query_terms(claim, language))
    sources = [source for text in evidence for source in _source_values(text, language)]
    held_dates = [source for source in sources if isinstance(source.value, DateValue)]
    held_quantities = [source for source in sources if isinstance(source.value, Quantity)]
    own = (value for value in quantities if value.start >= own_start)
    findings = [_compare_quantity(value, held_quantities, claim_terms) for value in own]
    findings += [
        _compare_value(date, held_dates, claim_terms) for date in dates if date.start >= own_start
    ]
    return tuple(sorted(findings, key=lambda finding: finding.start))


@lru_cache(maxsize=20_000)
def _find_values(text: str, language: str) -> tuple[tuple[Quantity, ...], tuple[DateValue, ...]]:
    dates = tuple(find_dates(text, language))
    quantities = tuple(
        quantity
        for quantity in find_quantities(text, language)
        if not any(d.start < quantity.end and quantity.start < d.end for d in dates)
    )
    return quantities, dates


@lru_cache(maxsize=20_000)
def _source_values(text: str, language: str) -> tuple[_SourceValue, ...]:
    """Return the text's values; those of table cells also in the unit of their header."""
    cells = list(_parse_cells(text, language)) if is_table_row(text) else []
    quantities, dates = _find_values(text, language)
    values: list[_SourceValue] = []
    all_values: tuple[ComparableValue, ...] = (*quantities, *dates)
    for value in all_values:
        cell = next((c for c in cells if c.start <= value.start and value.end <= c.end), None)
        start = max((m.end() for m in CLAUSE_END.finditer(text, 0, value.start)), default=0)
        after = CLAUSE_END.search(text, value.end)
        clause = text[start : after.start() if after else len(text)]
        around = cell.labels if cell else frozenset(extract_terms(clause, language))
        values.append(_SourceValue(value, cell, around))
        if cell and cell.unit and isinstance(value, Quantity) and not value.unit:
            values += [
                _SourceValue(quantity, cell, around)
                for quantity in _apply_unit(value, cell.unit, language)
            ]
    return tuple(values)


def _parse_cells(text: str, language: str) -> Iterator[_Cell]:
    """Yield the cells of each row; the text before the first label names the whole row."""
    line_start = 0
    for line in text.split("\n"):
        row, unit = "", ""
        matches = list(CELL_PATTERN.finditer(line))
        for number, match in enumerate(matches):
            label = match["label"].strip()
            # a year or a name in another column identifies the row
            others = (m["value"] for m in matches if m is not match)
            naming = " ".join(
                v for v in others if len(v) <= MAX_CELL_CHARS and ROW_NAMING_PATTERN.search(v)
            )
            if number == 0:
                row, _, column = label.rpartition(", ")
                header = HEADER_UNIT.search(label)
                unit = header["unit"] if header else ""
            else:
                column = label
            if len(match["value"]) <= MAX_CELL_CHARS:
                column_unit = HEADER_UNIT.search(column)
                yield _Cell(
                    start=line_start + match.start("value"),
                    end=line_start + match.end("value"),
                    column=column,
                    labels=frozenset(extract_terms(f"{row} {column} {naming}", language)),
                    unit=column_unit["unit"] if column_unit else unit,
                )
        line_start += len(line) + 1


def _apply_unit(value: Quantity, unit: str, language: str) -> Iterator[Quantity]:
    """Yield a cell's bare number in its header's unit: “412” under “(thousands)” is 412,000."""
    for written in (f"{value.text} {unit}", f"{value.text} {unit.rstrip('s')}"):
        for quantity in find_quantities(written, language):
            is_another = quantity.unit or (quantity.low, quantity.high) != (value.low, value.high)
            if is_another and value.text in quantity.text:
                yield replace(quantity, start=value.start, end=value.end, text=value.text, noun="")
                return


def _compare_quantity(
    own: Quantity, sources: Sequence[_SourceValue], claim_terms: frozenset[str]
) -> ValueFinding:
    finding = _compare_value(own, sources, claim_terms)
    if finding.status == "same":
        return finding
    every = [source.value for source in sources if isinstance(source.value, Quantity)]
    if derived := derive_value(own, every):
        return _make_finding(own, "derived", derived[0].words)
    if total := _column_total(own, sources, claim_terms):
        if own.low <= total.value <= own.high:
            return _make_finding(own, "derived", total.words)
        words = total.words
        return _make_finding(
            own, "different", words, is_nearest=True, in_table=True, is_worked=True
        )
    return finding


def _compare_value(
    own: ComparableValue, sources: Sequence[_SourceValue], claim_terms: frozenset[str]
) -> ValueFinding:
    """Compare with the values of the same kind; those whose labels or clause fit best decide."""
    same: list[int] = []
    different: list[tuple[int, _SourceValue]] = []
    for source in sources:
        match: Agreement = "incomparable"
        if isinstance(own, DateValue) and isinstance(source.value, DateValue):
            match = compare_dates(own, source.value)
        elif isinstance(own, Quantity) and isinstance(source.value, Quantity):
            match = match_quantities(own, source.value)
        fit = len(claim_terms & source.around)
        if match == "same" and source.cell is None:
            return _make_finding(own, "same")
        if match == "same":
            same.append(fit)
        elif match == "different" and _is_same_kind(own, source):
            different.append((fit, source))
    in_cells = max((fit for fit, source in different if source.cell), default=0)
    if same and in_cells <= max(same):
        return _make_finding(own, "same")
    if not different:
        return _make_finding(own, "unmatched")
    fit, other = max(different, key=lambda pair: pair[0])
    nearest = {(source.value.text, source.cell) for own_fit, source in different if own_fit == fit}
    instead = other.value.text
    if other.cell and isinstance(own, Quantity) and own.unit and instead.isascii():
        is_bare = not any(char.isalpha() or char in "%€$£" for char in instead)
        instead += f" {other.cell.unit}" if is_bare and other.cell.unit else ""
    is_nearest = fit > 0 and len(nearest) == 1
    return _make_finding(
        own, "different", instead, is_nearest=is_nearest, in_table=other.cell is not None
    )


def _is_same_kind(own: ComparableValue, other: _SourceValue) -> bool:
    """Return True if both measure the same kind of thing, so that one could replace the other."""
    if isinstance(own, DateValue) or isinstance(other.value, DateValue):
        return True
    if own.unit != other.value.unit:
        return False
    # a number in words counts things ("three plants"); it does not restate a cell
    is_digits = any(char.isdigit() for char in own.text)
    is_bare = other.cell is not None and not other.value.noun and is_digits
    return bool(own.unit) or not own.noun or is_bare or own.noun == other.value.noun


def _column_total(
    own: Quantity, sources: Sequence[_SourceValue], claim_terms: frozenset[str]
) -> FigureDerivation | None:
    """Return the total of a column that the statement names without naming one of its rows."""
    if not any(char.isdigit() for char in own.text):
        return None
    # a cell that occurs twice, bare and in its header's unit, counts in the unit
    by_cell = {
        source.cell: source
        for source in sources
        if source.cell and isinstance(source.value, Quantity) and source.value.unit == own.unit
    }
    columns: dict[str, list[_SourceValue]] = defaultdict(list)
    for cell, source in by_cell.items():
        columns[cell.column].append(source)
    for rows in columns.values():
        cells = [source.cell for source in rows if source.cell]
        shared = frozenset.intersection(*(cell.labels for cell in cells))
        is_of_row = any(claim_terms & (cell.labels - shared) for cell in cells)
        if len(rows) < MIN_TOTAL_PARTS or not claim_terms & shared or is_of_row:
            continue
        parts = tuple(source.value for source in rows if isinstance(source.value, Quantity))
        return FigureDerivation("total", parts, sum(part.low for part in parts))
    return None


def _make_finding(
    own: ComparableValue, status: ValueStatus, instead: str = "", **flags: bool
) -> ValueFinding:
    is_date = isinstance(own, DateValue)
    return ValueFinding(own.start, own.end, own.text, is_date, status, instead, **flags)
