"""Quantities in a text: numbers with their units, currencies, per cent, scales and bounds.

Units are converted to pint's base units, currencies never. Years and days also appear as numbers:
callers drop what overlaps a date.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Literal

from core.documents.segmentation import FUNCTION_WORDS, stem_word
from core.tools.numbers import MEASURE_WORDS, BareNumber, find_numbers
from core.tools.vocabulary import (
    PER_PATTERN,
    PatternTable,
    QuantityBound,
    UnitBase,
    find_unit,
    find_unit_word,
    get_unit_base,
    is_inside_word,
    is_unspaced,
    load_currency_words,
    load_vocabulary,
    lower_text,
    normalize_chars,
    skip_blank,
    skip_blank_back,
)

PATTERNS = PatternTable("quantities")
Agreement = Literal["same", "different", "incomparable"]
MAX_TEXT_CHARS = 20_000
MAX_VALUE = 1e300
ABOUT_SHARE = 0.1  # "about" allows a tenth of the value as written
MIN_OVERLAP = 0.5  # share of the shorter of two ranges that must lie in the longer
RELATIVE_TOLERANCE = 1e-9
MONEY_SCALES = {"m": 1e6, "mm": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12, "tr": 1e12}
NEXT_WORD = re.compile(r"[ \u00a0-](?P<word>[^\W\d_⁰¹²³⁴-⁹]+)")
OF_A_PATTERN = re.compile(r" of an? | an? ")
OF_WORDS = (" of ", " der ", " des ", " de ", " di ", " van ", " av ")
COUNTED_WORD = re.compile(r"[ \u00a0][^\W\d_]+")
DISTANCE_BASES = frozenset([*range(2, 11), 20, 25, 30, 50, 100, 1000, 10_000, 100_000, 1_000_000])
COMPOUND_UNITS = frozenset(["second", "meter", "kilogram"])
PERSON_COUNTERS = "人名位"
NO_BOUND_MARK = re.compile(r"(<[^<>\n]*|[-=]|(^|\n)\s*)$")
MAX_RANGE_RATIO = 1000  # the ends of a range differ by at most this factor
PLURAL_NOUNS = {
    "people": "person", "persons": "person", "men": "man", "women": "woman", "feet": "foot",
    "children": "child", "teeth": "tooth", "mice": "mouse", "lives": "life", "wives": "wife",
    "cattle": "cattle", "police": "police", "species": "species", "sheep": "sheep", "fish": "fish",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A number with what it counts or measures; `low` and `high` are in `unit`.

    `[start, end)` covers the number and its unit, percent or currency sign, not the bound's words;
    offsets are code points of the text. `low == high` for a single value; "10-20" and "hundreds"
    have `low < high`. `unit` is pint's base unit ("meter", "kilogram / meter ** 3"), "percent",
    "percentage_point", "times", an ISO currency code, one of them per a unit ("EUR / meter ** 3"),
    a unit of our own ("degree", "decibel", "pixel") or "" for a bare number. `noun` is the stem of
    what a bare number counts. `step` is the size of the last written digit and `margin` how far
    "about" may reach, both in `unit`. `offset` is what a temperature's absolute zero adds to it:
    without it the value is a difference. `other_factor` is not 1 if the grouping is ambiguous
    ("39,000" in Spanish): the value times it is the other reading.
    """

    start: int
    end: int
    text: str
    low: float
    high: float
    unit: str
    noun: str = ""
    bound: QuantityBound = "exact"
    ordinal: bool = False
    step: float = 1.0
    margin: float = 0.0
    offset: float = 0.0
    other_factor: float = 1.0


NO_UNIT_BASE = UnitBase("")


@dataclass(frozen=True)
class _MeasuredNumber:
    """A number with its unit during parsing: in "10-20 million" a range shares the scale."""

    start: int
    end: int
    number: BareNumber
    scale: float | None = None
    base: UnitBase = NO_UNIT_BASE
    noun: str = ""
    bound: QuantityBound = "exact"

    @property
    def low(self) -> float:
        return self.number.low * (self.scale or 1.0) * self.base.factor + self.base.offset

    @property
    def high(self) -> float:
        return self.number.high * (self.scale or 1.0) * self.base.factor + self.base.offset


