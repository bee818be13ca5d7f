"""Search terms of a text in any script: folded, stemmed words, and bigrams where none are spaced.

SQLite's own tokenizers miss a two-character Chinese word inside a run (measured), so Han, kana,
Thai, Lao, Khmer and Burmese are cut into overlapping pairs. Terms are for matching only; nothing
here ever changes a stored text.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import regex

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = regex.compile(
    rf"\p{{N}}+(?:[.,]\p{{N}}+)*|[{UNSPACED}\p{{M}}]+|(?:[\p{{L}}--[{UNSPACED}]]\p{{M}}*)+"
    rf"(?:['’][\p{{L}}--[{UNSPACED}]]+)*",
    regex.V1,
)
IS_UNSPACED = regex.compile(rf"[{UNSPACED}]", regex.V1)
# Accents and Arabic and Hebrew points only: in Indic scripts the marks are the vowels.
IGNORED_MARKS = regex.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640\u200c\u200d]")
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "et": "estonian", "eu": "basque", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "fa": "persian",
    "cs": "czech",
}  # fmt: skip
FUNCTION_WORDS = frozenset(
    """a an the and or but if of in on at to for from by with as is are was were be been being am
    do does did done has have had having will would shall should can could may might must it its
    this that these those there here he she they them his her their we you i me my our your who
    whom whose which what when where why how than then so such also too very just into onto over
    under about between through during before after above below up down out off again both each
    own same one ones s t""".split()
)


def fold(word: str) -> str:
    """A word without case, compatibility forms and combining marks, for comparing only."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return IGNORED_MARKS.sub("", decomposed).replace("’", "'")


_one_at_a_time = threading.Lock()


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Any:
    import snowballstemmer

    algorithm = STEMMERS.get(language, "english" if language == "und" else "")
    return snowballstemmer.stemmer(algorithm) if algorithm else None


@lru_cache(maxsize=100_000)
def stem(word: str, language: str) -> str:
    """The folded word's stem in that language; unknown languages keep the word."""
    stemmer = _stemmer(language)
    if stemmer is None:
        return word
    with _one_at_a_time:  # a stemmer keeps the word it works on in itself
        return str(stemmer.stemWord(word))


def number_term(text: str) -> str:
    """A number's digits as ASCII without grouping, so that 1,234 and ١٢٣٤ meet 1234."""
    digits = "".join(
        str(unicodedata.decimal(c)) if unicodedata.decimal(c, None) is not None else c for c in text
    )
    groups = regex.split(r"[.,]", digits)
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3:
        return "".join(groups)
    return digits.replace(",", ".")


def terms(text: str, language: str = "und") -> Iterator[str]:
    """The text's terms in order, repeated as often as they occur."""
    for match in WORD.finditer(text):
        word = match.group()
        if word[0].isnumeric() and not IS_UNSPACED.match(word[0]):
            yield number_term(word).replace(".", "d")
        elif IS_UNSPACED.search(word):
            folded = fold(word)
            yield from (folded[i : i + 2] for i in range(max(1, len(folded) - 1)))
        else:
            yield stem(fold(word), language).replace("'", "")


@lru_cache(maxsize=1)
def _function_terms() -> frozenset[str]:
    return FUNCTION_WORDS | {stem(word, "en") for word in FUNCTION_WORDS}


def query_terms(text: str, language: str = "und") -> list[str]:
    """The different terms worth searching for, function words left out unless all are."""
    every = list(dict.fromkeys(terms(text, language)))
    return [term for term in every if term and term not in _function_terms()] or every
