"""Project: its name and defaults, its members and their roles, its prompts."""

import streamlit as st

from components.app.frame import draw_page_title
from components.setup.project import draw_choice, draw_members, draw_record
from components.setup.prompts import draw_prompts

draw_page_title("Project", "People, defaults, library and cases that belong together.")
draw_choice()
defaults, people, prompts = st.tabs(["Defaults", "People", "Prompts"])
with defaults:
    draw_record()
with people:
    draw_members()
with prompts:
    draw_prompts()
