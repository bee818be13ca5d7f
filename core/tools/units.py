"""Converts units, checks conversions that a text states, and derives figures from other figures.

Units are read in every language that the app reads; factors are pint's. Derived figures are sums,
differences, shares and changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal

import msgspec

from core.runtime.errors import InputError
from core.schema.records import Case, Statement
from core.tools.arithmetic import StatedValue, format_value, is_rounded_value
from core.tools.quantities import Quantity, match_quantities
from core.tools.registry import Tool, ToolAnswer, ToolContext, load_examples
from core.tools.vocabulary import (
    PatternTable,
    find_unit,
    get_unit_base,
    load_words,
    lower_text,
    normalize_chars,
)

PATTERNS = PatternTable("units")
DerivationKind = Literal["sum", "difference", "ratio", "share", "change", "total"]
MAX_FIGURES = 40
MIN_TOTAL_PARTS = 3
P_IF_RIGHT, P_IF_WRONG = 0.1, 0.9
MAX_TEXT_CHARS = 20_000
MAX_AMOUNT = 1e15
FACTOR_DIGITS = 12  # of conversion factors, which are floats
NEAR_SHARE = Fraction(1, 20)
NUMBER_PATTERN = r"(?<![0-9A-Za-z.,])-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:\.[0-9]{1,12})?"
AMOUNT_PATTERN = re.compile(NUMBER_PATTERN)
DATE_TAIL = re.compile(
    r"[年月]\s?\Z"
)  # 2018年5月1日: 1日 is a day of the month, not an amount of time


@dataclass(frozen=True)
class FigureDerivation:
    """A stated figure derived from figures of the evidence.

    `sum`, `difference`, `ratio` (how many times), `share` (per cent of the other) and `change` (per
    cent up or down) use the two figures in `parts`; `total` uses all figures of a list or column.
    `value` is exact, in the base unit of its quantities: metres for kilometres.
    """

    operation: DerivationKind
    parts: tuple[Quantity, ...]
    value: float

    @property
    def words(self) -> str:
        """The derivation as people write it: "90,000 − 68,000 = 22,000"."""
        texts = [" ".join(part.text.split()) for part in self.parts]
        unit = self.parts[0].unit if self.operation in ("sum", "difference", "total") else ""
        value = f"{self.value:,.10g}{' ' if unit else ''}{unit}"
        if self.operation in ("sum", "total"):
            return f"{' + '.join(texts)} = {value}"
        if self.operation == "change":
            return f"{texts[0]} → {texts[1]} is {self.value:+,.3g} %"
        sign = " − " if self.operation == "difference" else " / "
        return f"{sign.join(texts)} = {value}{' %' if self.operation == 'share' else ''}"


def derive_value(stated: Quantity, evidence: Sequence[Quantity]) -> list[FigureDerivation]:
    """Return how figures of the evidence yield the stated one, simplest first; empty if none do.

    Only the first 40 single values of the evidence are tried, and nothing is derived if one of them
    already states the figure.
    """
    figures = [q for q in evidence if q.low == q.high and not q.ordinal][:MAX_FIGURES]
    alike = [q for q in figures if q.unit == stated.unit]
    if stated.ordinal or any(match_quantities(stated, q) == "same" for q in alike):
        return []
    derivations = []
    for one, other in combinations(alike, 2):
        larger, smaller = (one, other) if one.low >= other.low else (other, one)
        derivations.append(FigureDerivation("sum", (one, other), one.low + other.low))
        derivations.append(
            FigureDerivation("difference", (larger, smaller), larger.low - smaller.low)
        )
    if stated.unit in ("percent", "times", "percentage_point"):
        # Shares and changes relate two figures of any unit, as long as it is the same.
        pairs = [p for p in combinations(figures, 2) if p[0].unit == p[1].unit != stated.unit]
        derivations += [one for pair in pairs for one in _derive_ratios(stated.unit, *pair)]
    if len(alike) >= MIN_TOTAL_PARTS:  # the largest may be the total itself
        largest = max(alike, key=lambda q: abs(q.low))
        for parts in (tuple(alike), tuple(q for q in alike if q is not largest)):
            if len(parts) >= MIN_TOTAL_PARTS:
                derivations.append(
                    FigureDerivation("total", parts, sum(part.low for part in parts))
                )
    return [one for one in derivations if _yields_stated(one, stated)]


def _derive_ratios(unit: str, one: Quantity, other: Quantity) -> Iterator[FigureDerivation]:
    """Yield each figure over the other as times or share, and the change between them."""
    for first, second in ((one, other), (other, one)):
        top, base = second.low - second.offset, first.low - first.offset
        if not base:
            continue
        if unit == "times":
            yield FigureDerivation("ratio", (second, first), top / base)
        elif 0 < top < base:
            yield FigureDerivation("share", (second, first), 100 * top / base)
        if unit == "percent":
            yield FigureDerivation("change", (first, second), 100 * (top - base) / abs(base))


def _yields_stated(derived: FigureDerivation, stated: Quantity) -> bool:
    value = abs(derived.value) if derived.operation == "change" else derived.value
    # Shares and changes are stated in round figures; sums carry the rounding of their parts.
    step = stated.step if derived.operation in ("share", "change", "ratio") else 0.0
    step = step or min(max(p.step for p in derived.parts) / 2, abs(value) * 0.005)
    sign = -1.0 if stated.low < 0 and derived.operation == "change" else 1.0
    exact = replace(
        stated,
        low=sign * value,
        high=sign * value,
        bound="exact",
        step=step,
        noun="",
        other_factor=1.0,
    )
    return match_quantities(replace(stated, noun=""), exact) == "same"


@dataclass(frozen=True)
class StatedConversion:
    """One amount that a text gives in two units, both as written.

    `[start, end)` in the text is the second amount, and `instead` is what it should say.
    """

    first: str
    second: str
    holds: bool
    instead: str
    start: int
    end: int


def convert_unit(value: float, unit: str, to: str) -> Fraction:
    """Return the value in another unit; units are English words or signs.

    Raises:
        InputError: a unit is unknown, the units are not of one kind, or the value is too large.
    """
    if not abs(value) <= MAX_AMOUNT:
        raise InputError(f"Expected a value of at most {MAX_AMOUNT:g}, found {value:g}.")
    one, other = _parse_unit(unit), _parse_unit(to)
    if get_unit_base(one).symbol != get_unit_base(other).symbol:
        raise InputError(f"Expected two units of one kind, found {unit} and {to}.")
    return _convert_exactly(Fraction(value), one, other)


def _parse_unit(unit: str) -> str:
    """Return pint's name of a unit given as a word or sign, from the vetted units."""
    text = normalize_chars(f"1 {unit}")
    found = find_unit(text, lower_text(text), 1, "en")
    if found is None or found[0] < len(text):
        raise InputError(f"Expected a unit such as km/h or pounds, found “{unit[:40]}”.")
    return found[1]


