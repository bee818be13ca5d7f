"""Figures as requests for a length write them: "two hundred and fifty", 两三百 for 200 to 300."""

from __future__ import annotations

import re

from core.tools.values.han_numbers import ONES as HAN_ONES
from core.tools.values.han_numbers import value_of

ONES = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
VALUES = {word: n + 1 for n, word in enumerate(ONES)} | {
    word: 10 * (n + 2) for n, word in enumerate(TENS)
}
_ONE = "|".join(ONES)
_SMALL = rf"(?:(?:{'|'.join(TENS)})(?:[- ](?:{_ONE}))?|{_ONE})"
_LARGE = rf"(?:(?:a|{_ONE})[- ])?(?:hundred|thousand)(?:[ ](?:and[ ])?{_SMALL})?"
_SINGLE = r"a(?:[ ]single)?(?=[ ](?:sentence|paragraph))|a(?=[ ]word[ ]or[ ]two\b)"
NUMBER = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|{_LARGE}|{_SMALL}|{_SINGLE})"
HAN = r"(?:\d{1,6}|[一二三四五六七八九十百千两零〇]{1,9})"
PAIR = re.compile("(?=([一二三四五六七八九两]{2}))")


def english_value(written: str) -> int:
    """The value of a NUMBER in figures or words."""
    if written[0].isdigit():
        return int(written.replace(",", ""))
    total, current = 0, 0
    for word in re.split(r"[- ]", written.lower()):
        if word in ("hundred", "thousand"):
            total += (current or 1) * (100 if word == "hundred" else 1000)
            current = 0
        elif word == "a":
            current = 1
        else:
            current += VALUES.get(word, 0)
    return total + current


def han_values(written: str) -> tuple[int, int] | None:
    """The least and the most that a HAN numeral stands for; None where it is neither one nor two.

    Two digits side by side are "so or so many": 五六十 is 50 to 60.
    """
    pairs = list(PAIR.finditer(written))
    if not pairs:
        value = int(value_of(written))
        return value, value
    place = pairs[0].start()
    one, other = (HAN_ONES[digit] for digit in pairs[0][1])
    if len(pairs) > 1 or other != one + 1:
        return None
    without = written[:place] + written[place + 1 :], written[: place + 1] + written[place + 2 :]
    return int(value_of(without[1])), int(value_of(without[0]))
