"""Reads the text layer and the drawn lines of PDF pages, with their places on the page as shown.

PDFium keeps the cells of a row on one line and locates quotes on the page later. pypdf is used for
Thai and related scripts, where PDFium repeats marks.
"""

from __future__ import annotations

import ctypes
import io
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium
import regex

from core.documents.raised_text import RAISED_END, mark_raised, write_raised
from core.documents.source_builder import PictureText, TextBox, bounding_box
from core.schema.records import BoundingBox

RTL_LETTER = regex.compile(r"[\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}]")
LTR_CHARACTER = regex.compile(r"[\p{L}\p{N}]")
STACKED_MARK_SCRIPT = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
INDIC_SCRIPT = regex.compile(
    r"[\p{Devanagari}\p{Bengali}\p{Tamil}\p{Telugu}\p{Gujarati}\p{Kannada}\p{Malayalam}"
    r"\p{Gurmukhi}\p{Oriya}\p{Sinhala}]"
)
# Placeholders for other characters: control codes, surrogates, private use.
PLACEHOLDER_CHARACTER = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ue000-\uf8ff\ufffd-\uffff"
    "\U000f0000-\U0010ffff]"
)
MIN_GARBAGE_SHARE = 0.3
MIN_SCRIPT_SHARE = 0.3
# What PDFium's two text functions give in place of a hyphen and line end.
HYPHEN_MARKS = "\x02\ufffe"
LINE_WITH_END = re.compile(rf"([^\r\n{HYPHEN_MARKS}]*)(\r?\n|\r|[{HYPHEN_MARKS}]|$)")
LINE_END = re.compile(r"(?<=\S)(\r?\n|\r) ?(?=\S)")
NON_BLANK_RUN = re.compile(r"[^\s\x00]+")
TRIMMED_LINE = re.compile(r"[^\s\x00].*[^\s\x00]|[^\s\x00]")
VALUE_TOKEN = re.compile(r"(?<!\S)[^\w\s]*\d[\d.,]*\S{0,2}(?!\S)")
MAX_WORDS_PER_VALUE = 4
FEW_RULES_COUNT = 2
LINES_BEFORE, LINES_AFTER = 10, 4  # around a line with values: may be its header and labels
MARGIN_SHARE = 0.12  # share of the page's height, at the top and at the bottom
# Numbers and marks, whose last characters may be raised: exponents and footnote marks.
RAISABLE_TEXT = re.compile(r"(?:(?<=\S)[+\-−–])?\d(?:[\d.,;+\-−–]*\d)?|(?<=\S)[*†‡§]+")
# A raised character's height, and how far it is raised, as shares of the height before it.
MAX_RAISED_SCALE, MIN_RAISED_SHARE = 0.8, 0.2
# Where a line strikes text through, as shares of the text's height from its top.
STRUCK_BAND = (0.3, 0.7)
BOLD_FONT_WORDS = (b"bold", b"black", b"heavy", b"demi")
MAX_FONT_NAME_BYTES = 128
GET_LOOSE_BOX = pdfium.FPDFText_GetLooseCharBox
# Gaps between cells of a row, in heights: between words, beside a number, between numbers.
CELL_GAPS = (1.0, 0.7, 0.5)
NUMBER_CELL_GAP = CELL_GAPS[2]
RULE_THICKNESS_POINTS = 3.0  # points; a thinner shape is a line
MIN_RULE_POINTS = 6.0
MAX_PAGE_OBJECTS = 6000
MAX_PAGE_SEGMENTS = 4000
MAX_PAGE_DRAWINGS = 40  # paths that are no table lines; with more the page is a drawing
MAX_PATH_SEGMENTS = 400  # segments; a longer one is a curve
MAX_FORM_DEPTH = 3
DEVICE_RESOLUTION = 1_000_000

PageTextReader = Callable[[int], str]


class TextLine(NamedTuple):
    """A line of a page: its words, its cells (separated by wide gaps), and the whole line."""

    words: tuple[TextBox, ...]
    cells: tuple[TextBox, ...]
    whole: TextBox


