"""Evidence that a person marks in the sources: the span editor over a part of a source at a time.

Source: SC-MAKS 4.5. What is kept are stretches of the source's text; the editor's own offsets
count from the part that it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components import state
from components.correction_asked import STANCE_WORDS
from components.span_editor import span_editor
from components.span_editor.marks import Mark, Marked
from components.words import escaped
from core.documents.quotes import relocate
from core.errors import InputError
from core.records import Case, Source
from core.reviews import EvidenceMark
from core.store.codec import from_plain, to_plain

A_PART = 20_000  # characters: what the editor draws at once without a pause
Kept = dict[str, tuple[EvidenceMark, ...]]


def evidence_kept(key: str) -> Kept:
    """The marks of a form, by the part of the source that they were made in; "" where unknown."""
    found: Kept = st.session_state.get(f"{key}.evidence") or {}
    return found


def evidence_of(key: str) -> tuple[EvidenceMark, ...]:
    """All marks of a form, each once, in the order of the sources."""
    marks = dict.fromkeys(mark for marks in evidence_kept(key).values() for mark in marks)
    return tuple(sorted(marks, key=lambda mark: (mark.source_id, mark.start, mark.end)))


def evidence_to(kept: Kept) -> Any:
    """As a draft keeps it."""
    return to_plain([mark for marks in kept.values() for mark in marks])


def evidence_from(draft: object) -> Kept:
    """What a draft kept, where it can still be read."""
    try:
        marks = from_plain(tuple[EvidenceMark, ...], draft or [])
    except InputError:
        return {}
    return {"": marks} if marks else {}


def parts_of(source: Source) -> list[tuple[str, int, int]]:
    """The parts of a source that are shown one at a time: what each is called, and its offsets.

    Pages where it has some; longer ones, and texts without pages, are cut where a line ends.
    """
    whole = [(f"p. {page.number}", page.start, page.end) for page in source.pages]
    found: list[tuple[str, int, int]] = []
    for name, start, end in whole or [("", 0, len(source.text))]:
        cuts = list(_cut(source.text, start, end))
        for number, (first, last) in enumerate(cuts, start=1):
            part = f"part {number} of {len(cuts)}" if len(cuts) > 1 else ""
            found.append((", ".join(filter(None, (name, part))), first, last))
    return found


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while end - start > A_PART:
        newline = text.rfind("\n", start + 1, start + A_PART)
        cut = newline + 1 if newline > start else start + A_PART
        found.append((start, cut))
        start = cut
    return [*found, (start, end)]


def draw_evidence_marks(key: str, sources: Sequence[Source], changed: Callable[[], None]) -> None:
    """A source and a part of it to choose, and the editor over it; `changed` keeps the draft."""
    readable = [source for source in sources if source.text]
    if not readable:
        st.caption("There is no text to mark: the case has no source that could be read.")
        return
    left, right = st.columns([3, 2])
    names = {source.id: source.name for source in readable}
    chosen = left.selectbox(
        "Source", list(names), format_func=lambda i: names[i], key=f"{key}.evidence.source"
    )
    source = next((s for s in readable if s.id == chosen), readable[0])
    parts = parts_of(source)
    place = right.selectbox(
        "Part",
        range(len(parts)),
        format_func=lambda n: parts[n][0] or "the whole text",
        key=f"{key}.evidence.part.{source.id}",
        disabled=len(parts) < 2,
    )
    _, start, end = parts[place or 0]
    _follow(key, source)
    _draw_part(key, source, start, end, changed)
    outside = [m for m in evidence_of(key) if not _lies(m, source, start, end)]
    for mark in outside:
        words = f"“{mark.text}” {STANCE_WORDS[mark.stance]} ({names.get(mark.source_id, '?')})"
        st.caption(escaped(words))


def _follow(key: str, source: Source) -> None:
    """Move marks to where their words stand in the source as it is read now."""
    kept = dict(evidence_kept(key))
    for part, marks in kept.items():
        kept[part] = tuple(_moved(mark, source) for mark in marks)
    if kept != evidence_kept(key):
        st.session_state[f"{key}.evidence"] = kept


def _moved(mark: EvidenceMark, source: Source) -> EvidenceMark:
    if mark.source_id != source.id:
        return mark
    place = relocate(source.text, mark.start, mark.end, mark.text)
    return replace(mark, start=place[0], end=place[1]) if place else mark


def _lies(mark: EvidenceMark, source: Source, start: int, end: int) -> bool:
    """True for a mark of this part whose words still stand there."""
    is_inside = mark.source_id == source.id and start <= mark.start and mark.end <= end
    return is_inside and source.text[mark.start : mark.end].split() == mark.text.split()


@st.fragment
def _draw_part(key: str, source: Source, start: int, end: int, changed: Callable[[], None]) -> None:
    text = source.text[start:end]
    part = f"{source.id}.{start}"
    held: Marked | None = st.session_state.get(f"{key}.evidence.{part}")
    if held is None:
        own = [m for m in evidence_of(key) if _lies(m, source, start, end)]
        marks = (
            Mark(f"kept.{n}", m.start - start, m.end - start, m.stance) for n, m in enumerate(own)
        )
        held = Marked(marks=tuple(marks))

    def told(marked: Marked) -> None:
        st.session_state[f"{key}.evidence.{part}"] = marked
        kept = dict(evidence_kept(key))
        for name, marks in kept.items():
            kept[name] = tuple(m for m in marks if not _lies(m, source, start, end))
        kept[part] = tuple(
            EvidenceMark(
                source.id,
                start + mark.start,
                start + mark.end,
                text[mark.start : mark.end],
                "supports" if mark.category == "supports" else "contradicts",
            )
            for mark in marked.chosen
        )
        st.session_state[f"{key}.evidence"] = kept
        changed()

    span_editor(
        text, held, STANCE_WORDS, told, key=f"{key}.evidence.editor.{part}",
        language=source.language,
    )  # fmt: skip


def sources_of(case: Case) -> list[Source]:
    """The case's documents and images that were read, and that whoever is here may see."""
    with state.open_store() as store:
        found = [
            store.readings.get(source_id, store.library.name_of(case.project_id, source_id))
            for source_id in (*case.documents, *case.images)
            if state.may_see_source(store, source_id)
        ]
    return [source for source in found if source is not None]
