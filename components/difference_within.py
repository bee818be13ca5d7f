"""Two versions of one text as one: what goes struck out, what comes underlined, the rest as it is.

Words are compared; in scripts without spaces, characters. Source: SC-MAKS 3.4 (other wording).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from components.difference import PIECE
from components.markup import Html, element, joined
from components.words import clipped
from core.baseline.wording import listed
from core.records import Span

LONGEST_COMPARED = 6000  # characters of both; comparing longer ones takes seconds
LONGEST_CHANGE = 300
GONE, COME = "taken out: ", "put in: "
Change = tuple[str, str]  # (the words that go, the words that come); equal words stand in both


def changes(before: str, after: str) -> Iterator[Change]:
    """Stretches of both texts, in order; those of a text that is too long are one."""
    if len(before) + len(after) > LONGEST_COMPARED:
        yield from _around(before, after)
        return
    old, new = PIECE.findall(before), PIECE.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        yield "".join(old[start:end]), "".join(new[new_start:new_end])


def within_html(before: str, after: str) -> Html:
    """Both as one text, in the direction of its own script."""
    pieces: list[str | Html] = []
    for gone, come in changes(before, after):
        if gone == come:
            pieces.append(gone)
            continue
        if gone:
            pieces.append(element("del", gone, title=GONE + gone))
        if come:
            pieces.append(element("ins", come, title=COME + come))
    return element("div", joined(pieces), class_="cp-text cp-within", dir="auto")


def change_words(before: str, after: str) -> list[str]:
    """Each change on a line of its own: “530” → “412”."""
    told = []
    for gone, come in changes(before, after):
        old, new = (clipped(words, LONGEST_CHANGE) for words in (gone, come))
        if gone == come:
            continue
        if old and new:
            told.append(f"“{old}” → “{new}”")
        elif old or new:
            told.append(f"{GONE}“{old}”" if old else f"{COME}“{new}”")
        else:
            told.append("other spaces")
    return told


def contested_still(before: str, after: str, spans: Sequence[Span]) -> str:
    """Which marked words the text after still has; empty where it has none."""
    left = [s.text for s in spans if is_unchanged(before, after, s.start, s.end)]
    return f"Still as it was, though contested: {listed(left)}." if left else ""


def is_unchanged(before: str, after: str, start: int, end: int) -> bool:
    """True where nothing at `[start, end)` of the text before has changed."""
    place = 0
    for gone, come in changes(before, after):
        overlaps = place < end and start < place + len(gone)
        put_in = not gone and start < place < end
        if gone != come and (overlaps or put_in):
            return False
        place += len(gone)
    return True


def _around(before: str, after: str) -> Iterator[Change]:
    """What both begin and end with, and what lies between as one change."""
    most = min(len(before), len(after))
    head = next((n for n in range(most) if before[n] != after[n]), most)
    rest = range(1, most - head + 1)
    tail = next((n - 1 for n in rest if before[-n] != after[-n]), most - head)
    ends = len(before) - tail, len(after) - tail
    yield before[:head], after[:head]
    yield before[head : ends[0]], after[head : ends[1]]
    yield before[ends[0] :], after[ends[1] :]
