"""Whether a text says nothing beside one figure, date or weekday, so that this decides it all."""

from __future__ import annotations

import re

from core.evidence.segment import sentences

SHORT = 200  # characters
# Words of an answer that only gives a figure; a Chinese character is a word here.
WORD = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")
BESIDE_A_FIGURE = frozenset(
    (
        "a an the it that this there they he she is are was were be will would falls fell on in of"
        " and to between from until exactly total altogether so therefore answer result date day"
        " days week weeks month months year years old aged age both two dates one three four five"
        " six 1 2 3 4 5 6 passed been has have"
        " der die das er sie es dem den ein einen war ist am im und genau sind waren alt jahre jahr"
        " tage"
        " le la les il elle était est un une et c ce sont ans jours au du"
        " el los fue era es y son hay días años"
    ).split()
) | frozenset("一共有总计是为的了在那这天日周月年岁号星期礼拜个零又共间隔相之和到从他她它答案结果")


def says_only(text: str, start: int, end: int, asked: str, language: str) -> bool:
    """Whether the text is one short sentence whose words beside `[start, end)` say nothing.

    Words that `asked` has already say nothing new either.
    """
    if len(text) > SHORT or len(sentences(text, language)) > 1:
        return False
    rest = f"{text[:start]} {text[end:]}".lower()
    known = set(WORD.findall(asked.lower()))
    return all(word in known or word in BESIDE_A_FIGURE for word in WORD.findall(rest))
