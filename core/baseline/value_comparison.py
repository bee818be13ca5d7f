"""Comparison of the numbers, units and dates of a statement with those of the evidence.

Each value is the same as one in the evidence, derived from some of them, different from those it
can be compared with, or unmatched. In a table row (“Revenue, 2024: 131.5; 2023: 120.1”) a value
belongs to its labels: the same figure under other labels is a different value. A value inside a
range or bound of the evidence is the same, outside it is different. A figure in parentheses is
negative in a table.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import regex

from core.documents.segmentation import extract_query_terms, extract_terms
from core.tools.date_values import DateValue, compare_dates
from core.tools.dates import find_dates
from core.tools.quantities import (
    Agreement,
    Quantity,
    find_quantities,
    is_inside_range,
    match_claimed_quantity,
    multiply_quantity,
)
from core.tools.units import MIN_TOTAL_PARTS, FigureDerivation, derive_value
from core.tools.vocabulary import load_vocabulary, match_any

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
HEADER_SCALES = {
    word: factor
    for factor, words in (
        (1e2, "hundreds"),
        (1e3, "thousand thousands tausend tsd milliers miles mille migliaia 000 000s 1000"),
        (1e6, "million millions millionen millones milioni mio mn mln mill"),
        (1e9, "billion billions bn bln milliarden milliards miliardi mrd"),
        (1e12, "trillion tn"),
    )
    for word in words.split()
}
MONEY_SCALES = {"t": 1e3, "k": 1e3, "m": 1e6}
"""Scales only beside a currency: “T€”, “€m”."""
UNIT_WORD = regex.compile(
    r"(?i)us\$|\p{Sc}|\d+s?|[tkm](?=(?:eur|usd|gbp|chf)\b)|(?:eur|usd|gbp|chf)(?=[km]?\b)"
    r"|(?:\p{L}|[²³])+"
)
MONEY_WORD = regex.compile(r"(?i)us\$|\p{Sc}|eur|usd|gbp|chf")
UNIT_LINKS = frozenset("of in en de d di".split())
PARENTHESIZED_NUMBER = regex.compile(r"[(（][\p{Sc}\s]*\p{N}[\p{N}.,'’\s]*\s?(?:%|\p{Sc})?[)）]")
"""A negative figure, as accounts write it: “(4,310)”."""
NEGATIVE_CELL = regex.compile(rf"[-−–]\s?\p{{Sc}}?\p{{N}}.*|{PARENTHESIZED_NUMBER.pattern}")
NEGATIVE_WORD = regex.compile(
    r"(?i)(?<!\p{L})(?:n[eé]gati[fv]\p{L}*|loss(?:es)?|deficits?|verluste?|fehlbetrag|pertes?"
    r"|déficits?|pérdidas?|perdit[ae]|disavanzo|verlies|tekort|förlust|underskott|prejuízos?"
    r"|负|負|亏损|赤字)"
)
POSITIVE_WORD = regex.compile(
    r"(?i)(?<!\p{L})(?:positi[fv]\p{L}*|profits?|surplus(?:es)?|gewinne?|überschuss|bénéfices?"
    r"|excédents?|beneficios?|superávit|utile|winst|vinst|överskott|lucros?|盈利|黒字)"
)
SIGN_ADJECTIVE = regex.compile(r"(?i)(?<!\p{L})(?:n[eé]gati|positi)[fv]\p{L}*|负|負")
CLAUSE_END = regex.compile(r"[.,!?] | [-–—*•▪·] |[。！？；，、;\n]")
LABEL_END = regex.compile(r": |：")
CLAUSE_LABEL = regex.compile(r"[^:：]{1,40}(?=: |：)")
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
    decided_by: str = ""
    """The evidence's range or bound, or value under the label that the statement names."""
    phrase_start: int = 0
    """Start of the value with the words of its bound: “at least 12”."""
    cell_window: str = ""
    """The window of the table cell that decides if the statement says nothing beside its labels."""


