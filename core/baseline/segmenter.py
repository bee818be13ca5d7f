"""The built-in segmenter: it splits a response into statements and completes references.

Source: HaluAgent 2.3 (sentence segmentation completes pronouns and omitted content). Only a pronoun
that opens a sentence is replaced, and only by a subject that is certain: a wrong name in a
statement would be worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import regex

from core.baseline.wording import AGENT_RULES
from core.documents import segmentation
from core.documents.abbreviations import is_function_word
from core.documents.segmentation import (
    UNKNOWN_LANGUAGE,
    WORD_TOKEN,
    fold_word,
)
from core.runtime.concurrency import StopSignal
from core.schema.records import Case, Statement
from core.tools.code import find_code_blocks, is_code
from core.tools.vocabulary import PatternTable, load_words

REFERENCE_PATTERNS = PatternTable("audit_agents", regex.compile)
# Sentencex does not split at a full-width stop before a digit; in Chinese it ends a sentence.
STOP_BEFORE_DIGIT = regex.compile(r"(?<=[。！？])(?=\d)")
PRONOUNS: Mapping[str, list[str]] = load_words("openings")["pronouns"]
PERSONAL_PRONOUNS = frozenset("he she his her".split())
POSSESSIVES = frozenset("his her its their".split())
HAN_NON_SUBJECT_STARTS = frozenset("在从自当因所如但而对把被由为以及若虽不没这那该此其他她它我你您")


class BuiltInSegmenter:
    """The built-in segmenter."""

    name = "Segmenter"
    built_in = True
    rule = AGENT_RULES["segmenter"]

    def segment(self, case: Case, stop: StopSignal) -> tuple[Statement, ...]:
        """Return all statements in order."""
        return StatementSplitter().take(case.response, case.language)


class StatementSplitter:
    """Splits a text that may still grow; statements once returned do not change."""

    def __init__(self) -> None:
        self._end = self._count = 0
        self._previous = ""

    def take(self, text: str, language: str) -> tuple[Statement, ...]:
        """Return the statements not yet returned; `text` is the whole text so far."""
        statements: list[Statement] = []
        offset = self._end
        for start, end in split_outside_code(text[offset:], language):
            original = rewrite = text[offset + start : offset + end]
            if not is_code(original):
                rewrite = self._previous = complete_reference(original, self._previous, language)
            self._end = offset + end
            statements.append(Statement(self._count, offset + start, self._end, original, rewrite))
            self._count += 1
        return tuple(statements)


def split_outside_code(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield `[start, end)` of each sentence outside code, and of each code block as one."""
    position = 0
    for code_start, code_end in [*find_code_blocks(text), (len(text), -1)]:
        for item in segmentation.split_sentences(text[position:code_start], language):
            start, end = position + item.start, position + item.end
            for cut in STOP_BEFORE_DIGIT.finditer(text, start, end) if language == "zh" else ():
                yield start, cut.start()
                start = cut.start()
            yield start, end
        if code_end > code_start:
            yield code_start, code_end
            position = code_end


def find_opening_pronoun(text: str, language: str) -> re.Match[str] | regex.Match[str] | None:
    """Return the pronoun that opens the sentence and stands for something; else None."""
    if language == "zh":
        return REFERENCE_PATTERNS.han_pronoun.match(text)
    first = WORD_TOKEN.search(text)
    pronouns = PRONOUNS.get("en" if language == UNKNOWN_LANGUAGE else language, ())
    is_pronoun = first is not None and fold_word(first.group()) in pronouns
    return first if is_pronoun and not REFERENCE_PATTERNS.empty.match(text) else None


def complete_reference(text: str, previous: str, language: str) -> str:
    """Return the sentence with its opening pronoun replaced by the subject of the previous one.

    It is unchanged if it opens with no pronoun, or if the subject is not certain.
    """
    pronoun = find_opening_pronoun(text, language)
    subject = pronoun and find_subject(previous, language, fold_word(pronoun.group()))
    if not pronoun or not subject:
        return text
    if language == "zh":
        subject += "的" if pronoun["its"] or pronoun["of"] else ""
    elif fold_word(pronoun.group()) in POSSESSIVES:
        subject += "'" if subject.endswith("s") else "'s"
    return text[: pronoun.start()] + subject + text[pronoun.end() :]


def find_subject(text: str, language: str, pronoun: str) -> str:
    """Return the subject of the sentence if the pronoun surely refers to it; else ""."""
    if language == "zh":
        found = REFERENCE_PATTERNS.han_subject.match(text)
        is_subject = found is not None and found["name"][0] not in HAN_NON_SUBJECT_STARTS
        return found["name"] if found is not None and is_subject else ""
    language = "en" if language == UNKNOWN_LANGUAGE else language
    name = REFERENCE_PATTERNS.name.match(text)
    first = name.group().split()[0] if name else ""
    is_thing = first == "The"
    if name is None or (is_function_word(first, language) and not is_thing):
        return ""
    # A single capitalised word may be an adverb, and a noun in German.
    full_name = name.group().rstrip(".") if " " in name.group() and not is_thing else ""
    if language != "en":
        return full_name
    found = REFERENCE_PATTERNS.subject.match(text)
    if pronoun in PERSONAL_PRONOUNS and (is_thing or not found):
        return full_name
    if found is None or found["one" if pronoun in ("they", "their") else "many"]:
        return ""
    return str(found["subject"])
