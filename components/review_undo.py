"""The way back to what was saved, skipped or flagged last in the review queue."""

from __future__ import annotations

import time

import streamlit as st

from components import state
from components.review_rules import rules_of
from components.taking_back import take_back
from components.words import LABEL_WORDS, clipped, escaped
from core.errors import ReviewError
from core.reviews import Correction, Handling


def draw_saved() -> None:
    """What was saved or passed on last, and the way back to it."""
    last: dict[str, str] = st.session_state.get("review.last") or {}
    with state.open_store() as store:
        said = store.corrections.get(last.get("correction", ""))
        case = store.cases.get(last.get("case", ""))
    if case is None:
        return
    left, right = st.columns([4, 1], vertical_alignment="center")
    did = f"Saved: {LABEL_WORDS[said.label].lower()}" if said else last["did"].capitalize()
    left.caption(f"{did}, “{escaped(clipped(case.response, 80))}”")
    right.button(
        "Undo",
        key="review.undo",
        icon=":material/undo:",
        shortcut="Alt+Z",
        on_click=_undo,
        args=(case.id, said),
    )


def _undo(case_id: str, said: Correction | None) -> None:
    """Take the last answer back, as another entry, or the item that was passed on; open it."""
    if said is not None:
        take_back(said, case_id)
    else:
        _take_again(case_id)
    st.session_state.pop("review.last", None)
    st.session_state["review.back"] = case_id


def _take_again(case_id: str) -> None:
    now = time.time()
    try:
        with state.open_store() as store, store.writing():
            project, person = state.project(store), state.person(store)
            store.projects.require(project.id, person, "annotator", "review")
            store.queue.again(case_id, person, rules_of(project), now)
            store.handlings.add(Handling(case_id, person, now, "opened"))
    except ReviewError as error:
        st.session_state["review.problem"] = str(error)
