"""Bare numbers written in digits: grouping, decimals, powers, fractions, ordinals.

Which of "," and "." marks decimals is the language's (CLDR). "1,234" is 1234 in English and 1.234
in German; "1.234" the other way round. A group that cannot be thousands is decimal in any
language ("1,5", "0.500"), and where both marks occur the last one is the decimal mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.tools.values.kinds import Bound
from core.tools.values.plain import is_unspaced
from core.tools.values.value_words import ValueWords

LONGEST = 15
CHUNK = re.compile(r"\d(?:[\d.,]*\d)?")
GROUPED = re.compile(
    r"\d{1,3}(?P<gap>[' \u00a0])\d{3}(?:(?P=gap)\d{3}){0,4}(?!\d)(?:[.,]\d+(?!\d))?"
)
TWO_WAYS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
LEADING_POINT = re.compile(r"(?:^|[ (\u00a0])\.$")
LIST_NUMBER = re.compile(r"(?m)(?:^[ \t]*|  +)\d{1,3}[.)](?=\s|\*|$)")
CITATION = re.compile(r"\[\d{1,3}(?:[-–, ]+\d{1,3})*\]")
GAPS = re.compile("[' \u00a0]")
THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\D\d{3})+")
INDIAN = re.compile(r"[1-9]\d?(?:,\d\d)+,\d{3}")
EXPONENT = re.compile(
    r"[eE](?P<e>[+-]?\d{1,2})(?!\w)|[ \u00a0]?[×x·*][ \u00a0]?10"
    r"(?:\^[({]?(?P<caret>[+-]?\d{1,2})[)}]?|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))"
)
TEN_TO = re.compile(r"10(?:\^(?P<caret>[+-]?\d{1,2})|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))(?!\w)")
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
ORDINAL_END = re.compile(
    r"(?:st|nd|rd|th|(?:er|ère|ere|e|ème|eme|re|nde|de|ste|-й|-я|-е|-го|-й)(?=[ ,.;)]|$)"
    r"|[ºª](?!\s?[CF])|\.º|\.ª)(?!\w)"
)
MINUS_WORDS = re.compile(
    r"(?:(?<!\d )(?<!\w)(?:minus|menos|moins|miinus|минус) |零下|氷点下|マイナス|负|負|영하 ?)$",
    re.IGNORECASE,
)
CURRENCY_LETTERS = re.compile(r"(?<![^\W_])(?:Rs|RS|[A-Z]{3}|R|kr|DM|Rp)$")
CODE_LETTERS = frozenset("DGACEFXPQRZ")
FRACTION = re.compile(r"(?P<top>\d{1,2})/(?P<bottom>\d{1,3})(?![\d/])")
VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
VULGAR_SIGN = re.compile(f"[{VULGAR}]")
CHAINS = re.compile(
    r"(?<!\d)\d++(?:"
    r"(?:[-–]\d++){2,}+"  # ISBN, dates, phone numbers
    r"|(?:\.\d++){2,}+(?:[a-z]\d{0,3})?(?=\W|$)"  # versions, sections; unless thousands
    r"|(?<![,.]):\d++(?::\d++)*+(?:[.,]\d++)?"  # times, ratios
    r"|/\d++/\d++)"
)
# Patterns that are only worth a search where one of these signs or words occurs.
GATED: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("+",), re.compile(r"(?<!\w)\+\d[\d \u00a0()-]{6,}\d")),
    (("(",), re.compile(r"\(\d{3}\)[ -]?\d{3}-\d{4}")),
    (("://", "www.", "@"), re.compile(r"(?:https?://|www\.)\S+|[\w.]{1,64}@[\w.]+")),
    (
        ("ISBN", "ISSN", "DOI", "doi", "PMID", "arXiv", "Tel", "tel", "hone", "ZIP", "ostcode",
         "RFC", "ISO", "CAS"),
        re.compile(
            r"\b(?:ISBN|ISSN|DOI|doi|PMID|arXiv|[Tt]el|[Pp]hone|ZIP|[Pp]ostcode|RFC|ISO|CAS)\b[\s.:#]*"
            r"(?:code|number|no\.?)?[\s.:#]*[\d][\d.\-/xX ]*"
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A bare number at `[start, end)`; `step` is the size of its last written digit.

    `share` says that the value is a part of a whole in per cent; `needs` that the words are a
    number only before a unit ("a", "half a"), or before "of" or a unit ("1/3").
    """

    start: int
    end: int
    low: float
    high: float
    step: float = 1.0
    significant: int = 1
    ordinal: bool = False
    share: bool = False
    noun: str = ""
    bound: Bound = "exact"
    needs: str = ""
    spelled: bool = False
    other_factor: float = 1.0


