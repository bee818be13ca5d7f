"""Every condition that a question sets its answer, each held against the answer.

Conditions are read strictly: one that is not plainly asked for is none. Source: HaluAgent 2.2
(condition verifier).
"""

from __future__ import annotations

from core.tools.asked_format import asked_formats
from core.tools.asked_language import asked_language, check_language
from core.tools.asked_length import asked_lengths
from core.tools.asked_length_european import european_lengths
from core.tools.asked_wording import asked_wordings
from core.tools.formats import check_format
from core.tools.kept import Kept, kept_length, not_told
from core.tools.lengths import Length, check_length, length_words
from core.tools.wording import check_wording


def check_conditions(question: str, response: str, language: str = "en") -> tuple[Kept, ...]:
    """The conditions of a question: lengths, formats, the language, words; mostly none."""
    lengths = asked_lengths(question) or european_lengths(question)
    wanted = asked_language(question)
    return (
        *(held(length, response, language) for length in lengths),
        *(check_format(response, asked) for asked in asked_formats(question)),
        *((check_language(response, wanted),) if wanted else ()),
        *(check_wording(response, asked) for asked in asked_wordings(question)),
    )


def held(asked: Length, response: str, language: str) -> Kept:
    """A length against the answer."""
    check = check_length(response, asked, language)
    if check is None:
        why = (
            "the answer stands on one line, and where that breaks is up to the page"
            if asked.unit == "line"
            else "the answer's script does not part words by blanks"
        )
        return not_told("length", length_words(asked), why)
    return kept_length(check)
