"""Quantities that belong together: "10-20 km", "between 10 and 20", "5 ft 10 in", "1 in 5"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from core.tools.values.found_quantity import Context, FoundQuantity, unit_base
from core.tools.values.value_words import ValueWords

DASH = re.compile(r"[ \u00a0]?[-–—~～〜][ \u00a0]?|至|到|から|부터[ ]?")
PLUS_MINUS = re.compile(r"[ \u00a0]?(?:±|\+/-)[ \u00a0]?")
COMPOUND_GAP = re.compile(r"[ \u00a0]?|,[ \u00a0]|[ \u00a0](?:and|und|et|y|e|en|och|i)[ \u00a0]|零")
COMPOUND_UNITS = frozenset(["second", "meter", "kilogram"])
# "rose from 10 to 20" states two values, "won 3-1" two scores.
NOT_RANGE = re.compile(
    r"\b(?:r[io]se|risen|rising|increas\w*|gr[eo]wn?|growth|growing|f[ae]ll|fallen|falling|dropp?\w*"
    r"|declin\w*|decreas\w*|reduc\w*|went|expand\w*|rais\w*|jump\w*|cut|chang\w*|lower\w*|climb\w*"
    r"|soar\w*|plung\w*|shr[aiu]nk|convert\w*|improv\w*|mov\w*|ratio|odds|scores?|vote[sd]?|won|win|beat"
    r"|defeat\w*|lost|lose|victory|upgrad\w*|doubl\w*|compar\w*|passed|steigen|stieg|sank|passé|creció"
    r"|aument\w*|augment\w*|从|由)\b[^.;,]*$"
)
SCORE = re.compile(
    r"\b(?:won|wins?|beats?|defeat\w*|los[te]|draw|drew|score[ds]?|victory|ratio|vote[ds]?|odds|by)"
    r"\b[^.;]{0,40}$"
)
RATIO = re.compile(r" (?:in|out of|of every|in every) (?:every )?")
LOOK_BACK = 70
RATIO_BASES = frozenset([*range(2, 11), 20, 25, 30, 50, 100, 1000, 10_000, 100_000, 1_000_000])


def merged(
    context: Context, found: Sequence[FoundQuantity], words: ValueWords
) -> list[FoundQuantity]:
    """The quantities with neighbours joined that make one value together."""
    done: list[FoundQuantity] = []
    for quantity in found:
        before = done[-1] if done else None
        joined = before and (
            _plus_minus(context, before, quantity)
            or _compound(context, before, quantity)
            or _ratio(context, before, quantity)
            or _range(context, before, quantity, words)
        )
        if joined:
            done[-1] = joined
        else:
            done.append(quantity)
    return done


def _between(context: Context, one: FoundQuantity, other: FoundQuantity) -> str:
    return context.low[one.end : other.start]


def _plus_minus(context: Context, one: FoundQuantity, other: FoundQuantity) -> FoundQuantity | None:
    """0.93 ± 0.07 °C: a range around the first value."""
    if not PLUS_MINUS.fullmatch(_between(context, one, other)) or not other.number.low > 0:
        return None
    if one.base.symbol not in ("", other.base.symbol) or one.scale not in (None, other.scale):
        return None
    value, error = one.number.low, other.number.low
    number = replace(one.number, end=other.number.end, low=value - error, high=value + error)
    return replace(other, start=one.start, number=number, bound=one.bound)


def _compound(context: Context, one: FoundQuantity, other: FoundQuantity) -> FoundQuantity | None:
    """5 ft 10 in, 2 hours and 30 minutes, 1小时30分: one value in two units."""
    symbol = one.base.symbol
    if symbol not in COMPOUND_UNITS or other.base.symbol != symbol or other.scale or one.scale:
        return None
    if other.base.factor >= one.base.factor or other.low >= one.base.factor:
        return None
    if one.number.step < 1 or one.number.low != one.number.high or other.bound != "exact":
        return None
    gap = _between(context, one, other)
    tight = gap.strip() in ("", ",", "零")
    if not COMPOUND_GAP.fullmatch(gap) or not (tight or symbol == "second"):
        return None
    ratio = one.base.factor / other.base.factor
    value = one.number.low * ratio + other.number.low
    number = replace(
        one.number,
        low=value,
        high=value,
        end=other.number.end,
        step=other.number.step,
        significant=max(1, len(str(int(abs(value))))),
    )
    return replace(one, end=other.end, number=number, base=other.base, unit=other.unit)


def _ratio(context: Context, one: FoundQuantity, other: FoundQuantity) -> FoundQuantity | None:
    """One in five, 3 out of 10: a share in per cent."""
    gap = _between(context, one, other)
    if not one.is_bare or not other.is_bare or not RATIO.fullmatch(gap) or other.scale or one.scale:
        return None
    top, bottom = one.number.low, other.number.low
    if one.ordinal or other.ordinal or not 0 < top < bottom:
        return None
    if " in " in gap and (bottom not in RATIO_BASES or (top > 1 and bottom < 5)):
        return None
    value = 100 * top / bottom
    number = replace(
        one.number, low=value, high=value, end=other.number.end, step=50 / bottom, share=True
    )
    return replace(
        one, end=other.end, number=number, unit="percent", base=unit_base("percent"), noun=""
    )


def _range(
    context: Context, one: FoundQuantity, other: FoundQuantity, words: ValueWords
) -> FoundQuantity | None:
    """Two values with a dash or "to" between them, the first the smaller."""
    if one.ordinal or other.ordinal or one.number.share != other.number.share:
        return None
    single = one.number.low == one.number.high and other.number.low == other.number.high
    led = _between(context, one, other).strip() in words.own.get("to", ())
    bound_is_ours = other.bound == "exact" or (other.bound == "at_most" and led)
    if not single or not bound_is_ours or not _joins(context, one, other, words):
        return None
    if other.is_bare and one.start < one.number.start:
        other = replace(other, unit=one.unit, base=one.base)
    first = _shared(one, other)
    if first.base.symbol != other.base.symbol or first.low >= other.low:
        return None
    whole = (other.high - other.base.offset) / (other.base.factor * (other.scale or 1.0))
    low = (first.low - other.base.offset) / (other.base.factor * (other.scale or 1.0))
    number = replace(
        other.number,
        start=one.number.start,
        low=low,
        high=whole,
        step=max(one.number.step, other.number.step),
        significant=max(one.number.significant, other.number.significant),
    )
    return replace(other, start=one.start, number=number, bound=one.bound, unit=first.unit)


def _shared(one: FoundQuantity, other: FoundQuantity) -> FoundQuantity:
    """The first value with the scale and unit that stand only after the second, or before it."""
    scale = one.scale
    if scale is None and other.scale is not None and one.number.low < 1000:
        scale = other.scale
    if one.is_bare:
        return replace(one, scale=scale, unit=other.unit, base=other.base, noun=other.noun)
    return replace(one, scale=scale)


def _joins(context: Context, one: FoundQuantity, other: FoundQuantity, words: ValueWords) -> bool:
    """Whether the text between the two makes them a range."""
    gap = _between(context, one, other)
    before = context.low[max(0, one.start - LOOK_BACK) : one.start]
    if DASH.fullmatch(gap):
        return not (one.is_bare and other.is_bare and SCORE.search(before))
    word = gap.strip()
    if word in words.own.get("or", ("or",)):
        near = other.number.low - one.number.low <= max(1.0, one.number.step)
        return near and one.number.step >= 1
    if word not in words.own.get("to", ()):
        return False
    if _is_led(before, words.own.get("between", ())):
        return True
    if word in words.own.get("and", ("and",)):
        return False
    return not (_is_led(before, words.own.get("from", ())) and NOT_RANGE.search(before))


def _is_led(before: str, leads: Sequence[str]) -> bool:
    """Whether one of the words stands before, with at most one word in between."""
    shorter = before.rstrip().rpartition(" ")[0]
    return any(part.endswith(lead) for part in (before.rstrip(), shorter) for lead in leads)
