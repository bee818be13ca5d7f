"""Bare numbers in a text: in digits, in words, and in Chinese, Japanese or Korean numerals.

The language decides (CLDR) which of "," and "." marks decimals; a group that cannot be thousands is
decimal in any language ("1,5", "0.500"), and if both marks occur the last is the decimal mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from core.documents.segmentation import FUNCTION_WORDS
from core.tools.vocabulary import (
    WORD_PATTERN,
    PatternTable,
    Vocabulary,
    is_unspaced,
    load_number_words,
)

PATTERNS = PatternTable("numbers")
MAX_DIGITS = 18  # digits
DIGITS_PATTERN = re.compile(r"\d(?:[\d.,]*\d)?")
INDIAN_GROUPS = re.compile(r"[1-9]\d?(?:,\d\d)+,\d{3}")
FOOTNOTE_MARK = re.compile("[⁰¹²³⁴-⁹]+")
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
VULGAR_FRACTIONS = tuple("½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞")
ROUND_SCALES = (1e15, 1e12, 1e9, 1e6, 1e3)
HAN_DIGITS: dict[str, int] = {
    char: value
    for value, chars in enumerate(
        "〇零○ 一壹弌 二贰貳两兩弐 三叁參参 四肆 五伍 六陆陸 七柒 八捌 九玖".split()
    )
    for char in chars
}
HAN_SMALL_SCALES = {
    "十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "천": 1000, "백": 100,
    "廿": 20, "卅": 30,
}  # fmt: skip
HAN_BIG_SCALES = {
    "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12, "만": 10**4, "억": 10**8,
    "조": 10**12,
}  # fmt: skip
HAN_NUMERALS = "".join(
    [
        *HAN_DIGITS,
        *(char for char in (HAN_SMALL_SCALES | HAN_BIG_SCALES) if "\u3400" < char < "\u9fff"),
    ]
)
ARABIC_NUMBER = r"(?>\d[\d,]{0,20}(?:\.\d{1,12})?)"
KOREAN_NUMBER = (
    rf"{ARABIC_NUMBER}\s?[천백]?[조억만](?:\s?{ARABIC_NUMBER}[천백]?[조억만]?){{0,9}}+"
    rf"|{ARABIC_NUMBER}[천백](?![가-힣])"
)
MIXED_NUMBER = (
    rf"(?:{ARABIC_NUMBER}\s?)?[{HAN_NUMERALS}](?:[{HAN_NUMERALS}]|{ARABIC_NUMBER}){{0,40}}+"
    rf"(?:点[{HAN_NUMERALS}]{{1,12}})?"
)
NUMERAL_PATTERN = re.compile(
    rf"(?P<rank>第)?(?P<number>{MIXED_NUMBER}|{KOREAN_NUMBER}|(?<=第){ARABIC_NUMBER})"
)
FRACTION_PATTERN = re.compile(
    rf"(?P<bottom>[{HAN_NUMERALS}]{{1,20}}|\d{{1,12}})分[之の](?P<top>{MIXED_NUMBER}|{ARABIC_NUMBER})"
)
TENTHS_PATTERN = re.compile(
    rf"(?P<n>[{HAN_NUMERALS}]|{ARABIC_NUMBER})(?:成(?![立功为為员員都就长長果绩績年])|割(?![りっ引合]))"
)
TIMES_PATTERN = re.compile(rf"(?P<n>{MIXED_NUMBER}|{ARABIC_NUMBER})\s?[倍배]")
HALF_PATTERN = re.compile("一半|半数|半數|절반|半分")
ITEM_PATTERN = re.compile(rf"{ARABIC_NUMBER}|.")
# A measure word after a numeral makes it a count.
MEASURE_WORDS = re.compile(
    r"\s?(?:[个個名位人次条條只隻头頭匹张張座本种種部辆輛艘架届屆岁歲歳棵颗枚台臺件把双雙对對层層"
    r"楼樓章节節期轮輪项項所间間支队隊组組级級场場句遍步口户戶代集卷首幅块塊朵滴杯瓶碗袋箱包封株尊"
    r"篇道顶頂冊匹杯軒足着羽回篇粒束]|つ|명|개|번|살|세(?![가-힣])|마리|권|대(?![가-힣])|곳)"
)


@dataclass(frozen=True)
class BareNumber:
    """A bare number at `[start, end)`; `step` is the size of its last written digit.

    `share` says that the value is a part of a whole in per cent, `times` that it is a multiple.
    `needs` says that it only is a number before a unit ("a", "half a"), or before "of" or a unit
    ("1/3"). `other_factor` times the value is the other reading of an ambiguous grouping.
    """

    start: int
    end: int
    low: float
    high: float
    step: float = 1.0
    ordinal: bool = False
    share: bool = False
    times: bool = False
    is_about: bool = False
    needs: str = ""
    spelled: bool = False
    other_factor: float = 1.0


def find_numbers(text: str, plain: str, low: str, words: Vocabulary) -> list[BareNumber]:
    """Return all numbers in order, none overlapping; `plain` and `low` are the normalized text."""
    covered: set[int] = set()
    for match in (*PATTERNS.codes.finditer(plain), *PATTERNS.list_place.finditer(text)):
        if not PATTERNS.thousands.fullmatch(match.group()):
            covered.update(range(*match.span()))
    chosen: list[BareNumber] = []
    numbers = chain(
        _read_han(plain, words),
        _read_phrases(low, words),
        _read_digit_groups(plain, words),
        _read_words(plain, low, words),
    )
    for number in numbers:
        places = range(number.start, number.end)
        if covered.isdisjoint(places):
            chosen.append(number)
            covered.update(places)
    return sorted(chosen, key=lambda number: number.start)


def _read_digit_groups(text: str, words: Vocabulary) -> Iterator[BareNumber]:
    """Yield numbers in digits, with their sign, exponent, fraction or ordinal ending."""
    position = 0
    while match := DIGITS_PATTERN.search(text, position):
        start, end = match.span()
        position = end
        if _is_identifier(text, start, end):
            continue
        fraction = PATTERNS.fraction.match(text, start)
        if fraction or text[start - 1 : start] == "/":
            if fraction and 0 < int(fraction["top"]) < int(fraction["bottom"]):
                position, bottom = fraction.end(), int(fraction["bottom"])
                value = int(fraction["top"]) / bottom
                yield BareNumber(start, position, value, value, 0.5 / bottom, needs="of or unit")
            if fraction or text[:start][-2:-1].isdigit():
                continue
        blanks = PATTERNS.by_blank.match(text, start)
        if blanks and _is_blank_group(blanks, text, words):
            position = end = blanks.end()
        if (reading := read_digits(text[start:end], words.decimal_mark)) is not None:
            yield _make_number(text, start, end, reading, words)


def read_digits(written: str, mark: str) -> tuple[float, int] | None:
    """Return the value of digits with separators, and the number of decimals; None if invalid."""
    whole, decimals = written, ""
    marks = [char for char in written if char in ".,"]
    last = max(written.rfind("."), written.rfind(","))
    is_mixed = len(set(marks)) == 2 or bool(marks and re.search("[' \u00a0]", written))
    is_group = PATTERNS.thousands.fullmatch(written) is not None and written[last] != mark
    if is_mixed or (len(marks) == 1 and not is_group):
        whole, decimals = written[:last], written[last + 1 :]
    if not (
        whole.isdigit() or PATTERNS.thousands.fullmatch(whole) or INDIAN_GROUPS.fullmatch(whole)
    ):
        return None
    digits = re.sub(r"\D", "", whole)
    return (
        (float(f"{digits}.{decimals or 0}"), len(decimals)) if len(digits) <= MAX_DIGITS else None
    )


def _is_blank_group(match: re.Match[str], text: str, words: Vocabulary) -> bool:
    """Return True if blanks separate thousands; a plain blank may also separate numbers."""
    if match["gap"] != " ":
        return True
    if text[: match.start()].rstrip(" ")[-1:].isdigit() or match.group()[0] == "0":
        return False
    return words.groups_by_space or match.group().count(" ") > 1 or " 000" in match.group()


def _make_number(
    text: str, start: int, end: int, reading: tuple[float, int], words: Vocabulary
) -> BareNumber:
    value, decimals = reading
    step, other = 10.0**-decimals, 1.0
    if words.language != "en" and re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", text[start:end]):
        other = 1000.0 if decimals else 0.001
    if power := PATTERNS.power_of_ten.match(text, start):
        value = step = 10.0 ** _parse_exponent(power)
        return BareNumber(start, power.end(), value, value, step)
    if power := PATTERNS.exponent.match(text, end):
        scale = 10.0 ** _parse_exponent(power)
        value, step, end = value * scale, step * scale, power.end()
    elif text[start - 1 : start] == "." and text[: start - 1][-1:] in ("", " ", "("):
        step = 10.0 ** (start - end)
        start, value = start - 1, value * step
    elif (ordinal := PATTERNS.ordinal.match(text, end)) and not decimals:
        return BareNumber(start, ordinal.end(), value, value, ordinal=True)
    elif text[end : end + 1] in VULGAR_FRACTIONS and end < len(text):
        value, step, end = value + unicodedata.numeric(text[end]), 0.1, end + 1
    elif (minus := PATTERNS.minus.search(text, max(0, start - 8), start)) and not (
        words.bounds_before.before(text.lower(), start - 1)
    ):
        start, value = start - len(minus.group()), -value
    if mark := FOOTNOTE_MARK.match(text, end):
        end = mark.end()
    return BareNumber(start, end, value, value, step, other_factor=other)


def _parse_exponent(match: re.Match[str]) -> int:
    return int(next(filter(None, match.groupdict().values())).translate(SUPERSCRIPTS))


def _is_identifier(text: str, start: int, end: int) -> bool:
    """Return True for digits that are part of a name or code: A4, COVID-19, 3D."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalpha() and not is_unspaced(before):
        return not PATTERNS.money_letters.search(text[max(0, start - 4) : start])
    if before and before in "-_." and start > 1:
        lead = text[start - 2]
        if (lead.isalpha() and not is_unspaced(lead)) or (before == "." and lead.isdigit()):
            return True
    if after.isalpha() and not is_unspaced(after) and not PATTERNS.exponent.match(text, end):
        tail = re.match(r"([^\W\d_]+)(\d?)", text[end:])
        return tail is not None and bool(tail[2] or tail[1] in tuple("DGACEFXPQRZ"))
    return "_" in (before, after)


