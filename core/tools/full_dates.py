"""Which of the dates found in a text are one day for sure, and which language to find them in."""

from __future__ import annotations

import re
from datetime import date

from core.intake.language import UNKNOWN, language_of
from core.tools.values.dates import DateValue

FIRST_YEAR = 1583  # before it, which calendar is meant is open
SIGNS_OF_HAN = re.compile("[\u4e00-\u9fff]")


def full_date(found: DateValue) -> date | None:
    """A date of which day, month and year are sure."""
    is_point = found.kind == "point" and found.era == "ce" and not found.ambiguous
    if not is_point or found.year is None or found.month is None or found.day is None:
        return None
    if found.year < FIRST_YEAR:
        return None
    try:
        return date(found.year, found.month, found.day)
    except (ValueError, OverflowError):
        return None


def tongue_of(text: str, language: str) -> str:
    """The language in which a text's dates are read: Chinese by its script, else as the case is.

    Where that is not known, it is the text's own, and English where that is a guess.
    """
    if SIGNS_OF_HAN.search(text):
        return "ja" if language == "ja" else "zh"
    if language == UNKNOWN:
        language = language_of(text)
    return "en" if language in (UNKNOWN, "zh") else language
