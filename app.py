"""Counterpoint's entry: page configuration, the menu, the page."""

from __future__ import annotations

import streamlit as st

from components import state
from components.frame import frame

st.set_page_config(page_title="Counterpoint", page_icon="components/assets/icon.png", layout="wide")
page = st.navigation(
    {
        "Check": [
            st.Page("pages/check/new.py", title="New check", icon=":material/add:", default=True),
            st.Page("pages/check/history.py", title="History", icon=":material/history:"),
            st.Page("pages/check/many.py", title="Check many", icon=":material/table_rows:"),
            st.Page("pages/check/table.py", title="Checked table", visibility="hidden"),
            st.Page("pages/check/run.py", title="Run", visibility="hidden"),
            st.Page("pages/check/replay.py", title="Replay", visibility="hidden"),
            st.Page("pages/check/compare.py", title="Compare", visibility="hidden"),
        ],
        "Review": [
            st.Page("pages/review/pending.py", title="Review", icon=":material/checklist:"),
            st.Page("pages/review/label.py", title="Label", visibility="hidden"),
            st.Page("pages/review/agreement.py", title="Agreement", icon=":material/handshake:"),
        ],
        "Learn": [
            st.Page("pages/learn/retrain.py", title="Retrain", icon=":material/model_training:"),
        ],
        "Set up": [
            st.Page("pages/setup/project.py", title="Project", icon=":material/group:"),
            st.Page("pages/setup/library.py", title="Library", icon=":material/folder:"),
            st.Page("pages/setup/settings.py", title="Settings", icon=":material/settings:"),
        ],
    }
)
with frame():
    page.run()
state.settle()