def _read_phrases(low: str, words: Vocabulary) -> Iterator[BareNumber]:
    """Yield fixed phrases of the language's list: a dozen, two thirds of, doubled, hundreds of."""
    for token in WORD_PATTERN.finditer(low):
        start, phrase = token.start(), words.phrases.at(low, token.start())
        if phrase is None or low[max(0, start - 1) : start] == "-":
            continue
        match = PATTERNS.fraction_word.fullmatch(phrase[1])
        if match is None:
            raise ValueError(f"expected a phrase's value like ~2, 1/3%, 2x, 10..20: {phrase[1]!r}")
        kind, of = match["kind"], PATTERNS.of.search(low, start, phrase[0])
        value = (100.0 if kind == "%" else 1.0) * float(match["low"]) / float(match["bottom"] or 1)
        step = 1.0 if value >= 1 else 0.05
        yield BareNumber(
            start,
            of.start() if of else phrase[0],
            value,
            float(match["high"] or value),
            step=5.0 if kind == "%" else step,
            share=kind == "%",
            times=kind == "x",
            is_about=bool(match["about"]),
            spelled=True,
            needs="unit" if kind == "?" else "",
        )


def _read_words(text: str, low: str, words: Vocabulary) -> Iterator[BareNumber]:
    if words.language in ("zh", "ja"):
        return
    reader = _WordReader(low, words)
    place = 0
    while place < len(reader.tokens):
        reading = reader.ordinal_at(place) or reader.number_at(place)
        if reading is None:
            place += 1
            continue
        number, place = reading
        # A capital inside a sentence marks a name (Ocean's Eleven), except for ordinals.
        opened = text[: number.start].rstrip(" \"'“«(")[-1:]
        is_name = text[number.start].isupper() and opened not in ("", *".!?:;•*")
        if number.ordinal or words.language == "de" or not is_name:
            yield number


