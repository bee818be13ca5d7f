"""One piece of a sum, and how a number in digits becomes one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from core.tools.measures import Measure
from core.tools.spoken_numbers import han_number

Kind = Literal[
    "number", "operator", "open", "close", "relation", "name", "pi", "function", "percent", "bang",
    "unit", "word", "of", "raise", "break", "unreadable", "dots", "frac", "ratio", "about", "end",
]  # fmt: skip
LONGEST_NUMBER = 60
THOUSAND_IN_UNIT = re.compile(r"千(?=[米克瓦卡])")  # 240千米 is 240 km
SCALES = {"k": 10**3, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
          "hundred": 10**2, "dozen": 12, "万": 10**4, "亿": 10**8}  # fmt: skip
SCALE = re.compile(r"\s?(?:(thousand|million|billion|trillion|hundred|dozen)(?![A-Za-z])|([万亿]))")
NUMBER = re.compile(
    r"(?P<e>(?:[0-9]+\.[0-9]+|[0-9]+)[eE][+-]?[0-9]{1,3})(?![\w.])"
    r"|(?P<group>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?)(?![0-9,]*[0-9])"
    r"|(?P<latex>[0-9]{1,3}(?:\{,\}[0-9]{3})+(?:\.[0-9]+)?)"
    r"|(?P<space>[0-9]{1,3}(?: [0-9]{3})+(?:\.[0-9]+)?)(?![0-9])"
    r"|(?P<mixed>[0-9]{1,9} (?P<top>[0-9]{1,3})/(?P<bottom>[0-9]{1,3}))(?![0-9./])"
    r"|(?P<bad>[0-9]+(?:[.,][0-9]+){2,}|[0-9]+(?:,[0-9]+)+)"
    r"|(?P<plain>[0-9]+\.[0-9]+|[0-9]+|\.[0-9]+)"
)
VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5),
    "⅗": (3, 5), "⅘": (4, 5), "⅙": (1, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    """One piece at `[start, end)` of the text.

    `sign` is the plain sign or name; a relation's is “=”, “≈”, or “is” where a word is only
    perhaps one. `step` is the size of a number's last written digit, and `is_whole` tells one
    without decimals. `is_far` says that a blank stands before.
    """

    kind: Kind
    start: int
    end: int
    sign: str = ""
    value: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    is_whole: bool = True
    is_part: bool = False
    is_far: bool = False
    measure: Measure | None = None


def number_at(text: str, start: int) -> Token:
    """The number in digits that begins there, with its scale: “2.5 million”, 3万5千, 1 1/2, ½."""
    if text[start] in VULGAR:
        value = Fraction(*VULGAR[text[start]])
        return Token("number", start, start + 1, value=value, is_part=True)
    match = NUMBER.match(text, start)
    is_unit = match is not None and THOUSAND_IN_UNIT.match(text, match.end())
    spoken = None if is_unit else han_number(text, start)
    if spoken is not None and (match is None or spoken.end > match.end()):
        return Token("number", start, spoken.end, value=spoken.value, is_part=spoken.is_part)
    if match is None or match["bad"] or match.end() - start > LONGEST_NUMBER:
        end = match.end() if match else start + 1
        return Token("unreadable", start, end)
    if match["mixed"]:
        return _mixed(match)
    if match["e"]:
        return _scientific(match)
    written = match.group().replace(",", "").replace("{}", "").replace(" ", "")
    whole, _, decimals = written.partition(".")
    value = Fraction(int(whole or "0")) + Fraction(int(decimals or "0"), 10 ** len(decimals))
    step, end = Fraction(1, 10 ** len(decimals)), match.end()
    if text[end : end + 1] in VULGAR and not decimals:
        return Token("number", start, end + 1, value=value + Fraction(*VULGAR[text[end]]))
    if scale := SCALE.match(text, end):
        factor = SCALES[scale[1] or scale[2]]
        value, step, end = value * factor, step * factor, scale.end()
    return Token("number", start, end, value=value, step=step, is_whole=not decimals)


def _scientific(match: re.Match[str]) -> Token:
    digits, _, power = match["e"].lower().partition("e")
    whole, _, decimals = digits.partition(".")
    if abs(int(power)) > 300:
        return Token("unreadable", *match.span())
    scale = Fraction(10) ** int(power)
    value = Fraction(int(whole + decimals), 10 ** len(decimals)) * scale
    step = scale / 10 ** len(decimals)
    return Token("number", *match.span(), value=value, step=step, is_whole=not decimals)


def _mixed(match: re.Match[str]) -> Token:
    whole, top, bottom = int(match.group().split()[0]), int(match["top"]), int(match["bottom"])
    if not 0 < top < bottom:
        return Token("unreadable", *match.span())
    return Token("number", *match.span(), value=whole + Fraction(top, bottom))
