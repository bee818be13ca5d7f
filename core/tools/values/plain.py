"""A text made plain one code point at a time, and phrases looked up in it.

Plain text has ASCII digits, signs and spaces in the places of the original's, so offsets in it are
offsets in the original.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")

NARROW = "\u00a0"
KEPT = "，：；！？（）～＂＇"  # marks of their own, or with a meaning that the ASCII sign lacks
SAME: dict[str, str] = {
    "−": "-", "‐": "-", "‑": "-", "﹣": "-", "٪": "%", "٫": ".", "٬": ",", "’": "'", "‘": "'",
    "′": "'", "″": '"', "\u202f": NARROW, "\u2009": NARROW, "\u2007": NARROW, "\u2008": NARROW,
    "μ": "µ", "˚": "°", "∕": "/", "⁄": "/", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ",
}  # fmt: skip


class _Table(dict[int, str]):
    """Translations of code points, worked out when first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        digit = unicodedata.decimal(char, None)
        if char in SAME:
            plain_char = SAME[char]
        elif digit is not None:
            plain_char = str(digit)
        elif 0xFF01 <= code <= 0xFF5E and char not in KEPT:
            plain_char = chr(code - 0xFEE0)
        else:
            plain_char = char
        self[code] = plain_char
        return plain_char


_TABLE = _Table()


def plain(text: str) -> str:
    """The text with digits, signs and blanks of any script as ASCII; same length."""
    return text.translate(_TABLE)


def lower(text: str) -> str:
    """Lower case of the same length: letters that would become two stay as they are."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def is_unspaced(char: str) -> bool:
    """True for scripts in which words join without blanks (Korean: with their endings)."""
    return (
        "\u0e00" <= char <= "\u0eff"
        or "\u1000" <= char <= "\u109f"
        or "\u1780" <= char <= "\u17ff"
        or "\u3040" <= char <= "\u30ff"
        or "\u3400" <= char <= "\u9fff"
        or "\uac00" <= char <= "\ud7af"
        or "\U00020000" <= char <= "\U0003ffff"
    )


def is_wordy(char: str) -> bool:
    """True for letters, digits and marks: what continues a word."""
    return char.isalnum() or (char > "\u02ff" and unicodedata.category(char)[0] == "M")


def joined(text: str, position: int) -> bool:
    """True where the position lies inside a word of a spaced script."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if is_unspaced(before) or is_unspaced(after):
        return False
    return is_wordy(before) and is_wordy(after)


def skip_blank(text: str, position: int) -> int:
    """The position after one blank, if there is one."""
    return position + 1 if text[position : position + 1] in (" ", NARROW) else position


class Phrases(Generic[V]):
    """Words and phrases with a value each, looked up at a place in plain lower-case text."""

    def __init__(self, values: Mapping[str, V]) -> None:
        self.values = {key: value for key, value in values.items() if key}
        self._first: dict[str, tuple[int, ...]] = _lengths(self.values, 0)
        self._last: dict[str, tuple[int, ...]] = _lengths(self.values, -1)

    def at(self, text: str, position: int) -> tuple[int, V] | None:
        """The end and value of the longest phrase that starts here and ends with its word."""
        for length in self._first.get(text[position : position + 1], ()):
            end = position + length
            if end > len(text):
                continue
            piece = text[position:end]
            if piece in self.values and not joined(text, end):
                return end, self.values[piece]
        return None

    def before(self, text: str, position: int) -> tuple[int, V] | None:
        """The start and value of the longest phrase that ends here and starts with its word."""
        if not position:
            return None
        for length in self._last.get(text[position - 1], ()):
            start = position - length
            if start < 0:
                continue
            piece = text[start:position]
            if piece in self.values and not joined(text, start):
                return start, self.values[piece]
        return None


def _lengths(keys: Iterable[str], place: int) -> dict[str, tuple[int, ...]]:
    """For each first (0) or last (-1) letter the keys' lengths, longest first."""
    found: dict[str, set[int]] = {}
    for key in keys:
        found.setdefault(key[place], set()).add(len(key))
    return {letter: tuple(sorted(lengths, reverse=True)) for letter, lengths in found.items()}
