"""The words of a language that make values: numbers, scales, units, bounds, parts of dates.

Our own lists lie beside this file as JSON, one a language. What CLDR knows of a language (units,
scales, decimal marks, month and weekday names) is added from Babel, once, when first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from babel import Locale, UnknownLocaleError

from core.tools.values.kinds import Bound, DateBound
from core.tools.values.plain import Phrases, lower, plain

FOLDER = Path(__file__).parent / "words"
SPACE_GROUPS = frozenset("fr sv fi cs ru uk pl nb no sk bg hu et lv lt es de it pt ca eu".split())


@dataclass(frozen=True)
class ValueWords:
    """One language's words for values; `own` is the JSON list as it was read."""

    language: str
    decimal_mark: str
    groups_by_space: bool
    bounds_before: Phrases[Bound]
    bounds_after: Phrases[Bound]
    date_bounds_before: Phrases[DateBound]
    date_bounds_after: Phrases[DateBound]
    scales: Phrases[float]
    percent: Phrases[str]
    phrases: Phrases[str]
    phrase_starts: frozenset[str]
    labels: frozenset[str]
    ages: Phrases[str]
    own: Mapping[str, Any]

    def listed(self, name: str) -> frozenset[str]:
        """The words of a list in the language's file."""
        return frozenset(self.own.get(name, ()))


def value_words(language: str) -> ValueWords:
    """The words of a language by its tag ("en", "pt-BR"); unknown ones get English."""
    return _loaded(language.replace("_", "-"))


def file_of(language: str) -> str:
    """The language whose file serves a tag."""
    code = language.lower().replace("_", "-").split("-")[0]
    code = {"nb": "no", "nn": "no", "iw": "he"}.get(code, code)
    return code if code in _files() else "en"


@lru_cache(maxsize=1)
def _files() -> frozenset[str]:
    """The languages with a file: a tag, which a model may have written, is never made a path."""
    return frozenset(path.stem for path in FOLDER.glob("*.json"))


@lru_cache(maxsize=64)
def _loaded(language: str) -> ValueWords:
    own = _read(file_of(language))
    locale = locale_of(language)
    phrases = {plain(key): value for key, value in own.get("phrases", {}).items()}
    percents = dict.fromkeys([*own.get("percent", ()), "%"], "percent")
    percents |= {"‰": "permille"} | dict.fromkeys(own.get("points", ()), "percentage_point")
    bounds: Iterable[Bound] = get_args(Bound)
    date_bounds: Iterable[DateBound] = get_args(DateBound)
    return ValueWords(
        language=file_of(language),
        decimal_mark=_decimal_mark(locale),
        groups_by_space=locale.language in SPACE_GROUPS,
        bounds_before=Phrases({w: b for b in bounds for w in own.get(b, ())}),
        bounds_after=Phrases({w: b for b in bounds for w in own.get(f"{b}_after", ())}),
        date_bounds_before=Phrases({w: b for b in date_bounds for w in own.get(f"date_{b}", ())}),
        date_bounds_after=Phrases(
            {w: b for b in date_bounds for w in own.get(f"date_{b}_after", ())}
        ),
        scales=Phrases(_scales(locale) | own.get("scales", {})),
        percent=Phrases(percents),
        phrases=Phrases(phrases),
        phrase_starts=frozenset(key.split(" ")[0].split("-")[0].split("'")[0] for key in phrases),
        labels=frozenset(own.get("labels", ())) | {"#", "№", "§"},
        ages=Phrases({word: word for word in own.get("ages", ())}),
        own=own,
    )


def _read(code: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{code}.json").read_text(encoding="utf-8"))
    return loaded


@lru_cache(maxsize=64)
def locale_of(language: str) -> Locale:
    """CLDR's locale for a tag, without its region where that is unknown; else English."""
    for tag in (language.replace("-", "_"), language.replace("_", "-").split("-")[0], "en"):
        try:
            return Locale.parse(tag)
        except (UnknownLocaleError, ValueError, TypeError):
            continue
    return Locale("en")


def _decimal_mark(locale: Locale) -> str:
    """The mark before decimals; native Arabic marks are already plain "." and ","."""
    symbols = locale.number_symbols.get("latn", {})
    mark = str(symbols.get("decimal", "."))
    return mark if mark in ".," else "."


def _scales(locale: Locale) -> dict[str, float]:
    """Words such as "million" with their value, from CLDR's compact number patterns."""
    found: dict[str, float] = {}
    formats = locale.compact_decimal_formats
    for length in ("short", "long"):
        patterns = [
            (power, str(pattern.pattern))
            for forms in formats.get(length, {}).values()
            for power, pattern in forms.items()
        ]
        for power, pattern in patterns:
            zeros, word = _pattern_parts(pattern)
            # Short Latin forms ("kM", "mi", "Mr") are units and words as well.
            if zeros and len(word) > 1 and (length == "long" or not word.isascii()):
                found[word] = int(power) / 10 ** (zeros - 1)
    return found


def _pattern_parts(pattern: str) -> tuple[int, str]:
    """How many digits a pattern like "00 Mio'.'" keeps, and its word."""
    zeros = pattern.count("0")
    word = pattern.replace("0", "").replace("'", "").replace("\u00a0", " ").strip()
    return zeros, lower(word)
