"""Replay: play a stored run again, at its recorded pace or at a reading pace."""

import streamlit as st

from components.app.frame import (
    HISTORY_PAGE,
    draw_not_found,
    draw_page_title,
    stop_before_answer,
)
from components.run.replay import draw_replay
from components.run.run_view import load_run

loaded = load_run(st.query_params.get("run", ""))
if loaded is None:
    draw_page_title("Replay")
    run_id = st.query_params.get("run")
    words = f"There is no run “{run_id}” here." if run_id else "The address names no run."
    draw_not_found(f"{words} History lists all runs, and opens trace files.", HISTORY_PAGE)
    st.stop()
stop_before_answer(loaded[1])
draw_replay(loaded[0], loaded[1])
