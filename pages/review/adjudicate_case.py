"""Adjudicate a case: everybody's answers side by side, and the right answer."""

import streamlit as st

from components.app.frame import draw_page_title, has_role
from components.review.review_item import draw_adjudication

draw_page_title("Adjudicate a case")
if has_role("lead", "settle a case"):
    draw_adjudication(st.query_params.get("case", ""))
