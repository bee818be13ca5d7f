"""Finds words of a statement that the evidence rules out.

“Not X but Y”, “Y rather than X” and “neither X nor Z” make a statement of X wrong. The words that
the evidence puts in their place are compared as a value would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from core.baseline.negation import count_negations
from core.baseline.value_comparison import ValueFinding
from core.documents.segmentation import (
    FUNCTION_WORDS,
    IS_UNSPACED,
    WORD_TOKEN,
    extract_query_terms,
    extract_terms,
)
from core.tools.vocabulary import NORWEGIAN_CODES, PATTERN_TABLES, PatternTable

APOSTROPHE = regex.compile("['’]")
LAST_WORD = regex.compile(r"(\p{L}+)[ \u00a0]$")
MAX_WORDS = 8
MIN_SHARED = 0.5
"""Share of a statement's other words that the evidence must contain."""
SENTENCE_END = regex.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@dataclass(frozen=True)
class _Exclusion:
    """Words that a text rules out, and those that it puts in their place."""

    out: str
    put: str
    phrase: str = ""
    """“neither X nor Z”, which can stand in place of either; empty if `put` can."""


def find_excluded_words(
    claim: str, own_start: int, evidence: Sequence[str], language: str
) -> tuple[ValueFinding, ...]:
    """Return a finding for words from `own_start` on that the evidence rules out, at most one."""
    if count_negations(claim, language) or _list_exclusions(claim, language):
        return ()
    terms = frozenset(extract_query_terms(claim, language))
    sentences = (sentence for text in evidence for sentence in SENTENCE_END.split(text))
    if any(_states(sentence, terms, language) for sentence in sentences):
        return ()
    for text in evidence:
        known = frozenset(extract_terms(text, language))
        for exclusion in _list_exclusions(text, language):
            out, put = (
                frozenset(extract_query_terms(part, language) if part else ())
                for part in (exclusion.out, exclusion.put)
            )
            others = terms - out
            place = _locate(claim, out - put, language)
            if (
                place is None
                or place[0] < own_start
                or not others
                or len(others & known) < MIN_SHARED * len(others)
                or (put and put - out <= terms)
            ):
                continue
            start, end = place
            put_place = _locate(exclusion.put, put - out, language)
            instead = exclusion.put[slice(*put_place)] if put_place else ""
            finding = ValueFinding(
                start,
                end,
                claim[start:end],
                is_date=False,
                status="different",
                instead=instead,
                decided_by=exclusion.phrase or instead,
                phrase_start=_skip_articles_back(claim, start) if exclusion.phrase else start,
            )
            return (finding,)
    return ()


def _states(sentence: str, terms: frozenset[str], language: str) -> bool:
    """Return True if a sentence that rules nothing out has all the terms."""
    is_whole = terms <= frozenset(extract_terms(sentence, language))
    return is_whole and not _list_exclusions(sentence, language)


def _locate(text: str, terms: frozenset[str], language: str) -> tuple[int, int] | None:
    """Return the stretch of the text with all the terms; None if it lacks one."""
    if not terms or not terms <= frozenset(extract_terms(text, language)):
        return None
    if IS_UNSPACED.search(text):
        spans = [(text.find(term), text.find(term) + len(term)) for term in terms]
    else:
        spans = [
            match.span()
            for match in WORD_TOKEN.finditer(text)
            if terms & frozenset(extract_terms(match.group(), language))
        ]
    return min(start for start, _ in spans), max(end for _, end in spans)


def _skip_articles_back(text: str, end: int) -> int:
    """Return the start of the function words before `end`."""
    while (match := LAST_WORD.search(text, 0, end)) and match[1].casefold() in FUNCTION_WORDS:
        end = match.start(1)
    return end


@lru_cache(maxsize=64)
def _load_patterns(language: str) -> PatternTable:
    """Return the patterns with the language's own words: Portuguese “no” means “in the”."""
    tables = PATTERN_TABLES["exclusion_words"]
    code = language.lower().replace("_", "-").split("-")[0]
    words = tables.get(NORWEGIAN_CODES.get(code, code), tables["en"])
    return PatternTable("exclusions", regex.compile, words)


@lru_cache(maxsize=20_000)
def _list_exclusions(text: str, language: str) -> tuple[_Exclusion, ...]:
    return tuple(_find_exclusions(text, _load_patterns(language)))


def _find_exclusions(text: str, patterns: PatternTable) -> Iterator[_Exclusion]:
    for match in patterns.but.finditer(text):
        out, put = _take_words(match["out"]), _take_words(match["put"])
        size = min(_count_words(out), _count_words(put))
        yield _Exclusion(_take_words(out, size, is_last=True), _take_words(put, size))
    for pattern in (patterns.instead, patterns.in_front):
        for match in pattern.finditer(text):
            out = _take_words(match["out"])
            yield _Exclusion(out, _take_words(match["put"], _count_words(out), is_last=True))
    for match in patterns.neither.finditer(text):
        first = _take_words(match["out"])
        last = _take_words(match["also"], _count_words(first))
        end = match.start("also") + match["also"].index(last) + len(last)
        phrase = text[match.start() : end]
        yield from (_Exclusion(out, "", phrase) for out in (first, last))


def _count_words(text: str) -> int:
    """Return the number of words, an elided article as one; of characters in unspaced scripts."""
    if IS_UNSPACED.search(text):
        return len(text)
    return sum(1 + len(APOSTROPHE.findall(match.group())) for match in WORD_TOKEN.finditer(text))


def _take_words(text: str, most: int = MAX_WORDS, *, is_last: bool = False) -> str:
    """Return the first words of a text, or the last: up to a comma or function word."""
    if IS_UNSPACED.search(text):
        return text[-most:] if is_last else text[:most]
    tokens = list(WORD_TOKEN.finditer(text))
    taken: list[tuple[int, int]] = []
    for match in reversed(tokens) if is_last else tokens:
        gap = text[match.end() : taken[-1][0]] if is_last and taken else ""
        gap = text[taken[-1][1] : match.start()] if taken and not is_last else gap
        is_function_word = match.group().casefold() in FUNCTION_WORDS
        if taken and (is_function_word or "," in gap or len(taken) >= most):
            break
        if not is_function_word:
            taken.append(match.span())
    places = sorted(taken)
    return text[places[0][0] : places[-1][1]] if places else ""
