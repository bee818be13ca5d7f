"""Writes raised text (exponents, footnote marks, ordinal endings) so that numbers stay whole.

“120 people” with a raised 3 must not become “120 people3”, nor 10 with a raised 6 become 106.
"""

from __future__ import annotations

import re

# Control characters, which no document shows, enclose raised text until its line is complete.
RAISED_START, RAISED_END = "\x0e", "\x0f"
RAISED_TEXT = re.compile(f"{RAISED_START}([^{RAISED_START}{RAISED_END}]*){RAISED_END}")
SUPERSCRIPTS = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
MAX_CONTEXT = 40  # characters before the raised text that say what it is
EXPONENT = re.compile(r"(?P<sign>[+\-−–])?\d+(?(sign)|[+\-−–]?)")
SIGNED_EXPONENT = re.compile(r"[+\-−–]")
# What a raised number is a power of: 10 or another short number, a variable, a unit, brackets.
# Longer numbers and words have footnote marks instead.
POWER_BASE = re.compile(
    r"(?:(?<![\d.,])\d{1,2}|(?<![^\W\d_])(?:[^\W\d_]|[cdkmnµμ]m|ft|yd|mi|sec|min)|[)\]}])\Z"
)
# A raised number is the numerator of a fraction where a slash and a denominator follow. After a
# whole number only a usual fraction counts: 1 1/2, but 10⁶/100.
NUMERATOR = re.compile(r"\d{1,3}")
NUMERATOR_BASE = re.compile(r"(?:^|[\s(\[–-]|(?<![\d.,])(?P<whole>\d{1,3}))\Z")
DENOMINATOR = re.compile(r"\s?[/⁄]\s?(?:(?P<usual>[2-9]|16|32|64)|\d{1,3})(?!\d|[.,]\d)")
FOOTNOTE_MARKS = re.compile(
    r"[\[(]?(?:\d{1,3}|[a-z]|[*†‡§¶#]+)(?:[,;–-]\s?(?:\d{1,3}|[a-z]))*[\])]?|[A-Z]{1,2}"
)
# A raised letter after these is an ordinal or an abbreviation: 2e, XXe, Me, no.
ORDINAL_BASE = re.compile(r"(?:(?<![\d.,])\d{1,3}|(?<!\w)(?:[IVXLC]+|[^\W\d_]{1,2}))\Z")
ENDING = re.compile(r"[^\W\d_]{1,4}")


def mark_raised(text: str) -> str:
    """Enclose raised text, for `write_raised`."""
    return f"{RAISED_START}{text}{RAISED_END}"


def write_raised(line: str) -> str:
    """Return the line with its enclosed raised text written in plain characters.

    Exponents become superscript digits, footnote marks are left out, numerators and ordinal
    endings stay.
    """
    if RAISED_START not in line and RAISED_END not in line:
        return line
    whole = line.replace(RAISED_END + RAISED_START, "")
    written = RAISED_TEXT.sub(_write_one, whole)
    return written.replace(RAISED_START, "").replace(RAISED_END, "")


def _write_one(match: re.Match[str]) -> str:
    line, raised = match.string, match[1].strip()
    before = line[max(0, match.start() - MAX_CONTEXT) : match.start()]
    if _is_numerator(raised, before, line[match.end() : match.end() + MAX_CONTEXT]):
        return f" {raised}" if before[-1:].isdigit() else raised
    if not before.strip() or before[-1].isspace():
        is_apart = bool(before.strip()) and not line[match.end() : match.end() + 1].isalnum()
        if is_apart and FOOTNOTE_MARKS.fullmatch(raised):
            return ""
        return raised.translate(SUPERSCRIPTS) if raised.isdigit() else match[1]
    if EXPONENT.fullmatch(raised):
        is_power = SIGNED_EXPONENT.search(raised) or POWER_BASE.search(before)
        return raised.translate(SUPERSCRIPTS) if is_power else ""
    if FOOTNOTE_MARKS.fullmatch(raised) and not (raised.isalpha() and ORDINAL_BASE.search(before)):
        return ""
    return match[1] if ENDING.fullmatch(raised) or not raised[:1].isalnum() else f" {match[1]}"


def _is_numerator(raised: str, before: str, after: str) -> bool:
    base, denominator = NUMERATOR_BASE.search(before), DENOMINATOR.match(after)
    if not NUMERATOR.fullmatch(raised) or not base or not denominator:
        return False
    return not base["whole"] or int(raised) < int(denominator["usual"] or 0)
