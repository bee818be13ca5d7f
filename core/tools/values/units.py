"""Units: found in a text after a number, and brought to pint's base units.

Source: words from Babel (CLDR) and our own lists; factors from pint, whose registry is built when
the first unit is met (about half a second and 30 MB).
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Literal

from babel.units import format_unit

from core.tools.values.plain import Phrases, lower, plain, skip_blank
from core.tools.values.unit_tables import CLDR_UNITS, OWN_UNITS, SYMBOLS
from core.tools.values.value_words import file_of, locale_of, value_words

LENGTHS: tuple[Literal["long", "short"], ...] = ("long", "short")
SAMPLES = (1, 2, 5, 11, 100, 1.5)
DIGITS = re.compile(r"[\d.,]+")
INCH_FOLLOWS = re.compile(
    r"\.?\s*(?:[)×x/]|tall|long|wide|high|deep|thick|diameter|in (?:length|height))"
)
FEET_BEFORE = re.compile(r"(?:ft|feet|foot|')\.?,? ?\d+(?:\.\d+)?[ -]?$")
FEET_INCHES = re.compile(r"'[ ]?\d{1,2}(?:\.\d+)?\"")
INCHES_AFTER = re.compile(r"\d'[ ]?\d{1,2}(?:\.\d+)?$")
KANA = re.compile("[\u3040-\u30ff]")  # in Chinese 分 is more often a mark than a minute
HOURS_BEFORE = re.compile(r"[时時点點]\s?[\d〇零一二三四五六七八九十]+$")
SECONDS = re.compile(r"[钟鐘间間]|\s?\d+\s?秒")
GOOD_SECONDS = re.compile(r"(?:[ \u00a0]|\d[.,]\d+)s$")  # "9.58s", not "80s"
METRE_FOLLOWS = re.compile(
    r"[ \u00a0](?:people|users|customers|viewers|copies|units|subscribers|residents|followers|"
    r"views|downloads|homes|jobs|shares|visitors|passengers|records|barrels|tonnes|tons)\b"
)
PER = re.compile(r"[ \u00a0]?(?:/|per[ \u00a0]|pro[ \u00a0]|par[ \u00a0]|por[ \u00a0])[ \u00a0]?")


@dataclass(frozen=True)
class Base:
    """A unit in base units: `value * factor + offset` are so many of `symbol`."""

    symbol: str
    factor: float
    offset: float = 0.0


_one_at_a_time = threading.RLock()


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


@lru_cache(maxsize=1024)
def base(unit: str) -> Base:
    """The base of a unit in pint's name (or one of our own, which is its own base)."""
    if unit in OWN_UNITS:
        scale = 1e6 if unit.startswith("1e6") else 1.0
        return Base(unit.rpartition(" ")[2], scale)
    with _one_at_a_time:  # two threads would make two registries, whose units do not mix
        registry = _registry()
        parsed = registry.parse_expression(unit)
        if unit in ("degC", "degF"):
            zero, one = (registry.Quantity(v, unit).to_base_units().magnitude for v in (0.0, 1.0))
            return Base("kelvin", float(one - zero), float(zero))
        whole = (1.0 * parsed).to_base_units()
        return Base(str(whole.units), float(whole.magnitude))


@lru_cache(maxsize=1)
def _symbols() -> Phrases[str]:
    return Phrases(SYMBOLS)


@lru_cache(maxsize=64)
def _words(language: str) -> Phrases[str]:
    """The language's unit words; English ones too, for texts that quote them."""
    found: dict[str, str] = {}
    for code in dict.fromkeys(("en", file_of(language), language)):
        found |= _cldr_words(code)
        own = value_words(code).own.get("units", {})
        found |= {plain(word): unit for word, unit in own.items()}
    return Phrases(found)


