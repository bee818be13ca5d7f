"""Quantities in a text: numbers with what they count or measure, and whether two agree.

`find_quantities` looks at digits, number words and East Asian numerals; then at the scale,
currency, percent sign, unit or noun beside each, and at the words that bound it. Years and days
come out as numbers too: callers leave out what overlaps a date. `compare` is in `compare_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from core.tools.values.compare_values import compare, describe
from core.tools.values.counted import counted_noun, label_before
from core.tools.values.currencies import currency_after, currency_before
from core.tools.values.digits import Number, digit_numbers
from core.tools.values.found_quantity import Context, FoundQuantity, finished, unit_base
from core.tools.values.han_numbers import MEASURES, han_numbers
from core.tools.values.kinds import Bound, Match, Quantity
from core.tools.values.number_words import word_numbers
from core.tools.values.plain import joined, lower, plain, skip_blank
from core.tools.values.ranges import merged
from core.tools.values.units import unit_at
from core.tools.values.value_words import ValueWords, value_words

__all__ = ["Match", "Quantity", "compare", "describe", "find_quantities"]

LETTER_SCALES = {"k": 1e3, "K": 1e3}
MONEY_SCALES = {
    "m": 1e6, "M": 1e6, "mm": 1e6, "b": 1e9, "B": 1e9, "t": 1e12, "T": 1e12, "tr": 1e12,
}  # fmt: skip
LETTERS = re.compile(r"(?P<gap>[ \u00a0]?)(?P<word>[kKmMbBtT]{1,2}|tr)(?![\w/²³^])")
OF_A_UNIT = re.compile(r" of an? | an? ")
COUNTED = re.compile(r"[ \u00a0][^\W\d_]+")
TIMES = re.compile(r"x(?!\w)")
OF_COUNTED = re.compile(r" (?:of|de|di|von)(?= )| d'")
DIGIT = re.compile(r"[0-9½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")
LONGEST_TEXT = 20_000
HUGE = 1e300


def find_quantities(text: str, language: str = "en") -> list[Quantity]:
    """The quantities of a text in order, none overlapping; offsets are in `text`."""
    words = value_words(language)
    plain_text = plain(text[:LONGEST_TEXT])
    context = Context(text, plain_text, lower(plain_text), language)
    found: list[FoundQuantity] = []
    for number in _numbers(context, words):
        if found and number.start < found[-1].end:
            continue
        quantity = _attached(context, number, words)
        if quantity and max(abs(quantity.low), abs(quantity.high)) < HUGE:
            if found and quantity.start < found[-1].end:  # the sign in "5$7" is the first one's
                quantity = replace(quantity, start=number.start)
            found.append(quantity)
    return [finished(quantity, text) for quantity in merged(context, found, words)]


def _numbers(context: Context, words: ValueWords) -> list[Number]:
    """Numbers of all kinds in order; of overlapping ones the kind that says more."""
    chosen: list[Number] = []
    kinds: tuple[Iterable[Number], ...] = (
        han_numbers(context.plain),
        digit_numbers(context.text, context.plain, words) if _has_digit(context.plain) else (),
        word_numbers(context.plain, context.low, words),
    )
    taken: set[int] = set()
    for kind in kinds:
        for number in kind:
            places = range(number.start, number.end)
            if number.start < number.end and taken.isdisjoint(places):
                chosen.append(number)
                taken.update(places)
    return sorted(chosen, key=lambda number: number.start)


def _has_digit(text: str) -> bool:
    return DIGIT.search(text) is not None


def _attached(context: Context, number: Number, words: ValueWords) -> FoundQuantity | None:
    """The number with its neighbours, or None where it turns out to be no quantity."""
    low = context.low
    before = currency_before(context.plain, low, number.start, context.language)
    end, scale = _scale(context, number, words, is_money=before is not None)
    start, unit = number.start, ""
    if number.share and scale is None:
        end, number, unit = _share(context, end, number)
    elif not number.ordinal and not number.noun:
        start, end, unit = _unit(context, number, end, before, words)
    if number.needs and not (unit or scale or _is_of(low, end, number)):
        return None
    if number.needs == "of or unit" and not unit:
        number, unit = _as_share(number), "percent"
    if TIMES.match(low, end) and not (unit or scale or number.ordinal):
        end, number = end + 1, replace(number, noun="time")
    if not unit and joined(context.plain, end) and not number.ordinal:
        return None  # "747s", "80s", "4x4"
    found = FoundQuantity(
        start, end, number, scale, unit, unit_base(unit), number.noun, number.bound, number.ordinal
    )
    return _bounded(
        context, found if unit or number.noun else _counting(context, found, words), words
    )


def _counting(context: Context, found: FoundQuantity, words: ValueWords) -> FoundQuantity:
    """A bare number with what it counts, its label, or the unit that "of" or "aged" gives it."""
    low, end, number = context.low, found.end, found.number
    known = found.scale or found.ordinal or number.spelled
    label = "" if known else _label(context, found.start, end, words)
    counted = _after_bound(low, end, number, words)
    unit = unit_at(context.plain, low, counted, context.language) if counted != end else None
    if unit:
        return replace(found, end=unit[0], unit=unit[1], base=unit_base(unit[1]))
    if not label and (age := _age(low, found.start, words)):
        return replace(found, unit=age, base=unit_base(age))
    alone = number.low == number.high == 1
    noun = label or counted_noun(context.plain, low, counted, words, ranks=found.ordinal, one=alone)
    return replace(found, noun=noun, ordinal=found.ordinal or bool(label))


def _bound_after(low: str, end: int, words: ValueWords) -> tuple[int, Bound] | None:
    """The bound after a quantity, or after the one word that it counts."""
    after = words.bounds_after.at(low, end) or words.bounds_after.at(low, skip_blank(low, end))
    if after:
        is_sum = low[after[0] - 1] == "+" and (after[0] - end > 1 or low[after[0] :][:1].isdigit())
        return None if is_sum or low[after[0] :][:1].isdigit() else after
    counted = COUNTED.match(low, end) or MEASURES.match(low, end)
    if counted is None:
        return None
    after = words.bounds_after.at(low, skip_blank(low, counted.end()))
    return after if after and low[counted.end() : after[0]].strip() not in ("plus", "+") else None


def _after_bound(low: str, end: int, number: Number, words: ValueWords) -> int:
    """Where what is counted starts: after "or more", "+", and the "of" of "dozens of"."""
    after = words.bounds_after.at(low, end) or words.bounds_after.at(low, skip_blank(low, end))
    end = after[0] if after else end
    of = OF_COUNTED.match(low, end) if number.spelled else None
    return of.end() if of else end


def _as_share(number: Number) -> Number:
    return replace(
        number, low=100 * number.low, high=100 * number.high, step=100 * number.step, share=True
    )


def _is_of(low: str, end: int, number: Number) -> bool:
    if number.needs == "unit":
        return bool(MEASURES.match(low, end)) and not low.startswith("一", number.start)
    return low.startswith((" of ", " der ", " des ", " de ", " di ", " van ", " av "), end)


def _scale(
    context: Context, number: Number, words: ValueWords, *, is_money: bool
) -> tuple[int, float | None]:
    """Where the number's scale words or letters end, and their product."""
    end, scale = number.end, None
    if number.ordinal:
        return end, None
    letters = None if number.spelled else LETTERS.match(context.plain, end)
    if letters:
        written = letters["word"]
        known = LETTER_SCALES if not letters["gap"] or is_money else {}
        factor = (known | (MONEY_SCALES if is_money else {})).get(written)
        if factor is None and written == "m" and not letters["gap"]:
            metre = unit_at(context.plain, context.low, end, context.language)
            factor = None if metre else 1e6
        if factor:
            return letters.end(), factor
    while True:
        start = skip_blank(context.low, end)
        if start == end and context.low[end : end + 1] == "-":
            start = end + 1
        match = words.scales.at(context.low, start)
        if match is None:
            return end, scale
        end, scale = match[0], (scale or 1.0) * match[1]