@lru_cache(maxsize=4_096)
def _find_all(text: str, language: str) -> tuple[Quantity, ...]:
    reader = _QuantityReader(text, language)
    quantities: list[_MeasuredNumber] = []
    numbers = find_numbers(text, reader.text, reader.low, reader.words)
    for number, following in zip_longest(numbers, numbers[1:]):
        last = quantities[-1] if quantities else None
        if last and (number.start < last.end or (number.share and last.number.ordinal)):
            continue  # "the second half" is not a share
        gap = reader.low[number.end : following.start] if following else ""
        is_of_ratio = PATTERNS.ratio.fullmatch(gap)
        quantity = reader.quantity_at(replace(number, needs="") if is_of_ratio else number)
        if quantity and max(abs(quantity.low), abs(quantity.high)) < MAX_VALUE:
            # The sign in "5$7" belongs to the first amount.
            if quantities and quantity.start < quantities[-1].end:
                quantity = replace(quantity, start=number.start)
            joined = _join_neighbours(reader, quantities[-1], quantity) if quantities else None
            quantities[-1:] = [joined] if joined else [*quantities[-1:], quantity]
    return tuple(_make_quantity(quantity, text) for quantity in quantities)


def find_quantities(text: str, language: str = "en") -> list[Quantity]:
    """Return the quantities of a text in order, none overlapping; `language` is a BCP 47 tag."""
    return list(_find_all(text[:MAX_TEXT_CHARS], language))


