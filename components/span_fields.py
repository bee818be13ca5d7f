"""The wrong words of a correction: the machine's to keep or drop, and others by exact quote."""

from __future__ import annotations

import streamlit as st

from components.words import clipped, escaped
from core.progress import Progress
from core.records import CATEGORY_WORDS, Case, Category, Span


def draw_span_fields(case: Case, progress: Progress, key: str) -> None:
    """The machine's spans to keep or drop, and exact words to add."""
    machine = list(progress.spans)
    if machine:
        st.pills(
            "Marked by the machine: keep those that are wrong indeed",
            options=range(len(machine)),
            default=list(range(len(machine))),
            format_func=lambda i: f"{i + 1}. {escaped(clipped(machine[i].text, 40))}",
            selection_mode="multi",
            key=f"{key}.kept",
            persist_state="session",
        )
    added: list[Span] = st.session_state.setdefault(f"{key}.added", [])
    for number, span in enumerate(added):
        st.button(
            f"“{escaped(clipped(span.text, 50))}” · {CATEGORY_WORDS[span.category]}",
            key=f"{key}.drop.{number}",
            icon=":material/close:",
            help="Take this mark away",
            on_click=added.remove,
            args=(span,),
        )
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    with words:
        quote = st.text_input(
            "Other wrong words, exactly as they stand",
            key=f"{key}.quote",
            persist_state="session",
        )
    places = places_of(case.response, quote or "")
    with which:
        st.selectbox(
            "Which one",
            options=range(max(1, len(places))),
            format_func=lambda i: f"{i + 1} of {max(1, len(places))}",
            key=f"{key}.which",
            persist_state="session",
            disabled=len(places) < 2,
        )
    with category:
        st.selectbox(
            "What is wrong",
            options=tuple(CATEGORY_WORDS),
            format_func=lambda c: CATEGORY_WORDS[c],
            key=f"{key}.category",
            persist_state="session",
        )
    with add:
        st.button("Mark", key=f"{key}.mark", on_click=_add_span, args=(case, key))
    if quote and not places:
        st.caption("These words do not stand in the response like this.")


def places_of(text: str, quote: str) -> list[int]:
    """Where the exact words begin, overlapping places too."""
    found: list[int] = []
    start = text.find(quote) if quote else -1
    while start >= 0:
        found.append(start)
        start = text.find(quote, start + 1)
    return found


def typed_span(case: Case, key: str, quote: str) -> Span:
    """The words in the field as a mark; they stand in the response."""
    places = places_of(case.response, quote)
    start = places[min(int(st.session_state.get(f"{key}.which") or 0), len(places) - 1)]
    category: Category = st.session_state.get(f"{key}.category") or "contradicted"
    person = str(st.session_state.get("person", ""))
    return Span(start, start + len(quote), quote, 1.0, category, person)


def _add_span(case: Case, key: str) -> None:
    quote = str(st.session_state.get(f"{key}.quote") or "")
    if not places_of(case.response, quote):
        return  # the form says so below the field
    span = typed_span(case, key, quote)
    added: list[Span] = st.session_state.setdefault(f"{key}.added", [])
    if span not in added:
        added.append(span)
    st.session_state[f"{key}.quote"] = ""
