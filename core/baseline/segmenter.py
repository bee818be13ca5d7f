"""The built-in segmenter: it splits a response into statements and completes references.

Source: HaluAgent 2.3 (sentence segmentation completes pronouns and omitted content). Only the
opening of a sentence is completed, and only from the last subject that is certain: a wrong name in
a statement would be worse than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import regex

from core.baseline.wording import AGENT_RULES
from core.documents import segmentation
from core.documents.segmentation import (
    FUNCTION_WORDS,
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
        self._subject = ""

    def take(self, text: str, language: str) -> tuple[Statement, ...]:
        """Return the statements not yet returned; `text` is the whole text so far."""
        statements: list[Statement] = []
        offset = self._end
        for start, end in split_outside_code(text[offset:], language):
            original = rewrite = text[offset + start : offset + end]
            if not is_code(original):
                rewrite = complete_reference(original, self._subject, language)
                # A sentence that only refers back keeps the subject of the one before.
                subject = find_subject(original, language) if rewrite == original else ""
                self._subject = subject or self._subject
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


def find_subject(text: str, language: str) -> str:
    """Return the subject of the sentence; "" if it is not certain."""
    if language == "zh":
        found = REFERENCE_PATTERNS.han_subject.match(text)
        is_subject = found is not None and found["name"][0] not in HAN_NON_SUBJECT_STARTS
        return found["name"] if found is not None and is_subject else ""
    # A single capitalised word that opens the sentence is a name only if it is no function word.
    names = (
        match
        for match in REFERENCE_PATTERNS.name.finditer(text)
        if match.start() > 0
        or " " in match.group()
        or fold_word(match.group()) not in FUNCTION_WORDS
    )
    name = next(names, None)
    thing = REFERENCE_PATTERNS.named_thing.match(text) if language == "en" else None
    if thing is not None and name is not None and name.start() < thing.end():
        return thing.group()
    return name.group().rstrip(".") if name is not None else ""


def complete_reference(text: str, subject: str, language: str) -> str:
    """Return the sentence with its opening reference completed; unchanged if it has none."""
    if not subject:
        return text
    if language == "zh":
        if pronoun := REFERENCE_PATTERNS.han_pronoun.match(text):
            particle = "的" if pronoun["its"] or pronoun["of"] else ""
            return f"{subject}{particle}{text[pronoun.end() :]}"
        return f"{subject}{text}" if REFERENCE_PATTERNS.han_bare.match(text) else text
    first = WORD_TOKEN.search(text)
    if first is None:
        return text
    word = fold_word(first.group())
    pronouns = PRONOUNS.get("en" if language == UNKNOWN_LANGUAGE else language, ())
    if word in pronouns and not REFERENCE_PATTERNS.empty.match(text):
        is_possessive = language == "en" and word in POSSESSIVES
        owner = f"{subject}'s" if is_possessive else subject
        return text[: first.start()] + owner + text[first.end() :]
    if language != "en":
        return text
    if REFERENCE_PATTERNS.participle.match(text):
        return f"{subject}, {text[0].lower()}{text[1:]}"
    kind = REFERENCE_PATTERNS.the_kind.match(text)
    if kind is not None and fold_word(kind["kind"]) not in fold_word(subject):
        return f"{subject}, the {kind['kind']},{text[kind.end() :]}"
    return text
