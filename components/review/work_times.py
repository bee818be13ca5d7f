"""The table of how much time people take per item, for leads."""

from __future__ import annotations

import streamlit as st

from components.app import state
from components.widgets.controls import draw_table
from components.widgets.wording import format_duration
from core.review.work_time import PAUSE_SECONDS, measure_work_times


def draw_work_times() -> None:
    """Draw each person's items, median time and throughput; nothing for annotators."""
    with state.open_store() as store:
        project = state.get_project(store)
        role = store.projects.role_of(project.id, state.get_person(store))
        times = measure_work_times(store.queue.submitted(project.id))
    if role not in ("lead", "admin") or not any(time.seconds for time in times):
        return
    st.subheader("Time per person", anchor=False)
    rows = [
        {
            "Person": time.person,
            "Items": time.submitted,
            "Items with a time": len(time.seconds),
            "Seconds per item, median": time.median_seconds and round(time.median_seconds),
            "Items per hour": time.items_per_hour and round(time.items_per_hour, 1),
        }
        for time in times
    ]
    draw_table(rows, "agreement.times")
    st.caption(
        "From taking an item out of the queue to submitting it. More than "
        f"{format_duration(PAUSE_SECONDS)} is a pause and no work: such items have no time here, "
        "nor have those that were imported or answered on a run’s page. Time between two items "
        "does not count."
    )