def _unit(
    context: Context,
    number: Number,
    end: int,
    before: tuple[int, str] | None,
    words: ValueWords,
) -> tuple[int, int, str]:
    """Start, end and unit of the number with a currency, percent or unit beside it."""
    text, low = context.plain, context.low
    if before:
        after = currency_after(text, low, end, context.language)
        return before[0], after[0] if after else end, before[1]
    gap = skip_blank(low, end)
    percent = words.percent.at(low, gap if low[gap : gap + 1] != "-" else gap + 1)
    if percent is None and low[end : end + 1] == "-":
        percent = words.percent.at(low, end + 1)
    if percent:
        return number.start, percent[0], percent[1]
    leading = words.percent.before(low, skip_back(low, number.start))
    if leading and words.own.get("percent_first") and number.start - leading[0] < 12:
        return leading[0], end, leading[1]
    money = currency_after(text, low, end, context.language)
    if money:
        return number.start, money[0], money[1]
    unit = unit_at(text, low, end, context.language)
    if unit:
        return number.start, unit[0], unit[1]
    return number.start, end, ""


def skip_back(low: str, position: int) -> int:
    """The position before one blank, if there is one."""
    return position - 1 if position and low[position - 1] in " \u00a0" else position


def _share(context: Context, end: int, number: Number) -> tuple[int, Number, str]:
    """A share as per cent; or of a unit, as in "half a mile"."""
    of = OF_A_UNIT.match(context.low, end)
    if of:
        unit = unit_at(context.plain, context.low, of.end() - 1, context.language)
        if unit:
            value = number.low / 100
            part = replace(number, low=value, high=value, step=0.05, share=False)
            return unit[0], part, unit[1]
    return end, number, "percent"


def _label(context: Context, start: int, end: int, words: ValueWords) -> str:
    """The label before a bare number that counts nothing itself."""
    label = label_before(context.plain, context.low, start, end, words)
    if not label or label in words.labels or label == "number":
        return label
    follows = counted_noun(context.plain, context.low, end, words, ranks=False)
    return "" if follows else label


def _age(low: str, start: int, words: ValueWords) -> str:
    """The unit of the number after "aged" and its like."""
    return "year" if words.ages.before(low, skip_back(low, start)) else ""


def _bounded(context: Context, found: FoundQuantity, words: ValueWords) -> FoundQuantity:
    """The quantity with the bound that the words beside it set."""
    low = context.low
    before = words.bounds_before.before(low, skip_back(low, found.start))
    after = _bound_after(low, found.end, words)
    if before is None and after is None:
        return found
    bound = before[1] if before else after[1] if after else found.bound
    if before and low[before[0] : found.start].strip() == "over" and found.base.symbol == "second":
        bound = "at_least"
    if bound in ("more_than", "less_than") and before and found.ordinal:
        return found
    return replace(found, bound=bound)
