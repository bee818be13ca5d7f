"""Sentences of a text with their offsets, in some 300 languages (sentencex).

Line ends inside wrapped prose are not sentence ends; list items and rows of tables are. Source:
CEDA 3.1 (a chunk is typically a sentence).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import regex

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
ENDS = frozenset(".!?:;。！？：；।؟")
CLOSING = "\"')]”’»」』）"
# Words cut at line ends: a hyphen there belongs to the typesetting, not to the text.
SOFT_HYPHEN = "\u00ad"
CUT = regex.compile(r"([\p{L}\p{M}]+)[-\u2010]$")
GOES_ON = regex.compile(r"([\p{Ll}\p{Lo}][\p{L}\p{M}]*)\S*")
WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
# Compounds that are written with a hyphen wherever the line ends.
COMPOUNDED = frozenset("self well half all ex cross high low long short so state".split())
UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"，。、；：？！（）「」『』《》〈〉【】“”…—]"
)
LONGEST_WORD = 80


class Sentence(NamedTuple):
    """`[start, end)` in the text given, without blanks at either end."""

    start: int
    end: int


def sentences(text: str, language: str, start: int = 0, end: int | None = None) -> list[Sentence]:
    """All sentences of `[start, end)` in order, offsets in the whole text."""
    return [
        Sentence(a, b)
        for unit in text_units(text, start, len(text) if end is None else end)
        for a, b in _sentences_of_unit(text, *unit, language)
    ]


def text_units(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches of lines that belong together: a wrapped paragraph, an item, a row."""
    for block_start, block_end in _split(text, start, end, BLANK_LINE):
        yield from _units(text, block_start, block_end)


def _split(
    text: str, start: int, end: int, separator: regex.Pattern[str]
) -> Iterator[tuple[int, int]]:
    position = start
    for match in separator.finditer(text, start, end):
        yield position, match.start()
        position = match.end()
    yield position, end


def _units(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    lines = list(_split(text, start, end, LINE_END))
    if len(lines) == 1:
        yield lines[0]
        return
    longest = max(b - a for a, b in lines)
    flows = longest > NARROW and _may_be_prose(text, lines)
    opened = lines[0][0]
    for (a, b), (c, d) in itertools.pairwise(lines):
        if not _goes_on(text[a:b], text[c:d], flows and b - a >= FULL_LINE * longest):
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
    import sentencex  # here, because readers in the child process do without it

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


def is_ended(text: str) -> bool:
    """Return True for a text that ends as sentences do."""
    return text.rstrip().rstrip(CLOSING)[-1:] in ENDS


def words_in(texts: Iterable[str]) -> frozenset[str]:
    """All words of the texts, also hyphenated ones, to decide which cut words are one."""
    return frozenset(word for text in texts for word in WORD.findall(text.casefold()))


def is_cut(above: str, below: str) -> bool:
    """Return True when a word is cut between the lines by a hyphen."""
    if above[-1:] not in ("-", "\u2010"):
        return False
    return bool(CUT.search(above[-LONGEST_WORD:]) and GOES_ON.match(below))


def joined_lines(above: str, below: str, known: frozenset[str]) -> tuple[str, str]:
    """(the upper line without a hyphen that is only typesetting, what then stands between)."""
    if above.endswith(SOFT_HYPHEN):
        return above[:-1], ""
    if is_cut(above, below):
        cut, goes_on = CUT.search(above[-LONGEST_WORD:]), GOES_ON.match(below)
        assert cut and goes_on  # noqa: PT018, S101 - that is what is_cut asks
        head, tail = cut[1].casefold(), goes_on[1].casefold()
        keeps = head + tail not in known and (f"{head}-{tail}" in known or head in COMPOUNDED)
        return (above, "") if keeps else (above[:-1], "")
    if below[:1] < "\u0e00":  # the first script without blanks
        return above, " "
    both_unspaced = UNSPACED.fullmatch(above[-1:]) and UNSPACED.fullmatch(below[:1])
    return above, "" if both_unspaced else " "
