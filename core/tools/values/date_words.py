"""The words of a language that make dates: months, weekdays, eras, decades, centuries, clocks.

Month and weekday names are CLDR's (through Babel), with our own additions beside them. A template
such as "#th century" in the language's list stands for any number in the place of "#".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

from babel.dates import get_day_names, get_month_names

from core.tools.values.plain import Phrases, lower, plain
from core.tools.values.value_words import ValueWords, locale_of, value_words

OTHER_SCRIPTS = frozenset("ar fa hi zh ja ko th ru".split())  # they quote English dates
HAN = "\u3400"
CONTEXTS: tuple[Literal["format", "stand-alone"], ...] = ("format", "stand-alone")
WIDTHS: tuple[Literal["abbreviated", "wide"], ...] = ("abbreviated", "wide")
LEADS = re.compile(r"^(?:de |d'|del |en )")
STEM_ENDINGS = re.compile(r"(?:ta|a|ak)$")
BLANK = "[ \u00a0]"
DECADE = r"((?:1[0-9]|20|[2-9])?\d0|[2-9]0)"
CENTURY = r"(\d{1,2}|[ivxlc]{1,6}|[一二三四五六七八九十]{1,3})"
# Four figures that may be a year; `bare_years` decides whether they are.
YEAR = re.compile(
    r"(?<![\w$€£¥#%+])(?<!\d[.,:/])(?<!\d-)(?P<year>1\d{3}|20\d\d|2100)(?!\d|[.,:]\d|[ \u00a0]?%)"
)
NEVER: re.Pattern[str] = re.compile(r"(?!)")


@dataclass(frozen=True)
class MonthName:
    """A month from 1; `full` names may stand without a day or year."""

    month: int
    full: bool


@dataclass(frozen=True)
class DateWords:
    """One language's date words; patterns are for plain lower-case text."""

    language: str
    months: Phrases[MonthName]
    month_starts: frozenset[str]
    month_stems: tuple[tuple[str, int], ...]
    month_leads: Phrases[bool] | None
    shy_months: frozenset[str]
    weekdays: Phrases[int]
    weekday_starts: frozenset[str]
    day_words: Mapping[str, int]
    decades: re.Pattern[str]
    decade_words: Phrases[int]
    centuries: re.Pattern[str]
    century_words: Phrases[int]
    clocks: re.Pattern[str]
    eras: re.Pattern[str]
    century_hints: tuple[str, ...]
    seasons: Mapping[str, str]
    season_names: re.Pattern[str]
    noon: Mapping[str, int]
    noon_names: re.Pattern[str]
    years: Phrases[bool]
    strong_years: Phrases[bool]
    year_words_after: Phrases[bool]
    year_suffixes: tuple[str, ...]
    to_words: tuple[str, ...]
    open_end: Phrases[bool]
    day_first: bool
    values: ValueWords


@lru_cache(maxsize=64)
def date_words(language: str) -> DateWords:
    """The date words of a language by its tag ("en", "pt-BR")."""
    values = value_words(language)
    own = values.own
    months = _months(language) | {k: MonthName(v, True) for k, v in own.get("months", {}).items()}
    weekdays = _weekdays(language)
    stems = own.get("month_stems", False)
    leads = own.get("month_leads", ())
    return DateWords(
        language=values.language,
        months=Phrases({} if stems else months),
        month_starts=frozenset(re.split(r"[ \-.]", name)[0] for name in months),
        month_stems=_stems(months) if stems else (),
        month_leads=None if leads is None else _flags(leads),
        shy_months=frozenset(own.get("shy_months", ())),
        weekdays=Phrases(weekdays),
        weekday_starts=frozenset(re.split(r"[ \-]", name)[0] for name in weekdays),
        day_words=own.get("day_words", {}),
        decades=_pattern(own.get("decades", ()), DECADE),
        decade_words=Phrases(own.get("decade_words", {})),
        centuries=_pattern(own.get("centuries", ()), CENTURY),
        century_words=Phrases(own.get("century_words", {})),
        clocks=_pattern(own.get("clock", ()), r"(\d{1,2})", r"([0-5]\d)"),
        eras=_eras(values),
        century_hints=_hints(own.get("centuries", ())),
        seasons=own.get("seasons", {}),
        season_names=_names(own.get("seasons", ())),
        noon=own.get("noon", {}),
        noon_names=_names(own.get("noon", ())),
        years=_flags(own.get("years", ())),
        strong_years=_flags(own.get("strong_years", ())),
        year_words_after=_flags(own.get("year_words_after", ())),
        year_suffixes=tuple(sorted(own.get("year_suffixes", ()), key=len, reverse=True)),
        to_words=tuple(word for word in own.get("to", ()) if word not in own.get("and", ("and",))),
        open_end=_flags(own.get("open_end", ("present",))),
        day_first=_is_day_first(language),
        values=values,
    )