class _QuantityReader:
    """Reads the words around a number: scale, unit or currency, noun and bound."""

    def __init__(self, text: str, language: str) -> None:
        self.text, self.language = normalize_chars(text), language
        self.low, self.words = lower_text(self.text), load_vocabulary(language)

    def quantity_at(self, number: BareNumber) -> _MeasuredNumber | None:
        """Return the number with its unit and bound, or None if it is no quantity."""
        low, end, start, base = self.low, number.end, number.start, UnitBase("")
        half = self.words.and_half.at(low, skip_blank(low, end))
        if half and number.step == 1 and not number.ordinal and not number.share:
            value = number.low + 0.5
            end, number = half[0], replace(number, low=value, high=value, step=0.1)
        money = self._currency_before(start)
        end, scale = self._read_scale(number, end, is_money=money is not None)
        if number.share:
            end, number, base = self._read_share(end, number)
        elif number.times:
            base = UnitBase("times")
        elif not number.ordinal:
            start, end, base = self._read_unit(start, end, money)
            end, number, base = self._read_times(end, number, base)
        if number.needs == "of or unit" and not base.symbol and low.startswith(OF_WORDS, end):
            low_share, high_share = 100 * number.low, 100 * number.high
            number = replace(number, low=low_share, high=high_share, step=100 * number.step)
            base = UnitBase("percent")
        elif number.needs and not (base.symbol or scale or self._read_bound_before(start)):
            return None
        if not base.symbol and is_inside_word(self.text, end) and not number.ordinal:
            return None  # "747s", "4x4"
        quantity = _MeasuredNumber(start, end, number, scale, base)
        if not base.symbol:
            quantity = self._add_counted(quantity)
        return replace(quantity, bound=self._read_bound(quantity))

    def _read_times(
        self, end: int, number: BareNumber, base: UnitBase
    ) -> tuple[int, BareNumber, UnitBase]:
        """Read 2.4x, and "times" after a number."""
        if base.symbol or not re.match(r"x(?!\w)|[ -]times(?!\w)", self.low[end : end + 7]):
            return end, number, base
        return (end + 1 if self.low[end] == "x" else end), number, UnitBase("times")

    def _currency_before(self, position: int) -> tuple[int, str] | None:
        """Return start and code of a currency before the number, past one blank."""
        end = skip_blank_back(self.low, position)
        currency = load_currency_words(self.language)[0].before(self.low, end)
        if currency is None:
            return None
        written = self.text[currency[0] : end]
        is_word = written.isalpha() and written.isascii() and written.lower() not in ("rs", "rp")
        return None if is_word and not written.isupper() else currency

    def _read_scale(
        self, number: BareNumber, end: int, *, is_money: bool
    ) -> tuple[int, float | None]:
        """Return the end of the number's scale words or letters, and their product."""
        if number.ordinal:
            return end, None
        letters = None if number.spelled else PATTERNS.letters.match(self.text, end)
        if letters:
            word = letters["word"]
            tight = not letters["gap"]
            is_metre = word == "m" and not is_money
            if word in ("k", "K") and (tight or is_money):
                return letters.end(), 1e3
            if is_money or (tight and word == "M"):
                return letters.end(), MONEY_SCALES.get(word.lower(), 1.0)
            if is_metre and tight and self._is_plural_next(letters.end()):
                return letters.end(), 1e6
        scale = None
        while True:
            start = skip_blank(self.low, end)
            start += start == end and self.low[end : end + 1] == "-"
            match = self.words.scales.at(self.low, start)
            if match is None:
                return end, scale
            end, scale = match[0], (scale or 1.0) * match[1]

    def _is_plural_next(self, position: int) -> bool:
        word = NEXT_WORD.match(self.low, position)
        return bool(word and word["word"].endswith("s") and word["word"] not in FUNCTION_WORDS)

    def _read_unit(
        self, start: int, end: int, money: tuple[int, str] | None
    ) -> tuple[int, int, UnitBase]:
        """Return start, end and base of the number with a currency, percent or unit."""
        low = self.low
        if money:
            after = self._currency_after(end)
            end = after[0] if after and after[1] == money[1] else end
            return money[0], *self._read_per(end, money[1])
        gap = skip_blank(low, end)
        percent = self.words.percent.at(low, gap + (low[gap : gap + 1] == "-"))
        if percent:
            return start, percent[0], get_unit_base(percent[1])
        leading = self.words.percent.before(low, skip_blank_back(low, start))
        if leading and self.words.own.get("percent_first"):
            return leading[0], end, get_unit_base(leading[1])
        if after := self._currency_after(end):
            return start, *self._read_per(*after)
        if unit := find_unit(self.text, low, end, self.language):
            return start, unit[0], get_unit_base(unit[1])
        return start, end, UnitBase("")

    def _currency_after(self, position: int) -> tuple[int, str] | None:
        """Return end and code of a currency after a number ending at `position`."""
        start = position + (self.low[position : position + 1] in (" ", "\u00a0", "-"))
        currency = load_currency_words(self.language)[1].at(self.low, start)
        if currency is None or not self.low[position:]:
            return None
        written = self.text[start : currency[0]]
        if len(written) == 3 and written.upper() == currency[1] and not written.isupper():
            return None
        # "10 $5 notes": the sign opens the next amount.
        is_sign = written[-1] in "$£€¥"
        opens_next = is_sign and self.low[currency[0] : currency[0] + 1].isdigit()
        return None if opens_next else currency

    def _read_per(self, end: int, currency: str) -> tuple[int, UnitBase]:
        """Return end and base of an amount of money, perhaps per unit: euros per litre."""
        per = PER_PATTERN.match(self.low, end)
        other = find_unit_word(self.text, self.low, per.end(), self.language) if per else None
        if other is None or (self.text[end:].startswith(" a ") and self.language[:2] != "en"):
            return end, UnitBase(currency)
        base = get_unit_base(other[1])
        return other[0], UnitBase(f"{currency} / {base.symbol}", 1 / base.factor)

    def _read_share(self, end: int, number: BareNumber) -> tuple[int, BareNumber, UnitBase]:
        """Read a share as per cent, or of a unit as in "three quarters of an hour"."""
        of = OF_A_PATTERN.match(self.low, end)
        unit = find_unit(self.text, self.low, of.end() - 1, self.language) if of else None
        if unit is None:
            return end, number, UnitBase("percent")
        value = number.low / 100
        return unit[0], replace(number, low=value, high=value, step=0.05), get_unit_base(unit[1])

    def _add_counted(self, quantity: _MeasuredNumber) -> _MeasuredNumber:
        """Add the age, the unit after "or more", or the counted noun to a bare number."""
        number, low = quantity.number, self.low
        if number.ordinal or quantity.scale:
            return replace(quantity, noun=self._read_noun(quantity.end, number))
        if self.words.ages.before(low, skip_blank_back(low, quantity.start)):
            return replace(quantity, base=get_unit_base("year"))
        after = self.words.bounds_after.at(low, skip_blank(low, quantity.end))
        end = after[0] if after else quantity.end
        of = re.match(r" (?:of|de|di|von)(?= )| d'", low[end : end + 5]) if number.spelled else None
        end = end + of.end() if of else end
        unit = find_unit(self.text, low, end, self.language) if end > quantity.end else None
        if unit:
            return replace(quantity, end=unit[0], base=get_unit_base(unit[1]))
        return replace(quantity, noun=self._read_noun(end, number))

    def _read_noun(self, position: int, number: BareNumber) -> str:
        """Return the stem of what is counted: in English a plural within three words."""
        if self.text[position : position + 1] in tuple(PERSON_COUNTERS) and position < len(
            self.text
        ):
            return "人"
        words: list[str] = []
        language = self.words.language
        while len(words) < (3 if language == "en" and not number.ordinal else 1):
            match = NEXT_WORD.match(self.low, position)
            if match is None or match["word"] in FUNCTION_WORDS or is_unspaced(match["word"][0]):
                break
            words.append(match["word"])
            position = match.end()
        plural = next((w for w in words if w.endswith("s") or w in PLURAL_NOUNS), None)
        noun = PLURAL_NOUNS.get(plural, plural) if plural else next(iter(words), "")
        return stem_word(noun, language) if noun else ""

    def _read_bound_before(self, start: int) -> tuple[int, QuantityBound] | None:
        """Return the bound before the number, also past an article: "almeno il 40 %"."""
        place = skip_blank_back(self.low, start)
        article = PATTERNS.article.search(self.low, max(0, place - 5), place)
        places = (place, article.start()) if article else (place,)
        bounds = (self.words.bounds_before.before(self.low, at) for at in places)
        # A ">" that ends a tag or an arrow, or opens a quoted line, is no bound.
        for bound in bounds:
            if bound and not (
                self.low[bound[0]] == ">" and NO_BOUND_MARK.search(self.low, 0, bound[0])
            ):
                return bound
        return None

    def _read_bound(self, quantity: _MeasuredNumber) -> QuantityBound:
        if before := self._read_bound_before(quantity.start):
            return "exact" if quantity.number.ordinal and before[1] != "about" else before[1]
        low, bounds = self.low, self.words.bounds_after
        places = [quantity.end, skip_blank(low, quantity.end)]
        noun = COUNTED_WORD.match(low, quantity.end) or MEASURE_WORDS.match(low, quantity.end)
        places += [noun.end(), skip_blank(low, noun.end())] if noun else []
        after = next((bound for bound in (bounds.at(low, p) for p in places) if bound), None)
        if after is None or low[after[0] : after[0] + 2].strip()[:1].isdigit():
            return "about" if quantity.number.is_about else "exact"
        return after[1]


