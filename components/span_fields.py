"""The wrong words of a correction on the page: the span editor, and exact quotes as a fallback."""

from __future__ import annotations

import streamlit as st

from components.correction_asked import Asked
from components.correction_draft import keep, key_of, places_of, typed_place
from components.correction_marks import marked_of, with_words
from components.span_editor import span_editor
from components.span_editor.marks import Marked
from core.reviews import category_words

NONE_WORDS = "No word of it alone is wrong"


def draw_span_fields(asked: Asked, *, agrees: bool) -> None:
    """The editor over the response, offered spans as suggestions, and a field for quotes."""
    _draw_editor(asked, agrees)
    with st.expander("Mark words by pasting them", icon=":material/content_paste:"):
        _draw_quote(asked)


@st.fragment
def _draw_editor(asked: Asked, agrees: bool) -> None:
    key = key_of(asked.id)

    def changed(marked: Marked) -> None:
        st.session_state[f"{key}.marked"] = marked
        if marked.did == "accept_all":
            st.session_state[f"{key}.all"] = True
        keep(asked.id)

    marked = marked_of(key, asked.offered)
    categories = asked.words | {m.category: category_words(m.category) for m in marked.marks}
    span_editor(
        asked.case.response,
        marked,
        categories,
        changed,
        key=f"{key}.editor",
        language=asked.case.language,
        none_words=NONE_WORDS,
    )
    if agrees and any(mark.status == "suggested" for mark in marked.marks):
        st.caption("Whoever agrees accepts the suggestions that are still open.")


def _draw_quote(asked: Asked) -> None:
    key = key_of(asked.id)
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    with words:
        quote = st.text_input(
            "Other wrong words, exactly as they stand",
            key=f"{key}.quote",
            on_change=keep,
            args=(asked.id, "quote"),
            persist_state="session",
        )
    places = places_of(asked.case.response, quote or "")
    with which:
        st.selectbox(
            "Which one",
            options=range(max(1, len(places))),
            format_func=lambda i: f"{i + 1} of {max(1, len(places))}",
            key=f"{key}.which",
            on_change=keep,
            args=(asked.id,),
            persist_state="session",
            disabled=len(places) < 2,
        )
    with category:
        categories = asked.words
        st.selectbox(
            "What is wrong",
            options=tuple(categories),
            format_func=lambda c: categories[c],
            key=f"{key}.category",
            on_change=keep,
            args=(asked.id,),
            persist_state="session",
        )
    with add:
        st.button("Mark", key=f"{key}.mark", on_click=_add_mark, args=(asked,))
    if quote and not places:
        st.caption("These words do not stand in the response like this.")


def _add_mark(asked: Asked) -> None:
    key = key_of(asked.id)
    if not places_of(asked.case.response, str(st.session_state.get(f"{key}.quote") or "")):
        return  # the form says so below the field
    marked = marked_of(key, asked.offered)
    st.session_state[f"{key}.marked"] = with_words(marked, *typed_place(asked))
    st.session_state[f"{key}.quote"] = ""
    keep(asked.id, "quote")
