"""Cuts a response into statements; what opens a sentence and refers back is completed."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from core.builtin.references import completed, subject_of
from core.concurrency import Stop
from core.evidence.segment import sentences
from core.records import Case, Statement
from core.tools.code_blocks import code_blocks, is_code

# Sentencex takes a full-width stop before a digit for none; in Chinese it ends a sentence.
BEFORE_A_DIGIT = regex.compile(r"(?<=[。！？])(?=\d)")
RULE = """Sentences by sentencex, with offsets in the response as it was given; a Chinese one also
ends before a digit, and a program is one statement. For searching and reading alone,
a statement that opens with a pronoun, with "the company" and the like, or without its subject, is
completed with what the one before is about."""


class BuiltInSegmenter:
    """Built-in segmenter."""

    name = "Segmenter"
    built_in = True
    rule = RULE

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """All statements in order."""
        return Cutter().take(case.response, case.language)


class Cutter:
    """Cuts a text that may still grow: what is cut once stays as it is."""

    def __init__(self) -> None:
        self._end = self._count = 0
        self._subject = ""

    def take(self, text: str, language: str) -> tuple[Statement, ...]:
        """The statements after those taken before; `text` is all that there is by now."""
        found: list[Statement] = []
        low = self._end
        for start, end in places(text[low:], language):
            found.append(self._statement(text, low + start, low + end, language))
        return tuple(found)

    def _statement(self, text: str, start: int, end: int, language: str) -> Statement:
        own = text[start:end]
        rewrite = own
        if not is_code(own):
            rewrite = completed(own, self._subject, language)
            # A sentence that only refers back is about what the one before was about.
            self._subject = (subject_of(own, language) if rewrite == own else "") or self._subject
        self._end, self._count = end, self._count + 1
        return Statement(self._count - 1, start, end, own, rewrite)


def places(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Sentences between the programs, and each program as one."""
    position = 0
    for start, end in [*code_blocks(text), (len(text), -1)]:
        yield from _sentences(text, position, start, language)
        if end > start:
            yield start, end
            position = end


def _sentences(text: str, low: int, high: int, language: str) -> Iterator[tuple[int, int]]:
    for item in sentences(text[low:high], language):
        start, end = low + item.start, low + item.end
        if language == "zh":
            for cut in BEFORE_A_DIGIT.finditer(text, start, end):
                yield start, cut.start()
                start = cut.start()
        yield start, end
