"""Moves the place of wrong words from the text that a tool was given to the response."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from core.audited import ToolUse
from core.records import Case, Statement


def placed(use: ToolUse, statement: Statement | None, case: Case, about: str = "text") -> ToolUse:
    """The use with `[start, end)` in `Case.response`; without a place where it cannot be told.

    The field `about` of its input may hold the statement as it stands, its self-contained rewrite,
    or the whole response: the words are looked for where they can stand, and taken only where that
    is one place.
    """
    if use.start is None or use.end is None:
        return use
    low, high = (statement.start, statement.end) if statement else (0, len(case.response))
    text = _text(use.given, about)
    if 0 <= use.start < use.end <= len(text):
        if case.response[low:high] == text:
            return replace(use, start=low + use.start, end=low + use.end)
        words = text[use.start : use.end]
        if case.response.count(words, low, high) == 1:
            start = case.response.index(words, low, high)
            return replace(use, start=start, end=start + len(words))
    return replace(use, start=None, end=None)


def _text(given: str, about: str) -> str:
    """That field of the tool's input; empty where there is none."""
    try:
        fields = msgspec.json.decode(given)
    except msgspec.MsgspecError:
        return ""
    text = fields.get(about) if isinstance(fields, dict) else None
    return text if isinstance(text, str) else ""
