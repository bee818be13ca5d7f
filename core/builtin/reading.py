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
from core.builtin.values.dates import DateValue, find_dates
from core.builtin.values.quantities import Quantity, find_quantities
from core.evidence.terms import IS_UNSPACED, UNSPACED, fold, stem

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
SCALES = (
    (regex.compile(r"\b(?:thousands?|’000|'000|Tsd|milliers|miles|千)\b|千|（千）"), 1e3),
    (regex.compile(r"\b(?:millions?|Mio|mn|millones|milioni)\b|百万"), 1e6),
    (regex.compile(r"\b(?:billions?|Mrd|bn|milliards)\b|十亿"), 1e9),
    (regex.compile(r"万"), 1e4),
    (regex.compile(r"亿"), 1e8),
)
SCALED_HEADING = regex.compile(r"[(（][^)）]*[)）]|\bin\s+\w+$|单位[:：]?\s*\w+")
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


@dataclass(frozen=True)
class Reading:
    """A text with its tokens, and its units in order (function words left out)."""

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

    def negations(self) -> tuple[Token, ...]:
        """The tokens that negate."""
        return tuple(token for token in self.tokens if token.norm in self.words.negation)


@lru_cache(maxsize=20_000)
def read(text: str, language: str) -> Reading:
    """The reading of a sentence; the same text is read once."""
    words = lexicon(language)
    tokens = tuple(_tokens(text, language, words))
    dates = find_dates(text, language)
    quantities = [
        q for q in find_quantities(text, language) if not _overlaps(q.start, q.end, dates)
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
    """The reading with bare numbers multiplied as its heading says: "Visitors (thousands)"."""
    said = " ".join(SCALED_HEADING.findall(heading))
    factor = next((value for pattern, value in SCALES if said and pattern.search(said)), None)
    if factor is None:
        return reading
    return replace(reading, units=tuple(_scaled_unit(unit, factor) for unit in reading.units))


def _scaled_unit(unit: Unit, factor: float) -> Unit:
    own = unit.quantity
    if own is None or own.unit or own.ordinal:
        return unit
    larger = replace(
        own,
        low=own.low * factor,
        high=own.high * factor,
        step=own.step * factor,
        margin=own.margin * factor,
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
