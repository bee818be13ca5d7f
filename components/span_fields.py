"""The wrong words of a correction on the page: the span editor, and exact quotes as a fallback."""

from __future__ import annotations

import streamlit as st

from components.correction_draft import keep, key_of, places_of, typed_place
from components.correction_marks import CATEGORIES, marked_of, with_words
from components.span_editor import span_editor
from components.span_editor.marks import Marked
from core.progress import Progress
from core.records import Case

NONE_WORDS = "No word of it alone is wrong"


def draw_span_fields(run_id: str, case: Case, progress: Progress, *, agrees: bool) -> None:
    """The editor over the response, the machine's spans as suggestions, and a field for quotes."""
    _draw_editor(run_id, case, progress, agrees)
    with st.expander("Mark words without the mouse: paste them", icon=":material/content_paste:"):
        _draw_quote(run_id, case, progress, key_of(run_id))


@st.fragment
def _draw_editor(run_id: str, case: Case, progress: Progress, agrees: bool) -> None:
    key = key_of(run_id)

    def changed(marked: Marked) -> None:
        st.session_state[f"{key}.marked"] = marked
        keep(run_id)

    marked = marked_of(key, progress)
    span_editor(
        case.response,
        marked,
        CATEGORIES,
        changed,
        key=f"{key}.editor",
        language=case.language,
        none_words=NONE_WORDS,
    )
    if agrees and any(mark.status == "suggested" for mark in marked.marks):
        st.caption("Whoever agrees accepts the suggestions that are still open.")


def _draw_quote(run_id: str, case: Case, progress: Progress, key: str) -> None:
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    with words:
        quote = st.text_input(
            "Other wrong words, exactly as they stand",
            key=f"{key}.quote",
            on_change=keep,
            args=(run_id, "quote"),
            persist_state="session",
        )
    places = places_of(case.response, quote or "")
    with which:
        st.selectbox(
            "Which one",
            options=range(max(1, len(places))),
            format_func=lambda i: f"{i + 1} of {max(1, len(places))}",
            key=f"{key}.which",
            on_change=keep,
            args=(run_id,),
            persist_state="session",
            disabled=len(places) < 2,
        )
    with category:
        st.selectbox(
            "What is wrong",
            options=tuple(CATEGORIES),
            format_func=lambda c: CATEGORIES[c],
            key=f"{key}.category",
            on_change=keep,
            args=(run_id,),
            persist_state="session",
        )
    with add:
        st.button("Mark", key=f"{key}.mark", on_click=_add_mark, args=(run_id, case, progress))
    if quote and not places:
        st.caption("These words do not stand in the response like this.")


def _add_mark(run_id: str, case: Case, progress: Progress) -> None:
    key = key_of(run_id)
    if not places_of(case.response, str(st.session_state.get(f"{key}.quote") or "")):
        return  # the form says so below the field
    marked = marked_of(key, progress)
    st.session_state[f"{key}.marked"] = with_words(marked, *typed_place(run_id, case))
    st.session_state[f"{key}.quote"] = ""
    keep(run_id, "quote")
