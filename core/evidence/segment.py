"""Sentences of a text with their offsets, page by page, in some 300 languages (sentencex).

Line ends inside wrapped prose are not sentence ends; list items, table rows and chart readings
are. Source: CEDA 3.1 (a chunk is typically a sentence).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex
import sentencex

from core.records import Page

LONGEST = 600
# sentencex takes time with the square of a paragraph's length where blanks do not part sentences.
WINDOW = 6000
PROSE_SHARE = 0.35
FEW_LINES = 4
FULL_LINE = 0.6
NARROW = 40
FINAL = regex.compile(r"""[.!?。！？।؟…:][)"'”’\]]*\s*$""")
ROW = regex.compile(r"\s*[^:\n]{1,60}: \S")
ITEM = regex.compile(r"\s*(?:[-–—•*◦▪·]|\(?\d{1,3}[.)]|\(?[a-z][.)]|#{1,6})\s+")
BREAK = regex.compile(r"[;:,،、，；]\s*|\s+")
MEANINGFUL = regex.compile(r"[\p{L}\p{N}]")
BLANK_LINE = regex.compile(r"\r?\n[ \t]*(?:\r?\n)+|\f")
LINE_END = regex.compile(r"\r?\n")


@dataclass(frozen=True)
class Sentence:
    """`[start, end)` in the text given, without blanks at either end."""

    start: int
    end: int
    page: int | None


def sentences(
    text: str, language: str, pages: Sequence[Page] = (), *, by_line: bool = False
) -> list[Sentence]:
    """All sentences in order; `by_line` for sources whose lines stand alone (tables, images)."""
    found: list[Sentence] = []
    spans: list[tuple[int, int, int | None]] = [(p.start, p.end, p.number) for p in pages]
    for start, end, number in spans or [(0, len(text), None)]:
        for block_start, block_end in _split(text, start, end, BLANK_LINE):
            for unit_start, unit_end in _units(text, block_start, block_end, by_line):
                found.extend(
                    Sentence(a, b, number)
                    for a, b in _sentences_of_unit(text, unit_start, unit_end, language)
                )
    return found


def _split(
    text: str, start: int, end: int, separator: regex.Pattern[str]
) -> Iterator[tuple[int, int]]:
    position = start
    for match in separator.finditer(text, start, end):
        yield position, match.start()
        position = match.end()
    yield position, end


def _units(text: str, start: int, end: int, by_line: bool) -> Iterator[tuple[int, int]]:
    """Stretches of lines that belong together: a wrapped paragraph, an item, a row."""
    lines = list(_split(text, start, end, LINE_END))
    if len(lines) == 1:
        yield lines[0]
        return
    longest = max(b - a for a, b in lines)
    flows = not by_line and longest > NARROW and _may_be_prose(text, lines)
    opened = lines[0][0]
    for (a, b), (c, d) in itertools.pairwise(lines):
        if by_line or not _goes_on(text[a:b], text[c:d], flows and b - a >= FULL_LINE * longest):
            yield opened, b
            opened = c
    yield opened, end


def _goes_on(line: str, following: str, is_full: bool) -> bool:
    """True when a line was only broken for lack of room."""
    if ITEM.match(following) or not following.strip():
        return False
    if following.lstrip()[:1].islower():
        return True
    return is_full and not FINAL.search(line) and not (ROW.match(line) and ROW.match(following))


def _may_be_prose(text: str, lines: Sequence[tuple[int, int]]) -> bool:
    """Wrapped prose goes on in small letters; lists begin anew. Few lines cannot tell."""
    openings = [text[a:b].lstrip()[:1] for a, b in lines[1:]]
    cased = [letter for letter in openings if letter.lower() != letter.upper()]
    small = sum(letter.islower() for letter in cased)
    return len(cased) < FEW_LINES or small >= PROSE_SHARE * len(cased)


def _sentences_of_unit(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """The unit's sentences, window by window: what ends near a window's end is looked at again."""
    while end - start > WINDOW:
        edge = start + WINDOW - LONGEST
        for sentence in _sentences_in(text, start, start + WINDOW, language):
            if sentence[1] > edge:
                start = sentence[0]
                break
            yield sentence
        else:
            start = edge
    yield from _sentences_in(text, start, end, language)


def _sentences_in(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    position = start
    for piece in sentencex.segment("en" if language == "und" else language, text[start:end]):
        yield from _trimmed(text, position, position + len(piece))
        position += len(piece)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretch without outer blanks, cut where it is too long, left out where it is empty."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > LONGEST:
        cuts = [m.end() for m in BREAK.finditer(text, start + LONGEST // 2, start + LONGEST)]
        cut = cuts[-1] if cuts else start + LONGEST
        yield from _trimmed(text, start, cut)
        start = cut
    if MEANINGFUL.search(text, start, end):
        yield start, end
