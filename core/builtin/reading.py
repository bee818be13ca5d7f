"""Reads a sentence into the units that can be compared: dates, quantities, names, words.

Offsets of tokens and units are `[start, end)` in the text that was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import regex

from core.builtin.lexicon import Lexicon, lexicon
from core.evidence.terms import IS_UNSPACED, UNSPACED, fold, stem
from core.tools.values.dates import DateValue, find_dates
from core.tools.values.quantities import Quantity, find_quantities

UnitKind = Literal["date", "quantity", "name", "word", "char"]
TOKEN = regex.compile(
    rf"[{UNSPACED}]\p{{M}}*|n['’]t\b|(?:[\p{{L}}--[{UNSPACED}]]\p{{M}}*)+?(?=n['’]t\b)"
    rf"|(?:[\p{{L}}--[{UNSPACED}]]\p{{M}}*)+(?:['’](?:[\p{{L}}--[{UNSPACED}]]\p{{M}}*)+)*"
    rf"|\p{{N}}+(?:[.,]\p{{N}}+)*",
    regex.V1,
)
CAPITAL = regex.compile(r"\p{Lu}")
CONNECTING = frozenset(["of", "the", "de", "la", "von", "van", "der", "du", "di", "da", "al", "el"])
JOINTS = frozenset([" ", "-", ". ", "’", "'"])
POSSESSIVE = regex.compile(r"['’]s$")
CLAUSE_MARK = regex.compile(
    r"[;；。：]|,\s+(?=and\b|but\b|while\b|whereas\b|though\b)|，|,(?=\p{Han})"
    r"|\band\b(?=\s+(?:was|is|were|are|has|had|have|will|can|did|does|became|won|lost|holds?)\b)"
)
HEADING_UNIT = regex.compile(
    r"[(（](?:in\s+)?([^()（）]{1,30})[)）]|\bin\s+([^\s,]+)$|单位[:：]?\s*(\S+)"
)
PLURAL_SCALE = regex.compile(r"^(thousand|million|billion|hundred)s\b")
WEIGHTS: dict[UnitKind, float] = {
    "date": 1.8,
    "quantity": 1.8,
    "name": 1.6,
    "word": 1.0,
    "char": 0.5,
}


@dataclass(frozen=True)
class Token:
    """A word, number or unspaced character."""

    start: int
    end: int
    text: str
    norm: str
    stem: str
    function: bool
    capital: bool


@dataclass(frozen=True)
class Unit:
    """Something that can be carried or contradicted as a whole."""

    kind: UnitKind
    start: int
    end: int
    text: str
    words: tuple[str, ...]
    weight: float
    date: DateValue | None = None
    quantity: Quantity | None = None
    unscaled: Quantity | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """A text with its tokens, and its units in order (function words left out).

    Compared and hashed by identity: `read` gives the same text the same reading.
    """

    text: str
    language: str
    tokens: tuple[Token, ...]
    units: tuple[Unit, ...]

    @property
    def words(self) -> Lexicon:
        """The language's words."""
        return lexicon(self.language)

    def norms(self) -> frozenset[str]:
        """All folded words of the text."""
        return frozenset(token.norm for token in self.tokens)


@lru_cache(maxsize=20_000)
def read(text: str, language: str) -> Reading:
    """The reading of a sentence; the same text is read once."""
    words = lexicon(language)
    tokens = tuple(_tokens(text, language, words))
    dates = find_dates(text, language)
    # dates are blanked out, or "in 1950 to 5,000 in 2000" would hold a range
    undated = text
    for date in dates:
        undated = undated[: date.start] + " " * (date.end - date.start) + undated[date.end :]
    quantities = [
        replace(q, text=text[q.start : q.end]) for q in find_quantities(undated, language)
    ]
    taken: list[Unit] = [
        Unit("date", d.start, d.end, d.text, (), WEIGHTS["date"], date=d) for d in dates
    ]
    taken += [
        Unit("quantity", q.start, q.end, q.text, (), WEIGHTS["quantity"], quantity=q)
        for q in quantities
    ]
    free = [token for token in tokens if not _overlaps(token.start, token.end, taken)]
    taken += _names(free, text, words)
    free = [token for token in free if not _overlaps(token.start, token.end, taken)]
    taken += [_word_unit(token) for token in free if not token.function]
    return Reading(text, language, tokens, tuple(sorted(taken, key=lambda unit: unit.start)))


