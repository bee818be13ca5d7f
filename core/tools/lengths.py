"""Parses the lengths that a question asks of its answer; strict about the wording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from core.tools.numbers import HAN_DIGITS, parse_numeral
from core.tools.quantities import Quantity, find_quantities
from core.tools.vocabulary import (
    ListPatterns,
    PhraseTable,
    load_vocabulary,
    lower_text,
    normalize_chars,
    skip_blank,
    skip_blank_back,
)

LengthUnit = Literal["word", "character", "sentence", "paragraph", "line"]
MAX_QUESTION_CHARS, END_CHARS = (
    600,
    300,
)  # a longer question holds a text; the request is at either end
# How lengths, formats and words are asked for, in all languages.
REQUEST_PATTERNS = ListPatterns("requests")
LENGTH_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "ru")
# Second characters of words that only begin like a unit: 字母 is a letter, 行业 a trade.
NOT_A_UNIT = re.compile("[母典节眼成词诗业为动人李程走星政时路]")
CLAUSE_END = re.compile(r"[.?!:](?=\s|$)|[。？！；;\n]")
NUMERAL_PAIR = re.compile(f"[{''.join(HAN_DIGITS)}]{{2}}[十百千]?(?=字|句|个|段|词)")
FEW_WORDS = 20  # "three words that rhyme with cat" are things, "100 words on tea" a length


def cut_middle(question: str) -> str:
    """Return the question; if it is long, its beginning and end, where the request is."""
    return (
        question
        if len(question) <= MAX_QUESTION_CHARS
        else f"{question[:END_CHARS]}\n{question[-END_CHARS:]}"
    )


@dataclass(frozen=True)
class LengthConstraint:
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


def find_asked_lengths(question: str) -> tuple[LengthConstraint, ...]:
    """Return every length that the question asks for; none if two contradict each other."""
    excerpt = cut_middle(question)
    descriptions = re.findall(r"\ban?\s+(?:\w+\s+)?\d+-(?:word|sentence)", excerpt)
    if REQUEST_PATTERNS.how_many.search(question) or len(descriptions) > 1:
        return ()
    for language in ("zh",) if re.search("[\u4e00-\u9fff]", excerpt) else LENGTH_LANGUAGES:
        found: dict[LengthConstraint | None, None] = {}
        for number, clause in enumerate(CLAUSE_END.split(excerpt)):
            found |= dict.fromkeys(_parse_lengths(clause, language, is_first=number == 0))
        lengths = tuple(length for length in found if length is not None)
        if lengths:
            return lengths if len(lengths) == len(found) and _is_consistent(lengths) else ()
    return ()


def _is_consistent(lengths: Sequence[LengthConstraint]) -> bool:
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
def _text_units(language: str) -> PhraseTable[LengthUnit]:
    lists = load_vocabulary(language).own.get("text_units", {})
    return PhraseTable({word: unit for unit, words in lists.items() for word in words})


def _find_text_unit(clause: str, end: int, language: str) -> _TextUnit | None:
    """Return the unit of text after a figure that ends there, past a blank or hyphen."""
    low = lower_text(normalize_chars(clause))
    start = end + len(low[end:]) - len(low[end:].lstrip(" -\u00a0"))
    adjective = REQUEST_PATTERNS.adjective.match(low, start)
    start = adjective.end() if adjective else start
    unit = _text_units(language).at(low, start)
    behind = REQUEST_PATTERNS.behind.match(low, unit[0]) if unit else None
    if unit is None or behind is None or (start == end and language not in ("zh", "ja")):
        return None
    is_unit = not NOT_A_UNIT.match(low, unit[0])
    return _TextUnit(unit[1], unit[0], "-" in low[end:start], behind) if is_unit else None


def _parse_lengths(
    clause: str, language: str, *, is_first: bool
) -> Iterator[LengthConstraint | None]:
    """Yield the lengths asked for in one clause; None for one that is ambiguous."""
    bounds, low = load_vocabulary(language).bounds_after, lower_text(normalize_chars(clause))
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
    for match in REQUEST_PATTERNS.one.finditer(clause) if language != "zh" else ():
        figures.append(Quantity(*match.span(), match.group(), 1, 1, ""))
    for match in NUMERAL_PAIR.finditer(clause) if language == "zh" else ():
        low, high = (float(HAN_DIGITS[char]) for char in match.group()[:2])
        scale = parse_numeral(f"一{match.group()[2:]}") if match.group()[2:] else 1
        # Numerals that are not adjacent (三五百) give no whole number.
        low, high = (low * scale, high * scale) if high == low + 1 else (0.5, 0.5)
        figures = [q for q in figures if q.end <= match.start() or match.end() <= q.start]
        figures.append(Quantity(*match.span(), match.group(), low, high, ""))
    return sorted(figures, key=lambda quantity: quantity.start)


def _text_before(clause: str, quantity: Quantity, language: str) -> str:
    low, start = lower_text(normalize_chars(clause)), quantity.start
    for _ in range(2):
        bound = load_vocabulary(language).bounds_before.before(low, skip_blank_back(low, start))
        start = bound[0] if bound else start
    exactly = REQUEST_PATTERNS.exactly.search(clause[:start])
    return clause[: exactly.start() if exactly else start]


def _is_asked(
    clause: str, head: str, quantity: Quantity, unit: _TextUnit, *, is_first: bool
) -> bool:
    """Return True if the figure belongs to a request about the answer."""
    is_led = quantity.bound not in ("exact", "about") and not unit.is_hyphened
    is_one = quantity.low == quantity.high
    request, opening = REQUEST_PATTERNS.request.search(clause), head.strip()
    if unit.behind["of"] and quantity.low <= 4 and quantity.bound == "exact":
        return False  # "words of two characters" describes the words
    is_meant = request and request.start() <= len(head)
    if not request or not is_meant or REQUEST_PATTERNS.of_others.search(clause[: request.end()]):
        is_into = REQUEST_PATTERNS.led.fullmatch(opening) is not None and (
            is_first or opening[0].isupper()
        )
        return is_into or (is_led and not opening)
    matter = REQUEST_PATTERNS.matter.search(head, request.end())
    if matter and (
        not REQUEST_PATTERNS.into.search(head)
        or REQUEST_PATTERNS.of_texts.search(head, matter.end())
    ):
        return False
    if unit.is_hyphened and is_one:
        return REQUEST_PATTERNS.hyphened.search(head) is not None
    is_limit = re.search(r"\blimit\w*\b|exceed", clause[: quantity.start])
    if is_led and (is_limit or REQUEST_PATTERNS.negated.search(head)):
        return True
    is_object = REQUEST_PATTERNS.hangs.search(head)
    if is_object and unit.name == "word" and quantity.low <= FEW_WORDS and is_one and not is_led:
        return REQUEST_PATTERNS.into.search(head) is not None
    return is_object is not None or (not is_one and re.search(r"\ban?\s+$", head) is not None)


def _make_length(quantity: Quantity, unit: _TextUnit, head: str) -> LengthConstraint | None:
    name, bound = unit.name, quantity.bound
    low, high = int(quantity.low), int(quantity.high)
    is_part = name == "paragraph" and low == 1 and not unit.is_hyphened and head[-1:] > "\u4e00"
    if not low or low != quantity.low or is_part:
        return None
    if REQUEST_PATTERNS.limited.search(head):
        bound = "at_most"
    elif REQUEST_PATTERNS.negated.search(head):
        denied = {
            "more_than": LengthConstraint(name, None, low),
            "less_than": LengthConstraint(name, low, None),
        }
        return denied.get(bound)
    if unit.behind["two"]:
        return LengthConstraint(name, 1, 2) if low == 1 else None
    lengths = {
        "at_least": LengthConstraint(name, low, None),
        "more_than": LengthConstraint(name, low + 1, None),
        "at_most": LengthConstraint(name, None, low),
        "less_than": LengthConstraint(name, None, max(0, low - 1)),
        "about": LengthConstraint(name, low, low, is_about=True),
    }
    return (
        LengthConstraint(name, low, high)
        if low < high
        else lengths.get(bound, LengthConstraint(name, low, low))
    )
