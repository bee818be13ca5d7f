"""Lines of set type become running text again: words cut at line ends, scripts without blanks.

A hyphen at a line's end belongs to the typesetting, not to the text. Undone, a word is found by
its own name and a quote matches however the source was set; line ends themselves stay, because
they tell paragraphs, items and rows apart.
"""

from __future__ import annotations

from collections.abc import Iterable

import regex

SOFT_HYPHEN = "\u00ad"
CUT = regex.compile(r"([\p{L}\p{M}]+)[-\u2010]$")
GOES_ON = regex.compile(r"([\p{Ll}\p{Lo}][\p{L}\p{M}]*)\S*")
WORD = regex.compile(r"[\p{L}\p{M}]+(?:[-\u2010][\p{L}\p{M}]+)*")
# Compounds that are written with a hyphen wherever the line ends.
COMPOUNDED = frozenset("self well half all ex cross high low long short so state".split())
UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"，。、；：？！（）「」『』《》〈〉【】“”…—]"
)
LONGEST_WORD = 80
FULL = 0.8
SHORTEST_FULL = 8


def words_in(texts: Iterable[str]) -> frozenset[str]:
    """All words of the texts, also hyphenated ones, to decide which cut words are one."""
    return frozenset(word.casefold() for text in texts for word in WORD.findall(text))


def mended(text: str, known: frozenset[str]) -> str:
    """The text with cut words whole and with unspaced scripts running on over line ends."""
    lines = text.split("\n")
    longest = max((len(line) for line in lines if UNSPACED.search(line)), default=0)
    done: list[str] = []  # The last piece is all of the line above that decides what comes next.
    width = 0
    for line in lines:
        above = done[-1] if done else ""
        word = _cut_word(above, line, known)
        if word:
            kept, taken = word
            done[-1:] = _in_two(kept + line[:taken])
            if rest := line[taken:].lstrip(" "):
                done += ["\n", rest]
        elif width >= max(SHORTEST_FULL, FULL * longest) and not between(above, line):
            done[-1:] = _in_two(above + line)
        else:
            done += ["\n", line] if done else [line]
        width = len(line)
    return "".join(done)


def _in_two(line: str) -> tuple[str, str]:
    """The line and its end, so that a line that grows and grows is not copied each time."""
    return line[:-LONGEST_WORD], line[-LONGEST_WORD:]


def _cut_word(above: str, below: str, known: frozenset[str]) -> tuple[str, int] | None:
    """(the upper line as it goes on, how many characters of the lower one belong to the word)."""
    if above.endswith(SOFT_HYPHEN):
        goes_on = regex.match(r"\S+", below)
        return (above[:-1], goes_on.end()) if goes_on else None
    cut, goes_on = CUT.search(above[-LONGEST_WORD:]), GOES_ON.match(below)
    if not cut or not goes_on:
        return None
    head, tail = cut[1].casefold(), goes_on[1].casefold()
    if keeps_hyphen(head, tail, known):
        return above, goes_on.end()
    return above[:-1], goes_on.end()


def keeps_hyphen(head: str, tail: str, known: frozenset[str]) -> bool:
    """True when the hyphen between the halves would stand in the middle of a line too."""
    if head + tail in known:
        return False
    return f"{head}-{tail}" in known or head in COMPOUNDED


def between(above: str, below: str) -> str:
    """What stands between two wrapped lines of one paragraph: a blank, or nothing."""
    if UNSPACED.fullmatch(above[-1:]) and UNSPACED.fullmatch(below[:1]):
        return ""
    return " "


def uncut(above: str, below: str, known: frozenset[str]) -> tuple[str, str]:
    """The upper line without a hyphen that is only typesetting, and what then stands between."""
    if word := _cut_word(above, below, known):
        return word[0], ""
    return above, between(above, below)
