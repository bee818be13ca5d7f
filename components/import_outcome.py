"""How far an import is, and what came of it."""

from __future__ import annotations

import streamlit as st

from components.importing import Import, imports
from components.words import escaped

RUNNING = "exchange.running"
POLL_SECONDS = 0.5


def draw_last() -> None:
    """The import that this session has started last."""
    one = current()
    if one is None:
        return
    if one.is_over:
        _draw_outcome(one)
    else:
        _poll()


def current() -> Import | None:
    """The import that this session has started last, while the process knows it."""
    return imports().known.get(str(st.session_state.get(RUNNING, "")))


@st.fragment(run_every=POLL_SECONDS)
def _poll() -> None:
    one = current()
    if one is None or one.is_over:
        st.rerun()
    else:
        share = one.done / one.total if one.total else 0.0
        st.progress(share, text=f"{one.done:,} of {one.total:,} rows are in")


def _draw_outcome(one: Import) -> None:
    if one.problem:
        st.error(escaped(one.problem), icon=":material/error:")
        return
    told = f"{one.outcome.words}." if one.outcome is not None else "Choose it on Project."
    words = f"{one.words} {told}"
    st.success(escaped(words), icon=":material/check_circle:")
    st.page_link("pages/review/pending.py", label="Review them", icon=":material/checklist:")
