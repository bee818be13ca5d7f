"""Words of a text with their places, as the finders of number words read them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import regex

TOKEN = regex.compile(r"\p{L}[\p{L}\p{M}]*+(?:'(?:s|t|re|ll|ve|d|m)\b)?|\d[\d.,]*|[^\w\s]")
ASCII_TOKEN = re.compile(r"[A-Za-z]+(?:'(?:s|t|re|ll|ve|d|m)\b)?|\d[\d.,]*|[^\w\s]")
SENTENCE_END = frozenset('.!?:;"“”«(—•*[')


class Word(NamedTuple):
    """A word, a number in digits or a sign at `[start, end)`; `opens` starts a sentence."""

    start: int
    end: int
    low: str
    is_word: bool
    is_number: bool
    capital: bool
    opens: bool


class Found(NamedTuple):
    """A number over the tokens `[first, last)`."""

    first: int
    last: int
    value: float
    ordinal: bool


@lru_cache(maxsize=256)  # quantities and dates of a text are looked for one after the other
def split_words(text: str, low: str) -> tuple[Word, ...]:
    """The tokens of a plain text in order; `low` is the same text in lower case."""
    tokens: list[Word] = []
    opens = True
    for match in (ASCII_TOKEN if text.isascii() else TOKEN).finditer(text):
        start, end = match.span()
        char = text[start]
        is_word, is_number = char.isalpha(), char.isdigit()
        tokens.append(Word(start, end, low[start:end], is_word, is_number, char.isupper(), opens))
        opens = char in SENTENCE_END
    return tuple(tokens)
