"""What every page of figures says first: what it counts, and what to do next."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.review.review_queue import QUEUE_PAGE
from components.widgets.controls import draw_link
from components.widgets.wording import format_count
from core.store import open_store
from core.store.queries import AnswerCounts, count_answers_and_cases
from core.store.sqlite import ChangeMark

MAX_CACHED_PROJECTS = 8  # projects


def draw_counts(counted: str) -> None:
    """Draw how many answers and cases there are, and which of them this page counts."""
    with state.open_store() as store:
        project_id = state.get_project(store).id
    counts = _count_answers(str(state.home_folder()), project_id, state.get_answers_mark())
    st.caption(f"{describe_counts(counts)} {counted}")


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _count_answers(home: str, project_id: str, mark: ChangeMark) -> AnswerCounts:
    with open_store(Path(home)) as store:
        return count_answers_and_cases(store, project_id)


def describe_counts(counts: AnswerCounts) -> str:
    """Return the counts in words that are the same on every page."""
    said = format_count(counts.answers, "answer")
    if counts.golds:
        said += f" and {format_count(counts.golds, 'right answer')} settled or imported,"
    return (
        f"This project has {said} on {format_count(counts.cases, 'case')}: {counts.checked:,} "
        f"checked here, {counts.scored:,} with a probability by the machine."
    )


def draw_next_step(words: str, page: str = "", label: str = "") -> None:
    """Draw what to do next, in one line; without a page it is done further down.

    All but answering is for leads: others are told to answer, and what a lead can do.
    """
    if not has_role("annotator", "answer cases"):
        return
    if page != QUEUE_PAGE and not has_role("lead"):
        words, page, label = f"answer more cases. Left to a lead: {words}", QUEUE_PAGE, "Review"
    with st.container(horizontal=True, vertical_alignment="center", key="cp-next-step"):
        st.markdown(f":material/arrow_forward: **Next:** {words}", width="content")
        if page:
            draw_link(page, label)
