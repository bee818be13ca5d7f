"""Adjudicate a case: everybody's answers side by side, and the right answer."""

import streamlit as st

from components.app.frame import page_title
from components.review.review_item import draw_settlement

page_title("Adjudicate a case")
draw_settlement(st.query_params.get("case", ""))
