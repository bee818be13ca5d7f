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
        found: list[Statement] = []
        subject = ""
        for index, (start, end) in enumerate(_places(case)):
            text = case.response[start:end]
            if is_code(text):
                found.append(Statement(index, start, end, text, text))
                continue
            rewrite = completed(text, subject, case.language)
            found.append(Statement(index, start, end, text, rewrite))
            # A sentence that only refers back is about what the one before was about.
            subject = (subject_of(text, case.language) if rewrite == text else "") or subject
        return tuple(found)


def _places(case: Case) -> Iterator[tuple[int, int]]:
    """Sentences between the programs, and each program as one."""
    position = 0
    for start, end in [*code_blocks(case.response), (len(case.response), -1)]:
        yield from _sentences(case, position, start)
        if end > start:
            yield start, end
            position = end


def _sentences(case: Case, low: int, high: int) -> Iterator[tuple[int, int]]:
    for item in sentences(case.response[low:high], case.language):
        start, end = low + item.start, low + item.end
        if case.language == "zh":
            for cut in BEFORE_A_DIGIT.finditer(case.response, start, end):
                yield start, cut.start()
                start = cut.start()
        yield start, end
