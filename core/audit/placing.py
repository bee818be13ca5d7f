"""What a tool's finding is about in the response: which statement, and where in it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
from rapidfuzz import fuzz

from core.audited import ToolUse
from core.records import Case, Statement

ALIKE_FROM = 80  # of 100: a model may drop or mend a word of the statement
LONGER_BY = 1.5  # times the statement; what is longer says something else as well
OTHER_WORDS = "It was asked about other words than the statement's, so nothing follows: "


def about_statement(use: ToolUse, statement: Statement | None, about: str = "text") -> ToolUse:
    """The use; without its label where the tool was given another text than the statement.

    A model that calls a tool with another sentence must not have its finding held against this one.
    """
    text = _text(use.given, about)
    if statement is None or use.label == "unclear" or not text:
        return use
    if is_cut_from(text, statement.text):
        return use
    for own in (statement.text, statement.rewrite):
        is_short = len(text) <= LONGER_BY * len(own)
        if is_short and (text in own or fuzz.partial_ratio(text, own) >= ALIKE_FROM):
            return use
    words = f"{OTHER_WORDS}{use.words}"
    return replace(
        use, outcome="nothing", label="unclear", p=None, words=words, start=None, end=None
    )


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
        if case.response[low:high] == text or is_cut_from(text, case.response[low:high]):
            return replace(use, start=low + use.start, end=low + use.end)
        words = text[use.start : use.end]
        if case.response.count(words, low, high) == 1:
            start = case.response.index(words, low, high)
            return replace(use, start=start, end=start + len(words))
    return replace(use, start=None, end=None)


def is_cut_from(text: str, whole: str) -> bool:
    """True for the whole with blanks for some of its characters: places stay what they are."""
    if len(text) != len(whole) or text == whole or not text.strip():
        return False
    return all(one in (own, " ") for one, own in zip(text, whole, strict=True))


def cut_alike(text: str, statement: Statement) -> Statement:
    """The statement with the same words blank as in `text`, which is cut from it.

    In its self-contained form they are blank where each stands once; else that is the text.
    """
    rewrite = statement.rewrite
    for words in _cut_out(text, statement.text):
        if rewrite.count(words) != 1:
            return replace(statement, text=text, rewrite=text)
        rewrite = rewrite.replace(words, " " * len(words))
    return replace(statement, text=text, rewrite=rewrite)


def _cut_out(text: str, whole: str) -> list[str]:
    """The stretches of the whole that are blank in the text."""
    gone = [one != own or own == " " for one, own in zip(text, whole, strict=True)]
    runs = itertools.groupby(zip(gone, whole, strict=True), key=lambda pair: pair[0])
    found = ["".join(own for _, own in run) for is_gone, run in runs if is_gone]
    return [words for words in found if words.strip()]


def _text(given: str, about: str) -> str:
    """That field of the tool's input; empty where there is none."""
    try:
        fields = msgspec.json.decode(given)
    except msgspec.MsgspecError:
        return ""
    text = fields.get(about) if isinstance(fields, dict) else None
    return text if isinstance(text, str) else ""