class _WordReader:
    """Reads number words from left to right: groups below a thousand, each with its scale."""

    def __init__(self, low: str, words: Vocabulary) -> None:
        self.low, self.words = low, words
        self.known = load_number_words(words.locale.language)
        self.tokens = [(m.start(), m.end(), m.group()) for m in WORD_PATTERN.finditer(low)]
        self.joiners = words.listed("and") or frozenset(["and"])
        self.is_english = words.language == "en"

    def is_adjacent(self, place: int) -> bool:
        """Return True if only a blank or hyphen separates the word from the one before."""
        if place >= len(self.tokens):
            return False
        gap = self.low[self.tokens[place - 1][1] : self.tokens[place][0]]
        return gap in (" ", "-", "\u00a0", "")

    def phrase_at(self, place: int, *, ordinals: bool = False) -> tuple[int, int] | None:
        """Return the value of the longest known phrase here, and the index after it."""
        known = self.known.ordinals if ordinals else self.known.cardinals
        for size in self.known.longest.get(self.tokens[place][2], ()):
            value = known.get(tuple(token[2] for token in self.tokens[place : place + size]))
            if value is not None and all(self.is_adjacent(place + i) for i in range(1, size)):
                return value, place + size
        return None

    def compound_at(self, place: int) -> tuple[int, int] | None:
        """Read hundreds or thousands in one word: zweitausenddreihundert."""
        word, cardinals = self.tokens[place][2], self.known.cardinals
        for scale, size in self.words.scales.values.items():
            if size in (100, 1000) and scale in word and word != scale:
                left, _, right = word.partition(scale)
                right = right.removeprefix("und").removeprefix("en")
                first, last = cardinals.get((left,), None if left else 1), cardinals.get((right,))
                if first is not None and (last is not None or not right):
                    return int(first * size + (last or 0)), place + 1
        return None

    def group_at(self, place: int) -> tuple[float, int] | None:
        """Read a number below a thousand with the decimals after its "point"."""
        reading = self.phrase_at(place) or self.compound_at(place)
        if reading is None:
            return None
        value, after = float(reading[0]), reading[1]
        while self.is_adjacent(after):
            if self.tokens[after][2] in ("hundred", "honderd", "hundert") and value < 100:
                value, after = value * 100, after + 1
                continue
            skip = int(self.tokens[after][2] in self.joiners)
            more = self.phrase_at(after + skip) if self.is_adjacent(after + skip) else None
            limit = 100 if value % 100 == 0 else 0
            if value > 10 and value % 10 == 0 and not limit:
                limit = 10
            if more is None or not 0 < more[0] < limit:
                break
            value, after = value + more[0], more[1]
        if (
            self.known.point
            and self.is_adjacent(after)
            and self.tokens[after][2] == self.known.point
        ):
            rest = (self.known.cardinals.get((token[2],), 10) for token in self.tokens[after + 1 :])
            digits = ""
            for digit in rest:
                if digit > 9:
                    break
                digits += str(digit)
            return (value + float(f"0.{digits}"), after + len(digits) + 1) if digits else None
        return value, after

    def ordinal_at(self, place: int) -> tuple[BareNumber, int] | None:
        """Read an ordinal, with the index after it; "at first" and "first of all" are none."""
        ordinal, cardinal = self.phrase_at(place, ordinals=True), self.phrase_at(place)
        if ordinal is None or (cardinal and cardinal[1] >= ordinal[1]):
            return None
        value, after = float(ordinal[0]), ordinal[1]
        if not self.is_adjacent(after) or self.tokens[after][2] in FUNCTION_WORDS:
            return None
        start, end = self.tokens[place][0], self.tokens[after - 1][1]
        return BareNumber(start, end, value, value, ordinal=True, spelled=True), after

    def number_at(self, place: int) -> tuple[BareNumber, int] | None:
        """Read the number that begins with this word, with the index after it."""
        total, last_scale, after = 0.0, float("inf"), place
        is_article = self.is_english and self.tokens[place][2] in ("a", "an")
        while after == place or self.is_adjacent(after):
            skip = int(after > place and self.tokens[after][2] in self.joiners)
            if skip and not self.is_adjacent(after + skip):
                break
            is_one = is_article and after == place
            group = (1.0, after + 1) if is_one else self.group_at(after + skip)
            if group is None:
                break
            (value, following), scale = group, 1.0
            while self.is_adjacent(following):
                scale_word = self.words.scales.at(self.low, self.tokens[following][0])
                if (
                    scale_word is None
                    or scale_word[0] != self.tokens[following][1]
                    or scale_word[1] < 100
                ):
                    break
                scale, following = scale * scale_word[1], following + 1
            size = scale
            if scale <= 1:
                size = value if value >= 1000 else 1.0
            if size >= last_scale or (is_one and scale == 1):
                break
            total, after, last_scale = total + value * scale, following, size
            if size == 1:
                break
        return (self._make_counted(place, after, total), after) if after > place else None

    def _make_counted(self, place: int, after: int, total: float) -> BareNumber:
        start, end = self.tokens[place][0], self.tokens[after - 1][1]
        decimals = f"{total:.6f}".rstrip("0").partition(".")[2] if total < 1000 else ""
        step = next(
            (size for size in ROUND_SCALES if total and total % size == 0), 10.0 ** -len(decimals)
        )
        needs = "unit" if total in (0, 1) and after == place + 1 else ""
        return BareNumber(start, end, total, total, step, spelled=True, needs=needs)


