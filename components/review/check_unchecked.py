"""Check all items of the queue that nobody has checked yet, in one batch."""

from __future__ import annotations

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.new_check import read_plan
from components.check.roster_choice import (
    describe_expectation,
    draw_roster_keys,
    get_default_protocol,
    load_library_entries,
)
from components.run.run_view import ACTIVE_STATUSES, POLL_MANY_SECONDS
from components.widgets.controls import draw_button, draw_link, show_problem, store_problem
from components.widgets.wording import escape_markdown
from core.baseline.wording import format_count
from core.pipeline.batch_check import load_batch_results, start_case_batch
from core.runtime.errors import InputError
from core.schema.records import Case, Plan, Project
from core.store import Store

STARTED = "review.unchecked.started"
FOLD_KEY = "review.unchecked.fold"


def draw_unchecked() -> None:
    """Draw how many items nobody has checked, and, once unfolded, the button that checks them."""
    with state.open_store() as store:
        project = state.get_project(store)
        total = store.queue.count_unchecked(project.id)
        total = min(total, store.projects.settings().table_claims)
    if batch := st.session_state.get(STARTED):
        if not project.is_blind:
            words = "The checks that you started"
            draw_link("pages/check/table.py", words, "table_rows", batch=batch)
        if (active := count_active(batch))[0]:
            _follow(batch, active)
    show_problem("review.unchecked.problem")
    if not total or not has_role("annotator"):
        return
    fold = st.expander(
        f"{format_count(total, 'item')} nobody has checked",
        key=FOLD_KEY,
        icon=":material/gavel:",
        on_change="rerun",
    )
    if not fold.open:
        return
    with fold:
        draw_roster_keys([project.roster], "review.unchecked")
        try:
            with state.open_store() as store:
                cases = _load_unchecked(store, project)
                plan = _read_project_plan(store, project)
                used = dict.fromkeys(i for case in cases for i in (*case.documents, *case.images))
                checks = [(case.response, case.question) for case in cases]
                entries = load_library_entries(store, [*used])
                st.caption(describe_expectation(store, entries, checks, plan))
        except InputError as error:
            st.error(escape_markdown(str(error)), icon=":material/error:")
            return
        words = "Check it" if len(cases) == 1 else f"Check these {len(cases):,}"
        draw_button(words, "review.unchecked", _check, icon="gavel")


def count_active(batch_id: str) -> tuple[int, int]:
    """Return how many runs of a batch are not over yet, and how many there are."""
    with state.open_store() as store:
        runs = [run for _, run in load_batch_results(store, batch_id) if run is not None]
    return sum(run.status in ACTIVE_STATUSES for run in runs), len(runs)


@st.fragment(run_every=POLL_MANY_SECONDS)
def _follow(batch_id: str, drawn: tuple[int, int]) -> None:
    """Draw how far a batch is; draw the whole page again when another run has ended."""
    active, total = count_active(batch_id)
    if (active, total) != drawn:
        st.rerun()
    st.progress(1 - active / total, text=f"{total - active} of {format_count(total, 'check')} done")


def _load_unchecked(store: Store, project: Project) -> list[Case]:
    """Return the cases to check, at most as many as a table may have."""
    most = store.projects.settings().table_claims
    return store.cases.several(store.queue.unchecked(project.id, most))


def _read_project_plan(store: Store, project: Project) -> Plan:
    protocol = get_default_protocol(store, project)
    return read_plan(project, store.projects.settings(), protocol, project.roster)


def _check() -> None:
    with store_problem("review.unchecked.problem"), state.open_store() as store:
        project = state.get_project(store)
        st.session_state[STARTED] = start_case_batch(
            store,
            state.get_jobs(),
            project,
            _load_unchecked(store, project),
            author=state.get_person(store),
            name="Items for review",
            plan=_read_project_plan(store, project),
            typed=state.get_typed_keys(),
        )