@dataclass(frozen=True)
class _Cell:
    """A value of a table row: `[start, end)` in the text, its column's label, label and unit."""

    start: int
    end: int
    column: str
    label: str
    """The row's and the column's labels, and the values in other columns that name the row."""
    labels: frozenset[str]
    """The label's terms, with the parts of its dates."""
    row_terms: frozenset[str]
    unit: str
    is_signed: bool
    """True if the row holds a negative figure."""


@dataclass(frozen=True)
class _SourceValue:
    """A value of the evidence; `cell` is set if it is in a table row."""

    value: ComparableValue
    cell: _Cell | None
    around: frozenset[str]
    """The terms of the cell's labels, or of the clause around the value."""
    label: str
    """The label of the cell's row and column, or of the clause; empty in prose."""
    clause: str
    text: str
    """The whole window."""

    @property
    def is_bounded(self) -> bool:
        """True for a range or bound."""
        value = self.value
        return isinstance(value, Quantity) and (
            value.low < value.high or value.bound not in ("exact", "about")
        )

    def is_range_for(self, own: ComparableValue) -> bool:
        """Return True if the value is a range or bound of which `own` is a part."""
        value = self.value
        return (
            isinstance(own, Quantity)
            and isinstance(value, Quantity)
            and is_inside_range(own, value)
        )


def is_table_row(text: str) -> bool:
    """Return True for a row of labels and a value: “Visitors, 2023 (thousands), North: 412”."""
    return ROW_PATTERN.search(text) is not None


@dataclass(frozen=True)
class _Claim:
    """The claim with its terms and values."""

    text: str
    language: str
    terms: frozenset[str]
    values: tuple[ComparableValue, ...]

    @property
    def subject_terms(self) -> frozenset[str]:
        """The terms beside all quantities and the words of their bounds."""
        return self._terms_without([v for v in self.values if isinstance(v, Quantity)])

    @property
    def sign(self) -> int:
        """-1 if the claim speaks of a negative figure, 1 of a positive one, else 0."""
        is_negative = NEGATIVE_WORD.search(self.text) is not None
        return (POSITIVE_WORD.search(self.text) is not None) - is_negative

    def names(self, cell: _Cell) -> bool:
        """Return True if the claim says nothing beside the cell's labels, values and signs."""
        stated = [
            value
            for value in self.values
            if isinstance(value, Quantity) or _date_parts(value) <= cell.labels
        ]
        signs = (*NEGATIVE_WORD.finditer(self.text), *POSITIVE_WORD.finditer(self.text))
        subject = self._terms_without(stated, [match.span() for match in signs])
        return bool(subject & cell.row_terms) and subject <= cell.labels

    def _terms_without(
        self, values: Sequence[ComparableValue], places: Sequence[tuple[int, int]] = ()
    ) -> frozenset[str]:
        text = self.text
        for start, end in (*((value.start, value.end) for value in values), *places):
            text = text[:start] + " " * (end - start) + text[end:]
        return frozenset(extract_query_terms(_drop_bounds(text, self.language), self.language))


def compare_values(
    claim: str, own_start: int, evidence: Sequence[str], language: str
) -> tuple[ValueFinding, ...]:
    """Return a finding for each value from `own_start` on; `evidence` is windows, best first."""
    quantities, dates = find_values(claim, language)
    terms = frozenset(extract_query_terms(claim, language)).union(*map(_date_parts, dates))
    stated = _Claim(claim, language, terms, (*quantities, *dates))
    sources = [source for text in evidence for source in _source_values(text, language)]
    held_dates = [source for source in sources if isinstance(source.value, DateValue)]
    held_quantities = [source for source in sources if isinstance(source.value, Quantity)]
    own = [value for value in quantities if value.start >= own_start]
    findings = [_compare_quantity(value, held_quantities, stated) for value in own]
    findings += [] if own else _compare_signs(stated, own_start, held_quantities)
    findings += [
        _compare_value(date, held_dates, stated) for date in dates if date.start >= own_start
    ]
    return tuple(sorted(findings, key=lambda finding: finding.start))