def _join_neighbours(
    reader: _QuantityReader, one: _MeasuredNumber, other: _MeasuredNumber
) -> _MeasuredNumber | None:
    """Join two neighbours that make one value: 0.9 ± 0.1, 5 ft 10 in, 1 in 5, 10-20 km."""
    gap = reader.low[one.end : other.start]
    if len(gap) > 12 or one.number.ordinal or other.number.ordinal:
        return None
    joined = (
        _join_plus_minus(gap, one, other)
        or _join_compound(gap, one, other)
        or _join_ratio(gap, one, other)
    )
    return joined or _join_range(reader, gap, one, other)


def _join_plus_minus(
    gap: str, one: _MeasuredNumber, other: _MeasuredNumber
) -> _MeasuredNumber | None:
    if not PATTERNS.plus_minus.fullmatch(gap) or one.base.symbol not in ("", other.base.symbol):
        return None
    value, error = one.number.low, abs(other.number.low)
    number = replace(other.number, low=value - error, high=value + error)
    return replace(other, start=one.start, number=number, bound=one.bound)


def _join_compound(
    gap: str, one: _MeasuredNumber, other: _MeasuredNumber
) -> _MeasuredNumber | None:
    """Join one value in two units: 5 ft 10 in, 2 hours and 30 minutes, 1小时30分."""
    symbol = one.base.symbol
    is_alike = symbol in COMPOUND_UNITS and other.base.symbol == symbol
    if not is_alike or one.scale or other.scale:
        return None
    is_smaller = other.base.factor < one.base.factor and other.low < one.base.factor
    is_whole = one.number.step >= 1 and one.number.low == one.number.high
    if not (
        is_smaller and is_whole and PATTERNS.compound.fullmatch(gap) and other.bound == "exact"
    ):
        return None
    if symbol != "second" and gap.strip() not in ("", ","):
        return None
    value = one.number.low * one.base.factor / other.base.factor + other.number.low
    number = replace(other.number, start=one.number.start, low=value, high=value)
    return replace(one, end=other.end, number=number, base=other.base)


def _join_ratio(gap: str, one: _MeasuredNumber, other: _MeasuredNumber) -> _MeasuredNumber | None:
    """Join a ratio to a share in per cent: one in five, 3 out of 10."""
    top, bottom = one.number.low, other.number.low
    if one.base.symbol or other.base.symbol or one.scale or other.scale or not 0 < top < bottom:
        return None
    is_in = " in " in gap and (bottom not in DISTANCE_BASES or (top > 1 and bottom < 5))
    if not PATTERNS.ratio.fullmatch(gap) or is_in:
        return None
    value = 100 * top / bottom
    number = replace(one.number, low=value, high=value, step=50 / bottom)
    return replace(one, end=other.end, number=number, base=UnitBase("percent"), noun="")


