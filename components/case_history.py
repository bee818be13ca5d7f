"""What happened to a case: every answer, what was taken back, passed on or settled, in order."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.correction_asked import said_words
from components.words import LABEL_WORDS, clipped, escaped, when
from core.records import Span
from core.reviews import Correction, Gold, Handling, category_words
from core.store import Store

Entry = Correction | Gold | Handling
HANDLING_WORDS = {
    "skipped": "passed it over",
    "flagged": "flagged it for a lead",
    "adjudicated": "settled it",
    "opened": "opened it again",
    "imported": "brought it in",
}


def history_of(store: Store, case_id: str, only: str = "") -> list[Entry]:
    """Every entry about a case, oldest first; of one person alone where named."""
    entries: list[Entry] = [
        *store.corrections.history(case_id),
        *store.golds.of_case(case_id),
        *store.handlings.of_case(case_id),
    ]
    own = [entry for entry in entries if not only or _who(entry) == only]
    return sorted(own, key=lambda entry: entry.at)


def draw_history(entries: Sequence[Entry]) -> None:
    """A line for each entry, with what it changed of the same person's one before."""
    if not entries:
        return
    with st.expander(f"History ({len(entries)} {'entry' if len(entries) == 1 else 'entries'})"):
        for place, entry in enumerate(entries):
            words = f":gray[{when(entry.at)}] **{escaped(_who(entry))}** "
            st.markdown(words + _what(entry, entries[:place]))


def _who(entry: Entry) -> str:
    return entry.person if isinstance(entry, Handling) else entry.author


def _what(entry: Entry, before: Sequence[Entry]) -> str:
    if isinstance(entry, Handling):
        return HANDLING_WORDS[entry.did] + (f": {escaped(entry.words)}" if entry.words else "")
    if isinstance(entry, Gold):
        earlier = [e for e in before if isinstance(e, Gold)]
        words = f"gave the right answer ({entry.origin}): {LABEL_WORDS[entry.label].lower()}"
        reason = f": {escaped(entry.reason)}" if entry.reason else ""
        return words + reason + _changed(entry, earlier[-1] if earlier else None)
    if entry.withdraws:
        return "took their answer back"
    undone = {e.withdraws for e in before if isinstance(e, Correction)}
    own = [
        e
        for e in before
        if isinstance(e, Correction)
        and e.author == entry.author
        and not e.withdraws
        and e.id not in undone
    ]
    return said_words(entry) + _changed(entry, own[-1] if own else None)


def _changed(entry: Correction | Gold, before: Correction | Gold | None) -> str:
    """Before and after, where there was something before."""
    if before is None:
        return ""
    parts: list[str] = []
    if before.label != entry.label:
        parts.append(f"{LABEL_WORDS[before.label].lower()} → {LABEL_WORDS[entry.label].lower()}")
    parts += [f"+ {_span(s)}" for s in entry.spans if s not in before.spans]
    parts += [f"− {_span(s)}" for s in before.spans if s not in entry.spans]
    if before.corrected_answer != entry.corrected_answer:
        was = escaped(clipped(before.corrected_answer, 60)) or "nothing"
        parts.append(f"right answer: {was} → {escaped(clipped(entry.corrected_answer, 60))}")
    return f"  \n&emsp;changed: {'; '.join(parts)}" if parts else ""


def _span(span: Span) -> str:
    return f"“{escaped(clipped(span.text, 40))}” ({escaped(category_words(span.category))})"
