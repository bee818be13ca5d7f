"""The wrong words of a correction: the machine's to keep or drop, and others by exact quote."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components.correction_draft import keep, key_of, places_of, typed_mark
from components.words import clipped, escaped
from core.progress import Progress
from core.records import CATEGORY_WORDS, Case


def draw_span_fields(run_id: str, case: Case, progress: Progress) -> None:
    """The machine's spans to keep or drop, and exact words to add."""
    key = key_of(run_id)
    machine = list(progress.spans)
    if machine:
        st.pills(
            "Marked by the machine: keep those that are wrong indeed",
            options=range(len(machine)),
            default=list(range(len(machine))),
            format_func=lambda i: f"{i + 1}. {escaped(clipped(machine[i].text, 40))}",
            selection_mode="multi",
            key=f"{key}.kept",
            on_change=keep,
            args=(run_id,),
            persist_state="session",
        )
    added: list[list[Any]] = st.session_state.setdefault(f"{key}.added", [])
    for number, (start, end, category) in enumerate(added):
        st.button(
            f"“{escaped(clipped(case.response[start:end], 50))}” · {CATEGORY_WORDS[category]}",
            key=f"{key}.drop.{number}",
            icon=":material/close:",
            help="Take this mark away",
            on_click=_drop_mark,
            args=(run_id, number),
        )
    _draw_quote(run_id, case, key)


def _draw_quote(run_id: str, case: Case, key: str) -> None:
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
            options=tuple(CATEGORY_WORDS),
            format_func=lambda c: CATEGORY_WORDS[c],
            key=f"{key}.category",
            on_change=keep,
            args=(run_id,),
            persist_state="session",
        )
    with add:
        st.button("Mark", key=f"{key}.mark", on_click=_add_mark, args=(run_id, case))
    if quote and not places:
        st.caption("These words do not stand in the response like this.")


def _add_mark(run_id: str, case: Case) -> None:
    key = key_of(run_id)
    if not places_of(case.response, str(st.session_state.get(f"{key}.quote") or "")):
        return  # the form says so below the field
    mark = typed_mark(run_id, case)
    added: list[list[Any]] = st.session_state.setdefault(f"{key}.added", [])
    if mark not in added:
        added.append(mark)
    st.session_state[f"{key}.quote"] = ""
    keep(run_id, "quote")


def _drop_mark(run_id: str, number: int) -> None:
    added: list[list[Any]] = st.session_state.get(f"{key_of(run_id)}.added") or []
    del added[number : number + 1]
    keep(run_id)
