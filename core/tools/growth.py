"""Sums that are told without a sign: growth in per cent, sums of lists, ratios, discounts.

“grew by 20 % from 50 to 60”, “the sum of 3, 4 and 5 is 12”, 3与5的积是15, “8:6 = 4:3”. Offsets are
half-open and lie in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from core.tools.equations import Equation
from core.tools.rounding import Stated, agrees, shown
from core.tools.sum_numbers import Token
from core.tools.sum_tokens import tokens_of

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_NUMBER = rf"(?:[$€£]\s?)?{_DIGITS}(?:\s?(?:thousand|million|billion|[万亿]))?"
_FROM_TO = rf"from\s+(?P<a>{_NUMBER})(?:\s+\w+)?\s+to\s+(?P<b>{_NUMBER})"
_PERCENT = r"(?P<p>[0-9]+(?:\.[0-9]+)?)\s?(?:%|per\s?cent)"
_UP = r"(?:grew|grown|rose|risen|increased?|went up|climbed|gained|growth|rise|up)"
_DOWN = r"(?:fell|fallen|dropped|decreased?|declined?|shrank|went down|lost|drop|fall|down|cut)"
_CHANGE = rf"(?:(?P<up>{_UP})|(?P<down>{_DOWN}))"
GROWTHS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_CHANGE}\s+(?:by\s+)?(?P<about>about\s+)?{_PERCENT},?\s+{_FROM_TO}",
        rf"\b{_CHANGE}\s+{_FROM_TO}(?:\s+\w+)?,?\s+(?:\(|that is |which is |or |i\.e\.,? )?"
        rf"(?:by |an? )?(?:\w+ )?(?:of )?(?P<about>about\s+)?{_PERCENT}",
        rf"\b{_FROM_TO}(?:\s+\w+)?,?\s+(?:which is |that is )?an?\s+{_CHANGE}\s+of\s+"
        rf"(?P<about>about\s+)?{_PERCENT}",
        rf"从(?P<a>{_NUMBER})\w{{0,4}}?(?:(?P<up>增长|增加|上升|提高|涨)|(?P<down>下降|减少|降低|跌))"
        rf"(?:到|至|为)了?(?P<b>{_NUMBER})\w{{0,4}}?[，,、]?(?:增长|增加|上升|提高|涨|下降|减少|降低|跌)了?"
        rf"(?P<about>约)?(?P<p>[0-9]+(?:\.[0-9]+)?)\s?%",
        rf"从(?P<a>{_NUMBER})\w{{0,4}}?(?:(?P<up>增长|增加|上升|提高|涨)|(?P<down>下降|减少|降低|跌))了?"
        rf"(?P<about>约)?(?P<p>[0-9]+(?:\.[0-9]+)?)\s?%[，,]?(?:到|至|达到|为)(?P<b>{_NUMBER})",
    )
)
_ITEM = rf"(?:{_NUMBER}|[a-z]+(?:-[a-z]+)?)"
LISTS = re.compile(
    rf"\b(?P<what>sum|total|product|average|mean|difference|quotient)\s+(?:of|between)\s+"
    rf"(?P<list>{_ITEM}(?:,\s+{_ITEM}){{0,20}},?\s+and\s+{_ITEM})\s+(?:is|equals|=)\s+"
    rf"(?P<about>about\s+|approximately\s+)?(?P<v>-?{_NUMBER}|[a-z]+(?:-[a-z]+)?)(?!\s*[-+*/×÷%:]|[0-9])",
    re.IGNORECASE,
)
_HAN = rf"(?:{_NUMBER}|[零一二三四五六七八九十百千万亿两]{{1,12}})"
HAN_LISTS = re.compile(
    rf"(?P<list>{_HAN}(?:[、，]{_HAN}){{0,20}}[和与跟同]{_HAN})(?:的|之)(?P<what>和|差|积|商|平均数|平均值)"
    rf"(?:就?是|等于|为)(?P<about>约)?(?P<v>-?{_HAN})(?![0-9+*/×÷%:])"
)
RATIO = re.compile(
    r"(?<![0-9:.：])(?P<a>[1-9][0-9]{0,8}) ?[:：∶] ?(?P<b>[1-9][0-9]{0,8})\s*"
    r"(?:=|等于|is equal to|equals)\s*"
    r"(?P<v>(?P<c>[1-9][0-9]{0,8}) ?[:：∶] ?(?P<d>[1-9][0-9]{0,8}))(?![0-9:：.])"
)
DISCOUNT = re.compile(
    r"(?P<a>[0-9]+(?:\.[0-9]+)?)元?打(?P<p>[一二三四五六七八九]{1,2}|[0-9](?:\.[0-9])?)折[后之]?(?:的?价格)?"
    r"(?:是|为|等于|即|得)(?P<v>[0-9]+(?:\.[0-9]+)?)"
)
HAN_DIGITS = "零一二三四五六七八九"
WHAT: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "sum": lambda values: sum(values, Fraction(0)),
    "product": lambda values: math.prod(values, start=Fraction(1)),
    "average": lambda values: sum(values, Fraction(0)) / len(values),
    "difference": lambda values: abs(values[0] - values[1]),
    "quotient": lambda values: values[0] / values[1],
}
SAME = {"total": "sum", "mean": "average", "和": "sum", "积": "product", "平均数": "average",
        "平均值": "average", "差": "difference", "商": "quotient"}  # fmt: skip


def told_sums(text: str) -> list[Equation]:
    """The sums that are told in words, in order; those that cannot be read are left out."""
    found = [*_growths(text), *_lists(text), *_ratios(text), *_discounts(text)]
    return sorted(found, key=lambda one: one.start)


def _value(written: str) -> tuple[Fraction, Token] | None:
    """The one number that a text is."""
    tokens = tokens_of(written)
    sign = -1 if tokens and tokens[0].sign == "-" else 1
    numbers = [token for token in tokens if token.kind == "number"]
    if len(numbers) != 1 or len(tokens) - (sign < 0) != 1:
        return None
    return sign * numbers[0].value, numbers[0]


def _growths(text: str) -> Iterator[Equation]:
    taken: set[int] = set()
    for pattern in GROWTHS:
        for match in pattern.finditer(text):
            first, last, stated = (_value(match[name]) for name in "abp")
            if first is None or last is None or stated is None or not first[0]:
                continue
            if match.start("p") not in taken:
                taken.add(match.start("p"))
                change = (last[0] - first[0]) / abs(first[0]) * 100
                true = change if match["up"] else -change
                formula = f"({match['b']} - {match['a']}) / {match['a']}"
                yield _checked(match, "p", stated, true, formula)


def _lists(text: str) -> Iterator[Equation]:
    for pattern, parting in ((LISTS, r",?\s+and\s+|,\s+"), (HAN_LISTS, "[、，和与跟同]")):
        for match in pattern.finditer(text):
            read = [_value(part) for part in re.split(parting, match["list"])]
            values = [part[0] for part in read if part is not None]
            what = SAME.get(match["what"].lower(), match["what"].lower())
            stated = _value(match["v"])
            if len(values) < len(read) or stated is None or not _fits(what, values):
                continue
            formula = f"{what} of {match['list']}"
            yield _checked(match, "v", stated, WHAT[what](values), formula)


def _fits(what: str, values: Sequence[Fraction]) -> bool:
    """Whether there are as many values as that takes, and none is divided by zero."""
    if what not in ("difference", "quotient"):
        return True
    return len(values) == 2 and (what == "difference" or values[1] != 0)


def _ratios(text: str) -> Iterator[Equation]:
    for match in RATIO.finditer(text):
        a, b, c, d = (int(match[name]) for name in "abcd")
        if len(match["b"]) == len(match["d"]) == 2:
            continue  # as like as not times of the day
        common = math.gcd(a, b)
        instead = f"{a // common}:{b // common}"
        yield Equation(
            match.start(), match.end(), f"{a}:{b}", match["v"], a * d == b * c, instead, "",
            *match.span("v"),
        )  # fmt: skip


def _discounts(text: str) -> Iterator[Equation]:
    """80打八折是64: 八折 is eight tenths, 八五折 85 hundredths."""
    for match in DISCOUNT.finditer(text):
        digits = "".join(str(HAN_DIGITS.index(c)) if c in HAN_DIGITS else c for c in match["p"])
        share = Fraction(digits) / (10 if "." in digits or len(digits) == 1 else 100)
        stated = _value(match["v"])
        if stated is not None:
            true, formula = Fraction(match["a"]) * share, f"{match['a']} * {shown(share)}"
            yield _checked(match, "v", stated, true, formula)


def _checked(
    match: re.Match[str], group: str, stated: tuple[Fraction, Token], true: Fraction, formula: str
) -> Equation:
    """The equation whose stated value is that group; growth is told in round figures."""
    start, end = match.span(group)
    value, token = stated
    is_about = group == "p" or bool(match.groupdict().get("about"))
    holds = agrees(true, Stated(value, token.step, token.is_whole, is_about))
    return Equation(
        match.start(), match.end(), formula, match[group], holds, shown(true), "", start, end
    )
