"""Project: its name and defaults, its members and their roles, its prompts."""

import streamlit as st

from components.app.frame import draw_page_title
from components.review.guidelines import draw_guideline_editor
from components.setup.project import draw_choice, draw_members, draw_record
from components.setup.prompts import draw_prompts

draw_page_title("Project", "People, defaults, library and cases that belong together.")
draw_choice()
defaults, people, guidelines, prompts = st.tabs(["Defaults", "People", "Guidelines", "Prompts"])
with defaults:
    draw_record()
with people:
    draw_members()
with guidelines:
    draw_guideline_editor()
with prompts:
    draw_prompts()
