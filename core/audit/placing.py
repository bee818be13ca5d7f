"""Moves the place of wrong words from the text that a tool was given to the response."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from core.audited import ToolUse
from core.records import Case, Statement


def placed(use: ToolUse, statement: Statement | None, case: Case) -> ToolUse:
    """The use with `[start, end)` in `Case.response`; without a place where it cannot be told.

    A tool may have been given the statement as it stands, its self-contained rewrite, or the whole
    response: the words are looked for where they can stand, and taken only where that is one place.
    """
    if use.start is None or use.end is None:
        return use
    low, high = (statement.start, statement.end) if statement else (0, len(case.response))
    for text in _texts(use.given):
        if not 0 <= use.start < use.end <= len(text):
            continue
        if case.response[low:high] == text:
            return replace(use, start=low + use.start, end=low + use.end)
        words = text[use.start : use.end]
        if words and case.response.count(words, low, high) == 1:
            start = case.response.index(words, low, high)
            return replace(use, start=start, end=start + len(words))
    return replace(use, start=None, end=None)


def _texts(given: str) -> list[str]:
    """The texts among the tool's input, the longest first."""
    try:
        fields = msgspec.json.decode(given)
    except msgspec.MsgspecError:
        return []
    values = fields.values() if isinstance(fields, dict) else ()
    return sorted((value for value in values if isinstance(value, str)), key=len, reverse=True)
