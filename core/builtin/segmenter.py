"""Cuts a response into statements; a leading pronoun is completed from the sentence before."""

from __future__ import annotations

from core.builtin.reading import read
from core.concurrency import Stop
from core.evidence.segment import sentences
from core.records import Case, Statement

PRONOUNS = frozenset("it he she they this these that his her its their".split())
POSSESSIVES = frozenset("his her its their".split())
RULE = """Sentences by sentencex, with offsets in the response as it was given. For searching, a
statement that opens with a pronoun is completed with the name that opened the one before."""


class BuiltInSegmenter:
    """Built-in segmenter."""

    name = "Segmenter"
    built_in = True
    rule = RULE

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """All statements in order."""
        found: list[Statement] = []
        subject = ""
        for index, item in enumerate(sentences(case.response, case.language)):
            text = case.response[item.start : item.end]
            rewrite = _completed(text, subject, case.language)
            found.append(Statement(index, item.start, item.end, text, rewrite))
            subject = _subject(text, case.language) or subject
        return tuple(found)


def _subject(text: str, language: str) -> str:
    """The first name of a sentence; its first words where it has none that shows."""
    units = read(text, language).units
    named = next((unit.text for unit in units if unit.kind == "name"), "")
    return named or (units[0].text if units and units[0].kind == "word" else "")


def _completed(text: str, subject: str, language: str) -> str:
    tokens = read(text, language).tokens
    if not subject or not tokens or tokens[0].norm not in PRONOUNS:
        return text
    owner = subject + "'s" if tokens[0].norm in POSSESSIVES else subject
    return text[: tokens[0].start] + owner + text[tokens[0].end :]
