"""What agents say for machines, put as people read it; the stored texts stay as they were said.

CEDA's debaters begin with agree or deny (A.3.3), and the judge's text ends with a verdict line for
the classifier (3.4). On screen the one is a badge beside the speaker and the other stands above as
the verdict.
"""

from __future__ import annotations

import re

from core.agents.contested import ARROW, NOTHING, QUOTES
from core.agents.heard import without_marks
from core.agents.stated import CONFIDENCE, DOUBT, WORDS_LINE
from core.records import Reply, Stance

TOLD = re.compile(r"(?<=[.。]) (?=“[^”]{1,200}”: |\d+ statements? says? nothing )")
REPLIES: tuple[tuple[str, Reply], ...] = (("AGREE", "agree"), ("DENY", "deny"))
REPLY = re.compile(r"\s*(agree|deny)\s*(?:[.:;,!–—-]+\s*|$)", re.IGNORECASE)
STANCES: dict[str, Stance] = {
    "CORRECT": "supported", "WRONG": "hallucinated", "OPEN": "unclear",
    "正确": "supported", "错误": "hallucinated", "未定": "unclear",
}  # fmt: skip
STANCE = re.compile(
    rf"[\s*_`]*({'|'.join(STANCES)})[*_`]*\s*(?:[.:;,!。：；，！–—-]+\s*|$)", re.IGNORECASE
)
VERDICT = re.compile(r"(?:^|\s)verdict:\s*(?:in)?correct\b[,:]?([^.]*)\.?\s*$", re.IGNORECASE)


def spoken(text: str, *, under_way: bool = False) -> tuple[Reply | None, str]:
    """(the reply that the text begins with, the words after it); `under_way` while it is said."""
    text = without_marks(text)
    found = REPLY.match(text)
    if found:
        reply: Reply = "agree" if found[1].lower() == "agree" else "deny"
        return reply, _capitalised(text[found.end() :])
    begun = text.strip()
    if under_way and begun and any(word.startswith(begun) for word, _ in REPLIES):
        return None, ""
    return None, text


def stated(text: str, *, under_way: bool = False) -> tuple[Stance | None, str]:
    """(the stance that the text begins with, the words after it).

    Its lines of confidence and doubt are told beside it, and are no words of it.
    """
    words = DOUBT.sub("", CONFIDENCE.sub("", without_marks(text))).strip()
    found = STANCE.match(words)
    if found:
        return STANCES[found[1].upper()], _capitalised(words[found.end() :])
    if under_way and words and any(word.startswith(words) for word in STANCES):
        return None, ""
    return None, words


def without_places(text: str) -> str:
    """The text without its lines that name words of the response."""
    return WORDS_LINE.sub("", text).strip()


def places_told(text: str) -> list[str]:
    """Those lines as people read them: “512 m” should be “412 m”; each is told once."""
    told = []
    for line in WORDS_LINE.finditer(text):
        words, *rest = (part.strip(QUOTES) for part in ARROW.split(line["value"], maxsplit=1))
        if not rest:
            told.append(f"contests “{words}”")
        elif NOTHING.fullmatch(rest[0]):
            told.append(f"“{words}” should go")
        else:
            told.append(f"“{words}” should be “{rest[0]}”")
    return list(dict.fromkeys(told))


def rationale_words(text: str) -> str:
    """The judge's text without the verdict line at its end; that line in words if it is all."""
    found = VERDICT.search(text)
    if not found:
        return text
    before = text[: found.start()].rstrip()
    rest = found[1].strip()
    return before or (_capitalised(rest) + "." if rest else "")


def rationale_lines(text: str) -> list[str]:
    """The same in lines: of an audit one for each statement that it tells of (“…”: why)."""
    return TOLD.split(rationale_words(text))


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
