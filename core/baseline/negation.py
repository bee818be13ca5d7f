"""Words of denial in a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.documents.segmentation import IS_UNSPACED, WORD_TOKEN, fold_word

NEGATION_WORDS: Mapping[str, Sequence[str]] = json.loads(
    Path(__file__).with_name("negations.json").read_text(encoding="utf-8")
)


def count_negations(text: str, language: str) -> int:
    """Return the number of words of denial in the text."""
    words = NEGATION_WORDS.get(language, ())
    if IS_UNSPACED.search(text):
        return sum(text.count(word) for word in words)
    return sum(fold_word(match.group()) in words for match in WORD_TOKEN.finditer(text))
