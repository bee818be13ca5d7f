"""Numbers in words, English or Chinese, as exact fractions: “twelve hundred”, 两百零五, 3万5千.

Only the words of a number are read here; whether it is meant as one is for whoever reads the sum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

SMALL_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ONES = {word: n for n, word in enumerate(SMALL_WORDS)}
TENS = {word: 10 * (n + 2) for n, word in enumerate(TEN_WORDS)}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6,
         "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100}  # fmt: skip
FIXED = {"half": Fraction(1, 2), "twice": Fraction(2), "double": Fraction(2), "triple": Fraction(3),
         "thrice": Fraction(3)}  # fmt: skip
WORD = re.compile(r"[A-Za-z]+")
GAP = re.compile(r"[ -]")
MOST_WORDS = 32
HAN_ONES = {
    char: n
    for n, chars in enumerate("零〇 一壹 二两贰 三叁 四肆 五伍 六陆 七柒 八捌 九玖".split())
    for char in chars
}
HAN_SMALL = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
HAN_BIG = {"万": 10**4, "亿": 10**8}
HAN = "".join((*HAN_ONES, *HAN_SMALL, *HAN_BIG))
DIGITS = r"[0-9]+(?:\.[0-9]+)?"
HAN_NUMBER = re.compile(
    rf"(?:{DIGITS})?[{HAN}](?:[{HAN}]|{DIGITS}(?=[{HAN}])){{0,30}}(?:点[{HAN}]+)?"
)
HAN_PART = re.compile(
    rf"(?P<bottom>[{HAN}]{{1,12}}|[0-9]{{1,12}})分之(?P<top>[{HAN}]{{1,20}}|{DIGITS})"
)
HAN_ITEM = re.compile(rf"{DIGITS}|.")


@dataclass(frozen=True)
class Spoken:
    """A number in words that ends before `end`; `is_part` tells a fraction of something else."""

    end: int
    value: Fraction
    is_part: bool = False


def english_number(text: str, start: int) -> Spoken | None:
    """The longest English number whose first word begins at `start`; None where there is none."""
    words = _words_from(text, start)
    if not words:
        return None
    count, value = _whole(words)
    if count and _names_part(words, count):
        return Spoken(words[count][1], value / PARTS[_singular(words[count][0])], is_part=True)
    if count:
        return Spoken(words[count - 1][1], value)
    first, end = words[0]
    if first in FIXED:
        return Spoken(end, FIXED[first], is_part=True)
    if first in ("a", "an") and len(words) > 1 and words[1][0] in PARTS:
        return Spoken(words[1][1], Fraction(1, PARTS[words[1][0]]), is_part=True)
    return None


def _words_from(text: str, start: int) -> list[tuple[str, int]]:
    """The words from here on that one blank or hyphen parts, each with its end."""
    found: list[tuple[str, int]] = []
    match = WORD.match(text, start)
    while match is not None and len(found) < MOST_WORDS:
        found.append((match.group().lower(), match.end()))
        gap = GAP.match(text, match.end())
        match = WORD.match(text, gap.end()) if gap else None
    return found


def _whole(words: list[tuple[str, int]]) -> tuple[int, Fraction]:
    """How many words make a whole number, and its value; (0, 0) where none does."""
    total, current, count, last = 0, 0, 0, ""
    for place, (word, _) in enumerate(words):
        kind = _kind(word)
        follows = words[place + 1][0] if place + 1 < len(words) else ""
        if kind == "and":
            if last not in ("hundred", "scale") or _kind(follows) not in ("one", "ten"):
                break
            last = "and"
            continue
        if not _may_follow(last, kind, word, current):
            break
        if kind == "article":
            if _kind(follows) not in ("hundred", "scale"):
                break
            current = 1
        elif kind == "hundred":
            current = (current or 1) * 100
        elif kind == "scale":
            total, current = total + (current or 1) * SCALES[word], 0
        else:
            current += ONES.get(word, 0) + TENS.get(word, 0)
        count, last = place + 1, kind
    return count, Fraction(total + current)


def _kind(word: str) -> str:
    if word in ONES:
        return "one"
    if word in TENS:
        return "ten"
    named = {"hundred": "hundred", "and": "and", "a": "article"}
    return "scale" if word in SCALES else named.get(word, "")


def _may_follow(last: str, kind: str, word: str, current: int) -> bool:
    """Whether such a word goes on with the number so far."""
    before = {
        "one": ("", "ten", "hundred", "scale", "and"),
        "ten": ("", "hundred", "scale", "and"),
        "hundred": ("one", "ten", "article"),
        "scale": ("one", "ten", "hundred", "article"),
        "article": ("",),
    }
    if last not in before.get(kind, ()):
        return False
    if last == "ten" and kind == "one":
        return 0 < ONES[word] < 10  # twenty-one, not twenty ten
    return kind != "hundred" or current < 100


def _singular(word: str) -> str:
    return word if word in PARTS else "half" if word == "halves" else word.removesuffix("s")


def _names_part(words: list[tuple[str, int]], count: int) -> bool:
    return count < len(words) and _singular(words[count][0]) in PARTS


def han_number(text: str, start: int) -> Spoken | None:
    """The longest Chinese number that begins at `start`; None where there is none."""
    if part := HAN_PART.match(text, start):
        bottom = han_value(part["bottom"])
        top = han_value(part["top"])
        return Spoken(part.end(), top / bottom, is_part=True) if bottom else None
    if text.startswith("一半", start):
        return Spoken(start + 2, Fraction(1, 2), is_part=True)
    if match := HAN_NUMBER.match(text, start):
        return Spoken(match.end(), han_value(match.group()))
    return None


def han_value(written: str) -> Fraction:
    """The value of a numeral of Han signs, digits, or both: 三万五, 二〇二四, 1.2亿, 三点一四."""
    whole, _, decimals = written.partition("点")
    if decimals:
        figures = "".join(str(HAN_ONES.get(char, 0)) for char in decimals)
        return han_value(whole) + Fraction(int(figures), 10 ** len(figures))
    if len(whole) > 1 and all(char in HAN_ONES for char in whole):
        return Fraction(int("".join(str(HAN_ONES[char]) for char in whole)))
    total, section, digit, last = Fraction(0), Fraction(0), Fraction(0), 1
    for item in HAN_ITEM.findall(whole):
        if item in HAN_BIG:
            # 三万五千亿: what was counted so far is counted in the larger
            section, scale = section + digit, HAN_BIG[item]
            total = (
                (total + section or Fraction(1)) * scale
                if total < scale
                else total + section * scale
            )
            section, digit, last = Fraction(0), Fraction(0), HAN_BIG[item]
        elif item in HAN_SMALL:
            section += (digit or 1) * HAN_SMALL[item]
            digit, last = Fraction(0), HAN_SMALL[item]
        elif item in HAN_ONES:
            digit, last = Fraction(HAN_ONES[item]), last if HAN_ONES[item] else 1
        else:
            digit, last = Fraction(item), 1
    # 三万五 is 35,000 and 三百五 350: a last digit stands one place below.
    return total + section + (digit * last / 10 if last > 10 else digit)
