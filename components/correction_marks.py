"""The wrong words of a correction: what stands in its span editor, from suggestions to spans."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components.span_editor.marks import Mark, Marked, marked_from
from core.errors import InputError
from core.jobs import new_id
from core.records import Case, Span
from core.reviews import Correction
from core.store.codec import to_plain

SUGGESTED = "machine."  # with its number it is the id of a span that a machine marked


def marked_of(key: str, offered: Sequence[Span]) -> Marked:
    """What stands in the editor; the offered spans as suggestions where nobody changed any."""
    held: Marked | None = st.session_state.get(f"{key}.marked")
    return held if held is not None else Marked(marks=suggested(offered))


def suggested(spans: Sequence[Span]) -> tuple[Mark, ...]:
    """Spans that machines found as marks to accept or reject."""
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
        own = Span(
            mark.start, mark.end, case.response[mark.start : mark.end], 1.0, mark.category, person
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


def accepted_all(marked: Marked, offered: Sequence[Span]) -> bool:
    """True when every offered span stands accepted."""
    accepted = {m.id for m in marked.marks if m.status == "marked"}
    return bool(offered) and all(f"{SUGGESTED}{n}" in accepted for n in range(len(offered)))


def from_correction(correction: Correction, offered: Sequence[Span]) -> Marked:
    """What stood in the editor when this was saved."""
    chosen = {(s.start, s.end, s.category) for s in correction.spans}
    refused = {(s.start, s.end, s.category) for s in correction.rejected}
    marks: list[Mark] = []
    for mark in suggested(offered):
        place = (mark.start, mark.end, mark.category)
        if place in chosen:
            marks.append(replace(mark, status="marked"))
            chosen.discard(place)
        else:
            marks.append(replace(mark, status="rejected") if place in refused else mark)
    own = [s for s in correction.spans if (s.start, s.end, s.category) in chosen]
    marks += [Mark(f"saved.{n}", s.start, s.end, s.category) for n, s in enumerate(own)]
    return Marked(1, tuple(marks), none=correction.is_unmarked)


def from_draft(
    draft: dict[str, Any], case: Case, offered: Sequence[Span], categories: Collection[str]
) -> Marked | None:
    """What a draft kept, where it still fits; drafts of before the editor are understood too."""
    if "marked" in draft:
        try:
            return marked_from(draft["marked"], case.response, categories)
        except InputError:
            return None
    if "kept" not in draft and "added" not in draft:
        return None
    kept = draft.get("kept")
    marks = [
        replace(mark, status="marked" if not isinstance(kept, list) or n in kept else "rejected")
        for n, mark in enumerate(suggested(offered))
    ]
    added = [row for row in draft.get("added") or [] if _fits(row, case, categories)]
    marks += [Mark(f"draft.{n}", row[0], row[1], row[2]) for n, row in enumerate(added)]
    return Marked(1, tuple(marks))


def _fits(row: Any, case: Case, categories: Collection[str]) -> bool:
    if not isinstance(row, list) or len(row) != 3 or row[2] not in categories:
        return False
    start, end = row[:2]
    numbers = isinstance(start, int) and isinstance(end, int)
    return numbers and 0 <= start < end <= len(case.response)
