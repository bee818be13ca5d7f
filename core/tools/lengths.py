"""Parses the lengths that a question asks of its answer; strict about the wording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from core.tools.numbers import ONES, value_of
from core.tools.quantities import Quantity, find_quantities
from core.tools.vocabulary import (
    Patterns,
    Phrases,
    lower,
    plain,
    skip_blank,
    skip_blank_back,
    vocabulary,
)

LengthUnit = Literal["word", "character", "sentence", "paragraph", "line"]
LONGEST, ENDS = 600, 300  # a longer question holds a text; the request is at either end
# How lengths, formats and words are asked for, in all languages.
ASKED = Patterns("requests")
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "ru")
# Second characters of words that only begin like a unit: 字母 is a letter, 行业 a trade.
NO_UNIT = re.compile("[母典节眼成词诗业为动人李程走星政时路]")
CLAUSE = re.compile(r"[.?!:](?=\s|$)|[。？！；;\n]")
PAIR = re.compile(f"[{''.join(ONES)}]{{2}}[十百千]?(?=字|句|个|段|词)")
FEW_WORDS = 20  # "three words that rhyme with cat" are things, "100 words on tea" a length


def both_ends(question: str) -> str:
    """Return the question; if it is long, its beginning and end, where the request is."""
    return question if len(question) <= LONGEST else f"{question[:ENDS]}\n{question[-ENDS:]}"


@dataclass(frozen=True)
class Length:
    """A length asked for: `least` to `most` units, None for no bound.

    `is_about` matters if both are the same: "in 100 words" or "in about 100 words".
    """

    unit: LengthUnit
    least: int | None
    most: int | None
    is_about: bool = False

    @property
    def words(self) -> str:
        """The length in words: "at least 3 sentences", "50 to 100 words"."""
        least, most = self.least, self.most
        is_one = {least, most} <= {1, None}
        unit = self.unit if is_one else f"{self.unit}s"
        if least is None or most is None:
            return f"at most {most:,} {unit}" if least is None else f"at least {least:,} {unit}"
        if least == most:
            return f"{'about ' if self.is_about else ''}{least:,} {unit}"
        return f"{least:,} to {most:,} {unit}"


def asked_lengths(question: str) -> tuple[Length, ...]:
    """Return every length that the question asks for; none if two contradict each other."""
    excerpt = both_ends(question)
    descriptions = re.findall(r"\ban?\s+(?:\w+\s+)?\d+-(?:word|sentence)", excerpt)
    if ASKED.how_many.search(question) or len(descriptions) > 1:
        return ()
    for language in ("zh",) if re.search("[\u4e00-\u9fff]", excerpt) else LANGUAGES:
        found: dict[Length | None, None] = {}
        for number, clause in enumerate(CLAUSE.split(excerpt)):
            found |= dict.fromkeys(_parse_lengths(clause, language, is_first=number == 0))
        lengths = tuple(length for length in found if length is not None)
        if lengths:
            return lengths if len(lengths) == len(found) and _is_consistent(lengths) else ()
    return ()


def _is_consistent(lengths: Sequence[Length]) -> bool:
    for unit in {length.unit for length in lengths}:
        same = [length for length in lengths if length.unit == unit]
        kinds = {(length.least is None, length.most is None) for length in same}
        if len(same) > 1 and (len(same) > 2 or kinds != {(True, False), (False, True)}):
            return False
        least = max(length.least or 0 for length in same)
        if any(length.most is not None and length.most < least for length in same):
            return False
    return True


@dataclass(frozen=True)
class _TextUnit:
    """A unit of text after a figure, ending at `end`, with what follows it."""

    name: LengthUnit
    end: int
    is_hyphened: bool
    behind: re.Match[str]


@lru_cache(maxsize=32)
def _text_units(language: str) -> Phrases[LengthUnit]:
    lists = vocabulary(language).own.get("text_units", {})
    return Phrases({word: unit for unit, words in lists.items() for word in words})


def _find_text_unit(clause: str, end: int, language: str) -> _TextUnit | None:
    """Return the unit of text after a figure that ends there, past a blank or hyphen."""
    low = lower(plain(clause))
    start = end + len(low[end:]) - len(low[end:].lstrip(" -\u00a0"))
    adjective = ASKED.adjective.match(low, start)
    start = adjective.end() if adjective else start
    unit = _text_units(language).at(low, start)
    behind = ASKED.behind.match(low, unit[0]) if unit else None
    if unit is None or behind is None or (start == end and language not in ("zh", "ja")):
        return None
    is_unit = not NO_UNIT.match(low, unit[0])
    return _TextUnit(unit[1], unit[0], "-" in low[end:start], behind) if is_unit else None


def _parse_lengths(clause: str, language: str, *, is_first: bool) -> Iterator[Length | None]:
    """Yield the lengths asked for in one clause; None for one that is ambiguous."""
    bounds, low = vocabulary(language).bounds_after, lower(plain(clause))
    lead: Quantity | None = None
    for quantity in _find_figures(clause, language):
        unit = _find_text_unit(clause, quantity.end, language)
        if unit is None:
            lead = quantity  # "at least 3 but no more than 5 words"
            continue
        end = unit.behind.end("of") if unit.behind["of"] else unit.end
        behind = bounds.at(low, end) or bounds.at(low, skip_blank(low, end))
        if behind and quantity.bound == "exact":
            quantity = replace(quantity, bound=behind[1])
        head = _text_before(clause, quantity, language)
        between = clause[lead.end : len(head)] if lead else ""
        is_led = re.fullmatch(r",?\s*(?:and|but|y|et|und)\s*", between)
        head = _text_before(clause, lead, language) if is_led and lead else head
        if unit.behind["each"] or not _is_asked(clause, head, quantity, unit, is_first=is_first):
            continue
        is_either = re.match(r"\s+or\s+(?:\w+\s+){0,2}\d", clause[unit.end :]) is not None
        yield None if is_either else _make_length(quantity, unit, head)
        if is_led and lead:
            yield _make_length(lead, unit, head)


def _find_figures(clause: str, language: str) -> list[Quantity]:
    figures = find_quantities(clause, language)
    for match in ASKED.one.finditer(clause) if language != "zh" else ():
        figures.append(Quantity(*match.span(), match.group(), 1, 1, ""))
    for match in PAIR.finditer(clause) if language == "zh" else ():
        low, high = (float(ONES[char]) for char in match.group()[:2])
        scale = value_of(f"一{match.group()[2:]}") if match.group()[2:] else 1
        # Numerals that are not adjacent (三五百) give no whole number.
        low, high = (low * scale, high * scale) if high == low + 1 else (0.5, 0.5)
        figures = [q for q in figures if q.end <= match.start() or match.end() <= q.start]
        figures.append(Quantity(*match.span(), match.group(), low, high, ""))
    return sorted(figures, key=lambda quantity: quantity.start)


def _text_before(clause: str, quantity: Quantity, language: str) -> str:
    low, start = lower(plain(clause)), quantity.start
    for _ in range(2):
        bound = vocabulary(language).bounds_before.before(low, skip_blank_back(low, start))
        start = bound[0] if bound else start
    exactly = ASKED.exactly.search(clause[:start])
    return clause[: exactly.start() if exactly else start]


def _is_asked(
    clause: str, head: str, quantity: Quantity, unit: _TextUnit, *, is_first: bool
) -> bool:
    """Return True if the figure belongs to a request about the answer."""
    is_led = quantity.bound not in ("exact", "about") and not unit.is_hyphened
    is_one = quantity.low == quantity.high
    request, opening = ASKED.request.search(clause), head.strip()
    if unit.behind["of"] and quantity.low <= 4 and quantity.bound == "exact":
        return False  # "words of two characters" describes the words
    is_meant = request and request.start() <= len(head)
    if not request or not is_meant or ASKED.of_others.search(clause[: request.end()]):
        is_into = ASKED.led.fullmatch(opening) is not None and (is_first or opening[0].isupper())
        return is_into or (is_led and not opening)
    matter = ASKED.matter.search(head, request.end())
    if matter and (not ASKED.into.search(head) or ASKED.of_texts.search(head, matter.end())):
        return False
    if unit.is_hyphened and is_one:
        return ASKED.hyphened.search(head) is not None
    is_limit = re.search(r"\blimit\w*\b|exceed", clause[: quantity.start])
    if is_led and (is_limit or ASKED.negated.search(head)):
        return True
    is_object = ASKED.hangs.search(head)
    if is_object and unit.name == "word" and quantity.low <= FEW_WORDS and is_one and not is_led:
        return ASKED.into.search(head) is not None
    return is_object is not None or (not is_one and re.search(r"\ban?\s+$", head) is not None)


def _make_length(quantity: Quantity, unit: _TextUnit, head: str) -> Length | None:
    name, bound = unit.name, quantity.bound
    low, high = int(quantity.low), int(quantity.high)
    is_part = name == "paragraph" and low == 1 and not unit.is_hyphened and head[-1:] > "\u4e00"
    if not low or low != quantity.low or is_part:
        return None
    if ASKED.limited.search(head):
        bound = "at_most"
    elif ASKED.negated.search(head):
        denied = {"more_than": Length(name, None, low), "less_than": Length(name, low, None)}
        return denied.get(bound)
    if unit.behind["two"]:
        return Length(name, 1, 2) if low == 1 else None
    lengths = {
        "at_least": Length(name, low, None),
        "more_than": Length(name, low + 1, None),
        "at_most": Length(name, None, low),
        "less_than": Length(name, None, max(0, low - 1)),
        "about": Length(name, low, low, is_about=True),
    }
    return Length(name, low, high) if low < high else lengths.get(bound, Length(name, low, low))
