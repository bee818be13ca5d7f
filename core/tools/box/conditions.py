"""Conditions: counts and looks whether an answer keeps to what the question asks of it.

Source: HaluAgent 2.2 (condition verifier), table 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from core.errors import InputError
from core.records import Case, Label, Statement
from core.tools.asked_language import check_language
from core.tools.conditions import check_conditions, held
from core.tools.formats import Format, FormatName, check_format
from core.tools.kept import Kept, worst_of
from core.tools.lengths import Length, LengthUnit, Strictness
from core.tools.toolbox import Answer, Bench, Example, Tool
from core.tools.wording import Wording, check_wording

RULE = """The question asks for a length: the answer is counted. Within 7.5 % of a bare figure (20 %
of "about") it is kept; bounds allow nothing. It asks for a format, for a language, or for words
that shall be there or not: the answer is looked at. Only what is plainly asked for counts."""


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole answer and what was asked of it: the question, or single conditions.

    `text` is the answer. Give `question` as it was put: its conditions are read from it. Or give
    them yourself: a length from `least` to `most` in `unit` (both the same for "in 100 words"), a
    `format` (with `items` entries for a list), `answer_in`, a language as "fr", and words that the
    answer `must_have` or `must_lack`.
    """

    text: str
    question: str = ""
    language: str = "und"
    unit: LengthUnit = "word"
    least: int | None = None
    most: int | None = None
    is_about: bool = False
    format: FormatName | None = None
    items: int | None = None
    answer_in: str = ""
    must_have: tuple[str, ...] = ()
    must_lack: tuple[str, ...] = ()


def _work(given: Conditions, bench: Bench) -> Answer:
    """Hold every condition against the text.

    `gave` has `conditions`, a list of objects: `kind` (length, format, language or wording),
    `asked` and `found` in words, `holds` (true, false, or null where it cannot be told), and
    `start` and `end` of the words in the text that break it (null for all of it).

    Raises:
        InputError: neither a question nor a condition is given.
    """
    checks = (*check_conditions(given.question, given.text, given.language), *_given(given))
    if not checks and not given.question.strip():
        raise InputError("Expected a question or a condition such as least, found neither.")
    gave: dict[str, Any] = {"conditions": [_shown(check) for check in checks]}
    if not checks:
        words = "The question sets no condition that can be counted or looked for."
        return Answer("unclear", words, gave, has_something=False)
    worst = worst_of(checks)
    if worst is None:
        return Answer("unclear", _first_open(checks), gave)
    label: Label = "supported" if worst.holds else "hallucinated"
    return Answer(
        label,
        worst.words,
        gave,
        worst.p,
        worst.start,
        worst.end,
        category="instruction_not_followed",
    )


def _given(given: Conditions) -> tuple[Kept, ...]:
    """The conditions that are given one by one."""
    text = given.text
    strictness: Strictness = "about" if given.is_about else "exact"
    length = Length(given.unit, given.least, given.most, strictness)
    has_length = given.least is not None or given.most is not None
    words = [Wording("has", (word,)) for word in given.must_have if word.strip()]
    words += [Wording("lacks", (word,)) for word in given.must_lack if word.strip()]
    return (
        *((held(length, text, given.language),) if has_length else ()),
        *((check_format(text, Format(given.format, given.items)),) if given.format else ()),
        *((check_language(text, given.answer_in),) if given.answer_in else ()),
        *(check_wording(text, wording) for wording in words),
    )


def _first_open(checks: Sequence[Kept]) -> str:
    return next(check.words for check in checks if check.holds is None)


def _shown(check: Kept) -> dict[str, Any]:
    return {
        "kind": check.kind,
        "asked": check.asked,
        "found": check.found,
        "holds": check.holds,
        "start": check.start,
        "end": check.end,
    }


def _reads(statement: Statement | None, case: Case) -> Conditions | None:
    """The whole response, where its question sets a condition."""
    if statement is not None or not case.question.strip() or not case.response.strip():
        return None
    if not check_conditions(case.question, case.response, case.language):
        return None
    return Conditions(case.response, case.question, case.language)


HARBOUR = "Describe the harbour in eight words."
TOO_MANY = "Boats come and go all day long, and at night the lamps are lit along the wall."

TOOL = Tool(
    name="conditions",
    description=(
        "Says whether an answer keeps to what the question asks of its form: its length in words,"
        " characters, sentences, paragraphs or lines, its format (JSON, table, CSV, list, capitals,"
        " title, no commas), its language, words that it shall have or lack. Use it for the answer"
        " as a whole, where the question sets such a condition. A kept condition says nothing about"
        " what is written."
    ),
    takes=Conditions,
    work=_work,
    examples=(
        Example(
            HARBOUR,
            "Boats come and go with every single tide.",
            Conditions("Boats come and go with every single tide.", HARBOUR),
            "supported",
            "The question asks for eight words, so the answer has to be counted.",
        ),
        Example(
            HARBOUR,
            TOO_MANY,
            Conditions(TOO_MANY, unit="word", least=8, most=8),
            "hallucinated",
            "Eight words were asked for; this looks longer.",
        ),
    ),
    reads=_reads,
)
