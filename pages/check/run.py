"""Run: live while it goes on; afterwards its verdict and everything behind it."""

import streamlit as st

from components.app.frame import (
    HISTORY_PAGE,
    draw_not_found,
    draw_page_title,
    has_role,
    is_withheld,
    stop_before_answer,
)
from components.check.batch import draw_neighbours
from components.check.history import draw_other_verdict, draw_rename
from components.check.new_check import draw_check_again
from components.run.run_view import (
    ACTIVE_STATUSES,
    draw_downloads,
    draw_header,
    draw_remark_box,
    draw_run,
    draw_unsent_remark,
    draw_withheld_run,
    follow_run,
    load_run,
    watch_status,
)

run_id = st.query_params.get("run", "")
loaded = load_run(run_id) if run_id else None
if loaded is None:
    draw_page_title("Run")
    words = f"There is no run “{run_id}” here." if run_id else "The address names no run."
    draw_not_found(f"{words} History lists all runs, and opens trace files.", HISTORY_PAGE)
    st.stop()

run, case, progress, corrections = loaded
draw_page_title("Run", claim=run.name or case.response)
if batch_id := st.query_params.get("batch", ""):
    draw_neighbours(batch_id, run_id)
with st.container(horizontal=True):
    draw_header(run, progress)
    if is_member := has_role("annotator", project_id=run.project_id):
        draw_rename(run, case)
if is_withheld(case):
    draw_withheld_run(run, progress)
stop_before_answer(case)
if run.status in ACTIVE_STATUSES:
    follow_run(run.id)
    if is_member:
        draw_remark_box(run)
else:
    if run.status != "finished" and run.origin == "here":
        watch_status(run.id, run.status)
    draw_unsent_remark(run)
    draw_other_verdict(run, case)
    draw_run(run, case, progress, corrections)
    draw_check_again(run, case)
    draw_downloads(run, case, progress, corrections)
