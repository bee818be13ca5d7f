"""Finds the words with which a text speaks to the judge or a model instead of to its reader.

A hint for a person's eyes, never a filter: whatever is found stays in the evidence, fenced, and the
run goes on. What it does not know it does not find: new wordings pass unnoticed.
"""

from __future__ import annotations

import re

from core.models.disguise import skeleton, spelled_out, visible
from core.models.steering_words import PATTERNS

_LONGEST = 160


def _plain(pattern: str) -> str:
    """The pattern with letters of other scripts as `skeleton` writes them."""
    return "".join(skeleton(c) if not c.isascii() else c for c in pattern)


_PATTERNS = tuple(re.compile(_plain(pattern)) for pattern in PATTERNS)
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*]\w){2,}(?!\w)")
_STRUCK = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_SPACES = re.compile(r"[ \t\u00a0_]+")  # names of files write blanks as _
_LINES = re.compile(r" ?\n[ \n]*")
_REPEATED = re.compile(r"([^\w\s])\1{3,}")
_DIGIT_LETTERS = str.maketrans("013457@$", "oieast" + "as")
_LEET = re.compile(r"[a-z013457@$]{4,}")
# Patterns look at so much at a time, so that no text can make them slow.
_SIGHT, _STEP = 900, 500


def steering(text: str) -> str | None:
    """The words with which the text speaks to a judge or a model, None where it does not."""
    read = visible(spelled_out(text))
    as_it_looks = _tidy(read)
    undisguised = _tidy(_undisguised(skeleton(read)))
    for words, reading in ((as_it_looks, skeleton(as_it_looks)), (undisguised, undisguised)):
        if found := _first(reading):
            return _words(words[found[0] : found[1]])
    return None


def _first(reading: str) -> tuple[int, int] | None:
    """Where the first words that any pattern knows begin and end."""
    for start in range(0, max(1, len(reading)), _STEP):
        sights = (pattern.search(reading, start, start + _SIGHT) for pattern in _PATTERNS)
        if found := [match.span() for match in sights if match]:
            return min(found)
    return None


def _tidy(text: str) -> str:
    """Blanks, empty lines and rows of one mark cut down to what the patterns need."""
    return _REPEATED.sub(r"\1\1\1", _LINES.sub("\n", _SPACES.sub(" ", text)))


def _undisguised(plain: str) -> str:
    """Letter-spaced words joined, digits that stand for letters read as such."""
    bare = _STRUCK.sub("", plain)
    joined = _SPACED.sub(lambda match: re.sub(r"[ .\-_*]", "", match.group()), bare)
    return _LEET.sub(_as_letters, joined)


def _as_letters(match: re.Match[str]) -> str:
    word = match.group()
    return word if word.isdigit() else word.translate(_DIGIT_LETTERS)


def _words(found: str) -> str:
    words = " ".join(found.split()).strip(" .!?:;|,\"'“”«»(*#>=-–—。，：！")
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
