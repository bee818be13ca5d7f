"""Counterpoint's entry script: page configuration, menu and the chosen page."""

from __future__ import annotations

import streamlit as st

from components.app import state
from components.app.frame import frame, menu, pages

st.set_page_config(page_title="Counterpoint", page_icon="components/assets/icon.png", layout="wide")
page = st.navigation(pages(), position=menu(), expanded=True)
with frame():
    page.run()
state.settle()
