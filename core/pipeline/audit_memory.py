"""What tools said of a statement, where in the response, and what the audit remembers of it.

Source: HaluAgent 2.3 (the triple of sentence, label and evidence). Beyond the paper, a statement is
contested where the reading of evidence is not one: then it goes to debate. `ToolUse.gave` is JSON
made for the tool's own view; an imported trace may hold anything there, so only what has the shape
below is taken from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from rapidfuzz import fuzz

from core.events import Remembered, ToolUse
from core.records import Case, Cause, Label, MeasuredShare, Point, ReaderView, Statement
from core.roles import Step

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


class ToolView(msgspec.Struct, frozen=True):
    """What a reading tool told beside its label: places of points are those of `Case.response`.

    `readers` say what each called the statement, `cause` why there is no label, `measured` how
    often readings this sure were right.
    """

    readers: tuple[ReaderView, ...] = ()
    points: tuple[Point, ...] = ()
    cause: Cause | None = None
    measured: MeasuredShare | None = None


DECODER = msgspec.json.Decoder(ToolView)


def told_by(use: ToolUse) -> ToolView:
    """What the tool told of that shape; nothing where it is of another."""
    try:
        return DECODER.decode(use.gave.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ToolView()


def do_differ(use: ToolUse) -> bool:
    """True where one of its readers calls the statement supported and another hallucinated."""
    stances: set[Label] = {view.stance for view in told_by(use).readers}
    return {"supported", "hallucinated"} <= stances


# Tools that read what others wrote; all others work something out, and are not outvoted by them.
SEARCH = "search"  # brings what can be read, and says nothing of the statement itself
READING = frozenset({SEARCH, "match", "translate"})
OPEN_MIDDLE = (0.35, 0.65)
NOTHING_SAID = "No tool says anything about it."
NOT_CHECKABLE = "It says nothing that could be true or false."


def concluded(
    statement: int, uses: Sequence[ToolUse], end: Step, passages: Sequence[str] = ()
) -> Remembered:
    """What is held of the statement once its picker has ended with the step `end`.

    The picker's own label counts where it gives one: it may overrule what a reading tool said
    (HaluAgent, figure 4), while against a tool that works something out it only contests. A tool
    that failed is said to have, where nothing else tells of the statement.
    """
    entry = Remembered(
        statement,
        "unclear",
        None,
        end.evidence or _failures(uses) or NOTHING_SAID,
        tuple(dict.fromkeys(use.tool for use in uses)),
        tuple(passages),
    )
    if not end.is_checkable:
        words = end.evidence or end.thought or NOT_CHECKABLE
        return replace(entry, evidence=words, is_checkable=False)
    said = [use for use in uses if use.outcome == "found" and use.label != "unclear"]
    if end.label is not None:
        return _by_picker(entry, said, end, end.label)
    return _by_tools(entry, said, uses)


def _by_picker(entry: Remembered, said: Sequence[ToolUse], end: Step, label: Label) -> Remembered:
    alike = [use for use in said if use.label == label]
    against = [use for use in said if use.label != label and use.tool not in READING]
    if label == "unclear":  # a right sum does not make right what stands beside it
        against = [use for use in against if use.label == "hallucinated"]
    words = end.evidence or (alike[-1].words if alike else end.thought) or entry.evidence
    return replace(
        entry, label=label, p=_p_of(alike, label), evidence=words, is_contested=bool(against)
    )


def _by_tools(entry: Remembered, said: Sequence[ToolUse], uses: Sequence[ToolUse]) -> Remembered:
    """What was worked out weighs more than what was read; the last reading counts."""
    worked = [use for use in said if use.tool not in READING]
    wrong = [use for use in worked if use.label == "hallucinated"]
    shown = [use for use in uses if use.tool in READING and use.outcome == "found"]
    read = [use for use in shown if use.tool != SEARCH][-1:] or shown[-1:]
    if wrong:
        return _as_told(entry, wrong, "hallucinated")
    decided = [use for use in read if use.label != "unclear"]
    if worked and not any(use.label == "hallucinated" for use in decided):
        return _as_told(entry, [*worked, *decided], "supported")
    is_open = any(do_differ(use) or _is_middling(use) for use in read)
    if worked:
        return replace(_as_told(entry, decided, "hallucinated"), is_contested=True)
    if decided:
        return replace(_as_told(entry, decided, decided[0].label), is_contested=is_open)
    words = " ".join(filter(None, [*(use.words for use in read), _failures(uses)]))
    words = words or entry.evidence
    return replace(entry, p=_p_of(read, "unclear"), evidence=words, is_contested=is_open)


def _failures(uses: Sequence[ToolUse]) -> str:
    """Which tools failed and how, in sentences."""
    told = (f"The tool {use.tool} failed: {use.words}" for use in uses if use.outcome == "failed")
    return " ".join(dict.fromkeys(told))


def _as_told(entry: Remembered, deciding: Sequence[ToolUse], label: Label) -> Remembered:
    words = " ".join(dict.fromkeys(use.words for use in deciding))
    return replace(entry, label=label, p=_p_of(deciding, label), evidence=words)


def _p_of(uses: Sequence[ToolUse], label: Label) -> float | None:
    """The most doubtful of what is known; a p on the other side of the label is no p of it."""
    known = [use.p for use in uses if use.p is not None]
    if label == "hallucinated":
        known = [p for p in known if p >= 0.5]
    elif label == "supported":
        known = [p for p in known if p < 0.5]
    return max(known, default=None)


def _is_middling(use: ToolUse) -> bool:
    low, high = OPEN_MIDDLE
    return use.label != "unclear" and use.p is not None and low < use.p < high