def _join_range(
    reader: _QuantityReader, gap: str, one: _MeasuredNumber, other: _MeasuredNumber
) -> _MeasuredNumber | None:
    """Join two values with a dash or "to" between them, the first the smaller.

    "from 10 to 20" gives the two ends of a change or a route, and stays two values.
    """
    lists, before = reader.words.own, reader.low[: one.start].rstrip().rpartition(" ")
    leads = {before[2], f"{before[0].rpartition(' ')[2]} {before[2]}", before[0].rpartition(" ")[2]}
    word = gap.strip()
    is_between = bool(leads & set(lists.get("between", ())))
    is_to = word in lists.get("to", ()) and word not in lists.get("and", ("and",))
    is_dash = PATTERNS.dash.fullmatch(gap) is not None
    is_range = is_dash or is_between or (is_to and not leads & set(lists.get("from", ())))
    if word in ("or", "ou", "oder", "o", "eller", "of", "tai", "nebo", "или", "lub", "veya"):
        is_range = 0 < other.number.low - one.number.low <= 1 and one.number.step >= 1
    if not is_range or not (is_dash or word in lists.get("to", ()) or len(word) <= 6):
        return None
    if one.number.low != one.number.high or other.number.low != other.number.high:
        return None
    is_priced = other.start < other.number.start and one.start == one.number.start
    is_year = one.scale is None and one.number.low >= 1000
    if is_priced or (is_year and other.low > MAX_RANGE_RATIO * one.low):
        return None  # "in 2021 to $4.5 million": a year and a result
    if not other.base.symbol and one.start < one.number.start:  # $10-20
        other = replace(other, base=one.base)
    if one.scale is None and one.number.low < 1000:
        one = replace(one, scale=other.scale)
    one = one if one.base.symbol else replace(one, base=other.base)
    if one.base.symbol != other.base.symbol or one.low >= other.low:
        return None
    unit = other.base.factor * (other.scale or 1.0)
    number = replace(
        other.number,
        start=one.number.start,
        low=(one.low - other.base.offset) / unit,
        high=(other.high - other.base.offset) / unit,
        step=max(one.number.step, other.number.step),
    )
    return replace(other, start=one.start, number=number, bound=one.bound)


def _make_quantity(measured: _MeasuredNumber, text: str) -> Quantity:
    low, high = sorted((measured.low, measured.high))
    factor, number, scale = abs(measured.base.factor), measured.number, measured.scale or 1.0
    size = min(abs(number.low), abs(number.high))
    return Quantity(
        start=measured.start,
        end=measured.end,
        text=text[measured.start : measured.end],
        low=low,
        high=high,
        unit=measured.base.symbol,
        noun=measured.noun,
        bound=measured.bound,
        ordinal=number.ordinal,
        step=number.step * (scale if scale >= 1000 else 1.0) * factor,
        margin=ABOUT_SHARE * size * scale * factor,
        offset=measured.base.offset,
        other_factor=number.other_factor,
    )


def match_quantities(one: Quantity, other: Quantity) -> Agreement:
    """Return whether two quantities can both be true of the same thing; symmetric.

    Exact values agree within half the last written digit of the coarser one: "1.2 million" agrees
    with 1,204,000, "400" does not agree with 412. "about" allows a tenth of the value either way.
    """
    if one.ordinal != other.ordinal:
        return "incomparable"
    if one.unit != other.unit:
        return "different" if _is_money(one.unit) and _is_money(other.unit) else "incomparable"
    if not one.unit and one.noun and other.noun and one.noun != other.noun:
        return "incomparable"
    readings = ((one, other), *_list_readings(one, other))
    return "same" if any(_is_compatible(a, b) for a, b in readings) else "different"