@lru_cache(maxsize=20_000)
def find_values(text: str, language: str) -> tuple[tuple[Quantity, ...], tuple[DateValue, ...]]:
    """Return the quantities of the text, and its dates; no figure of a date is a quantity."""
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
    quantities, dates = find_values(text, language)
    header_units = [match.span() for match in HEADER_UNIT.finditer(text)]
    values: list[_SourceValue] = []
    all_values: tuple[ComparableValue, ...] = (*quantities, *dates)
    for value in all_values:
        cell = next((c for c in cells if c.start <= value.start and value.end <= c.end), None)
        in_header_unit = any(start <= value.start < end for start, end in header_units)
        if cells and not cell and in_header_unit and isinstance(value, Quantity):
            continue  # “(thousands)” is no value
        start = max((m.end() for m in CLAUSE_END.finditer(text, 0, value.start)), default=0)
        after = CLAUSE_END.search(text, value.end)
        clause = text[start : after.start() if after else len(text)]
        named = CLAUSE_LABEL.match(clause)
        label = cell.label if cell else named.group() if named else ""
        around = cell.labels if cell else frozenset(extract_terms(clause, language))
        source = _SourceValue(value, cell, around, label, clause, text)
        readings: list[ComparableValue] = [value]
        if cell and isinstance(value, Quantity):
            quantities_in_unit = _apply_unit(value, cell.unit, language) if cell.unit else ()
            readings += () if value.unit else quantities_in_unit
            if PARENTHESIZED_NUMBER.fullmatch(text[cell.start : cell.end].strip()):
                quantities_here = (each for each in readings if isinstance(each, Quantity))
                readings = [_negate(each, cell, text) for each in quantities_here]
        values += [replace(source, value=reading) for reading in readings]
    return tuple(values)


def _negate(value: Quantity, cell: _Cell, text: str) -> Quantity:
    """Return the value of a cell in parentheses, with these."""
    shown = text[cell.start : cell.end].strip()
    return replace(
        value, low=-value.high, high=-value.low, start=cell.start, end=cell.end, text=shown
    )


def _date_parts(date: DateValue) -> frozenset[str]:
    """Return the parts of a date as terms, which are equal for “31 Mar” and “31 March”."""
    parts = {"year": date.year, "month": date.month, "day": date.day}
    return frozenset(f"{name} {part}" for name, part in parts.items() if part)


def _parse_cells(text: str, language: str) -> Iterator[_Cell]:
    """Yield the cells of each row; the text before the first label names the whole row."""
    line_start = 0
    for line in text.split("\n"):
        row, unit = "", ""
        matches = list(CELL_PATTERN.finditer(line))
        is_signed = any(NEGATIVE_CELL.fullmatch(match["value"].strip()) for match in matches)
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
                # a heading may precede the list's own label: “Fees: - Students”
                label, whole = LABEL_END.split(column)[-1], f"{row} {column} {naming}"
                dates = map(_date_parts, find_dates(f"{column}; {row}; {naming}", language))
                yield _Cell(
                    start=line_start + match.start("value"),
                    end=line_start + match.end("value"),
                    column=column,
                    label=f"{row} {label} {naming}",
                    labels=frozenset(extract_terms(whole, language)).union(*dates),
                    row_terms=frozenset(extract_terms(row or column, language)),
                    unit=column_unit["unit"] if column_unit else unit,
                    is_signed=is_signed,
                )
        line_start += len(line) + 1