def digit_numbers(original: str, text: str, words: ValueWords) -> Iterator[Number]:
    """All numbers in digits of a plain text, identifiers left out; `original` has its lines."""
    spans = [*_blocked(text), *(m.span() for m in LIST_NUMBER.finditer(original))]
    blocked = {place for start, end in spans for place in range(start, end)}
    position = 0
    while match := CHUNK.search(text, position):
        if match.start() in blocked:
            position = match.end()
            continue
        found = list(_numbers_at(text, match.start(), match.end(), words))
        yield from found
        position = max([match.end(), *(number.end for number in found)])
    yield from _vulgar(text)


def _blocked(text: str) -> list[tuple[int, int]]:
    """Where figures are codes, addresses or clock times, not numbers."""
    found = [m.span() for m in CHAINS.finditer(text) if not THOUSANDS.fullmatch(m.group())]
    if "[" in text:
        found += [m.span() for m in CITATION.finditer(text)]
    for hints, pattern in GATED:
        if any(hint in text for hint in hints):
            found += [m.span() for m in pattern.finditer(text)]
    return found


def _vulgar(text: str) -> Iterator[Number]:
    """½ and its like where no digits stand before them."""
    if text.isascii():
        return
    for match in VULGAR_SIGN.finditer(text):
        position = match.start()
        if not text[position - 1 : position].isdigit():
            value = unicodedata.numeric(match.group())
            yield Number(position, position + 1, value, value, value / 20, 2, needs="of or unit")


def _numbers_at(text: str, start: int, end: int, words: ValueWords) -> Iterator[Number]:
    if _is_identifier(text, start, end):
        return
    power = TEN_TO.match(text, start)
    if power:
        value = 10.0 ** _exponent(power)
        yield Number(start, power.end(), value, value, value)
        return
    fraction = _fraction(text, start, end)
    if fraction or text[end : end + 1] == "/" or (start and text[start - 1] == "/"):
        if fraction:
            yield fraction
        if fraction or text[end + 1 : end + 2].isdigit() or text[start - 2 : start - 1].isdigit():
            return
    grouped = GROUPED.match(text, start)
    if grouped and _is_grouped(grouped, text, words):
        end = grouped.end()
    for first, last, value, decimals in _read(text, start, end, words.decimal_mark):
        number = _number(text, first, last, value, decimals)
        if words.language != "en" and TWO_WAYS.fullmatch(text, first, last):
            number = replace(number, other_factor=1000.0 if decimals else 0.001)
        yield number


def _is_grouped(match: re.Match[str], text: str, words: ValueWords) -> bool:
    """Whether blanks inside are thousands; a plain blank may also just part two numbers."""
    if match["gap"] != " ":
        return True
    if text[match.end() : match.end() + 2].strip()[:1].isdigit() or match.group()[0] == "0":
        return False
    if text[: match.start()].rstrip(" ")[-1:].isdigit():
        return False
    return words.groups_by_space or match.group().count(" ") > 1 or " 000" in match.group()


def _read(text: str, start: int, end: int, mark: str) -> Iterator[tuple[int, int, float, int]]:
    """Start, end, value and number of decimals of the numbers in a run of digits and marks."""
    chunk = text[start:end]
    if len(chunk) > 2 * LONGEST:
        return
    commas, points = chunk.count(","), chunk.count(".")
    if GAPS.search(chunk):
        whole, _, rest = GAPS.sub("", chunk).replace(",", ".").partition(".")
        yield start, end, float(f"{whole}.{rest or 0}"), len(rest)
    elif commas and points:
        yield from _both_marks(chunk, start, end)
    elif commas + points == 0:
        yield from ((start, end, float(chunk), 0) for _ in range(len(chunk) <= LONGEST))
    elif THOUSANDS.fullmatch(chunk) and (commas + points > 1 or mark not in chunk):
        yield start, end, float(re.sub(r"\D", "", chunk)), 0
    elif INDIAN.fullmatch(chunk):
        yield start, end, float(chunk.replace(",", "")), 0
    elif commas + points == 1:
        yield start, end, float(chunk.replace(",", ".")), len(re.split("[.,]", chunk)[1])
    elif commas:
        for piece in re.finditer(r"\d+", chunk):
            first, last = start + piece.start(), start + piece.end()
            yield first, last, float(piece.group()), 0