def match_claimed_quantity(claimed: Quantity, source: Quantity) -> Agreement:
    """Return whether a source's quantity makes a claimed one true; not symmetric.

    As `match_quantities`, but a claimed bound must allow all that the source's range or bound
    allows: "more than 500" differs from "more than 400". It is incomparable with a range that
    reaches beyond it, and where only the source's minimum is higher: "at least 16" may be a rule,
    which "at least 12" is not, or a count, from which that follows.
    """
    match = match_quantities(claimed, source)
    if match != "same" or "about" in (claimed.bound, source.bound):
        return match
    (low, high), (least, most) = _allowed_interval(claimed), _allowed_interval(source)
    is_open, is_within = math.inf in (high, -low), low <= least and most <= high
    if claimed.bound == source.bound and claimed.bound in ("at_least", "at_most"):
        is_equal = _is_close(claimed.low, source.low) and _is_close(claimed.high, source.high)
        is_weaker = is_within and claimed.bound == "at_least"
        return match if is_equal else "incomparable" if is_weaker else "different"
    if not is_open or least == most or is_within:
        return match
    is_stronger = high == most == math.inf or low == least == -math.inf
    return "different" if is_stronger else "incomparable"


def is_inside_range(value: Quantity, source: Quantity) -> bool:
    """Return True if the value is one of several that the source's range or bound allows."""
    low, high = _allowed_interval(source)
    is_equal = _is_close(value.low, source.low) and _is_close(value.high, source.high)
    return low < high and source.bound != "about" and not (is_equal and value.bound == source.bound)


def _is_money(unit: str) -> bool:
    return unit[:3].isupper() and len(unit.partition(" / ")[0]) == 3


def _list_readings(one: Quantity, other: Quantity) -> Iterator[tuple[Quantity, Quantity]]:
    """Yield other readings: as temperature differences, and with the other grouping."""
    if one.offset or other.offset:
        yield _subtract_offset(one), _subtract_offset(other)
    if one.other_factor != 1:
        yield multiply_quantity(one, one.other_factor), other
    if other.other_factor != 1:
        yield one, multiply_quantity(other, other.other_factor)


def _subtract_offset(quantity: Quantity) -> Quantity:
    low, high = quantity.low - quantity.offset, quantity.high - quantity.offset
    return replace(quantity, low=low, high=high)


def multiply_quantity(quantity: Quantity, factor: float) -> Quantity:
    """Return the quantity times the factor, with its precision."""
    return replace(
        quantity,
        low=quantity.low * factor,
        high=quantity.high * factor,
        step=quantity.step * factor,
        margin=quantity.margin * factor,
    )


def _is_compatible(one: Quantity, other: Quantity) -> bool:
    is_alike = _is_close(one.low, other.low) and _is_close(one.high, other.high)
    if one.bound == other.bound and is_alike:
        return True
    is_exact = one.bound == other.bound == "exact"
    if is_exact and one.low == one.high and other.low == other.high:
        slack = 0.0 if one.ordinal else max(one.step, other.step) / 2
        return abs(one.low - other.low) <= slack * (1 + RELATIVE_TOLERANCE)
    return _is_overlapping(one, other)


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE)


def _allowed_interval(quantity: Quantity) -> tuple[float, float]:
    """Return the least and greatest allowed value; "more than 400" excludes 400."""
    low, high = quantity.low, quantity.high
    inside = 10 * RELATIVE_TOLERANCE * max(1.0, abs(low), abs(high))
    return {
        "exact": (low, high),
        "about": (low - quantity.margin, high + quantity.margin),
        "at_least": (low, math.inf),
        "more_than": (low + inside, math.inf),
        "at_most": (-math.inf, high),
        "less_than": (-math.inf, high - inside),
    }[quantity.bound]


def _is_overlapping(one: Quantity, other: Quantity) -> bool:
    """Return True if the intervals overlap; ranges must share half of the shorter one."""
    first, second = _allowed_interval(one), _allowed_interval(other)
    shared = min(first[1], second[1]) - max(first[0], second[0])
    if shared < -_rounding_slack(one, other):
        return False
    # "at least 300" and "at most 300" say nearly the opposite.
    is_opposite = {one.bound, other.bound} == {"at_least", "at_most"}
    if is_opposite and abs(shared) <= RELATIVE_TOLERANCE * max(1.0, abs(one.low)):
        return False
    lengths = [high - low for low, high in (first, second)]
    if one.low < one.high and other.low < other.high and max(lengths) < math.inf:
        return shared >= MIN_OVERLAP * min(lengths)
    return True


def _rounding_slack(one: Quantity, other: Quantity) -> float:
    """Return the allowed rounding; strict bounds and counts allow none."""
    eps = RELATIVE_TOLERANCE * max(1.0, abs(one.low), abs(other.low))
    is_strict = {"more_than", "less_than"} & {one.bound, other.bound}
    is_count = not one.unit and one.step == 1 == other.step
    return eps if is_strict or is_count else max(one.step, other.step) / 2
