"""A file's own words in a message: short, and without characters that steer the reader's screen."""

from __future__ import annotations

import unicodedata


def shown(value: object, most: int = 0) -> str:
    """The value's text, of which `most` characters are enough; 0 shows all.

    Controls, line ends, characters of no width, turns of the writing direction, and what is no
    character are written as their escapes (a terminal would obey them, a page hide them).
    """
    words = str(value)
    words = words[:most] + "…" if most and len(words) > most else words
    return words if words.isprintable() else "".join(map(_letter, words))


def _letter(letter: str) -> str:
    is_plain = letter.isprintable() or unicodedata.category(letter) == "Zs"
    return letter if is_plain else ascii(letter)[1:-1]
