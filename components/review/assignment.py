"""Assigning items of the queue: a lead gives those of a filter, or selected ones, to a person."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import draw_button, show_problem, store_problem
from components.widgets.wording import clip_text, escape_markdown, format_count
from core.schema.records import Project
from core.store import Store
from core.store.projects import has_rank
from core.store.review_queue import ItemFilter, build_queue_rules

EVERYBODY = ""  # nobody in particular: the items are released
MAX_LISTED = 200
PROBLEM = "assign.problem"
ABOUT_ASSIGNING = (
    "Assigned items come to that person first. Until they have answered, skipped or flagged them, "
    "nobody else is given them, except others they are assigned to."
)
CHOICES = {"filter": "the first that match the filters", "selected": "those I select"}


def draw_assignment(store: Store, project: Project, wanted: ItemFilter) -> None:
    """Draw, for a lead, the panel that assigns waiting items; `wanted` is the filter in force."""
    if not has_rank(store.projects.role_of(project.id, state.get_person(store)), "lead"):
        return
    wanted = replace(wanted, given_below=project.people_each)
    total = store.queue.count(project.id, wanted, ("open",), time.time())
    counts = store.queue.count_assigned(project.id, project.people_each)
    people = [member.person for member in store.projects.members(project.id)]
    with st.expander("Assign items", icon=":material/person_add:"):
        st.caption(ABOUT_ASSIGNING)
        show_problem(PROBLEM)
        if not total:
            st.caption("No waiting item matches these filters.")
            return
        left, right = st.columns(2)
        person = left.selectbox(
            "To",
            [*people, EVERYBODY],
            format_func=lambda name: name or "nobody: release them",
            key="assign.person",
        )
        if person:  # in the list itself a count would stay as it was when the person was chosen
            left.caption(f"{format_count(counts.get(person, 0), 'item')} assigned to them")
        which = right.segmented_control(
            "Which", list(CHOICES), default="filter", required=True,
            format_func=CHOICES.__getitem__, key="assign.which",
        )  # fmt: skip
        if which == "selected":
            ids = _draw_selection(store, project, wanted)
            count = len(ids)
        else:
            ids = None
            field = f"assign.many.{total}"
            count = int(st.number_input(f"How many (of {total})", 1, total, total, key=field))
        verb = "Assign" if person else "Release"
        words = f"{verb} {format_count(count, 'item')}"
        draw_button(
            words, "assign.do", _assign, project, wanted, ids, count, str(person or EVERYBODY),
            type="primary", disabled=not count,
        )  # fmt: skip


def _draw_selection(store: Store, project: Project, wanted: ItemFilter) -> list[str]:
    """Draw the first matching items with boxes to tick; return the chosen cases."""
    items, total = store.queue.page(
        project.id, wanted, ("open",), limit=MAX_LISTED, offset=0, now=time.time()
    )
    cases = {item.case_id: store.cases.get(item.case_id) for item in items}
    rows: list[dict[str, Any]] = [
        {
            "Claim": clip_text(case.response if case else "", 200),
            "Assigned to": format_assigned(store, case_id),
        }
        for case_id, case in cases.items()
    ]
    version = st.session_state.get("assign.version", 0)
    table = st.dataframe(
        rows,
        key=f"assign.table.{version}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
    )
    if total > MAX_LISTED:
        st.caption(f"The first {MAX_LISTED} of {total}: narrow the filters to see others.")
    ids = list(cases)
    return [ids[row] for row in table["selection"]["rows"] if row < len(ids)]


def format_assigned(store: Store, case_id: str) -> str:
    """Return the names of those an item is assigned to who have not ended it."""
    return ", ".join(one.person for one in store.queue.people_of(case_id) if one.is_waiting)


def _assign(
    project: Project, wanted: ItemFilter, ids: list[str] | None, count: int, person: str
) -> None:
    """Assign the chosen items, or the first `count` that match, to the person."""
    rules = build_queue_rules(project)
    with store_problem(PROBLEM):
        now = time.time()
        with state.open_store() as store, store.writing():
            lead = state.require_role(store, project.id, "lead", "assign items")
            if ids is None:
                items, _ = store.queue.page(
                    project.id, wanted, ("open",), limit=count, offset=0, now=now
                )
                ids = [item.case_id for item in items]
            if person:
                store.projects.require(project.id, person, "annotator", "review")
                done = store.queue.assign(ids, person, lead, rules, now)
            else:
                done = store.queue.release(ids)
        st.session_state["assign.version"] = st.session_state.get("assign.version", 0) + 1
        if not person:
            st.toast(f"Released {format_count(done, 'assignment')}.", icon=":material/check:")
            return
        words = f"Assigned {format_count(done, 'item')} to {person}."
        if left := len(ids) - done:
            words += f" {left} left out: theirs before, or answered."
        st.toast(escape_markdown(words), icon=":material/check:")