def _both_marks(chunk: str, start: int, end: int) -> Iterator[tuple[int, int, float, int]]:
    mark = "," if chunk.rindex(",") > chunk.rindex(".") else "."
    whole, _, rest = chunk.rpartition(mark)
    if THOUSANDS.fullmatch(whole) or INDIAN.fullmatch(whole):
        yield start, end, float(f"{re.sub('[.,]', '', whole)}.{rest}"), len(rest)


def _number(text: str, start: int, end: int, value: float, decimals: int) -> Number:
    """The number with its sign, exponent, ordinal ending or trailing ½."""
    step = 10.0**-decimals
    digits = re.sub(r"\D", "", text[start:end]).lstrip("0")
    power = EXPONENT.match(text, end)
    if power:
        scale = 10.0 ** _exponent(power)
        value, step, end = value * scale, step * scale, power.end()
    if LEADING_POINT.search(text, max(0, start - 2), start) and not decimals:
        step = 10.0 ** -(end - start)
        start, value = start - 1, value * step
    ordinal = ORDINAL_END.match(text, end) if not decimals and not power else None
    extra = text[end : end + 1] if text[end : end + 1] in VULGAR else ""
    if ordinal:
        end = ordinal.end()
    elif extra:
        value, step, end = value + unicodedata.numeric(extra), 0.1, end + 1
    elif minus := _minus(text, start):
        start, value = start - minus, -value
    return Number(start, end, value, value, step, max(1, len(digits)), ordinal=bool(ordinal))


def _exponent(match: re.Match[str]) -> int:
    found = match.groupdict()
    written = found.get("e") or found.get("caret") or found.get("raised") or "0"
    return int(written.translate(RAISED))


def _fraction(text: str, start: int, end: int) -> Number | None:
    """2/3, which only "of" or a unit makes a number, or 1 1/2."""
    whole = 0.0
    match = FRACTION.match(text, start)
    if not match and text[end : end + 1] in (" ", "\u00a0"):
        match = FRACTION.match(text, end + 1)
        whole = float(text[start:end]) if text[start:end].isdigit() else 0.0
    if not match or (start and text[start - 1] in "/"):
        return None
    top, bottom = int(match["top"]), int(match["bottom"])
    if not 0 < top < bottom or (whole and bottom > 16):
        return None
    value = whole + top / bottom
    needs = "" if whole else "of or unit"
    return Number(start, match.end(), value, value, 1 / bottom / 2, 2, needs=needs)


def _minus(text: str, start: int) -> int:
    """The length of the sign or word before a number that makes it negative, or 0."""
    said = MINUS_WORDS.search(text, max(0, start - 8), start)
    if said:
        return len(said.group())
    if not start or text[start - 1] not in "-–":
        return 0
    before = text[start - 2 : start - 1] if start > 1 else " "
    return int(before in " (\u00a0[$€£:" and (text[start - 1] == "-" or start < 3))


def _is_identifier(text: str, start: int, end: int) -> bool:
    """True for digits that are part of a name or code: A4, COVID-19, 3D, 747s."""
    before = text[start - 1] if start else " "
    after = text[end : end + 1]
    if before == "." and LEADING_POINT.search(text, max(0, start - 2), start):
        return False
    if before.isalpha() and not is_unspaced(before):
        return not _is_currency_letter(text, start)
    if before in "-_." and start > 1 and text[start - 2].isalnum() and not before.isspace():
        if before == "-" and text[start - 2].isdigit():
            return text[: start - 1].rstrip("0123456789")[-1:] in ("-",)
        return not is_unspaced(text[start - 2]) and not text[start - 2].isdigit()
    if after.isalpha() and not is_unspaced(after) and not EXPONENT.match(text, end):
        return _is_code(text, end)
    return after == "_" or before == "_"


def _is_currency_letter(text: str, start: int) -> bool:
    return bool(CURRENCY_LETTERS.search(text[max(0, start - 4) : start]))


def _is_code(text: str, end: int) -> bool:
    """True where letters right after the digits are not an ending, unit or scale."""
    tail = re.match(r"[^\W\d_]+", text[end:])
    word = tail.group() if tail else ""
    follows = text[end + len(word) : end + len(word) + 1]
    return follows.isdigit() or word in CODE_LETTERS