def _read_han(text: str, words: Vocabulary) -> Iterator[BareNumber]:
    if text.isascii():
        return
    for match in FRACTION_PATTERN.finditer(text):
        bottom, top = parse_numeral(match["bottom"]), parse_numeral(match["top"])
        if bottom:
            step = 100 / bottom * (_digit_size(match["top"]) if bottom >= 100 else 0.05 * top)
            share = 100 * top / bottom
            yield BareNumber(*match.span(), share, share, step, share=True)
    for match in HALF_PATTERN.finditer(text):
        yield BareNumber(*match.span(), 50.0, 50.0, 5.0, share=True, spelled=True)
    barred = {place for m in PATTERNS.han_words.finditer(text) for place in range(*m.span())}
    for pattern, factor in ((TENTHS_PATTERN, 10), (TIMES_PATTERN, 1)):
        for match in pattern.finditer(text):
            value, step = factor * parse_numeral(match["n"]), factor * _digit_size(match["n"])
            is_share = pattern is TENTHS_PATTERN
            is_whole = text[: match.start()][-1:] not in tuple("0123456789.")
            if match.start() not in barred and is_whole and (value <= 100 or not is_share):
                yield BareNumber(
                    *match.span(), value, value, step, share=is_share, times=not is_share
                )
    matches = (m for m in NUMERAL_PATTERN.finditer(text) if barred.isdisjoint(range(*m.span())))
    yield from filter(None, (_make_numeral(m, text, words.language == "ja") for m in matches))