def _apply_unit(value: Quantity, unit: str, language: str) -> Iterator[Quantity]:
    """Yield a cell's bare number in its header's unit: “412” under “(thousands)” is 412,000."""
    factor, words = _split_scale(unit.rpartition("：")[2])
    for quantity in find_quantities(f"{value.text} {words}", language):
        is_another = quantity.unit or (quantity.low, quantity.high) != (value.low, value.high)
        if (is_another or factor != 1) and value.text in quantity.text:
            scaled = multiply_quantity(quantity, factor)
            yield replace(scaled, start=value.start, end=value.end, text=value.text, noun="")
            return


def _split_scale(unit: str) -> tuple[float, str]:
    """Return the scale in a header's unit and the other words: “US$ thousands” is 1,000 US$."""
    words = [word for word in UNIT_WORD.findall(unit) if word.casefold() not in UNIT_LINKS]
    is_money = any(map(MONEY_WORD.fullmatch, words))
    scales = HEADER_SCALES | MONEY_SCALES if is_money else HEADER_SCALES
    factors = [scales.get(word.casefold()) for word in words]
    if not any(factors):
        return 1.0, unit
    others = [word for word, factor in zip(words, factors, strict=True) if factor is None]
    return math.prod(filter(None, factors)), " ".join(others)


def _compare_quantity(
    own: Quantity, sources: Sequence[_SourceValue], claim: _Claim
) -> ValueFinding:
    finding = _compare_value(own, sources, claim)
    if finding.status == "same" or finding.decided_by:
        return finding
    every = [source.value for source in sources if isinstance(source.value, Quantity)]
    if derived := derive_value(own, every):
        return _make_finding(own, "derived", derived[0].words)
    if total := _column_total(own, sources, claim.terms):
        if own.low <= total.value <= own.high:
            return _make_finding(own, "derived", total.words)
        words = total.words
        return _make_finding(
            own, "different", words, is_nearest=True, in_table=True, is_worked=True
        )
    return finding


def _compare_value(
    own: ComparableValue, sources: Sequence[_SourceValue], claim: _Claim
) -> ValueFinding:
    """Compare with the values of the same kind; those whose label or clause fits best decide.

    A figure of a table or list belongs to its label, and any range may contain a value by chance.
    """
    terms = claim.terms - set(extract_terms(own.text, claim.language))
    same: list[tuple[int, _SourceValue]] = []
    different: list[tuple[int, _SourceValue]] = []
    for source in sources:
        match: Agreement = "incomparable"
        if isinstance(own, DateValue) and isinstance(source.value, DateValue):
            match = compare_dates(own, source.value)
        elif isinstance(own, Quantity) and isinstance(source.value, Quantity):
            match = _match_signed(own, source.value, source.cell, claim)
        fit = len(terms & source.around)
        if match == "same":
            same.append((fit, source))
        elif match == "different" and _is_same_kind(own, source):
            different.append((fit, source))
    stated = [s for _, s in same if not s.label and not s.is_range_for(own)]
    rivals = (fit for fit, s in different if s.label or s.is_bounded)
    if stated or (same and max(rivals, default=0) <= max(fit for fit, _ in same)):
        return _add_decision(_make_finding(own, "same"), own, same, claim)
    if not different:
        return _make_finding(own, "unmatched")
    fit, other = max(different, key=lambda pair: pair[0])
    nearest = {(source.value.text, source.cell) for own_fit, source in different if own_fit == fit}
    instead = other.value.text
    if other.cell and isinstance(own, Quantity) and own.unit and instead.isascii():
        is_bare = not any(char.isalpha() or char in "%€$£" for char in instead)
        instead += f" {other.cell.unit}" if is_bare and other.cell.unit else ""
    is_nearest = fit > 0 and len(nearest) == 1
    finding = _make_finding(
        own, "different", instead, is_nearest=is_nearest, in_table=other.cell is not None
    )
    return _add_decision(finding, own, different, claim)


