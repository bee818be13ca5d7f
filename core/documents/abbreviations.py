"""Decides whether a full stop belongs to an abbreviation, an initial or an ordinal number.

sentencex ends a sentence at many of them. The words are in `abbreviations.json`; abbreviations that
are not listed are recognised by their shape and by the word that follows.
"""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from pathlib import Path

import regex

MAX_UNLISTED_LENGTH = 5  # letters of an abbreviation that is recognised by its shape
LAST_WORDS = regex.compile(
    r"(?:(?P<before>\S+)\s+)?[\p{Ps}\p{Pi}\"']*"
    r"(?P<word>(?:\p{L}\p{M}*)+(?:\.(?:\p{L}\p{M}*)+)*|\p{N}{1,3})\.\s*$"
)
NEXT_WORD = regex.compile(r"[\p{Ps}\p{Pi}\p{Sc}\p{Sm}§#\"'\s-]*(?P<word>(?:\p{L}\p{M}*)+|\p{N}+)")
ATTACHED = regex.compile(r"\.[-‐–ºª°%,;:)/]")
VOWEL = regex.compile(r"[aeiouyæøœıаеёиоуыэюяєіαεηιουω]")
NUMBER = regex.compile(r"\p{N}+(?:[.,]\p{N}+)*")
FIRST_CHARACTER = regex.compile(r"[\p{L}\p{N}]")
ROMAN_NUMERAL = regex.compile(r"[IVXLC]{2,}|[VX]")
SYLLABIC_CONSONANTS = frozenset("cs sk sl hr bs sr mk bg".split())
"""Languages with words without a vowel."""
ORDINAL_LANGUAGES = frozenset("de da no cs sk hu fi et sl hr und".split())
"""Languages that write an ordinal number with a full stop."""


@lru_cache(maxsize=64)
def _load_words(kind: str, language: str) -> frozenset[str]:
    """Return the words of a kind in a language; of all languages if it is unknown."""
    lists: dict[str, str] = json.loads(
        Path(__file__).with_name("abbreviations.json").read_text(encoding="utf-8")
    )[kind]
    chosen = lists.values() if language == "und" else (lists.get("any"), lists.get(language))
    return frozenset(word for words in chosen if words for word in words.split())


def is_function_word(word: str, language: str) -> bool:
    """Return True for an article, pronoun, preposition or conjunction that may open a sentence."""
    return word.casefold() in _load_words("openers", language)


def ends_sentence(sentence: str, following: str, language: str) -> bool | None:
    """Return whether the sentence's last full stop ends it; None if the words do not show it.

    `following` is the text after the sentence.
    """
    if ATTACHED.match(sentence[-1:] + following[:1]):
        return False
    found, next_word = LAST_WORDS.search(sentence[-80:]), NEXT_WORD.match(following[:80])
    if not found or not next_word:
        return None
    word, before, after = found["word"], found["before"] or "", next_word["word"]
    is_listed = word.casefold() in _load_words("before_anything", language)
    if after.islower():
        first = FIRST_CHARACTER.search(sentence)
        is_lowercase_text = first is not None and first.group().islower()
        is_short = len(word) <= MAX_UNLISTED_LENGTH and not is_lowercase_text
        return False if is_listed or word.isnumeric() or is_short else None
    is_unit = NUMBER.fullmatch(before) is not None and len(word) <= 2
    if is_listed and not is_unit:
        return False
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    if len(after) > 1 and is_function_word(after, language):
        return None if is_initial else True
    if after.isnumeric() or ROMAN_NUMERAL.fullmatch(after):
        is_reference = word.casefold() in _load_words("before_numbers", language)
        is_letter = len(word) == 1 and word.islower()
        is_abbreviation = is_letter or _lacks_vowel(word, language)
        return False if is_reference or (is_abbreviation and not NUMBER.fullmatch(before)) else None
    if word.isnumeric():
        is_ordinal = before.casefold() in _load_words("before_ordinals", language) or (
            language in ORDINAL_LANGUAGES and after.isupper() and 2 <= len(after) <= 4
        )
        return False if is_ordinal else None
    is_title = is_initial or (word[0].isupper() and _lacks_vowel(word, language))
    return False if is_title and not NUMBER.fullmatch(before) else None


def _lacks_vowel(word: str, language: str) -> bool:
    """Return True for a short word of a cased script without a vowel: Mrd, Szt, Lt."""
    letters = unicodedata.normalize("NFKD", word.casefold())
    return (
        1 < len(word) <= MAX_UNLISTED_LENGTH
        and word[1:].islower()
        and language not in SYLLABIC_CONSONANTS
        and not VOWEL.search(letters)
    )