def _convert_exactly(value: Fraction, unit: str, to: str) -> Fraction:
    one, other = get_unit_base(unit), get_unit_base(to)
    whole = value * Fraction(one.factor) + Fraction(one.offset) - Fraction(other.offset)
    return Fraction(f"{float(whole / Fraction(other.factor)):.{FACTOR_DIGITS}g}")


def find_conversions(text: str, language: str) -> list[StatedConversion]:
    """Return the conversions that a text states, in order; `language` is an ISO 639-1 code.

    A conversion holds if either amount equals the other one, rounded to its last non-zero digit.
    Raises InputError if the text is too long.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise InputError(f"Expected at most {MAX_TEXT_CHARS:,} characters, found {len(text):,}.")
    normalized = normalize_chars(text)
    low = lower_text(normalized)
    conversions = []
    for match in AMOUNT_PATTERN.finditer(normalized):
        if DATE_TAIL.search(normalized[max(0, match.start() - 2) : match.start()]):
            continue
        first = find_unit(normalized, low, match.end(), language)
        link = PATTERNS.link.match(normalized, first[0]) if first else None
        second = find_unit(normalized, low, link.end(), language) if link else None
        if not (first and link and second) or first[1] == second[1]:
            continue
        if get_unit_base(first[1]).symbol == get_unit_base(second[1]).symbol:
            one, other = _parse_number(match.group()), _parse_number(link["n"])
            forward = _convert_exactly(one.value, first[1], second[1])
            backward = _convert_exactly(other.value, second[1], first[1])
            is_near = abs(forward - other.value) <= NEAR_SHARE * abs(forward)
            holds = is_rounded_value(forward, other) or (
                is_near and is_rounded_value(backward, one)
            )
            start, end = link.start("n"), second[0]
            conversions.append(
                StatedConversion(
                    first=normalized[match.start() : first[0]],
                    second=normalized[start:end],
                    holds=holds,
                    instead=f"{format_value(forward)}{normalized[link.end() : end]}",
                    start=start,
                    end=end,
                )
            )
    return conversions


def _parse_number(written: str) -> StatedValue:
    """Parse a number; a whole number counts as rounded to its last non-zero digit."""
    whole, _, decimals = written.replace(",", "").partition(".")
    step = Fraction(1, 10 ** len(decimals))
    if not decimals and whole.strip("-0"):
        step *= 10 ** (len(whole) - len(whole.rstrip("0")))
    value = Fraction(f"{whole}.{decimals or 0}")
    return StatedValue(value, step, is_about=True)


class UnitsInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that states conversions, or one amount to convert.

    `text` is the statement, in `language` (an ISO 639-1 code). Or give `value` with its `unit` and
    the unit wanted in `to`, as words or signs: 100, km/h, mph.
    """

    text: str = ""
    language: str = "en"
    value: float = 0.0
    unit: str = ""
    to: str = ""