class RuledLine(NamedTuple):
    """A straight line drawn on a page, upright or level."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def is_level(self) -> bool:
        """Return True for a line from left to right."""
        return self.bottom - self.top <= self.right - self.left


@dataclass
class PdfPage:
    """The content of a page, in points from the upper left corner of the page as shown.

    `fallback` is the page's text if its lines have no reliable places, `picture` what OCR read if
    there is no text layer; lines are then in the picture's pixels.
    """

    number: int
    width: float
    height: float
    lines: list[TextLine] = field(default_factory=list)
    rules: list[RuledLine] = field(default_factory=list)
    picture_share: float = 0.0
    objects: int = 0
    has_unread_chart: bool = False
    has_struck_text: bool = False
    is_garbage: bool = False
    layer: str = ""  # the text layer, line by line
    fallback: str = ""
    picture: PictureText | None = None

    def box(self, item: TextBox) -> BoundingBox:
        """Return the item's place as shares of the page."""
        if self.picture:
            return self.picture.box(item)
        return item.share_of(max(1.0, self.width), max(1.0, self.height))


class PdfCharacter(NamedTuple):
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


def read_page(page: Any, index: int, second: PageTextReader) -> PdfPage:
    """Return the page's lines and rules; `second` reads its text by pypdf."""
    width, height = page.get_size()
    pdf_page = PdfPage(index + 1, width, height)
    text_page = page.get_textpage()
    try:
        view = _View(page, text_page)
        pdf_page.rules, pdf_page.picture_share, pdf_page.objects = view.drawn()
        pdf_page.lines = list(view.lines())
        pdf_page.has_struck_text = view.has_struck_text
    finally:
        text_page.close()
    text = pdf_page.layer = "\n".join(line.whole.text for line in pdf_page.lines)
    pdf_page.is_garbage = is_garbage(text)
    if pdf_page.is_garbage or match_share(STACKED_MARK_SCRIPT, text) > MIN_SCRIPT_SHARE:
        pypdf_text = second(index).strip("\n")
        if pypdf_text.strip() and not is_garbage(pypdf_text):
            pdf_page.lines, pdf_page.fallback, pdf_page.is_garbage = [], pypdf_text, False
            pdf_page.layer = pypdf_text
    elif _is_sideways(pdf_page.lines):
        pdf_page.lines, pdf_page.fallback = [], text
    return pdf_page


def build_plain_page(number: int, text: str) -> PdfPage:
    """Return a page of which only the text is known."""
    return PdfPage(number, 1.0, 1.0, layer=text, fallback=text)


def _is_sideways(lines: Sequence[TextLine]) -> bool:
    words = [word for line in lines for word in line.words if len(word.text) > 3]
    return 2 * sum(word.height > 1.5 * word.width for word in words) > len(words) > 0


def is_garbage(text: str) -> bool:
    """Return True if many characters are placeholders, as from fonts without a Unicode mapping."""
    return match_share(PLACEHOLDER_CHARACTER, text) > MIN_GARBAGE_SHARE


def is_marked_script(text: str) -> bool:
    """Return True for scripts whose marks PDFs often misplace."""
    return (
        match_share(STACKED_MARK_SCRIPT, text) > MIN_SCRIPT_SHARE
        or match_share(INDIC_SCRIPT, text) > MIN_SCRIPT_SHARE
    )


def match_share(script: regex.Pattern[str] | re.Pattern[str], text: str) -> float:
    """Return the share of the text's characters, blanks aside, that the pattern matches."""
    if (text.isascii() and script is not PLACEHOLDER_CHARACTER) or not script.search(text):
        return 0.0
    return len(script.findall(text)) / max(1, len("".join(text.split())))


