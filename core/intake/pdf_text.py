"""The text layer of PDF pages, by PDFium first and by pypdf where PDFium's is no good.

Measured on pages printed by Chromium and reportlab: PDFium keeps the cells of a row on one line
(pypdf gives each its own), spells ligatures out, puts no blanks between Chinese characters, is
twice as fast, and is what finds quotes on the page later. pypdf is the better one for Thai and
its neighbours, where PDFium repeats marks, and reads some files that PDFium refuses.
"""

from __future__ import annotations

import ctypes
import io
import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pypdfium2
import pypdfium2.raw
import regex

RTL = regex.compile(r"[\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}]")
LTR = regex.compile(r"[\p{L}\p{N}]")
STACKED = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
INDIC = regex.compile(
    r"[\p{Devanagari}\p{Bengali}\p{Tamil}\p{Telugu}\p{Gujarati}\p{Kannada}\p{Malayalam}"
    r"\p{Gurmukhi}\p{Oriya}\p{Sinhala}]"
)
UNREAL = frozenset({"Co", "Cn", "Cs", "Cc"})
GARBAGE = 0.3
SCRIPT_SHARE = 0.3
# What PDFium's two ways of giving text put for a hyphen at a line's end, in place of both.
CUT_MARK = regex.compile("[\x02\ufffe]")

Second = Callable[[int], str]


@dataclass(frozen=True)
class Letter:
    """A character of the text layer and its box, in the page's units, y upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def x(self) -> float:
        """The centre, horizontally."""
        return (self.left + self.right) / 2


def page_text(page: Any, number: int, second: Second) -> str:
    """The page's text with a line feed at each line's end; `second` reads it by pypdf."""
    text_page = page.get_textpage()
    try:
        text = _lines(text_page.get_text_range())
        if RTL.search(text):
            letters = in_reading_order(letters_of(text_page))
            text = _lines("".join(letter.text for letter in letters))
    finally:
        text_page.close()
    if is_garbage(text) or _share(STACKED, text) > SCRIPT_SHARE:
        other = _lines(second(number))
        if other.strip() and not is_garbage(other):
            return other
    return text


def _lines(text: str) -> str:
    text = CUT_MARK.sub("-\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "\n".join(line.rstrip(" \x00") for line in text.split("\n")).strip("\n")


def is_garbage(text: str) -> bool:
    """True when many characters are stand-ins: fonts that do not say what their glyphs mean."""
    shown = [letter for letter in text if not letter.isspace()]
    unreal = sum(letter == "\ufffd" or unicodedata.category(letter) in UNREAL for letter in shown)
    return unreal > GARBAGE * len(shown)


def is_marked_script(text: str) -> bool:
    """True for scripts whose marks PDFs often put in the wrong place."""
    return _share(STACKED, text) > SCRIPT_SHARE or _share(INDIC, text) > SCRIPT_SHARE


def _share(script: regex.Pattern[str], text: str) -> float:
    return len(script.findall(text)) / max(1, sum(not letter.isspace() for letter in text))


def letters_of(text_page: Any) -> list[Letter]:
    """All characters of the text layer in PDFium's order."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    letters = []
    for index in range(text_page.count_chars()):
        code = pypdfium2.raw.FPDFText_GetUnicode(text_page, index)
        pypdfium2.raw.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
        letters.append(
            Letter(
                chr(code) if code else "\ufffd", left.value, bottom.value, right.value, top.value
            )
        )
    return letters


def in_reading_order(letters: Sequence[Letter]) -> list[Letter]:
    """The same letters with right-to-left lines in the order in which they are read.

    PDFium hands out some of their words as they lie on the page, from left to right.
    """
    ordered: list[Letter] = []
    for is_end, group in groupby(letters, key=lambda letter: letter.text in "\r\n"):
        line = list(group)
        if is_end or not _is_rtl(line):
            ordered.extend(line)
            continue
        words = [list(part) for _, part in groupby(line, key=lambda letter: letter.text == " ")]
        words = [word for word in words if word[0].text != " "]
        spoken = [word for word in words if any(letter.text.isalpha() for letter in word)]
        if 2 * sum(_is_rtl(word) for word in spoken) > len(spoken):
            words = [_turned(word) for word in _ordered(words)]
        else:
            words = [_turned(word) if _is_rtl(word) else word for word in words]
        for number, word in enumerate(words):
            if number:
                ordered.append(Letter(" ", 0, 0, 0, 0))
            ordered.extend(word)
    return ordered


def _is_rtl(word: Sequence[Letter]) -> bool:
    return any(RTL.match(letter.text) for letter in word)


def _ordered(words: Sequence[list[Letter]]) -> list[list[Letter]]:
    """The words of a right-to-left line: rightmost first, Latin phrases in their own order."""
    ordered = sorted(words, key=lambda word: -max(letter.x for letter in word))
    result: list[list[Letter]] = []
    for is_latin, group in groupby(
        ordered,
        key=lambda word: not _is_rtl(word) and any(LTR.match(letter.text) for letter in word),
    ):
        phrase = list(group)
        result.extend(reversed(phrase) if is_latin else phrase)
    return result


def _turned(word: list[Letter]) -> list[Letter]:
    """A right-to-left word's letters from right to left; digits and Latin letters in it not.

    Marks stay behind the letter that they follow.
    """
    if not _is_rtl(word) and any(unicodedata.category(letter.text)[0] == "L" for letter in word):
        return word
    clusters: list[list[Letter]] = []
    for letter in word:
        if clusters and unicodedata.combining(letter.text):
            clusters[-1].append(letter)
        else:
            clusters.append([letter])
    clusters.sort(key=lambda cluster: -cluster[0].x)
    turned: list[Letter] = []
    for is_latin, group in groupby(
        clusters, key=lambda c: bool(LTR.match(c[0].text)) and not RTL.match(c[0].text)
    ):
        run = list(group)
        for cluster in reversed(run) if is_latin else run:
            turned.extend(cluster)
    return turned


def second_reader(data: bytes) -> Second:
    """A function that gives a page's text by pypdf, or nothing where pypdf fails."""
    readers: list[Any] = []

    def read(number: int) -> str:
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        from pypdf import PdfReader

        try:
            if not readers:
                readers.append(PdfReader(io.BytesIO(data)))
                if readers[0].is_encrypted:
                    readers[0].decrypt("")
            return str(readers[0].pages[number].extract_text())
        except Exception:  # noqa: BLE001 - it is only the second opinion
            return ""

    return read
