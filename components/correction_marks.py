"""The wrong words of a correction: what stands in its span editor, from suggestions to spans."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components.span_editor.marks import Mark, Marked, marked_from
from core.errors import InputError
from core.jobs import new_id
from core.records import Case, Span
from core.reviews import Correction
from core.store.codec import from_plain, to_plain

SUGGESTED = "machine."  # what the ids of spans that machines marked begin with


def id_of(span: Span) -> str:
    """The mark's id of a span that a machine marked: the same words of the same agent are one."""
    told = f"{span.start} {span.end} {span.category} {span.source}"
    return SUGGESTED + hashlib.sha256(told.encode()).hexdigest()[:16]


def marked_of(key: str, offered: Sequence[Span]) -> Marked:
    """What stands in the editor; the offered spans as suggestions where nobody changed any."""
    held: Marked | None = st.session_state.get(f"{key}.marked")
    return held if held is not None else Marked(marks=suggested(offered))


def suggested(spans: Sequence[Span]) -> tuple[Mark, ...]:
    """Spans that machines found as marks to accept or reject."""
    by_id = {id_of(span): span for span in spans}
    return tuple(
        Mark(name, s.start, s.end, s.category, s.source, s.p, "suggested")
        for name, s in by_id.items()
    )


def with_offered(marked: Marked, offered: Sequence[Span]) -> Marked:
    """The marks beside what is offered now: new suggestions come, those that are gone go.

    What a person accepted stays theirs.
    """
    now = suggested(offered)
    ids = {mark.id for mark in now}
    kept = [m for m in marked.marks if m.status == "marked" or m.id in ids or not _is_machines(m)]
    known = {mark.id for mark in kept}
    marks = (*kept, *(mark for mark in now if mark.id not in known))
    return marked if marks == marked.marks else replace(marked, marks=marks)


def _is_machines(mark: Mark) -> bool:
    return mark.id.startswith(SUGGESTED)


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
    return next((span for span in machine if id_of(span) == mark.id), None)


def to_draft(marked: Marked | None) -> Any:
    """As a draft keeps it."""
    return None if marked is None else to_plain(marked)


def accepted_all(marked: Marked, offered: Sequence[Span]) -> bool:
    """True when every offered span stands accepted."""
    accepted = {m.id for m in marked.marks if m.status == "marked"}
    return bool(offered) and all(id_of(span) in accepted for span in offered)


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


def from_draft(draft: dict[str, Any], case: Case, offered: Sequence[Span]) -> Marked | None:
    """What a draft kept, beside what is offered now; drafts of before the editor too.

    A category that the project has given up since stays with its mark.
    """
    if "marked" not in draft:
        return _from_list(draft, case, offered)
    try:
        found = from_plain(Marked, draft["marked"])
        marked_from(draft["marked"], case.response, {mark.category for mark in found.marks})
    except InputError:
        return None
    return with_offered(found, offered)


def _from_list(draft: dict[str, Any], case: Case, offered: Sequence[Span]) -> Marked | None:
    """A draft of before the editor: numbers of the machine's spans, and places of one's own."""
    if "kept" not in draft and "added" not in draft:
        return None
    kept = draft.get("kept")
    marks = [
        replace(mark, status="marked" if not isinstance(kept, list) or n in kept else "rejected")
        for n, mark in enumerate(suggested(offered))
    ]
    added = [row for row in draft.get("added") or [] if _fits(row, case)]
    marks += [Mark(f"draft.{n}", row[0], row[1], row[2]) for n, row in enumerate(added)]
    return Marked(1, tuple(marks))


def _fits(row: Any, case: Case) -> bool:
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[2], str):
        return False
    start, end = row[:2]
    numbers = isinstance(start, int) and isinstance(end, int)
    return numbers and 0 <= start < end <= len(case.response)
