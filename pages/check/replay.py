"""Replay: play a stored run again, at its recorded pace or at a reading pace."""

import streamlit as st

from components.app.frame import draw_page_title
from components.run.replay import draw_replay
from components.run.run_view import load_run
from components.widgets.controls import draw_link

loaded = load_run(st.query_params.get("run", ""))
if loaded is None:
    draw_page_title("Replay")
    st.info("No run was found at this link. History lists runs and opens trace files.")
    draw_link("pages/check/history.py", "History", "history")
    st.stop()
draw_replay(loaded[0], loaded[1])