def clauses(reading: Reading) -> list[Reading]:
    """The sentence's clauses as readings of their own, offsets still in the whole text.

    A clause without at least two units stays with the one before it.
    """
    cuts = [m.end() for m in CLAUSE_MARK.finditer(reading.text)]
    breaks = set(reading.words.clause_breaks)
    cuts += [token.start for token in reading.tokens if token.norm in breaks and token.start > 0]
    parts: list[Reading] = []
    start = 0
    for end in [*sorted(cuts), len(reading.text)]:
        units = tuple(u for u in reading.units if start <= u.start < end)
        if len(units) < 2 and end < len(reading.text):
            continue
        tokens = tuple(t for t in reading.tokens if start <= t.start < end)
        if units:
            parts.append(Reading(reading.text, reading.language, tokens, units))
        start = end
    return parts or [reading]


def scaled(reading: Reading, heading: str) -> Reading:
    """The reading with bare numbers in the unit that the heading gives: "Visitors (thousands)"."""
    unit = heading_unit(heading, reading.language)
    if unit is None:
        return reading
    words, one = unit
    return replace(reading, units=tuple(_scaled_unit(u, words, one) for u in reading.units))


@lru_cache(maxsize=2_000)
def heading_unit(heading: str, language: str) -> tuple[str, Quantity] | None:
    """What a heading says of the numbers below it: its words, and what 1 of them is."""
    for match in HEADING_UNIT.finditer(heading):
        words = next(group for group in match.groups() if group).strip()
        found = find_quantities("1 " + PLURAL_SCALE.sub(r"\1", words), language)
        if found and found[0].start == 0 and (found[0].unit or found[0].low != 1.0):
            return words, found[0]
    return None


def _scaled_unit(unit: Unit, words: str, one: Quantity) -> Unit:
    own = unit.quantity
    if own is None or own.unit or own.ordinal:
        return unit
    factor = one.low - one.offset
    larger = replace(
        own,
        text=f"{own.text} ({words})",
        unit=one.unit,
        low=own.low * factor + one.offset,
        high=own.high * factor + one.offset,
        step=own.step * abs(factor),
        margin=own.margin * abs(factor),
    )
    return replace(unit, quantity=larger, unscaled=own)


def _tokens(text: str, language: str, words: Lexicon) -> Iterator[Token]:
    for match in TOKEN.finditer(text):
        raw = match.group()
        norm = fold(POSSESSIVE.sub("", raw))
        quantifies = norm in words.quantifiers or norm in words.only
        yield Token(
            match.start(),
            match.end(),
            raw,
            norm,
            stem(norm, language),
            norm in words.functions or norm in words.negation or quantifies,
            bool(CAPITAL.match(raw)),
        )


def _word_unit(token: Token) -> Unit:
    kind: UnitKind = "char" if IS_UNSPACED.match(token.text) else "word"
    return Unit(kind, token.start, token.end, token.text, (token.stem,), WEIGHTS[kind])


def _names(tokens: Sequence[Token], text: str, words: Lexicon) -> Iterator[Unit]:
    """Runs of capitalised words, less leading function words and a trailing "of".

    A single capitalised word that opens the sentence is left to the words: it may be any word.
    German writes every noun so; there single words do not count.
    """
    opening = next((i for i, t in enumerate(tokens) if not t.function), len(tokens))
    for first, last in _runs(tokens, text):
        while first < last and tokens[first].function:
            first += 1
        while last > first and not tokens[last - 1].capital:
            last -= 1
        single = last - first == 1
        if last == first or (single and (first == opening == 0 or words.language == "de")):
            continue
        start, end = tokens[first].start, tokens[last - 1].end
        own = tuple(t.stem for t in tokens[first:last] if t.norm not in CONNECTING)
        yield Unit("name", start, end, text[start:end], own, WEIGHTS["name"])


def _runs(tokens: Sequence[Token], text: str) -> Iterator[tuple[int, int]]:
    """`[first, last)` of tokens that may form one name together."""
    first = 0
    while first < len(tokens):
        if not tokens[first].capital:
            first += 1
            continue
        last = first + 1
        while last < len(tokens) and _joins(text, tokens[last - 1], tokens[last]):
            last += 1
        yield first, last
        first = last


def _joins(text: str, before: Token, token: Token) -> bool:
    between = text[before.end : token.start]
    return between in JOINTS and (token.capital or token.norm in CONNECTING)


def _overlaps(start: int, end: int, others: Sequence[object]) -> bool:
    return any(
        start < other.end and other.start < end  # type: ignore[attr-defined]
        for other in others
    )
