"""The wrong words of a correction: what stands in its span editor, from suggestions to spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components.span_editor.marks import Mark, Marked, marked_from
from core.errors import InputError
from core.jobs import new_id
from core.progress import Progress
from core.records import CATEGORY_WORDS, Case, Category, Span
from core.store.codec import to_plain

CATEGORIES: dict[str, str] = {str(name): words for name, words in CATEGORY_WORDS.items()}
SUGGESTED = "machine."  # with its number it is the id of a span that the machine marked


def marked_of(key: str, progress: Progress) -> Marked:
    """What stands in the editor; the machine's spans as suggestions where nobody changed any."""
    held: Marked | None = st.session_state.get(f"{key}.marked")
    return held if held is not None else Marked(marks=suggestions(progress.spans))


def suggestions(spans: Sequence[Span]) -> tuple[Mark, ...]:
    """The machine's spans as marks to accept or reject."""
    return tuple(
        Mark(f"{SUGGESTED}{n}", s.start, s.end, s.category, s.source, s.p, "suggested")
        for n, s in enumerate(spans)
    )


def with_words(marked: Marked, start: int, end: int, category: str) -> Marked:
    """Another mark of a person's own; the same one twice is one."""
    own = [m for m in marked.marks if m.status == "marked"]
    if any((m.start, m.end, m.category) == (start, end, category) for m in own):
        return marked
    mark = Mark(new_id(), start, end, category)
    return Marked(marked.revision + 1, (*marked.marks, mark), none=False, did="mark")


def accepting_open(marked: Marked) -> Marked:
    """What a person agrees with by agreeing: every suggestion that they did not reject."""
    if all(mark.status != "suggested" for mark in marked.marks):
        return marked
    marks = tuple(replace(m, status="marked") if m.status == "suggested" else m
                  for m in marked.marks)  # fmt: skip
    return replace(marked, revision=marked.revision + 1, marks=marks, none=False, did="accept_all")


def spans_of(marked: Marked, case: Case, machine: Sequence[Span], person: str) -> list[Span]:
    """The marks that count as spans; an accepted one that nobody changed stays the machine's."""
    found: list[Span] = []
    for mark in marked.chosen:
        category: Category = mark.category  # type: ignore[assignment]
        own = Span(
            mark.start, mark.end, case.response[mark.start : mark.end], 1.0, category, person
        )
        theirs = _machines(mark, machine)
        same = theirs is not None and (theirs.start, theirs.end, theirs.category) == (
            own.start, own.end, own.category
        )  # fmt: skip
        found.append(theirs if same and theirs is not None else own)
    return found


def rejected_of(marked: Marked, machine: Sequence[Span]) -> list[Span]:
    """The machine's spans that a person rejected."""
    rejected = (_machines(mark, machine) for mark in marked.marks if mark.status == "rejected")
    return [span for span in rejected if span is not None]


def _machines(mark: Mark, machine: Sequence[Span]) -> Span | None:
    number = mark.id.removeprefix(SUGGESTED)
    if mark.id == number or not number.isdecimal() or int(number) >= len(machine):
        return None
    return machine[int(number)]


def to_draft(marked: Marked | None) -> Any:
    """As a draft keeps it."""
    return None if marked is None else to_plain(marked)


def from_draft(draft: dict[str, Any], case: Case, progress: Progress) -> Marked | None:
    """What a draft kept, where it still fits; drafts of before the editor are understood too."""
    if "marked" in draft:
        try:
            return marked_from(draft["marked"], case.response, CATEGORIES)
        except InputError:
            return None
    if "kept" not in draft and "added" not in draft:
        return None
    kept = draft.get("kept")
    marks = [
        replace(mark, status="marked" if not isinstance(kept, list) or n in kept else "rejected")
        for n, mark in enumerate(suggestions(progress.spans))
    ]
    added = [row for row in draft.get("added") or [] if _fits(row, case)]
    marks += [Mark(f"draft.{n}", row[0], row[1], row[2]) for n, row in enumerate(added)]
    return Marked(1, tuple(marks))


def _fits(row: Any, case: Case) -> bool:
    if not isinstance(row, list) or len(row) != 3 or row[2] not in CATEGORIES:
        return False
    start, end = row[:2]
    numbers = isinstance(start, int) and isinstance(end, int)
    return numbers and 0 <= start < end <= len(case.response)
