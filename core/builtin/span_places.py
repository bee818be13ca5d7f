"""Where a word stands: in its sentence, in the response, beside which marks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.builtin.span_evidence import Grounds, Numbers
from core.builtin.span_words import Word

OPENING = "\"“«「'(（"
CLOSING = ')）"”»」'
FINAL = ".。।!?؟"
PAUSES = ",，、،;"
COLONS = ":："


def place_columns(text: str, words: Sequence[Word], held: Grounds) -> dict[str, Numbers]:
    """Position, form and the characters on either side."""
    n = len(words)
    order = np.arange(n, dtype=np.float64)
    starts, lengths = _sentences(words)
    before = [text[word.start - 1] if word.start else "\n" for word in words]
    after = [text[word.end] if word.end < len(text) else "\n" for word in words]
    return {
        "is_number": np.array([float(word.is_number) for word in words]),
        "is_capitalised": np.array([float(word.is_capitalised) for word in words]),
        "is_shouted": np.array([float(word.text.isupper()) for word in words]),
        "is_unspaced": np.array([float(word.is_unspaced) for word in words]),
        "length": np.array([float(len(word.text)) for word in words]),
        "place": order / max(1, n - 1),
        "from_start": order,
        "from_end": n - order,
        "in_sentence": order - starts,
        "sentence_length": lengths,
        "sentence": np.array([float(word.sentence) for word in words]),
        "opened": _among(before, OPENING),
        "on_new_line": _among(before, "\n"),
        "paused": _among(after, PAUSES),
        "ended": _among(after, FINAL),
        "closed": _among(after, CLOSING),
        "colon": _among(after, COLONS),
        "bracketed": _bracketed(text, words),
    }


def _among(characters: Sequence[str], some: str) -> Numbers:
    return np.array([float(character in some) for character in characters])


def _sentences(words: Sequence[Word]) -> tuple[Numbers, Numbers]:
    """(n,) place of the first word of each word's sentence, and the sentence's length in words."""
    numbers = np.array([word.sentence for word in words])
    _, first, which, counts = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True
    )
    return first[which].astype(np.float64), counts[which].astype(np.float64)


def _bracketed(text: str, words: Sequence[Word]) -> Numbers:
    """1 for words between round brackets."""
    depth, position = 0, 0
    inside = np.zeros(len(words))
    for i, word in enumerate(words):
        between = text[position : word.start]
        depth = max(0, depth + sum(c in "(（" for c in between) - sum(c in ")）" for c in between))
        inside[i] = float(depth > 0)
        position = word.end
    return inside
