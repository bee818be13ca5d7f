"""The filters of the review queue: by age, language and source, and by what the machine says."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from components import state
from components.words import LABEL_WORDS
from core.store.queue_filter import EVERYTHING, ItemFilter

DAY = 86_400.0
AGES = {"": None, "a day": DAY, "a week": 7 * DAY, "a month": 30 * DAY}


def draw_filters() -> ItemFilter:
    """What the filters let through; they are open while one is set."""
    with state.open_store() as store:
        project = state.project(store)
        languages = store.queue_lists.languages(project.id)
        sources = {entry.id: entry.name for entry in store.library.all(project.id)}
    is_set = st.session_state.get("review.wanted", EVERYTHING) != EVERYTHING
    with st.expander("Filters", expanded=is_set, icon=":material/filter_list:"):
        age, language, source = st.columns(3)
        oldest = age.selectbox(
            "Older than",
            list(AGES),
            format_func=lambda v: v or "any age",
            key="review.age",
            persist_state="session",
        )
        spoken = language.selectbox(
            "Language",
            ["", *languages],
            format_func=lambda v: v or "any",
            key="review.language",
            persist_state="session",
        )
        rests_on = source.selectbox(
            "Rests on",
            ["", *sources],
            format_func=lambda v: sources.get(v, "any source"),
            key="review.source",
            persist_state="session",
        )
        wanted = ItemFilter(
            older_than=AGES[oldest or ""], language=spoken or "", source_id=rests_on or ""
        )
        return wanted if project.is_blind else _by_the_machine(wanted)


def _by_the_machine(wanted: ItemFilter) -> ItemFilter:
    """Filters by what the machine says, for those who may know it."""
    label, p, apart = st.columns([2, 3, 3])
    chosen = label.selectbox(
        "The machine says",
        ["", *LABEL_WORDS],
        format_func=lambda v: LABEL_WORDS[v] if v else "any",
        key="review.label",
        persist_state="session",
    )
    low, high = p.slider(
        "How likely hallucinated (%)", 0, 100, (0, 100), key="review.p", persist_state="session"
    )
    least = apart.slider(
        "Agents disagree at least (%)", 0, 100, 0, key="review.apart", persist_state="session"
    )
    return replace(
        wanted,
        label=chosen or "",
        p_from=low / 100 if low else None,
        p_to=high / 100 if high < 100 else None,
        disagreement_from=least / 100,
    )
