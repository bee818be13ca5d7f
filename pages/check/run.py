"""Run: live while it goes on; afterwards its verdict and everything behind it."""

import streamlit as st

from components.app.frame import page_title
from components.check.batch import draw_neighbours
from components.check.new_check import draw_again
from components.run.run_view import (
    draw_downloads,
    draw_header,
    draw_run,
    draw_speaking,
    draw_unsaid,
    follow,
    load_run,
    notice,
)
from components.widgets.controls import link

run_id = st.query_params.get("run", "")
loaded = load_run(run_id) if run_id else None
if loaded is None:
    page_title("Run")
    st.info(
        "No run was found at this link. Runs are listed under History; a trace file can be "
        "opened there too."
    )
    link("pages/check/history.py", "History", "history")
    st.stop()

run, case, progress, corrections = loaded
page_title("Run")
if batch_id := st.query_params.get("batch", ""):
    draw_neighbours(batch_id, run_id)
draw_header(run, progress)
if run.status in ("queued", "running"):
    follow(run.id)
    draw_speaking(run)
else:
    if run.status != "finished" and run.origin == "here":
        notice(run.id, run.status)
    draw_unsaid(run)
    draw_run(run, case, progress, corrections)
    draw_again(run, case)
    draw_downloads(run, case, progress, corrections)
