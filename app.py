"""Counterpoint's entry script: page configuration, menu and the chosen page."""

from __future__ import annotations

import streamlit as st

from components.app import state
from components.app.frame import draw_frame, list_pages, menu_position, open_linked_run
from components.widgets.controls import show_saved

st.set_page_config(page_title="Counterpoint", page_icon="components/assets/icon.png", layout="wide")
page = st.navigation(list_pages(), position=menu_position(), expanded=True)
with draw_frame(page.url_path):
    if page.url_path == "":
        open_linked_run()
    page.run()
    show_saved()
state.finish_script_run()