def _match_signed(own: Quantity, value: Quantity, cell: _Cell | None, claim: _Claim) -> Agreement:
    """Compare with a source's quantity; in a row with a negative figure the sign may be a word.

    “A loss of 4,310” and “costs of 4,310” are -4,310 there, “a profit of 4,310” is not.
    """
    if cell and cell.is_signed and own.low >= 0:
        if value.high < 0 and claim.sign <= 0:
            value = replace(value, low=-value.high, high=-value.low)
        elif value.low > 0 and claim.sign < 0 and not NEGATIVE_WORD.search(cell.label):
            own = replace(own, low=-own.high, high=-own.low)
    return match_claimed_quantity(own, value)


def _compare_signs(
    claim: _Claim, own_start: int, sources: Sequence[_SourceValue]
) -> list[ValueFinding]:
    """Compare “negative” or “positive” with the sign of the table cell that the claim names."""
    word = SIGN_ADJECTIVE.search(claim.text, own_start)
    named = [source for source in sources if source.cell and claim.names(source.cell)]
    if word is None or not claim.sign or not named:
        return []
    source = max(named, key=lambda source: len(claim.terms & source.around))
    figure = source.value
    if not isinstance(figure, Quantity) or figure.low == 0:
        return []
    status: ValueStatus = "same" if (figure.low > 0) == (claim.sign > 0) else "different"
    found = ValueFinding(*word.span(), word.group(), is_date=False, status=status)
    return [replace(found, decided_by=figure.text, cell_window=source.text)]


def _add_decision(
    finding: ValueFinding,
    own: ComparableValue,
    sources: Sequence[tuple[int, _SourceValue]],
    claim: _Claim,
) -> ValueFinding:
    """Add the value that decides, from the sources that fit best."""
    best = max(fit for fit, _ in sources)
    deciding = (s for fit, s in sources if fit == best and _decides(own, s, claim, finding.status))
    if (source := next(deciding, None)) is None:
        return finding
    bounds = _compile_bounds(claim.language).finditer(claim.text, 0, own.start)
    starts = (m.start() for m in bounds if not claim.text[m.end() : own.start].strip())
    start = min(starts, default=own.start)
    window = source.text if source.cell and claim.names(source.cell) else ""
    decided_by = source.value.text
    return replace(finding, decided_by=decided_by, phrase_start=start, cell_window=window)


def _decides(
    own: ComparableValue, source: _SourceValue, claim: _Claim, status: ValueStatus
) -> bool:
    """Return True if a bound, range or label is involved, and of what the claim seems to be about.

    The claim names the whole label; without one it shares words with the clause.
    """
    if not isinstance(own, Quantity) or not isinstance(source.value, Quantity):
        return False
    # without a word for its sign, an equal amount may be a cost or the wrong result
    if source.value.high < 0 <= own.low and not claim.sign and status == "same":
        return False
    if source.cell and claim.names(source.cell):
        return True
    language, subject = claim.language, claim.subject_terms
    known = frozenset(extract_terms(_drop_bounds(source.text, language), language))
    if 2 * len(subject & known) < len(subject):
        return False
    if source.label:
        return frozenset(extract_query_terms(source.label, language)) <= subject
    near = frozenset(extract_terms(source.clause, language))
    return bool(subject & near) and (own.bound != "exact" or source.is_bounded)


@lru_cache(maxsize=64)
def _compile_bounds(language: str) -> regex.Pattern[str]:
    words = load_vocabulary(language)
    ends = words.listed("from", "to", "between")
    phrases = (*words.bounds_before.values, *words.bounds_after.values, *ends)
    return regex.compile(rf"(?i)(?<!\w)(?:{match_any(phrases)})(?!\w)")


def _drop_bounds(text: str, language: str) -> str:
    """Return the text without the words of ranges and bounds."""
    return _compile_bounds(language).sub(" ", text)


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
    own: ComparableValue, status: ValueStatus, instead: str = "", **details: Any
) -> ValueFinding:
    is_date = isinstance(own, DateValue)
    return ValueFinding(own.start, own.end, own.text, is_date, status, instead, **details)