def _make_numeral(match: re.Match[str], text: str, is_japanese: bool) -> BareNumber | None:
    """Return a numeral as a number if it is one: 三 only before a measure word or unit."""
    written, (start, end) = match["number"], match.span("number")
    value = parse_numeral(written, is_japanese=is_japanese)
    is_rank, is_counted = match["rank"] is not None, MEASURE_WORDS.match(text, end) is not None
    if text[start - 1 : start] in (".", ",") and text[start - 2 : start - 1].isdigit():
        return None
    digits = sum(char in HAN_DIGITS or char.isdigit() for char in written)
    is_row = digits == len(written) == 2 and not written[0].isdigit()
    is_scale = not digits and len(written) == 1 and written not in ("十", "拾")
    if not is_rank and (not value or ((is_row or is_scale) and not is_counted)):
        return None
    is_sure = digits > 2 or (len(written) > 1 and not is_row)
    is_many = text[end : end + 1] in ("多", "余") or is_counted
    needs = "" if is_rank or is_sure or (is_many and written != "一") else "unit"
    start, step = match.start() if is_rank else start, _digit_size(written)
    spelled = not written[0].isdigit()
    return BareNumber(start, end, value, value, step, ordinal=is_rank, needs=needs, spelled=spelled)


def parse_numeral(written: str, *, is_japanese: bool = False) -> float:
    """Return the value of a numeral in Han, Arabic or mixed writing; 0 if it has none."""
    whole, _, decimals = re.sub(r"\s", "", written).partition("点")
    if decimals:
        return parse_numeral(whole) + float(
            "0." + "".join(str(HAN_DIGITS.get(c, 0)) for c in decimals)
        )
    if whole and all(char in HAN_DIGITS for char in whole):
        return float("".join(str(HAN_DIGITS[char]) for char in whole)) if len(whole) < 16 else 0.0
    total = section = 0.0
    current: float | None = None
    last = 1
    for item in ITEM_PATTERN.findall(whole):
        if item in HAN_BIG_SCALES:
            section, size = section + (current or 0.0), HAN_BIG_SCALES[item]
            if size > total:
                total = (total + section or 1.0) * size
            else:
                total += section * size
            section, current, last = 0.0, None, size
        elif item in HAN_SMALL_SCALES:
            section += (1.0 if current is None else current) * HAN_SMALL_SCALES[item]
            current, last = None, HAN_SMALL_SCALES[item]
        elif item in HAN_DIGITS:
            current = 10 * (current or 0.0) + HAN_DIGITS[item]
            last = last if HAN_DIGITS[item] else 1
        else:
            current, last = (float(item.replace(",", "")) if len(item) < 16 else 0.0), 1
    # In Chinese 三万五 is 35,000 and 三百五 350: a last digit counts the next lower power of ten.
    is_short = not is_japanese and last > 10 and current is not None and whole[-1] in HAN_DIGITS
    last_size = last / 10 if is_short else 1.0
    return float(total + section + (current or 0.0) * last_size)


def _digit_size(written: str) -> float:
    """Return the size of the last written digit: 10,000 for 1200万, 0.1 for 1.5, 1 for 四百."""
    scale = 1.0
    for char in reversed(written):
        if char not in HAN_BIG_SCALES and not (
            char in "千仟천" and (scale > 1 or written[0].isdigit())
        ):
            break
        scale *= HAN_BIG_SCALES.get(char, 1000)
    decimals = re.search(r"\.(\d+)\D*$|点(\w+)$", written)
    return scale / 10.0 ** (len(decimals[1] or decimals[2]) if decimals else 0)
