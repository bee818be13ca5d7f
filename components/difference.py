"""How two texts differ, line by line: signs and colours for lines, bold for the words in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from components.markup import Html, element, joined

# A number with its separators, a word, or one character of a script that is written without spaces.
PIECE = re.compile(r"\d+(?:[.,:]\d+)+|[^\W\u2e80-\U0010ffff]+|\s+|.", re.DOTALL)
LONGEST_COMPARED = 4000  # characters; beyond it comparing the words of a line takes too long
SIGNS = {"removed": "−", "added": "+"}


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """How many lines go and how many come."""
    codes = _matcher(before, after).get_opcodes()
    changed = [code for code in codes if code[0] != "equal"]
    return sum(code[2] - code[1] for code in changed), sum(code[4] - code[3] for code in changed)


def difference_html(before: str, after: str, *, context: int = 1) -> Html:
    """Lines that go and come, each with `context` equal lines around it; empty for equal texts."""
    if before == after:
        return Html()
    old, new = before.split("\n"), after.split("\n")
    rows: list[Html] = []
    shown = 0
    for group in _matcher(before, after).get_grouped_opcodes(context):
        rows += _left_out(group[0][1] - shown)
        shown = group[-1][2]
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                rows += [_row("same", [line]) for line in old[start:end]]
            else:
                rows += _changed(old[start:end], new[new_start:new_end])
    rows += _left_out(len(old) - shown)
    return element("div", joined(rows), class_="cp-diff")


def _matcher(before: str, after: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, before.split("\n"), after.split("\n"))


def _left_out(lines: int) -> list[Html]:
    if lines < 1:
        return []
    words = "1 line that is alike" if lines == 1 else f"{lines} lines that are alike"
    return [element("div", f"… {words}", class_="cp-diff-gap")]


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[Html]:
    """The lines that go, then those that come; as many of both are compared word by word."""
    if len(old) != len(new):
        yield from (_row("removed", [line]) for line in old)
        yield from (_row("added", [line]) for line in new)
        return
    compared = [_words(*pair) for pair in zip(old, new, strict=True)]
    yield from (_row("removed", pieces) for pieces, _ in compared)
    yield from (_row("added", pieces) for _, pieces in compared)


def _words(old: str, new: str) -> tuple[list[str | Html], list[str | Html]]:
    """Both lines with the words in which they differ made bold."""
    if len(old) + len(new) > LONGEST_COMPARED:
        return [old], [new]
    a, b = PIECE.findall(old), PIECE.findall(new)
    gone: list[str | Html] = []
    come: list[str | Html] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, a, b).get_opcodes():
        is_same = kind == "equal"
        gone.append(_piece("".join(a[start:end]), is_same))
        come.append(_piece("".join(b[new_start:new_end]), is_same))
    return gone, come


def _piece(words: str, is_same: bool) -> str | Html:
    return words if is_same or not words else element("strong", words)


def _row(kind: str, pieces: Sequence[str | Html]) -> Html:
    label = kind if kind in SIGNS else None
    role = "img" if label else None
    sign = element("span", SIGNS.get(kind, ""), class_="cp-diff-sign", role=role, aria_label=label)
    words = element("span", joined(pieces), class_="cp-diff-words", dir="auto")
    return element("div", sign, words, class_=f"cp-diff-line cp-diff-{kind}")
