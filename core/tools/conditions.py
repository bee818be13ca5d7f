"""Every condition that a question sets its answer, each held against the answer.

Conditions are read strictly: one that is not plainly asked for is none. Source: HaluAgent 2.2
(condition verifier).
"""

from __future__ import annotations

from core.tools.asked_length import asked_lengths
from core.tools.asked_length_european import european_lengths
from core.tools.kept import Kept, kept_length, not_told
from core.tools.lengths import Length, check_length, length_words


def check_conditions(question: str, response: str, language: str = "en") -> tuple[Kept, ...]:
    """The conditions of a question in the order in which they are looked for; mostly none."""
    lengths = asked_lengths(question) or european_lengths(question)
    return tuple(held(length, response, language) for length in lengths)


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
