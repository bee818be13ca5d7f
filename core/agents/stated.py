"""Hears what a debater states outright: its verdict first, then its confidence and its doubt.

Turns in every manner but CEDA's own begin with CORRECT, WRONG or OPEN and may end with lines of
their own, “Confidence: 80” and “Doubt: …” (ColMAD 2.3, ii and iii), in English or Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.agents.heard import ASKED, ECHOED, FOUND_CHARACTERS, UNFINISHED_THOUGHT, WORDS
from core.errors import ReplyError
from core.records import Stance

STANCES: tuple[Stance, ...] = ("hallucinated", "supported", "unclear")
# “CORRECT.”, “**Verdict: wrong**”, “The claim is not correct”; nothing is guessed from later words.
FIRST = re.compile(
    r"[\W_]*(?:(?:(?:my )?(?:answer|verdict|stance)|(?:the )?(?:claim|statement|answer)|"
    r"裁决|结论|回答|陈述|该陈述)[\W_]*(?:is|:|：|是)?[\W_]*)?"
    rf"(?:{WORDS})(?![^\W_]){ASKED}",
    re.IGNORECASE,
)
# “Correct about the year, but …”, “Correct me if …”, “‘WRONG’ is what Ada says”: prose, no verdict.
PROSE = re.compile(r"[”\"’'」』»]?[ \t]+(?!because|since|as\b|for\b|based|by\b|according)[a-z]")
LINE = r"^[\W_]*(?:{words})[\W_]*[:：][\s*_]*(?P<value>.+?)\s*$"
CONFIDENCE = re.compile(LINE.format(words="confidence|信心|置信度|把握"), re.I | re.M)
DOUBT = re.compile(LINE.format(words="doubt|failure mode|疑点|疑點|可能的错误"), re.I | re.M)
WORDS_LINE = re.compile(LINE.format(words="words?|词句|詞句"), re.I | re.M)
# A share of another whole (“4/5”), or a negative number, is no confidence that can be told.
SHARE = re.compile(
    r"(?<![-−\d.,/])(?<!of )(?P<number>\d+(?:\.\d+|,\d{1,2})?)(?![.,]?\d)"
    r"\s*(?P<unit>%|(?:/|(?:out )?of)\s*100?(?!\d))?(?!\s*(?:/|(?:out )?of)\s*\d)"
)
# What is counted already and says nothing in a reason: “AGREE, WRONG.”, “CORRECT.”
OPENING = re.compile(
    r"[\W_]*(?:(?:AGREE|DENY|同意|反对)[\W_]+)?(?:CORRECT|WRONG|OPEN|正确|错误|未定)"
    r"(?![^\W_])[*_`]*[.:,;!。：，；！][\s*_`]*(?=\S)"
)


@dataclass(frozen=True)
class Stated:
    """A verdict with what goes with it; `confidence` in [0, 1], None where none is stated."""

    stance: Stance
    confidence: float | None
    doubt: str


def stated_in(text: str) -> Stated:
    """What the turn states.

    Raises:
        ReplyError: it does not begin with a verdict; nothing is guessed from the rest.
    """
    plain = unicodedata.normalize("NFKC", text).replace("*", "").replace("`", "")
    head = ECHOED.sub("", plain, count=1)
    match = None if UNFINISHED_THOUGHT.match(text) else FIRST.match(head)
    if match is None or _is_prose(match):
        found = " ".join(text.split())[:FOUND_CHARACTERS] or "nothing"
        raise ReplyError(
            f"Expected a turn that begins with CORRECT, WRONG or OPEN, found “{found}”.",
            reply=text,
        )
    stance = next(stance for stance in STANCES if match[stance])
    return Stated(stance, confidence_in(plain), doubt_in(plain))


def _is_prose(match: re.Match[str]) -> bool:
    """True where the sentence goes on behind the word, which is then said of something else.

    A wrong part makes the claim wrong, so “Wrong height” is a verdict, unless it is quoted.
    """
    goes_on = PROSE.match(match.string, match.end())
    if goes_on is None:
        return False
    is_quoted = not goes_on.group().startswith((" ", "\t"))
    is_shouted = match[match.lastgroup or 0].isupper()
    return is_quoted or (match.lastgroup == "supported" and not is_shouted)


def confidence_in(text: str) -> float | None:
    """The confidence of the last line that states one, in [0, 1].

    Our prompts ask for a whole number from 0 to 100, so a whole number without a unit is one of
    these: “1” is one of a hundred. A decimal fraction of one at most, as “0.8” or “1.0”, is a share
    of one; what says “/10” is a share of ten.
    """
    lines = list(CONFIDENCE.finditer(text))
    share = SHARE.search(lines[-1]["value"]) if lines else None
    if share is None:
        return None
    number, unit = float(share["number"].replace(",", ".")), share["unit"] or ""
    if unit.endswith("10"):
        number /= 10
    elif unit or number > 1 or share["number"].isdecimal():
        number /= 100
    return number if 0 <= number <= 1 else None


def reason_in(text: str) -> str:
    """The turn without its lines of a form of their own: confidence, doubt, and contested words."""
    for line in (CONFIDENCE, DOUBT, WORDS_LINE):
        text = line.sub("", text)
    return " ".join(text.split())


def argument_in(text: str) -> str:
    """The reason without the verdict before it; a verdict that nothing follows stays."""
    words = reason_in(text)
    found = OPENING.match(words)
    rest = words[found.end() :] if found else words
    return rest[:1].upper() + rest[1:]


def doubt_in(text: str) -> str:
    """The failure mode of its own claim that the last such line states."""
    lines = list(DOUBT.finditer(text))
    return lines[-1]["value"].strip() if lines else ""
