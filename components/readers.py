"""What the built-in judge's readers made of each statement, and where they disagreed."""

from __future__ import annotations

from collections.abc import Sequence

from components.audit_rows import has_audit
from components.markup import Html, element
from components.words import LABEL_SIGNS, LABEL_WORDS, clipped, counted
from core.progress import Progress
from core.records import Judgement, ReaderView

MOST_SHOWN = 3
LONGEST = 90
# In the debate each saw a share of it, and may have said otherwise.
SEEN = "With all the evidence before them"


def readers_html(progress: Progress) -> Html:
    """Each reader's view in a line, of several statements those on which they disagree."""
    views = _by_statement(progress.judgement)
    if not views:
        return Html("")
    split = {index: own for index, own in views.items() if _disagree(own)}
    total = len(progress.statements) if has_audit(progress) else len(views)
    parts: list[str | Html] = [element("div", _summary(views, split, total))]
    for index, own in list(split.items())[:MOST_SHOWN]:
        if total > 1:
            statement = progress.statements.get(index)
            words = clipped(statement.text, LONGEST) if statement else f"statement {index + 1}"
            parts.append(element("div", f"“{words}”", class_="cp-quiet", dir="auto"))
        parts.append(element("div", *_tags(own), class_="cp-readers-line"))
    if len(split) > MOST_SHOWN:
        parts.append(element("div", f"and {len(split) - MOST_SHOWN} more", class_="cp-quiet"))
    return element("div", *parts, class_="cp-readers")


def readers_words(judgement: Judgement) -> str:
    """The same as one line of text: every statement's views, those in dispute first."""
    views = _by_statement(judgement)
    ordered = sorted(views.items(), key=lambda item: (not _disagree(item[1]), item[0]))
    lines = [(f"{index + 1}. " if len(views) > 1 else "") + line_of(own) for index, own in ordered]
    return "; ".join(lines)


def line_of(views: Sequence[ReaderView]) -> str:
    """“Entailment reader: supported · Value checker: hallucinated”."""
    return " · ".join(f"{view.reader}: {LABEL_WORDS[view.stance].lower()}" for view in views)


def _summary(
    views: dict[int, list[ReaderView]], split: dict[int, list[ReaderView]], total: int
) -> str:
    """What the readers came to; `total` are all statements, of which an audit has only some read.

    The table below it counts them all.
    """
    if len(views) < total:
        some = f"{len(split)} of" if split else "each of"
        on = f"{some} the {len(views):,} statements" if len(views) > 1 else "the one statement"
        agree, end = ("disagree", ":") if split else ("agree", ".")
        return f"{SEEN} the readers {agree} on {on} that they read ({total:,} in all){end}"
    if not split:
        own = next(iter(views.values()))
        if len(views) > 1:
            return f"{SEEN} the readers agree on every statement."
        return f"{SEEN} the readers agree: {line_of(own)}."
    if len(views) == 1:
        return f"{SEEN} the readers disagree:"
    return f"{SEEN} the readers disagree on {len(split)} of {counted(len(views), 'statement')}:"


def _tags(views: Sequence[ReaderView]) -> list[Html]:
    return [
        element(
            "span",
            f"{LABEL_SIGNS[view.stance]} {view.reader}: {LABEL_WORDS[view.stance].lower()}",
            class_=f"cp-tag cp-{view.stance}",
        )
        for view in views
    ]


def _by_statement(judgement: Judgement | None) -> dict[int, list[ReaderView]]:
    found: dict[int, list[ReaderView]] = {}
    for view in judgement.readers if judgement else ():
        found.setdefault(view.statement, []).append(view)
    return found


def _disagree(views: Sequence[ReaderView]) -> bool:
    return len({view.stance for view in views}) > 1
