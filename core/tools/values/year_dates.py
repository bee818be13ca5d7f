"""Eras, decades, centuries, seasons and quarters: 44 BC, the 1990s, 19th century, Q3 2020."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from core.tools.values.date_words import YEAR, DateWords
from core.tools.values.han_numbers import value_of
from core.tools.values.kinds import DateValue

BETWEEN = re.compile(r"between (?:about |around |c\. )?$")
LONGEST_ERA = 32
FIRST, LAST = 1000, 2100
QUARTER = re.compile(
    r"(?<!\w)(?:q(?P<q>[1-4])|(?P<word>first|second|third|fourth) quarter)(?:,| of|/)?"
    r"[ \u00a0]?(?:fiscal |fy ?)?(?P<year>20\d\d|19\d\d)(?!\d)"
)
SPELLED_CENTURY = re.compile(r"(?<![\w-])(?P<word>[a-z]+(?:-[a-z]+)?)[ -]centur(?:y|ies)(?!\w)")
SEASON_GAP = re.compile(r",?[ \u00a0](?:of |de |del |des jahres |do |of the year )?")
QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
PIVOT = 20  # "the '20s" and later are of the twentieth century, '00s and '10s of ours


def era_years(low: str, words: DateWords) -> Iterator[DateValue]:
    """Years with BC or AD, and centuries and decades, which may have them too."""
    for match in words.eras.finditer(low):
        name = next(n for n, v in match.groupdict().items() if v and not n.endswith("_to"))
        year = _digits(match[name])
        if words.language in ("ar", "fa") and match.group().rstrip().endswith("م") and year < 500:
            continue
        if year == 0 or (match.group().isalpha()):
            continue
        yield from _with_era(low, match, name, bce=name.startswith("bce"))


def _with_era(low: str, match: re.Match[str], name: str, *, bce: bool) -> Iterator[DateValue]:
    """One year with its era, a range of them, or two years that share the era's word."""
    era: Literal["ce", "bce"] = "bce" if bce else "ce"
    year, written = _digits(match[name]), match[f"{name}_to"]
    if written is None:
        yield DateValue(*match.span(), "", year=year, era=era)
        return
    last = _digits(written)
    listed = low[match.end(name) : match.start(f"{name}_to")] == " and "
    if (year > last) != bce or (
        listed and not BETWEEN.search(low, max(0, match.start() - 24), match.start())
    ):
        yield DateValue(*match.span(name), "", year=year, era=era)
        yield DateValue(match.start(f"{name}_to"), match.end(), "", year=last, era=era)
    else:
        yield DateValue(*match.span(), "", year=year, end_year=last, era=era, kind="range")


def _digits(written: str) -> int:
    return int(re.sub(r"\D", "", written))


def stretches(low: str, words: DateWords) -> Iterator[DateValue]:
    """Centuries and decades."""
    hinted = any(hint in low for hint in words.century_hints)
    for match in words.centuries.finditer(low) if hinted else ():
        number = _ordinal(match[match.lastindex or 0])
        if 1 <= number <= 21:
            yield _century(match.start(), match.end(), number, low, words)
    if words.day_words and hinted:
        for match in SPELLED_CENTURY.finditer(low):
            number = words.day_words.get(match["word"], 0)
            if 1 <= number <= 21:
                yield _century(match.start(), match.end(), number, low, words)
    yield from _decades(low, words)
    for phrase, year in words.decade_words.values.items():
        start = low.find(phrase)
        if start >= 0:
            yield DateValue(
                start, start + len(phrase), "", year=year, end_year=year + 9, kind="decade"
            )
    for phrase, number in words.century_words.values.items():
        start = low.find(phrase)
        if start >= 0:
            yield _century(start, start + len(phrase), number, low, words)


def _century(start: int, end: int, number: int, low: str, words: DateWords) -> DateValue:
    """The n-th century, 100n - 99 to 100n; before our era the years run down."""
    first, last = 100 * number - 99, 100 * number
    stated = _before_our_era(low, start, end, words)
    if stated:
        return DateValue(*stated, "", year=last, end_year=first, era="bce", kind="century")
    return DateValue(start, end, "", year=first, end_year=last, kind="century")


def _before_our_era(low: str, start: int, end: int, words: DateWords) -> tuple[int, int] | None:
    """Where a century starts and ends with the words that put it before our era, if any do."""
    eras = _joined_eras(tuple(words.values.own.get("bce", ())))
    if not eras:
        return None
    if words.values.own.get("bce_first"):
        led = re.search(rf"(?:{eras})[ \u00a0]?$", low[max(0, start - LONGEST_ERA) : start])
        return (start - len(led.group()), end) if led else None
    after = re.match(rf"[ \u00a0](?:{eras})(?!\w)", low[end : end + LONGEST_ERA])
    return (start, end + after.end()) if after else None


@lru_cache(maxsize=64)
def _joined_eras(words: tuple[str, ...]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _ordinal(written: str) -> int:
    if written.isdigit():
        return int(written)
    if written[0] in ROMAN:
        values = [ROMAN[c] for c in written]
        return sum(
            -v if i + 1 < len(values) and values[i + 1] > v else v for i, v in enumerate(values)
        )
    return int(value_of(written))


def _decades(low: str, words: DateWords) -> Iterator[DateValue]:
    for match in words.decades.finditer(low):
        written = match[match.lastindex or 0]
        value = int(written)
        if len(written) < 3:
            if not _is_short_decade(low, match, words):
                continue
            value += 1900 if value >= PIVOT else 2000
        if value % 100 == 0 and words.language in ("en", "sv", "fi", "da", "tr", "ru"):
            yield DateValue(*match.span(), "", year=value, end_year=value + 99, kind="century")
        elif FIRST <= value <= LAST:
            yield DateValue(*match.span(), "", year=value, end_year=value + 9, kind="decade")


def _is_short_decade(low: str, match: re.Match[str], words: DateWords) -> bool:
    """Whether "90s" is a decade, not an age or a temperature."""
    if words.language != "en" or match.group().startswith("'"):
        return True
    return bool(
        re.search(r"(?:the|early|mid|late)[ -]'?$", low[max(0, match.start() - 12) : match.start()])
    )


def seasons_and_quarters(low: str, words: DateWords) -> Iterator[DateValue]:
    """Q3 2020, spring 2019: quarters have their months, seasons only a name."""
    for match in QUARTER.finditer(low):
        number = int(match["q"] or QUARTERS[match["word"]])
        year = int(match["year"])
        yield DateValue(
            *match.span(), "", year=year, month=3 * number - 2, end_year=year,
            end_month=3 * number, kind="range",
        )  # fmt: skip
    for match in words.season_names.finditer(low):
        gap = SEASON_GAP.match(low, match.end())
        stated = YEAR.match(low, gap.end()) if gap else None
        if stated:
            season, said = words.seasons[match.group()], int(stated["year"])
            yield DateValue(match.start(), stated.end(), "", year=said, season=season)