def _cldr_words(language: str) -> dict[str, str]:
    """Every plural form of the vetted units; short forms only in scripts other than Latin."""
    locale = locale_of(language)
    found: dict[str, str] = {}
    for (name, unit), length, sample in product(CLDR_UNITS.items(), LENGTHS, SAMPLES):
        shown = format_unit(sample, name, length=length, locale=locale)
        word = lower(plain(DIGITS.sub("", shown))).replace("\u00a0", " ").strip()
        latin = word.isascii() or any("a" <= c <= "z" for c in word)
        if word and name not in shown and (length == "long" or not latin):
            found[word] = unit
    return found


def unit_at(text: str, low: str, position: int, language: str) -> tuple[int, str] | None:
    """The end and pint name of the unit that follows a number ending at `position`.

    `text` is plain, `low` the same in lower case. One blank or hyphen may stand between.
    """
    gap = text[position : position + 1]
    if gap and gap in "'\"":
        return _primes(text, position)
    start = position + 1 if gap and gap in " \u00a0-" else position
    found = _symbol(text, position, start, gap) or _words(language).at(low, start)
    if not found and gap == "-" and low.startswith("square-", start):
        found = _words(language).at(low.replace("square-", "square ", 1), start)
    if not found or not _is_unit(text, low, start, found):
        return None
    end, unit = found
    if low[end : end + 4] in ("-old", " old"):
        end += 4
    return _per(text, low, end, unit, language)


def _primes(text: str, position: int) -> tuple[int, str] | None:
    """Feet and inches written as 5'10", or inches alone where no quotation is open."""
    if "°" in text[max(0, position - 8) : position]:
        return None
    if FEET_INCHES.match(text, position):
        return position + 1, "foot"
    if text[position] == '"' and (
        INCHES_AFTER.search(text, max(0, position - 8), position)
        or (text.count('"', 0, position) % 2 == 0 and text.count('"', position) % 2 == 1)
    ):
        return position + 1, "inch"
    return None


def _symbol(text: str, position: int, start: int, gap: str) -> tuple[int, str] | None:
    """A symbol with its case as written; single letters never after a hyphen."""
    found = _symbols().at(text, start)
    if found is None:
        return None
    word = text[start : found[0]]
    if gap == "-" and len(word) == 1:
        return None
    if word.endswith(".") and skip_blank(text, found[0]) >= len(text):
        return found[0] - 1, found[1]
    return found


def _is_unit(text: str, low: str, start: int, found: tuple[int, str]) -> bool:
    """Whether a word that is also something else is a unit here."""
    end, _ = found
    word = low[start:end]
    if word == "s" and not GOOD_SECONDS.search(text, max(0, start - 12), end):
        return False
    if word == "in":
        after_feet = FEET_BEFORE.search(low, max(0, start - 14), start)
        return bool(INCH_FOLLOWS.match(low, end) or after_feet)
    if word == "m" and METRE_FOLLOWS.match(low, end):
        return False
    if word == "pm" or word == "pc":
        return False
    if word in ("second", "seconds"):
        return not re.match(r"[ -](?:place|half|largest|best|world|time|team|prize)", low[end:])
    if text[start:end] in ("K", "V", "N", "J", "W", "PS", "MP") and text[start - 1].isdigit():
        return not low[end : end + 1].isalnum() and text[start:end] not in ("K", "J", "N")
    if word == "分":
        clock = HOURS_BEFORE.search(text, max(0, start - 12), start) or SECONDS.match(low, end)
        return bool(clock or KANA.search(text))
    return True


def _per(text: str, low: str, end: int, unit: str, language: str) -> tuple[int, str]:
    """The unit with what it is taken per, as in "mg per litre"."""
    per = PER.match(low, end)
    if not per or unit in OWN_UNITS or unit.startswith("deg"):
        return end, unit
    other = _symbols().at(text, per.end()) or _words(language).at(low, per.end())
    if not other or other[1] in OWN_UNITS or other[1].startswith("deg"):
        return end, unit
    if text[per.end() : other[0]] in ("in", "m.") or " " in text[per.end() : other[0]].strip():
        return end, unit
    return other[0], f"({unit}) / ({other[1]})"