class _View:
    """Reads a page; converts PDFium's coordinates to those of the page as shown."""

    def __init__(self, page: Any, text_page: Any) -> None:
        self._page, self._text_page = page, text_page
        self._letters = text_page.raw  # used for every character, so converted only once
        self._width, self._height = page.get_size()
        (self._x0, self._y0), (xx, yx), (xy, yy) = (
            self._device(*p) for p in ((0, 0), (1000, 0), (0, 1000))
        )
        self._matrix = (
            (xx - self._x0) / 1000,
            (xy - self._x0) / 1000,
            (yx - self._y0) / 1000,
            (yy - self._y0) / 1000,
        )
        self._rect = pdfium.FS_RECTF()
        self._name, self._flags = ctypes.create_string_buffer(MAX_FONT_NAME_BYTES), ctypes.c_int()
        self._stroke, self._edges = ctypes.c_int(), [ctypes.c_float() for _ in range(4)]
        self._bold: dict[bytes, bool] = {}
        self.has_struck_text = False

    def _device(self, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(
            self._page, 0, 0, DEVICE_RESOLUTION, DEVICE_RESOLUTION, 0, x, y, across, down
        )
        return (
            across.value * self._width / DEVICE_RESOLUTION,
            down.value * self._height / DEVICE_RESOLUTION,
        )

    def _shown(self, x: float, y: float) -> tuple[float, float]:
        a, b, c, d = self._matrix
        return self._x0 + a * x + b * y, self._y0 + c * x + d * y

    def lines(self) -> Iterator[TextLine]:
        text = self._text_page.get_text_range()
        count = self._text_page.count_chars()
        if len(text) != count:
            codes = (pdfium.FPDFText_GetUnicode(self._text_page, n) for n in range(count))
            text = "".join(chr(code) if code else "\ufffd" for code in codes)
        has_rtl = not text.isascii() and RTL_LETTER.search(text) is not None
        self._raised = [] if has_rtl else self._find_raised(text)
        text = text if has_rtl else self._join_lines(text)
        matches = [match for match in LINE_WITH_END.finditer(text) if match[1]]
        is_by_word = self._choose_lines_by_word(matches)
        for number, match in enumerate(matches):
            start, end = match.span(1)
            if has_rtl and RTL_LETTER.search(text, start, end):
                line = self._rtl_line(start, end)
            else:
                is_cut = bool(match[2]) and match[2] in HYPHEN_MARKS
                line = self._line(text, start, end, is_cut=is_cut, closely=is_by_word[number])
            if line:
                yield line

    def _find_raised(self, text: str) -> list[tuple[int, int]]:
        """Return the ranges of raised characters behind numbers and words."""
        raised: list[tuple[int, int]] = []
        for match in RAISABLE_TEXT.finditer(text):
            start, end = match.span()
            is_glued = start > 0 and not text[start - 1].isspace()
            if not is_glued and end - start == 1:
                continue
            first, reference = end, self._box(start - is_glued)
            while first > start and self._is_raised(first - 1, reference):
                first -= 1
            if first < end:
                raised.append((first, end))
        return raised

    def _join_lines(self, text: str) -> str:
        """Return the text without line ends after raised or lowered text whose line goes on.

        The replaced characters keep their number, as PDFium counts them.
        """
        for match in LINE_END.finditer(text):
            _, top, right, bottom = self._box(match.start() - 1)
            left, next_top, _, next_bottom = self._box(match.end())
            height = next_bottom - next_top
            is_small = bottom - top < MAX_RAISED_SCALE * height
            is_beside = abs(left - right) < height and top < next_bottom and next_top < bottom
            if is_small and is_beside:
                fill = RAISED_END * len(match[1])
                text = f"{text[: match.start()]}{fill}{text[match.end(1) :]}"
        return text

    def _choose_lines_by_word(self, matches: Sequence[re.Match[str]]) -> list[bool]:
        """Return which lines are read word by word: those in a margin or possibly in a table.

        Places of words take most of the reading time. Plain prose is set line by line, in one
        piece, and holds few numbers.
        """
        is_by_word = [len(self._rules) > FEW_RULES_COUNT] * len(matches)
        for number, match in enumerate(matches):
            values = len(VALUE_TOKEN.findall(match[1]))
            if values > 1 and values > len(match[1].split()) // MAX_WORDS_PER_VALUE:
                end = min(number + LINES_AFTER, len(is_by_word))
                for near in range(max(0, number - LINES_BEFORE), end):
                    is_by_word[near] = True
        return is_by_word

    def _is_one_piece(self, start: int, end: int) -> bool:
        if pdfium.FPDFText_CountRects(self._letters, start, end - start) != 1:
            return False
        _, top, _, bottom = self._box(start)
        return bool(
            MARGIN_SHARE * self._height < top and bottom < (1 - MARGIN_SHARE) * self._height
        )

    def _box(self, index: int) -> tuple[float, float, float, float]:
        """Return (left, top, right, bottom) of a character's loose box on the page as shown."""
        rect = self._rect
        GET_LOOSE_BOX(self._letters, index, rect)
        x1, y1 = self._shown(rect.left, rect.top)
        x2, y2 = self._shown(rect.right, rect.bottom)
        return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)

    def _line(
        self, text: str, start: int, end: int, *, is_cut: bool, closely: bool
    ) -> TextLine | None:
        words: list[TextBox] = []
        box = self._box
        strikes = self._find_strikes(start, end)
        is_whole = not strikes and not closely and self._is_one_piece(start, end)
        pieces = TRIMMED_LINE if is_whole else NON_BLANK_RUN
        raised = [place for place in self._raised if start <= place[0] < end]
        for match in pieces.finditer(text, start, end):
            first, last = match.span()
            word = match[0]
            left, top, right, bottom = box(first)
            if last - first > 1:
                other = box(last - 1)
                left, right = min(left, other[0]), max(right, other[2])
            slack = 0.3 * (bottom - top)
            if any(one.left < left + slack and right - slack < one.right for one in strikes):
                self.has_struck_text = True
                continue
            for a, b in reversed(raised):
                if first < a < last:
                    a, b = a - first, b - first
                    word = word[:a] + mark_raised(word[a:b]) + word[b:]
            words.append(TextBox(write_raised(word), left, top, right, bottom))
        if not words:
            return None
        if is_cut:
            words[-1] = words[-1]._replace(text=words[-1].text + "-")
        return build_text_line(words, bold=self._is_bold(start) and self._is_bold(end - 1))

    def _find_strikes(self, start: int, end: int) -> list[RuledLine]:
        """Return the level lines through the middle of a text line that are no longer than it."""
        left, top, _, bottom = self._box(start)
        height, right = bottom - top, self._box(end - 1)[2]
        upper, lower = (top + share * height for share in STRUCK_BAND)
        return [
            rule
            for rule in self._rules
            if upper < rule.top < lower
            and rule.is_level
            and left - height < rule.left
            and rule.right < right + height
        ]

    def _is_raised(self, index: int, reference: tuple[float, float, float, float]) -> bool:
        _, top, _, bottom = self._box(index)
        height = reference[3] - reference[1]
        is_small = bottom - top < MAX_RAISED_SCALE * height
        return is_small and bottom < reference[3] - MIN_RAISED_SHARE * height

    def _is_bold(self, index: int) -> bool:
        pdfium.FPDFText_GetFontInfo(
            self._letters, index, self._name, MAX_FONT_NAME_BYTES, self._flags
        )
        name = self._name.value
        is_bold = self._bold.get(name)
        if is_bold is None:
            is_bold = self._bold[name] = any(word in name.lower() for word in BOLD_FONT_WORDS)
        return is_bold

    def _rtl_line(self, start: int, end: int) -> TextLine | None:
        letters = order_letters(load_letters(self._text_page, start, end))
        text = "".join(letter.text for letter in letters).strip()
        boxes = [TextBox("", *self._box(n)) for n in range(start, end)]
        if not text or not boxes:
            return None
        whole = bounding_box(boxes, text)
        return TextLine((whole,), (whole,), whole)

    def drawn(self) -> tuple[list[RuledLine], float, int]:
        """Return (straight lines, the largest picture's share of the page, number of objects)."""
        count = pdfium.FPDFPage_CountObjects(self._page)
        self._rules: list[RuledLine] = []
        self._largest = 0.0
        self._segments = self._drawings = 0
        if count <= MAX_PAGE_OBJECTS:
            for number in range(count):
                self._take(pdfium.FPDFPage_GetObject(self._page, number), MAX_FORM_DEPTH)
        return (
            join_rules(self._rules),
            self._largest / max(1.0, self._width * self._height),
            count,
        )

    def _take(self, item: Any, depth: int) -> None:
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_FORM and depth:
            for number in range(min(pdfium.FPDFFormObj_CountObjects(item), MAX_PAGE_OBJECTS)):
                self._take(pdfium.FPDFFormObj_GetObject(item, number), depth - 1)
        if kind not in (pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_IMAGE):
            return
        if not pdfium.FPDFPageObj_GetBounds(item, *self._edges):
            return
        left, bottom, right, top = (edge.value for edge in self._edges)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            self._largest = max(self._largest, abs(right - left) * abs(top - bottom))
        elif min(right - left, top - bottom) <= RULE_THICKNESS_POINTS:
            self._add_rule(left, bottom, right, top)
        elif self._segments < MAX_PAGE_SEGMENTS and self._drawings < MAX_PAGE_DRAWINGS:
            self._drawings += not self._take_path(item)

    def _add_rule(self, x1: float, y1: float, x2: float, y2: float) -> None:
        (x1, y1), (x2, y2) = self._shown(x1, y1), self._shown(x2, y2)
        rule = RuledLine(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
        if max(rule.right - rule.left, rule.bottom - rule.top) >= MIN_RULE_POINTS:
            self._rules.append(rule)

    def _take_path(self, item: Any) -> bool:
        pdfium.FPDFPath_GetDrawMode(item, self._flags, self._stroke)
        count = pdfium.FPDFPath_CountSegments(item)
        if not self._stroke.value or count > MAX_PATH_SEGMENTS:
            return False
        self._segments += count
        matrix, x, y = pdfium.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
        pdfium.FPDFPageObj_GetMatrix(item, matrix)
        here = (0.0, 0.0)
        for number in range(count):
            segment = pdfium.FPDFPath_GetPathSegment(item, number)
            pdfium.FPDFPathSegment_GetPoint(segment, x, y)
            there = (
                matrix.a * x.value + matrix.c * y.value + matrix.e,
                matrix.b * x.value + matrix.d * y.value + matrix.f,
            )
            kind = pdfium.FPDFPathSegment_GetType(segment)
            is_slanted = min(abs(there[0] - here[0]), abs(there[1] - here[1])) >= 1.0
            if kind == pdfium.FPDF_SEGMENT_BEZIERTO:
                return False
            if kind == pdfium.FPDF_SEGMENT_LINETO:
                if is_slanted:
                    return False
                self._add_rule(*here, *there)
            here = there
        return True


def join_rules(rules: Sequence[RuledLine]) -> list[RuledLine]:
    """Join pieces of straight lines; return the level ones first, then the upright ones."""

    def order(rule: RuledLine) -> tuple[bool, int, float]:
        place, start = (rule.top, rule.left) if rule.is_level else (rule.left, rule.top)
        return not rule.is_level, round(place / RULE_THICKNESS_POINTS), start

    joined: list[RuledLine] = []
    for rule in sorted(rules, key=order):
        last = joined[-1] if joined else rule
        if rule.is_level:
            offset, gap = last.top - rule.top, rule.left - last.right
        else:
            offset, gap = last.left - rule.left, rule.top - last.bottom
        if (
            joined
            and last.is_level == rule.is_level
            and abs(offset) < RULE_THICKNESS_POINTS
            and gap < RULE_THICKNESS_POINTS
        ):
            right, bottom = max(last.right, rule.right), max(last.bottom, rule.bottom)
            joined[-1] = RuledLine(last.left, last.top, right, bottom)
        else:
            joined.append(rule)
    return joined


def build_text_line(words: Sequence[TextBox], *, bold: bool = False) -> TextLine:
    """Return the words as a line, split into cells where the gap between words is wide."""
    groups: list[list[TextBox]] = [[words[0]]]
    for one, other in pairwise(words):
        gap = (other.left - one.right) / (other.bottom - other.top or 1.0)
        # Most gaps are blanks; beside a number, narrower gaps separate cells than between words.
        if -2 < gap < NUMBER_CELL_GAP or (
            -2 < gap < CELL_GAPS[one.text[-1].isdigit() + other.text[0].isdigit()]
        ):
            groups[-1].append(other)
        else:
            groups.append([other])
    whole = _join_words(words, bold)
    cells = (whole,) if len(groups) == 1 else tuple(_join_words(group, bold) for group in groups)
    return TextLine(tuple(words), cells, whole)


def _join_words(words: Sequence[TextBox], bold: bool) -> TextBox:
    if len(words) == 1:
        return words[0]._replace(bold=bold)
    first, last = words[0], words[-1]
    top, bottom = first[2], first[4]
    if abs(last[2] - top) > 0.1 or abs(last[4] - bottom) > 0.1:
        _, top, bottom = sorted((w[4] - w[2], w[2], w[4]) for w in words)[len(words) // 2]
    text = " ".join([word[0] for word in words])
    left, right = min([word[1] for word in words]), max([word[3] for word in words])
    return TextBox(text, left, top, right, bottom, 1.0, bold)


def load_letters(text_page: Any, start: int = 0, end: int | None = None) -> list[PdfCharacter]:
    """Return characters of the text layer, all or those of `[start, end)`, in PDFium's order."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    letters = []
    for index in range(start, text_page.count_chars() if end is None else end):
        code = pdfium.FPDFText_GetUnicode(text_page, index)
        pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
        place = (left.value, bottom.value, right.value, top.value)
        letters.append(PdfCharacter(chr(code) if code else "\ufffd", *place))
    return letters


def order_letters(letters: Sequence[PdfCharacter]) -> list[PdfCharacter]:
    """Return the letters with right-to-left lines put in reading order.

    PDFium yields some of their words as they lie on the page, from left to right.
    """
    ordered: list[PdfCharacter] = []
    for is_end, group in groupby(letters, key=lambda letter: letter.text in "\r\n"):
        line = list(group)
        if is_end or not _is_rtl(line):
            ordered += line
            continue
        parts = groupby(line, key=lambda letter: letter.text == " ")
        words = [list(part) for is_blank, part in parts if not is_blank]
        words_with_letters = [
            word for word in words if any(letter.text.isalpha() for letter in word)
        ]
        is_rtl_line = 2 * sum(map(_is_rtl, words_with_letters)) > len(words_with_letters)
        for number, word in enumerate(_order_rtl_words(words) if is_rtl_line else words):
            ordered += [PdfCharacter(" ", 0, 0, 0, 0)] if number else []
            ordered += _reverse_rtl_word(word) if is_rtl_line or _is_rtl(word) else word
    return ordered


def _is_rtl(word: Sequence[PdfCharacter]) -> bool:
    return any(RTL_LETTER.match(letter.text) for letter in word)


def _order_rtl_words(words: Sequence[list[PdfCharacter]]) -> list[list[PdfCharacter]]:
    """Return the words of a right-to-left line, rightmost first; Latin phrases keep their order."""
    ordered = sorted(words, key=lambda word: -max(letter.x for letter in word))
    result: list[list[PdfCharacter]] = []
    for is_latin, group in groupby(
        ordered,
        key=lambda word: (
            not _is_rtl(word) and any(LTR_CHARACTER.match(letter.text) for letter in word)
        ),
    ):
        phrase = list(group)
        result.extend(reversed(phrase) if is_latin else phrase)
    return result


def _reverse_rtl_word(word: list[PdfCharacter]) -> list[PdfCharacter]:
    """Return a right-to-left word's letters from right to left, except digits and Latin letters.

    Marks stay behind the letter that they follow.
    """
    if not _is_rtl(word) and any(unicodedata.category(letter.text)[0] == "L" for letter in word):
        return word
    clusters: list[list[PdfCharacter]] = []
    for letter in word:
        if clusters and unicodedata.combining(letter.text):
            clusters[-1].append(letter)
        else:
            clusters.append([letter])
    clusters.sort(key=lambda cluster: -cluster[0].x)
    result: list[PdfCharacter] = []
    for is_latin, group in groupby(
        clusters,
        key=lambda c: bool(LTR_CHARACTER.match(c[0].text)) and not RTL_LETTER.match(c[0].text),
    ):
        run = list(group)
        result += [letter for cluster in (run[::-1] if is_latin else run) for letter in cluster]
    return result


def make_pypdf_reader(data: bytes) -> PageTextReader:
    """Return a function that reads a page's text by pypdf, or "" if pypdf fails."""
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
        except Exception:  # noqa: BLE001 - this is only a fallback
            return ""

    return read