def _flags(words: Iterable[str]) -> Phrases[bool]:
    return Phrases(dict.fromkeys(words, True))


def _is_day_first(language: str) -> bool:
    """Whether 03/04 is the third of April: everywhere but in American English."""
    return language.replace("_", "-").lower() not in ("en", "en-us", "und")


def _months(language: str) -> dict[str, MonthName]:
    found: dict[str, MonthName] = {}
    tags = [locale_of(language)]
    if tags[0].language == "ar":
        tags.append(locale_of("ar_LB"))
    if tags[0].language in OTHER_SCRIPTS:
        tags.insert(0, locale_of("en"))
    # Full names come last: where an abbreviation is the same word, it is a full name.
    for width, locale, context in product(WIDTHS, tags, CONTEXTS):
        for month, name in get_month_names(width, context, locale).items():
            word = LEADS.sub("", lower(plain(str(name)))).strip()
            if word and not any(c.isdigit() or c >= HAN for c in word):
                found[word] = found[word.rstrip(".॰")] = MonthName(month, width == "wide")
    return found


def _stems(months: Mapping[str, MonthName]) -> tuple[tuple[str, int], ...]:
    """Full names without their ending, for languages that decline them."""
    return tuple(
        (STEM_ENDINGS.sub("", name), found.month)
        for name, found in months.items()
        if found.full and len(name) > 4
    )


def _weekdays(language: str) -> dict[str, int]:
    locale = locale_of(language)
    return {
        lower(plain(str(name))): day
        for context in CONTEXTS
        for day, name in get_day_names("wide", context, locale).items()
    }


def _pattern(templates: Iterable[str], *numbers: str) -> re.Pattern[str]:
    """All templates as one pattern; the n-th "#" of a template becomes the n-th number."""
    choices = []
    for template in sorted(templates, key=len, reverse=True):
        pieces = [re.escape(plain(piece)).replace(r"\ ", BLANK) for piece in template.split("#")]
        if len(pieces) < 2:
            continue
        filled = pieces[0]
        for index, piece in enumerate(pieces[1:]):
            filled += numbers[min(index, len(numbers) - 1)] + piece
        choices.append(filled)
    if not choices:
        return NEVER
    return re.compile(rf"(?<![^\W一-鿿가-힣])(?<!\d[.,])(?:{'|'.join(choices)})(?![^\W一-鿿가-힣])")


def _hints(templates: Iterable[str]) -> tuple[str, ...]:
    """A word of each template without which it cannot match."""
    words = {max(re.split("[#  ]", plain(t)), key=len) for t in templates}
    return tuple(sorted(words))


def _names(words: Iterable[str]) -> re.Pattern[str]:
    either = _either(words)
    return re.compile(rf"(?<!\w)(?:{either})(?![\w-])") if either else NEVER


def _eras(values: ValueWords) -> re.Pattern[str]:
    """Years with an era: "44 BC", "AD 79", "300-200 v. Chr.", "公元前221年"."""
    before = {era: _either(values.own.get(era, ())) for era in ("bce", "ce")}
    number = r"\d{1,3}(?:[,. ]\d{3}){1,3}|\d{1,6}"
    pair = (
        rf"(?P<NAME>{number})(?:(?:{BLANK}?[-–—]{BLANK}?| to | and )(?P<NAME_to>{number}))?{BLANK}?"
    )
    choices = []
    for era, words in before.items():
        if words:
            choices.append(pair.replace("NAME", era) + rf"(?:{words})")
            choices.append(rf"(?:{words}){BLANK}?" + pair.replace("NAME", f"{era}_led"))
    if not choices:
        return NEVER
    return re.compile(
        rf"(?<![^\W一-鿿가-힣.])(?<!\d[.,])(?:{'|'.join(choices)})(?![^\W一-鿿가-힣])"
    )


def _either(words: Iterable[str]) -> str:
    ordered = sorted({plain(word) for word in words}, key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", BLANK) for word in ordered)
