"""Four figures that read like a year: in 2019, (1998), 1914-1918, the 2016 elections.

They are one only after words that lead a year, in brackets, at a clause's end, or where nothing
that is counted follows; not before a unit, a currency or a scale, and not behind a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from core.tools.values.counted import PLURALS, counted_noun, label_before
from core.tools.values.currencies import currency_after, currency_before
from core.tools.values.date_words import YEAR, DateWords
from core.tools.values.kinds import DateValue
from core.tools.values.plain import is_unspaced, skip_blank
from core.tools.values.units import unit_at

LAST = 2100
LOOK_BACK = 40
SHORT_YEAR = re.compile(r"(?<![\w.,$])in (?:the year )?(?P<year>\d{3})(?=[,.;)] |[.,;)]?$)")
SHORT_RANGE = re.compile(r"[(（](?P<year>\d{3})[ \u00a0]?[-–—][ \u00a0]?(?P<last>\d{3,4})[)）]")
MEASURED = re.compile(
    r"(?:population|total|sum|height|depth|elevation|altitude|length|width|number|capacity|cost|"
    r"price|average|maximum|minimum|value|distance|area|weight|score|record|crowd|attendance|range|"
    r"speed|force|crew|staff|membership|fleet|set|group|mass|diameter|hundreds|audience|team) of $"
)
DETERMINED = re.compile(
    r"(?:^|[ \u00a0(])(?:the|this|that|a|an|his|her|its|their|our|\w+'s?)[ \u00a0]$"
)
BEFORE_CLOSED = "([{“\"'—–-/,;:"
AFTER_CLOSED = ")]},.;:!?”\"'—–-/|،؛।。，、（）"
LISTED = re.compile(r" (?:and|or|&|to|et|und|y|e|en|och|и|ja|eta|i|a|و) ?|, (?:and )?|/|、")
CODED = frozenset(
    "flight route highway interstate room section area bus page pp number zone article".split()
)


class Figures(NamedTuple):
    """Four figures at `[start, end)`, or a range of two, that may be years."""

    start: int
    end: int
    year: int
    is_range: bool


def bare_years(text: str, low: str, words: DateWords) -> Iterator[DateValue]:
    """Years that read like one, alone or as ranges; `text` and `low` are plain."""
    accepted = -1
    for match in YEAR.finditer(low):
        if match.start() < accepted:
            continue
        year, end = int(match["year"]), match.end()
        last = _range_end(low, end, year, words)
        stop = last[0] if last else end
        listed = accepted >= 0 and bool(LISTED.fullmatch(low, accepted, match.start()))
        known = bool(last) or (listed and _is_closed(low, stop))
        if not _suffix_fits(low, stop, words):
            continue
        if not _reads_as_year(text, low, Figures(match.start(), stop, year, known), words):
            continue
        accepted = stop
        if last:
            yield DateValue(match.start(), stop, "", year=year, end_year=last[1], kind="range")
        else:
            yield DateValue(match.start(), end, "", year=year)
    if words.language == "en":
        for match in SHORT_YEAR.finditer(low):
            yield DateValue(match.start("year"), match.end("year"), "", year=int(match["year"]))
    for match in SHORT_RANGE.finditer(low):
        year, last_year = int(match["year"]), int(match["last"])
        if year < last_year:
            yield DateValue(
                match.start("year"), match.end("last"), "", year=year, end_year=last_year,
                kind="range",
            )  # fmt: skip


def _range_end(low: str, end: int, year: int, words: DateWords) -> tuple[int, int] | None:
    """Where a range of years ends and with which year, if the text goes on like one."""
    match = _range_pattern(words.to_words).match(low, end)
    if match is None:
        return None
    written = match["last"]
    if len(written) == 2:
        if not match["dash"] or " " in match["dash"]:
            return None
        last = year - year % 100 + int(written)
        return (match.end(), last) if last > year else None
    last = int(written)
    if match["and"] and not re.search(_between(words), low[max(0, end - LOOK_BACK) : end - 4]):
        return None
    return (match.end(), last) if year < last <= LAST else None


@lru_cache(maxsize=64)
def _range_pattern(to_words: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(word) for word in sorted(to_words, key=len, reverse=True))
    either = rf" (?:{words}) (?:the year |l'an |jahr |año |anno )?|" if words else ""
    return re.compile(
        rf"(?:(?P<dash>[ \u00a0]?[-–—~～/至到][ \u00a0]?)|{either}"
        r"(?P<and> (?:and|und|et|y|e|en|och|i|и|a|ja|و|e il|y el) ))"
        r"(?P<last>1\d{3}|20\d\d|2100|\d\d)(?![\d:]|[.,]\d|[ \u00a0]?%)"
    )


def _between(words: DateWords) -> str:
    leads = words.values.own.get("between", ()) or ("between",)
    return rf"(?:{'|'.join(re.escape(lead) for lead in leads)}) (?:the years? |los años |lety )?$"


def _suffix_fits(low: str, end: int, words: DateWords) -> bool:
    """Whether no letters follow the year, or only an ending of the language."""
    if not low[end : end + 1].isalpha() and low[end : end + 1] not in ("'", "_"):
        return True
    if low[end : end + 2] == "'s" and words.language == "en":
        return True
    if low[end : end + 1] == "'" and not low[end + 1 : end + 2].isalpha():
        return True
    for suffix in words.year_suffixes:
        stop = end + len(suffix)
        if low.startswith(suffix, end) and not low[stop : stop + 1].isalpha():
            return True
    return "\u3400" <= low[end : end + 1] <= "\u9fff" or "가" <= low[end : end + 1] <= "힣"


def _reads_as_year(text: str, low: str, figures: Figures, words: DateWords) -> bool:
    """Whether figures are a year, by what stands before and after them."""
    start, end, year, is_range = figures
    if words.year_words_after.at(low, skip_blank(low, end)) or words.year_words_after.at(low, end):
        return True
    if low[end : end + 1].isalpha():
        suffixed = any(low.startswith(suffix, end) for suffix in words.year_suffixes)
        return suffixed or (is_range and is_unspaced(low[end]))
    if _is_measured(text, low, start, end, words):
        return False
    before = start - 1 if low[start - 1 : start] in (" ", "\u00a0") else start
    noun = _noun(text, low, end, words)
    if is_range and words.years.before(low, before):
        return True
    if words.strong_years.before(low, before):
        return not (noun and year % 100 == 0)
    if is_range and not noun:
        return True
    if words.years.before(low, before):
        return not noun and not MEASURED.search(low, max(0, start - LOOK_BACK), start)
    return _stands_as_year(text, low, figures, words, noun)


def _stands_as_year(text: str, low: str, figures: Figures, words: DateWords, noun: str) -> bool:
    """Whether a year without a leading word can stand where it does."""
    start, end, year, _ = figures
    opened = start == 0 or text[:start].rstrip()[-1:] in BEFORE_CLOSED
    closed = _is_closed(text, end)
    if words.values.bounds_before.before(low, start - 1) and not closed:
        return False
    if opened and closed:
        return True
    modern = words.language == "en" and 1900 <= year <= 2035 and year % 100 > 0
    if modern and DETERMINED.search(low[max(0, start - 20) : start]):
        return True
    if noun:
        return False
    known = words.language == "en" or words.language == "de" or words.language in PLURALS
    return (closed or known) and year >= 1500 and (year % 100 > 0 or closed)


def _noun(text: str, low: str, end: int, words: DateWords) -> str:
    """What the figures count, unless a name follows: "the 2016 Summer Games"."""
    if words.language != "de" and text[end + 1 : end + 2].isupper():
        return ""
    return counted_noun(text, low, end, words.values, ranks=False)


def _is_closed(low: str, end: int) -> bool:
    return end >= len(low) or low[end] in AFTER_CLOSED or low[end : end + 5] in (" and ", " or ")


def _is_measured(text: str, low: str, start: int, end: int, words: DateWords) -> bool:
    """Whether a unit, currency, scale or label makes the figures something else."""
    values = words.values
    bound = values.bounds_before.before(low, start - 1) if start else None
    if bound and bound[1] != "about":
        dated = values.date_bounds_before.before(low, start - 1)
        if dated is None:
            return True
    if bound and low[bound[0] : start].strip() == "some":
        return True
    if label_before(text, low, start, end, values) in CODED:
        return True
    if values.scales.at(low, skip_blank(low, end)) or values.percent.at(low, skip_blank(low, end)):
        return True
    if unit_at(text, low, end, words.language):
        return True
    return bool(
        currency_before(text, low, start, words.language)
        or currency_after(text, low, end, words.language)
    )
