"""All versions of an answer side by side: of people, the machine, agents outside, the right one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.correction_asked import Asked
from components.correction_draft import key_of, refill
from components.correction_saved import newest_seen
from components.highlight import Mark, marked_text
from components.plain import rationale_words
from components.show import show
from components.words import LABEL_SIGNS, LABEL_WORDS, escaped
from core.curation import Version, version_of
from core.progress import Progress
from core.records import Case
from core.reviews import Correction, category_words
from core.store import Store

A_ROW = 4
FIRST_KEY, LAST_KEY = 4, 9  # Alt+1 to Alt+3 choose the label


def versions_of(store: Store, case: Case, progress: Progress) -> list[Version]:
    """People's newest answers, then the machine's, outside agents', and the right answer so far."""
    found = [version_of(c) for c in store.corrections.newest_of_case(case.id)]
    if progress.verdict is not None:
        why = rationale_words(progress.verdict.rationale)
        found.append(Version("the machine", progress.verdict.label, progress.spans, why))
    for suggestion in store.golds.suggestions(case.id):
        found.append(Version(suggestion.agent, suggestion.label, suggestion.spans))
    if (last := store.golds.that_counts(case.id)) is not None:
        who = f"right answer so far ({last.origin}, {last.author})"
        found.append(
            Version(who, last.label, last.spans, last.reason, last.corrected_answer, is_right=True)
        )
    return found


def draw_versions(asked: Asked, versions: Sequence[Version]) -> None:
    """A card for each version, with what it marks, and the button that takes it."""
    for first in range(0, len(versions), A_ROW):
        row = versions[first : first + A_ROW]
        columns = st.columns(A_ROW if first else len(row))
        for place, (column, version) in enumerate(zip(columns, row, strict=False), start=first):
            with column, st.container(border=True):
                _draw_version(asked, version, place)


def _draw_version(asked: Asked, version: Version, place: int) -> None:
    label = version.label
    said = f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "marks words only"
    st.markdown(f"**{escaped(version.who)}**: {said}")
    marks = [Mark(s.start, s.end, title=category_words(s.category)) for s in version.spans]
    show(marked_text(asked.case.response, marks))
    if version.reason:
        st.caption(escaped(version.reason))
    if version.corrected_answer:
        st.caption(f"Right: {escaped(version.corrected_answer)}")
    number = FIRST_KEY + place
    st.button(
        "Take this",
        key=f"settle.take.{place}",
        shortcut=f"Alt+{number}" if number <= LAST_KEY else None,
        on_click=_take,
        args=(asked, version),
    )


def _take(asked: Asked, version: Version) -> None:
    """Put a version's label, spans and right answer into the form; other spans wait as offered.

    The reason is the lead's own: what they typed stays.
    """
    key = key_of(asked.id)
    reason, answer = (
        str(st.session_state.get(f"{key}.{name}") or "") for name in ("reason", "answer")
    )
    with state.open_store() as store:
        seen = str(st.session_state.get(f"{key}.seen") or newest_seen(store, asked))
    refill(
        asked,
        Correction(
            "", None, asked.case.id, version.who, time.time(), version.label or "hallucinated",
            version.spans, reason, version.corrected_answer or answer,
        ),
        seen,
    )  # fmt: skip