def check_conversions(given: UnitsInput, tool_context: ToolContext) -> ToolAnswer:
    """Convert the amount, or check the conversions that the text states.

    Raises InputError if a unit is unknown, or the two measure different things.
    """
    if given.unit or given.to:
        converted = format_value(convert_unit(given.value, given.unit, given.to))
        words = f"{given.value:g} {given.unit} is {converted} {given.to}."
        return ToolAnswer("unclear", words, {"value": converted, "unit": given.to})
    conversions = find_conversions(given.text, given.language)
    gave = {
        "conversions": [
            {"from": one.first, "to": one.second, "holds": one.holds, "worked_out": one.instead}
            for one in conversions
        ]
    }
    if not conversions:
        return ToolAnswer("unclear", "The text states no conversion.", gave, has_something=False)
    wrong = next((one for one in conversions if not one.holds), None)
    if wrong is None:
        return ToolAnswer(
            "supported", f"{conversions[0].first} is {conversions[0].second}.", gave, P_IF_RIGHT
        )
    words = f"{wrong.first} is {wrong.instead}, not {wrong.second}."
    return ToolAnswer(
        "hallucinated",
        words,
        gave,
        P_IF_WRONG,
        wrong.start,
        wrong.end,
        instead=wrong.instead,
        category="number_or_date",
    )


def read_conversion(statement: Statement | None, case: Case) -> UnitsInput | None:
    """Return the statement as input if it states a conversion, else None."""
    text = case.response if statement is None else case.response[statement.start : statement.end]
    if len(text) > MAX_TEXT_CHARS or not find_conversions(text, case.language):
        return None
    return UnitsInput(text, case.language)


TOOL = Tool(
    name="units",
    description=load_words("descriptions")["units"],
    takes=UnitsInput,
    work=check_conversions,
    examples=load_examples("units", UnitsInput),
    reads=read_conversion,
)
